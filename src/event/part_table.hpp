// SPDX-License-Identifier: Apache-2.0
// Event building by many workers at once, GPU lanes or threads: the counterpart of Merger, whose terms and books are described in
// merger.hpp. Structure and reasons are in docs/design/part-table.md.
//
// Terms
//   worker   one of those that share the table: a GPU lane or a thread. No worker ever waits for another one.
//   share    a worker's part of a common task: number `index` of `count` workers.
//   phase    a time between two barriers of all workers. A barrier orders memory: what was written before it is seen after it.
//   round    a buffer's worth of work: the phases below, once.
//   word     one slot's state, 64 bits, changed by compare-and-swap: key, parts that are in, number of hits.
//
// A round, by phases
//   add      place_part() and add_part(), any workers. Hits may be written until the barrier.
//   close    expire(), drain() or flush() by all shares: only if expire_due() says so, or at the end or start of a run.
//   read     ready() events, any workers, and release() of each when it is no longer needed, or release_ready() by shares.
//   turn     finish_round() by one worker. It ends the round: what is ready then is cleared.
// Add and close may be left out or repeated, each in a phase of its own. commit() belongs to any phase but close; what was added is
// committed before expire_due() is asked.
//
// Rules
//   * All calls of a phase take the same now_ns. It comes from one clock that never goes back.
//   * Every ready event is released once before finish_round(); one that is not keeps its slot for ever.
//   * The memory is zero at the start and belongs to the table. Nothing is allocated and nothing throws.
//
// Atomics is a type with these static functions, all relaxed (barriers do the ordering) and of the scope that all workers share:
//   Word load(Word&)                               Word is std::uint32_t or std::uint64_t
//   void store(Word&, Word)
//   bool compare_exchange(std::uint64_t& word, std::uint64_t& expected, std::uint64_t desired)   as compare_exchange_strong
//   Word fetch_add(Word&, Word)                    returns the value before
//   void fetch_max(Word&, Word)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "nanet/event/parts.hpp"
#include "nanet/host_device.hpp"

