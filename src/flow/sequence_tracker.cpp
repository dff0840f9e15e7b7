// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/sequence_tracker.hpp"

#include <algorithm>
#include <utility>

namespace nanet::flow {
namespace {

constexpr std::uint64_t kMaxEventsPerPacket = 255;  // the packet header's count is one byte

struct Bit {
  std::size_t word;
  std::uint64_t mask;
};

Bit bit_of(std::uint32_t sequence) {
  const std::uint32_t slot = sequence % SequenceTracker::kWindowPackets;
  return {slot / 64, std::uint64_t{1} << (slot % 64)};
}

}  // namespace

Verdict SequenceTracker::on_packet(std::uint32_t sequence, std::uint16_t first_event_number, std::uint32_t event_count,
                                   DropHint hint) {
  if (phase_ == Phase::idle) {
    begin_run({sequence, first_event_number}, Start::assumed);
  } else if (has_pending_start_ && fits_pending_start(sequence)) {
    begin_run(pending_start_, Start::marked);
  }
  const std::uint32_t ahead = sequence - next_sequence_;
  if (ahead < kWindowPackets || (ahead <= kMaxGapPackets && !is_stray_of_previous_run(sequence))) {
    return advance(ahead, first_event_number, event_count, hint);
  }
  const std::uint32_t behind = next_sequence_ - sequence;
  if (behind <= kWindowPackets) return look_behind(behind, first_event_number, event_count);
  return refuse(Verdict::late, sequence, first_event_number, event_count);
}

void SequenceTracker::on_start_marker(std::uint32_t sequence, std::uint64_t next_event) {
  if (phase_ == Phase::idle) return begin_run({sequence, next_event}, Start::marked);
  if (sequence == next_sequence_ && next_event == next_event_) {
    // As expected. It may end an assumed start that has seen no packet, or say that an ended run continues.
    if (run_packets_ == 0) start_ = Start::marked;
    phase_ = Phase::running;
    return;
  }
  if (phase_ == Phase::ended) return begin_run({sequence, next_event}, Start::marked);

  const std::uint32_t behind = next_sequence_ - sequence;
  if (behind >= 1 && behind <= kWindowPackets) {
    // A repeated or late marker of this run. If packets overtook it, it tells where the run really began.
    if (start_ == Start::assumed && behind >= run_packets_) {
      extend_start(behind - static_cast<std::uint32_t>(run_packets_), next_event);
      next_event_ += next_event - start_event_;
      start_event_ = next_event;
      start_ = Start::marked;
    }
    return;
  }
  if (behind <= kWindowPackets + kMaxGapPackets && behind != 0) {
    // A new run, or a marker of this run that was long in flight: the next packet tells.
    has_pending_start_ = true;
    pending_start_ = {sequence, next_event};
    return;
  }
  begin_run({sequence, next_event}, Start::marked);
}

void SequenceTracker::on_end_marker(std::uint32_t sequence, std::uint64_t next_event, DropHint hint) {
  if (phase_ == Phase::idle) return;
  if (has_pending_start_ && sequence - next_sequence_ >= kWindowPackets && sequence - pending_start_.sequence <= kMaxGapPackets) {
    begin_run(pending_start_, Start::marked);
  }
  const std::uint32_t gap = sequence - next_sequence_;
  if (gap > kMaxGapPackets) return;  // in the past: a repeated marker that packets overtook
  if (gap >= kWindowPackets && sequence == previous_next_sequence_ && is_stray_of_previous_run(sequence - 1)) return;

  add_missing(next_sequence_, gap, hint);
  next_sequence_ = sequence;
  run_packets_ += gap;
  // With a marked start both running numbers are whole, so this also mends a wrong guess about lost multiples of 65536. A number
  // that the run's packets cannot have held is not believed beyond its low 16 bits.
  const bool is_whole = start_ == Start::marked && next_event - start_event_ <= kMaxEventsPerPacket * run_packets_;
  add_events_missing(is_whole ? static_cast<std::int64_t>(next_event - next_event_) : events_between(next_event_, next_event, gap));
  next_event_ = next_event;
  phase_ = Phase::ended;
  has_pending_start_ = false;
}

std::uint32_t SequenceTracker::packets_newly_lost() { return std::exchange(newly_lost_, 0); }

void SequenceTracker::begin_run(Position at, Start start) {
  if (phase_ != Phase::idle) {
    ++restarts_;
    has_previous_run_ = true;
    previous_next_sequence_ = next_sequence_;
  }
  phase_ = Phase::running;
  start_ = start;
  next_sequence_ = at.sequence;
  run_packets_ = 0;
  next_event_ = start_event_ = at.event;
  has_pending_start_ = false;
  refused_in_row_ = 0;
}

// A packet near a pending start marker that cannot belong to the run.
bool SequenceTracker::fits_pending_start(std::uint32_t sequence) const {
  return sequence - pending_start_.sequence < kWindowPackets && sequence - next_sequence_ >= kWindowPackets &&
         next_sequence_ - sequence > kWindowPackets;
}

// While a run is young: a packet that would open a gap in it but belongs to the end of the previous run.
bool SequenceTracker::is_stray_of_previous_run(std::uint32_t sequence) const {
  return has_previous_run_ && run_packets_ < kWindowPackets && previous_next_sequence_ - 1 - sequence < kWindowPackets;
}

Verdict SequenceTracker::advance(std::uint32_t gap, std::uint16_t first_event_number, std::uint32_t event_count, DropHint hint) {
  learn_event_count(event_count);
  const std::int64_t events_missing = events_between(next_event_, first_event_number, gap);
  if (gap != 0) add_missing(next_sequence_, gap, hint);
  if (events_missing > 0) add_events_missing(events_missing);  // without a gap: the source itself left events out
  next_event_ += static_cast<std::uint64_t>(events_missing) + event_count;

  const Bit bit = bit_of(next_sequence_ + gap);
  received_[bit.word] |= bit.mask;
  next_sequence_ += gap + 1;
  run_packets_ += std::uint64_t{gap} + 1;
  packets_expected_ += 1;
  packets_accepted_ += 1;
  events_expected_ += event_count;
  events_accepted_ += event_count;
  phase_ = Phase::running;
  has_pending_start_ = false;
  refused_in_row_ = 0;
  return Verdict::accept;
}

Verdict SequenceTracker::look_behind(std::uint32_t behind, std::uint16_t first_event_number, std::uint32_t event_count) {
  const std::uint32_t sequence = next_sequence_ - behind;
  if (behind > run_packets_) {
    if (start_ == Start::marked) return refuse(Verdict::late, sequence, first_event_number, event_count);
    extend_start(behind - static_cast<std::uint32_t>(run_packets_), first_event_number);
  }
  const Bit bit = bit_of(sequence);
  if ((received_[bit.word] & bit.mask) != 0) {
    return refuse(Verdict::duplicate, sequence, first_event_number, event_count);
  }
  take_back(sequence, event_count);
  has_pending_start_ = false;
  refused_in_row_ = 0;
  return Verdict::accept_reordered;
}

// Drops the packet, unless so many were dropped in a row that the source must have restarted without a marker.
Verdict SequenceTracker::refuse(Verdict verdict, std::uint32_t sequence, std::uint16_t first_event_number, std::uint32_t event_count) {
  if (refused_in_row_ > 0 && sequence - refused_last_sequence_ - 1 < kWindowPackets) {
    ++refused_in_row_;
  } else {
    refused_in_row_ = 1;
    refused_first_ = {sequence, first_event_number};
  }
  refused_last_sequence_ = sequence;
  if (refused_in_row_ < kRestartPackets) return verdict;
  begin_run(refused_first_, Start::assumed);
  return advance(sequence - next_sequence_, first_event_number, event_count, DropHint::none);
}

// An assumed run began `packets` earlier, with this event. They are missing until they come.
void SequenceTracker::extend_start(std::uint32_t packets, std::uint64_t event) {
  const std::int64_t events = events_between(event, start_event_, packets);
  const std::uint32_t behind = static_cast<std::uint32_t>(run_packets_) + packets;
  add_missing(next_sequence_ - behind, packets, DropHint::none);
  if (events > 0) add_events_missing(events);
  run_packets_ += packets;
  start_event_ -= static_cast<std::uint64_t>(events);
}

void SequenceTracker::add_missing(std::uint32_t first_sequence, std::uint32_t packets, DropHint side) {
  packets_expected_ += packets;
  packets_lost_[static_cast<std::size_t>(side)] += packets;
  newly_lost_ += packets;
  // Only the window is remembered packet by packet.
  const std::uint32_t marked = std::min(packets, kWindowPackets);
  for (std::uint32_t k = 1; k <= marked; ++k) {
    const Bit bit = bit_of(first_sequence + packets - k);
    received_[bit.word] &= ~bit.mask;
    if (side == DropHint::kernel) {
      lost_side_[bit.word] |= bit.mask;
    } else {
      lost_side_[bit.word] &= ~bit.mask;
    }
  }
}

void SequenceTracker::add_events_missing(std::int64_t events) {
  if (events < 0) {  // more were counted than there were
    const std::uint64_t back = std::min(static_cast<std::uint64_t>(-events), events_lost_);
    events_lost_ -= back;
    events_expected_ -= back;
    return;
  }
  events_lost_ += static_cast<std::uint64_t>(events);
  events_expected_ += static_cast<std::uint64_t>(events);
}

// A packet that was counted as lost has come.
void SequenceTracker::take_back(std::uint32_t sequence, std::uint32_t event_count) {
  const Bit bit = bit_of(sequence);
  received_[bit.word] |= bit.mask;
  packets_lost_[(lost_side_[bit.word] & bit.mask) != 0 ? 1 : 0] -= 1;
  packets_accepted_ += 1;
  if (newly_lost_ > 0) --newly_lost_;
  // A source with inconsistent event numbers may bring events that were never missed.
  const std::uint64_t back = std::min<std::uint64_t>(event_count, events_lost_);
  events_lost_ -= back;
  events_expected_ += event_count - back;
  events_accepted_ += event_count;
}

void SequenceTracker::learn_event_count(std::uint32_t event_count) {
  constexpr std::int64_t kMemoryPackets = 256;
  const auto mean = static_cast<std::int64_t>(events_per_packet_q16_);
  const std::int64_t difference = (static_cast<std::int64_t>(event_count) << 16) - mean;
  // The constant divisor is the usual case: a division by a variable would cost more than the rest of a packet.
  const std::int64_t step = learned_packets_ < kMemoryPackets ? difference / ++learned_packets_ : difference / kMemoryPackets;
  events_per_packet_q16_ = static_cast<std::uint64_t>(mean + step);
}

// Events in `packets` packets between two event numbers of which only 16 bits are sure: the value congruent to their difference
// that is nearest to what such packets hold.
std::int64_t SequenceTracker::events_between(std::uint64_t from, std::uint64_t to, std::uint32_t packets) const {
  const auto typical = static_cast<std::int64_t>((packets * events_per_packet_q16_) >> 16);
  const std::int64_t low = typical - 32768;
  return low + static_cast<std::int64_t>((to - from - static_cast<std::uint64_t>(low)) & 0xffff);
}

}  // namespace nanet::flow
