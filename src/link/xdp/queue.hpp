// SPDX-License-Identifier: Apache-2.0
// One queue of an interface: its frames (UMEM), an AF_XDP socket to receive and one to send, and their four rings.
//
// Two sockets on one UMEM, so that the thread that receives and the one that sends share no ring, no lock of the kernel and no error.
// The frames: rx_frames for receiving first, then tx_frames for sending.
// Thread rules: set up by one thread; then fill and rx belong to the receiving thread, completion and tx to the sending one.
#pragma once

#include <xdp/xsk.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nanet/link/xdp.hpp"

namespace nanet::link {

// What Debian's kernel headers do not know yet (linux/if_xdp.h of 6.6).
inline constexpr std::uint16_t kUseSeveralFrames = 1u << 4;  // XDP_USE_SG
inline constexpr std::uint32_t kPacketGoesOn = 1u << 0;      // XDP_PKT_CONTD
inline constexpr std::uint32_t kFrameHeadroomBytes = 256;    // XDP_PACKET_HEADROOM, before what is received
inline constexpr std::uint32_t kDescriptorsMax = 18;         // of one packet (MAX_SKB_FRAGS + 1)

struct QueueConfig {
  std::string link_name;
  std::string interface;
  std::uint32_t queue = 0;
  std::uint32_t rx_frames = 0;  // even; 0: no socket to receive
  std::uint32_t tx_frames = 0;  // a power of two; 0: no socket to send
  std::uint32_t frame_bytes = 2048;
  std::uint32_t headroom_bytes = 0;  // more of it than the kernel has anyway
  bool several_frames = false;       // a packet may take more than one
  XdpZeroCopy zero_copy = XdpZeroCopy::automatic;
  std::uint32_t busy_poll_us = 0;
};

inline std::size_t bytes_of_frames(const QueueConfig& config) {
  return std::size_t{config.rx_frames + config.tx_frames} * config.frame_bytes;
}

class Queue {
 public:
  // Opens and binds everything; the frames to receive into are with the kernel. frames: bytes_of_frames(config), at a page; they outlive the queue.
  // Throws SetupError.
  Queue(const QueueConfig& config, std::span<std::byte> frames, std::vector<std::string>& notes);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  std::uint32_t number() const { return config_.queue; }
  const QueueConfig& config() const { return config_; }
  bool is_zero_copy() const { return zero_copy_; }
  std::byte* frames() const { return frames_.data(); }
  int rx_fd() const { return rx_fd_; }
  int tx_fd() const { return tx_fd_; }

  struct Drops {
    std::uint64_t packets = 0;  // that came for the socket and found no frame or no place in its ring, or were too long for it
    std::uint64_t invalid_descriptors = 0;
  };
  Drops drops() const;

  alignas(64) xsk_ring_prod fill{};
  xsk_ring_cons rx{};
  alignas(64) xsk_ring_prod tx{};
  xsk_ring_cons completion{};

 private:
  void open(std::vector<std::string>& notes);
  xsk_socket* make_socket(xsk_ring_cons* rx_ring, xsk_ring_prod* tx_ring, std::uint16_t bind_flags);
  void busy_poll(std::vector<std::string>& notes) const;
  void close();
  [[noreturn]] void fail(int error) const;

  alignas(64) QueueConfig config_;
  std::span<std::byte> frames_;
  xsk_umem* umem_ = nullptr;
  xsk_socket* rx_socket_ = nullptr;
  xsk_socket* tx_socket_ = nullptr;
  int rx_fd_ = -1;
  int tx_fd_ = -1;
  bool zero_copy_ = false;
};

}  // namespace nanet::link
