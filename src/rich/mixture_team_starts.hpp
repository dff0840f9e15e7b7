// SPDX-License-Identifier: Apache-2.0
// Start circles of the mixture finder by a warp (mixture_team.hpp).
//
// The pool holds no circles and no scores: each lane has the three hits of its starts, from which the circle comes again with the same bits, the
// hits that it counts, as a mask, and those that it counts more than half. The masks give a bound of a start's score by a few look-ups. Only
// where the bound is high enough the score is computed; only where that is, the start is offered. The offers are all starts above a floor,
// in the order of the pool; where they are too many the floor is raised, and what was cut off is looked for again if the offers run out.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "nanet/host_device.hpp"
#include "rich/mixture_model.hpp"
#include "rich/mixture_team_memory.hpp"

namespace nanet::rich {

template <class Warp>
class MixtureTeamStarts {
 public:
  using Memory = typename Warp::template Memory<MixtureTeamMemory>;

  // MixtureSearch's make_starts.
  [[gnu::noinline]] NANET_HD static bool make(Memory memory, MixtureOwn& own, float gap) {
    MixtureTeamMemory& m = *memory;
    Warp::sync();
    if (Warp::lane() == 0) m.drop_count = 0;
    Warp::sync();
    Offers offers{.floor = 0.0F, .above = 0.0F, .count = 0, .cut_off = false};
    Best best{kNoStart, gap};
    std::uint32_t chunk = 0;
    std::uint32_t made = 0;
    NANET_UNROLL(1)
    for (std::uint32_t part = 0; part < 2; ++part) {
      made += add_part(m, own, part, kMixturePool - padded_count(made), chunk, offers, best);
      if (Warp::lane() == 0) m.chunks[part] = chunk;
    }
    offers.floor = best.score - gap;
    keep(m, offers);
    return made > 0;
  }

  // MixtureSearch's score.
  NANET_HD static void score(Memory memory, float needed) {
    MixtureTeamMemory& m = *memory;
    Warp::sync();
    if (Warp::lane() == 0) {
      m.floor = needed;
      m.scored = 0;
      m.drop_count = 0;
    }
    Warp::sync();
  }

  // MixtureSearch's drop.
  [[gnu::noinline]] NANET_HD static void drop(Memory memory, float x_mm, float y_mm, float radius_mm) {
    MixtureTeamMemory& m = *memory;
    Warp::sync();
    const MixtureCircle circle{x_mm, y_mm, radius_mm};
    const std::uint32_t drops = m.drop_count;
    const std::uint32_t count = m.scored != 0 ? m.offer_count : 0;
    NANET_UNROLL(1)
    for (std::uint32_t at = Warp::lane(); at < count; at += kWarpLanes) {
      const MixtureQuad offer = m.offers[at];
      if (is_near({offer.x, offer.y, offer.z}, circle, m.setup.start_distance_min_mm)) m.offers[at].w = kGone;
    }
    Warp::sync();
    if (Warp::lane() == 0) {
      m.drops[drops] = {x_mm, y_mm, radius_mm, 0.0F};
      m.drop_count = drops + 1;
    }
    Warp::sync();
  }

  // MixtureSearch's next; the number of an offer, or kMixtureOffers.
  [[gnu::noinline]] NANET_HD static std::uint32_t next(Memory memory, const MixtureOwn& own) {
    MixtureTeamMemory& m = *memory;
    Warp::sync();
    NANET_UNROLL(1)
    for (;;) {
      if (m.scored == 0) scan(m, own);
      float best = kNoStart;
      std::uint32_t at = kMixtureOffers;
      NANET_UNROLL(1)
      for (std::uint32_t k = Warp::lane(); k < m.offer_count; k += kWarpLanes) {
        const float score = m.offers[k].w;
        if (score > best) {
          best = score;
          at = k;
        }
      }
      const float most = max_of(best);
      const bool mine = at < kMixtureOffers && best == most;
      if (Warp::ballot(mine) != 0)
        return kMixtureOffers - static_cast<std::uint32_t>(Warp::max(mine ? static_cast<std::int32_t>(kMixtureOffers - at) : 0));
      if (m.cut_off == 0) return kMixtureOffers;
      Warp::sync();
      if (Warp::lane() == 0) m.scored = 0;
      Warp::sync();
    }
  }

