// SPDX-License-Identifier: Apache-2.0
// What the tests of POMH, DOMH, HOUGH, TRIPLS and histogram share: events of every kind, and the properties that any of these finders must have.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "hwy/highway.h"
#include "nanet/config/setting.hpp"
#include "nanet/rich/pm_map.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/hit_plane.hpp"

namespace nanet::rich::classic {

using Hits = std::vector<std::uint16_t>;

inline event::Event as_event(const Hits& hits) { return {hits.data(), static_cast<std::uint32_t>(hits.size())}; }

inline bool same_bits(const EventRings& a, const EventRings& b) { return std::memcmp(&a, &b, sizeof(EventRings)) == 0; }

struct TrueRing {
  double x_mm, y_mm, radius_mm;
};
struct TrueEvent {
  std::vector<TrueRing> rings;
  Hits hits;
};

// Rings as in the flat default sample: radius 80 to 190 mm, centres Gaussian with 40 mm, smear 2.5 mm.
class Source {
 public:
  explicit Source(std::uint64_t seed) : engine_(seed) {}

  TrueEvent next(std::uint32_t ring_count, double noise_hits, double photons = 13.5) {
    TrueEvent event;
    std::set<std::uint16_t> channels;
    while (event.rings.size() < ring_count) {
      const TrueRing ring{normal(40.0), normal(40.0), uniform(80.0, 190.0)};
      event.rings.push_back(ring);
      const auto disk = static_cast<int>(engine_() % 2);
      for (int k = std::poisson_distribution<int>(photons)(engine_); k > 0; --k) {
        const double phi = uniform(0.0, 6.283185307179586);
        const std::uint16_t channel = nearest_channel(ring.x_mm + ring.radius_mm * std::cos(phi) + normal(2.5),
                                                      ring.y_mm + ring.radius_mm * std::sin(phi) + normal(2.5), disk);
        if (channel != kNoChannel) channels.insert(channel);
      }
    }
    for (int k = noise_hits > 0 ? std::poisson_distribution<int>(noise_hits)(engine_) : 0; k > 0; --k)
      channels.insert(static_cast<std::uint16_t>(engine_() % 4 * 512 + engine_() % kPmsPerBoard));
    for (const std::uint16_t channel : channels) event.hits.push_back(static_cast<std::uint16_t>(channel | (engine_() & 0xf800)));
    return event;
  }

  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }

 private:
  double normal(double sigma) { return std::normal_distribution<double>(0.0, sigma)(engine_); }

  std::mt19937_64 engine_;
};

// Events that no detector sends: any words, one PM, two PMs, a line, very full ones.
inline Hits odd_hits(std::mt19937_64& engine) {
  const auto pick = [&](int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); };
  Hits hits;
  switch (pick(5)) {
    case 0:
      for (int k = pick(40); k > 0; --k) hits.push_back(static_cast<std::uint16_t>(engine()));
      return hits;
    case 1: hits.assign(static_cast<std::size_t>(pick(140)), static_cast<std::uint16_t>(pick(2048))); return hits;
    case 2: {
      const std::array<int, 2> channels{pick(2048), pick(2048)};
      for (int k = pick(12); k > 0; --k) hits.push_back(static_cast<std::uint16_t>(channels[static_cast<std::size_t>(pick(2))]));
      return hits;
    }
    case 3: {
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
    default:
      for (int k = 100 + pick(60); k > 0; --k) hits.push_back(static_cast<std::uint16_t>(pick(2048)));
      return hits;
  }
}

// Of 0 to 4 rings with noise, every tenth an odd one. Made once.
inline const std::vector<Hits>& any_events() {
  static const std::vector<Hits> events = [] {
    std::vector<Hits> all;
    std::mt19937_64 engine(21);
    Source source(22);
    constexpr std::array<std::uint32_t, 10> kRingCounts{1, 2, 1, 0, 1, 3, 1, 2, 4, 1};
    for (std::size_t k = 0; k < 20000; ++k)
      all.push_back(k % 11 == 10 ? odd_hits(engine) : source.next(kRingCounts[k % 10], 1.2).hits);
    return all;
  }();
  return events;
}