namespace nanet::event {

// For threads.
struct HostAtomics {
  template <class Word>
  static Word load(Word& word) {
    return std::atomic_ref<Word>(word).load(std::memory_order_relaxed);
  }
  template <class Word>
  static void store(Word& word, Word value) {
    std::atomic_ref<Word>(word).store(value, std::memory_order_relaxed);
  }
  static bool compare_exchange(std::uint64_t& word, std::uint64_t& expected, std::uint64_t desired) {
    return std::atomic_ref<std::uint64_t>(word).compare_exchange_strong(expected, desired, std::memory_order_relaxed);
  }
  template <class Word>
  static Word fetch_add(Word& word, Word value) {
    return std::atomic_ref<Word>(word).fetch_add(value, std::memory_order_relaxed);
  }
  template <class Word>
  static void fetch_max(Word& word, Word value) {
    std::atomic_ref<Word> shared(word);
    Word now = shared.load(std::memory_order_relaxed);
    while (now < value && !shared.compare_exchange_weak(now, value, std::memory_order_relaxed)) {
    }
  }
};

// An event's place, of which each slot has one. Header and hits lie in sectors of 32 bytes, as a GPU reads them.
struct alignas(32) TableEvent {
  std::uint64_t key;
  std::uint64_t first_part_ns;  // now_ns of the part that opened it
  std::uint32_t position;       // its number of all openings; the table's own
  std::uint32_t closed_tick;    // written by release(); the table's own
  std::uint16_t hit_count;      // hits kept
  std::uint16_t hits_cut;       // hits for which there was no room, saturating
  std::uint8_t parts_mask;      // bit s: source s's part is in
  CloseReason closed_by;
  std::uint16_t reserved;
  std::uint16_t hits[kHitsMax];  // only the first hit_count are meaningful; parts in any order, each part's hits together
};
static_assert(sizeof(TableEvent) == 288 && offsetof(TableEvent, hits) == 32);

// The values that MergerStats names, in its order.
enum class PartCount : std::uint32_t {
  parts_merged,
  parts_late,
  parts_duplicate,
  parts_no_room,
  parts_overflow_hits,
  events_opened,
  events_complete,
  events_missing_parts,
  events_overflow
};
inline constexpr std::uint32_t kPartCounts = 9;

// A worker's own books, until commit().
struct PartTally {
  std::uint32_t counts[kPartCounts] = {};
  NANET_HD std::uint32_t& operator[](PartCount count) { return counts[static_cast<std::uint32_t>(count)]; }
};

struct alignas(128) PartTableState {
  std::uint32_t next;              // position of the next event to open
  std::uint32_t ready_count;       // events in the ready list
  std::uint32_t oldest;            // no event before this position is open
  std::uint32_t round_start;       // `next` at the last finish_round()
  std::uint32_t unlisted;          // events for which the ring had no room, in total
  std::uint32_t unlisted_closed;   // of these, closed
  std::uint32_t closing;           // 1: a close phase has filled the fields below
  std::uint32_t closing_end;       // `next` at that phase
  std::uint32_t closing_unlisted;  // `unlisted` at that phase
  std::uint32_t still_open;        // positions from the first event left open up to closing_end
  std::uint64_t closing_ns;
  std::uint64_t oldest_age_ns;  // of the oldest event left open
  std::uint64_t oldest_ns;      // no open event has an earlier first_part_ns
  std::uint64_t totals[kPartCounts];
};

// Also of a copy of a GPU's state.
inline MergerStats merger_stats(const PartTableState& state) {
  const auto total = [&](PartCount count) { return state.totals[static_cast<std::uint32_t>(count)]; };
  return {.parts_merged = total(PartCount::parts_merged),
          .parts_late = total(PartCount::parts_late),
          .parts_duplicate = total(PartCount::parts_duplicate),
          .parts_no_room = total(PartCount::parts_no_room),
          .parts_overflow_hits = total(PartCount::parts_overflow_hits),
          .events_opened = total(PartCount::events_opened),
          .events_complete = total(PartCount::events_complete),
          .events_missing_parts = total(PartCount::events_missing_parts),
          .events_overflow = total(PartCount::events_overflow)};
}

struct PartTableMemory {
  std::uint64_t* words = nullptr;  // [slots], of buckets of kWays
  TableEvent* events = nullptr;    // [slots]
  std::uint32_t* ring = nullptr;   // [slots], slot of each opened event by its position
  std::uint32_t* ready = nullptr;  // [slots], slot of each ready event
  PartTableState* state = nullptr;
};

inline constexpr std::uint32_t kWays = 16;  // slots that a key may lie in: 128 bytes of words
inline constexpr std::size_t kPartTableAlignment = 128;

// Four for each event that may be open: open ones, ready ones, and closed ones to remember.
NANET_HD constexpr std::uint32_t part_table_slots(const MergerConfig& config) {
  return config.open_events_max < 64 ? 256 : 4 * config.open_events_max;
}
constexpr std::size_t part_table_bytes(const MergerConfig& config) {
  constexpr std::size_t kSlotBytes = sizeof(std::uint64_t) + sizeof(TableEvent) + 2 * sizeof(std::uint32_t);
  return part_table_slots(config) * kSlotBytes + sizeof(PartTableState);
}
// Divides part_table_bytes(config) zero bytes, aligned to kPartTableAlignment.
inline PartTableMemory part_table_memory(const MergerConfig& config, std::byte* base) {
  const std::size_t slots = part_table_slots(config);
  PartTableMemory memory;
  memory.words = reinterpret_cast<std::uint64_t*>(base);
  memory.events = reinterpret_cast<TableEvent*>(base += slots * sizeof(std::uint64_t));
  memory.ring = reinterpret_cast<std::uint32_t*>(base += slots * sizeof(TableEvent));
  memory.ready = reinterpret_cast<std::uint32_t*>(base += slots * sizeof(std::uint32_t));
  memory.state = reinterpret_cast<PartTableState*>(base + slots * sizeof(std::uint32_t));
  return memory;
}

struct Share {
  std::uint32_t index = 0;  // below count
  std::uint32_t count = 1;
};

// Where a part's hits go. `hits` is null and kept_count 0 unless the part was merged; of a part's hits, any kept_count may be kept.
struct PartPlace {
  PartResult result = PartResult::no_room;
  std::uint32_t kept_count = 0;
  std::uint16_t* hits = nullptr;
};

// A view of the table: copy it freely, also to a kernel.
template <class Atomics>
class PartTable {
 public:
  // check(config) has been called, and memory is as part_table_memory() gives it.
  NANET_HD PartTable(const MergerConfig& config, const PartTableMemory& memory)
      : memory_(memory),
        window_ns_(config.window_ns),
        slots_(part_table_slots(config)),
        open_max_(config.open_events_max),
        hits_max_(config.hits_max),
        full_mask_((1u << config.source_count) - 1u) {
    while (slots_ >> order_shift_ > 1024) ++order_shift_;
  }

