// SPDX-License-Identifier: Apache-2.0
// Detector files of every version, places and ends told by distance, and what is refused.
#include "nanet/km3/detector.hpp"

#include <gtest/gtest.h>
#include <cmath>

#include "nanet/setup_error.hpp"

namespace nanet::km3 {
namespace {

constexpr const char* kVersion3 =
    "# a comment\n"
    "23 v3\n"
    "1500000000.1 9999999999.0\n"
    "UTM WGS84 32N 256500.0 4743000.0 -2425.0\n"
    "2\n"
    "\n"
    "7 1 1 3\n"
    " 1 1.1 1.2 1.3 -1.1 0.2 0.3 10.0 0\n"
    " 2 1.4 1.5 1.6 0.1 -1.2 0.3 20.1 0\n"
    " 3 1.7 1.8 1.9 0.1 0.2 -1.3 30.2 1\n"
    "8 1 2 1\n"
    " 4 2.1 +2.2 22.3 -1.1 0.2 0.3 9.5 0\r\n";

std::string refusal_of(const std::string& text) {
  try {
    (void)read_detx(text);
  } catch (const SetupError& error) {
    return error.what();
  }
  return {};
}

TEST(DetectorFile, IsReadWithAllItSays) {
  const Detector detector = read_detx(kVersion3);
  EXPECT_EQ(detector.head().id, 23);
  EXPECT_EQ(detector.head().valid_from_s, 1500000000.1);
  EXPECT_EQ(detector.head().place_on_earth, "UTM WGS84 32N 256500.0 4743000.0 -2425.0");
  ASSERT_EQ(detector.floors().size(), 2u);
  ASSERT_EQ(detector.pms().size(), 4u);
  EXPECT_EQ(detector.floors()[1].id, 8);
  EXPECT_EQ(detector.floors()[1].first_pm, 3u);
  EXPECT_EQ(detector.floor_with_id(8), 1u);
  EXPECT_EQ(detector.floor_at(1, 2), 1u);
  EXPECT_EQ(detector.floor_at(2, 1), 2u) << "there is none";
  const Pm& pm = detector.pms()[3];
  EXPECT_EQ(pm.id, 4);
  EXPECT_EQ(pm.floor, 1u);
  EXPECT_EQ(pm.number, 0);
  EXPECT_EQ(pm.position_m.y, 2.2);
  EXPECT_EQ(pm.direction.x, -1.1);
  EXPECT_EQ(detector.pms()[2].status, 1);
}

TEST(DetectorFile, IsReadAgainAsItWasWritten) {
  const Detector detector = read_detx(kVersion3);
  const std::string text = write_detx(detector);
  EXPECT_EQ(write_detx(read_detx(text)), text);
  const Detector towers = read_detx(write_detx(make_towers({.towers = 2})));
  ASSERT_EQ(towers.pms().size(), 168u);
  EXPECT_EQ(towers.pms()[5].end, End::second);
}

TEST(DetectorFile, OlderAndNewerVersions) {
  const Detector first = read_detx("1 1\n5 1 -1 1\n 1 0 0 0 0 0 1 5\n");
  EXPECT_EQ(first.floors()[0].number, 1) << "files with floor -1 count them in their order";
  const std::string head = "0 9\nUTM WGS84 32N 0 0 0\n1\n";
  const Detector fourth = read_detx("44 V4\n" + head + "5 1 2 +1.5 2 3 1 0 0 0 0 1\n 1 0 0 0 0 0 1 5 7\n");
  EXPECT_EQ(fourth.pms()[0].status, 7);
  EXPECT_EQ(fourth.floors()[0].number, 2);
  const Detector fifth = read_detx("44 V5\n" + head + "5 1 2 1.5 2 3 1 0 0 0 0 0 1\n 1 0 0 0 0 0 1 5 7\n");
  EXPECT_EQ(fifth.pms()[0].time_offset_ns, 5);
}

TEST(DetectorFile, RefusalsNameTheLine) {
  EXPECT_NE(refusal_of("44 v6\n").find("line 1: version 6"), std::string::npos) << refusal_of("44 v6\n");
  EXPECT_NE(refusal_of("1 1\n5 1 1 2\n 1 0 0 0 0 0 1 5\n").find("a PM is missing"), std::string::npos);
  EXPECT_NE(refusal_of("1 1\n5 1 1 1\n 1 0 0 x 0 0 1 5\n").find("line 3: 'x'"), std::string::npos);
  EXPECT_NE(refusal_of("1 1\n5 1 1 1\n 1 0 0 0 0 0 1 5 6 7\n").find("line 3: a line is too long"), std::string::npos);
  EXPECT_NE(refusal_of("1 2\n5 1 1 1\n 1 0 0 0 0 0 1 5\n").find("the head says 2"), std::string::npos);
  EXPECT_NE(refusal_of("1 1\n5 1 1 1\n 1 0 0 nan 0 0 1 5\n").find("no number"), std::string::npos);
  EXPECT_NE(refusal_of("1 2\n5 1 1 1\n 1 0 0 0 0 0 1 5\n5 1 2 0\n").find("comes twice"), std::string::npos);
  EXPECT_NE(refusal_of("1 1\n5 1 1 256\n" + std::string(256 * 18, ' ')).find("a PM is missing"), std::string::npos);
  EXPECT_NE(refusal_of("").find("the head is missing"), std::string::npos);
}

TEST(Detector, TowersAreAsTheyShouldBe) {
  const Detector detector = make_towers({.towers = 4});
  ASSERT_EQ(detector.floors().size(), 56u);
  ASSERT_EQ(detector.pms().size(), 336u);
  for (const Floor& floor : detector.floors()) {
    for (std::uint32_t k = 0; k < 6; ++k) {
      const Pm& pm = detector.pms()[floor.first_pm + k];
      EXPECT_EQ(pm.number, k);
      EXPECT_EQ(pm.place, k / 2);
      EXPECT_EQ(pm.end, k < 2 ? End::first : k < 4 ? End::none : End::second);
      EXPECT_EQ(pm.position_m.z, 100.0 + 20.0 * (floor.number - 1));
    }
    const Vector& one = detector.pms()[floor.first_pm + 1].position_m;
    const Vector& other = detector.pms()[floor.first_pm + 5].position_m;
    EXPECT_EQ(std::abs(one.x - other.x), floor.number % 2 == 1 ? 8.0 : 0.0);
    EXPECT_EQ(std::abs(one.y - other.y), floor.number % 2 == 1 ? 0.0 : 8.0);
  }
  EXPECT_EQ(detector.floors()[14].id, 2 * 2048 + 8);
  EXPECT_THROW((void)make_towers({.towers = 0}), SetupError);
  EXPECT_THROW((void)make_towers({.bar_m = 3}), SetupError);
}

TEST(Detector, ShiftsBeginAtNothingAndAreExactParts) {
  const Detector detector = read_detx(kVersion3);
  EXPECT_EQ(detector.time_base_ns(), 9.5);
  EXPECT_EQ(detector.time_shifts_ns()[3], 0.0);
  EXPECT_EQ(detector.time_shifts_ns()[0], 0.5);
  EXPECT_EQ(detector.time_shifts_ns()[2] * 1024, std::round(20.7 * 1024));
  EXPECT_EQ(detector.time_shift_ns_max(), detector.time_shifts_ns()[2]);
}

}  // namespace
}  // namespace nanet::km3
