// SPDX-License-Identifier: Apache-2.0
#include "emulate/answer_checker.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

constexpr std::size_t kAnswerRoomBytes = 128 * 1024;  // of answers per batch: more would keep the sender waiting

// docs/formats.md: bit 14 always 1, bit 15 calibration. Number of rings, "ring found", electron and class must agree; where conditions stand in
// the place of the class, they may be anything.
bool is_consistent(std::uint16_t id, std::uint16_t radius_class_mask) {
  const bool found = (id >> 8 & 1) != 0;
  const bool electron = (id >> 9 & 1) != 0;
  const unsigned rings = id >> 6 & 3;
  const unsigned radius_class = id & radius_class_mask;
  return (id >> 14) == 1 && found == (rings > 0) && (found || (!electron && radius_class == 0));
}

}  // namespace

AnswerChecker::AnswerChecker(const EmulatorConfig& config, AnswerBook& book, std::span<const std::uint16_t> expected,
                             link::Link& link, StallWatch& stalls, Course& course)
    : book_(book),
      expected_(expected),
      link_(link),
      stalls_(stalls),
      course_(course),
      source_id_(config.answer_source_id),
      source_sub_id_(config.answer_source_sub_id),
      radius_class_mask_(config.decision.conditions.count == 0 ? 15u << 10 : 0u),
      room_(std::max(kAnswerRoomBytes, link.min_room_bytes())) {}

std::uint32_t AnswerChecker::receive(std::uint64_t now_ns) {
  packet_count_ = link_.receive(room_, packets_, now_ns).packet_count;
  return packet_count_;
}

void AnswerChecker::check(std::uint64_t received_ns) {
  Group group;
  counts_.packets += packet_count_;
  for (std::uint32_t i = 0; i < packet_count_; ++i) {
    wire::MtpView view;
    if (!accept(packets_[i], view)) continue;
    counts_.primitives += view.primitive_count();
    wire::for_each_primitive(view, [&](const wire::Primitive& primitive) { check_primitive(primitive, group, received_ns); });
  }
  if (group.count > 0) record(group, received_ns);
  packet_count_ = 0;
  publish();
}

bool AnswerChecker::accept(const link::RxPacket& packet, wire::MtpView& view) {
  if ((packet.flags & link::RxPacket::truncated) != 0) {
    ++counts_.packets_bad_length;
    return false;
  }
  const std::span<const std::byte> payload = std::span<const std::byte>(room_).subspan(packet.offset, packet.bytes);
  const wire::ParseError error = wire::MtpView::parse(payload, view);
  if (error != wire::ParseError::none) {
    ++(error == wire::ParseError::bad_length ? counts_.packets_bad_length : counts_.packets_bad_format);
    return false;
  }
  if (view.source_id() != source_id_ || view.source_sub_id() != source_sub_id_) {
    ++counts_.packets_bad_source;
    return false;
  }
  return true;
}

inline void AnswerChecker::check_primitive(const wire::Primitive& primitive, Group& group, std::uint64_t received_ns) {
  if (!is_consistent(primitive.id, radius_class_mask_)) [[unlikely]] {
    ++counts_.bad_primitives;
    return;
  }
  const AnswerBook::Answer answer = book_.answer(wire::ticks(primitive.timestamp, primitive.fine_time));
  if (answer.match != Match::answered) [[unlikely]] {
    ++(answer.match == Match::duplicate ? counts_.duplicate : answer.match == Match::stale ? counts_.stale : counts_.unknown);
    return;
  }
  ++counts_.answered;
  if (!expected_.empty()) counts_.wrong += expected_[book_.pool_event(answer.packet, answer.in_packet)] != primitive.id ? 1 : 0;
  if (answer.packet != group.packet) {
    if (group.count > 0) record(group, received_ns);
    group = {answer.packet, 0};
  }
  ++group.count;
}

void AnswerChecker::record(const Group& group, std::uint64_t received_ns) {
  const std::uint64_t sent_ns = book_.send_ns(group.packet);
  const std::uint64_t latency_ns = received_ns > sent_ns ? received_ns - sent_ns : 0;
  latency_.record(latency_ns, group.count);
  if (sent_ns >= stalls_.last_end_ns()) latency_clean_.record(latency_ns, group.count);
  course_.record(latency_ns, group.count);
}

void AnswerChecker::publish() {
  const auto words = std::bit_cast<std::array<std::uint64_t, kWords>>(counts_);
  for (std::size_t i = 0; i < kWords; ++i) published_[i].store(words[i], std::memory_order_relaxed);
}

AnswerCounts AnswerChecker::counts() const {
  std::array<std::uint64_t, kWords> words{};
  for (std::size_t i = 0; i < kWords; ++i) words[i] = published_[i].load(std::memory_order_relaxed);
  return std::bit_cast<AnswerCounts>(words);
}

}  // namespace nanet::emulate
