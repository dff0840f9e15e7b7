// SPDX-License-Identifier: Apache-2.0
#include "nanet/l0tp/trigger_processor.hpp"

#include <algorithm>
#include <bit>

#include "nanet/wire/timestamp.hpp"

namespace nanet::l0tp {
namespace {

constexpr std::uint8_t kNoInput = 0xFF;
constexpr std::uint16_t kCalibrationBit = 0x8000;
constexpr std::uint32_t kAddressMask = kCellCount - 1;
constexpr std::uint64_t kFirstTurn = wire::kTickMask + 1;  // unwrapped times begin here, so that none is below 0

}  // namespace

TriggerProcessor::TriggerProcessor(const Config& config)
    : cell_shift_(8 - std::min(config.fine_time_bits, kFineTimeBitsMax)),
      reference_(config.reference_index),
      input_count_(static_cast<std::uint32_t>(config.inputs.size())),
      mask_count_(static_cast<std::uint32_t>(config.masks.size())),
      read_lag_ticks_(config.read_lag_ticks),
      memory_ticks_(std::uint64_t{kCellCount} << cell_shift_),
      silence_ns_(config.silence_ns) {
  check(config);
  input_of_source_.fill(kNoInput);
  for (std::uint32_t i = 0; i < input_count_; ++i) {
    input_of_source_[config.inputs[i].source_id] = static_cast<std::uint8_t>(i);
    time_cut_ticks_[i] = config.inputs[i].time_cut_ticks;
  }
  for (std::uint32_t m = 0; m < mask_count_; ++m) {
    const MaskConfig& from = config.masks[m];
    Mask& mask = masks_[m];
    for (std::uint32_t i = 0; i < kInputsMax; ++i) {
      mask.value[i / 4] |= std::uint64_t{from.value[i]} << 16 * (i % 4);
      mask.care[i / 4] |= std::uint64_t{from.care[i]} << 16 * (i % 4);
    }
    mask.downscaling = from.downscaling;
    enabled_masks_ |= static_cast<std::uint32_t>(from.enabled) << m;
  }
  arrived_ns_.resize(kCellCount);
  cells_.resize(std::size_t{kCellCount} * input_count_);
}

void TriggerProcessor::take(std::span<const std::byte> datagram, std::uint64_t now_ns) {
  ++stats_.packets;
  wire::MtpView view;
  const wire::ParseError error = wire::MtpView::parse(datagram, view);
  if (error != wire::ParseError::none) [[unlikely]] {
    ++(error == wire::ParseError::bad_length ? stats_.packets_bad_length : stats_.packets_bad_format);
    return;
  }
  const std::uint32_t input = input_of_source_[view.source_id()];
  if (input == kNoInput) [[unlikely]] {
    ++stats_.packets_unknown_source;
    stats_.primitives_unknown_source += view.primitive_count();
    return;
  }
  ++stats_.packets_good;
  ++input_stats_[input].packets;
  input_stats_[input].primitives += view.primitive_count();
  last_packet_ns_ = now_ns;
  hear_time(wire::ticks(view.first_timestamp(), 0));
  wire::for_each_primitive(view, [&](const wire::Primitive& primitive) { store(input, primitive, now_ns); });
}

std::size_t TriggerProcessor::decide(std::uint64_t now_ns, std::span<Decision> room) {
  if (jumping_) [[unlikely]] {
    const std::size_t count = read_all(room);
    if (count < room.size()) {
      forget_times();
      ++stats_.time_jumps;
    }
    return count;
  }
  const std::size_t count = hand_out_calibrations(room);
  if (!started_) return count;
  const bool silent = silence_ns_ != 0 && now_ns > last_packet_ns_ && now_ns - last_packet_ns_ >= silence_ns_;
  const std::uint64_t end_cell = silent ? (newest_ >> cell_shift_) + 1 : (newest_ - read_lag_ticks_) >> cell_shift_;
  return count + read_cells(end_cell, room.subspan(count));
}

std::size_t TriggerProcessor::flush(std::span<Decision> room) {
  const std::size_t count = read_all(room);
  if (count < room.size()) {
    forget_times();
    for (Mask& mask : masks_) mask.count = 0;
  }
  return count;
}

// The header's time, which an empty packet has too: a detector that saw nothing still says how late it is.
void TriggerProcessor::hear_time(std::uint64_t wire_time) {
  if (!started_) [[unlikely]] {
    started_ = true;
    newest_ = kFirstTurn + wire_time;
    next_cell_ = (newest_ - read_lag_ticks_) >> cell_shift_;
    return;
  }
  const std::uint64_t time = unwrapped(wire_time);
  const std::uint64_t cell = time >> cell_shift_;
  if (cell - next_cell_ < kWindowCells) [[likely]] {
    newest_ = std::max(newest_, time);
    vote_against();
  } else if (is_late(cell)) {
    vote_against();
  } else {
    vote_for(wire_time);
  }
}

void TriggerProcessor::vote_for(std::uint64_t wire_time) {
  if (candidate_votes_ == 0) {
    candidate_time_ = wire_time;
    candidate_votes_ = 1;
    return;
  }
  const std::int64_t distance = wire::tick_difference(wire_time, candidate_time_);
  const auto agreed = static_cast<std::int64_t>(memory_ticks_);
  if (distance < -agreed || distance > agreed) {
    vote_against();
    return;
  }
  candidate_time_ = wire_time;
  jumping_ = jumping_ || ++candidate_votes_ >= kJumpVotes;
}

void TriggerProcessor::vote_against() {
  if (candidate_votes_ > 0) --candidate_votes_;
}

bool TriggerProcessor::is_late(std::uint64_t cell) const { return next_cell_ - cell - 1 < kCellCount; }

std::uint64_t TriggerProcessor::unwrapped(std::uint64_t wire_time) const {
  return newest_ + static_cast<std::uint64_t>(wire::tick_difference(wire_time, newest_));
}

inline void TriggerProcessor::store(std::uint32_t input, const wire::Primitive& primitive, std::uint64_t now_ns) {
  const std::uint64_t time = unwrapped(wire::ticks(primitive.timestamp, primitive.fine_time));
  const std::uint64_t cell = time >> cell_shift_;
  InputStats& stats = input_stats_[input];
  if (cell - next_cell_ >= kWindowCells) [[unlikely]] {
    ++(is_late(cell) ? stats.late : stats.out_of_range);
    return;
  }
  newest_ = std::max(newest_, time);
  if ((primitive.id & kCalibrationBit) != 0) [[unlikely]] {
    store_calibration(input, time, primitive.id, now_ns);
    return;
  }
  const std::uint32_t address = static_cast<std::uint32_t>(cell) & kAddressMask;
  Cell& held = memory_of(input)[address];
  const Cell word = time << 16 | primitive.id;
  const bool same_cell = held != 0 && (held ^ word) >> (16 + cell_shift_) == 0;
  if (input == reference_) {
    if (held == word) [[unlikely]] {
      ++stats.duplicates;
      return;
    }
    pending_[address / 64] |= std::uint64_t{1} << address % 64;
    arrived_ns_[address] = now_ns;
  }
  stats.overwritten += same_cell ? 1 : 0;
  ++stats.stored;
  held = word;
}

void TriggerProcessor::store_calibration(std::uint32_t input, std::uint64_t time, std::uint16_t id, std::uint64_t now_ns) {
  if (calibration_count_ == kCalibrationsMax) {
    ++input_stats_[input].calibrations_no_room;
    return;
  }
  ++input_stats_[input].calibrations;
  calibrations_[(calibration_first_ + calibration_count_++) % kCalibrationsMax] = {time, now_ns, id,
                                                                                   static_cast<std::uint8_t>(input)};
}

std::size_t TriggerProcessor::hand_out_calibrations(std::span<Decision> room) {
  std::size_t count = 0;
  for (; calibration_count_ > 0 && count < room.size(); ++count, --calibration_count_) {
    const Calibration& from = calibrations_[calibration_first_];
    calibration_first_ = (calibration_first_ + 1) % kCalibrationsMax;
    room[count] = {.timestamp = wire::timestamp_of(from.time),
                   .fine_time = wire::fine_time_of(from.time),
                   .kind = DecisionKind::calibration,
                   .matched_inputs = static_cast<std::uint8_t>(1u << from.input),
                   .trigger_word = from.id,
                   .trigger_number = trigger_count_++,
                   .arrived_ns = from.arrived_ns};
    ++stats_.triggers_calibration;
  }
  return count;
}

// Visits the reference's stored cells from next_cell_ to before end_cell, by the bits of pending_. end_cell is never more
// than one turn of the memory away, since newest_ is in the window.
std::size_t TriggerProcessor::read_cells(std::uint64_t end_cell, std::span<Decision> room) {
  std::size_t count = 0;
  while (next_cell_ < end_cell) {
    const std::uint32_t address = static_cast<std::uint32_t>(next_cell_) & kAddressMask;
    const std::uint64_t bits = pending_[address / 64] >> address % 64;
    if (bits == 0) {
      next_cell_ = std::min(end_cell, (next_cell_ | 63) + 1);
      continue;
    }
    const std::uint64_t cell = next_cell_ + static_cast<std::uint32_t>(std::countr_zero(bits));
    if (cell >= end_cell) {
      next_cell_ = end_cell;
      break;
    }
    next_cell_ = cell;
    if (count == room.size()) break;
    decide_on(cell, room[count++]);
    const std::uint32_t read = static_cast<std::uint32_t>(cell) & kAddressMask;
    pending_[read / 64] &= ~(std::uint64_t{1} << read % 64);
    ++next_cell_;
  }
  return count;
}

std::size_t TriggerProcessor::read_all(std::span<Decision> room) {
  const std::size_t count = hand_out_calibrations(room);
  if (!started_) return count;
  return count + read_cells((newest_ >> cell_shift_) + 1, room.subspan(count));
}

inline void TriggerProcessor::decide_on(std::uint64_t cell, Decision& decision) {
  const std::uint32_t address = static_cast<std::uint32_t>(cell) & kAddressMask;
  const Cell reference = memory_of(reference_)[address];
  const std::uint64_t time = reference >> 16;
  Pattern pattern{};
  std::uint32_t matched = 0;
  for (std::uint32_t i = 0; i < input_count_; ++i) {
    const std::uint16_t id = i == reference_ ? static_cast<std::uint16_t>(reference) : match(i, cell, time);
    pattern[i / 4] |= std::uint64_t{id} << 16 * (i % 4);
    matched |= static_cast<std::uint32_t>(id != 0) << i;
    input_stats_[i].matched += id != 0 ? 1 : 0;
  }
  const std::uint16_t word = trigger_word(pattern);
  decision = {.timestamp = wire::timestamp_of(time),
              .fine_time = wire::fine_time_of(time),
              .kind = DecisionKind::physics,
              .matched_inputs = static_cast<std::uint8_t>(matched),
              .trigger_word = word,
              .trigger_number = trigger_count_,
              .arrived_ns = arrived_ns_[address]};
  ++stats_.decided;
  stats_.triggers_physics += word != 0 ? 1 : 0;
  trigger_count_ += word != 0 ? 1 : 0;
}

// ID of the closest primitive of `input` within its time cut, or 0. The distance alone tells what an earlier turn of the memory left:
// that is a whole memory away, the cut at most two cells.
inline std::uint16_t TriggerProcessor::match(std::uint32_t input, std::uint64_t cell, std::uint64_t time) const {
  const Cell* const memory = memory_of(input);
  const std::uint64_t reference = time << 16;
  std::uint64_t closest = std::uint64_t{time_cut_ticks_[input]} + 1;
  std::uint16_t id = 0;
  for (const std::uint64_t candidate : {cell, cell - 1, cell + 1}) {
    const Cell held = memory[static_cast<std::uint32_t>(candidate) & kAddressMask];
    const auto difference = static_cast<std::int64_t>((held & ~std::uint64_t{0xFFFF}) - reference) >> 16;
    const auto distance = static_cast<std::uint64_t>(difference < 0 ? -difference : difference);
    const bool closer = held != 0 && distance < closest;
    closest = closer ? distance : closest;
    id = closer ? static_cast<std::uint16_t>(held) : id;
  }
  return id;
}

inline std::uint16_t TriggerProcessor::trigger_word(const Pattern& pattern) {
  std::uint32_t matching = 0;
  for (std::uint32_t m = 0; m < mask_count_; ++m) {
    const Mask& mask = masks_[m];
    const std::uint64_t wrong = ((pattern[0] & mask.care[0]) ^ mask.value[0]) | ((pattern[1] & mask.care[1]) ^ mask.value[1]);
    matching |= static_cast<std::uint32_t>(wrong == 0) << m;
  }
  std::uint32_t fired = 0;
  for (matching &= enabled_masks_; matching != 0; matching &= matching - 1) {
    const auto m = static_cast<std::uint32_t>(std::countr_zero(matching));
    ++mask_stats_[m].matched;
    if (++masks_[m].count < masks_[m].downscaling) continue;
    masks_[m].count = 0;
    ++mask_stats_[m].fired;
    fired |= 1u << m;
  }
  return static_cast<std::uint16_t>(fired);
}

void TriggerProcessor::forget_times() {
  started_ = false;
  jumping_ = false;
  candidate_votes_ = 0;
  std::ranges::fill(cells_, Cell{0});
}

}  // namespace nanet::l0tp
