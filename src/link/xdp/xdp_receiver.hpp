// SPDX-License-Identifier: Apache-2.0
// The receiving half of the AF_XDP link: takes frames from the queues in turn, copies payloads into the caller's room, gives frames back; or lends the
// payloads where they are, and gives a frame back when its packet is.
//
// Thread rules: one thread receives and waits; add_stats() from any.
#pragma once

#include <poll.h>

#include <memory>
#include <span>
#include <vector>

#include "link/rx_room.hpp"
#include "link/socket.hpp"
#include "link/xdp/packet.hpp"
#include "link/xdp/queue.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link {

class XdpReceiver {
 public:
  // The queues outlive this object.
  XdpReceiver(const XdpConfig& config, const Endpoint& listen, const std::vector<std::unique_ptr<Queue>>& queues);

  std::size_t min_room_bytes() const { return min_room_bytes_; }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets);

  // Of the last receive(), by RxPacket::peer_address; none: that is an IPv4 address.
  std::span<const IpAddress> peers() const { return ipv6_peers_; }
  void give_back(std::span<const PlacedPacket> packets);
  void wait(std::uint64_t timeout_ns);
  void add_stats(LinkStats& stats) const;

 private:
  static constexpr std::uint32_t kBatch = 64;  // descriptors taken from one queue before it gets frames back

  // A queue as this half sees it.
  struct Source {
    Queue* queue = nullptr;
    std::uint64_t drops = 0;               // known
    std::uint32_t drop_marks = 0;          // set in after_drop
    bool follows_drop = false;             // the next packet delivered
    std::vector<std::uint8_t> after_drop;  // by place in the ring: the packet that will come there follows a drop
  };

  // What is filled in this call.
  struct Out : RxRoom {
    using RxRoom::RxRoom;
    std::uint64_t truncated = 0;
    std::uint64_t malformed = 0;
    std::uint64_t foreign = 0;
    bool is_full = false;
  };

  // One packet in its frames.
  struct Frames {
    std::uint32_t first = 0;  // descriptor
    std::uint32_t count = 0;
    std::uint32_t bytes = 0;
  };

  void take(Source& source, Out& out);
  Frames frames_of(const Queue& queue, std::uint32_t index, std::uint32_t available) const;
  bool deliver(Source& source, const Frames& frames, Out& out);
  bool find(const Queue& queue, const Frames& frames, XdpPayload& payload, Out& out);
  bool put(const Queue& queue, const Frames& frames, XdpPayload& payload, std::uint16_t& flags, Out& out) const;
  bool lend(const Source& source, const Frames& frames, const XdpPayload& payload, Out& out) const;
  void refill(Source& source, std::span<const std::uint64_t> frames);
  void note_drops(Source& source);
  void wake(const Queue& queue);

  const IpAddress address_;
  const bool is_ipv6_;
  const std::uint32_t ipv4_;  // 0: any
  std::uint16_t port_;
  bool polls_;  // the kernel looks at the NIC only when asked
  const bool in_place_;
  std::size_t min_room_bytes_;
  std::vector<Source> sources_;
  std::vector<pollfd> waiting_;
  std::uint32_t next_ = 0;             // queue to begin with
  IpAddress from_;                     // who sent the packet found last, over IPv6
  std::vector<IpAddress> ipv6_peers_;  // reserved for as many as one receive() can take

  alignas(64) Tally packets_;
  Tally bytes_, calls_, batches_, copied_bytes_, truncated_, errors_, foreign_, malformed_;
};

}  // namespace nanet::link
