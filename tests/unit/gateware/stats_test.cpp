// SPDX-License-Identifier: Apache-2.0
// Statistics of stages against the stamps of footers and the cycles of the bus: equal to the cycle, each packet in one period.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "nic_rig.hpp"

namespace nanet::link::gateware {
namespace {

using test::Bytes;
using test::Rig;

constexpr std::uint16_t kPort = 6200;
using Samples = std::array<std::vector<std::uint64_t>, kStageCount>;

StageStats stats_of(std::span<const std::uint64_t> samples) {
  StageStats stats;
  if (samples.empty()) return stats;
  stats.count = samples.size();
  stats.min = *std::min_element(samples.begin(), samples.end());
  stats.max = *std::max_element(samples.begin(), samples.end());
  stats.sum = std::accumulate(samples.begin(), samples.end(), std::uint64_t{0});
  for (const std::uint64_t sample : samples) {
    unsigned bin = 0;
    while (bin + 1 < StageStats::bin_count && StageStats::bin_floor(bin + 1) <= sample) ++bin;
    ++stats.bins[bin];
  }
  return stats;
}

void expect_equal(const StageStats& found, const StageStats& expected, unsigned stage) {
  EXPECT_EQ(found.count, expected.count) << "stage " << stage;
  EXPECT_EQ(found.min, expected.min) << "stage " << stage;
  EXPECT_EQ(found.max, expected.max) << "stage " << stage;
  EXPECT_EQ(found.sum, expected.sum) << "stage " << stage;
  EXPECT_EQ(found.bins, expected.bins) << "stage " << stage;
}

// Reads buffers with footers, and the bus's requests beside, into samples.
class Reader {
 public:
  explicit Reader(Rig& rig) : rig_(rig) { rig.model.bus().keep_writes(true); }

  // Takes all that is there; returns how many packets.
  std::size_t read(Samples& samples) {
    std::size_t packets = 0;
    while (const Completion* found = rig_.driver->poll()) {
      std::vector<std::uint64_t> ends;
      for (const PacketRef& packet : rig_.driver->packets(*found)) {
        const auto stamps = rig_.driver->stamps(*found, packet);
        for (std::size_t k = 0; k < 3; ++k) samples[k].push_back(stamps[k + 1] - stamps[k]);
        ends.push_back(stamps[3]);
        ++packets;
      }
      completed_.push_back(std::move(ends));
      rig_.driver->release(1, found->clop);
    }
    return packets;
  }

  // Of buffers, from when the bus took their completions: it takes everything equally long after the stamps, as it is always ready.
  void add_completions(Samples& samples, std::uint64_t bus_cycles) {
    std::size_t number = 0;
    const auto& pages = rig_.device.mapped.front().pages;  // the completion queue's
    for (const nanet::gateware::WriteRequest& write : rig_.model.bus().writes()) {
      const std::uint64_t page = write.address & ~std::uint64_t{4095};
      if (std::find(pages.begin(), pages.end(), page) == pages.end()) continue;
      ASSERT_LT(number, completed_.size());
      const std::uint64_t cycle = write.last_cycle - bus_cycles;
      samples[3].push_back(cycle - completed_[number].back());
      samples[4].push_back(cycle - completed_[number].front());
      ++number;
    }
    EXPECT_EQ(number, completed_.size());
  }

  // From a stamp to the bus: of a packet whose payload is one request and the first of all.
  std::uint64_t bus_cycles() const { return rig_.model.bus().writes().front().last_cycle - completed_.front().front(); }

