// SPDX-License-Identifier: Apache-2.0
// Assembler: puts units (frames, events, heaps) together from many packets, each in a buffer of a CLOP, and hands them over as they are done.
// docs/design/assembler.md has the rules; the books of what came are in counters().
//
// Promises
//   * A payload is written into its own unit's buffer, or nowhere, whatever the packet says.
//   * A unit is complete when every byte of it has come, never because enough bytes have.
//   * Every packet is counted under exactly one name, and so is every unit.
//   * All memory is taken at start.
//
// Thread rules: one thread; counters() and streams() from any. No clock, no I/O.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nanet/contract.hpp"
#include "nanet/engine/config.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/engine/resend.hpp"
#include "nanet/engine/unit_facts.hpp"
#include "nanet/flow/buffer_pool.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/flow/ranges.hpp"

namespace nanet::engine {

class Assembler {
 public:
  // clop: with an index_capacity of index_capacity(). queue: with room for all of its buffers.
  Assembler(const AssembleConfig& config, flow::Clop& clop, flow::CompletionQueue& queue);

  // Of the CLOP, for units of up to buffer_bytes: a UnitHead and ranges.
  static std::uint32_t index_capacity(std::uint32_t buffer_bytes);

  // Puts a payload of facts.payload_bytes into its place, or counts why not. A unit that it completes is handed over at once.
  void take(const UnitFacts& facts, std::span<const std::byte> payload, std::uint64_t now_ns);

  // The kernel dropped packets before the one that comes next.
  void note_drop() { ++drop_epoch_; }

  // Closes the units whose first packet came timeout_us ago; at_hand: packets may still wait to be taken, so only those twice as old.
  enum class Rest : std::uint8_t { none, at_hand };
  void expire(std::uint64_t now_ns, Rest rest);

  // With AssembleConfig::resend: from time to time, gives what is missing to the requester. rest: as for expire().
  void ask_for_missing(Requester& requester, std::uint64_t now_ns, Rest rest) {
    if (now_ns >= next_look_ns_) look_for_missing(requester, now_ns, rest);
  }

  // Closes every unit.
  void flush();

  bool holds_units() const { return oldest_ != kNone; }

  // Packets, up to `wanted`, for which there are buffers if each begins a unit, or will be none: a link that keeps its packets may leave the others
  // where they are while the consumer has buffers, which come back.
  std::size_t packets_to_take(std::size_t wanted) {
    return clop_.in_use() > 0 || pool_.available() > 0 ? std::min(wanted, pool_.available()) : wanted;
  }

  const flow::Counters& counters() const { return counters_; }
  std::vector<StreamBooks> streams() const;

 private:
  using Counter = flow::Counter;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kRangesMax = 4096;       // of a unit; more, and a packet of a forger moves too much memory
  static constexpr std::uint32_t kClosedKept = 64;        // closed units that a stream remembers
  static constexpr std::uint64_t kUnitGapMax = 1u << 20;  // a longer one is no gap: the stream began again

  // By buffer. Open ones are linked in the order in which they began.
  struct Unit {
    flow::Ranges ranges;
    UnitHead* head = nullptr;
    std::byte* memory = nullptr;
    std::uint32_t stream = 0;
    std::uint32_t bytes = 0;        // 0: not known yet
    std::uint32_t packets = 0;      // UnitFacts::unit_packets; 0: not known
    std::uint32_t piece_bytes = 0;  // payload of all its packets but the last, where they are counted; 0: not known yet
    std::uint32_t older = kNone;
    std::uint32_t newer = kNone;
    std::uint32_t drop_epoch = 0;  // before its first packet
  };

  // What of a unit its sender was asked for. By buffer; none without AssembleConfig::resend.
  struct Chase {
    std::uint64_t again_ns = 0;      // holes that were asked for are asked for again from then on
    std::uint32_t header_bytes = 0;  // of the unit's first packet
    std::uint32_t seen_end = 0;      // of what had come at the last look: holes before it are old enough
    std::uint32_t asked_end = 0;     // holes before it were asked for
    std::uint32_t asked_packets = 0;
    std::uint32_t tries = 0;
    bool end_asked = false;  // whatever says the unit's length was asked for
  };

  // A number that this thread counts and others read.
  struct Tally {
    std::atomic<std::uint64_t> value{0};
    void add(std::uint64_t n) { value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
    std::uint64_t now() const { return value.load(std::memory_order_relaxed); }
    void clear() { value.store(0, std::memory_order_relaxed); }
  };

