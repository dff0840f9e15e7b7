// SPDX-License-Identifier: Apache-2.0
// The receiving half of the UDP link: one bound socket, emptied by two methods (docs/design/links.md).
//
//   coalesced  one recvmsg takes one message: a super-packet with its segment size, or a single packet.
//   single     one recvmmsg takes many messages into slots, one a packet; a message longer than its slot runs over into a spill of its own.
//
// What does not fit into the caller's room or packet entries waits in the spill for the next call.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "link/rx_room.hpp"
#include "link/socket.hpp"
#include "link/udp/queue_steering.hpp"
#include "link/udp/receive_times.hpp"

namespace nanet::link {

class UdpReceiver {
 public:
  UdpReceiver(const UdpConfig& config, std::vector<std::string>& notes);

  std::size_t min_room_bytes() const;
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets);
  void wait(std::uint64_t timeout_ns);
  void add_stats(LinkStats& stats) const;

  // Of the last receive(), by RxPacket::peer_address; none: that is an IPv4 address.
  std::span<const IpAddress> peers() const { return ipv6_peers_; }

  std::optional<NicTimes> times() const { return times_ ? std::optional(times_->times()) : std::nullopt; }

  const Socket& socket() const { return socket_; }
  Endpoint local() const;
  bool coalesces() const { return gro_; }

 private:
  static constexpr std::uint32_t kSuperBytes = 65'536;  // no message of the kernel is longer
  static constexpr std::uint32_t kSlots = 32;           // messages of one recvmmsg
  static constexpr std::uint32_t kQuotaMax = 64;        // messages of one receive() when busy
  static constexpr std::uint32_t kSinglesToSwitch = 32;

  enum class Way : std::uint8_t { coalesced, single };

  // One message of the kernel.
  struct Message {
    const std::byte* data;  // only for those in the spill
    std::uint32_t bytes;
    std::uint32_t segment_bytes;  // of each packet but the last; = bytes for a single packet
    std::uint32_t peer_address;   // as RxPacket has it
    std::uint16_t peer_port;
    std::uint16_t flags;  // of its first packet

    bool is_super() const { return segment_bytes < bytes; }
  };

  void open(const UdpConfig& config, std::vector<std::string>& notes);
  void receive_coalesced(RxRoom& out);
  void receive_single(RxRoom& out);
  void prepare_slots(RxRoom& out, std::uint32_t slots, std::uint32_t slot_bytes);
  std::uint32_t place_slots(RxRoom& out, std::uint32_t received, std::uint32_t slot_bytes);
  void put(RxRoom& out, const Message& message, std::uint32_t bytes);
  void spill(const Message& message, const std::byte* data);
  void spill_rest(const Message& message, const std::byte* place, std::uint32_t described);
  void deliver_spilled(RxRoom& out);
  bool deliver(RxRoom& out, Message& message);
  void note_quota(std::uint32_t messages, std::uint32_t wanted);
  bool failed(int error);
  std::uint32_t add_peer(const IpAddress& peer);
  Message read_message(const msghdr& header, std::uint32_t bytes);

  std::byte* spill_slot(std::uint32_t i) { return spill_bytes_.data() + std::size_t{i} * kSuperBytes; }

  Socket socket_;
  const bool is_ipv6_;
  const QueueSteering steering_;
  std::unique_ptr<ReceiveTimes> times_;  // none: nothing is stamped
  bool gro_ = false;
  Way way_ = Way::single;
  std::uint32_t packet_bytes_max_;
  std::uint32_t slot_bytes_;  // distance of packets in the single method: the largest packet of the last batch, rounded up to 8
  std::uint32_t quota_ = 1;   // messages to ask for in the next call
  std::uint32_t message_packets_ = 1;  // in the last message: the next one will probably need as many entries
  std::uint32_t singles_row_ = 0;      // single packets in a row since the last super-packet or empty call

  std::array<mmsghdr, kSlots> headers_{};
  std::array<std::array<iovec, 2>, kSlots> pieces_{};
  std::array<SocketAddress, kSlots> peers_{};
  struct alignas(16) Control {
    std::array<std::byte, 128> bytes;  // segment size, drops, stamps
  };
  std::array<Control, kSlots> controls_{};

  std::vector<std::byte> spill_bytes_;  // kSlots * kSuperBytes
  std::array<Message, kSlots> spilled_{};
  std::array<IpAddress, kSlots> spilled_peers_{};  // of IPv6
  std::uint32_t spilled_begin_ = 0;
  std::uint32_t spilled_end_ = 0;

  std::vector<IpAddress> ipv6_peers_;  // reserved for as many messages as one receive() can meet

  Tally packets_, bytes_, calls_, batches_, copied_bytes_, kernel_dropped_, truncated_, errors_, refused_;
};

}  // namespace nanet::link
