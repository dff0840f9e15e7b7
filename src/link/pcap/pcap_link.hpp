// SPDX-License-Identifier: Apache-2.0
// A pcap file as an input link: its UDP payloads come as if a NIC had just received them, copied into the caller's room, with the sender's
// address and port. At the recording's own pace, at a fixed rate of packets, or as fast as the caller takes them. Once through; then
// finished() says so.
//
// Time is the now_ns of receive(): a packet comes in the first call at or after its time, and the first packet in the first call. Nothing
// is lost here, however late the calls are. The file must not become shorter while it is played (MappedFile).
//
// Thread rules: those of Link; wait() belongs to the receiving thread. finished(), stats(), counts(): any thread. A page of the file that
// is not in memory yet is read inside receive().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "link/pace.hpp"
#include "link/pcap/replay.hpp"
#include "link/tally.hpp"
#include "nanet/link/link.hpp"
#include "nanet/link/pcap_config.hpp"

namespace nanet::link {

class PcapLink final : public Link {
 public:
  // Maps the file. Throws SetupError when it cannot be read or played.
  explicit PcapLink(const PcapLinkConfig& config);

  // packet_bytes_max. With less, a packet longer than the whole room is cut to it and flagged as truncated; nothing else is lost.
  std::size_t min_room_bytes() const override { return config_.packet_bytes_max; }

  // A packet that does not fit after the others comes in the next call. Payloads begin at multiples of 8 bytes.
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;

  std::span<const IpAddress> peers() const override { return ipv6_peers_; }

  // A file takes nothing: the packets are counted as tx_dropped.
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;

  // Until the next packet is due, as seen from the last receive().
  void wait(std::uint64_t timeout_ns) override;

  LinkStats stats() const override;
  Endpoint local() const override;  // scheme pcap, address 0, port
  std::string path() const override;
  std::vector<std::string> notes() const override { return {}; }

  // Every packet of the file has been given.
  bool finished() const override { return finished_.load(std::memory_order_acquire); }

  // As fast as they are taken; with a pace the packets come when they come, as from a network.
  bool keeps_packets() const override { return config_.pace == ReplayPace::maximum; }

  // What was read so far and what was passed over, by name: records = rx_packets + each skipped_... + 1 until finished().
  ReplaySource::Counts counts() const;

 private:
  std::uint32_t add_peer(const IpAddress& peer);
  void read_next();
  void publish();

  const PcapLinkConfig config_;
  PcapSource source_;
  Pace pace_;
  PcapPacket waiting_{};  // the next to be given, if any
  std::vector<IpAddress> ipv6_peers_;
  bool has_waiting_ = false;
  bool started_ = false;
  std::uint64_t due_ns_ = 0;  // of waiting_, once started_
  std::uint64_t now_ns_ = 0;  // of the last receive()
  std::atomic<bool> finished_{false};
  Tally rx_packets_;
  Tally rx_bytes_;
  Tally rx_calls_;
  Tally rx_batches_;
  Tally rx_truncated_;
  Tally records_;
  Tally skipped_not_udp_;
  Tally skipped_fragment_;
  Tally skipped_cut_;
  Tally skipped_port_;
  Tally bytes_damaged_;
  Tally tx_dropped_;  // another thread's
};

}  // namespace nanet::link
