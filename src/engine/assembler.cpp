// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/assembler.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "flow/fence.hpp"

namespace nanet::engine {
namespace {

constexpr std::uint32_t kHeadEntries = sizeof(UnitHead) / sizeof(UnitRange);

}  // namespace

std::uint32_t Assembler::index_capacity(std::uint32_t buffer_bytes) {
  return kHeadEntries + std::clamp<std::uint32_t>(buffer_bytes / 64, 1, kRangesMax);
}

Assembler::Assembler(const AssembleConfig& config, flow::Clop& clop, flow::CompletionQueue& queue)
    : config_(config),
      clop_(clop),
      queue_(queue),
      pool_(clop),
      units_(clop.buffer_count()),
      chases_(config.resend ? clop.buffer_count() : 0),
      streams_(config.streams_max),
      slots_(2 * std::bit_ceil(config.streams_max)),
      slot_shift_(64 - static_cast<std::uint32_t>(std::countr_zero(slots_.size()))),
      open_(std::size_t{config.streams_max} * config.units_open),
      closed_keys_(std::size_t{config.streams_max} * kClosedKept),
      closed_(closed_keys_.size()) {
  for (std::uint32_t i = 0; i < clop.buffer_count(); ++i) {
    units_[i].head = reinterpret_cast<UnitHead*>(clop.packet_index(i).data());
    units_[i].memory = clop.buffer(i).data();
  }
}

void Assembler::take(const UnitFacts& said, std::span<const std::byte> payload, std::uint64_t now_ns) {
  now_ns_ = now_ns;
  const auto payload_bytes = static_cast<std::uint32_t>(payload.size());
  Stream* stream = find_stream(said.stream);
  Unit* unit = stream != nullptr ? open_unit(*stream, said.unit) : nullptr;
  UnitFacts facts = said;
  std::uint32_t piece_bytes = 0;
  std::optional<Counter> reason;
  if (said.place_is_index || said.unit_packets != 0 || (unit != nullptr && unit->packets != 0))
    reason = count_in_bytes(facts, payload_bytes, stream, unit, piece_bytes);
  if (!reason) reason = misfit(facts, payload_bytes);
  if (reason) return counters_.add(*reason);
  if (stream == nullptr) stream = add_stream(said.stream);
  if (stream == nullptr) return counters_.add(Counter::packets_no_stream);
  const bool says_nothing = facts.unit_bytes == 0 && facts.unit_packets == 0 && !facts.ends_unit;
  // A trailer may come after the payload that completed its unit: nothing is late.
  if (payload.empty() && (says_nothing || (unit == nullptr && closed_unit(*stream, facts.unit) != nullptr)))
    return counters_.add(Counter::packets_marker);
  const bool says_empty = payload.empty() && facts.ends_unit && facts.place == 0;  // of no packet that something came of
  if (says_empty && unit != nullptr) return refuse(*stream, Counter::packets_bad_unit);
  if (unit == nullptr) unit = begin(*stream, facts);
  if (unit == nullptr) return;
  const auto end = static_cast<std::uint32_t>(facts.place) + payload_bytes;
  if (const auto wrong = learn_length(*unit, facts, end)) return refuse(*stream, *wrong);
  if (says_empty) {
    store(*unit, *stream, facts, payload);
    return close(*unit, Counter::units_complete, 0);
  }
  if (payload.empty()) {
    counters_.add(Counter::packets_marker);
  } else {
    switch (unit->ranges.add(static_cast<std::uint32_t>(facts.place), end)) {
      case flow::Fit::added:
        store(*unit, *stream, facts, payload);
        if (piece_bytes != 0) unit->piece_bytes = stream->piece_bytes = piece_bytes;
        break;
      case flow::Fit::duplicate: refuse(*stream, Counter::packets_duplicate); break;
      case flow::Fit::overlap: refuse(*stream, Counter::packets_overlap); break;
      case flow::Fit::no_room: refuse(*stream, Counter::packets_scattered); break;
    }
  }
  if (unit->bytes != 0 && unit->ranges.is_whole(unit->bytes)) close(*unit, Counter::units_complete, 0);
}

// From packets to bytes: where a payload lies and whether the unit ends there. piece_bytes: what all payloads of the unit but the last have, if this
// packet shows it; a unit's first packet does, and before it has come, the stream's units so far.
std::optional<flow::Counter> Assembler::count_in_bytes(UnitFacts& facts, std::uint32_t payload_bytes, const Stream* stream,
                                                       const Unit* unit, std::uint32_t& piece_bytes) const {
  if (facts.unit_packets > clop_.buffer_bytes()) return Counter::packets_unit_too_long;
  if (payload_bytes == 0) {
    count_empty_in_bytes(facts, unit);
    return std::nullopt;
  }
  if (facts.place > clop_.buffer_bytes()) return Counter::packets_bad_place;
  const std::uint64_t packets = facts.unit_packets != 0 ? facts.unit_packets : unit != nullptr ? unit->packets : 0;
  const std::uint32_t known = unit != nullptr ? unit->piece_bytes : 0;
  if (!facts.place_is_index) {
    const bool is_last = facts.place >= (packets - 1) * payload_bytes;
    if (known != 0 && facts.place > (packets - 1) * known) return Counter::packets_bad_place;
    if (!is_last) piece_bytes = payload_bytes;
    facts.ends_unit |= is_last;
    return std::nullopt;
  }
  const std::uint64_t index = facts.place;
  const bool is_said_last = facts.ends_unit || index + 1 == packets;
  const std::uint32_t before = stream != nullptr ? stream->piece_bytes : 0;
  piece_bytes = known != 0 ? known : index > 0 && before >= payload_bytes ? before : payload_bytes;
  const bool is_unclear = known == 0 && is_said_last && index > 0 && before < payload_bytes;
  const bool is_last = is_said_last || (packets == 0 && payload_bytes < piece_bytes);
  if (is_unclear || payload_bytes > piece_bytes || (payload_bytes < piece_bytes && !is_last) || (packets != 0 && index >= packets)) {
    return Counter::packets_bad_place;
  }
  facts.place = index * piece_bytes;
  facts.ends_unit = is_last;
  return std::nullopt;
}

// A leader or a trailer. It may be what says how many packets there are, after the last of them.
void Assembler::count_empty_in_bytes(UnitFacts& facts, const Unit* unit) {
  if (facts.place_is_index && facts.ends_unit && facts.unit_packets == 0) facts.unit_packets = facts.place;
  facts.place = 0;
  facts.ends_unit = false;
  if (unit == nullptr || unit->piece_bytes == 0 || facts.unit_packets == 0 || facts.unit_bytes != 0) return;
  if (unit->ranges.end() > (facts.unit_packets - 1) * unit->piece_bytes) facts.unit_bytes = unit->ranges.end();
}

// What is wrong with a packet whatever its unit is like: then nothing else in it is believed, its stream neither. After this, place and length fit into a buffer.
std::optional<flow::Counter> Assembler::misfit(const UnitFacts& facts, std::uint32_t payload_bytes) const {
  if (facts.unit_bytes > clop_.buffer_bytes()) return Counter::packets_unit_too_long;
  const std::uint64_t limit = facts.unit_bytes != 0 ? facts.unit_bytes : clop_.buffer_bytes();
  if (facts.place > limit || payload_bytes > limit - facts.place) return Counter::packets_bad_place;
  if (facts.ends_unit && facts.place + payload_bytes == 0 && facts.unit_bytes != 0) return Counter::packets_bad_place;
  return std::nullopt;
}

// The unit's length, from the first packet that says it; all others have to agree.
std::optional<flow::Counter> Assembler::learn_length(Unit& unit, const UnitFacts& facts, std::uint32_t end) {
  if (facts.unit_packets != 0) {
    if (unit.packets != 0 && unit.packets != facts.unit_packets) return Counter::packets_bad_unit;
    unit.packets = static_cast<std::uint32_t>(facts.unit_packets);
  }
  const auto said = facts.unit_bytes != 0 ? static_cast<std::uint32_t>(facts.unit_bytes) : facts.ends_unit ? end : 0;
  if (said == 0) return unit.bytes != 0 && end > unit.bytes ? std::optional(Counter::packets_bad_place) : std::nullopt;
  if (unit.bytes == 0 && unit.ranges.end() <= said) unit.bytes = said;
  return unit.bytes == said ? std::nullopt : std::optional(Counter::packets_bad_unit);
}

void Assembler::store(Unit& unit, Stream& stream, const UnitFacts& facts, std::span<const std::byte> payload) {
  if (!payload.empty()) std::memcpy(unit.memory + facts.place, payload.data(), payload.size());
  UnitHead& head = *unit.head;
  ++head.packet_count;
  head.piece_bytes = std::max(head.piece_bytes, static_cast<std::uint32_t>(payload.size()));
  head.last_packet_ns = now_ns_;
  if (head.time == 0) head.time = facts.time;
  counters_.add(Counter::packets_accepted);
  counters_.add(Counter::bytes_accepted, payload.size());
  stream.accepted.add(1);
  stream.drop_epoch = drop_epoch_;
  make_busiest(stream);
}

void Assembler::refuse(Stream& stream, Counter reason) {
  counters_.add(reason);
  stream.refused.add(1);
}

// Where that stream is in the table, or the free slot for it: there are twice as many slots as streams.
std::size_t Assembler::slot_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = home_of(key);
  while (slots_[slot] != 0 && streams_[slots_[slot] - 1].key_now() != key) slot = (slot + 1) & mask;
  return slot;
}

