// SPDX-License-Identifier: Apache-2.0
// Rings a little outside the range of the cuts are refused by name, and not answered as rings inside it.
#include "rich/search_range.hpp"

#include "classic_finders.hpp"

namespace nanet::rich {
namespace {

struct Outcome {
  int good = 0;     // rings answered, none of which is there
  int outside = 0;  // refused by name
};

// Events with a ring of `radius_mm` about the disk's middle and 14 hits.
Outcome outcome_of(const FinderConfig& finder, double radius_low_mm, double radius_high_mm) {
  Outcome outcome;
  classic::Source source(71);
  const RingCuts cuts;
  for (int e = 0; e < 300; ++e) {
    const double radius_mm = source.uniform(radius_low_mm, radius_high_mm);
    const double x_mm = source.uniform(-40, 40);
    const double y_mm = source.uniform(-40, 40);
    std::set<std::uint16_t> channels;
    for (int k = 0; k < 14; ++k) {
      const double phi = source.uniform(0.0, 6.283185307179586);
      const double here_mm = radius_mm + source.uniform(-3, 3);
      const auto channel = nearest_channel(x_mm + here_mm * std::cos(phi), y_mm + here_mm * std::sin(phi), 0);
      if (channel != kNoChannel) channels.insert(channel);
    }
    const classic::Hits hits(channels.begin(), channels.end());
    const Verdict verdict = judge(find_rings_scalar(finder, classic::as_event(hits)), cuts);
    outcome.good += verdict.rings;
    outcome.outside += verdict.outside;
  }
  return outcome;
}

TEST(SearchRange, RingsOutsideAreRefusedAndNotAnsweredAsOthers) {
  for (const FinderKind kind : {FinderKind::triplets, FinderKind::mixture}) {
    FinderConfig finder;
    finder.kind = kind;
    finder.mixture.deep_rings = 5;
    const Outcome small_before = outcome_of(finder, 45, 64);
    const Outcome large_before = outcome_of(finder, 217, 235);
    set_search_range(finder, RingCuts{});
    const Outcome small = outcome_of(finder, 45, 64);
    const Outcome large = outcome_of(finder, 217, 235);
    if (kind == FinderKind::mixture) {  // triplets' own range refused most of them already
      EXPECT_GT(small_before.good + large_before.good, 40) << finder_name(kind);
    }
    EXPECT_LE(small.good, 6) << finder_name(kind);
    EXPECT_LE(large.good, 9) << finder_name(kind);
    EXPECT_GE(small.outside, 270) << finder_name(kind);
    EXPECT_GE(large.outside, 180) << finder_name(kind);  // some of their light misses the disk
  }
}

TEST(SearchRange, IsThatOfTheCutsAndAMargin) {
  RingCuts cuts;
  cuts.radius_min_mm = 90;
  cuts.radius_max_mm = 180;
  cuts.center_max_mm = 120;
  FinderConfig finder;
  set_search_range(finder, cuts);
  EXPECT_EQ(finder.mixture.radius_min_mm, 60.0F);
  EXPECT_EQ(finder.triplets.triplet_radius_max_mm, 210.0F);
  EXPECT_EQ(finder.triplets.radius_min_mm, 60.0F);
  EXPECT_EQ(finder.triplets.center_max_mm, 150.0F);
  EXPECT_EQ(finder.pomh.radius_max_mm, 210.0F);
  cuts.radius_min_mm = 10;
  set_search_range(finder, cuts);
  EXPECT_EQ(finder.almagest.radius_min_mm, 0.0F);
}

}  // namespace
}  // namespace nanet::rich