  // Add: puts a part into its event; the caller writes place.kept_count hits to place.hits, alone or with others' help.
  // Precondition: source < source_count. Only the low 40 bits of key count.
  NANET_HD PartPlace place_part(std::uint32_t source, std::uint64_t key, std::uint32_t hit_count, std::uint64_t now_ns,
                                PartTally& tally) const;

  NANET_HD PartResult add_part(std::uint32_t source, std::uint64_t key, const std::uint16_t* hits, std::uint32_t hit_count,
                               std::uint64_t now_ns, PartTally& tally) const {
    const PartPlace place = place_part(source, key, hit_count, now_ns, tally);
    for (std::uint32_t i = 0; i < place.kept_count; ++i) place.hits[i] = hits[i];
    return place.result;
  }

  // Whether expire() could have anything to do. At the beginning of a close phase it tells every worker the same.
  NANET_HD bool expire_due(std::uint64_t now_ns) const;
  // Close: closes the events that opened window_ns ago or earlier, and some of the oldest if there are too many open ones.
  NANET_HD void expire(std::uint64_t now_ns, Share share, PartTally& tally) const;
  // Close: closes all open events but remembers them. For the end of a run.
  NANET_HD void drain(std::uint64_t now_ns, Share share, PartTally& tally) const {
    close_all(CloseReason::flush, share, tally);
    mark_closing(now_ns, share);
  }
  // Close: closes all open events and forgets everything. For the start of a run, once.
  NANET_HD void flush(Share share, PartTally& tally) const;

  // Read: events closed since the last finish_round(), in no order.
  NANET_HD std::uint32_t ready_count() const { return Atomics::load(memory_.state->ready_count); }
  NANET_HD const TableEvent& ready(std::uint32_t index) const { return memory_.events[memory_.ready[index]]; }
  // The event's place may be used again after the next barrier. It is remembered for a limited time from now_ns on.
  NANET_HD void release(std::uint32_t index, std::uint64_t now_ns) const;
  NANET_HD void release_ready(std::uint64_t now_ns, Share share) const {
    const std::uint32_t count = ready_count();
    for (std::uint32_t i = share.index; i < count; i += share.count) release(i, now_ns);
  }

  // Turn: empties the ready list.
  NANET_HD void finish_round() const;

  // Adds a tally to the totals and clears it.
  NANET_HD void commit(PartTally& tally) const {
    for (std::uint32_t i = 0; i < kPartCounts; ++i) {
      if (tally.counts[i] != 0) Atomics::fetch_add(memory_.state->totals[i], std::uint64_t{tally.counts[i]});
      tally.counts[i] = 0;
    }
  }
  NANET_HD std::uint64_t total(PartCount count) const {
    return Atomics::load(memory_.state->totals[static_cast<std::uint32_t>(count)]);
  }
  MergerStats stats() const { return merger_stats(*memory_.state); }
  NANET_HD std::uint32_t open_count() const {
    return static_cast<std::uint32_t>(total(PartCount::events_opened) - total(PartCount::events_complete) -
                                      total(PartCount::events_missing_parts) - total(PartCount::events_overflow));
  }

