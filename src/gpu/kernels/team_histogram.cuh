// SPDX-License-Identifier: Apache-2.0
// The histogram finder by a warp an event: the 32 lanes are 32 candidate centres in the scan, and share the hits everywhere else. What it does with its hits
// is the finder's own code (rich/histogram.hpp).
//
// Bins, weights and sums over hits are integers, so their order does not matter; of equal peaks the first centre wins, then the first bin.
#pragma once

#include "gpu/kernels/fast_solve.hpp"
#include "gpu/kernels/packed_points.hpp"
#include "gpu/kernels/team.cuh"
#include "gpu/kernels/team_finder.cuh"

namespace nanet::gpu {

// Distance histograms of 32 centres at a time, a column of bytes each: word w of lane l holds bins 4 w .. 4 w + 3. The last word takes what is in no bin.
class CenterScan {
  using Lanes = Team<32>;
  static constexpr std::uint32_t kWords = rich::kRadiusBins / 4;
  static constexpr std::int32_t kRows = 2 * rich::kMaxCenterJ + 1;

 public:
  struct Shared {
    alignas(16) std::uint32_t columns[kWords + 1][32];
    std::uint32_t blocks[kRows * rich::kMaxCenterBlocks];  // of eight centres: j in the upper half, first i in the lower
  };

  __device__ CenterScan(Shared& shared, const std::uint16_t* cells) : shared_(shared), cells_(cells) { clear_column(); }

  // Peak over all centres for `count` hits at `hits`, padded with kNowhere to whole groups of four.
  __device__ rich::CenterPeak peak(const PackedPoint* hits, std::uint32_t count, float range_mm) {
    const std::uint32_t blocks = lay_out_blocks(range_mm);
    std::int32_t best = 0;
    for (std::uint32_t first = 0; first < blocks; first += 4) {
      const std::uint32_t block = first + Lanes::lane() / 8;
      if (block >= blocks) continue;
      const std::uint32_t at = shared_.blocks[block];
      fill_column(hits, count, static_cast<std::int16_t>(at) + 2 * static_cast<std::int32_t>(Lanes::lane() & 7u),
                  static_cast<std::int32_t>(at) >> 16);
      const std::int32_t score = count < 128 ? best_score() : best_score_of_many();
      best = max(best, score << 16 | (0xffff - static_cast<std::int32_t>(8 * block + (Lanes::lane() & 7u))));
    }
    best = Lanes::max(best);
    if (best >> 16 == 0) return {};
    const std::uint32_t center = 0xffffu - (static_cast<std::uint32_t>(best) & 0xffffu);
    const std::uint32_t at = shared_.blocks[center / 8];
    rich::CenterPeak peak{static_cast<std::uint32_t>(best) >> 16,
                          static_cast<std::int16_t>(at) + 2 * static_cast<std::int32_t>(center & 7u),
                          static_cast<std::int32_t>(at) >> 16, 0};
    peak.bin = bin_of_peak(hits, count, peak);
    return peak;
  }

  static constexpr PackedPoint kNowhere = 0x7fff0000u;  // too far from everything to be in a bin

 private:
  // The candidate centres in their order, as blocks; returns how many. A lane has a row.
  __device__ std::uint32_t lay_out_blocks(float range_mm) {
    const std::int32_t j = static_cast<std::int32_t>(Lanes::lane()) - rich::kMaxCenterJ;
    const std::int32_t mine = j <= rich::kMaxCenterJ ? rich::center_blocks(j, range_mm) : 0;
    std::int32_t end = mine;
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
      const std::int32_t before = __shfl_up_sync(0xffffffffu, end, step);
      if (Lanes::lane() >= step) end += before;
    }
    for (std::int32_t k = 0; k < mine; ++k) {
      const std::int32_t first_i = 16 * k + 1 - rich::kCentersPerBlock * mine;
      shared_.blocks[end - mine + k] = pair16(first_i, j);
    }
    Lanes::sync();
    return static_cast<std::uint32_t>(Lanes::from_lane(end, 31));
  }

