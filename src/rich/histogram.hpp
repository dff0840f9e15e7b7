// SPDX-License-Identifier: Apache-2.0
// histogram, a finder of several rings: peaks of the distance histograms over candidate centres, ring by ring.
//
// Only the name is public; this is our reading. The scan is POMH's (center_scan.hpp). The circle at the best peak is fitted to the hits left, and if it is a
// ring, its hits are taken out and the rest is scanned again, up to four times. Then the rings share all hits: each hit goes to the ring whose circle is
// nearest to it, and each ring is fitted to its own, twice; a ring that is left with too few hits is dropped.
//
// A ring must stand out: n hits, where b would lie in its window if the other hits were spread over the disk, count as (n - b) / sqrt(b + 1).
// Thread rules: pure functions, no allocation, no exception.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "nanet/host_device.hpp"
#include "nanet/rich/histogram_cuts.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/center_scan.hpp"
#include "rich/circle_refit.hpp"
#include "rich/hit_plane.hpp"

namespace nanet::rich {

NANET_HD inline EventRings find_histogram(event::Event event, const PmPoint* points, const HistogramCuts& cuts);

// rings[k] becomes what is found in events[k], the same bits. `rings` must be at least as long as `events`.
void find_histogram(std::span<const event::Event> events, std::span<EventRings> rings, const HistogramCuts& cuts);

// ---------------------------------------------------------------------------------------------------------------------------------

// 4 pi R window / (area of 976 hexagons of 18 mm pitch) = share of the disk that a ring's window covers, by R times window.
inline constexpr float kRingShare = 12.566371F / 273860.0F;

NANET_HD inline bool stands_out(const Ring& ring, std::uint32_t hits, const HistogramCuts& cuts) {
  const auto n = static_cast<float>(ring.hits);
  const float others = static_cast<float>(hits) - n;
  const float background = others * (kRingShare * ring.radius_mm * cuts.window_mm);
  return n - background >= cuts.significance_min * std::sqrt(background + 1.0F);
}

// The hits of `from` for which keep(k) holds, in the same order.
template <class Keep>
NANET_HD inline void select_hits(const HitPlane& from, HitPlane& to, Keep keep) {
  std::uint32_t count = 0;
  for (std::uint32_t k = 0; k < from.count; ++k) {
    if (!keep(k)) continue;
    to.x_mm[count] = from.x_mm[k];
    to.y_mm[count] = from.y_mm[k];
    to.time_code[count] = from.time_code[k];
    to.row[count] = from.row[k];
    ++count;
  }
  for (std::uint32_t k = count; k < ((count + 15u) & ~15u); ++k) {
    to.row[k] = 1023;
    to.x_mm[k] = kFarMm;
    to.y_mm[k] = kFarMm;
    to.time_code[k] = 0;
  }
  to.count = count;
  to.truncated = from.truncated;
}

inline constexpr std::uint8_t kNoOwner = 255;

// Nearest of `count` circles to a hit; of equal ones the first.
NANET_HD inline std::uint8_t nearest_circle(const Circle* circles, std::uint32_t count, float x_mm, float y_mm) {
  std::uint8_t nearest = kNoOwner;
  float best = kFarMm;
  for (std::uint32_t r = 0; r < count; ++r) {
    const float dx_mm = x_mm - circles[r].x_mm;
    const float dy_mm = y_mm - circles[r].y_mm;
    const float miss_mm = std::abs(std::sqrt(dx_mm * dx_mm + dy_mm * dy_mm) - circles[r].radius_mm);
    if (miss_mm < best) {
      best = miss_mm;
      nearest = static_cast<std::uint8_t>(r);
    }
  }
  return nearest;
}

// What the finder does is the same whatever the hits lie in and however many lanes look at them. Hits gives
//   left()                                    how many hits no ring has taken out yet
//   peak(range)                               the best peak of those
//   refit_left(cuts, circle)                  refit_circle to those
//   fit_left(window, circle)                  fit_near of those
//   take_out(circle, distance)                takes out those that are near the circle
//   assign(circles, count)                    gives each hit of the event to its nearest circle
//   refit_owned(r, cuts, circle)              refit_circle to the hits that circle r had at the last assign()
//   fit_owned(r, window, circle)              fit_near of those

// Up to kMaxRings circles, best first; returns how many.
template <class Hits>
NANET_HD inline std::uint32_t find_circles(Hits& hits, const HistogramCuts& cuts, Circle* circles) {
  std::uint32_t count = 0;
  const std::uint32_t rings_max = cuts.rings_max < kMaxRings ? cuts.rings_max : kMaxRings;
  const std::uint32_t hits_min = cuts.min_hits > 4 ? cuts.min_hits : 4u;
  NANET_UNROLL(1)
  while (count < rings_max && hits.left() >= hits_min) {
    const CenterPeak peak = hits.peak(cuts.center_range_mm);
    if (peak.score == 0) break;
    Circle circle = circle_of(peak);
    if (!hits.refit_left(refit_cuts(cuts), circle)) break;
    const Ring ring = hits.fit_left(cuts.window_mm, circle);
    if (!is_within(ring, ring_limits(cuts)) || !stands_out(ring, hits.left(), cuts)) break;
    circles[count++] = circle;
    hits.take_out(circle, cuts.remove_mm);
  }
  return count;
}

// Drops circle r.
NANET_HD inline void drop_circle(Circle* circles, std::uint32_t& count, std::uint32_t r) {
  NANET_UNROLL(1)
  for (std::uint32_t k = r + 1; k < count; ++k) circles[k - 1] = circles[k];
  --count;
}

// Each hit to its nearest circle, each circle to its hits.
template <class Hits>
NANET_HD inline void share_hits(Hits& hits, const HistogramCuts& cuts, Circle* circles, std::uint32_t& count) {
  const RefitCuts one_pass{cuts.refit_end_mm, cuts.refit_end_mm, cuts.window_mm, 1};
  hits.assign(circles, count);
  std::uint32_t r = 0;
  NANET_UNROLL(1)
  for (std::uint32_t label = 0; r < count; ++label) {  // label: the circle's index before any was dropped
    if (hits.refit_owned(label, one_pass, circles[r])) {
      ++r;
    } else {
      drop_circle(circles, count, r);
    }
  }
}

// The rings of the circles; a circle whose hits make no ring is dropped, and the others take its hits. `hit_count`: of the event.
template <class Hits>
NANET_HD inline void take_rings(Hits& hits, std::uint32_t hit_count, const HistogramCuts& cuts, Circle* circles,
                                std::uint32_t count, EventRings& found) {
  NANET_UNROLL(1)
  for (std::uint32_t round = 0; round < kMaxRings && count > 0; ++round) {
    hits.assign(circles, count);
    std::uint32_t worst = count;
    NANET_UNROLL(1)
    for (std::uint32_t r = 0; r < count; ++r) {
      found.rings[r] = hits.fit_owned(r, cuts.window_mm, circles[r]);
      const bool good = is_within(found.rings[r], ring_limits(cuts)) && stands_out(found.rings[r], hit_count, cuts);
      if (!good && (worst == count || found.rings[r].hits <= found.rings[worst].hits)) worst = r;
    }
    if (worst == count) break;
    drop_circle(circles, count, worst);
  }
  NANET_UNROLL(1)
  for (std::uint32_t r = count; r < kMaxRings; ++r) found.rings[r] = Ring{};
  found.count = static_cast<std::uint16_t>(count);
  sort_rings(found);
}

// `found` comes without rings, and gets them.
template <class Hits>
NANET_HD inline void find_rings_of(Hits& hits, const HistogramCuts& cuts, EventRings& found) {
  Circle circles[kMaxRings];
  const std::uint32_t hit_count = hits.left();
  std::uint32_t count = find_circles(hits, cuts, circles);
  const std::uint32_t share_passes = cuts.share_passes < kMaxRefitPasses ? cuts.share_passes : kMaxRefitPasses;
  NANET_UNROLL(1)
  for (std::uint32_t pass = 0; pass < share_passes && count > 0; ++pass) share_hits(hits, cuts, circles, count);
  take_rings(hits, hit_count, cuts, circles, count, found);
}

// Hits in planes, looked at one after the other or in vectors. Steps gives the functions that differ:
//   peak(lattice, range)   refit(plane, refit cuts, circle)   fit(plane, window, circle)   owners(plane, circles, count, owner of each hit)
template <class Steps>
class PlaneHits {
 public:
  NANET_HD PlaneHits(event::Event event, const PmPoint* points, Steps steps) : points_(points), steps_(steps) {
    lay_out_hits(event, points, plane_);
  }
  NANET_HD const HitPlane& plane() const { return plane_; }
  NANET_HD std::uint32_t left() const { return rest_->count; }
  NANET_HD CenterPeak peak(float range_mm) {
    LatticeHits lattice;
    take_lattice(*rest_, points_, lattice);
    return steps_.peak(lattice, range_mm);
  }
  NANET_HD bool refit_left(const RefitCuts& cuts, Circle& circle) { return steps_.refit(*rest_, cuts, circle); }
  NANET_HD Ring fit_left(float window_mm, const Circle& circle) { return steps_.fit(*rest_, window_mm, circle); }
  NANET_HD void take_out(const Circle& circle, float distance_mm) {
    const HitPlane& from = *rest_;
    HitPlane& to = rest_ == &some_[0] ? some_[1] : some_[0];
    select_hits(from, to, [&](std::uint32_t k) { return !is_near(circle, distance_mm, from.x_mm[k], from.y_mm[k]); });
    rest_ = &to;
  }
  NANET_HD void assign(const Circle* circles, std::uint32_t count) { steps_.owners(plane_, circles, count, owners_); }
  NANET_HD bool refit_owned(std::uint32_t r, const RefitCuts& cuts, Circle& circle) { return steps_.refit(owned(r), cuts, circle); }
  NANET_HD Ring fit_owned(std::uint32_t r, float window_mm, const Circle& circle) {
    return steps_.fit(owned(r), window_mm, circle);
  }

