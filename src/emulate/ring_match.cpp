// SPDX-License-Identifier: Apache-2.0
#include "emulate/ring_match.hpp"

#include <algorithm>
#include <cmath>

#include "nanet/rich/pm_map.hpp"
#include "rich/hit_plane.hpp"

namespace nanet::emulate {
namespace {

bool matches(const McRing& truth, const rich::Ring& found) {
  return truth.radius_mm > 0 && std::hypot(found.x_mm - truth.x_mm, found.y_mm - truth.y_mm) < kMatchCenterMm &&
         std::abs(found.radius_mm - truth.radius_mm) < kMatchRadiusMm;
}

float distance2(const McRing& truth, const rich::Ring& found) {
  const float dx = found.x_mm - truth.x_mm;
  const float dy = found.y_mm - truth.y_mm;
  const float dr = found.radius_mm - truth.radius_mm;
  return dx * dx + dy * dy + dr * dr;
}

// Symmetric 3 x 3 matrix of the normal equations of (x, y, R).
struct Normal {
  double cc = 0, cs = 0, ss = 0, c = 0, s = 0, n = 0;

  void add(double cosine, double sine) {
    cc += cosine * cosine;
    cs += cosine * sine;
    ss += sine * sine;
    c += cosine;
    s += sine;
    n += 1;
  }
  double determinant() const { return cc * (ss * n - s * s) - cs * (cs * n - s * c) + c * (cs * s - ss * c); }
};

template <class Take>
void for_each_hit_of(const McEvent& event, std::uint32_t ring_index, Take take) {
  for (std::uint32_t k = 0; k < event.hit_count; ++k) {
    if ((event.owners[k] >> ring_index & 1) == 0) continue;
    const rich::PmPoint& point = rich::kPmPoints[event.hits[k] & 1023u];
    take(double{point.x_mm}, double{point.y_mm});
  }
}

struct Circle {
  double x_mm, y_mm, radius_mm;
};

// One step of Gauss and Newton on the distances; false: the hits do not fix a circle.
bool improve(const McEvent& event, std::uint32_t ring_index, Circle& circle) {
  Normal normal;
  double rc = 0, rs = 0, r = 0;
  for_each_hit_of(event, ring_index, [&](double x_mm, double y_mm) {
    const double dx = x_mm - circle.x_mm;
    const double dy = y_mm - circle.y_mm;
    const double d = std::max(std::hypot(dx, dy), 1e-9);
    normal.add(dx / d, dy / d);
    rc += (d - circle.radius_mm) * dx / d;
    rs += (d - circle.radius_mm) * dy / d;
    r += d - circle.radius_mm;
  });
  const double det = normal.determinant();
  if (!(det > 1e-9)) return false;
  const auto& [cc, cs, ss, c, s, n] = normal;
  circle.x_mm += (rc * (ss * n - s * s) + rs * (c * s - cs * n) + r * (cs * s - ss * c)) / det;
  circle.y_mm += (rc * (c * s - cs * n) + rs * (cc * n - c * c) + r * (cs * c - cc * s)) / det;
  circle.radius_mm += (rc * (cs * s - ss * c) + rs * (cs * c - cc * s) + r * (cc * ss - cs * cs)) / det;
  return std::isfinite(circle.x_mm) && std::isfinite(circle.y_mm) && std::isfinite(circle.radius_mm);
}

}  // namespace

RingMatch match_rings(const McTruth& truth, const rich::EventRings& found) {
  RingMatch match;
  std::array<bool, rich::kMaxRings> used{};
  for (;;) {
    float best = 1e9F;
    std::uint32_t best_truth = 0;
    std::uint32_t best_found = 0;
    for (std::uint32_t t = 0; t < truth.ring_count; ++t) {
      if (match.found_of[t] != kUnmatched) continue;
      for (std::uint32_t f = 0; f < found.count; ++f) {
        if (used[f] || !matches(truth.rings[t], found.rings[f])) continue;
        const float distance = distance2(truth.rings[t], found.rings[f]);
        if (distance < best) best = distance, best_truth = t, best_found = f;
      }
    }
    if (best == 1e9F) break;
    match.found_of[best_truth] = static_cast<std::int8_t>(best_found);
    used[best_found] = true;
  }
  for (std::uint32_t f = 0; f < found.count; ++f) {
    if (used[f]) continue;
    const auto near = [&](const McRing& ring) { return matches(ring, found.rings[f]); };
    const bool clone = std::any_of(truth.rings.begin(), truth.rings.begin() + truth.ring_count, near);
    ++(clone ? match.clones : match.fakes);
  }
  return match;
}

double radius_bound(const McEvent& event, std::uint32_t ring_index) {
  const McRing& ring = event.truth.rings[ring_index];
  Normal normal;
  for_each_hit_of(event, ring_index, [&](double x_mm, double y_mm) {
    const double dx = x_mm - ring.x_mm;
    const double dy = y_mm - ring.y_mm;
    const double d = std::max(std::hypot(dx, dy), 1e-9);
    normal.add(dx / d, dy / d);
  });
  const double det = normal.determinant();
  if (normal.n < 3 || !(det > 1e-9)) return 0;
  return std::sqrt((normal.cc * normal.ss - normal.cs * normal.cs) / det);
}

std::uint32_t hit_residuals(const McEvent& event, std::uint32_t ring_index, std::array<float, kMaxEventHits>& residuals_mm) {
  const McRing& ring = event.truth.rings[ring_index];
  std::uint32_t count = 0;
  for_each_hit_of(event, ring_index, [&](double x_mm, double y_mm) {
    residuals_mm[count++] = static_cast<float>(std::hypot(x_mm - ring.x_mm, y_mm - ring.y_mm) - ring.radius_mm);
  });
  return count;
}

rich::EventRings oracle_rings(const McEvent& event, std::uint32_t min_hits) {
  rich::EventRings rings;
  for (std::uint32_t r = 0; r < event.truth.ring_count; ++r) {
    const McRing& truth = event.truth.rings[r];
    std::uint32_t hits = 0;
    for_each_hit_of(event, r, [&](double, double) { ++hits; });
    if (truth.radius_mm <= 0 || hits < min_hits) continue;
    Circle circle{truth.x_mm, truth.y_mm, truth.radius_mm};
    bool good = true;
    for (int step = 0; step < 10 && good; ++step) good = improve(event, r, circle);
    if (!good) continue;
    double square = 0;
    for_each_hit_of(event, r, [&](double x_mm, double y_mm) {
      const double d = std::hypot(x_mm - circle.x_mm, y_mm - circle.y_mm) - circle.radius_mm;
      square += d * d;
    });
    rich::Ring& ring = rings.rings[rings.count++];
    ring.x_mm = static_cast<float>(circle.x_mm);
    ring.y_mm = static_cast<float>(circle.y_mm);
    ring.radius_mm = static_cast<float>(circle.radius_mm);
    ring.rms_mm = static_cast<float>(std::sqrt(square / hits));
    ring.hits = static_cast<std::uint16_t>(hits);
    ring.status = rich::RingStatus::ring;
  }
  rich::sort_rings(rings);
  return rings;
}

}  // namespace nanet::emulate