 private:
  // A word: state in bits 63..62, then 14 bits, 8 bits of parts_mask, 40 bits of key. What the 14 bits are, the state decides:
  //   empty    all 0
  //   open     number of hits so far, saturating
  //   ready    1: forgotten, no part may find it; 0: found as a closed one
  //   closed   order of opening; the event's place is free for another one, which takes the word over
  enum class State : std::uint32_t { empty = 0, open = 1, ready = 2, closed = 3 };
  static constexpr std::uint32_t kFieldMax = (1u << 14) - 1;
  static constexpr std::uint32_t kForgotten = 1;
  static constexpr std::uint32_t kNoSlot = ~0u;

  NANET_HD static constexpr std::uint64_t word_of(State state, std::uint32_t field, std::uint32_t parts_mask, std::uint64_t key) {
    return std::uint64_t{static_cast<std::uint32_t>(state)} << 62 | std::uint64_t{field} << 48 | std::uint64_t{parts_mask} << 40 |
           key;
  }
  NANET_HD static constexpr State state_of(std::uint64_t word) { return static_cast<State>(word >> 62); }
  NANET_HD static constexpr std::uint32_t field_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> 48) & kFieldMax;
  }
  NANET_HD static constexpr std::uint32_t mask_of(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 40) & 0xFFu; }
  NANET_HD static constexpr std::uint64_t key_of(std::uint64_t word) { return word & kKeyMask; }
  NANET_HD static constexpr std::uint32_t tick_of(std::uint64_t now_ns) { return static_cast<std::uint32_t>(now_ns >> kTickShift); }
  // Fourteen bits of a position, in small steps: they come round after at least 16 times as many events as the table has slots.
  NANET_HD std::uint32_t order_of(std::uint32_t position) const { return position >> order_shift_ & kFieldMax; }

  struct Found {
    std::uint32_t slot = kNoSlot;
    std::uint64_t word = 0;
    bool known = false;  // the key's own slot, otherwise the one that a new event of this key is to take
  };
  struct Part {
    std::uint32_t bit;
    std::uint32_t hit_count;
    std::uint64_t key;
    std::uint64_t now_ns;
  };

  static constexpr std::uint32_t kOwnRank = kFieldMax + 3;

  NANET_HD Found find(std::uint64_t key) const;
  NANET_HD static std::uint32_t rank_of(std::uint64_t word, std::uint64_t key, std::uint32_t order_now);
  NANET_HD bool is_lapsed(const Found& found, std::uint64_t now_ns) const;
  NANET_HD PartPlace join(std::uint32_t slot, std::uint64_t word, const Part& part, PartTally& tally) const;
  NANET_HD void open(std::uint32_t slot, const Part& part, PartTally& tally) const;
  NANET_HD std::uint64_t with_part(std::uint64_t word, const Part& part) const;
  NANET_HD PartPlace merged(std::uint32_t slot, std::uint64_t before, std::uint64_t after, const Part& part, PartTally& tally) const;
  NANET_HD void make_ready(std::uint32_t slot, std::uint32_t parts_mask, std::uint32_t hits, CloseReason reason) const;
  NANET_HD void close(std::uint32_t slot, std::uint64_t word, CloseReason reason, PartTally& tally) const;
  NANET_HD void close_all(CloseReason reason, Share share, PartTally& tally) const;
  NANET_HD void mark_closing(std::uint64_t now_ns, Share share) const;
  NANET_HD bool has_unlisted() const {
    return Atomics::load(memory_.state->unlisted) != Atomics::load(memory_.state->unlisted_closed);
  }
  NANET_HD std::uint32_t ring_max() const { return slots_ / 2; }  // positions from the oldest open event at the start of a round

  PartTableMemory memory_;
  std::uint64_t window_ns_;
  std::uint32_t slots_;
  std::uint32_t open_max_;
  std::uint32_t hits_max_;
  std::uint32_t full_mask_;
  std::uint32_t order_shift_ = 0;
};