  // The cell of a hit: its word's offset in bytes, and in the low five bits its place in the word.
  __device__ std::uint32_t cell_of_hit(PackedPoint hit, std::uint32_t factors, std::int32_t center_z) const {
    const std::int32_t z = dot2(factors, hit, center_z) + static_cast<std::int32_t>(hit >> 16);
    return cells_[min(z, rich::kFarZ)];
  }
  __device__ static std::uint32_t factors_of(std::int32_t i, std::int32_t j) { return pair16(-2 * i, -6 * j); }
  __device__ static void count_in(std::uint32_t* column, std::uint32_t cell) {
    atomicAdd(reinterpret_cast<std::uint32_t*>(reinterpret_cast<char*>(column) + (cell & ~127u)), 1u << (cell & 31u));
  }

  // This lane's column from nothing.
  __device__ void fill_column(const PackedPoint* hits, std::uint32_t count, std::int32_t i, std::int32_t j) {
    std::uint32_t* const column = &shared_.columns[0][Lanes::lane()];
    const std::uint32_t factors = factors_of(i, j);
    const std::int32_t center_z = i * i + 3 * j * j;
    for (std::uint32_t k = 0; k < count; k += 4) {
      const uint4 four = *reinterpret_cast<const uint4*>(hits + k);
      count_in(column, cell_of_hit(four.x, factors, center_z));
      count_in(column, cell_of_hit(four.y, factors, center_z));
      count_in(column, cell_of_hit(four.z, factors, center_z));
      count_in(column, cell_of_hit(four.w, factors, center_z));
    }
  }
  __device__ void clear_column() {
#pragma unroll
    for (std::uint32_t word = 0; word <= kWords; ++word) shared_.columns[word][Lanes::lane()] = 0;
  }

  // Byte b + bytes of the 64 in a row of words, for each byte b of `low`; `high` is the word after it.
  __device__ static std::uint32_t shifted(std::uint32_t low, std::uint32_t high, unsigned bytes) {
    return __funnelshift_r(low, high, 8 * bytes);
  }

  // The largest score of this lane's column, four bins at a time: at most 254 for fewer than 128 hits. Empties the column.
  __device__ std::int32_t best_score() {
    std::uint32_t most = 0;  // of the even and the odd bytes
    std::uint32_t word = shared_.columns[0][Lanes::lane()];
    std::uint32_t next = shared_.columns[1][Lanes::lane()];
    std::uint32_t pairs = word + shifted(word, next, 1);  // at b: bins b and b + 1
    const std::uint32_t pairs_before = shifted(0, word, 1);
    std::uint32_t fours_before = pairs_before + shifted(pairs_before, pairs, 2);  // at b: bins b .. b + 3
#pragma unroll 4                                                                  // all 16 would not stay in the instruction cache
    for (std::uint32_t w = 0; w < kWords; ++w) {
      const std::uint32_t after = w + 2 < kWords ? shared_.columns[w + 2][Lanes::lane()] : 0;
      const std::uint32_t next_pairs = next + shifted(next, after, 1);
      const std::uint32_t fours = pairs + shifted(pairs, next_pairs, 2);
      const std::uint32_t narrow = shifted(fours_before, fours, 2) + shifted(word, next, 2);
      const std::uint32_t score = narrow + (fours_before + fours + next);
      most = __vmaxu2(most, __vmaxu2(score & 0x00ff00ffu, score >> 8 & 0x00ff00ffu));
      fours_before = fours;
      word = next;
      next = after;
      pairs = next_pairs;
    }
    clear_column();
    return static_cast<std::int32_t>(max(most & 0xffffu, most >> 16));
  }

  __device__ std::int32_t count_at(std::int32_t bin, std::uint32_t lane) const {
    if (bin < 0 || bin >= static_cast<std::int32_t>(rich::kRadiusBins)) return 0;
    return static_cast<std::int32_t>(shared_.columns[bin / 4][lane] >> (8 * (bin % 4)) & 0xffu);
  }
  NANET_DEVICE_CALL __device__ std::int32_t score_at(std::int32_t bin, std::uint32_t lane) const {
    std::int32_t narrow = 0;
    std::int32_t wide = 0;
#pragma unroll 1
    for (std::int32_t k = bin - 4; k <= bin + 4; ++k) {
      const std::int32_t hits = count_at(k, lane);
      wide += hits;
      narrow += k >= bin - 2 && k <= bin + 2 ? hits : 0;
    }
    return narrow + wide;
  }
  __device__ std::int32_t best_score_of_many() {
    std::int32_t most = 0;
#pragma unroll 1
    for (std::int32_t bin = 0; bin < static_cast<std::int32_t>(rich::kRadiusBins); ++bin)
      most = max(most, score_at(bin, Lanes::lane()));
    clear_column();
    return most;
  }