 private:
  static constexpr float kGone = -1.0e9F;
  static constexpr std::uint32_t kHitBits = 7;
  static constexpr std::uint32_t kHitMask = (1u << kHitBits) - 1;
  static constexpr std::uint32_t kPriceBit = 3 * kHitBits;
  static constexpr std::uint32_t kNoTriplet = 0xffffffffu;
  static constexpr std::uint32_t kPriceMax = (1u << (32 - kPriceBit)) - 2;
  static constexpr float kPriceUnit = 0.03125F;

  struct Offers {
    float floor;  // starts below are not offered
    float above;  // where some are cut off: those of this score or less are
    std::uint32_t count;
    bool cut_off;
  };
  struct Best {
    float score, gap;
  };

  // ---- reductions

  NANET_HD static std::int32_t order_of(float value) {
    const auto bits = std::bit_cast<std::int32_t>(value + 0.0F);
    return bits ^ ((bits >> 31) & 0x7fffffff);
  }
  NANET_HD static float max_of(float value) {
    const std::int32_t order = Warp::max(order_of(value));
    return std::bit_cast<float>(order ^ ((order >> 31) & 0x7fffffff));
  }
  NANET_HD static std::uint32_t lanes_below() { return (1u << Warp::lane()) - 1u; }

  // ---- offers

  NANET_HD static void keep(MixtureTeamMemory& m, const Offers& offers) {
    if (Warp::lane() == 0) {
      m.offer_count = offers.count;
      m.cut_off = offers.cut_off ? 1 : 0;
      m.floor = offers.floor;
      m.scored = 1;
    }
    Warp::sync();
  }

  // Offers the start of each lane, if it is `real` and good enough.
  NANET_HD static void offer(MixtureTeamMemory& m, Offers& offers, bool real, const MixtureCircle& circle, float score) {
    bool take = real && !(score < offers.floor) && score > kNoStart && !(offers.cut_off && !(score > offers.above));
    if (Warp::ballot(take) == 0) return;
    NANET_UNROLL(1)
    for (std::uint32_t d = 0; d < m.drop_count; ++d) {
      const MixtureQuad drop = m.drops[d];
      take = take && !is_near(circle, {drop.x, drop.y, drop.z}, m.setup.start_distance_min_mm);
    }
    std::uint32_t takers = Warp::ballot(take);
    NANET_UNROLL(1)
    while (offers.count + Warp::bit_count(takers) > kMixtureOffers) {
      cut_off(m, offers);
      take = take && score > offers.above;
      takers = Warp::ballot(take);
    }
    if (take)
      m.offers[offers.count + Warp::bit_count(takers & lanes_below())] = {circle.x_mm, circle.y_mm, circle.radius_mm, score};
    offers.count += Warp::bit_count(takers);
  }

  // Makes room: only offers of the upper half of the range of scores stay. Of equal ones the first stay.
  [[gnu::noinline]] NANET_HD static void cut_off(MixtureTeamMemory& m, Offers& offers) {
    Warp::sync();
    float low = 1.0e30F;
    float high = -1.0e30F;
    NANET_UNROLL(1)
    for (std::uint32_t k = Warp::lane(); k < offers.count; k += kWarpLanes) {
      const float score = m.offers[k].w;
      low = score < low ? score : low;
      high = score > high ? score : high;
    }
    low = -max_of(-low);
    high = max_of(high);
    offers.cut_off = true;
    if (low == high) {
      offers.above = high;
      offers.count = kMixtureOffers / 2;
      return;
    }
    const float middle = low + 0.5F * (high - low);
    offers.above = middle < high ? middle : low;
    std::uint32_t left = 0;
    NANET_UNROLL(1)
    for (std::uint32_t first = 0; first < offers.count; first += kWarpLanes) {
      const std::uint32_t k = first + Warp::lane();
      const MixtureQuad start = m.offers[k < offers.count ? k : first];
      const bool stays = k < offers.count && start.w > offers.above;
      const std::uint32_t stayers = Warp::ballot(stays);
      Warp::sync();  // all have read
      if (stays) m.offers[left + Warp::bit_count(stayers & lanes_below())] = start;
      left += Warp::bit_count(stayers);
      Warp::sync();
    }
    offers.count = left;
  }

