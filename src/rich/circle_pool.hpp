// SPDX-License-Identifier: Apache-2.0
// Circles through triplets of hits, each scored against all hits: where robust finders start from.
//
// A seed is one hit; its partners are hits after it in the order of the plane. Seen from the seed, the circle through it and two partners j, k is
// x^2 + y^2 = p x + q y, two linear equations, and u = x^2 + y^2 - p x - q y of another hit is d^2 - R^2, so its distance from the circle is nearly
// u / 2R. score = sum over hits of weight max(0, 1 - (u / 2R width)^2), minus a penalty that grows with the radius (a bigger circle meets more
// hits by chance). No square root is needed but for that penalty.
//
// The best of a seed is the first one of the highest score in the order (j, k). The arithmetic of a triplet is one fixed sequence of single operations,
// so a vector of triplets gives the same bits for any number of lanes.
// Bounds: a seed has at most kPartnersMax partners, evenly chosen, so at most kPartnersMax (kPartnersMax - 1) / 2 triplets.
// Thread rules: pure functions on the caller's memory; no allocation.
#pragma once

#include <cmath>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "rich/hit_plane.hpp"

namespace nanet::rich::triplets {

inline constexpr std::uint32_t kPartnersMax = 64;     // of a seed
inline constexpr std::uint32_t kCirclesInWork = 512;  // scored together; at least kPartnersMax and two vectors
inline constexpr std::uint32_t kVectorSlack = 16;     // lanes that a vector may read or write after the last element

struct Circle {
  float x_mm = 0;
  float y_mm = 0;
  float radius_mm = 0;
  float time_ns = 0;
  float score = 0;
};

// Hits to search in.
struct SearchHits {
  alignas(64) float x_mm[kMaxHits];
  alignas(64) float y_mm[kMaxHits];
  alignas(64) float time_ns[kMaxHits];
  alignas(64) float weight[kMaxHits];  // 0..1
  std::uint32_t count = 0;
};

// What a circle must be to be scored, and how it is scored.
struct CircleCuts {
  float pair_distance_min_mm = 0;  // between any two hits of a triplet
  float radius_min_mm = 0;
  float radius_max_mm = 0;
  float center_max_mm = 0;       // distance of the centre from the disk's
  float partner_weight_min = 0;  // of each hit of a triplet
  float width_mm = 1;            // distance at which a hit adds nothing
  float penalty_per_mm = 0;      // of radius
  float time_window_ns = 0;      // between any two hits of a triplet; 0: times do not matter
  float time_width_ns = 0;       // time from the triplet's mean at which a hit adds nothing; 0: times do not matter
};

// A seed's view of the hits: coordinates relative to it, and its partners.
struct SeedView {
  alignas(64) float x_mm[kMaxHits];
  alignas(64) float y_mm[kMaxHits];
  alignas(64) float z_mm2[kMaxHits];  // x^2 + y^2
  const float* weight = nullptr;
  const float* time_ns = nullptr;
  std::uint32_t count = 0;
  float seed_x_mm = 0;
  float seed_y_mm = 0;
  float seed_time_ns = 0;
  // After the last partner come zeros, which make no circle.
  alignas(64) float partner_x_mm[kMaxHits + kVectorSlack];
  alignas(64) float partner_y_mm[kMaxHits + kVectorSlack];
  alignas(64) float partner_z_mm2[kMaxHits + kVectorSlack];
  alignas(64) float partner_time_ns[kMaxHits + kVectorSlack];
  std::uint32_t partner_count = 0;
};

// Circles that passed the cuts, in the order (j, k).
struct CircleList {
  alignas(64) float p_mm[kCirclesInWork + kVectorSlack];
  alignas(64) float q_mm[kCirclesInWork + kVectorSlack];
  alignas(64) float r4_mm2[kCirclesInWork + kVectorSlack];  // (2R)^2 = p^2 + q^2
  alignas(64) float time_ns[kCirclesInWork + kVectorSlack];
  std::uint32_t count = 0;
};

// The highest score so far of a seed, and the circle that has it.
struct SeedBest {
  float score = 0;
  float p_mm = 0;
  float q_mm = 0;
  float r4_mm2 = 0;
  float time_ns = 0;
};

// 1 / width^2, and 0 where a width of 0 says that the quantity does not matter.
NANET_HD inline float inverse_square(float width) { return width > 0.0F ? 1.0F / (width * width) : 0.0F; }

// max(0, 1 - x), in the form that vectors use too.
NANET_HD inline float tent(float x) {
  const float rest = 1.0F - x;
  return rest > 0.0F ? rest : 0.0F;
}

NANET_HD inline void view_from_seed(const SearchHits& hits, std::uint32_t seed, const CircleCuts& cuts, SeedView& view) {
  view.count = hits.count;
  view.weight = hits.weight;
  view.time_ns = hits.time_ns;
  view.seed_x_mm = hits.x_mm[seed];
  view.seed_y_mm = hits.y_mm[seed];
  view.seed_time_ns = hits.time_ns[seed];
  for (std::uint32_t k = 0; k < hits.count; ++k) {
    const float dx = hits.x_mm[k] - view.seed_x_mm;
    const float dy = hits.y_mm[k] - view.seed_y_mm;
    view.x_mm[k] = dx;
    view.y_mm[k] = dy;
    view.z_mm2[k] = dx * dx + dy * dy;
  }
  const float distance2_min = cuts.pair_distance_min_mm * cuts.pair_distance_min_mm;
  const float window_ns = cuts.time_window_ns > 0.0F ? cuts.time_window_ns : 1.0e9F;
  std::uint32_t count = 0;
  for (std::uint32_t k = seed + 1; k < hits.count;
       ++k) {  // stores first and counts then: what an event holds is random, a branch would be mispredicted
    const float dt = hits.time_ns[k] - view.seed_time_ns;
    view.partner_x_mm[count] = view.x_mm[k];
    view.partner_y_mm[count] = view.y_mm[k];
    view.partner_z_mm2[count] = view.z_mm2[k];
    view.partner_time_ns[count] = hits.time_ns[k];
    const bool take = (view.z_mm2[k] >= distance2_min) & (hits.weight[k] >= cuts.partner_weight_min) &
                      (dt * dt <= window_ns * window_ns);
    count += take ? 1u : 0u;
  }
  if (count > kPartnersMax) {
    for (std::uint32_t k = 0; k < kPartnersMax; ++k) {
      const std::uint32_t from = k * count / kPartnersMax;
      view.partner_x_mm[k] = view.partner_x_mm[from];
      view.partner_y_mm[k] = view.partner_y_mm[from];
      view.partner_z_mm2[k] = view.partner_z_mm2[from];
      view.partner_time_ns[k] = view.partner_time_ns[from];
    }
    count = kPartnersMax;
  }
  for (std::uint32_t k = count; k < count + kVectorSlack; ++k) {
    view.partner_x_mm[k] = 0.0F;
    view.partner_y_mm[k] = 0.0F;
    view.partner_z_mm2[k] = 0.0F;
    view.partner_time_ns[k] = 0.0F;
  }
  view.partner_count = count;
}

// Appends the circles of partner j with each later one.
NANET_HD inline void collect_circles(const SeedView& view, std::uint32_t j, const CircleCuts& cuts, CircleList& list) {
  const float distance2_min = cuts.pair_distance_min_mm * cuts.pair_distance_min_mm;
  const float r4_min = 4.0F * (cuts.radius_min_mm * cuts.radius_min_mm);
  const float r4_max = 4.0F * (cuts.radius_max_mm * cuts.radius_max_mm);
  const float center2_max = cuts.center_max_mm * cuts.center_max_mm;
  const float window_ns = cuts.time_window_ns > 0.0F ? cuts.time_window_ns : 1.0e9F;
  const float xj = view.partner_x_mm[j];
  const float yj = view.partner_y_mm[j];
  const float zj = view.partner_z_mm2[j];
  const float tj = view.partner_time_ns[j];
  for (std::uint32_t k = j + 1; k < view.partner_count; ++k) {
    const float xk = view.partner_x_mm[k];
    const float yk = view.partner_y_mm[k];
    const float zk = view.partner_z_mm2[k];
    const float tk = view.partner_time_ns[k];
    const float dx = xk - xj;
    const float dy = yk - yj;
    const float dt = tk - tj;
    const float det = xj * yk - xk * yj;  // twice the triangle's area: 0, or at least half a cell of the lattice
    const bool flat = !(det * det >= 1.0F);
    const float inverse = 1.0F / (flat ? 1.0F : det);
    const float p = (zj * yk - zk * yj) * inverse;
    const float q = (xj * zk - xk * zj) * inverse;
    const float r4 = p * p + q * q;
    const float center_x = 0.5F * p + view.seed_x_mm;
    const float center_y = 0.5F * q + view.seed_y_mm;
    const bool apart = (dx * dx + dy * dy >= distance2_min) & (dt * dt <= window_ns * window_ns);
    const bool sized = (r4 >= r4_min) & (r4 <= r4_max) & (center_x * center_x + center_y * center_y <= center2_max);
    if (flat | !apart | !sized) continue;
    list.p_mm[list.count] = p;
    list.q_mm[list.count] = q;
    list.r4_mm2[list.count] = r4;
    list.time_ns[list.count] = ((view.seed_time_ns + tj) + tk) * (1.0F / 3.0F);
    ++list.count;
  }
}

// Scores the list, keeps its best if it is better, and empties the list.
NANET_HD inline void score_circles(const SeedView& view, const CircleCuts& cuts, CircleList& list, SeedBest& best) {
  const float inverse_width2 = inverse_square(cuts.width_mm);
  const float inverse_time2 = inverse_square(cuts.time_width_ns);
  for (std::uint32_t c = 0; c < list.count; ++c) {
    const float p = list.p_mm[c];
    const float q = list.q_mm[c];
    const float scale = inverse_width2 / list.r4_mm2[c];
    float score = 0.0F;
    for (std::uint32_t k = 0; k < view.count; ++k) {
      const float u = (view.z_mm2[k] - p * view.x_mm[k]) - q * view.y_mm[k];
      const float dt = view.time_ns[k] - list.time_ns[c];
      score += (view.weight[k] * tent(u * u * scale)) * tent(dt * dt * inverse_time2);
    }
    score = score - cuts.penalty_per_mm * (0.5F * std::sqrt(list.r4_mm2[c]));
    if (score > best.score) best = SeedBest{score, p, q, list.r4_mm2[c], list.time_ns[c]};
  }
  list.count = 0;
}

// The two steps for all pairs of a seed's partners. This is what a back-end replaces.
NANET_HD inline void best_of_seed(const SeedView& view, const CircleCuts& cuts, CircleList& list, SeedBest& best) {
  list.count = 0;
  for (std::uint32_t j = 0; j + 1 < view.partner_count; ++j) {
    if (list.count + kPartnersMax > kCirclesInWork) score_circles(view, cuts, list, best);
    collect_circles(view, j, cuts, list);
  }
  score_circles(view, cuts, list, best);
}

template <class View>
NANET_HD inline Circle circle_of(const View& view, const SeedBest& best) {
  return Circle{0.5F * best.p_mm + view.seed_x_mm, 0.5F * best.q_mm + view.seed_y_mm, 0.5F * std::sqrt(best.r4_mm2), best.time_ns,
                best.score};
}

}  // namespace nanet::rich::triplets