  // The first bin with the peak's score. The lanes share the hits, then the bins.
  __device__ std::uint32_t bin_of_peak(const PackedPoint* hits, std::uint32_t count, const rich::CenterPeak& peak) {
    const std::uint32_t factors = factors_of(peak.i, peak.j);
    const std::int32_t center_z = peak.i * peak.i + 3 * peak.j * peak.j;
    Lanes::sync();  // all columns are empty
#pragma unroll 1
    for (std::uint32_t k = Lanes::lane(); k < count; k += 32)
      count_in(&shared_.columns[0][0], cell_of_hit(hits[k], factors, center_z));
    Lanes::sync();
    const auto bin = static_cast<std::int32_t>(2 * Lanes::lane());
    const std::int32_t even = score_at(bin, 0) << 8 | (63 - bin);
    const std::int32_t odd = score_at(bin + 1, 0) << 8 | (62 - bin);
    const std::int32_t best = Lanes::max(max(even, odd));
    Lanes::sync();  // all have read
    if (Lanes::lane() <= kWords) shared_.columns[Lanes::lane()][0] = 0;
    Lanes::sync();
    return 63u - (static_cast<std::uint32_t>(best) & 63u);
  }

  Shared& shared_;
  const std::uint16_t* cells_;
};

// The hits of an event as rich::find_rings_of wants them. Hit k is looked at by lane k % 32 alone, so what is noted of it needs no barrier.
class WarpHits {
  using Lanes = Team<32>;

 public:
  struct Shared {
    alignas(16) PackedPoint list[rich::kMaxHits];  // the hits left, for a scan
    CenterScan::Shared scan;
    PackedPoint points[rich::kMaxHits];  // without kPmBit
    float x_mm[rich::kMaxHits];
    float y_mm[rich::kMaxHits];
    std::int8_t time_codes[rich::kMaxHits];
    std::uint8_t is_left[rich::kMaxHits];  // 1: yes; 0: taken out, or no PM
    std::uint8_t is_hit[rich::kMaxHits];   // 0: no PM
    std::uint8_t owners[rich::kMaxHits];   // circle at the last assign(), or kNoOwner
  };

  __device__ WarpHits(event::Event event, const DeviceTables& tables, Shared& shared)
      : shared_(shared), scan_(shared.scan, tables.cells), used_(event.count < rich::kMaxHits ? event.count : rich::kMaxHits) {
    for_each([&](std::uint32_t k) {
      const std::uint32_t hit = event.hits[k];
      const PackedPoint point = tables.packed[hit & 1023u];
      shared_.points[k] = point & ~kPmBit;
      shared_.x_mm[k] = tables.points[hit & 1023u].x_mm;
      shared_.y_mm[k] = tables.points[hit & 1023u].y_mm;
      shared_.time_codes[k] = static_cast<std::int8_t>(static_cast<std::int16_t>(hit) >> 11);
      shared_.is_left[k] = shared_.is_hit[k] = point != 0 ? 1 : 0;
    });
    count_left();
  }

  __device__ std::uint32_t left() const { return left_; }

  __device__ rich::CenterPeak peak(float range_mm) {
    Lanes::sync();  // the list before is read
    std::uint32_t count = 0;
#pragma unroll 1
    for (std::uint32_t k = Lanes::lane(); k - Lanes::lane() < used_; k += 32) {
      const bool take = k < used_ && shared_.is_left[k] != 0;
      const std::uint32_t takers = Lanes::ballot(take);
      if (take) shared_.list[count + static_cast<std::uint32_t>(__popc(takers & ((1u << Lanes::lane()) - 1u)))] = shared_.points[k];
      count += static_cast<std::uint32_t>(__popc(takers));
    }
    if (Lanes::lane() < ((0u - count) & 3u)) shared_.list[count + Lanes::lane()] = CenterScan::kNowhere;
    Lanes::sync();
    return scan_.peak(shared_.list, count, range_mm);
  }

  __device__ bool refit_left(const rich::RefitCuts& cuts, rich::Circle& circle) { return refit(shared_.is_left, 1, cuts, circle); }
  __device__ rich::Ring fit_left(float window_mm, const rich::Circle& circle) { return fit(shared_.is_left, 1, window_mm, circle); }
  __device__ void take_out(const rich::Circle& circle, float distance_mm) {
    for_each([&](std::uint32_t k) {
      if (rich::is_near(circle, distance_mm, shared_.x_mm[k], shared_.y_mm[k])) shared_.is_left[k] = 0;
    });
    count_left();
  }

