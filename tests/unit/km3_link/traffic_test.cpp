// SPDX-License-Identifier: Apache-2.0
// A link with every slot full: what it carries, and that nothing comes later for it.
#include "model/km3/traffic_test.hpp"

#include <gtest/gtest.h>

namespace nanet::gateware::km3::test {
namespace {

constexpr std::uint64_t kFrames = 20;

void expect_full_and_fixed(Size size, std::uint32_t line_mbps, std::uint32_t frame_words, std::uint32_t slot_words) {
  Settings settings;
  settings.size = size;
  const TrafficResult result = traffic_test(settings, kFrames);
  ASSERT_TRUE(result.up);
  EXPECT_EQ(result.line_mbps, line_mbps);
  EXPECT_EQ(result.frame_words, frame_words);
  EXPECT_DOUBLE_EQ(result.payload_fraction, static_cast<double>(slot_words) / frame_words) << "every slot is full";
  EXPECT_GE(result.payload_fraction, 0.99);
  EXPECT_EQ(result.wrong(), 0u);
  EXPECT_GT(result.seen.control_words, 0u);
  EXPECT_GT(result.seen.express_down.count(), kFrames);
  EXPECT_GT(result.seen.express_up.count(), kFrames);
  EXPECT_EQ(result.latency_values(), 1u);
}

TEST(Km3Traffic, At800Mbps) { expect_full_and_fixed(Size::mbps_800, 800, 4000, 3976); }
TEST(Km3Traffic, At2500Mbps) { expect_full_and_fixed(Size::mbps_2500, 2500, 12500, 12476); }

// More codes than a frame has room for: the frame is cut and said to be, and nothing else is.
TEST(Km3Traffic, TooManyCodesCutFrames) {
  Settings settings;
  const auto loop = make_loop(settings);
  ASSERT_TRUE(bring_up(*loop));
  loop->busy_up = true;
  loop->run(std::uint64_t{30} * loop->frame_words());
  EXPECT_EQ(loop->seen().error_cut, 0u);
  loop->express_every = 3;
  loop->run(std::uint64_t{30} * loop->frame_words());
  const Seen& seen = loop->seen();
  EXPECT_GT(seen.error_cut, 10u);
  EXPECT_GT(seen.shore[Count::drop_cut] + seen.floor[Count::drop_cut], 10u);
  EXPECT_EQ(seen.wrong_words + seen.wrong_express + seen.wrong_times + seen.wrong_control, 0u);
  EXPECT_EQ(seen.express_down.different(), 1u);
  EXPECT_EQ(seen.express_up.different(), 1u);
  EXPECT_EQ(seen.down.different(), 1u);
  EXPECT_EQ(seen.round_trip.different(), 1u);
}

}  // namespace
}  // namespace nanet::gateware::km3::test
