// SPDX-License-Identifier: Apache-2.0
// A link is where packets come from and go to: two batch functions, receive and send. Everything that can stand in for a
// NIC (UDP sockets, AF_XDP, DPDK, a pcap file, the gateware model) implements this; the fault injector and the recorder
// wrap any of them.
//
// Thread rules: one thread calls receive, one thread (the same or another) calls send. Everything const may be called from any thread.
// Neither function blocks, allocates, logs or throws after the constructor returned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/contract.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/nic_times.hpp"

namespace nanet::link {

// One received packet inside the room given to receive().
struct RxPacket {
  std::uint32_t offset;        // from the start of the room
  std::uint16_t bytes;         // payload bytes that are there
  std::uint16_t peer_port;     // UDP port of the sender, host order; 0: not known
  std::uint32_t peer_address;  // IPv4 of the sender, host order, 0: not known; with peers(): an index in them
  std::uint16_t flags;         // OR of RxPacket::truncated, ...
  std::uint16_t reserved;

  static constexpr std::uint16_t truncated = 1u << 0;    // the packet was longer than the room left for it
  static constexpr std::uint16_t after_drop = 1u << 1;   // the kernel or NIC says it dropped packets just before this one
  static constexpr std::uint16_t wrong_queue = 1u << 2;  // its key is of another queue of this endpoint (UdpConfig::steer_by)
};
static_assert(sizeof(RxPacket) == 16);

struct RxBatch {
  std::uint32_t packet_count = 0;  // entries written to `packets`
  std::uint32_t bytes_used = 0;    // of the room, from its start
};

struct TxPacket {
  const std::byte* data;
  std::uint32_t bytes;
  std::uint32_t destination;  // index in the link's table of destinations
  bool* dropped = nullptr;    // becomes true if it is in tx_dropped when send() returns; null: no one asks
};

inline void tell_dropped(std::span<const TxPacket> packets) {
  for (const TxPacket& packet : packets) {
    if (packet.dropped != nullptr) *packet.dropped = true;
  }
}

// Of a link that knows how many it dropped, and not which: the last ones that it has not told yet stand for them.
inline void tell_dropped(std::span<const TxPacket> packets, std::uint64_t count) {
  for (; count != 0 && !packets.empty(); packets = packets.first(packets.size() - 1)) {
    const bool* const dropped = packets.back().dropped;
    if (dropped != nullptr && *dropped) continue;
    tell_dropped(packets.last(1));
    --count;
  }
}

// Totals since start. Every loss has a name here.
struct LinkStats {
  std::uint64_t rx_packets = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t rx_calls = 0;           // receive system calls (or their equivalent)
  std::uint64_t rx_batches = 0;         // of them, those that returned packets; rx_packets / rx_batches is the coalescing factor
  std::uint64_t rx_copied_bytes = 0;    // bytes that had to be moved again after the NIC or kernel wrote them
  std::uint64_t rx_kernel_dropped = 0;  // what the kernel or NIC says it dropped; a coalesced super-packet counts as one
  // Of rx_kernel_dropped, what was dropped since the newest packet came: no later packet shows a gap there, so no sequence number tells
  // of them yet. Sockets report it; 0 where a link cannot know.
  std::uint64_t rx_dropped_unseen = 0;
  std::uint64_t rx_truncated = 0;
  std::uint64_t rx_errors = 0;     // receive calls that failed for a reason other than "nothing there"
  std::uint64_t rx_foreign = 0;    // frames that reached the link but are not for its address and port
  std::uint64_t rx_malformed = 0;  // frames for its port whose lengths contradict each other
  // Of a file that is played: records passed over, by reason, and bytes at its end that are no whole record.
  std::uint64_t rx_skipped_not_udp = 0;
  std::uint64_t rx_skipped_port = 0;
  std::uint64_t rx_skipped_fragment = 0;
  std::uint64_t rx_skipped_cut = 0;
  std::uint64_t rx_bytes_damaged = 0;
  // Of a link that is recorded: packets in the recording, and those that went through the link but not into it.
  std::uint64_t recorded = 0;
  std::uint64_t unrecorded = 0;
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t tx_calls = 0;
  std::uint64_t tx_refused = 0;  // the peer is not there (ICMP port unreachable came back)
  std::uint64_t tx_dropped = 0;  // could not be sent: queue full or any other error
};

// What becomes of a payload that the NIC or the kernel has written into memory of the link.
enum class Payloads : std::uint8_t {
  copied,    // receive() copies it into its room
  in_place,  // it stays where it is, and receive() says where (Link::payload_memory); for links that can
};

constexpr auto choices(Payloads) {
  return std::array{config::Choice{"copied", Payloads::copied}, config::Choice{"in_place", Payloads::in_place}};
}

class Link {
 public:
  virtual ~Link() = default;
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // receive() may write anywhere in its room, and needs at least this much of it to lose nothing.
  virtual std::size_t min_room_bytes() const = 0;

  // Takes up to packets.size() packets that have arrived, writes their payloads into `room` and describes them, oldest first.
  // Packets of one call lie at increasing offsets except where a wrapper says otherwise.
  virtual RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) = 0;

  // The senders of the packets of the last receive(), for the receiving thread; empty: they are IPv4, and the packets have their addresses.
  virtual std::span<const IpAddress> peers() const { return {}; }

  // Where payloads stay after receive(). Empty: they are written into its room. Otherwise receive() writes a PlacedPacket for each packet
  // instead, back to back from the start of the room, which begins at a multiple of 16 (RxPacket::offset is where, RxPacket::bytes the
  // payload's); the payload is the caller's until give_back().
  virtual flow::PayloadMemory payload_memory() const { return {}; }

  // The receiving thread returns what receive() has lent it, in any order. Only for links with payload memory.
  virtual void give_back(std::span<const PlacedPacket> packets) { static_cast<void>(packets); }

  // Sends all packets, or counts why not, and tells whoever asks. The payloads may be reused when it returns.
  virtual void send(std::span<const TxPacket> packets, std::uint64_t now_ns) = 0;

  // Sleeps until something may be there to receive, at most timeout_ns.
  virtual void wait(std::uint64_t timeout_ns) = 0;

  virtual LinkStats stats() const = 0;

  // How long packets took inside the NIC so far, where the NIC itself says so. Reading may take milliseconds.
  virtual std::optional<NicTimes> nic_times() const { return std::nullopt; }

  // What became of packets inside the NIC, where it does more with them than receive and send. Reading may take milliseconds.
  virtual std::vector<NicCounts> nic_counts() const { return {}; }

  // Nothing will ever come again: the end of a file, or of a simulated torus.
  virtual bool finished() const { return false; }

  // What is not taken stays where it is, for as long as it takes. A caller without room should leave it; network packets have to be read and
  // counted as dropped, since otherwise the kernel or the NIC drops them unseen.
  virtual bool keeps_packets() const { return false; }

  // Where it listens, with the actual port when 0 was asked. A link that only sends: address and port 0.
  virtual Endpoint local() const = 0;

  // The path that packets take, in words: "UDP socket, coalesced".
  virtual std::string path() const = 0;

  // One line "problem (why) suggestion" for each thing that the machine could not provide.
  virtual std::vector<std::string> notes() const = 0;
};

}  // namespace nanet::link