// Later ones that were pushed on by this slot's stream move up, so that each is still found from its home.
void Assembler::free_slot(std::size_t slot) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t next = (slot + 1) & mask; slots_[next] != 0; next = (next + 1) & mask) {
    const std::size_t home = home_of(streams_[slots_[next] - 1].key_now());
    if (((next - home) & mask) < ((next - slot) & mask)) continue;
    slots_[slot] = slots_[next];
    slot = next;
  }
  slots_[slot] = 0;
}

Assembler::Stream* Assembler::find_stream(std::uint64_t key) {
  if (last_stream_ < stream_count_.load(std::memory_order_relaxed) && streams_[last_stream_].key_now() == key) [[likely]]
    return &streams_[last_stream_];
  const std::uint32_t found = slots_[slot_of(key)];
  return found == 0 ? nullptr : &streams_[last_stream_ = found - 1];
}

// Null: the table is full, and no stream is idle.
Assembler::Stream* Assembler::add_stream(std::uint64_t key) {
  const auto place = place_for_a_stream();
  if (!place) return nullptr;
  Stream& stream = streams_[*place];
  stream.key.store(key, std::memory_order_relaxed);
  stream.drop_epoch = drop_epoch_;
  stream.last_packet_ns = now_ns_;
  slots_[slot_of(key)] = *place + 1;
  link_busiest(stream);
  stream.tenants.fetch_add(1, std::memory_order_release);
  if (*place == stream_count_.load(std::memory_order_relaxed)) stream_count_.store(*place + 1, std::memory_order_release);
  return &streams_[last_stream_ = *place];
}

