// SPDX-License-Identifier: Apache-2.0
// DecisionReceiver: takes the experiment's place for the triggers of the L0 trigger processor. Finds the event that each belongs to and
// measures the latency.
//
// Latency: from the send time of the last packet with a part of the event to the return of the receive call that brought the decision.
// Every entry that came is in exactly one of: physics, calibration; of these, unknown and stale ones belong to no event that is remembered, and
// have no latency.
//
// Thread rules: one thread calls receive and check; counts() and copies of the histogram: any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulate/answer_book.hpp"
#include "nanet/flow/latency_histogram.hpp"
#include "nanet/link/link.hpp"
#include "wire/l0_decision.hpp"

namespace nanet::emulate {

struct DecisionCounts {
  std::uint64_t packets = 0;             // that came, good or not
  std::uint64_t packets_bad_length = 0;  // refused, nothing in them is looked at
  std::uint64_t packets_bad_format = 0;
  std::uint64_t physics = 0;       // triggers of masks
  std::uint64_t calibration = 0;   // triggers of calibration primitives
  std::uint64_t unknown = 0;       // of both: no event with that time was sent
  std::uint64_t stale = 0;         // of both: the event is too old to be remembered
  std::uint64_t missing = 0;       // trigger numbers left out between packets
  std::uint64_t out_of_order = 0;  // packets whose first number is below the one expected
};

class DecisionReceiver {
 public:
  // Everything given must outlive it.
  DecisionReceiver(const AnswerBook& book, link::Link& link);

  // Takes one batch from the link. Not 0: call check() at once, with the current time.
  std::uint32_t receive(std::uint64_t now_ns);
  void check(std::uint64_t received_ns);

  DecisionCounts counts() const;

  // One record per trigger that belongs to an event.
  const flow::LatencyHistogram& latency() const { return latency_; }

 private:
  static constexpr std::size_t kWords = sizeof(DecisionCounts) / sizeof(std::uint64_t);
  static constexpr std::size_t kPacketsMax = 256;

  void check_numbers(const wire::L0DecisionView& view);
  void check_entry(const wire::L0DecisionEntry& entry, std::uint64_t received_ns);

  const AnswerBook& book_;
  link::Link& link_;
  std::vector<std::byte> room_;
  std::array<link::RxPacket, kPacketsMax> packets_{};
  std::uint32_t packet_count_ = 0;
  std::uint32_t next_number_ = 0;  // on the wire's 24 bits
  std::uint64_t near_packet_ = 0;  // where the last one was found: triggers come in order of time
  DecisionCounts counts_;
  std::array<std::atomic<std::uint64_t>, kWords> published_{};
  flow::LatencyHistogram latency_;
};

}  // namespace nanet::emulate
