// SPDX-License-Identifier: Apache-2.0
// Almagest by a team of lanes. The starts of the search run side by side: eight lanes are the eight directions, each looking on both sides of its A;
// sixteen are the sixteen starts; of thirty-two, two share the hits of a start. In the other steps hits are dealt to the lanes.
//
// Everything that is added up or compared over hits is an integer, so neither the order of the hits nor the number of lanes matters (almagest.hpp).
#pragma once

#include "gpu/kernels/fast_solve.hpp"
#include "gpu/kernels/packed_points.hpp"
#include "gpu/kernels/team.cuh"
#include "gpu/kernels/team_finder.cuh"

namespace nanet::gpu {

template <unsigned lanes>
class AlmagestTeam {
  using Lanes = Team<lanes>;
  using Limits = rich::almagest::Limits;
  using Circle = rich::almagest::Circle;
  using Point = rich::almagest::Point;
  static_assert(lanes >= rich::almagest::kDirections);

 public:
  struct alignas(16) Shared {
    PackedPoint points[rich::kMaxHits + 4];  // without kPmBit; the last four are read together, so copies of the first stand after them
    std::int8_t time_codes[rich::kMaxHits];
    rich::EventRings rings;
    std::uint32_t spread[6];  // teams begin in different banks
  };

  __device__ static rich::EventRings find(const rich::FinderConfig& config, event::Event event, const DeviceTables& tables,
                                          Shared& shared) {
    const Limits limits = rich::almagest::limits_of(config.almagest);
    Lanes::sync();  // the event before is read
    std::uint32_t count = lay_out(event, tables.packed, shared);
    if (Lanes::lane() == 0) {
      shared.rings = rich::EventRings{};
      shared.rings.mapped_hits = static_cast<std::uint16_t>(count);
      shared.rings.truncated = event.count > rich::kMaxHits ? 1 : 0;
    }
    if (limits.window_codes < 32) count = cut_time(shared, count, limits);
    for (std::uint32_t ring_count = 0; ring_count < rich::kMaxRings && count >= limits.hits_min; ++ring_count) {
      std::uint32_t chosen = 0;
      rich::Ring ring = find_ring(shared, count, limits, chosen);
      if (!rich::has_ring(ring.status)) break;
      ring.time_ns = rich::almagest::mean_time_ns(sum_times(shared, chosen), ring.hits);
      count = keep_hits(shared, count, [chosen](std::uint32_t n, std::uint32_t) { return (chosen >> n & 1u) == 0; });
      if (Lanes::lane() != 0) continue;
      shared.rings.rings[ring_count] = ring;
      shared.rings.count = static_cast<std::uint16_t>(ring_count + 1);
    }
    rich::EventRings found;
    if (Lanes::lane() != 0) return found;
    if (shared.rings.count > 1) rich::sort_rings(shared.rings);
    found = shared.rings;
    return found;
  }

 private:
  static constexpr std::int32_t kNoKey = -0x7fffffff - 1;
  static constexpr bool kBothSides = lanes < rich::almagest::kStarts;
  static constexpr std::uint32_t kShares = lanes > rich::almagest::kStarts ? lanes / rich::almagest::kStarts : 1;

  // Hit k of an event belongs to lane k % lanes, as its hit n = k / lanes; sets of hits have bit n in each lane.
  __device__ static std::uint32_t lay_out(event::Event event, const PackedPoint* packed, Shared& shared) {
    const std::uint32_t looked_at = event.count < rich::kMaxHits ? event.count : rich::kMaxHits;
    std::uint32_t count = 0;
#pragma unroll 1
    for (std::uint32_t k = Lanes::lane(); k - Lanes::lane() < looked_at; k += lanes) {
      const std::uint32_t hit = k < looked_at ? event.hits[k] : 1023u;  // no PM there
      const PackedPoint point = packed[hit & 1023u];
      append(shared, point != 0, point & ~kPmBit, static_cast<std::int8_t>(static_cast<std::int16_t>(hit) >> 11), count);
    }
    Lanes::sync();
    return count;
  }

