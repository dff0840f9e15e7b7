// SPDX-License-Identifier: Apache-2.0
// AnswerBook: which events were sent and which of them have been answered. No clock, no I/O, nothing allocated after construction.
//
// Terms
//   key       see schedule.hpp. An answer carries its lower 40 bits (timestamp << 8 | fine_time), which repeat after 107 s; the book
//             takes the newest sent event with those bits.
//   window    the newest `outstanding_packets` packets. An answer to an event older than that is stale.
//
// Thread rules: one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nanet::emulate {

enum class Match : std::uint8_t {
  answered,   // first answer to a sent event
  duplicate,  // that event was answered before
  stale,      // as old as something sent, but the book has forgotten it
  unknown,    // no event with that time was ever sent
};

class AnswerBook {
 public:
  struct Answer {
    Match match;
    std::uint64_t packet;     // the packet with the event (answered and duplicate)
    std::uint32_t in_packet;  // which event of it
  };

  // `pool_keys` must outlive the book. `outstanding_packets` is rounded up to a power of two.
  // first_timestamp: what (timestamp) on the wire starts at.
  AnswerBook(std::span<const std::uint64_t> pool_keys, std::uint32_t events_per_packet, std::uint64_t outstanding_packets,
             std::uint32_t first_timestamp);

  // Packet `number` (0, 1, 2, ... in this order, no holes) is about to leave. pool_packet: which packet of the pool it is.
  void sent(std::uint64_t number, std::uint32_t pool_packet, std::uint64_t shift_units, std::uint64_t send_ns);

  // Another part of a packet in the window is about to leave: from now on its send time is send_ns.
  void resent(std::uint64_t number, std::uint64_t send_ns) { slots_[number & mask_].send_ns = send_ns; }

  // timestamp << 8 | fine_time, as it came.
  Answer answer(std::uint64_t wire_key) {
    if (cursor_packet_ < packets_sent_) [[likely]] {
      const Slot& slot = slots_[cursor_packet_ & mask_];
      const std::uint64_t expected = slot.shift_key + pool_keys_[slot.pool_first + cursor_index_];
      if ((expected & kWireMask) == wire_key) [[likely]] {
        return claim(cursor_packet_, cursor_index_);
      }
    }
    return search(wire_key);
  }

  // Where the event is, without a claim: `match` is answered (whether it was or not), stale or unknown. Fast when the event is in the packet
  // near_packet or a little after it.
  Answer find(std::uint64_t wire_key, std::uint64_t near_packet) const;

  // Of a packet in the window.
  std::uint64_t send_ns(std::uint64_t number) const { return slots_[number & mask_].send_ns; }
  std::uint32_t pool_event(std::uint64_t number, std::uint32_t in_packet) const {
    return slots_[number & mask_].pool_first + in_packet;
  }

  std::uint64_t packets_sent() const { return packets_sent_; }
  std::uint64_t window_packets() const { return mask_ + 1; }

 private:
  static constexpr std::uint64_t kWireMask = (std::uint64_t{1} << 40) - 1;

  struct Slot {
    std::uint64_t shift_key;  // to add to the pool key; includes the first timestamp
    std::uint64_t send_ns;
    std::uint32_t pool_first;
  };

  Answer claim(std::uint64_t packet, std::uint32_t index) {
    std::uint64_t& word = answered_[(packet & mask_) * words_per_packet_ + index / 64];
    const std::uint64_t bit = std::uint64_t{1} << (index % 64);
    cursor_packet_ = packet;
    cursor_index_ = index + 1;
    if (cursor_index_ == events_per_packet_) {
      cursor_index_ = 0;
      ++cursor_packet_;
    }
    const Match match = (word & bit) != 0 ? Match::duplicate : Match::answered;
    word |= bit;
    return {match, packet, index};
  }

  Answer search(std::uint64_t wire_key) {
    const Answer found = find(wire_key, cursor_packet_);
    return found.match == Match::answered ? claim(found.packet, found.in_packet) : found;
  }
  std::uint64_t first_key(std::uint64_t packet) const {
    const Slot& slot = slots_[packet & mask_];
    return slot.shift_key + pool_keys_[slot.pool_first];
  }

  std::span<const std::uint64_t> pool_keys_;
  std::uint32_t events_per_packet_;
  std::uint32_t words_per_packet_;
  std::uint64_t mask_;
  std::uint64_t first_key_offset_;
  std::uint64_t packets_sent_ = 0;
  std::uint64_t cursor_packet_ = 0;  // where the next answer is expected
  std::uint32_t cursor_index_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> answered_;
};

}  // namespace nanet::emulate
