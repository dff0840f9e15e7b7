// SPDX-License-Identifier: Apache-2.0
#include "l0tp/trigger_processor.hpp"

#include <algorithm>
#include <bit>

#include "nanet/config/read.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::l0tp {
namespace {

constexpr std::uint8_t kNoInput = 0xFF;
constexpr std::uint16_t kCalibrationBit = 0x8000;
constexpr std::uint32_t kAddressMask = kCellCount - 1;
constexpr std::size_t kRowCells = 8;

// The time without a wrap that is nearest to `newest`.
std::uint64_t continued(std::uint64_t wire_time, std::uint64_t newest) {
  return newest + static_cast<std::uint64_t>(wire::tick_difference(wire_time, newest));
}

}  // namespace

TriggerProcessor::TriggerProcessor(const Config& config)
    : cell_shift_(8 - config::require(config).fine_time_bits),
      reference_(static_cast<std::uint32_t>(config.reference_index())),
      input_count_(static_cast<std::uint32_t>(config.inputs.size())),
      mask_count_(static_cast<std::uint32_t>(config.masks.size())),
      read_lag_ticks_(config.read_lag_ticks()),
      memory_ticks_(std::uint64_t{kCellCount} << cell_shift_),
      silence_ns_(config.silence_us * 1000) {
  input_of_source_.fill(kNoInput);
  for (std::uint32_t i = 0; i < input_count_; ++i) {
    input_of_source_[config.inputs[i].source_id] = static_cast<std::uint8_t>(i);
    time_cut_ticks_[i] = config.inputs[i].time_cut_ticks();
  }
  for (std::uint32_t m = 0; m < mask_count_; ++m) {
    const MaskConfig& from = config.masks[m];
    Mask& mask = masks_[m];
    for (std::uint32_t i = 0; i < input_count_; ++i) {
      const BitPattern pattern = from.pattern_of(config.inputs[i].name);
      mask.value[i / 4] |= std::uint64_t{pattern.value} << 16 * (i % 4);
      mask.care[i / 4] |= std::uint64_t{pattern.care} << 16 * (i % 4);
    }
    mask.downscaling = from.downscaling;
    enabled_masks_ |= static_cast<std::uint32_t>(from.enabled) << m;
  }
  arrived_ns_.resize(kCellCount);
  rows_.resize(kCellCount);
}

void TriggerProcessor::take(std::span<const std::byte> datagram, std::uint64_t now_ns) {
  Packet packet;
  if (!open(datagram, packet)) return;
  last_packet_ns_ = now_ns;
  hear(wire::ticks(packet.view.first_timestamp(), 0));
  fetch_and_store(packet.input, now_ns, [&](auto&& visit) {
    wire::for_each_primitive(packet.view, [&](const wire::Primitive& primitive) {
      visit(wire::ticks(primitive.timestamp, primitive.fine_time), primitive.id);
    });
  });
}

bool TriggerProcessor::open(std::span<const std::byte> datagram, Packet& packet) {
  ++stats_.packets;
  const wire::ParseError error = wire::MtpView::parse(datagram, packet.view);
  if (error != wire::ParseError::none) [[unlikely]] {
    ++(error == wire::ParseError::bad_length ? stats_.packets_bad_length : stats_.packets_bad_format);
    return false;
  }
  packet.input = input_of_source_[packet.view.source_id()];
  if (packet.input == kNoInput) [[unlikely]] {
    ++stats_.packets_unknown_source;
    stats_.primitives_unknown_source += packet.view.primitive_count();
    return false;
  }
  ++stats_.packets_good;
  ++input_stats_[packet.input].packets;
  return true;
}

void TriggerProcessor::store(std::uint32_t input, std::span<const Found> primitives, std::uint64_t now_ns) {
  fetch_and_store(input, now_ns, [&](auto&& visit) {
    for (const Found& primitive : primitives) visit(primitive.time, primitive.id);
  });
}

