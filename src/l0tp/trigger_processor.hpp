// SPDX-License-Identifier: Apache-2.0
// The L0 trigger processor: aligns the primitives of up to seven detectors in time and decides on each one of the reference
// detector. docs/design/l0tp.md has the picture and the reasons.
//
// Terms
//   tick      97.46 ps, 1/256 of a timestamp. A time is timestamp << 8 | fine time; 40 bits on the wire, which wrap after
//             107 s, and continued without a wrap in here.
//   cell      256 >> fine_time_bits ticks. Cell c lies at address c modulo 16384 of each input's memory: the low 14 - b bits
//             of the timestamp, then the high b bits of the fine time. It holds one primitive, the last one stored.
//   newest    the newest time heard of, from an accepted primitive or from the header of a packet, which may be empty.
//   read      cells before next_cell are read: their reference primitives are decided on, and what comes for them is late.
//   window    the cells next_cell .. next_cell + 16382. Only for these is anything stored, so that no unread cell, nor the
//             one before next_cell, is ever written by another turn of the memory.
//
// A primitive, checked in this order
//   its cell is up to 16384 cells before the window   late
//   its cell is otherwise outside of the window       out of range
//   bit 15 of its ID is set                           calibration: a trigger of its own at the next decide(); no room: counted
//   reference, same time and ID as what its cell holds  duplicate
//   else                                              stored; if its cell held one of the same cell number, that is overwritten
//
// Deciding: decide() reads every cell that lies wholly before newest - read_lag_us, in the order of time. A reference primitive
// of cell N is compared with cells N, N-1, N+1 of each other input; the closest whose distance is at most that
// input's time cut is its match (of two at the same distance the first in this order). The IDs, 0 for no match, are 7 x 16 bits; a
// mask that matches counts, and fires at every downscaling-th count.
//
// When times jump: a packet whose header lies outside (neither in the window nor up to 16384 cells before it) votes for its
// time. Majority vote: a packet that agrees with the candidate within one length of the memory adds a vote, any other takes one, and at
// none the next packet outside is the candidate. At kJumpVotes the next decide() reads all that waits, forgets what is
// stored and begins again at the candidate's time. So a lost second costs some packets, one wild clock among good ones nothing.
//
// Books, for each input and at all times
//   primitives = stored + calibrations + late + out_of_range + duplicates + calibrations_no_room
// and for the reference input
//   stored = overwritten + decided + pending_count()
// and packets = packets_good + packets_bad_length + packets_bad_format + packets_unknown_source.
//
// Rules
//   * One thread. No clock, no I/O; nothing is allocated and nothing throws after the constructor.
//   * now_ns comes from one clock that never goes back.
//   * Call decide() after every packet, or at least before the packets taken cover more time than the memory less read_lag_us:
//     what runs further ahead is out of range.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "l0tp/config.hpp"
#include "l0tp/decision.hpp"
#include "nanet/wire/mtp.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::l0tp {

inline constexpr std::uint32_t kWindowCells = kCellCount - 1;
inline constexpr std::uint64_t kFirstTurn = wire::kTickMask + 1;  // unwrapped times begin here, so that none is below 0
inline constexpr std::uint32_t kJumpVotes = 32;
inline constexpr std::uint32_t kCalibrationsMax = 256;  // that can wait for a decide()

// Totals since construction, of one input.
struct InputStats {
  std::uint64_t packets = 0;
  std::uint64_t primitives = 0;
  std::uint64_t stored = 0;
  std::uint64_t calibrations = 0;
  std::uint64_t late = 0;                  // cell was read already
  std::uint64_t out_of_range = 0;          // time too far from the window
  std::uint64_t duplicates = 0;            // reference only
  std::uint64_t calibrations_no_room = 0;  // decide() was not called in time
  std::uint64_t overwritten = 0;           // of stored: a later one took the cell
  std::uint64_t matched = 0;               // decisions with a primitive of this input
};