 private:
  Rig& rig_;
  std::vector<std::vector<std::uint64_t>> completed_;  // ends of its packets, of each buffer
};

TEST(StageStats, BinsLieOneBehindTheOther) {
  EXPECT_EQ(StageStats::bin_floor(0), 0u);
  EXPECT_EQ(StageStats::bin_floor(31), 31u);
  EXPECT_EQ(StageStats::bin_floor(32), 32u);
  EXPECT_EQ(StageStats::bin_floor(33), 40u);
  EXPECT_EQ(StageStats::bin_floor(63), 7168u);
  for (unsigned bin = 1; bin < StageStats::bin_count; ++bin) EXPECT_GT(StageStats::bin_floor(bin), StageStats::bin_floor(bin - 1));
}

TEST(StageStats, AgreeWithFootersAndTheBusToTheCycle) {
  const ClopConfig other{.buffer_count = 4, .packets_per_buffer = 7, .timeout_ns = 2000, .footer = true};
  Rig rig({.clops = {{.buffer_count = 8, .packets_per_buffer = 16, .timeout_ns = 30'000, .footer = true}, other}});
  rig.driver->set_match({.index = 0, .port = kPort});
  rig.driver->set_match({.index = 1, .port = kPort + 1, .clop = 1});
  Reader reader(rig);
  Samples samples;
  std::mt19937_64 random(5);
  std::size_t packets = 0;
  constexpr std::size_t kPackets = 600;
  std::uint64_t cycle = rig.model.cycle();
  for (std::size_t k = 0; k < kPackets; ++k) {
    const std::size_t bytes = k == 0 ? 100 : 1 + random() % (random() % 8 == 0 ? 8960 : 1472);
    const auto port = static_cast<std::uint16_t>(kPort + (k == 0 ? 1 : random() % 2));
    cycle += k == 1 ? 3000 : random() % 4 == 0 ? random() % 3000 : 0;  // the first is handed over by itself
    rig.model.wire_in().push(test::frame_to(port, Bytes(bytes)), cycle);
  }
  for (int k = 0; k < 1'000'000 && packets < kPackets; ++k) {
    rig.device.poll();
    packets += reader.read(samples);
  }
  ASSERT_EQ(packets, kPackets);
  reader.add_completions(samples, reader.bus_cycles());
  const auto found = rig.driver->take_stage_stats();
  for (unsigned stage = 0; stage < kStageCount; ++stage) expect_equal(found[stage], stats_of(samples[stage]), stage);
  EXPECT_EQ(found[0].count, kPackets);
  EXPECT_GT(found[4].max, found[3].max);
  EXPECT_GT(found[2].bins[StageStats::bin_count / 2 + 10], 0u);  // some took long: not all is in the exact bins
  const auto again = rig.driver->take_stage_stats();
  for (unsigned stage = 0; stage < kStageCount; ++stage) expect_equal(again[stage], {}, stage);
}

// Taken at any time, while packets go on, on a slow bus: the periods together are the whole.
TEST(StageStats, EveryPacketIsInExactlyOnePeriod) {
  Rig rig({.clops = {{.buffer_count = 16, .packets_per_buffer = 8, .timeout_ns = 2000, .footer = true}}},
          {.write_cycles = 50, .busy_per_1024 = 150, .seed = 4});
  rig.driver->set_match({.index = 0, .port = kPort});
  Reader reader(rig);
  Samples samples;
  std::array<StageStats, kStageCount> sums;
  const auto take = [&] {
    const auto part = rig.driver->take_stage_stats();
    for (unsigned stage = 0; stage < kStageCount; ++stage) sums[stage].add(part[stage]);
  };
  std::mt19937_64 random(4);
  std::size_t packets = 0;
  constexpr std::size_t kPackets = 1500;
  for (std::size_t k = 0; k < kPackets; ++k) rig.push(kPort, Bytes(1 + random() % 300));
  for (int k = 0; k < 100'000 && packets < kPackets; ++k) {
    rig.model.step(random() % 40);
    if (random() % 16 == 0) take();
    packets += reader.read(samples);
  }
  ASSERT_EQ(packets, kPackets);
  take();
  for (unsigned stage = 0; stage < 3; ++stage) expect_equal(sums[stage], stats_of(samples[stage]), stage);
  EXPECT_EQ(sums[3].count, sums[4].count);
  EXPECT_GE(sums[4].sum, sums[3].sum);
}

// Counted without footers too; what is not stored is not.
TEST(StageStats, AreOfStoredPacketsOnly) {
  Rig rig({.clops = {{.buffer_count = 2, .packets_per_buffer = 2, .timeout_ns = 0}}});
  rig.driver->set_match({.index = 0, .port = kPort});
  for (int k = 0; k < 9; ++k) rig.push(kPort, Bytes(200));
  Bytes bad = test::frame_to(kPort, Bytes(200));
  bad[100] ^= std::byte{1};
  rig.model.wire_in().push(bad);
  rig.push(kPort + 1, Bytes(200));
  rig.run_dry();
  const auto stats = rig.driver->take_stage_stats();
  EXPECT_EQ(stats[0].count, 4u);  // two buffers of two
  EXPECT_EQ(stats[0].bins[16], 4u) << "the parser always takes as long";
  EXPECT_EQ(stats[1].min, stats[1].max) << "and so does what is before writing";
  EXPECT_EQ(stats[3].count, 2u);
}

}  // namespace
}  // namespace nanet::link::gateware