// Twice over the primitives: first the cells are fetched, since the memory is larger than the nearest caches.
template <class ForEach>
void TriggerProcessor::fetch_and_store(std::uint32_t input, std::uint64_t now_ns, ForEach&& for_each) {
  std::array<Found, wire::kMtpPrimitivesMax> found;
  std::size_t count = 0;
  const std::uint64_t newest = newest_;
  const std::uint32_t shift = cell_shift_;
  Cell* const cells = rows_[0].of_input.data() + input;
  for_each([&](std::uint64_t wire_time, std::uint16_t id) {
    const std::uint64_t time = continued(wire_time, newest);
    __builtin_prefetch(cells + (time >> shift & kAddressMask) * kRowCells, 1);
    found[count++] = {time, id};
  });
  input_stats_[input].primitives += count;
  const std::span<const Found> fetched = std::span(found).first(count);
  input == reference_ ? store_in_order<true>(input, fetched, now_ns) : store_in_order<false>(input, fetched, now_ns);
}

std::size_t TriggerProcessor::decide(std::uint64_t now_ns, std::span<Decision> room) {
  if (jumping_) [[unlikely]] {
    const std::size_t count = read_all(room);
    if (count < room.size()) {
      forget_times();
      start(candidate_time_);
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

InputStats TriggerProcessor::input_stats(std::uint32_t input) const {
  InputStats stats = input_stats_[input];
  stats.matched = matched_counts_[input];
  return stats;
}

// The header's time, which an empty packet has too: a detector that saw nothing still says how late it is.
void TriggerProcessor::hear(std::uint64_t wire_time) {
  if (!started_) [[unlikely]] {
    start(wire_time);
    return;
  }
  const std::uint64_t time = continued(wire_time, newest_);
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

void TriggerProcessor::start(std::uint64_t wire_time) {
  started_ = true;
  newest_ = kFirstTurn + wire_time;
  next_cell_ = (newest_ - read_lag_ticks_) >> cell_shift_;
}

// What the cells hold is of an earlier turn of the memory, and never matches.
void TriggerProcessor::skip_to(std::uint64_t wire_time) {  // not covered: its precondition is the aligner's to keep
  newest_ = continued(wire_time, newest_);
  next_cell_ = (newest_ - read_lag_ticks_) >> cell_shift_;
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

// What changes with each primitive is kept in local variables, since as far as a compiler knows a written cell could be any member.
template <bool is_reference>
void TriggerProcessor::store_in_order(std::uint32_t input, std::span<const Found> primitives, std::uint64_t now_ns) {
  const std::uint64_t next_cell = next_cell_;
  const std::uint32_t shift = cell_shift_;
  Cell* const cells = rows_[0].of_input.data() + input;
  std::uint64_t newest = newest_;
  std::uint64_t stored = 0;
  std::uint64_t overwritten = 0;
  for (const Found& primitive : primitives) {
    const std::uint64_t cell = primitive.time >> shift;
    const bool in_window = cell - next_cell < kWindowCells;
    if (!in_window || (primitive.id & kCalibrationBit) != 0) [[unlikely]] {
      if (in_window) newest = std::max(newest, primitive.time);
      put_aside(input, primitive, in_window, now_ns);
      continue;
    }
    newest = std::max(newest, primitive.time);
    const std::uint32_t address = static_cast<std::uint32_t>(cell) & kAddressMask;
    Cell& held = cells[std::size_t{address} * kRowCells];
    const Cell before = held;
    const Cell word = primitive.time << 16 | primitive.id;
    if constexpr (is_reference) {
      if (before == word) [[unlikely]] {
        ++input_stats_[input].duplicates;
        continue;
      }
      pending_[address / 64] |= std::uint64_t{1} << address % 64;
      arrived_ns_[address] = now_ns;
    }
    // An empty cell is like one of time 0, which is before all times.
    overwritten += (before ^ word) >> (16 + shift) == 0 ? 1 : 0;
    ++stored;
    held = word;
  }
  newest_ = newest;
  input_stats_[input].stored += stored;
  input_stats_[input].overwritten += overwritten;
}

// A primitive that is not stored: a calibration, or outside of the window.
void TriggerProcessor::put_aside(std::uint32_t input, const Found& primitive, bool in_window, std::uint64_t now_ns) {
  InputStats& stats = input_stats_[input];
  if (!in_window) {
    ++(is_late(primitive.time >> cell_shift_) ? stats.late : stats.out_of_range);
  } else if (calibration_count_ == kCalibrationsMax) {
    ++stats.calibrations_no_room;
  } else {
    ++stats.calibrations;
    calibrations_[(calibration_first_ + calibration_count_++) % kCalibrationsMax] = {primitive.time, now_ns, primitive.id,
                                                                                     static_cast<std::uint8_t>(input)};
  }
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

std::size_t TriggerProcessor::read_cells(std::uint64_t end_cell, std::span<Decision> room) {
  std::array<std::uint64_t, 16> cells;
  std::size_t count = 0;
  while (next_cell_ < end_cell && count < room.size()) {
    const std::uint32_t found = gather(end_cell, std::span(cells).first(std::min(cells.size(), room.size() - count)));
    for (std::uint32_t i = 0; i < found; ++i) decide_on(cells[i], room[count++]);
  }
  return count;
}

// Takes the reference's stored cells from next_cell_ to before end_cell in order, as many as there is room, and fetches what
// deciding on them will read. end_cell is never more than one turn of the memory away, since newest_ was in the window.
std::uint32_t TriggerProcessor::gather(std::uint64_t end_cell, std::span<std::uint64_t> cells) {
  std::uint32_t count = 0;
  while (next_cell_ < end_cell && count < cells.size()) {
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
    const std::uint32_t found = static_cast<std::uint32_t>(cell) & kAddressMask;
    pending_[found / 64] &= ~(std::uint64_t{1} << found % 64);
    for (const std::uint64_t near : {cell - 1, cell, cell + 1}) __builtin_prefetch(&rows_[near & kAddressMask]);
    cells[count++] = cell;
    next_cell_ = cell + 1;
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
  const Cell reference = rows_[address].of_input[reference_];
  const std::uint64_t time = reference >> 16;
  std::array<std::uint16_t, 8> ids{};
  match(cell, time, ids);
  ids[reference_] = static_cast<std::uint16_t>(reference);
  std::uint32_t matched = 0;
  for (std::uint32_t i = 0; i < kInputsMax; ++i) {
    matched |= static_cast<std::uint32_t>(ids[i] != 0) << i;
    matched_counts_[i] += ids[i] != 0 ? 1 : 0;
  }
  const std::uint16_t word = trigger_word(std::bit_cast<Pattern>(ids));
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

// For each input the ID of its closest primitive within its time cut, or 0. The distance alone tells what an earlier turn of the
// memory left: that is a whole memory away, the cut at most two cells. An empty cell is like one of time 0 and without an ID.
inline void TriggerProcessor::match(std::uint64_t cell, std::uint64_t time, std::array<std::uint16_t, 8>& ids) const {
  const Row* const rows[] = {&rows_[static_cast<std::uint32_t>(cell) & kAddressMask],
                             &rows_[static_cast<std::uint32_t>(cell - 1) & kAddressMask],
                             &rows_[static_cast<std::uint32_t>(cell + 1) & kAddressMask]};
  const std::uint64_t reference = time << 16;
  for (std::uint32_t i = 0; i < 8; ++i) {
    std::uint64_t closest = std::uint64_t{time_cut_ticks_[i]} + 1;
    std::uint64_t id = 0;
    for (const Row* const row : rows) {
      const Cell held = row->of_input[i];
      const auto difference = static_cast<std::int64_t>((held & ~std::uint64_t{0xFFFF}) - reference) >> 16;
      const auto distance = static_cast<std::uint64_t>(difference < 0 ? -difference : difference);
      const std::uint64_t closer = 0 - std::uint64_t{distance < closest};  // all ones or none: no one can predict which
      closest ^= (closest ^ distance) & closer;
      id ^= (id ^ held) & closer;
    }
    ids[i] = static_cast<std::uint16_t>(id);
  }
}

inline std::uint16_t TriggerProcessor::trigger_word(const Pattern& pattern) {
  std::uint32_t matching = 0;
  for (std::uint32_t m = 0; m < kMasksMax; ++m) {  // all of them, unrolled: those that are not there match, and are not enabled
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
  std::ranges::fill(rows_, Row{});
}

}  // namespace nanet::l0tp