  NANET_DEVICE_CALL __device__ void assign(const rich::Circle* circles, std::uint32_t count) {
    for_each([&](std::uint32_t k) {
      const std::uint8_t nearest = rich::nearest_circle(circles, count, shared_.x_mm[k], shared_.y_mm[k]);
      shared_.owners[k] = shared_.is_hit[k] != 0 ? nearest : rich::kNoOwner;
    });
  }
  __device__ bool refit_owned(std::uint32_t r, const rich::RefitCuts& cuts, rich::Circle& circle) {
    return refit(shared_.owners, r, cuts, circle);
  }
  __device__ rich::Ring fit_owned(std::uint32_t r, float window_mm, const rich::Circle& circle) {
    return fit(shared_.owners, r, window_mm, circle);
  }

 private:
  template <class F>
  __device__ void for_each(F f) const {
#pragma unroll 1
    for (std::uint32_t k = Lanes::lane(); k < used_; k += 32) f(k);
  }

  __device__ void count_left() {
    std::int32_t mine = 0;
    for_each([&](std::uint32_t k) { mine += shared_.is_left[k]; });
    left_ = static_cast<std::uint32_t>(Lanes::sum(mine));
  }

  // As rich::refit_circle, of the hits with this label.
  NANET_DEVICE_CALL __device__ bool refit(const std::uint8_t* labels, std::uint32_t label, const rich::RefitCuts& cuts,
                                          rich::Circle& circle) const {
    const std::uint32_t passes = cuts.passes < rich::kMaxRefitPasses ? cuts.passes : rich::kMaxRefitPasses;
#pragma unroll 1
    for (std::uint32_t pass = 0; pass < passes; ++pass) {
      const float inverse = rich::inverse_scale2(cuts, pass);
      rich::WeightedSums sums;
      for_each([&](std::uint32_t k) {
        if (labels[k] != label) return;
        const std::int32_t weight = rich::biweight(shared_.x_mm[k] - circle.x_mm, shared_.y_mm[k] - circle.y_mm, circle.radius_mm,
                                                   inverse);
        rich::add_weighted(sums, weight, sums_of(shared_.points[k]));
      });
      const rich::WeightedSums all{Lanes::sum(sums.weight), Lanes::sum(sums.sums)};
      if (!rich::solve_circle(all, circle)) return false;
    }
    return true;
  }

  // As rich::fit_near.
  NANET_DEVICE_CALL __device__ rich::Ring fit(const std::uint8_t* labels, std::uint32_t label, float window_mm,
                                              const rich::Circle& circle) const {
    rich::RingSums sums;
    std::int32_t time_codes = 0;
    for_each([&](std::uint32_t k) {
      if (labels[k] != label || !rich::is_near(circle, window_mm, shared_.x_mm[k], shared_.y_mm[k])) return;
      rich::add(sums, sums_of(shared_.points[k]));
      time_codes += shared_.time_codes[k];
    });
    rich::Ring ring = fast_solve_ring(Lanes::sum(sums));
    time_codes = Lanes::sum(time_codes);
    if (ring.hits > 0) ring.time_ns = static_cast<float>(time_codes) / static_cast<float>(ring.hits) * rich::kHitTimeUnitNs;
    return ring;
  }

  Shared& shared_;
  CenterScan scan_;
  std::uint32_t used_;  // hits looked at, those without a PM among them
  std::uint32_t left_ = 0;
};

template <>
struct TeamFinder<rich::FinderKind::histogram> {
  static constexpr unsigned kLanes = 32;
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kBlocksAnSm = 4;
  static constexpr bool kCellsInShared = true;
  using Shared = WarpHits::Shared;

  __device__ static rich::EventRings find(const rich::FinderConfig& config, event::Event event, const DeviceTables& tables,
                                          Shared& shared) {
    WarpHits hits(event, tables, shared);
    rich::EventRings found;
    found.mapped_hits = static_cast<std::uint16_t>(hits.left());
    found.truncated = event.count > rich::kMaxHits ? 1 : 0;
    rich::find_rings_of(hits, config.histogram, found);
    return found;
  }
};

}  // namespace nanet::gpu