std::optional<std::uint32_t> Assembler::place_for_a_stream() {
  const std::uint32_t count = stream_count_.load(std::memory_order_relaxed);
  if (count < streams_.size()) {
    streams_[count].tenants.fetch_add(1, std::memory_order_relaxed);
    return count;
  }
  Stream& idlest = streams_[idlest_];
  if (now_ns_ - idlest.last_packet_ns < 1000 * config_.stream_idle_us) return std::nullopt;
  const auto place = static_cast<std::uint32_t>(index_of(idlest));
  evict(idlest);
  return place;
}

// Its counts stay in counters().
void Assembler::evict(Stream& stream) {
  counters_.add(Counter::streams_evicted);
  while (stream.open_count > 0) close(units_[open_of(stream)[0]], Counter::units_overflow, 0);
  free_slot(slot_of(stream.key_now()));
  unlink(stream);
  stream.tenants.fetch_add(1, std::memory_order_relaxed);
  flow::full_fence();  // who sees a number of the next one sees that
  for (Tally* const one : {&stream.accepted, &stream.refused, &stream.lost, &stream.complete, &stream.incomplete, &stream.no_buffer,
                           &stream.units_lost}) {
    one->clear();
  }
  stream.has_newest = false;
  stream.piece_bytes = stream.unit_bytes = stream.closed_next = 0;
  const std::size_t first = index_of(stream) * kClosedKept;
  std::fill_n(closed_.begin() + static_cast<std::ptrdiff_t>(first), kClosedKept, ClosedUnit{});
}