// Totals since construction. `primitives` of a packet of an unknown source belong to no input.
struct Stats {
  std::uint64_t packets = 0;
  std::uint64_t packets_good = 0;
  std::uint64_t packets_bad_length = 0;
  std::uint64_t packets_bad_format = 0;
  std::uint64_t packets_unknown_source = 0;
  std::uint64_t primitives_unknown_source = 0;
  std::uint64_t decided = 0;           // reference primitives read
  std::uint64_t triggers_physics = 0;  // of these, with a trigger word that is not 0
  std::uint64_t triggers_calibration = 0;
  std::uint64_t time_jumps = 0;  // times that the clock was set again because packets voted so
};

struct MaskStats {
  std::uint64_t matched = 0;  // before downscaling
  std::uint64_t fired = 0;
};

// For reports: every counter by name.
template <class T>
struct StatsName {
  std::string_view name;
  std::uint64_t T::*value;
};
inline constexpr std::array<StatsName<InputStats>, 10> kInputStatsNames = {{
    {"packets", &InputStats::packets},
    {"primitives", &InputStats::primitives},
    {"stored", &InputStats::stored},
    {"calibrations", &InputStats::calibrations},
    {"late", &InputStats::late},
    {"out_of_range", &InputStats::out_of_range},
    {"duplicates", &InputStats::duplicates},
    {"calibrations_no_room", &InputStats::calibrations_no_room},
    {"overwritten", &InputStats::overwritten},
    {"matched", &InputStats::matched},
}};
inline constexpr std::array<StatsName<Stats>, 10> kStatsNames = {{
    {"packets", &Stats::packets},
    {"packets_good", &Stats::packets_good},
    {"packets_bad_length", &Stats::packets_bad_length},
    {"packets_bad_format", &Stats::packets_bad_format},
    {"packets_unknown_source", &Stats::packets_unknown_source},
    {"primitives_unknown_source", &Stats::primitives_unknown_source},
    {"decided", &Stats::decided},
    {"triggers_physics", &Stats::triggers_physics},
    {"triggers_calibration", &Stats::triggers_calibration},
    {"time_jumps", &Stats::time_jumps},
}};
static_assert(sizeof(InputStats) == 8 * kInputStatsNames.size() && sizeof(Stats) == 8 * kStatsNames.size());

class TriggerProcessor {
 public:
  explicit TriggerProcessor(const Config& config);  // throws SetupError
  TriggerProcessor(const TriggerProcessor&) = delete;
  TriggerProcessor& operator=(const TriggerProcessor&) = delete;

  // One UDP payload. Whatever is in it, it is counted.
  void take(std::span<const std::byte> datagram, std::uint64_t now_ns);

  // take() in its parts, for callers that hold primitives back (aligner.hpp). Times are the wire's 40 bits.
  struct Packet {
    std::uint32_t input;
    wire::MtpView view;
  };
  struct Found {
    std::uint64_t time;
    std::uint16_t id;
  };
  bool open(std::span<const std::byte> datagram, Packet& packet);  // counts it; false: bad, or of an unknown source
  void hear(std::uint64_t wire_time);                              // the time of a header
  void skip_to(std::uint64_t wire_time);  // precondition: pending_count() is 0, and it is more than the memory after the newest time
  // precondition: no more primitives than a packet holds
  void store(std::uint32_t input, std::span<const Found> primitives, std::uint64_t now_ns);

  // Writes what can be decided now, calibrations first, to the front of `room` and returns how many. As many as there is room:
  // call again. Decisions that are no triggers are among them.
  std::size_t decide(std::uint64_t now_ns, std::span<Decision> room);

  // End of run: decides on all that waits; once it returns less than there is room, the times, the memory and the downscaling
  // counters are as after construction. Counters and trigger numbers go on. Takes about 0.1 ms.
  std::size_t flush(std::span<Decision> room);

  const Stats& stats() const { return stats_; }
  InputStats input_stats(std::uint32_t input) const;  // precondition: input < input_count()
  std::uint32_t input_count() const { return input_count_; }
  std::uint32_t reference_index() const { return reference_; }
  std::span<const MaskStats> mask_stats() const { return {mask_stats_.data(), mask_count_}; }