inline void expect_sound(const EventRings& found) {
  ASSERT_LE(found.count, kMaxRings);
  for (std::uint32_t r = 0; r < found.count; ++r) {
    const Ring& ring = found.rings[r];
    EXPECT_TRUE(std::isfinite(ring.x_mm) && std::isfinite(ring.y_mm) && std::isfinite(ring.radius_mm) &&
                std::isfinite(ring.rms_mm) && std::isfinite(ring.time_ns));
    EXPECT_EQ(ring.status, RingStatus::ring);
    EXPECT_GE(ring.hits, 4);
    EXPECT_LE(ring.hits, found.mapped_hits);
    if (r > 0) {
      EXPECT_GE(found.rings[r - 1].hits, ring.hits);
    }
  }
  for (std::uint32_t r = found.count; r < kMaxRings; ++r) EXPECT_EQ(found.rings[r].radius_mm, 0.0F);
}

// A finder's two functions with one set of cuts.
template <class Cuts>
struct Finder {
  using Scalar = EventRings (*)(event::Event, const PmPoint*, const Cuts&);
  using Batch = void (*)(std::span<const event::Event>, std::span<EventRings>, const Cuts&);
  Scalar scalar;
  Batch batch;
  Cuts cuts{};

  EventRings one(const Hits& hits) const { return scalar(as_event(hits), kPmPoints.data(), cuts); }
  EventRings fast(const Hits& hits) const {
    const event::Event event = as_event(hits);
    EventRings found;
    batch({&event, 1}, {&found, 1}, cuts);
    return found;
  }
  std::vector<EventRings> all(const std::vector<Hits>& events) const {
    std::vector<event::Event> views;
    for (const Hits& hits : events) views.push_back(as_event(hits));
    std::vector<EventRings> found(events.size());
    std::size_t size = 1;
    for (std::size_t at = 0; at < views.size(); at += size) {  // batches of several sizes
      size = std::min<std::size_t>(at % 37 + 1, views.size() - at);
      batch({views.data() + at, size}, {found.data() + at, size}, cuts);
    }
    return found;
  }
};

