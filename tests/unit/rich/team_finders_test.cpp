// SPDX-License-Identifier: Apache-2.0
// The GPU's finders by teams of lanes, on an emulated warp: the bits of the function on one event, whatever the order of the lanes.
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "classic_finders.hpp"
#include "emulated_cuda.hpp"
#include "gpu/kernels/fast_solve.hpp"
#include "gpu/kernels/packed_points.hpp"
#include "gpu/kernels/team_almagest.cuh"
#include "gpu/kernels/team_histogram.cuh"
#include "gpu/kernels/team_math.cuh"
#include "gpu/kernels/team_triplets.cuh"
#include "nanet/rich/finder.hpp"

namespace nanet::gpu {
namespace {

// As gpu/tables.cpp makes them.
struct HostTables {
  HostTables() {
    for (std::size_t row = 0; row < packed.size(); ++row) {
      const rich::PmPoint& point = rich::kPmPoints[row];
      if (point.mapped != 0) packed[row] = pack_point(point.i, point.j);
    }
    for (std::uint32_t z = 0; z < kCellRows; ++z) cells[z] = cell_of(rich::radius_bin(static_cast<std::int32_t>(z)));
  }
  DeviceTables device() const { return {rich::kPmPoints.data(), packed.data(), cells.data()}; }

  alignas(16) std::array<PackedPoint, rich::kPmPointRows> packed{};
  alignas(16) std::array<std::uint16_t, kCellRows> cells{};
};

template <class Finder, unsigned lanes>
void expect_same_bits(std::span<const rich::classic::Hits> events, const rich::FinderConfig& config) {
  static const HostTables tables;
  static std::array<typename Finder::Shared, 32 / lanes> shared;
  std::memset(static_cast<void*>(&shared), 0xa5, sizeof shared);  // as another finder left it
  bool backwards = false;
  for (const rich::classic::Hits& hits : events) {
    const event::Event event = rich::classic::as_event(hits);
    std::array<rich::EventRings, 32 / lanes> found;
    rich::EmulatedWarp::run(
        [&] {
          const unsigned team = threadIdx.x / lanes;
          const rich::EventRings rings = Finder::find(config, event, tables.device(), shared[team]);
          if (threadIdx.x % lanes == 0) found[team] = rings;
        },
        backwards);
    backwards = !backwards;
    rich::EventRings expected = rich::find_rings_scalar(config, event);
    expected.more_rings = 0;  // which a finder alone does not look for
    for (const rich::EventRings& rings : found) {
      ASSERT_TRUE(rich::classic::same_bits(rings, expected)) << "event " << &hits - events.data() << " of " << event.count << " hits";
    }
  }
}

std::span<const rich::classic::Hits> some_events(std::size_t count) { return std::span(rich::classic::any_events()).first(count); }

TEST(TeamFinders, MathByFourLanes) {
  expect_same_bits<TeamFinder<rich::FinderKind::math>, 4>(some_events(400), {.kind = rich::FinderKind::math});
}

TEST(TeamFinders, AlmagestByAnyNumberOfLanes) {
  rich::FinderConfig config{.kind = rich::FinderKind::almagest};
  expect_same_bits<AlmagestTeam<8>, 8>(some_events(200), config);
  expect_same_bits<AlmagestTeam<16>, 16>(some_events(200), config);
  expect_same_bits<AlmagestTeam<32>, 32>(some_events(200), config);
}

TEST(TeamFinders, AlmagestWithTimeWindowAndPtolemysTest) {
  rich::FinderConfig config{.kind = rich::FinderKind::almagest};
  config.almagest.time_window_ns = 2.0F;
  config.almagest.ptolemy_hits_min = 5;
  config.almagest.score_enough = 0.2F;
  config.almagest.circumradius_max_mm = 400.0F;
  expect_same_bits<AlmagestTeam<8>, 8>(some_events(100), config);
  expect_same_bits<AlmagestTeam<16>, 16>(some_events(100), config);
}

TEST(TeamFinders, HistogramByAWarp) {
  rich::FinderConfig config{.kind = rich::FinderKind::histogram};
  expect_same_bits<TeamFinder<rich::FinderKind::histogram>, 32>(some_events(60), config);
  config.histogram.center_range_mm = -1.0F;
  config.histogram.min_hits = 3;
  config.histogram.significance_min = -5.0F;
  config.histogram.share_passes = 20;
  expect_same_bits<TeamFinder<rich::FinderKind::histogram>, 32>(some_events(60), config);
}

// All hits in one bin: more than a byte of a score holds.
TEST(TeamFinders, HistogramOfVeryManyHits) {
  const std::vector<rich::classic::Hits> events{rich::classic::Hits(128, 100), rich::classic::Hits(127, 100)};
  expect_same_bits<TeamFinder<rich::FinderKind::histogram>, 32>(events, {.kind = rich::FinderKind::histogram});
}

TEST(TeamFinders, TripletsByAWarp) {
  rich::FinderConfig config{.kind = rich::FinderKind::triplets};
  expect_same_bits<TeamFinder<rich::FinderKind::triplets>, 32>(some_events(40), config);
  config.triplets.time_use = 1;
  config.triplets.exchange_passes = 3;
  config.triplets.gain_min = 2.0F;
  expect_same_bits<TeamFinder<rich::FinderKind::triplets>, 32>(some_events(20), config);
}

// The closed form with fewer operations, of hits anywhere: on a line, on one PM, none.
TEST(FastSolve, SameBitsAsSolveRing) {
  std::mt19937 random(5);
  for (int event = 0; event < 100000; ++event) {
    const auto count = static_cast<std::uint32_t>(random() % (event % 16 == 0 ? 129 : 30));
    const std::int32_t spread = event % 8 == 1 ? 3 : 67;
    rich::RingSums sums;
    for (std::uint32_t k = 0; k < count; ++k) {
      const auto i = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(spread)) - spread / 2;
      const auto j = event % 4 == 2 ? 2 : static_cast<std::int32_t>(random() % 39) - 19;
      rich::add(sums, rich::make_ring_sums_row(i, j));
    }
    const rich::Ring ring = fast_solve_ring(sums);
    const rich::Ring expected = rich::solve_ring(sums);
    ASSERT_EQ(std::memcmp(&ring, &expected, sizeof ring), 0) << "event " << event;
  }
}

TEST(PackedSums, AreTheSumsOfTheHits) {
  std::mt19937 random(6);
  for (int event = 0; event < 2000; ++event) {
    PackedSums packed;
    rich::RingSums expected;
    const auto fours = static_cast<std::uint32_t>(random() % 33);
    for (std::uint32_t four = 0; four < fours; ++four) {
      std::array<PackedPoint, 4> points{};
      for (PackedPoint& point : points) {
        const rich::PmPoint& pm = rich::kPmPoints[event % 2 == 0 ? random() % 1024 : 480 + random() % 8];
        if (pm.mapped == 0) continue;
        point = pack_point(pm.i, pm.j);
        rich::add(expected, rich::make_ring_sums_row(pm.i, pm.j));
        ASSERT_EQ(sums_of(point), rich::make_ring_sums_row(pm.i, pm.j));
      }
      packed.add(points[0], points[1], points[2], points[3]);
    }
    ASSERT_EQ(packed.sums(), expected) << "event " << event;
  }
}

}  // namespace
}  // namespace nanet::gpu