  // ---- the pool

  // Rooms as they count for starts on disk `part`.
  NANET_HD static void set_rooms(MixtureTeamMemory& m, std::uint32_t part) {
    Warp::sync();
    NANET_UNROLL(1)
    for (std::uint32_t h = Warp::lane(); h < m.hit_count; h += kWarpLanes) {
      const bool same_disk = (h < m.on_disk0) == (part == 0);
      m.hits[h].w = same_disk ? m.room[h] : kOtherDisk * m.room[h];
    }
    Warp::sync();
  }

  // Starts through the hits of disk `part`, `most` of them, in chunks from `chunk` on; returns how many.
  NANET_HD static std::uint32_t add_part(MixtureTeamMemory& m, MixtureOwn& own, std::uint32_t part, std::uint32_t most,
                                         std::uint32_t& chunk, Offers& offers, Best& best) {
    const std::uint32_t begin = part == 0 ? 0 : m.on_disk0;
    const std::uint32_t end = part == 0 ? m.on_disk0 : m.hit_count;
    if (end - begin < 3) return 0;
    set_rooms(m, part);
    const std::uint32_t triplets = add_pairs(m, begin, end);
    std::uint32_t pairs = 0;
    std::uint32_t made = 0;
    std::uint32_t queued = 0;
    std::uint32_t first = 0;
    NANET_UNROLL(1)
    while (first < triplets || queued > 0) {
      if (first < triplets) {
        MixtureCircle circle;
        std::uint32_t triplet = 0;
        const bool good = triplet_from(m, first, triplets, pairs, triplet, circle);
        const std::uint32_t makers = Warp::ballot(good);
        const std::uint32_t at = Warp::bit_count(makers & lanes_below());
        if (good && made + at < most) {
          m.pairs.queue[queued + at] = {circle.x_mm, circle.y_mm, circle.radius_mm, std::bit_cast<float>(triplet)};
        }
        const std::uint32_t count = Warp::bit_count(makers) < most - made ? Warp::bit_count(makers) : most - made;
        made += count;
        queued += count;
        first = made < most ? first + kWarpLanes : triplets;
        Warp::sync();
      }
      if (queued < kWarpLanes && first < triplets) continue;
      if (queued == 0) break;
      const bool real = Warp::lane() < queued;
      measure(m, own, chunk++, m.pairs.queue[real ? Warp::lane() : 0], real, offers, best);
      const MixtureQuad rest = m.pairs.queue[kWarpLanes + Warp::lane()];
      Warp::sync();
      m.pairs.queue[Warp::lane()] = rest;
      queued = queued < kWarpLanes ? 0 : queued - kWarpLanes;
      Warp::sync();
    }
    return made;
  }

