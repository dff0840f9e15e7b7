// SPDX-License-Identifier: Apache-2.0
#include "emulate/decision_receiver.hpp"

#include <algorithm>
#include <bit>
#include <span>

#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

constexpr std::size_t kDecisionRoomBytes = 128 * 1024;  // of decisions per batch: more would keep the sender waiting

}  // namespace

DecisionReceiver::DecisionReceiver(const AnswerBook& book, link::Link& link)
    : book_(book), link_(link), room_(std::max(kDecisionRoomBytes, link.min_room_bytes())) {}

std::uint32_t DecisionReceiver::receive(std::uint64_t now_ns) {
  packet_count_ = link_.receive(room_, packets_, now_ns).packet_count;
  return packet_count_;
}

void DecisionReceiver::check(std::uint64_t received_ns) {
  counts_.packets += packet_count_;
  for (const link::RxPacket& packet : std::span(packets_).first(packet_count_)) {
    const bool whole = (packet.flags & link::RxPacket::truncated) == 0;
    wire::L0DecisionView view;
    const wire::ParseError error = wire::L0DecisionView::parse(
        std::span<const std::byte>(room_).subspan(packet.offset, whole ? packet.bytes : 0), view);
    if (error != wire::ParseError::none) {
      ++(error == wire::ParseError::bad_length ? counts_.packets_bad_length : counts_.packets_bad_format);
      continue;
    }
    check_numbers(view);
    for (std::uint32_t i = 0; i < view.entry_count(); ++i) check_entry(view.entry(i), received_ns);
  }
  packet_count_ = 0;
  const auto words = std::bit_cast<std::array<std::uint64_t, kWords>>(counts_);
  for (std::size_t i = 0; i < kWords; ++i) published_[i].store(words[i], std::memory_order_relaxed);
}

void DecisionReceiver::check_numbers(const wire::L0DecisionView& view) {
  const std::uint32_t ahead = (view.first_trigger_number() - next_number_) & wire::kL0TriggerNumberMask;
  if (ahead > wire::kL0TriggerNumberMask / 2) {
    ++counts_.out_of_order;
    return;
  }
  counts_.missing += ahead;
  next_number_ = (view.first_trigger_number() + view.entry_count()) & wire::kL0TriggerNumberMask;
}

void DecisionReceiver::check_entry(const wire::L0DecisionEntry& entry, std::uint64_t received_ns) {
  ++((entry.matched_kind & wire::kL0CalibrationBit) != 0 ? counts_.calibration : counts_.physics);
  const AnswerBook::Answer found = book_.find(wire::ticks(entry.timestamp, entry.fine_time), near_packet_);
  if (found.match != Match::answered) {
    ++(found.match == Match::stale ? counts_.stale : counts_.unknown);
    return;
  }
  near_packet_ = found.packet;
  const std::uint64_t sent_ns = book_.send_ns(found.packet);
  latency_.record(received_ns > sent_ns ? received_ns - sent_ns : 0);
}

DecisionCounts DecisionReceiver::counts() const {
  std::array<std::uint64_t, kWords> words{};
  for (std::size_t i = 0; i < kWords; ++i) words[i] = published_[i].load(std::memory_order_relaxed);
  return std::bit_cast<DecisionCounts>(words);
}

}  // namespace nanet::emulate
