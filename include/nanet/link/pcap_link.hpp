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

#include "nanet/link/link.hpp"
#include "nanet/link/pace.hpp"
#include "nanet/link/replay.hpp"
#include "nanet/link/tally.hpp"

namespace nanet::link {

// Those that a link can play at.
constexpr auto choices(ReplayPace) {
  return std::array{config::Choice{"original", ReplayPace::original}, config::Choice{"packets", ReplayPace::packets},
                    config::Choice{"maximum", ReplayPace::maximum}};
}

struct PcapLinkConfig {
  static constexpr config::Component component{"Pcap", "How a recording is played."};

  // Name of the link in messages and reports.
  std::string name = "pcap";

  // Of the file. See pcap_reader.hpp for what it may be.
  std::string path;

  // Play packets to this UDP port only, the others are counted as skipped_port; 0: all.
  std::uint16_t port = 0;

  // Not events: a link does not know what is in its packets. packets_per_s: with pace packets, and only then.
  ReplayPace pace = ReplayPace::original;
  double packets_per_s = 0;

  // Bytes, 1..65507: longest UDP payload expected. Longer ones are cut to it and flagged as truncated.
  std::uint32_t packet_bytes_max = 1472;

  template <class Visit>
  void visit(Visit&& v) {
    v("port", port, {.help = "Play packets to this UDP port only; null: all", .least = 1, .most = 65535, .nullable = true});
    v("pace",
      pace, {.help = "original: the gaps of the recording; packets: packets_per_s; maximum: as fast as the engine takes them, with no loss"});
    v("packets_per_s", packets_per_s,
      {.help = "Rate, with pace packets", .unit = "packets/s", .most = 1e9, .above = 0, .nullable = true});
  }

  // A rate with pace packets, and only then.
  std::optional<config::Problem> check() const;
};

class PcapLink final : public Link {
 public:
  // Maps the file. Throws SetupError when it cannot be read or played.
  explicit PcapLink(const PcapLinkConfig& config);

  // packet_bytes_max. With less, a packet longer than the whole room is cut to it and flagged as truncated; nothing else is lost.
  std::size_t min_room_bytes() const override { return config_.packet_bytes_max; }

  // A packet that does not fit after the others comes in the next call. Payloads begin at multiples of 8 bytes.
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;

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
  void read_next();
  void publish();

  const PcapLinkConfig config_;
  PcapSource source_;
  Pace pace_;
  PcapPacket waiting_{};  // the next to be given, if any
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
