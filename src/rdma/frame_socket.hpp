// SPDX-License-Identifier: Apache-2.0
// One end of a set-up channel: a connected socket that never blocks, and frames of bounded length on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rdma/socket_address.hpp"

namespace nanet::rdma::detail {

class FrameSocket {
 public:
  enum class Got : std::uint8_t { nothing, frame, gone, too_long };

  FrameSocket() = default;
  explicit FrameSocket(int connected);  // owns it
  ~FrameSocket() { close(); }
  FrameSocket(FrameSocket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), waiting_(std::move(other.waiting_)) {}
  FrameSocket& operator=(FrameSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(waiting_, other.waiting_);
    return *this;
  }

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void close();

  // Whole and at once: there is always room for what is answered to a question. False: the other end is gone, or does not read.
  bool send(std::span<const std::byte> message);
  // The next frame. What there is of one that is not whole is kept: at most 4 + bytes_max.
  Got receive(std::size_t bytes_max, std::vector<std::byte>& frame);

 private:
  int descriptor_ = -1;
  std::vector<std::byte> waiting_;
};

// A socket that listens and does not block. Of a path: for this account alone, and what an earlier process left there is removed. Throws
// SetupError. `port` is set to the one it got.
int listen_at(const std::string& address, std::uint16_t& port);

// A socket that connects, or -1 with errno.
int begin_connection(const SocketAddress& to);
// 0: it is connected; EINPROGRESS: not yet; else why not.
int connection_error(int descriptor);

}  // namespace nanet::rdma::detail