template <class Atomics>
NANET_HD inline PartPlace PartTable<Atomics>::place_part(std::uint32_t source, std::uint64_t key, std::uint32_t hit_count,
                                                         std::uint64_t now_ns, PartTally& tally) const {
  const Part part{1u << source, hit_count, key & kKeyMask, now_ns};
  // A slot can be taken by others no more often than there are slots.
  for (std::uint32_t tries = 0; tries <= kWays; ++tries) {
    Found found = find(part.key);
    if (found.known && !is_lapsed(found, now_ns)) return join(found.slot, found.word, part, tally);
    if (found.slot == kNoSlot) break;
    const std::uint64_t opened = with_part(word_of(State::open, 0, 0, part.key), part);
    if (Atomics::compare_exchange(memory_.words[found.slot], found.word, opened)) {
      open(found.slot, part, tally);
      return merged(found.slot, word_of(State::open, 0, 0, part.key), opened, part, tally);
    }
  }
  ++tally[PartCount::parts_no_room];
  return {};
}

// Words are read eight at a time before any is judged, so that their loads are in flight together.
template <class Atomics>
NANET_HD inline typename PartTable<Atomics>::Found PartTable<Atomics>::find(std::uint64_t key) const {
  constexpr std::uint32_t kAtOnce = 8;
  const auto hash = static_cast<std::uint32_t>(key * 0x9E3779B97F4A7C15u >> 32);
  const std::uint32_t first_slot = hash & (slots_ - kWays);
  const std::uint32_t order_now = order_of(Atomics::load(memory_.state->round_start));
  Found found;
  std::uint32_t best = 0;
  for (std::uint32_t way = 0; way < kWays; way += kAtOnce) {
    std::uint64_t words[kAtOnce];
    for (std::uint32_t i = 0; i < kAtOnce; ++i) words[i] = Atomics::load(memory_.words[first_slot + way + i]);
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::uint32_t rank = rank_of(words[i], key, order_now);
      if (rank <= best) continue;
      best = rank;
      found = {first_slot + way + i, words[i], rank == kOwnRank};
    }
    if (found.known) break;
  }
  return found;
}

// How well a slot suits a key. After its own, of those that may be taken: an empty one, then the one whose event was opened first.
// Every worker with this key sees the same order, and a slot once taken in a phase stays taken: so two of them never open one
// event in two slots.
template <class Atomics>
NANET_HD inline std::uint32_t PartTable<Atomics>::rank_of(std::uint64_t word, std::uint64_t key, std::uint32_t order_now) {
  const State state = state_of(word);
  if (state == State::empty) return kOwnRank - 1;
  const bool forgotten = state == State::ready && field_of(word) == kForgotten;
  if (key_of(word) == key && !forgotten) return kOwnRank;
  return state == State::closed ? 1 + ((order_now - field_of(word)) & kFieldMax) : 0;
}

// Closed so long ago that it cannot be the same event: the key has come round again, and the new event takes the slot.
template <class Atomics>
NANET_HD inline bool PartTable<Atomics>::is_lapsed(const Found& found, std::uint64_t now_ns) const {
  if (state_of(found.word) != State::closed) return false;
  return tick_of(now_ns) - Atomics::load(memory_.events[found.slot].closed_tick) > kMemoryTicks;
}

// The word says that the slot is the key's. It may have changed since: each failure means that another source's part went in.
template <class Atomics>
NANET_HD inline PartPlace PartTable<Atomics>::join(std::uint32_t slot, std::uint64_t word, const Part& part, PartTally& tally) const {
  for (std::uint32_t tries = 0; tries <= kSourcesMax; ++tries) {
    if ((mask_of(word) & part.bit) != 0) {
      ++tally[PartCount::parts_duplicate];
      return {PartResult::duplicate};
    }
    if (state_of(word) != State::open) {
      ++tally[PartCount::parts_late];
      return {PartResult::late};
    }
    const std::uint64_t before = word;
    const std::uint64_t after = with_part(before, part);
    if (Atomics::compare_exchange(memory_.words[slot], word, after)) return merged(slot, before, after, part, tally);
  }
  ++tally[PartCount::parts_no_room];  // not covered: among eight sources the ninth try succeeds
  return {};                          // not covered: the same
}