// The vector path gives the scalar bits, on every instruction set of this machine.
template <class Cuts>
void expect_same_bits_on_all_targets(const Finder<Cuts>& finder, const std::vector<Hits>& events) {
  std::vector<EventRings> scalar;
  std::size_t rings = 0;
  for (const Hits& hits : events) {
    scalar.push_back(finder.one(hits));
    rings += scalar.back().count;
    expect_sound(scalar.back());
  }
  EXPECT_GT(rings, events.size() / 4);
  std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  std::erase_if(targets, [](std::int64_t target) { return target == HWY_SCALAR || target == HWY_EMU128; });
  if ((HWY_TARGETS & (HWY_SCALAR | HWY_EMU128)) != 0) targets.push_back(0);  // 0 leaves only the fallback without vectors
  for (const std::int64_t target : targets) {
    hwy::GetChosenTarget().Update(target);
    // The fallback is the scalar function itself: a part of the events says enough.
    const std::size_t count = target == 0 ? std::min<std::size_t>(events.size(), 500) : events.size();
    const std::vector<EventRings> found = finder.all({events.begin(), events.begin() + static_cast<std::ptrdiff_t>(count)});
    std::size_t differ = 0;
    for (std::size_t e = 0; e < count; ++e) differ += same_bits(found[e], scalar[e]) ? 0 : 1;
    EXPECT_EQ(differ, 0u) << (target == 0 ? "fallback" : hwy::TargetName(target));
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

template <class Cuts>
void expect_order_of_hits_does_not_matter(const Finder<Cuts>& finder) {
  std::mt19937_64 engine(23);
  for (std::size_t e = 0; e < 3000; ++e) {
    Hits hits = any_events()[e];
    if (hits.size() > kMaxHits) continue;
    const EventRings found = finder.fast(hits);
    std::shuffle(hits.begin(), hits.end(), engine);
    EXPECT_TRUE(same_bits(found, finder.fast(hits)));
  }
}

template <class Cuts>
void expect_odd_events_are_harmless(const Finder<Cuts>& finder) {
  const auto expect_none = [&](const Hits& hits) {
    EXPECT_EQ(finder.fast(hits).count, 0);
    EXPECT_EQ(finder.one(hits).count, 0);
  };
  expect_none({});
  expect_none({5});
  expect_none({5, 900});
  expect_none({5, 300, 900});
  expect_none({5, 5, 5, 5, 5, 5});
  expect_none({5, 900, 5, 900, 900});
  expect_none({500, 1020, 2047, 488, 489, 490});  // channels without a PM
  expect_none(Hits(200, 7));
  for (const auto& [di, dj] : std::array<std::array<int, 2>, 4>{{{2, 0}, {1, 1}, {1, -1}, {0, 2}}}) {
    Hits line;
    for (int k = -7; k <= 7; ++k) line.push_back(channel_at(1 + k * di, k * dj, 1));
    expect_none(line);
  }
  std::mt19937_64 engine(24);
  for (int k = 0; k < 300; ++k) {
    const Hits hits = odd_hits(engine);
    const EventRings found = finder.fast(hits);
    expect_sound(found);
    EXPECT_EQ(found.truncated, hits.size() > kMaxHits ? 1u : 0u);
  }
  Hits full;
  while (full.size() < 200) full.push_back(static_cast<std::uint16_t>(engine() % 488));
  EventRings found = finder.fast(full);
  EXPECT_EQ(found.mapped_hits, 128);
  EXPECT_EQ(found.truncated, 1u);
  full.resize(kMaxHits);
  EventRings first = finder.fast(full);
  EXPECT_EQ(first.truncated, 0u);
  first.truncated = 1;
  EXPECT_TRUE(same_bits(found, first));
}

// Whatever the cuts are, what comes out is sound, and the same from both functions.
template <class Cuts>
void expect_any_cuts_are_harmless(Finder<Cuts> finder) {
  std::mt19937_64 engine(25);
  const std::array<float, 7> numbers{
      0.0F, 1.0F, -5.0F, 1.0e30F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 80.0F};
  const Cuts defaults = finder.cuts;
  for (std::size_t e = 0; e < 600; ++e) {
    finder.cuts = defaults;
    finder.cuts.visit([&](const char*, auto& cut, const nanet::config::Setting&) {
      if (engine() % 3 != 0) return;
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(cut)>, float>) {
        cut = numbers[engine() % numbers.size()];
      } else {
        cut = static_cast<std::uint32_t>(engine() % 2 == 0 ? engine() % 20 : engine());
      }
    });
    const EventRings found = finder.fast(any_events()[e]);
    expect_sound(found);
    EXPECT_TRUE(same_bits(found, finder.one(any_events()[e])));
  }
}

// Hits moved by a step of the lattice, mirrored, or turned by 180 degrees give the ring moved, mirrored, turned: i -> sign_i i + step_i, and j. Peaks of
// equal score are taken in the order of the lattice, which turns with nothing, so a few events may differ.
template <class Cuts>
void expect_rings_move_with_hits(const Finder<Cuts>& finder, double share_min) {
  struct Move {
    int sign_i, sign_j, step_i, step_j;
  };
  for (const Move& move : {Move{1, 1, 2, 0}, Move{1, 1, 1, 1}, Move{1, 1, -1, 1}, Move{-1, 1, 0, 0}, Move{-1, -1, 0, 0}}) {
    Source source(26);
    int compared = 0;
    int same = 0;
    for (int e = 0; e < 2000; ++e) {
      const Hits hits = source.next(1, 0, 18).hits;
      Hits moved;
      for (const std::uint16_t hit : hits) {
        const Pm& pm = kPmMap[hit & kChannelMask];
        const std::uint16_t channel = channel_at(move.sign_i * pm.i + move.step_i, move.sign_j * pm.j + move.step_j, pm.disk);
        if (channel != kNoChannel) moved.push_back(channel);
      }
      if (moved.size() != hits.size() || hits.size() < 8) continue;
      const EventRings found = finder.fast(hits);
      const EventRings other = finder.fast(moved);
      ++compared;
      if (found.count == 0 || other.count == 0) continue;
      const Ring& ring = found.rings[0];
      const Ring& turned = other.rings[0];
      const double dx = turned.x_mm - (static_cast<float>(move.sign_i) * ring.x_mm + 9.0F * static_cast<float>(move.step_i));
      const double dy = turned.y_mm - (static_cast<float>(move.sign_j) * ring.y_mm + 15.588457F * static_cast<float>(move.step_j));
      same += std::abs(dx) < 1.0 && std::abs(dy) < 1.0 && std::abs(turned.radius_mm - ring.radius_mm) < 1.0F ? 1 : 0;
    }
    EXPECT_GT(compared, 500);
    EXPECT_GE(same, share_min * compared) << "of " << compared;
  }
}

// Without smear and noise, with 24 photons at equal angles.
template <class Cuts>
void expect_ideal_rings_are_found(const Finder<Cuts>& finder) {
  std::mt19937_64 engine(27);
  std::uniform_real_distribution<double> place(-60.0, 60.0);
  std::uniform_real_distribution<double> size(90.0, 190.0);
  for (int e = 0; e < 500; ++e) {
    const double x_mm = place(engine);
    const double y_mm = place(engine);
    const double radius_mm = size(engine);
    std::vector<std::uint16_t> hits;
    for (int k = 0; k < 24; ++k) {
      const double phi = 6.283185307179586 * k / 24;
      const auto channel = nearest_channel(x_mm + radius_mm * std::cos(phi), y_mm + radius_mm * std::sin(phi), 0);
      if (channel != kNoChannel) hits.push_back(channel);
    }
    const EventRings found = finder.fast(hits);
    ASSERT_EQ(found.count, 1);
    EXPECT_NEAR(found.rings[0].x_mm, x_mm, 6.0);
    EXPECT_NEAR(found.rings[0].y_mm, y_mm, 6.0);
    EXPECT_NEAR(found.rings[0].radius_mm, radius_mm, 5.0);
    EXPECT_GE(found.rings[0].hits, hits.size() * 9 / 10);
  }
}

struct Floor {
  double all_found_min;
  double fakes_max;
};

// A seeded sample; rings of several in one event are over 60 mm apart.
template <class Cuts>
void expect_quality(const Finder<Cuts>& finder, std::uint32_t ring_count, const Floor& floor) {
  Source source(28);
  int events = 0;
  int complete = 0;
  int fakes = 0;
  while (events < 3000) {
    const TrueEvent event = source.next(ring_count, 1.2);
    bool apart = true;
    for (std::size_t a = 0; a < ring_count; ++a) {
      for (std::size_t b = 0; b < a; ++b)
        apart = apart && std::hypot(event.rings[a].x_mm - event.rings[b].x_mm, event.rings[a].y_mm - event.rings[b].y_mm) >= 60.0;
    }
    if (!apart) continue;
    ++events;
    const EventRings found = finder.fast(event.hits);
    std::array<bool, kMaxRings> good{};
    std::size_t matched = 0;
    for (const TrueRing& truth : event.rings) {
      bool any = false;
      for (std::uint32_t r = 0; r < found.count; ++r) {
        const Ring& ring = found.rings[r];
        if (std::hypot(ring.x_mm - truth.x_mm, ring.y_mm - truth.y_mm) > 20.0 || std::abs(ring.radius_mm - truth.radius_mm) > 15.0)
          continue;
        any = good[r] = true;
      }
      matched += any ? 1 : 0;
    }
    complete += matched == ring_count ? 1 : 0;
    for (std::uint32_t r = 0; r < found.count; ++r) fakes += good[r] ? 0 : 1;
  }
  EXPECT_GE(complete, floor.all_found_min * events);
  EXPECT_LE(fakes, floor.fakes_max * events);
}

// The time of a ring is the mean of its hits'.
template <class Cuts>
void expect_time_of_hits(const Finder<Cuts>& finder) {
  Hits hits;
  int codes = 0;
  for (const auto& [di, dj] : std::array<std::array<int, 2>, 6>{{{16, 0}, {-16, 0}, {8, 8}, {8, -8}, {-8, 8}, {-8, -8}}}) {
    const int code = static_cast<int>(hits.size()) - 5;
    codes += code;
    hits.push_back(static_cast<std::uint16_t>(channel_at(1 + di, dj, 0) | (code & 31) << 11));
  }
  const EventRings found = finder.fast(hits);
  ASSERT_EQ(found.count, 1);
  EXPECT_EQ(found.rings[0].hits, 6);
  EXPECT_NEAR(found.rings[0].x_mm, 9.0F, 1e-3F);
  EXPECT_NEAR(found.rings[0].y_mm, 0.0F, 1e-3F);
  EXPECT_NEAR(found.rings[0].radius_mm, 144.0F, 1e-3F);
  EXPECT_NEAR(found.rings[0].time_ns, static_cast<float>(codes) / 6.0F * kHitTimeUnitNs, 1e-5F);
}

}  // namespace nanet::rich::classic
