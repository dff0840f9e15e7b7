// SPDX-License-Identifier: Apache-2.0
// The listening end of the set-up channel: whoever connects has to prove the token of a region before anything that it says reaches UCX.
//
// A stranger has 5 s from connecting to its open message, gets a frame of at most the size that is due, and holds one of 128 places; when
// all are taken, the one that has waited longest makes room. No stranger blocks anything: what is not there is waited for elsewhere.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/frame_socket.hpp"
#include "rdma/proof.hpp"
#include "rdma/worker_state.hpp"

namespace nanet::rdma::detail {

inline constexpr std::size_t STRANGERS_MAX = 128;
inline constexpr std::uint64_t STRANGER_NS = 5'000'000'000;

class Door final : public Watcher {
 public:
  // Who owns the door.
  class Host {
   public:
    virtual ~Host() = default;
    virtual std::optional<std::uint64_t> token_of(std::string_view region) const = 0;  // none: no such name
    // Both ends have proved it. The address is one of a worker of UCX, as the other end says.
    virtual void enter(FrameSocket socket, const std::string& region, std::span<const std::byte> worker_address) = 0;
  };

  Door(WorkerState& worker, Host& host, const std::string& address, std::uint16_t port);  // throws SetupError
  ~Door() override;
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  std::uint16_t port() const { return port_; }
  std::uint64_t refused_count() const { return refused_count_; }  // sent away before they were let in
  void ready(int descriptor) override;
  void tick(std::uint64_t now_ns) override;

 private:
  struct Stranger {
    FrameSocket socket;
    std::uint64_t deadline_ns = 0;
    Challenge challenge{};
    std::string region;  // proved; empty before
  };
  using Place = std::deque<Stranger>::iterator;

  void let_in();
  void hear(Place stranger);
  bool greet(Stranger& stranger, std::span<const std::byte> frame);
  bool refuse(Stranger& stranger, Refusal why);
  Stranger take_out(Place stranger);
  void send_away(Place stranger);

  WorkerState& worker_;
  Host& host_;
  std::string path_;  // of a Unix socket, else empty
  std::uint16_t port_;
  int listener_;
  std::uint64_t token_of_no_one_;
  std::deque<Stranger> strangers_;  // in the order in which they came
  std::vector<std::byte> frame_;
  std::uint64_t refused_count_ = 0;
};

}  // namespace nanet::rdma::detail