  // Reference primitives stored and neither decided on nor overwritten; calibrations not yet handed out.
  std::uint64_t pending_count() const {
    return input_stats_[reference_].stored - input_stats_[reference_].overwritten - stats_.decided;
  }
  std::uint32_t pending_calibrations() const { return calibration_count_; }

 private:
  // time << 16 | primitive ID; 0: empty. 48 bits of time, so that what an earlier turn of the memory left never matches.
  using Cell = std::uint64_t;
  // The cells of all inputs at one address: one cache line, so that an event's primitives meet where they are compared.
  struct alignas(64) Row {
    std::array<Cell, 8> of_input{};
  };
  using Pattern = std::array<std::uint64_t, 2>;  // 16 bits an input, input 0 lowest

  struct Mask {
    Pattern value;
    Pattern care;
    std::uint32_t downscaling;
    std::uint32_t count;
  };
  struct Calibration {
    std::uint64_t time;
    std::uint64_t arrived_ns;
    std::uint16_t id;
    std::uint8_t input;
  };

  void start(std::uint64_t wire_time);
  void vote_for(std::uint64_t wire_time);
  void vote_against();
  bool is_late(std::uint64_t cell) const;
  template <class ForEach>
  void fetch_and_store(std::uint32_t input, std::uint64_t now_ns, ForEach&& for_each);
  template <bool is_reference>
  void store_in_order(std::uint32_t input, std::span<const Found> primitives, std::uint64_t now_ns);
  void put_aside(std::uint32_t input, const Found& primitive, bool in_window, std::uint64_t now_ns);
  std::size_t hand_out_calibrations(std::span<Decision> room);
  std::size_t read_cells(std::uint64_t end_cell, std::span<Decision> room);
  std::size_t read_all(std::span<Decision> room);
  std::uint32_t gather(std::uint64_t end_cell, std::span<std::uint64_t> cells);
  void decide_on(std::uint64_t cell, Decision& decision);
  void match(std::uint64_t cell, std::uint64_t time, std::array<std::uint16_t, 8>& ids) const;
  std::uint16_t trigger_word(const Pattern& pattern);
  void forget_times();

  std::uint64_t newest_ = 0;
  std::uint64_t next_cell_ = 0;
  std::uint32_t cell_shift_;
  std::uint32_t reference_;
  std::uint32_t input_count_;
  std::uint32_t mask_count_;
  std::uint32_t enabled_masks_ = 0;  // bit i: mask i
  bool started_ = false;             // a packet has set the time
  bool jumping_ = false;             // the vote is won; waits for decide()
  std::uint64_t read_lag_ticks_;
  std::uint64_t memory_ticks_;
  std::uint64_t silence_ns_;
  std::uint64_t last_packet_ns_ = 0;
  std::uint64_t candidate_time_ = 0;  // on the wire's 40 bits
  std::uint32_t candidate_votes_ = 0;

  std::array<std::uint32_t, 8> time_cut_ticks_{};
  std::array<Mask, kMasksMax> masks_{};
  std::array<std::uint8_t, 256> input_of_source_{};
  std::array<InputStats, kInputsMax> input_stats_{};  // but for `matched`
  std::array<std::uint64_t, 8> matched_counts_{};
  std::array<MaskStats, kMasksMax> mask_stats_{};
  Stats stats_;
  std::uint64_t trigger_count_ = 0;

  std::uint32_t calibration_first_ = 0;
  std::uint32_t calibration_count_ = 0;
  std::array<Calibration, kCalibrationsMax> calibrations_{};
  std::array<std::uint64_t, kCellCount / 64> pending_{};  // bit: the reference's cell at this address is stored and not read
  std::vector<std::uint64_t> arrived_ns_;                 // of the reference's cells
  std::vector<Row> rows_;                                 // by address
};

}  // namespace nanet::l0tp