void Assembler::make_busiest(Stream& stream) {
  stream.last_packet_ns = now_ns_;
  if (index_of(stream) == busiest_) return;
  unlink(stream);
  link_busiest(stream);
}

void Assembler::link_busiest(Stream& stream) {
  const auto index = static_cast<std::uint32_t>(index_of(stream));
  stream.idler = busiest_;
  stream.busier = kNone;
  (busiest_ != kNone ? streams_[busiest_].busier : idlest_) = index;
  busiest_ = index;
}

void Assembler::unlink(Stream& stream) {
  (stream.idler != kNone ? streams_[stream.idler].busier : idlest_) = stream.busier;
  (stream.busier != kNone ? streams_[stream.busier].idler : busiest_) = stream.idler;
}

// The newest first: it is the one that most packets are of.
Assembler::Unit* Assembler::open_unit(Stream& stream, std::uint64_t key) {
  const auto open = open_of(stream);
  for (std::uint32_t k = stream.open_count; k-- > 0;) {
    if (units_[open[k]].head->unit == key) return &units_[open[k]];
  }
  return nullptr;
}

const Assembler::ClosedUnit* Assembler::closed_unit(const Stream& stream, std::uint64_t key) const {
  const std::size_t first = index_of(stream) * kClosedKept;
  for (std::size_t k = first; k < first + kClosedKept; ++k) {
    if (closed_keys_[k] == key && closed_[k].until_ns > now_ns_) return &closed_[k];
  }
  return nullptr;
}

void Assembler::remember(Stream& stream, std::uint64_t key, Counter packets_are) {
  const std::size_t k = index_of(stream) * kClosedKept + stream.closed_next;
  closed_keys_[k] = key;
  closed_[k] = {.until_ns = now_ns_ + 1000 * config_.timeout_us, .packets_are = packets_are};
  stream.closed_next = (stream.closed_next + 1) % kClosedKept;
}

// A new unit, or null: its packet is counted. A stream's oldest makes room for its newest, so that one that lost a packet is not waited for; a unit that
// finds no buffer is dropped whole, as half of it would be of no use later.
Assembler::Unit* Assembler::begin(Stream& stream, const UnitFacts& facts) {
  if (const ClosedUnit* const closed = closed_unit(stream, facts.unit)) {
    refuse(stream, closed->packets_are);
    return nullptr;
  }
  follow(stream, facts.unit);
  if (stream.open_count == config_.units_open) close(units_[open_of(stream)[0]], Counter::units_overflow, 0);
  std::uint32_t buffer_index = 0;
  if (!take_buffer(stream, buffer_index)) {
    counters_.add(Counter::units_no_buffer);
    stream.no_buffer.add(1);
    remember(stream, facts.unit, Counter::packets_clop_full);
    refuse(stream, Counter::packets_clop_full);
    return nullptr;
  }
  counters_.add(Counter::units_begun);
  Unit& unit = units_[buffer_index];
  const auto index = clop_.packet_index(buffer_index);
  unit.ranges = flow::Ranges({reinterpret_cast<UnitRange*>(index.data()) + kHeadEntries, index.size() - kHeadEntries});
  *unit.head = {.stream = stream.key_now(),
                .unit = facts.unit,
                .time = facts.time,
                .first_packet_ns = now_ns_,
                .last_packet_ns = now_ns_,
                .bytes = 0,
                .bytes_missing = 0,
                .packet_count = 0,
                .packets_missing = 0,
                .piece_bytes = 0,
                .range_count = 0};
  unit.stream = static_cast<std::uint32_t>(index_of(stream));
  unit.bytes = unit.packets = unit.piece_bytes = 0;
  unit.drop_epoch = stream.drop_epoch;
  if (!chases_.empty()) chases_[buffer_index] = {.header_bytes = facts.payload_offset};
  open_of(stream)[stream.open_count++] = buffer_index;
  if (!stream.is_proven()) ++unproven_open_;
  link(buffer_index);
  return &unit;
}