  __device__ static void append(Shared& shared, bool take, PackedPoint point, std::int8_t time_code, std::uint32_t& count) {
    const std::uint32_t takers = Lanes::ballot(take);
    const std::uint32_t at = count + static_cast<std::uint32_t>(__popc(takers & ((1u << Lanes::lane()) - 1u)));
    if (take) {
      shared.points[at] = point;
      shared.time_codes[at] = time_code;
    }
    count += static_cast<std::uint32_t>(__popc(takers));
  }

  // Keeps the hits for which keep(n, k) holds, in their order.
  template <class Keep>
  __device__ static std::uint32_t keep_hits(Shared& shared, std::uint32_t count, Keep keep) {
    std::uint32_t left = 0;
#pragma unroll 1
    for (std::uint32_t n = 0, k = Lanes::lane(); n * lanes < count; ++n, k += lanes) {
      const std::uint32_t at = k < count ? k : count - 1;  // the last hit: others are written meanwhile
      const PackedPoint point = shared.points[at];
      const std::int8_t time_code = shared.time_codes[at];
      Lanes::sync();  // read before something is written there
      append(shared, k < count && keep(n, k), point, time_code, left);
    }
    Lanes::sync();
    return left;
  }

  // Step 1, windows dealt to the lanes: most hits, then nearest to 0, then the earliest.
  __device__ static std::uint32_t cut_time(Shared& shared, std::uint32_t count, const Limits& limits) {
    const std::int32_t codes = limits.window_codes;
    std::int32_t best = -1;
    for (std::int32_t start = -16 + static_cast<std::int32_t>(Lanes::lane()); start + codes <= 16;
         start += static_cast<std::int32_t>(lanes)) {
      std::int32_t inside = 0;
      for (std::uint32_t k = 0; k < count; ++k) {
        const std::int32_t code = shared.time_codes[k];
        inside += code >= start && code < start + codes ? 1 : 0;
      }
      const std::int32_t twice_center = 2 * start + codes - 1;
      best = max(best, inside << 16 | (63 - abs(twice_center)) << 8 | (31 - (start + 16)));
    }
    const std::int32_t start = 15 - (Lanes::max(best) & 31);
    return keep_hits(shared, count, [&](std::uint32_t, std::uint32_t k) {
      const std::int32_t code = shared.time_codes[k];
      return code >= start && code < start + codes;
    });
  }

  // Steps 2 to 6. Status no_ring: none. `chosen`: the ring's hits.
  __device__ static rich::Ring find_ring(Shared& shared, std::uint32_t count, const Limits& limits, std::uint32_t& chosen) {
    if (Lanes::lane() < 4) shared.points[count + Lanes::lane()] = shared.points[0];
    Lanes::sync();
    const Found triplet = best_triplet(shared, count, limits);
    if (triplet.score < 0 || triplet.score < limits.score_min) return {};
    if (limits.ptolemy_hits_min > 3 && !passes_ptolemy(triplet, shared, count, limits)) return {};
    Circle circle = triplet.circle;
    float distance = limits.take_in;
    rich::Ring ring;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
      ring = fit_near(shared, count, circle, distance, chosen);
      if (!rich::has_ring(ring.status) || ring.hits < limits.hits_min) return {};
      circle = rich::almagest::circle_of(ring);
      distance = limits.keep;
    }
    return rich::almagest::is_accepted(ring, limits) ? ring : rich::Ring{};
  }

  // A hit with how far out it is, to be compared as one number: along() above, i and j below. Equal ones are hits of one PM.
  __device__ static std::int32_t key_of(std::int32_t along, PackedPoint hit) {
    return static_cast<std::int32_t>(permute(hit, static_cast<std::uint32_t>(along), 0x5410));
  }
  __device__ static Point point_of(std::int32_t key) {
    return rich::almagest::point_at(static_cast<std::int8_t>(key), static_cast<std::int8_t>(key >> 8));
  }

