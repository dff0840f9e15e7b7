// SPDX-License-Identifier: Apache-2.0
// AnswerChecker: takes the L0 trigger processor's place for the answers. Checks every field, finds the event that each primitive belongs to, measures
// the latency.
//
// Latency: from the send time of the last packet with a part of the event to the return of the receive call that brought the answer.
// Every primitive that came is in exactly one of: answered, duplicate, stale, unknown, bad_primitives.
//
// Thread rules: one thread calls receive and check; counts() and copies of the histograms: any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "emulate/answer_book.hpp"
#include "emulate/config.hpp"
#include "emulate/run_watch.hpp"
#include "nanet/flow/latency_histogram.hpp"
#include "nanet/link/link.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::emulate {

struct AnswerCounts {
  std::uint64_t packets = 0;             // that came, good or not
  std::uint64_t packets_bad_length = 0;  // refused, nothing in them is looked at: length not that of an MTP packet
  std::uint64_t packets_bad_format = 0;  // refused: count of primitives is not what the header says
  std::uint64_t packets_bad_source = 0;  // refused: source ID or sub ID is not the engine's
  std::uint64_t primitives = 0;          // in good packets
  std::uint64_t bad_primitives = 0;      // bits of the primitive ID contradict each other or the format
  std::uint64_t answered = 0;            // events: first answers
  std::uint64_t duplicate = 0;           // the event was answered before
  std::uint64_t stale = 0;               // the event, if it was one, is too old to be remembered
  std::uint64_t unknown = 0;             // no event with that time was sent
  std::uint64_t wrong = 0;               // of answered: the primitive ID is not the expected one
};

class AnswerChecker {
 public:
  // Everything given must outlive it. `expected`: primitive ID of each pool event; empty: not checked.
  AnswerChecker(const EmulatorConfig& config, AnswerBook& book, std::span<const std::uint16_t> expected, link::Link& link,
                StallWatch& stalls, Course& course);

  // Takes one batch from the link. Not 0: call check() at once, with the current time.
  std::uint32_t receive(std::uint64_t now_ns);
  void check(std::uint64_t received_ns);

  std::uint64_t answered() const { return published_[kAnsweredIndex].load(std::memory_order_relaxed); }
  AnswerCounts counts() const;

  // One record per answered event.
  const flow::LatencyHistogram& latency() const { return latency_; }
  // Of these, the ones whose interval holds no stall of this thread.
  const flow::LatencyHistogram& latency_clean() const { return latency_clean_; }

 private:
  static constexpr std::size_t kWords = sizeof(AnswerCounts) / sizeof(std::uint64_t);
  static constexpr std::size_t kAnsweredIndex = offsetof(AnswerCounts, answered) / sizeof(std::uint64_t);
  static constexpr std::size_t kPacketsMax = 1024;

  // Answers of one packet that came together: one latency.
  struct Group {
    std::uint64_t packet = ~std::uint64_t{0};
    std::uint32_t count = 0;
  };

  bool accept(const link::RxPacket& packet, wire::MtpView& view);
  void check_primitive(const wire::Primitive& primitive, Group& group, std::uint64_t received_ns);
  void record(const Group& group, std::uint64_t received_ns);
  void publish();

  AnswerBook& book_;
  std::span<const std::uint16_t> expected_;
  link::Link& link_;
  StallWatch& stalls_;
  Course& course_;
  const std::uint8_t source_id_;
  const std::uint8_t source_sub_id_;
  const std::uint16_t radius_class_mask_;  // bits of a primitive ID that must be 0 without a ring

  std::vector<std::byte> room_;
  std::array<link::RxPacket, kPacketsMax> packets_{};
  std::uint32_t packet_count_ = 0;
  AnswerCounts counts_;
  std::array<std::atomic<std::uint64_t>, kWords> published_{};
  flow::LatencyHistogram latency_;
  flow::LatencyHistogram latency_clean_;
};

}  // namespace nanet::emulate
