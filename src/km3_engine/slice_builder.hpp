// SPDX-License-Identifier: Apache-2.0
// SliceBuilder: units of floors (docs/formats-km3.md) put together to slices in the order of their numbers, decoded, and judged by the trigger.
//
// Terms
//   slice now    the one whose units are decoded as they come. Units of later slices keep their buffers until it is closed.
//   base         GPS time at which slice 0 of the run began. A unit whose time and number say another base is refused, so that no time is silently
//                wrong; so is one of another run, and one of which the floor says that its time is not right. A new pair of run and base is taken when enough floors say it: two for another run, half of them
//                for the same run. Units that say what may become the new pair are kept for timeout_ms at most.
//   closing      a slice is closed when all floors are in it; timeout_ms after its first unit; or when half of the floors have a unit of the slice
//                slices_open after it, or of a later one.
//
// Buffers are given back in the order of their completions, as the contract says: a buffer that is kept holds up those after it.
//
// Books: units handed over = units_used + units_passed_over + units_of_no_part + units_too_late + units_bad_time, once finish() was called.
//
// Thread rules: those of Consumer. Nothing is allocated after the constructor.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "km3_engine/config.hpp"
#include "km3_engine/event_writer.hpp"
#include "nanet/engine/consumer.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/flow/counters.hpp"

namespace nanet::km3_engine {

class SliceBuilder final : public engine::Consumer {
 public:
  SliceBuilder(const Km3Config& config, const km3::Detector& detector, engine::LaneParts parts);

  std::uint32_t poll(std::uint64_t caught_up_ns, std::uint64_t now_ns) override;
  void finish() override;

  const km3::Trigger& trigger() const { return trigger_; }

 private:
  struct Epoch {  // of a run
    std::uint32_t run = 0;
    std::int64_t base_ticks = 0;
    friend bool operator==(const Epoch&, const Epoch&) = default;
  };
  struct Unit {
    Epoch epoch;
    std::uint64_t place = 0;  // of its completion, counted from the start
    std::uint64_t arrival_ns = 0;
    std::uint64_t taken_ns = 0;
    std::uint32_t slice = 0;
    std::uint32_t floor = 0;
    std::uint32_t clop = 0;
    std::uint16_t buffer = 0;
    bool is_whole = false;
  };
  enum class Fate : std::uint8_t { used, kept, too_late, bad_time };

  void look_at(const Completion& completion, std::uint64_t now_ns);
  Fate fate_of(const Unit& unit);
  void settle(const Unit& unit, Fate fate);
  void use(const Unit& unit);
  void settle_kept();
  bool consider_epoch();
  void take_epoch(const Epoch& epoch);
  bool close_if_due(std::uint64_t caught_up_ns);
  bool others_are_ahead() const;
  void close();
  void end_run();
  void drop_old(std::uint64_t now_ns);
  void emit(std::span<const km3::Event> events);
  void publish();
  std::uint32_t give_back();
  std::uint64_t begin_ns(std::uint32_t slice) const;

  Km3Config config_;
  flow::CompletionQueue& completions_;
  std::vector<flow::Clop*> clops_;
  flow::Counters& counters_;
  km3::Trigger trigger_;
  std::optional<EventWriter> writer_;
  std::vector<std::uint32_t> floor_of_;  // by tower and floor of a stream
  std::vector<km3::FloorCalibration> calibrations_;
  std::uint32_t floors_expected_ = 0;
  std::int64_t slice_ticks_ = 0;

  std::vector<std::uint8_t> done_;  // by place of the completion, modulo: its buffer can go
  std::uint64_t first_ = 0;         // oldest completion that was not given back
  std::uint64_t next_ = 0;          // next one to be looked at
  std::vector<Unit> kept_;          // has room for all buffers

  std::optional<Epoch> epoch_;
  std::uint32_t slice_ = 0;  // now
  bool begun_ = false;       // a unit of it came
  std::uint64_t first_taken_ns_ = 0;
  std::uint64_t last_arrival_ns_ = 0;
  std::vector<std::uint8_t> present_;  // by floor: 1 whole, 2 with holes
  std::uint32_t present_count_ = 0;
  std::uint32_t whole_count_ = 0;
  mutable std::vector<std::uint8_t> seen_;  // scratch, by floor
  std::uint64_t records_bad_ = 0;
};

}  // namespace nanet::km3_engine