  // Calls take(hit) for the hits that this lane looks at, and for up to three copies of the first at the end.
  template <class Take>
  __device__ static void for_each_hit(const Shared& shared, std::uint32_t count, Take take) {
    const std::uint32_t share = kShares > 1 ? Lanes::lane() / rich::almagest::kStarts : 0;
    for (std::uint32_t k = 4 * share; k < count; k += 4 * kShares) {
      const uint4 four = *reinterpret_cast<const uint4*>(shared.points + k);
      take(four.x);
      take(four.y);
      take(four.z);
      take(four.w);
    }
  }
  __device__ static std::int32_t max_of_shares(std::int32_t key) {
    if constexpr (kShares > 1) key = ::max(key, Lanes::from_other(key, rich::almagest::kStarts));
    return key;
  }

  // Factors of dot2 for how far out a hit is, and how far to the side on which B is sought.
  struct Factors {
    std::uint32_t out, across;
  };
  __device__ static Factors factors_of(std::uint32_t start) {
    const std::uint32_t direction = start & 7u;
    const std::int32_t side = start < rich::almagest::kDirections ? 1 : -1;
    return {pair16(rich::almagest::along(direction, 1, 0), rich::almagest::along(direction, 0, 1)),
            pair16(side * rich::almagest::along(direction ^ 2u, 1, 0), side * rich::almagest::along(direction ^ 2u, 0, 1))};
  }

  // How far a hit is from A to the side on which B is sought; C is sought where this is negative.
  struct Side {
    __device__ Side(const Factors& f, std::int32_t key_a)
        : factors(f.across), minus_a(dot2(negated(f.across), static_cast<std::uint32_t>(key_a), 0)) {}
    __device__ std::int32_t operator()(PackedPoint hit) const { return dot2(factors, hit, minus_a); }
    std::uint32_t factors;
    std::int32_t minus_a;
  };
  __device__ static std::uint32_t negated(std::uint32_t pair) {
    return pair16(-static_cast<std::int32_t>(static_cast<std::int16_t>(pair)),
                  -static_cast<std::int32_t>(static_cast<std::int16_t>(pair >> 16)));
  }

  // A triplet; score -1: none. A, B and C as keys.
  struct Found {
    std::int32_t score = -1;
    std::int32_t a = 0, b = 0, c = 0;
    Circle circle{};
  };

  // Steps 2 and 3, the same triplet in all lanes.
  __device__ static Found best_triplet(const Shared& shared, std::uint32_t count, const Limits& limits) {
    const std::uint32_t start = Lanes::lane() % rich::almagest::kStarts;
    const Factors factors = factors_of(start);
    std::int32_t key = kNoKey;
    for_each_hit(shared, count, [&](PackedPoint hit) { key = ::max(key, key_of(dot2(factors.out, hit, 0), hit)); });
    const std::int32_t key_a = max_of_shares(key);
    const Point a = point_of(key_a);
    const SquaredDistance to_a(a);
    const Side side(factors, key_a);

    std::int32_t key_b = kNoKey;
    std::int32_t key_b_behind = kNoKey;
    for_each_hit(shared, count, [&](PackedPoint hit) {
      const std::int32_t key_of_hit = key_of(dot2(factors.out, hit, 0), hit);
      const std::int32_t across = side(hit);
      const bool apart = to_a(hit) > limits.pair_z;
      key_b = ::max(key_b, (apart & (across > 0)) ? key_of_hit : kNoKey);
      if constexpr (kBothSides) key_b_behind = ::max(key_b_behind, (apart & (across < 0)) ? key_of_hit : kNoKey);
    });
    key_b = max_of_shares(key_b);
    const std::int32_t enough = limits.score_enough * static_cast<std::int32_t>(count);
    Found found;
    std::int32_t best = -1;
#pragma unroll 1  // the code for both sides of A is there once
    for (std::uint32_t first = 0; first < (kBothSides ? rich::almagest::kStarts : 1u); first += rich::almagest::kDirections) {
      const Found other = find_c(shared, count, limits, factors_of(start + first), key_a, first == 0 ? key_b : key_b_behind);
      const std::int32_t mine = rank(other.score, start + first);
      const std::int32_t most = Lanes::max(mine);
      if (most > best) {
        best = most;
        found = other;
      }
      if constexpr (!kBothSides) {
        const std::int32_t most_of_first = Lanes::max(start < rich::almagest::kDirections ? mine : -1);
        if (most_of_first >> 4 >= enough) best = most_of_first;
      }
      if (best >> 4 >= enough) break;
    }
    if (best < 0) return {};
    const auto winner = static_cast<unsigned>(15 - (best & 15)) & (kBothSides ? 7u : 15u);
    return {best >> 4,
            Lanes::from_lane(found.a, winner),
            Lanes::from_lane(found.b, winner),
            Lanes::from_lane(found.c, winner),
            {Lanes::from_lane(found.circle.i, winner), Lanes::from_lane(found.circle.j, winner),
             Lanes::from_lane(found.circle.radius, winner)}};
  }

