// SPDX-License-Identifier: Apache-2.0
#include "rich/math_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "hwy/highway.h"
#include "nanet/rich/pm_map.hpp"

namespace nanet::rich {
namespace {

using Hits = std::vector<std::uint16_t>;

Ring fit(const Hits& hits) { return fit_ring({hits.data(), static_cast<std::uint32_t>(hits.size())}); }

bool same_bits(const Ring& a, const Ring& b) { return std::memcmp(&a, &b, sizeof(Ring)) == 0; }

void expect_finite(const Ring& ring) {
  EXPECT_TRUE(std::isfinite(ring.x_mm) && std::isfinite(ring.y_mm) && std::isfinite(ring.radius_mm) && std::isfinite(ring.rms_mm));
  EXPECT_GE(ring.radius_mm, 0.0F);
  EXPECT_GE(ring.rms_mm, 0.0F);
}

// Different PMs near a circle, some with time bits.
Hits ring_hits(std::mt19937_64& engine, double x_mm, double y_mm, double radius_mm, int photons) {
  std::uniform_real_distribution<double> angle(0.0, 6.283185307179586);
  std::normal_distribution<double> smear(0.0, 2.5);
  std::set<std::uint16_t> channels;
  for (int k = 0; k < photons; ++k) {
    const double phi = angle(engine);
    const auto channel = nearest_channel(x_mm + radius_mm * std::cos(phi) + smear(engine),
                                         y_mm + radius_mm * std::sin(phi) + smear(engine), k % 2);
    if (channel != kNoChannel) channels.insert(channel);
  }
  Hits hits(channels.begin(), channels.end());
  std::shuffle(hits.begin(), hits.end(), engine);
  for (auto& hit : hits) hit = static_cast<std::uint16_t>(hit | (engine() & 0xf800));
  return hits;
}

// Any kind of event, good and degenerate.
Hits any_hits(std::mt19937_64& engine) {
  const auto pick = [&](int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); };
  Hits hits;
  switch (pick(8)) {
    case 0: {  // any words
      const int count = pick(40);
      for (int k = 0; k < count; ++k) hits.push_back(static_cast<std::uint16_t>(engine()));
      return hits;
    }
    case 1: {  // one PM, several times
      hits.assign(static_cast<std::size_t>(pick(10)), static_cast<std::uint16_t>(pick(2048)));
      return hits;
    }
    case 2: {  // two PMs
      const std::array<int, 2> channels{pick(2048), pick(2048)};
      for (int k = pick(12); k > 0; --k) hits.push_back(static_cast<std::uint16_t>(channels[static_cast<std::size_t>(pick(2))]));
      return hits;
    }
    case 3: {  // on one line, in one of the six directions of the grid
      const std::array<std::array<int, 2>, 6> directions{{{2, 0}, {1, 1}, {1, -1}, {3, 1}, {0, 2}, {3, -1}}};
      const auto& direction = directions[static_cast<std::size_t>(pick(6))];
      const int i = 2 * pick(10) - 9;
      const int j = 2 * pick(5) - 4;
      for (int k = -8; k <= 8; ++k) {
        const auto channel = channel_at(i + k * direction[0], j + k * direction[1], pick(2));
        if (channel != kNoChannel) hits.push_back(channel);
      }
      return hits;
    }
    case 4: {  // more than the limit
      const int count = 120 + pick(20);
      for (int k = 0; k < count; ++k) hits.push_back(static_cast<std::uint16_t>(pick(2048)));
      return hits;
    }
    default: return ring_hits(engine, pick(161) - 80.0, pick(161) - 80.0, 60.0 + pick(140), pick(36));
  }
}

struct Reference {
  long double x_mm, y_mm, radius_mm, rms_mm, geometric_rms_mm;
};

// x^2 + y^2 = A x + B y + C by the normal equations in mm and Gaussian elimination with pivoting: shares nothing with the fit but its aim.
std::optional<Reference> reference_fit(const Hits& hits) {
  std::vector<std::array<long double, 2>> points;
  for (const auto hit : hits) {
    const Pm& pm = kPmMap[hit & kChannelMask];
    if (pm.mapped) points.push_back({9.0L * pm.i, 9.0L * std::sqrt(3.0L) * pm.j});
  }
  std::array<std::array<long double, 4>, 3> m{};
  for (const auto& [x, y] : points) {
    const std::array<long double, 3> basis{x, y, 100.0L};
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 3; ++c) m[r][c] += basis[r] * basis[c];
      m[r][3] += basis[r] * (x * x + y * y);
    }
  }
  for (std::size_t c = 0; c < 3; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < 3; ++r) {
      if (std::abs(m[r][c]) > std::abs(m[pivot][c])) pivot = r;
    }
    std::swap(m[c], m[pivot]);
    if (std::abs(m[c][c]) < 1e-6L) return std::nullopt;
    for (std::size_t r = 0; r < 3; ++r) {
      if (r == c) continue;
      const long double factor = m[r][c] / m[c][c];
      for (std::size_t k = c; k < 4; ++k) m[r][k] -= factor * m[c][k];
    }
  }
  const long double x0 = m[0][3] / m[0][0] / 2;
  const long double y0 = m[1][3] / m[1][1] / 2;
  const long double radius = std::sqrt(100.0L * m[2][3] / m[2][2] + x0 * x0 + y0 * y0);
  long double sum = 0;
  long double geometric = 0;
  for (const auto& [x, y] : points) {
    const long double d2 = (x - x0) * (x - x0) + (y - y0) * (y - y0);
    sum += (d2 - radius * radius) * (d2 - radius * radius);
    geometric += (std::sqrt(d2) - radius) * (std::sqrt(d2) - radius);
  }
  const auto n = static_cast<long double>(points.size());
  return Reference{x0, y0, radius, std::sqrt(sum / n) / (2 * radius), std::sqrt(geometric / n)};
}

