// SPDX-License-Identifier: Apache-2.0
// Any mix of packets, good and bad, against a model of sets of bytes: data, holes and books agree to the packet.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "assembler_model.hpp"

namespace nanet::engine {
namespace {

// The same numbers everywhere.
struct Random {
  std::uint64_t state;
  std::uint32_t operator()(std::uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>((state >> 33) % below);
  }
};

struct Outcome {
  std::string difference;
  std::vector<std::uint64_t> counts;

  std::uint64_t count(flow::Counter counter) const { return counts[static_cast<std::size_t>(counter)]; }
};

Outcome run(std::uint64_t seed) {
  Random random{seed};
  const std::uint32_t units_open = 1 + random(3), buffers = 2u << random(4);
  const IncompletePolicy incomplete = random(2) == 0 ? IncompletePolicy::drop : IncompletePolicy::process;
  test::AssemblerRig rig(
      {.streams_max = 3, .stream_idle_us = 7, .units_open = units_open, .timeout_us = 5, .incomplete = incomplete}, buffers);
  Outcome outcome;
  for (int step = 0; step < 20'000 && outcome.difference.empty(); ++step) {
    switch (random(16)) {
      case 0: rig.wait(1 + random(3000)); break;
      case 1: rig.expire(random(2) == 0); break;
      case 2:
        if (random(50) == 0) rig.flush();
        break;
      case 3:
      case 4: rig.give_back(); break;
      default: rig.take(random);
    }
    outcome.difference = rig.difference();
  }
  rig.flush();
  outcome.difference += rig.difference();
  for (std::size_t k = 0; k < flow::kCounterCount; ++k)
    outcome.counts.push_back(rig.assembler.counters().value(static_cast<flow::Counter>(k)));
  return outcome;
}

TEST(AssemblerModel, AgreesToThePacket) {
  using flow::Counter;
  std::vector<std::uint64_t> all(flow::kCounterCount);
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const Outcome outcome = run(seed);
    ASSERT_EQ(outcome.difference, "") << "seed " << seed;
    const auto count = [&](Counter counter) { return outcome.count(counter); };
    EXPECT_EQ(count(Counter::units_begun), count(Counter::units_complete) + count(Counter::units_timed_out) +
                                               count(Counter::units_overflow) + count(Counter::units_flushed));
    EXPECT_EQ(count(Counter::units_begun), count(Counter::units_handed_over) + count(Counter::units_discarded));
    for (std::size_t k = 0; k < all.size(); ++k) all[k] += outcome.counts[k];
  }
  // The packets were bad in every way, and the units ended in all.
  for (const Counter counter :
       {Counter::packets_accepted, Counter::packets_duplicate, Counter::packets_overlap, Counter::packets_bad_place,
        Counter::packets_bad_unit, Counter::packets_unit_too_long, Counter::packets_no_stream, Counter::packets_late,
        Counter::packets_clop_full, Counter::packets_marker, Counter::packets_lost_network, Counter::units_complete,
        Counter::units_timed_out, Counter::units_overflow, Counter::units_flushed, Counter::units_discarded,
        Counter::units_no_buffer, Counter::streams_evicted}) {
    EXPECT_GT(all[static_cast<std::size_t>(counter)], 20u) << flow::kCounterTable[static_cast<std::size_t>(counter)].name;
  }
}

}  // namespace
}  // namespace nanet::engine