  // Of equal scores the first start has the higher rank. Negative: none.
  __device__ static std::int32_t rank(std::int32_t score, std::uint32_t start) {
    return score < 0 ? -1 : score << 4 | (15 - static_cast<std::int32_t>(start));
  }

  // Squared distance of a hit from A.
  struct SquaredDistance {
    __device__ explicit SquaredDistance(const Point& a) : factors(pair16(-2 * a.i, -6 * a.j)), z(a.z) {}
    __device__ std::int32_t operator()(PackedPoint hit) const {
      return dot2(factors, hit, z) + static_cast<std::int32_t>(hit >> 16);
    }
    std::uint32_t factors;
    std::int32_t z;
  };

  // The rest of step 3: C, the circle and its score.
  __device__ static Found find_c(const Shared& shared, std::uint32_t count, const Limits& limits, const Factors& factors,
                                 std::int32_t key_a, std::int32_t key_b) {
    Found found;
    const Point a = point_of(key_a);
    const Point b = point_of(key_b);
    const std::int32_t bi = b.i - a.i;
    const std::int32_t bj = b.j - a.j;
    const SquaredDistance to_a(a);
    const bool has_b = key_b != kNoKey;
    const auto ab = has_b ? static_cast<float>(rich::almagest::squared_distance(a, b)) : 1.0F;
    const std::int32_t cotangent = rich::almagest::cotangent_limit(ab, limits);
    const std::uint32_t dot_factors = pair16(-(a.i + b.i), -3 * (a.j + b.j));
    const std::int32_t dot_ab = a.i * b.i + 3 * (a.j * b.j);
    const std::uint32_t cross_factors = pair16(-bj, bi);
    const std::int32_t minus_cross_a = dot2(pair16(bj, -bi), static_cast<std::uint32_t>(key_a), 0);
    const Side side(factors, key_a);
    const std::uint32_t limit = 8u * static_cast<std::uint32_t>(cotangent);  // times |cross|, 5016 at most: below 2^32
    std::int32_t key_c = kNoKey;
    for_each_hit(shared, count, [&](PackedPoint hit) {
      const auto z = static_cast<std::int32_t>(hit >> 16);
      const std::int32_t dot = dot2(dot_factors, hit, dot_ab) + z;
      const std::int32_t cross = dot2(cross_factors, hit, minus_cross_a);
      const bool apart = to_a(hit) > limits.far_pair_z;
      const bool beside = side(hit) < 0;
      const bool round = static_cast<std::uint32_t>(abs(dot)) <= static_cast<std::uint32_t>(abs(cross)) * limit >> 16;
      key_c = ::max(key_c, (apart & beside & round) ? key_of(dot2(factors.out, hit, 0), hit) : kNoKey);
    });
    key_c = max_of_shares(key_c);
    std::int32_t score = 0;
    const bool has_circle = has_b && key_c != kNoKey && cotangent != 0;
    if (has_circle) {
      const rich::almagest::RoundedCircle round = rich::almagest::circle_through(a, b, point_of(key_c));
      found = {-1, key_a, key_b, key_c, round.circle};
      score = score_of(shared, count, rich::almagest::score_factors_of(round.circle, round.inverse_radius, limits));
    }
    if constexpr (kShares > 1) score += Lanes::from_other(score, rich::almagest::kStarts);
    if (has_circle) found.score = score;
    return found;
  }