// A stream that has completed a unit need not wait for those of one that has completed none: streams that someone invents would else take all buffers.
bool Assembler::take_buffer(const Stream& stream, std::uint32_t& buffer_index) {
  if (pool_.take(buffer_index)) return true;
  if (unproven_open_ == 0 || !stream.is_proven()) return false;
  std::uint32_t victim = oldest_;
  while (streams_[units_[victim].stream].is_proven()) victim = units_[victim].newer;
  close(units_[victim], Counter::units_overflow, 0, Incomplete::dropped);
  return pool_.take(buffer_index);
}

// Units that a stream numbers in steps, and of which no packet came. One that comes after all is no longer lost.
void Assembler::follow(Stream& stream, std::uint64_t key) {
  const std::uint64_t step = config_.unit_step;
  if (step == 0) return;
  const auto steps = [step](std::uint64_t from, std::uint64_t to) {
    return (to - from) % step == 0 ? (to - from) / step : UINT64_MAX;
  };
  const bool is_first = !std::exchange(stream.has_newest, true);
  const std::uint64_t ahead = steps(stream.newest_unit, key);
  if (is_first) {
    stream.newest_unit = key;
  } else if (ahead <= kUnitGapMax) {
    stream.units_lost.add(ahead - 1);
    counters_.add(Counter::units_lost, ahead - 1);
    stream.newest_unit = key;
  } else if (steps(key, stream.newest_unit) <= kUnitGapMax) {
    if (stream.units_lost.now() == 0) return;
    stream.units_lost.add(-std::uint64_t{1});
    counters_.add(Counter::units_lost, -std::uint64_t{1});
  } else {
    counters_.add(Counter::source_restarts);
    stream.newest_unit = key;
  }
}

void Assembler::expire(std::uint64_t now_ns, Rest rest) {
  now_ns_ = now_ns;
  const std::uint64_t age_ns = 1000 * config_.timeout_us * (rest == Rest::none ? 1 : 2);
  while (oldest_ != kNone && now_ns - units_[oldest_].head->first_packet_ns >= age_ns) {
    close(units_[oldest_], Counter::units_timed_out, status::timeout);
  }
}

void Assembler::flush() {
  while (oldest_ != kNone) close(units_[oldest_], Counter::units_flushed, status::flush);
}

void Assembler::close(Unit& unit, Counter why, std::uint16_t status, Incomplete incomplete) {
  const auto buffer_index = static_cast<std::uint32_t>(&unit - units_.data());
  Stream& stream = streams_[unit.stream];
  const auto open = open_of(stream).first(stream.open_count);
  std::copy(std::find(open.begin(), open.end(), buffer_index) + 1, open.end(), std::find(open.begin(), open.end(), buffer_index));
  --stream.open_count;
  if (!stream.is_proven()) --unproven_open_;
  unlink(buffer_index);
  remember(stream, unit.head->unit, Counter::packets_late);
  counters_.add(why);
  const bool complete = why == Counter::units_complete;
  if (complete && !stream.is_proven()) unproven_open_ -= stream.open_count;
  (complete ? stream.complete : stream.incomplete).add(1);
  if (complete) stream.unit_bytes = unit.bytes;
  book_missing(unit, stream);
  if (!chases_.empty()) book_resends(unit, chases_[buffer_index]);
  const bool is_wanted = config_.incomplete == IncompletePolicy::process && incomplete == Incomplete::as_configured;
  if (complete || (is_wanted && unit.head->packet_count > 0)) {
    return hand_over(unit, buffer_index, static_cast<std::uint16_t>(status | (complete ? 0 : status::incomplete)));
  }
  counters_.add(Counter::units_discarded);
  pool_.put_back(buffer_index);
}

