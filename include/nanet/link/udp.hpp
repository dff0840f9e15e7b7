// SPDX-License-Identifier: Apache-2.0
// The link over plain kernel UDP sockets: batches in and out, coalesced by the kernel where both sides can.
//
// Thread rules: those of Link. One thread may receive while another sends. notes(), local() and stats(): any thread.
//
// Layout of what receive() writes. Every message of the kernel (one packet, or one super-packet of packets of equal size, the last
// may be shorter) starts at the next multiple of 8 bytes from the start of the room; the packets of a super-packet lie one after the other.
// bytes_used is rounded up to a multiple of 8 (at most the size of the room). So packets of one size that is a multiple of 8 lie back to
// back, also over several calls when the caller passes the rest of its buffer as the next room. The room should start at a multiple of 8.
//
// Source port of what is sent: docs/design/links.md and SourcePort below.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/link.hpp"
#include "nanet/link/multicast.hpp"

namespace nanet::link {

enum class Coalesce : std::uint8_t { off, on };

// Where the packets sent seem to come from.
enum class SourcePort : std::uint8_t {
  own,     // one connected socket per destination, source port chosen by the kernel: fastest, no route lookup per message
  listen,  // the listening socket sends: source port = the port listened on, one route lookup per message. Needs `listen`.
};

// What chooses the queue of a packet where several share an endpoint.
enum class SteerBy : std::uint8_t {
  flow,     // addresses and ports, by the kernel's own hash
  address,  // of the sender
  key,      // some bytes of the payload
};

constexpr auto choices(SteerBy) {
  return std::array{config::Choice{"flow", SteerBy::flow}, config::Choice{"address", SteerBy::address},
                    config::Choice{"key", SteerBy::key}};
}

enum class Timestamps : std::uint8_t { off, software, hardware };  // by the kernel; by the NIC and the kernel

constexpr auto choices(Timestamps) {
  return std::array{config::Choice{"off", Timestamps::off}, config::Choice{"software", Timestamps::software},
                    config::Choice{"hardware", Timestamps::hardware}};
}

enum class ByteOrder : std::uint8_t { little, big };
enum class SenderClock : std::uint8_t { realtime, tai, monotonic };

constexpr auto choices(ByteOrder) {
  return std::array{config::Choice{"little", ByteOrder::little}, config::Choice{"big", ByteOrder::big}};
}
constexpr auto choices(SenderClock) {
  return std::array{config::Choice{"realtime", SenderClock::realtime}, config::Choice{"tai", SenderClock::tai},
                    config::Choice{"monotonic", SenderClock::monotonic}};
}

// Where a packet says when it was sent.
struct SentConfig {
  static constexpr config::Component component{"Sent", "Where a packet says when it was sent, in ns of the sender's clock."};

  std::uint32_t at = 0;
  std::uint32_t bytes = 8;
  ByteOrder byte_order = ByteOrder::little;
  SenderClock clock = SenderClock::realtime;

  template <class Visit>
  void visit(Visit&& v) {
    v("at", at, {.help = "Where it begins in the payload", .unit = "bytes", .least = 0, .most = 65506, .required = true});
    v("bytes", bytes,
      {.help = "Its length; 4: modulo 2^32, so up to 2.1 s either way are told apart", .unit = "bytes", .one_of = {4, 8}});
    v("byte_order", byte_order, {.help = "Order of its bytes"});
    v("clock", clock,
      {.help = "The clock that it was read from. realtime: UTC since 1970; tai: the same with leap seconds, as PTP has it, if this "
               "machine knows their number; monotonic: since the start of this machine, so of senders on it only"});
  }
};

struct UdpConfig {
  static constexpr config::Component component{"Udp", "What a link over sockets needs besides an endpoint."};
  static constexpr std::uint32_t kQueuesMax = 64;
  static constexpr std::uint32_t kKeyBytesMax = 8;

  // Name of the link in messages and reports.
  std::string name = "udp";

  // Where to receive; none: this link only sends. Port 0: the kernel chooses, local() tells. A multicast group is joined, on `interface` or
  // else where the route to it leads; other sockets of this machine may listen on it too.
  std::optional<Endpoint> listen;
  GroupJoin group_join;

  // TxPacket::destination is an index into this list.
  std::vector<Endpoint> destinations;
  GroupSending group_sending;

  // Network interface to receive from and to send through, whatever the routes say (SO_BINDTODEVICE); empty: any.
  std::string interface;

  // Bytes the kernel may queue for the receiving socket (SO_RCVBUF). Too small: packets are dropped while the receiving thread is
  // away (10 ms at 10 Gb/s are 12.5 MB, and a short packet costs about 1 KiB whatever its length). Too big: old packets are
  // processed after a stall instead of dropped, and kernel memory is tied up.
  std::uint32_t rx_socket_bytes = 64u << 20;

  // Bytes the kernel may queue for each sending socket (SO_SNDBUF). Too small: send() waits and then drops. Too big: answers grow old in it.
  std::uint32_t tx_socket_bytes = 4u << 20;