TEST(MathFit, ExactCircle) {
  // Six PMs at 8 pitches around the PM at i = 1, j = 0: radius 144 mm, centre (9, 0) mm.
  Hits hits;
  for (const auto& [di, dj] : std::array<std::array<int, 2>, 6>{{{16, 0}, {-16, 0}, {8, 8}, {8, -8}, {-8, 8}, {-8, -8}}}) {
    hits.push_back(channel_at(1 + di, dj, 0));
    ASSERT_NE(hits.back(), kNoChannel);
  }
  const Ring ring = fit(hits);
  EXPECT_EQ(ring.status, RingStatus::ring);
  EXPECT_EQ(ring.hits, 6);
  EXPECT_FLOAT_EQ(ring.x_mm, 9.0F);
  EXPECT_NEAR(ring.y_mm, 0.0F, 1e-6);
  EXPECT_FLOAT_EQ(ring.radius_mm, 144.0F);
  EXPECT_NEAR(ring.rms_mm, 0.0F, 1e-4);
}

TEST(MathFit, AgreesWithIndependentReference) {
  std::mt19937_64 engine(11);
  int compared = 0;
  for (int k = 0; k < 20000; ++k) {
    const Hits hits = any_hits(engine);
    if (hits.size() > kMaxHits) continue;
    const Ring ring = fit(hits);
    const std::optional<Reference> reference = reference_fit(hits);
    if (!reference) {
      EXPECT_EQ(ring.status, RingStatus::no_ring);
      continue;
    }
    if (ring.status != RingStatus::ring || reference->radius_mm > 2000.0L)
      continue;  // nearly on a line: both are badly conditioned
    ++compared;
    EXPECT_NEAR(ring.x_mm, static_cast<double>(reference->x_mm), 1e-3);
    EXPECT_NEAR(ring.y_mm, static_cast<double>(reference->y_mm), 1e-3);
    EXPECT_NEAR(ring.radius_mm, static_cast<double>(reference->radius_mm), 1e-3);
    EXPECT_NEAR(ring.rms_mm, static_cast<double>(reference->rms_mm), 1e-3);
  }
  EXPECT_GT(compared, 8000);
}

TEST(MathFit, RmsIsNearlyTheGeometricOne) {
  std::mt19937_64 engine(12);
  int compared = 0;
  for (int k = 0; k < 2000; ++k) {
    const Hits hits = ring_hits(engine, 20, -30, 150, 14);
    const Ring ring = fit(hits);
    const auto reference = reference_fit(hits);
    if (hits.size() < 8 || !reference) continue;
    ++compared;
    EXPECT_NEAR(ring.rms_mm, static_cast<double>(reference->geometric_rms_mm), 0.3);
  }
  EXPECT_GT(compared, 1500);
}

TEST(MathFit, DegenerateEventsHaveNoRing) {
  const auto expect_none = [](const Hits& hits, std::uint16_t mapped) {
    const Ring ring = fit(hits);
    EXPECT_TRUE(same_bits(ring, Ring{0, 0, 0, 0, 0, mapped, RingStatus::no_ring}));
  };
  expect_none({}, 0);
  expect_none({5}, 1);
  expect_none({5, 900}, 2);
  expect_none({5, 5, 5, 5}, 4);
  expect_none({5, 900, 5, 900, 900}, 5);
  expect_none({500, 1020, 2047, 488}, 0);  // four channels without a PM
  expect_none({5, 900, 500}, 2);           // two PMs and one channel without
  for (const auto& [di, dj] : std::array<std::array<int, 2>, 4>{{{2, 0}, {1, 1}, {1, -1}, {0, 2}}}) {
    Hits line;
    for (int k = -7; k <= 7; ++k) line.push_back(channel_at(1 + k * di, k * dj, 1));
    ASSERT_EQ(std::count(line.begin(), line.end(), kNoChannel), 0);
    expect_none(line, 15);
  }
}