// What the holes say of lost packets. Of a unit of unknown length, what is missing at its end is not known.
void Assembler::book_missing(Unit& unit, Stream& stream) {
  UnitHead& head = *unit.head;
  head.bytes = unit.bytes != 0 ? unit.bytes : unit.ranges.end();
  head.range_count = static_cast<std::uint32_t>(unit.ranges.all().size());
  std::uint32_t at = 0;
  const auto hole = [&](std::uint32_t begin, std::uint32_t end) {
    head.bytes_missing += end - begin;
    head.packets_missing += (end - begin + head.piece_bytes - 1) / head.piece_bytes;
  };
  if (head.packet_count == 0) return;
  for (const UnitRange& range : unit.ranges.all()) {
    if (range.begin > at) hole(at, range.begin);
    at = range.end;
  }
  if (at < head.bytes) hole(at, head.bytes);
  if (head.packets_missing == 0) return;
  const bool in_kernel = unit.drop_epoch != drop_epoch_;
  counters_.add(in_kernel ? Counter::packets_lost_kernel : Counter::packets_lost_network, head.packets_missing);
  stream.lost.add(head.packets_missing);
}

void Assembler::hand_over(Unit& unit, std::uint32_t buffer_index, std::uint16_t status) {
  const UnitHead& head = *unit.head;
  Completion completion{};
  completion.first_packet_ns = head.first_packet_ns;
  completion.last_packet_ns = head.last_packet_ns;
  completion.bytes = head.bytes;
  completion.event_count = 1;
  completion.packet_events_max = 1;
  completion.packets_lost = head.packets_missing;
  completion.status = static_cast<std::uint16_t>(status | status::unit | (head.packets_missing > 0 ? status::gap : 0));
  completion.kind = CompletionKind::buffer_filled;
  completion.buffer_index = static_cast<std::uint16_t>(buffer_index);
  completion.clop = clop_.id();
  completion.tag = pool_.hand_over(buffer_index);
  counters_.add(Counter::units_handed_over);
  queue_.push(completion);
}

void Assembler::link(std::uint32_t buffer_index) {
  units_[buffer_index].older = newest_;
  units_[buffer_index].newer = kNone;
  (newest_ != kNone ? units_[newest_].newer : oldest_) = buffer_index;
  newest_ = buffer_index;
}

void Assembler::unlink(std::uint32_t buffer_index) {
  const Unit& unit = units_[buffer_index];
  (unit.older != kNone ? units_[unit.older].newer : oldest_) = unit.newer;
  (unit.newer != kNone ? units_[unit.newer].older : newest_) = unit.older;
}

std::vector<StreamBooks> Assembler::streams() const {
  std::vector<StreamBooks> books;
  const std::uint32_t count = stream_count_.load(std::memory_order_acquire);
  for (const Stream& stream : std::span(streams_).first(count)) {
    const std::uint32_t tenants = stream.tenants.load(std::memory_order_acquire);
    const StreamBooks of_one{.stream = stream.key_now(),
                             .packets_accepted = stream.accepted.now(),
                             .packets_refused = stream.refused.now(),
                             .packets_lost = stream.lost.now(),
                             .units_complete = stream.complete.now(),
                             .units_incomplete = stream.incomplete.now(),
                             .units_no_buffer = stream.no_buffer.now(),
                             .units_lost = stream.units_lost.now()};
    flow::full_fence();
    // One that was evicted meanwhile has no books any more.
    if (tenants % 2 == 0 && stream.tenants.load(std::memory_order_relaxed) == tenants) books.push_back(of_one);
  }
  return books;
}

}  // namespace nanet::engine