  // Bytes, 1..65507: largest single packet expected. Sets the first guess of the distance of packets in the room. Longer ones are
  // received all the same, at the price of a copy; it is the engine's receiver that refuses them.
  std::uint32_t packet_bytes_max = 1472;

  // Microseconds for which a blocking wait polls the device queue (SO_BUSY_POLL), 0: off. Costs a core's time, saves the interrupt. No effect on lo.
  std::uint32_t busy_poll_us = 0;

  // Microseconds that send() may wait for the socket to take more, in each call. Too small: drops in a burst. Too big: send() stalls its thread.
  std::uint32_t tx_wait_us = 100;

  // Let the kernel hand over many packets of one sender as one super-packet (UDP_GRO). Off: always one message per packet.
  Coalesce gro = Coalesce::on;

  // Hand the kernel many packets of one size as one message (UDP_SEGMENT). Off: one message per packet.
  Coalesce gso = Coalesce::on;

  SourcePort source_port = SourcePort::own;

  // How many sockets share the endpoint to listen on, and which of them this is (docs/design/queues.md). They are opened in order, 0 first; the
  // others listen on its local(). Only with the last one are packets steered.
  std::uint32_t queues = 1;
  std::uint32_t queue = 0;

  // key: the XOR of key_bytes bytes of the payload from key_at on, modulo `queues`. address: the same of the sender's address.
  SteerBy steer_by = SteerBy::flow;
  std::uint32_t key_at = 0;
  std::uint32_t key_bytes = 1;

  // Histograms of the time from the kernel to receive(), with hardware from the NIC to the kernel, and with `sent` from the sender to the first of
  // those: nic_times(). Off costs nothing.
  Timestamps timestamps = Timestamps::off;
  std::optional<SentConfig> sent;

  template <class Visit>
  void visit(Visit&& v) {
    v("queues", queues,
      {.help = "Sockets that share the endpoint. Each is a link of its own, NAME.0, NAME.1 and so on, with its own memory and "
               "counters; cpu_cores.lanes gives them cores of their own",
       .unit = "queues",
       .least = 1,
       .most = kQueuesMax,
       .too_big = "memory: each has socket_buffer_bytes and a memory region"});
    v("steer_by", steer_by,
      {.help = "What chooses the queue of a packet. flow: both addresses and ports, by the kernel's hash; address: the sender's "
               "address; key: key_bytes bytes of the payload at key_at. address and key take the XOR of the bytes modulo queues"});
    v("key_at", key_at,
      {.help = "With steer_by key: where the key begins in the payload", .unit = "bytes", .least = 0, .most = 65506});
    v("key_bytes", key_bytes, {.help = "With steer_by key: its length", .unit = "bytes", .least = 1, .most = kKeyBytesMax});
    v("timestamps", timestamps,
      {.help = "software: the kernel stamps each packet as it comes from the driver, and the result says how long packets took "
               "from "
               "there to this program; hardware: the NIC stamps it too, as it comes from the wire"});
    v("sent",
      sent, {.help = "With timestamps: where a packet says when it was sent, for the time from the sender to the first stamp; null: it does not"});
  }

  // Nothing is steered among one queue, only steer_by key has a key, and only with stamps is there a use for `sent`.
  std::optional<config::Problem> check() const;
};

class UdpReceiver;
class UdpSender;

class UdpLink : public Link {
 public:
  // Opens and binds every socket and allocates everything. Throws SetupError.
  explicit UdpLink(const UdpConfig& config);
  ~UdpLink() override;

  // 65,536 with GRO (the largest super-packet), else packet_bytes_max rounded up. With less, a packet longer than the room is
  // cut to it and flagged as truncated; nothing else is lost.
  std::size_t min_room_bytes() const override;

  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;

  std::span<const IpAddress> peers() const override;

  // packets given = tx_packets + tx_dropped, exactly. tx_refused counts the notices that came back for earlier ones of tx_packets.
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;

  void wait(std::uint64_t timeout_ns) override;

  // rx_kernel_dropped is read from the socket, so it includes drops after the last packet.
  LinkStats stats() const override;

  // tx_refused by destination, those that are not 0. With SourcePort::listen, where destinations share a socket, one may have another's.
  std::map<std::string, std::uint64_t> refusals() const;

  // With UdpConfig::timestamps: stages of the kernel's stamps, in ns. A message has one, whatever it was put together from.
  std::optional<NicTimes> nic_times() const override;

  Endpoint local() const override;
  std::string path() const override;
  std::vector<std::string> notes() const override;

  const std::string& name() const { return config_.name; }

 private:
  UdpConfig config_;
  std::vector<std::string> setup_notes_;
  std::unique_ptr<UdpReceiver> receiver_;  // none: only sends
  std::unique_ptr<UdpSender> sender_;      // none: only receives
  std::atomic<std::uint64_t> sent_to_nowhere_{0};
};

}  // namespace nanet::link