  struct Stream {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint32_t> tenants{0};  // streams that had this place; odd while it changes hands
    std::uint32_t open_count = 0;
    std::uint32_t closed_next = 0;  // in its closed units: the oldest, which is forgotten next
    std::uint32_t drop_epoch = 0;   // when its last packet came
    std::uint32_t idler = kNone;    // neighbours in the order of their last packets
    std::uint32_t busier = kNone;
    std::uint64_t last_packet_ns = 0;  // accepted; or when it came into the table
    bool has_newest = false;
    std::uint64_t newest_unit = 0;
    std::uint32_t piece_bytes = 0;  // of its units so far, where packets are counted
    std::uint32_t unit_bytes = 0;   // of its last unit that was complete
    Tally accepted, refused, lost, complete, incomplete, no_buffer, units_lost;

    std::uint64_t key_now() const { return key.load(std::memory_order_relaxed); }
    // It is real: a unit of it was complete.
    bool is_proven() const { return complete.now() != 0; }
  };

  struct ClosedUnit {
    std::uint64_t until_ns = 0;  // its key may mean a new unit from then on
    Counter packets_are = Counter::packets_late;
  };

  Stream* find_stream(std::uint64_t key);
  Stream* add_stream(std::uint64_t key);
  std::optional<std::uint32_t> place_for_a_stream();
  void evict(Stream& stream);
  void free_slot(std::size_t slot);
  std::size_t home_of(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> slot_shift_; }
  std::size_t slot_of(std::uint64_t key) const;
  void make_busiest(Stream& stream);
  void link_busiest(Stream& stream);
  void unlink(Stream& stream);
  std::optional<Counter> count_in_bytes(UnitFacts& facts, std::uint32_t payload_bytes, const Stream* stream, const Unit* unit,
                                        std::uint32_t& piece_bytes) const;
  void refuse(Stream& stream, Counter reason);
  std::optional<Counter> misfit(const UnitFacts& facts, std::uint32_t payload_bytes) const;
  Unit* open_unit(Stream& stream, std::uint64_t key);
  const ClosedUnit* closed_unit(const Stream& stream, std::uint64_t key) const;
  Unit* begin(Stream& stream, const UnitFacts& facts);
  void follow(Stream& stream, std::uint64_t key);
  static void count_empty_in_bytes(UnitFacts& facts, const Unit* unit);
  static std::optional<Counter> learn_length(Unit& unit, const UnitFacts& facts, std::uint32_t end);
  void store(Unit& unit, Stream& stream, const UnitFacts& facts, std::span<const std::byte> payload);
  bool take_buffer(const Stream& stream, std::uint32_t& buffer_index);
  enum class Incomplete : std::uint8_t { as_configured, dropped };
  void close(Unit& unit, Counter why, std::uint16_t status, Incomplete incomplete = Incomplete::as_configured);
  void book_missing(Unit& unit, Stream& stream);
  void look_for_missing(Requester& requester, std::uint64_t now_ns, Rest rest);
  void look_at(Unit& unit, Chase& chase, Requester& requester, Rest rest);
  void ask_for_holes(const Unit& unit, Chase& chase, Requester& requester, std::uint32_t from, MissingPart part);
  void book_resends(const Unit& unit, const Chase& chase);
  void hand_over(Unit& unit, std::uint32_t buffer_index, std::uint16_t status);
  void remember(Stream& stream, std::uint64_t key, Counter packets_are);
  void link(std::uint32_t buffer_index);
  void unlink(std::uint32_t buffer_index);

  std::size_t index_of(const Stream& stream) const { return static_cast<std::size_t>(&stream - streams_.data()); }
  std::span<std::uint32_t> open_of(const Stream& stream) {
    return std::span(open_).subspan(index_of(stream) * config_.units_open, config_.units_open);
  }

  const AssembleConfig config_;
  flow::Clop& clop_;
  flow::CompletionQueue& queue_;
  flow::BufferPool pool_;
  flow::Counters counters_;
  std::vector<Unit> units_;    // by buffer
  std::vector<Chase> chases_;  // by buffer
  std::uint64_t next_look_ns_ = 0;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::vector<Stream> streams_;
  std::atomic<std::uint32_t> stream_count_{0};
  std::vector<std::uint32_t> slots_;  // of the table of streams: index + 1; 0: free
  std::uint32_t slot_shift_ = 0;
  std::uint32_t last_stream_ = 0;
  std::uint32_t idlest_ = kNone;
  std::uint32_t busiest_ = kNone;
  std::uint32_t unproven_open_ = 0;         // open units of streams that have completed none
  std::vector<std::uint32_t> open_;         // units_open a stream: its open units, oldest first
  std::vector<std::uint64_t> closed_keys_;  // kClosedKept a stream
  std::vector<ClosedUnit> closed_;          // likewise
  std::uint32_t drop_epoch_ = 0;
  std::uint64_t now_ns_ = 0;
};

}  // namespace nanet::engine