  // The pairs of hits begin .. end - 1 that are bases of triplets, in m.pairs. Returns the number of their triplets.
  NANET_HD static std::uint32_t add_pairs(MixtureTeamMemory& m, std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t count = end - begin - 1;  // of hits that may be the second of a triplet, and one more
    const std::uint32_t stride = pair_stride(m.on_disk0, m.hit_count);
    const std::uint32_t bases = (count * (count - 1) / 2 + stride - 1) / stride;
    std::uint32_t triplets = 0;
    std::uint32_t pairs = 0;
    NANET_UNROLL(1)
    for (std::uint32_t word = Warp::lane(); word < kMixtureTripletWords; word += kWarpLanes) m.pairs.first_of[word] = 0;
    Warp::sync();
    NANET_UNROLL(1)
    for (std::uint32_t first = 0; first < bases; first += kWarpLanes) {
      const std::uint32_t base = first + Warp::lane();
      std::uint32_t i = 0;
      std::uint32_t j = 1;
      if (base < bases) pair_at(base * stride, count, i, j);
      i += begin;
      j += begin;
      const float ax = m.hits[j].x - m.hits[i].x;
      const float ay = m.hits[j].y - m.hits[i].y;
      const bool none = base >= bases || ax * ax + ay * ay < m.setup.pair_distance2_min;
      const std::uint32_t own = none ? 0 : end - 1 - j;
      std::uint32_t sum = own;
      NANET_UNROLL(1)
      for (std::uint32_t step = 1; step < kWarpLanes; step *= 2) {
        const std::uint32_t before = Warp::from_lane(sum, (Warp::lane() - step) % kWarpLanes);
        if (Warp::lane() >= step) sum += before;
      }
      const std::uint32_t number = triplets + sum - own;  // of the pair's first triplet
      const std::uint32_t owners = Warp::ballot(own != 0);
      if (own != 0) {
        m.pairs.pairs[pairs + Warp::bit_count(owners & lanes_below())] = number | i << 16 | j << 24;
        Warp::set_bits(m.pairs.first_of[number / kWarpLanes], 1u << (number % kWarpLanes));
      }
      pairs += Warp::bit_count(owners);
      triplets += Warp::from_lane(sum, kWarpLanes - 1);
    }
    Warp::sync();
    return triplets;
  }

  // Pair `number` of (0, 1), (0, 2) .. (0, count - 1), (1, 2) ..
  NANET_HD static void pair_at(std::uint32_t number, std::uint32_t count, std::uint32_t& i, std::uint32_t& j) {
    const auto before = [count](std::uint32_t row) { return row * (2 * count - row - 1) / 2; };
    const float middle = static_cast<float>(count) - 0.5F;
    const float square = middle * middle - 2.0F * static_cast<float>(number);
    const float row = middle - std::sqrt(square > 0.0F ? square : 0.0F);
    i = row > 0.0F ? static_cast<std::uint32_t>(row) : 0;
    NANET_UNROLL(1)
    while (i > 0 && before(i) > number) --i;
    NANET_UNROLL(1)
    while (before(i + 1) <= number) ++i;
    j = i + 1 + (number - before(i));
  }

  // The lane's triplet of 32 from `first` on, of `triplets` in m.pairs, where `pairs` pairs begin before `first`; false if it makes no start.
  NANET_HD static bool triplet_from(const MixtureTeamMemory& m, std::uint32_t first, std::uint32_t triplets, std::uint32_t& pairs,
                                    std::uint32_t& triplet, MixtureCircle& circle) {
    const std::uint32_t firsts = m.pairs.first_of[first / kWarpLanes];
    const std::uint32_t number = first + Warp::lane();
    const std::uint32_t pair = m.pairs.pairs[pairs + Warp::bit_count(firsts & (lanes_below() * 2 + 1)) - 1];
    pairs += Warp::bit_count(firsts);
    const std::uint32_t i = pair >> 16 & 0xffu;
    const std::uint32_t j = pair >> 24;
    const std::uint32_t k = number < triplets ? j + 1 + (number - (pair & 0xffffu)) : j;
    triplet = i | j << kHitBits | k << (2 * kHitBits);
    return circle_of_triplet(m, triplet, circle) && number < triplets;
  }

  NANET_HD static bool circle_of_triplet(const MixtureTeamMemory& m, std::uint32_t triplet, MixtureCircle& circle) {
    const MixtureQuad& a = m.hits[triplet & kHitMask];
    const MixtureQuad& b = m.hits[triplet >> kHitBits & kHitMask];
    const MixtureQuad& c = m.hits[triplet >> (2 * kHitBits) & kHitMask];
    const float ax = b.x - a.x;
    const float ay = b.y - a.y;
    return circle_through(m.setup, a.x, a.y, ax, ay, ax * ax + ay * ay, c.x, c.y, circle);
  }

