// SPDX-License-Identifier: Apache-2.0
// Replay: sends the packets of a recording to one destination again: at the pace they were recorded with, at a fixed rate of packets
// or events, or as fast as the socket takes them; any number of times over.
//
// The payloads go out bit for bit as they were recorded, send times and sequence numbers included. So each lap looks like a new run
// to the receiver if the recording begins with its start-of-run markers; else the second lap is full of duplicates.
//
// Thread rules: run() in one thread; stop() and stats() from any. The source belongs to run().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "link/pace.hpp"
#include "link/pcap/mapped_file.hpp"
#include "link/pcap/pcap_reader.hpp"
#include "link/tally.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/udp.hpp"

namespace nanet::link {

struct ReplayPacket {
  std::span<const std::byte> payload;
  std::uint64_t time_ns;      // when it was recorded, on any clock
  std::uint32_t event_count;  // events in it; 0 for markers and what is not known
};

// Where the packets come from.
class ReplaySource {
 public:
  using Counts = std::vector<std::pair<std::string_view, std::uint64_t>>;

  virtual ~ReplaySource() = default;
  // The next packets, in order; 0 at the end of the recording. They are valid until the next call.
  virtual std::size_t next(std::span<ReplayPacket> packets) = 0;
  virtual void rewind() = 0;
  // What was read and what was passed over since the last rewind(), by name.
  virtual Counts counts() const = 0;
};

// The UDP payloads of a pcap file.
class PcapSource final : public ReplaySource {
 public:
  using EventCounter = std::uint32_t (*)(std::span<const std::byte> payload);

  // Throws SetupError when the file is no pcap file that can be read. only_port: play packets to this UDP port only; 0: all.
  PcapSource(std::unique_ptr<MappedFile> file, const std::string& path, std::uint16_t only_port, EventCounter events_in);

  std::size_t next(std::span<ReplayPacket> packets) override;
  void rewind() override;
  Counts counts() const override;

  // The next packet with all that the file says of it; false at the end.
  bool next_packet(PcapPacket& packet);
  const PcapStats& stats() const { return reader_.stats(); }
  std::uint64_t skipped_port() const { return skipped_port_; }
  static Counts named(const PcapStats& stats, std::uint64_t skipped_port);

 private:
  std::unique_ptr<MappedFile> file_;
  PcapReader reader_;
  const std::uint16_t only_port_;
  const EventCounter events_in_;
  std::uint64_t skipped_port_ = 0;
};

struct ReplayConfig {
  std::string to;  // udp://ADDRESS:PORT
  ReplayPace pace = ReplayPace::original;
  double rate = 0;         // with packets or events: above 0, up to 1e9
  std::uint64_t laps = 1;  // 0: until stop()
};

struct ReplayStats {
  std::uint64_t packets_sent = 0;  // given to the link
  std::uint64_t bytes_sent = 0;    // of their payloads
  std::uint64_t events_sent = 0;
  std::uint64_t laps_done = 0;
  std::uint64_t elapsed_ns = 0;  // from the first packet to the last, or to now
  std::uint64_t latest_ns = 0;   // how late the most delayed packet was
  std::uint64_t tx_dropped = 0;  // the kernel did not take them
  std::uint64_t tx_refused = 0;  // no one listens there
};

class Replay {
 public:
  // Opens the socket. Throws SetupError.
  Replay(std::unique_ptr<ReplaySource> source, const ReplayConfig& config);

  // Plays until the end or until stop().
  void run();
  void stop() { stopping_.store(true, std::memory_order_relaxed); }
  bool finished() const { return finished_.load(std::memory_order_acquire); }

  ReplayStats stats() const;
  ReplaySource::Counts counts() const { return source_->counts(); }  // once finished()
  std::vector<std::string> notes() const { return link_.notes(); }

 private:
  static constexpr std::size_t kBatch = 64;  // packets of one send call

  bool play_lap();
  void play(std::span<const ReplayPacket> packets);
  void send(std::span<const ReplayPacket> packets);
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  // False when stopped meanwhile.
  bool wait_until(std::uint64_t time_ns) const;
  const ReplayConfig config_;
  std::unique_ptr<ReplaySource> source_;
  Pace pace_;
  UdpLink link_;
  Tally packets_sent_;
  Tally bytes_sent_;
  Tally events_sent_;
  Tally laps_done_;
  std::atomic<std::uint64_t> latest_ns_{0};
  std::atomic<std::uint64_t> began_ns_{0};
  std::atomic<std::uint64_t> ended_ns_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> finished_{false};
};

}  // namespace nanet::link
