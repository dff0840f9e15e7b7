// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/stream_merge.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "assembling_rig.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;

class StreamMergeTest : public AssemblingReceiverTest {};

TEST_F(StreamMergeTest, StreamsCanBeParts) {
  make({.streams_max = 1, .units_open = 2, .timeout_us = 1000, .merge = StreamMergeConfig{.streams = {70, 50, 60}, .part_bytes = 1000}});
  const auto part = [&](std::uint64_t stream, std::uint64_t place, std::uint32_t bytes, std::uint64_t unit_bytes = 1000) {
    give({.stream = stream, .unit = 4, .place = place, .bytes = bytes, .unit_bytes = unit_bytes});
  };
  part(60, 500, 500);
  part(50, 0, 1000);
  part(40, 0, 1000);  // of no one
  part(70, 0, 900);
  part(70, 900, 101, 0);  // would reach into the next part
  part(70, std::numeric_limits<std::uint64_t>::max(), 1, 0);
  part(70, 900, 100, 2000);
  part(60, 0, 500);
  poll();
  EXPECT_FALSE(take());
  EXPECT_EQ(count(Counter::packets_unknown_stream), 1u);
  EXPECT_EQ(count(Counter::packets_bad_place), 2u);
  EXPECT_EQ(count(Counter::packets_bad_unit), 1u);
  part(70, 900, 100);
  poll();
  const auto got = take();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->head.unit, 4u);
  ASSERT_EQ(got->bytes.size(), 3000u);
  const std::uint64_t streams[] = {70, 50, 60};
  for (std::uint32_t b = 0; b < 3000; ++b) ASSERT_EQ(got->bytes[b], test::byte_of(streams[b / 1000], 4, b % 1000)) << b;
}

// Three streams whose units have numbers of their own, and clocks that differ by up to 4 ticks of 10 ns; packets of neighbouring units come mixed.
TEST_F(StreamMergeTest, StreamsAreMergedByTime) {
  make({.units_open = 3,
        .timeout_us = 1000,
        .merge = StreamMergeConfig{.streams = {70, 50, 60}, .part_bytes = 100, .by = MergeBy::time, .tolerance_ns = 49}},
       8);
  const auto part = [&](std::uint64_t stream, std::uint32_t time, std::uint64_t place = 0, std::uint32_t bytes = 100) {
    give({.stream = stream, .unit = stream + time, .place = place, .bytes = bytes, .unit_bytes = 100, .time = time});
  };
  part(70, 1000, 50, 50);
  part(50, 1012);
  part(60, 1004);
  part(70, 1000, 0, 50);
  part(50, 996);
  part(60, 1016);
  part(70, 1012);
  part(70, 1040);
  part(60, 1045);  // no one's: 50 ns away
  part(50, 1036);
  poll();
  std::vector<std::uint64_t> numbers;
  while (const auto got = take()) {
    numbers.push_back(got->head.unit);
    EXPECT_EQ(got->head.bytes, 300u);
    EXPECT_EQ(got->head.bytes_missing, 0u);
    const std::uint64_t times[] = {got->head.unit, got->head.unit == 1000 ? 996u : 1012u, got->head.unit + 4};
    const std::uint64_t streams[] = {70, 50, 60};
    for (std::uint32_t b = 0; b < 300; ++b)
      ASSERT_EQ(got->bytes[b], test::byte_of(streams[b / 100], streams[b / 100] + times[b / 100], b % 100)) << b;
  }
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1000, 1012}));
  poll(1'000'000'000);
  std::vector<std::uint32_t> missing;
  while (const auto got = take()) missing.push_back(got->head.bytes_missing);
  EXPECT_EQ(missing, (std::vector<std::uint32_t>{100, 200}));
  EXPECT_EQ(count(Counter::packets_accepted), 10u);
}

TEST(StreamMerge, TimesComeFromTheFormat) {
  const StreamMergeConfig config{.streams = {1}, .part_bytes = 8, .by = MergeBy::time};
  EXPECT_THROW(StreamMerge(config, {}), SetupError);
  const auto unit_of = [](std::optional<MergeBy> by, bool merges) {
    StreamMerge merge(StreamMergeConfig{.streams = {1}, .part_bytes = 8, .by = by}, {.tick_ns = 1, .merges = merges});
    UnitFacts facts{.stream = 1, .unit = 5, .time = 6, .payload_bytes = 8};
    EXPECT_FALSE(merge.map(facts));
    return facts.unit;
  };
  EXPECT_EQ(unit_of({}, true), 6u);
  EXPECT_EQ(unit_of({}, false), 5u);
  EXPECT_EQ(unit_of(MergeBy::unit, true), 5u);
  EXPECT_EQ(unit_of(MergeBy::time, false), 6u);
}

TEST(TimeGroups, AreOfACircleAndRememberALimitedPast) {
  TimeGroups times(10);
  EXPECT_EQ(times.group_of(UINT64_MAX - 3), UINT64_MAX - 3);
  EXPECT_EQ(times.group_of(4), UINT64_MAX - 3) << "8 later";
  EXPECT_EQ(times.group_of(7), 7u) << "11 later";
  for (std::uint64_t k = 1; k <= 126; ++k) EXPECT_EQ(times.group_of(1000 * k), 1000 * k);
  EXPECT_EQ(times.group_of(2), 7u) << "the newer of two";
  EXPECT_EQ(times.group_of(UINT64_MAX - 10), UINT64_MAX - 3);
  EXPECT_EQ(times.group_of(500'000), 500'000u);
  EXPECT_EQ(times.group_of(UINT64_MAX - 10), UINT64_MAX - 10) << "the oldest is forgotten";
}

TEST(AssembleConfig, MergeNeedsDifferentStreamsAndOneRule) {
  EXPECT_FALSE(AssembleConfig{}.check());
  const StreamMergeConfig two{.streams = {1, 2}, .part_bytes = 5};
  EXPECT_FALSE(two.check());
  EXPECT_EQ((StreamMergeConfig{.streams = {1, 2, 1}, .part_bytes = 5}.check().value().key), "streams");
  EXPECT_EQ((StreamMergeConfig{.streams = {1}, .part_bytes = 5, .by = MergeBy::unit, .tolerance_ns = 1}.check().value().key),
            "tolerance_ns");
  EXPECT_FALSE((AssembleConfig{.unit_step = 3, .merge = two}.check()));
  EXPECT_EQ((AssembleConfig{.streams = {{.first = 1, .last = 2}}, .merge = two}.check().value().key), "streams");
  const StreamMergeConfig near{.streams = {1, 2}, .part_bytes = 5, .by = MergeBy::time, .tolerance_ns = 1};
  EXPECT_EQ((AssembleConfig{.unit_step = 3, .merge = near}.check().value().key), "unit_step");
  EXPECT_FALSE((StreamRangeConfig{.first = 5, .last = 5}.check()));
  EXPECT_EQ((StreamRangeConfig{.first = 6, .last = 5}.check().value().key), "last");
}

}  // namespace
}  // namespace nanet::engine