template <class Atomics>
NANET_HD inline std::uint64_t PartTable<Atomics>::with_part(std::uint64_t word, const Part& part) const {
  const std::uint32_t mask = mask_of(word) | part.bit;
  if (mask == full_mask_) return word_of(State::ready, 0, mask, part.key);
  const std::uint32_t room = kFieldMax - field_of(word);
  return word_of(State::open, field_of(word) + (part.hit_count < room ? part.hit_count : room), mask, part.key);
}

// What only the worker that opened the event does. No one reads it before the next barrier.
template <class Atomics>
NANET_HD inline void PartTable<Atomics>::open(std::uint32_t slot, const Part& part, PartTally& tally) const {
  PartTableState& state = *memory_.state;
  TableEvent& event = memory_.events[slot];
  const std::uint32_t position = Atomics::fetch_add(state.next, 1u);
  event.key = part.key;
  event.first_part_ns = part.now_ns;
  event.position = position;
  if (position - Atomics::load(state.oldest) < slots_) {
    memory_.ring[position & (slots_ - 1)] = slot;
  } else {
    Atomics::fetch_add(state.unlisted, 1u);  // the next expire() closes whatever is open
  }
  ++tally[PartCount::events_opened];
}

template <class Atomics>
NANET_HD inline PartPlace PartTable<Atomics>::merged(std::uint32_t slot, std::uint64_t before, std::uint64_t after,
                                                     const Part& part, PartTally& tally) const {
  const std::uint32_t start = field_of(before);
  const std::uint32_t room = start < hits_max_ ? hits_max_ - start : 0;
  PartPlace place{PartResult::merged, part.hit_count, nullptr};
  if (part.hit_count > room) {
    place.result = PartResult::merged_cut;
    place.kept_count = room;
    ++tally[PartCount::parts_overflow_hits];
  }
  place.hits = memory_.events[slot].hits + (hits_max_ - room);
  ++tally[PartCount::parts_merged];
  if (state_of(after) == State::ready) {
    const std::uint32_t hits = part.hit_count < kFieldMax - start ? start + part.hit_count : kFieldMax;
    make_ready(slot, full_mask_, hits, CloseReason::complete);
    ++tally[PartCount::events_complete];
  }
  return place;
}

template <class Atomics>
NANET_HD inline void PartTable<Atomics>::make_ready(std::uint32_t slot, std::uint32_t parts_mask, std::uint32_t hits,
                                                    CloseReason reason) const {
  TableEvent& event = memory_.events[slot];
  event.hit_count = static_cast<std::uint16_t>(hits < hits_max_ ? hits : hits_max_);
  event.hits_cut = static_cast<std::uint16_t>(hits - event.hit_count);
  event.parts_mask = static_cast<std::uint8_t>(parts_mask);
  event.closed_by = reason;
  memory_.ready[Atomics::fetch_add(memory_.state->ready_count, 1u)] = slot;
}

// In a close phase: no one else touches this word.
template <class Atomics>
NANET_HD inline void PartTable<Atomics>::close(std::uint32_t slot, std::uint64_t word, CloseReason reason, PartTally& tally) const {
  make_ready(slot, mask_of(word), field_of(word), reason);
  Atomics::store(memory_.words[slot], word_of(State::ready, 0, mask_of(word), key_of(word)));
  ++tally[reason == CloseReason::overflow ? PartCount::events_overflow : PartCount::events_missing_parts];
}

template <class Atomics>
NANET_HD inline bool PartTable<Atomics>::expire_due(std::uint64_t now_ns) const {
  PartTableState& state = *memory_.state;
  const std::uint32_t span = Atomics::load(state.next) - Atomics::load(state.oldest);
  const auto age_ns = static_cast<std::int64_t>(now_ns - Atomics::load(state.oldest_ns));
  return span != 0 &&
         (has_unlisted() || age_ns >= static_cast<std::int64_t>(window_ns_) || span > ring_max() || open_count() > open_max_);
}