  // almagest::score_of, with the shifts of its products taken together, over the hits that this lane looks at. What is added up is how much a hit misses:
  // (65025 - n^2) >> 8 is 254 - ((n^2 + 254) >> 8).
  __device__ static std::int32_t score_of(const Shared& shared, std::uint32_t count, const rich::almagest::ScoreFactors& factors) {
    const std::uint32_t factors_i = pair16(factors.scale_i, 0);
    const std::uint32_t factors_j = pair16(0, factors.scale_j);
    const auto miss = [&](PackedPoint hit) {
      const auto z = static_cast<std::int32_t>(hit >> 16);
      const std::int32_t out = rich::almagest::saturated(((factors.scale * z + 1024) >> 11) + factors.offset);
      const std::int32_t in = rich::almagest::saturated((dot2(factors_i, hit, 32) >> 6) + (dot2(factors_j, hit, 16) >> 5));
      const std::int32_t pull = out - in;
      const std::int32_t near = pull < -255 ? -255 : (pull > 255 ? 255 : pull);
      return (near * near + rich::almagest::kScoreUnit) >> 8;
    };
    std::int32_t missed = 0;
    for_each_hit(shared, count, [&](PackedPoint hit) { missed += miss(hit); });
    if (kShares > 1 && Lanes::lane() >= rich::almagest::kStarts) return -missed;
    const auto copies = static_cast<std::int32_t>((0u - count) & 3u);  // were among the hits of one of the two
    return rich::almagest::kScoreUnit * static_cast<std::int32_t>(count) - missed + copies * miss(shared.points[0]);
  }

  __device__ static bool passes_ptolemy(const Found& found, const Shared& shared, std::uint32_t count, const Limits& limits) {
    rich::almagest::Triplet triplet;
    triplet.a = point_of(found.a);
    triplet.b = point_of(found.b);
    triplet.c = point_of(found.c);
    return rich::almagest::passes_ptolemy(triplet, count, limits, [&](std::uint32_t k) {
      const PackedPoint hit = shared.points[k];
      return Point{i_of(hit), j_of(hit), static_cast<std::int32_t>(hit >> 16)};
    });
  }

  // Step 5: the hits near a circle, and their fit.
  __device__ static rich::Ring fit_near(const Shared& shared, std::uint32_t count, const Circle& circle, float distance,
                                        std::uint32_t& chosen) {
    rich::RingSums sums;
    chosen = 0;
#pragma unroll 1
    for (std::uint32_t n = 0, k = Lanes::lane(); k < count; ++n, k += lanes) {
      const PackedPoint hit = shared.points[k];
      if (!rich::almagest::is_near(circle, Point{i_of(hit), j_of(hit), 0}, distance)) continue;
      chosen |= 1u << n;
      rich::add(sums, sums_of(hit));
    }
    return fast_solve_ring(Lanes::sum(sums));
  }

  __device__ static std::int32_t sum_times(const Shared& shared, std::uint32_t chosen) {
    std::int32_t sum = 0;
    for (std::uint32_t n = 0; chosen >> n != 0; ++n)
      sum += (chosen >> n & 1u) != 0 ? shared.time_codes[Lanes::lane() + n * lanes] : 0;
    return Lanes::sum(sum);
  }
};

template <>
struct TeamFinder<rich::FinderKind::almagest> : AlmagestTeam<16> {
  static constexpr unsigned kLanes = 16;
  static constexpr unsigned kThreads = 128;
  static constexpr unsigned kBlocksAnSm = 8;
};

}  // namespace nanet::gpu
