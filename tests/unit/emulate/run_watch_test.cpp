// SPDX-License-Identifier: Apache-2.0
#include "emulate/run_watch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace nanet::emulate {
namespace {

TEST(StallWatch, SumsGapsAboveTheThreshold) {
  StallWatch stalls(1000);
  stalls.look(1'000'000);  // the first look is no stall
  stalls.look(1'001'000);  // exactly the threshold is none
  EXPECT_EQ(stalls.snapshot().count, 0u);
  EXPECT_EQ(stalls.last_end_ns(), 0u);
  stalls.look(1'002'001);
  stalls.look(1'002'101);
  stalls.look(1'009'101);
  const StallTotals totals = stalls.snapshot();
  EXPECT_EQ(totals.count, 2u);
  EXPECT_EQ(totals.total_ns, 8001u);
  EXPECT_EQ(totals.longest_ns, 7000u);
  EXPECT_EQ(stalls.last_end_ns(), 1'009'101u);
}

TEST(StallWatch, SleepOfOnesOwnIsNoStall) {
  StallWatch stalls(1000);
  stalls.look(1'000'000);
  stalls.skip_to(2'000'000);
  stalls.look(2'000'500);
  EXPECT_EQ(stalls.snapshot().count, 0u);
  stalls.look(2'002'000);
  EXPECT_EQ(stalls.snapshot().total_ns, 1500u);
}

TEST(Course, StepsHoldDifferencesAndPercentiles) {
  Course course;
  course.start(1000);
  for (std::uint64_t latency = 1; latency <= 100; ++latency) course.record(latency * 1000, 10);
  course.look(1000 + Course::kStepNs - 1, 900, 800);
  EXPECT_TRUE(course.snapshot().empty());
  course.look(1000 + Course::kStepNs, 1100, 1000);
  course.record(5, 1);
  course.look(1000 + 2 * Course::kStepNs + 7, 1500, 1001);
  course.close_step(1000 + 2 * Course::kStepNs + 50, 1500, 1001);
  const auto points = course.snapshot();
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].end_ns, Course::kStepNs);
  EXPECT_EQ(points[0].events_sent, 1100u);
  EXPECT_EQ(points[0].events_answered, 1000u);
  EXPECT_GE(points[0].p50_ns, 50'000u);
  EXPECT_LE(points[0].p50_ns, 51'600u);
  EXPECT_GE(points[0].p99_ns, 99'000u);
  EXPECT_LE(points[0].p99_ns, 100'000u);
  EXPECT_EQ(points[0].max_ns, 100'000u);
  EXPECT_EQ(points[1].events_sent, 400u);
  EXPECT_EQ(points[1].events_answered, 1u);
  EXPECT_EQ(points[1].p50_ns, 5u);
  EXPECT_EQ(points[1].max_ns, 5u);
  EXPECT_EQ(points[2].events_sent, 0u);
  EXPECT_EQ(points[2].max_ns, 0u);
}

TEST(Course, TakesAnyLatency) {
  Course course;
  course.start(0);
  course.record(~std::uint64_t{0}, 1);
  course.record(0, 1);
  course.close_step(1, 0, 0);
  EXPECT_EQ(course.snapshot().at(0).max_ns, ~std::uint64_t{0});
  EXPECT_EQ(course.snapshot().at(0).p50_ns, 0u);
}

TEST(Course, KeepsTheNewestPoints) {
  Course course;
  course.start(0);
  for (std::uint64_t step = 1; step <= Course::kPointsMax + 10; ++step) course.look(step * Course::kStepNs, step, 0);
  const auto points = course.snapshot();
  ASSERT_EQ(points.size(), Course::kPointsMax);
  EXPECT_EQ(points.front().end_ns, 11 * Course::kStepNs);
  EXPECT_EQ(points.back().end_ns, (Course::kPointsMax + 10) * Course::kStepNs);
}

TEST(Course, ReaderNeverSeesATornPoint) {
  Course course;
  course.start(0);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint64_t step = 1; step <= 30'000; ++step) course.look(step * Course::kStepNs, step * (step + 1) / 2, step * step);
    done = true;
  });
  while (!done) {
    for (const CoursePoint& point : course.snapshot()) {
      const std::uint64_t step = point.end_ns / Course::kStepNs;
      ASSERT_EQ(point.events_sent, step);
      ASSERT_EQ(point.events_answered, 2 * step - 1);
    }
  }
  writer.join();
}

}  // namespace
}  // namespace nanet::emulate