template <class Atomics>
NANET_HD inline void PartTable<Atomics>::expire(std::uint64_t now_ns, Share share, PartTally& tally) const {
  PartTableState& state = *memory_.state;
  const std::uint32_t oldest = Atomics::load(state.oldest);
  const std::uint32_t span = Atomics::load(state.next) - oldest;
  mark_closing(now_ns, share);
  if (has_unlisted()) {
    close_all(CloseReason::overflow, share, tally);
    return;
  }
  const std::uint32_t keep_newest = open_count() > open_max_ ? open_max_ : ring_max();
  std::uint32_t still_open = 0;
  std::int64_t oldest_age_ns = 0;
  for (std::uint32_t i = share.index; i < span; i += share.count) {
    const std::uint32_t slot = memory_.ring[(oldest + i) & (slots_ - 1)];
    const TableEvent& event = memory_.events[slot];
    const std::uint64_t word = Atomics::load(memory_.words[slot]);
    if (state_of(word) != State::open || event.position != oldest + i) continue;
    const auto age_ns = static_cast<std::int64_t>(now_ns - event.first_part_ns);
    if (age_ns >= static_cast<std::int64_t>(window_ns_)) {
      close(slot, word, CloseReason::window, tally);
    } else if (span - i > keep_newest) {
      close(slot, word, CloseReason::overflow, tally);
    } else {
      still_open = still_open == 0 ? span - i : still_open;
      oldest_age_ns = age_ns > oldest_age_ns ? age_ns : oldest_age_ns;
    }
  }
  if (still_open == 0) return;
  Atomics::fetch_max(state.still_open, still_open);
  Atomics::fetch_max(state.oldest_age_ns, static_cast<std::uint64_t>(oldest_age_ns));
}

template <class Atomics>
NANET_HD inline void PartTable<Atomics>::flush(Share share, PartTally& tally) const {
  close_all(CloseReason::flush, share, tally);
  for (std::uint32_t slot = share.index; slot < slots_; slot += share.count) {
    const std::uint64_t word = Atomics::load(memory_.words[slot]);
    const bool ready = state_of(word) == State::ready;
    Atomics::store(memory_.words[slot], ready ? word_of(State::ready, kForgotten, mask_of(word), key_of(word)) : std::uint64_t{0});
  }
  mark_closing(0, share);
}

template <class Atomics>
NANET_HD inline void PartTable<Atomics>::close_all(CloseReason reason, Share share, PartTally& tally) const {
  for (std::uint32_t slot = share.index; slot < slots_; slot += share.count) {
    const std::uint64_t word = Atomics::load(memory_.words[slot]);
    if (state_of(word) == State::open) close(slot, word, reason, tally);
  }
}

template <class Atomics>
NANET_HD inline void PartTable<Atomics>::mark_closing(std::uint64_t now_ns, Share share) const {
  if (share.index != 0) return;
  PartTableState& state = *memory_.state;
  state.closing = 1;
  state.closing_end = Atomics::load(state.next);
  state.closing_unlisted = Atomics::load(state.unlisted);
  state.closing_ns = now_ns;
}

template <class Atomics>
NANET_HD inline void PartTable<Atomics>::release(std::uint32_t index, std::uint64_t now_ns) const {
  const std::uint32_t slot = memory_.ready[index];
  const std::uint64_t word = Atomics::load(memory_.words[slot]);
  TableEvent& event = memory_.events[slot];
  event.closed_tick = tick_of(now_ns);
  const std::uint64_t closed = word_of(State::closed, order_of(event.position), mask_of(word), key_of(word));
  Atomics::store(memory_.words[slot], field_of(word) == kForgotten ? std::uint64_t{0} : closed);
}

template <class Atomics>
NANET_HD inline void PartTable<Atomics>::finish_round() const {
  PartTableState& state = *memory_.state;
  state.ready_count = 0;
  state.round_start = Atomics::load(state.next);
  if (state.closing == 0) return;
  state.closing = 0;
  state.unlisted_closed = state.closing_unlisted;
  state.oldest = state.closing_end - state.still_open;
  state.oldest_ns = state.closing_ns - state.oldest_age_ns;
  state.still_open = 0;
  state.oldest_age_ns = 0;
}

}  // namespace nanet::event
