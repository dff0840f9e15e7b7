// SPDX-License-Identifier: Apache-2.0
#include "km3_engine/slice_builder.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "nanet/contract.hpp"

namespace nanet::km3_engine {
namespace {

using flow::Counter;

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kTickNs = 16;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kUntimed = std::uint64_t{1} << 63;  // of a unit's number: the floor says that its time is not right

std::size_t buffers_of(const std::vector<flow::Clop*>& clops) {
  std::size_t count = 0;
  for (const flow::Clop* clop : clops) count += clop->buffer_count();
  return count;
}

}  // namespace

SliceBuilder::SliceBuilder(const Km3Config& config, const km3::Detector& detector, engine::LaneParts parts)
    : config_(config),
      completions_(parts.completions),
      clops_(parts.clops()),
      counters_(parts.counters),
      trigger_(detector, config.trigger),
      floor_of_(65'536, kNone),
      slice_ticks_(static_cast<std::int64_t>(config.trigger.slice_ns) / kTickNs),
      done_(std::bit_ceil(buffers_of(clops_) + 1)),
      present_(detector.floors().size()),
      seen_(detector.floors().size()) {
  if (parts.tx_ring != nullptr) {
    writer_.emplace(detector, config.event_packet_bytes, *parts.tx_ring, *parts.sent_completions, counters_,
                    parts.inline_transmitter);
  }
  for (std::uint32_t index = 0; index < detector.floors().size(); ++index) {
    const km3::Floor& floor = detector.floors()[index];
    calibrations_.push_back(detector.calibration(index));
    if (floor.pm_count == 0) continue;
    floor_of_[static_cast<std::uint32_t>(floor.tower) << 8 | static_cast<std::uint32_t>(floor.number)] = index;
    ++floors_expected_;
  }
  kept_.reserve(done_.size());
}

std::uint32_t SliceBuilder::poll(std::uint64_t caught_up_ns, std::uint64_t now_ns) {
  const std::uint64_t end = next_ + kCompletionsATurn;
  for (const Completion* one = nullptr; next_ < end && (one = completions_.peek(next_ - first_)) != nullptr; ++next_)
    look_at(*one, now_ns);
  if (consider_epoch()) settle_kept();
  while (close_if_due(caught_up_ns)) settle_kept();
  if (!kept_.empty()) drop_old(now_ns);
  publish();
  if (writer_) {
    writer_->flush();
    writer_->collect_sent();
  }
  return give_back();
}

// What is there is judged; a slice that is not whole is closed as it is.
void SliceBuilder::finish() {
  end_run();
  for (const Unit& unit : kept_) settle(unit, Fate::bad_time);
  kept_.clear();
  publish();
  if (writer_) {
    writer_->flush();
    writer_->collect_sent();
  }
  give_back();
}

void SliceBuilder::end_run() {
  if (!epoch_) return;
  const auto of_run = [&](const Unit& unit) { return unit.epoch == *epoch_; };
  while (begun_ || std::ranges::any_of(kept_, of_run)) {
    close();
    settle_kept();
  }
  emit(trigger_.flush());
}

void SliceBuilder::look_at(const Completion& completion, std::uint64_t now_ns) {
  const std::uint64_t mask = done_.size() - 1;
  done_[next_ & mask] = 1;
  if ((completion.status & status::unit) == 0) return;
  UnitHead head;
  std::memcpy(&head, clops_[completion.clop]->packet_index(completion.buffer_index).data(), sizeof head);
  const std::uint64_t kind = head.stream & 7;
  if (kind != static_cast<std::uint64_t>(config_.data)) {
    counters_.add(Counter::units_passed_over);
    return;
  }
  const std::uint64_t key = head.stream >> 3;
  const std::uint32_t floor = key < floor_of_.size() ? floor_of_[key] : kNone;
  if (floor == kNone) {
    counters_.add(Counter::units_of_no_part);
    return;
  }
  if ((head.unit & kUntimed) != 0) {
    counters_.add(Counter::units_bad_time);
    return;
  }
  Unit unit{.place = next_,
            .arrival_ns = head.last_packet_ns,
            .taken_ns = now_ns,
            .slice = static_cast<std::uint32_t>(head.unit),
            .floor = floor,
            .clop = completion.clop,
            .buffer = completion.buffer_index,
            .is_whole = (completion.status & status::incomplete) == 0};
  unit.epoch = {static_cast<std::uint32_t>(head.unit >> 32), static_cast<std::int64_t>(head.time) - unit.slice * slice_ticks_};
  settle(unit, fate_of(unit));
}

SliceBuilder::Fate SliceBuilder::fate_of(const Unit& unit) {
  if (!epoch_) return Fate::kept;
  if (unit.epoch != *epoch_) {
    const bool damaged = unit.epoch.base_ticks == epoch_->base_ticks;  // another run cannot have begun at the same time
    return damaged ? Fate::bad_time : Fate::kept;
  }
  if (unit.slice > slice_) return Fate::kept;
  return unit.slice < slice_ || present_[unit.floor] != 0 ? Fate::too_late : Fate::used;
}

void SliceBuilder::settle(const Unit& unit, Fate fate) {
  if (fate == Fate::kept) {
    done_[unit.place & (done_.size() - 1)] = 0;
    kept_.push_back(unit);
    return;
  }
  done_[unit.place & (done_.size() - 1)] = 1;
  if (fate == Fate::used) {
    use(unit);
  } else {
    counters_.add(fate == Fate::too_late ? Counter::units_too_late : Counter::units_bad_time);
  }
}

void SliceBuilder::use(const Unit& unit) {
  if (!begun_) {
    begun_ = true;
    first_taken_ns_ = unit.taken_ns;
    emit(trigger_.begin(slice_));
  }
  counters_.add(Counter::units_used);
  present_[unit.floor] = unit.is_whole ? 1 : 2;
  ++present_count_;
  whole_count_ += unit.is_whole ? 1 : 0;
  last_arrival_ns_ = std::max(last_arrival_ns_, unit.arrival_ns);
  const flow::Clop& clop = *clops_[unit.clop];
  const auto* const index = reinterpret_cast<const std::byte*>(clop.packet_index(unit.buffer).data());
  UnitHead head;
  std::memcpy(&head, index, sizeof head);
  const std::span<const std::byte> buffer = clop.buffer(unit.buffer);
  for (std::uint32_t k = 0; k < head.range_count; ++k) {
    UnitRange range;
    std::memcpy(&range, index + sizeof head + k * sizeof range, sizeof range);
    const auto bytes = buffer.subspan(range.begin, range.end - range.begin);
    const std::span<km3::Hit> room = trigger_.room(unit.floor);
    km3::DecodeCounts counts;
    const std::size_t count = config_.data == Data::hits ? km3::decode_hits(bytes, calibrations_[unit.floor], room, counts)
                                                         : km3::decode_sampled_hits(bytes, calibrations_[unit.floor], room, counts);
    trigger_.commit(unit.floor, count);
    records_bad_ += counts.records_cut + counts.records_bad_pm + counts.records_bad_pad;
    if (counts.records_no_room != 0) counters_.add(Counter::hits_no_room, counts.records_no_room);
  }
}

// Kept units whose turn has come, oldest first.
void SliceBuilder::settle_kept() {
  std::size_t left = 0;
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    const Unit unit = kept_[k];
    const Fate fate = fate_of(unit);
    if (fate == Fate::kept) {
      kept_[left++] = unit;
    } else {
      settle(unit, fate);
    }
  }
  kept_.resize(left);
}

// Whether another run or base is to be taken, because enough floors say it.
bool SliceBuilder::consider_epoch() {
  for (const Unit& unit : kept_) {
    if (epoch_ && unit.epoch == *epoch_) continue;
    std::ranges::fill(seen_, std::uint8_t{0});
    std::uint32_t count = 0;
    for (const Unit& other : kept_) {
      if (other.epoch == unit.epoch && std::exchange(seen_[other.floor], std::uint8_t{1}) == 0) ++count;
    }
    const bool same_run = epoch_ && epoch_->run == unit.epoch.run;
    if (count < std::min(floors_expected_, same_run ? std::max(2u, (floors_expected_ + 1) / 2) : 2u)) continue;
    take_epoch(unit.epoch);
    return true;
  }
  return false;
}

void SliceBuilder::take_epoch(const Epoch& epoch) {
  if (epoch_ && epoch_->run == epoch.run) counters_.add(Counter::slices_restarted);
  end_run();
  epoch_ = epoch;
  slice_ = kNone;
  for (const Unit& unit : kept_) {
    if (unit.epoch == epoch) slice_ = std::min(slice_, unit.slice);
  }
}

bool SliceBuilder::close_if_due(std::uint64_t caught_up_ns) {
  if (!epoch_) return false;
  const bool is_whole = present_count_ == floors_expected_;
  const bool timed_out = begun_ && caught_up_ns > first_taken_ns_ && caught_up_ns - first_taken_ns_ >= config_.timeout_ms * kMs;
  if (!is_whole && !timed_out && !others_are_ahead()) return false;
  close();
  return true;
}

// Half of the floors have a unit of slices_open slices later, or more.
bool SliceBuilder::others_are_ahead() const {
  if (kept_.size() < (floors_expected_ + 1) / 2) return false;
  std::ranges::fill(seen_, std::uint8_t{0});
  std::uint32_t count = 0;
  for (const Unit& unit : kept_) {
    if (unit.epoch != *epoch_ || unit.slice < std::uint64_t{slice_} + config_.slices_open) continue;
    if (std::exchange(seen_[unit.floor], std::uint8_t{1}) == 0) ++count;
  }
  return count >= (floors_expected_ + 1) / 2;
}

// Closes the slice and goes on to the next one, or, if of this one nothing came, to the next of which something did.
void SliceBuilder::close() {
  if (begun_) {
    emit(trigger_.finish());
    counters_.add(whole_count_ == floors_expected_ ? Counter::slices_whole : Counter::slices_incomplete);
    counters_.add(Counter::units_absent, floors_expected_ - present_count_);
    ++slice_;
  } else {
    std::uint32_t next = kNone;
    for (const Unit& unit : kept_) {
      if (unit.epoch == *epoch_ && unit.slice > slice_) next = std::min(next, unit.slice);
    }
    if (next == kNone) return;
    counters_.add(Counter::slices_missing, next - slice_);
    slice_ = next;
  }
  begun_ = false;
  std::ranges::fill(present_, std::uint8_t{0});
  present_count_ = 0;
  whole_count_ = 0;
}

// Units that say another run or time, which no one else says, do not hold up buffers for ever.
void SliceBuilder::drop_old(std::uint64_t now_ns) {
  std::size_t left = 0;
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    const Unit unit = kept_[k];
    const bool of_run = epoch_ && unit.epoch == *epoch_;
    if (of_run || now_ns - unit.taken_ns < config_.timeout_ms * kMs) {
      kept_[left++] = unit;
    } else {
      settle(unit, Fate::bad_time);
    }
  }
  kept_.resize(left);
}