TEST(MathFit, NearlyALineIsFinite) {
  Hits hits;
  for (int i = -31; i <= 31; i += 2) hits.push_back(channel_at(i, 0, 0));
  hits.push_back(channel_at(0, 1, 0));
  const Ring ring = fit(hits);
  expect_finite(ring);
  EXPECT_GT(ring.radius_mm, 500.0F);
}

TEST(MathFit, TimeBitsAndChannelsWithoutPmDoNotMatter) {
  std::mt19937_64 engine(13);
  for (int k = 0; k < 1000; ++k) {
    Hits hits = ring_hits(engine, 0, 10, 140, 15);
    const Ring ring = fit(hits);
    for (auto& hit : hits) hit = static_cast<std::uint16_t>((hit & kChannelMask) | (engine() & 0xf800));
    hits.insert(hits.begin() + static_cast<std::ptrdiff_t>(hits.size() / 2), static_cast<std::uint16_t>(488 + engine() % 24));
    EXPECT_TRUE(same_bits(ring, fit(hits)));
  }
}

TEST(MathFit, OrderOfHitsDoesNotMatter) {
  std::mt19937_64 engine(14);
  for (int k = 0; k < 1000; ++k) {
    Hits hits = any_hits(engine);
    if (hits.size() > kMaxHits) continue;
    const Ring ring = fit(hits);
    std::shuffle(hits.begin(), hits.end(), engine);
    EXPECT_TRUE(same_bits(ring, fit(hits)));
  }
}

TEST(MathFit, TheOtherDiskGivesTheSameRing) {
  std::mt19937_64 engine(15);
  for (int k = 0; k < 1000; ++k) {
    Hits hits = ring_hits(engine, -30, 10, 120, 15);
    const Ring ring = fit(hits);
    for (auto& hit : hits) hit ^= 1024;
    EXPECT_TRUE(same_bits(ring, fit(hits)));
  }
}

// The lattice is symmetric under rotation by 60 degrees about a PM and under reflection in x; the ring must turn with its hits.
TEST(MathFit, TurnsWithTheLattice) {
  std::mt19937_64 engine(16);
  int turned_events = 0;
  for (int k = 0; k < 4000; ++k) {
    const Hits hits = ring_hits(engine, 20, 15, 150, 15);
    // About the PM at (1, 0): (di, dj) -> ((di - 3 dj) / 2, (di + dj) / 2).
    Hits turned;
    Hits mirrored;
    for (const auto hit : hits) {
      const Pm& pm = kPmMap[hit & kChannelMask];
      const int di = pm.i - 1;
      turned.push_back(channel_at(1 + (di - 3 * pm.j) / 2, (di + pm.j) / 2, 0));
      mirrored.push_back(channel_at(-pm.i, pm.j, 0));
    }
    const Ring ring = fit(hits);
    if (std::count(turned.begin(), turned.end(), kNoChannel) == 0 && hits.size() >= 8) {
      ++turned_events;
      const Ring other = fit(turned);
      const double x_mm = ring.x_mm - 9.0;
      EXPECT_NEAR(other.radius_mm, ring.radius_mm, 1e-3);
      EXPECT_NEAR(other.rms_mm, ring.rms_mm, 1e-3);
      EXPECT_NEAR(other.x_mm, 9.0 + 0.5 * x_mm - 0.5 * kSqrt3 * ring.y_mm, 1e-3);
      EXPECT_NEAR(other.y_mm, 0.5 * kSqrt3 * x_mm + 0.5 * ring.y_mm, 1e-3);
    }
    if (std::count(mirrored.begin(), mirrored.end(), kNoChannel) == 0) {
      const Ring other = fit(mirrored);
      EXPECT_EQ(other.radius_mm, ring.radius_mm);
      EXPECT_EQ(other.x_mm, -ring.x_mm);
      EXPECT_EQ(other.y_mm, ring.y_mm);
    }
  }
  EXPECT_GT(turned_events, 1000);
}

