// SPDX-License-Identifier: Apache-2.0
// Wraps any link and writes what it receives and sends to a pcap file that tshark and Wireshark read.
//
// Nanosecond pcap, link type RAW. The IP and UDP headers are made here (a link only shows payloads), with right lengths and
// checksums. Times are CLOCK_REALTIME, one reading for each batch, so all packets of a batch have the same time.
//
// Once a packet doesn't fit, or the disk takes no more, the recording has stopped: notes() says so, and the file ends with a whole record.
//
// Not for the hot path: it takes a lock, copies every byte and writes to a file. All other rules of Link hold.
// Thread rules: those of Link; receive and send may run at the same time. recorder_stats(): any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/link/endpoint.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link {

struct RecorderConfig {
  std::string path;                      // of the file, overwritten
  std::uint64_t max_bytes = 1ull << 30;  // of the file; a packet that does not fit ends the recording
  Endpoint local;                        // shown as destination of what is received and source of what is sent
  std::vector<Endpoint> destinations;    // shown as destination of what is sent, by TxPacket::destination
};

struct RecorderStats {
  std::uint64_t packets_recorded = 0;
  std::uint64_t packets_unrecorded = 0;  // they went through the link but not into the file: file full, or the disk refused
  std::uint64_t bytes_recorded = 0;      // of the file, headers included
};

class Recorder : public Link {
 public:
  // Throws SetupError when the file cannot be made, or payloads of the wrapped link stay in place.
  Recorder(std::unique_ptr<Link> inner, const RecorderConfig& config);
  ~Recorder() override;  // flushes

  std::size_t min_room_bytes() const override;
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;
  std::span<const IpAddress> peers() const override { return inner_->peers(); }
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;
  void wait(std::uint64_t timeout_ns) override;
  LinkStats stats() const override;  // of the wrapped link, with recorded and unrecorded
  std::optional<NicTimes> nic_times() const override;
  std::vector<NicCounts> nic_counts() const override;
  bool finished() const override;
  bool keeps_packets() const override { return inner_->keeps_packets(); }
  Endpoint local() const override;
  std::string path() const override;
  std::vector<std::string> notes() const override;  // of the wrapped link, and that the recording stopped

  void flush();  // everything recorded so far is in the file afterwards
  RecorderStats recorder_stats() const;
  Link& inner() { return *inner_; }

 private:
  struct File;
  std::unique_ptr<Link> inner_;
  std::unique_ptr<File> file_;
};

}  // namespace nanet::link