void SliceBuilder::emit(std::span<const km3::Event> events) {
  if (!writer_) return;
  for (const km3::Event& event : events) {
    writer_->write(event, trigger_.hits(event), trigger_.seeds(event), {epoch_->run, event.slice, begin_ns(event.slice)},
                   last_arrival_ns_);
  }
}

std::uint64_t SliceBuilder::begin_ns(std::uint32_t slice) const {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, epoch_->base_ticks + slice * slice_ticks_)) * kTickNs;
}

void SliceBuilder::publish() {
  const km3::TriggerCounts& counts = trigger_.counts();
  counters_.set(Counter::records_bad, records_bad_ + counts.hits_bad_pm);
  counters_.set(Counter::hits_used, counts.hits_used);
  counters_.set(Counter::hits_below_threshold, counts.hits_below_threshold);
  counters_.set(Counter::hits_bad_time, counts.hits_late + counts.hits_ahead + counts.hits_bad_time);
  counters_.set(Counter::seeds_found, counts.seeds);
  counters_.set(Counter::seeds_no_room, counts.seeds_no_room);
  counters_.set(Counter::events_triggered, counts.events);
  counters_.set(Counter::events_no_room, counts.events_no_room);
}

std::uint32_t SliceBuilder::give_back() {
  std::uint32_t count = 0;
  for (; first_ < next_ && done_[first_ & (done_.size() - 1)] != 0; ++first_, ++count) {
    clops_[completions_.peek()->clop]->release();
    completions_.pop();
  }
  return count;
}

}  // namespace nanet::km3_engine