TEST(MathFit, MoreThan128HitsAreCutAndSaySo) {
  std::mt19937_64 engine(17);
  Hits hits;
  while (hits.size() < 200) hits.push_back(static_cast<std::uint16_t>(engine() % 488));
  const Ring ring = fit(hits);
  EXPECT_EQ(ring.status, RingStatus::ring_truncated);
  EXPECT_TRUE(has_ring(ring.status) && is_truncated(ring.status));
  EXPECT_EQ(ring.hits, 128);
  Ring first = fit(Hits(hits.begin(), hits.begin() + 128));
  EXPECT_EQ(first.status, RingStatus::ring);
  first.status = RingStatus::ring_truncated;
  EXPECT_TRUE(same_bits(ring, first));
  const Hits same(130, 7);
  EXPECT_EQ(fit(same).status, RingStatus::no_ring_truncated);
}

TEST(MathFit, WorstCaseSumsStayExact) {
  // 128 hits at the corners of the disk: compare with the reference, which has 64 bits of mantissa.
  std::vector<std::uint16_t> far;
  for (std::uint16_t channel = 0; channel < 1024; ++channel) {
    const Pm& pm = kPmMap[channel];
    if (pm.mapped && pm.i * pm.i + 3 * pm.j * pm.j > 1000) far.push_back(channel);
  }
  std::mt19937_64 engine(18);
  for (int k = 0; k < 300; ++k) {
    Hits hits;
    while (hits.size() < 128) hits.push_back(far[engine() % far.size()]);
    const Ring ring = fit(hits);
    const auto reference = reference_fit(hits);
    ASSERT_TRUE(reference);
    EXPECT_NEAR(ring.radius_mm, static_cast<double>(reference->radius_mm), 1e-3);
    EXPECT_NEAR(ring.rms_mm, static_cast<double>(reference->rms_mm), 1e-3);
  }
}

// The batch, on every instruction set that this machine has.
class MathFitBatch : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    // 0 leaves only the fallback without vectors.
    hwy::GetChosenTarget().Update(GetParam());
  }
  void TearDown() override { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }
};

TEST_P(MathFitBatch, SameBitsAsScalar) {
  const std::string name = fit_rings_target();
  if (GetParam() != 0) {
    EXPECT_EQ(name, hwy::TargetName(GetParam()));
  }
  std::mt19937_64 engine(19);
  constexpr std::size_t kEvents = 100000;
  std::vector<Hits> all;
  std::vector<event::Event> events;
  for (std::size_t k = 0; k < kEvents; ++k) all.push_back(any_hits(engine));
  for (const Hits& hits : all) events.push_back({hits.data(), static_cast<std::uint32_t>(hits.size())});
  std::vector<Ring> rings(kEvents);
  std::size_t found = 0;
  std::size_t batch = 0;
  for (std::size_t at = 0; at < kEvents; at += batch) {  // batches of every size up to 200
    batch = std::min<std::size_t>(1 + engine() % 200, kEvents - at);
    fit_rings({events.data() + at, batch}, {rings.data() + at, batch});
  }
  for (std::size_t k = 0; k < kEvents; ++k) {
    const Ring scalar = fit_ring(events[k]);
    found += has_ring(scalar.status) ? 1 : 0;
    ASSERT_TRUE(same_bits(rings[k], scalar)) << name << " event " << k << " radius " << rings[k].radius_mm << " and "
                                             << scalar.radius_mm;
    expect_finite(scalar);
  }
  EXPECT_GT(found, kEvents / 2);
  EXPECT_LT(found, kEvents * 95 / 100);
}

TEST_P(MathFitBatch, WritesOnlyItsRings) {
  const Hits hits{1, 100, 300};
  const std::vector<event::Event> events(21, event::Event{hits.data(), 3});
  const Ring mark{1, 2, 3, 4, 0, 5, RingStatus::no_ring_truncated};
  for (std::size_t count = 0; count <= events.size(); ++count) {
    std::vector<Ring> rings(events.size() + 1, mark);
    fit_rings({events.data(), count}, {rings.data(), rings.size()});
    for (std::size_t k = 0; k < rings.size(); ++k) EXPECT_EQ(same_bits(rings[k], mark), k >= count);
  }
}

std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> list = hwy::SupportedAndGeneratedTargets();
  std::erase_if(list, [](std::int64_t target) { return target == HWY_SCALAR || target == HWY_EMU128; });
  if ((HWY_TARGETS & (HWY_SCALAR | HWY_EMU128)) != 0) list.push_back(0);  // newer Highway has SSE2 as its baseline and no fallback
  return list;
}

INSTANTIATE_TEST_SUITE_P(AllTargets, MathFitBatch, ::testing::ValuesIn(targets()), [](const auto& test_info) {
  return std::string(test_info.param == 0 ? "Fallback" : hwy::TargetName(test_info.param));
});

}  // namespace
}  // namespace nanet::rich