  // Puts a start of each lane into the pool, and offers it.
  NANET_HD static void measure(MixtureTeamMemory& m, MixtureOwn& own, std::uint32_t chunk, const MixtureQuad& start, bool real,
                               Offers& offers, Best& best) {
    const MixtureCircle circle{start.x, start.y, start.z};
    const MixtureReach reach = reach_of(circle);
    const float price = start_price(m.setup, circle);
    float score = price;
    std::uint32_t near[2] = {0, 0};
    std::uint32_t core[2] = {0, 0};
    NANET_UNROLL(2)
    for (std::uint32_t word = 0; word < 2; ++word) {
      const std::uint32_t first = word * kMaskHits;
      const std::uint32_t end = m.hit_count < first + kMaskHits ? m.hit_count : first + kMaskHits;
      if (first >= end) break;
      // Signs are shifted in from below, so the first hit is the highest bit.
      std::uint32_t far_signs = 0;
      std::uint32_t core_signs = 0;
      NANET_UNROLL(2)
      for (std::uint32_t h = first; h < end; ++h) {
        const MixtureQuad hit = m.hits[h];
        const float close = closeness(m.setup, reach, hit.x, hit.y, hit.z);
        const float share = share_of_room(close);
        score = score + hit.w * share;
        far_signs = far_signs << 1 | sign_of(close);
        core_signs = core_signs << 1 | sign_of(0.5F - share);
      }
      const std::uint32_t spare = 32 - (end - first);
      near[word] = Warp::reversed(~far_signs << spare);
      core[word] = Warp::reversed(core_signs << spare);
    }
    NANET_UNROLL(1)
    for (std::uint32_t h = 2 * kMaskHits; h < m.hit_count; ++h) {
      const MixtureQuad hit = m.hits[h];
      score = score + hit.w * nearness(m.setup, reach, hit.x, hit.y, hit.z);
    }
    own.triplet[chunk] = real ? std::bit_cast<std::uint32_t>(start.w) | price_code(price) << kPriceBit : kNoTriplet;
    own.near_low[chunk] = near[0];
    own.core_low[chunk] = core[0];
    if (m.hit_count > kMaskHits) {
      own.near_high[chunk] = near[1];
      own.core_high[chunk] = core[1];
    }
    const float most = max_of(real ? score : kNoStart);
    best.score = most > best.score ? most : best.score;
    offers.floor = best.score - best.gap;
    offer(m, offers, real, circle, score);
  }

  NANET_HD static std::uint32_t sign_of(float value) { return std::bit_cast<std::uint32_t>(value) >> 31; }

  // A price that is not below this one, as a number up to kPriceMax.
  NANET_HD static std::uint32_t price_code(float price) {
    const float units = price * (-1.0F / kPriceUnit);
    return units > 0.0F ? (units < static_cast<float>(kPriceMax) ? static_cast<std::uint32_t>(units) : kPriceMax) : 0;
  }

  // ---- scores

  // Rebuilds the offers.
  NANET_HD static void scan(MixtureTeamMemory& m, const MixtureOwn& own) {
    Offers offers{.floor = m.floor, .above = 0.0F, .count = 0, .cut_off = false};
    std::uint32_t chunk = 0;
    NANET_UNROLL(1)
    for (std::uint32_t part = 0; part < 2; ++part) {
      const std::uint32_t end = m.chunks[part];
      if (chunk == end) continue;
      set_rooms(m, part);
      const Tables tables = make_tables(m);
      std::uint32_t queued = 0;
      NANET_UNROLL(1)
      while (chunk < end || queued > 0) {
        if (chunk < end) {
          const std::uint32_t triplet = own.triplet[chunk];
          MixtureCandidate candidate{triplet, own.near_low[chunk], 0, 0};
          float bound = tables.more - kPriceUnit * static_cast<float>(triplet >> kPriceBit);
          bound = bound + rooms_of<0>(tables, m.hit_count, candidate.near_low, own.core_low[chunk]);
          if (m.hit_count > kMaskHits) {
            candidate.near_high = own.near_high[chunk];
            bound = bound + rooms_of<1>(tables, m.hit_count, candidate.near_high, own.core_high[chunk]);
          }
          const bool take = triplet != kNoTriplet && !(bound < offers.floor) && !(offers.cut_off && !(bound > offers.above));
          const std::uint32_t takers = Warp::ballot(take);
          if (take) m.scores.queue[queued + Warp::bit_count(takers & lanes_below())] = candidate;
          queued += Warp::bit_count(takers);
          if (++chunk < end && queued < kWarpLanes) continue;
        }
        if (queued == 0) break;
        Warp::sync();
        const bool real = Warp::lane() < queued;
        compute(m, m.scores.queue[real ? Warp::lane() : 0], real, offers);
        const MixtureCandidate rest = m.scores.queue[kWarpLanes + Warp::lane()];
        Warp::sync();
        m.scores.queue[Warp::lane()] = rest;
        Warp::sync();
        queued = queued < kWarpLanes ? 0 : queued - kWarpLanes;
      }
    }
    Warp::sync();
    keep(m, offers);
  }