 private:
  NANET_HD const HitPlane& owned(std::uint32_t r) {
    select_hits(plane_, some_[0], [&](std::uint32_t k) { return owners_[k] == r; });
    return some_[0];
  }

  const PmPoint* points_;
  Steps steps_;
  HitPlane plane_;
  HitPlane some_[2];  // the hits left, by turns; then those of one circle
  const HitPlane* rest_ = &plane_;
  std::uint8_t owners_[kMaxHits];
};

template <class Steps>
NANET_HD inline EventRings find_rings_by_steps(event::Event event, const PmPoint* points, const HistogramCuts& cuts, Steps steps) {
  PlaneHits<Steps> hits(event, points, steps);
  EventRings found = no_rings(hits.plane());
  find_rings_of(hits, cuts, found);
  return found;
}

struct ScalarSteps {
  const PmPoint* points;

  NANET_HD CenterPeak peak(const LatticeHits& lattice, float range_mm) const { return scan_centers(lattice, range_mm); }
  NANET_HD bool refit(const HitPlane& plane, const RefitCuts& cuts, Circle& circle) const {
    return refit_circle(plane, points, cuts, circle);
  }
  NANET_HD Ring fit(const HitPlane& plane, float window_mm, const Circle& circle) const {
    return fit_near(plane, points, window_mm, circle);
  }
  NANET_HD void owners(const HitPlane& plane, const Circle* circles, std::uint32_t count, std::uint8_t* owner) const {
    for (std::uint32_t k = 0; k < plane.count; ++k) owner[k] = nearest_circle(circles, count, plane.x_mm[k], plane.y_mm[k]);
  }
};

NANET_HD inline EventRings find_histogram(event::Event event, const PmPoint* points, const HistogramCuts& cuts) {
  return find_rings_by_steps(event, points, cuts, ScalarSteps{points});
}

}  // namespace nanet::rich
