// SPDX-License-Identifier: Apache-2.0
#include "emulate/answer_book.hpp"

#include <algorithm>
#include <bit>

namespace nanet::emulate {

AnswerBook::AnswerBook(std::span<const std::uint64_t> pool_keys, std::uint32_t events_per_packet, std::uint64_t outstanding_packets,
                       std::uint32_t first_timestamp)
    : pool_keys_(pool_keys),
      events_per_packet_(events_per_packet),
      words_per_packet_((events_per_packet + 63) / 64),
      mask_(std::bit_ceil(std::max<std::uint64_t>(outstanding_packets, 1)) - 1),
      first_key_offset_(std::uint64_t{first_timestamp} << 8),
      slots_(mask_ + 1),
      answered_((mask_ + 1) * words_per_packet_) {}

void AnswerBook::sent(std::uint64_t number, std::uint32_t pool_packet, std::uint64_t shift_units, std::uint64_t send_ns) {
  slots_[number & mask_] = {first_key_offset_ + (shift_units << 8), send_ns, pool_packet * events_per_packet_};
  std::fill_n(answered_.begin() + static_cast<std::ptrdiff_t>((number & mask_) * words_per_packet_), words_per_packet_,
              std::uint64_t{0});
  packets_sent_ = number + 1;
  // A cursor that fell out of the window would point into a newer packet's slot.
  if (packets_sent_ - cursor_packet_ > mask_ + 1 && packets_sent_ > cursor_packet_) {
    cursor_packet_ = packets_sent_ - (mask_ + 1);
    cursor_index_ = 0;
  }
}

AnswerBook::Answer AnswerBook::find(std::uint64_t wire_key, std::uint64_t near_packet) const {
  constexpr Answer kUnknown{Match::unknown, 0, 0};
  if (packets_sent_ == 0) return kUnknown;
  const Slot& newest = slots_[(packets_sent_ - 1) & mask_];
  const std::uint64_t newest_key = newest.shift_key + pool_keys_[newest.pool_first + events_per_packet_ - 1];
  const std::uint64_t age = (newest_key - wire_key) & kWireMask;
  if (age > newest_key - first_key_offset_) return kUnknown;  // newer than anything sent, or before the run
  const std::uint64_t key = newest_key - age;

  std::uint64_t low = packets_sent_ > mask_ ? packets_sent_ - mask_ - 1 : 0;
  std::uint64_t high = packets_sent_;
  if (key < first_key(low)) return {low == 0 ? Match::unknown : Match::stale, 0, 0};
  // Losses and small disorder: the event is in the expected packet or a few after it. So search from there, in steps that double.
  if (near_packet < high && near_packet >= low && first_key(near_packet) <= key) {
    low = near_packet;
    for (std::uint64_t step = 1; low + step < high; step *= 2) {
      if (first_key(low + step) > key) {
        high = low + step;
      } else {
        low += step;
      }
    }
  }
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (first_key(middle) <= key ? low : high) = middle;
  }
  const Slot& slot = slots_[low & mask_];
  const auto begin = pool_keys_.begin() + slot.pool_first;
  const auto end = begin + events_per_packet_;
  const auto found = std::lower_bound(begin, end, key - slot.shift_key);
  if (found == end || *found != key - slot.shift_key) return kUnknown;
  return {Match::answered, low, static_cast<std::uint32_t>(found - begin)};
}

}  // namespace nanet::emulate