  // Look-ups of the room of up to five hits: lane k has half of the sum for those in the bits of k.
  struct Tables {
    float half_room[2][kMaskHits / kMaskGroup];
    float more;  // to be added to every bound: the room of hits in no mask, and what sums may be off
  };

  NANET_HD static Tables make_tables(const MixtureTeamMemory& m) {
    const std::uint32_t count = m.hit_count;
    Tables tables;
    float all = 0.0F;
    NANET_UNROLL(2)
    for (std::uint32_t word = 0; word < 2; ++word) {
      for (std::uint32_t group = 0; group < kMaskHits / kMaskGroup; ++group) {
        const std::uint32_t first = word * kMaskHits + group * kMaskGroup;
        float sum = 0.0F;
        if (first < count) {
          for (std::uint32_t b = 0; b < kMaskGroup; ++b) {
            const float room = first + b < count ? m.hits[first + b].w : 0.0F;
            sum = sum + ((Warp::lane() >> b & 1u) != 0 ? 0.5F * room : 0.0F);
          }
        }
        tables.half_room[word][group] = sum;
        all = all + sum;
      }
    }
    all = 2.0F * Warp::from_lane(all, kWarpLanes - 1);
    float rest = 0.0F;
    NANET_UNROLL(1)
    for (std::uint32_t h = 2 * kMaskHits; h < count; ++h) rest = rest + m.hits[h].w;
    tables.more = rest + (0.01F + 1.0e-4F * (all + rest));
    return tables;
  }

  // What the hits of a word of masks may add to a score at most. Words have `count` hits.
  template <std::uint32_t word>
  NANET_HD static float rooms_of(const Tables& tables, std::uint32_t count, std::uint32_t near, std::uint32_t core) {
    constexpr std::uint32_t kGroups = kMaskHits / kMaskGroup;
    const auto look_up = [&](std::uint32_t group) {
      const float room = tables.half_room[word][group];
      return Warp::from_lane(room, near >> (group * kMaskGroup)) + Warp::from_lane(room, core >> (group * kMaskGroup));
    };
    float sum = (look_up(0) + look_up(1)) + look_up(2);
    if (count > word * kMaskHits + kGroups / 2 * kMaskGroup) sum = sum + ((look_up(3) + look_up(4)) + look_up(5));
    return sum;
  }

  // Computes the score of a start and offers it.
  NANET_HD static void compute(MixtureTeamMemory& m, const MixtureCandidate& candidate, bool real, Offers& offers) {
    MixtureCircle circle;
    circle_of_triplet(m, candidate.triplet, circle);
    const MixtureReach reach = reach_of(circle);
    float score = start_price(m.setup, circle);
    const auto add = [&](std::uint32_t h) {
      const MixtureQuad hit = m.hits[h];
      score = score + hit.w * nearness(m.setup, reach, hit.x, hit.y, hit.z);
    };
    NANET_UNROLL(1)
    for (std::uint32_t left = real ? candidate.near_low : 0; left != 0; left &= left - 1) add(Warp::first_bit(left));
    NANET_UNROLL(1)
    for (std::uint32_t left = real ? candidate.near_high : 0; left != 0; left &= left - 1) add(kMaskHits + Warp::first_bit(left));
    NANET_UNROLL(1)
    for (std::uint32_t h = 2 * kMaskHits; h < m.hit_count; ++h) add(h);
    offer(m, offers, real, circle, score);
  }
};

}  // namespace nanet::rich
