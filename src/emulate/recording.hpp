// SPDX-License-Identifier: Apache-2.0
// Opens a recording for replay, whatever it is: a pcap file, whose packets are played as they are, or a file of raw data (MEPs one after
// the other), which is turned into the packets that the boards would have sent.
//
// Raw data to MGP packets
//   * One MEP gives one or more packets of its board, at once; so the boards stay as much in step as they are in the file.
//   * Source ID and sub-ID are the MEP's. Packets of other detectors, and of boards above 3, are skipped.
//   * An event's timestamp is the MEP's. The MEP has no fine time: `fine_time` is given to all events, and must be the same for all
//     boards that are to be merged.
//   * A hit is a leading edge. Padded: at most 32 an event, its time relative to timestamp and fine time in units of 2 ticks, rounded
//     down, and set to the first or last value (-3.1, +2.9 ns) when it lies outside. Packed: at most 255, without a time.
//   * Sequence and event numbers count from 0; a board's first packet follows a start-of-run marker, and all end with three end markers.
//   * A packet's time is that of its MEP's last event, from the first event of the file; it does not run backwards (a new burst follows
//     at once).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/pcap/replay.hpp"
#include "nanet/wire/mgp.hpp"
#include "wire/mep.hpp"

namespace nanet::emulate {

struct RecordingConfig {
  std::string path;
  std::uint16_t only_port = 0;                       // pcap: packets to this UDP port only; 0: all
  wire::MgpLayout layout = wire::MgpLayout::padded;  // raw data: of the packets made from it
  std::uint8_t source_id = 0x1C;                     // raw data: of this detector only
  std::uint8_t fine_time = 0;                        // raw data: see above
};

// Throws SetupError when the file cannot be read or is neither.
std::unique_ptr<link::ReplaySource> open_recording(const RecordingConfig& config);

// Events that the header of one of our packets (MGP, M2EGP) announces; 0 for anything else.
std::uint32_t events_in(std::span<const std::byte> payload);

class MepSource final : public link::ReplaySource {
 public:
  // Throws SetupError when the file does not begin with a MEP.
  MepSource(std::unique_ptr<link::MappedFile> file, const RecordingConfig& config);

  std::size_t next(std::span<link::ReplayPacket> packets) override;
  void rewind() override;
  Counts counts() const override;

 private:
  static constexpr std::size_t kPacketBytes = 1472;
  static constexpr std::size_t kPacketsMax = 64;  // of one MEP: at most 22 packed, 16 padded, and markers

  struct Board {
    std::uint32_t sequence = 0;
    std::uint64_t next_event = 0;
    bool seen = false;
  };
  struct Made {
    std::size_t bytes;
    std::uint32_t event_count;
  };

  bool make_packets();
  void convert(const wire::MepView& mep);
  std::span<const std::uint16_t> convert_hits(const wire::MepEvent& event, unsigned board);
  void finish_packet(Board& board, std::uint8_t sub_id);
  enum class Marker : std::uint8_t { start, end };
  void add_marker(const Board& board, std::uint8_t sub_id, Marker kind);
  void end_run();
  void advance_time(std::uint32_t timestamp);
  std::span<std::byte> room() { return {&memory_[made_.size() * kPacketBytes], kPacketBytes}; }

  const std::unique_ptr<link::MappedFile> file_;
  const RecordingConfig config_;
  std::vector<std::byte> memory_;  // of the packets made from the current MEP
  std::vector<Made> made_;
  std::size_t given_ = 0;  // of them
  std::size_t offset_ = 0;
  bool ended_ = false;
  std::vector<Board> boards_;
  std::vector<wire::MepHit> tdc_hits_;
  std::vector<std::uint16_t> hits_;
  std::optional<wire::MgpBuilder> builder_;
  std::uint64_t time_ticks_ = 0;
  std::uint32_t last_timestamp_ = 0;
  bool has_time_ = false;

  std::uint64_t meps_ = 0;
  std::uint64_t meps_bad_ = 0;
  std::uint64_t meps_other_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t events_bad_ = 0;
  std::uint64_t hits_played_ = 0;
  std::uint64_t hits_cut_ = 0;
  std::uint64_t hits_moved_ = 0;
  std::uint64_t bytes_damaged_ = 0;
};

}  // namespace nanet::emulate
