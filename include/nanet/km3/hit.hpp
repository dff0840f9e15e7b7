// SPDX-License-Identifier: Apache-2.0
// Hits of KM3NeT's optical modules, and how the bytes that floors and strings send become hits. Formats: docs/formats-km3.md.
//
// Terms
//   PM      photomultiplier; Hit::pm is its index in the Detector (detector.hpp), where PMs of one floor are neighbours.
//   time    [ns] since the slice began, calibrated. Calibrated times of raw integer ns are multiples of 1/1024 ns (detector.hpp), so that
//           sums and differences of them are exact.
//   charge  [photo-electrons]. A string measures time over threshold instead: its charge is that over kTimeOverThresholdNs (ours, rough).
//
// Whatever the bytes say, nothing beyond them is read: a record that is wrong is counted by name and left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "nanet/host_device.hpp"

namespace nanet::km3 {

struct Hit {
  double time_ns = 0;
  std::uint32_t pm = 0;
  float charge_pe = 0;
};
static_assert(sizeof(Hit) == 16 && std::is_trivially_copyable_v<Hit>);

inline constexpr float kChargeUnitPe = 0.1F;            // of a floor's hit
inline constexpr float kTimeOverThresholdNs = 26.9F;    // mean of one photo-electron (nlesc-km3net/k40gen)
inline constexpr std::size_t kHitBytes = 6;             // u8 PM, i32 time, u8 charge
inline constexpr std::size_t kSampledHitHeadBytes = 8;  // the same, u8 number of samples, u8 0; then the samples

// What was found in the records of a unit.
struct DecodeCounts {
  std::uint64_t hits = 0;             // written
  std::uint64_t samples = 0;          // of their wave forms
  std::uint64_t records_cut = 0;      // the unit ends in the middle of a record
  std::uint64_t records_bad_pm = 0;   // a PM that the floor does not have
  std::uint64_t records_bad_pad = 0;  // a byte that has to be 0
  std::uint64_t records_no_room = 0;  // there was no room for the hit
};

// Where a floor's PMs are in the detector, and what to add to their times. Made by Detector::calibration().
struct FloorCalibration {
  std::uint32_t first_pm = 0;
  std::uint32_t pm_count = 0;
  const double* time_shift_ns = nullptr;  // of each of the pm_count PMs
};

NANET_HD inline std::int32_t load_be32(const std::byte* from) {
  return static_cast<std::int32_t>(std::to_integer<std::uint32_t>(from[0]) << 24 | std::to_integer<std::uint32_t>(from[1]) << 16 |
                                   std::to_integer<std::uint32_t>(from[2]) << 8 | std::to_integer<std::uint32_t>(from[3]));
}

template <class Word>
NANET_HD inline void store_be(std::byte* to, Word word) {
  for (std::size_t k = sizeof word; k-- > 0;) *to++ = static_cast<std::byte>(word >> 8 * k);
}

namespace detail {

// One hit from its first six bytes; false: no such PM.
inline bool decode_hit(const std::byte* from, const FloorCalibration& floor, float charge_unit, Hit& hit) {
  const auto pm = std::to_integer<std::uint32_t>(from[0]);
  if (pm >= floor.pm_count) return false;
  hit.time_ns = static_cast<double>(load_be32(from + 1)) + floor.time_shift_ns[pm];
  hit.pm = floor.first_pm + pm;
  hit.charge_pe = static_cast<float>(std::to_integer<std::uint32_t>(from[5])) * charge_unit;
  return true;
}

inline std::size_t decode_short_hits(std::span<const std::byte> unit, const FloorCalibration& floor, float charge_unit,
                                     std::span<Hit> hits, DecodeCounts& counts) {
  const std::size_t records = unit.size() / kHitBytes;
  if (records * kHitBytes != unit.size()) ++counts.records_cut;
  std::size_t count = 0;
  for (std::size_t k = 0; k < records; ++k) {
    if (count == hits.size()) {
      counts.records_no_room += records - k;
      break;
    }
    const bool good = decode_hit(unit.data() + k * kHitBytes, floor, charge_unit, hits[count]);
    count += good ? 1 : 0;
    counts.records_bad_pm += good ? 0 : 1;
  }
  counts.hits += count;
  return count;
}

}  // namespace detail

// Kind 1 of a floor. Returns how many hits were written.
inline std::size_t decode_hits(std::span<const std::byte> unit, const FloorCalibration& floor, std::span<Hit> hits,
                               DecodeCounts& counts) {
  return detail::decode_short_hits(unit, floor, kChargeUnitPe, hits, counts);
}

// Hits of a string's module (CLB): PM is the channel, charge the time over threshold.
inline std::size_t decode_clb_hits(std::span<const std::byte> unit, const FloorCalibration& module, std::span<Hit> hits,
                                   DecodeCounts& counts) {
  return detail::decode_short_hits(unit, module, 1.0F / kTimeOverThresholdNs, hits, counts);
}

// Kind 2 of a floor: hits with the samples of their pulses, which are passed over. The length of a record is in it, so that after a
// record that ends beyond the unit nothing is known of the rest.
inline std::size_t decode_sampled_hits(std::span<const std::byte> unit, const FloorCalibration& floor, std::span<Hit> hits,
                                       DecodeCounts& counts) {
  std::size_t count = 0;
  std::size_t at = 0;
  while (at < unit.size()) {
    const std::size_t left = unit.size() - at;
    const std::byte* const record = unit.data() + at;
    const std::size_t samples = left >= kSampledHitHeadBytes ? std::to_integer<std::size_t>(record[6]) : 0;
    if (left < kSampledHitHeadBytes + samples) {
      ++counts.records_cut;
      break;
    }
    at += kSampledHitHeadBytes + samples;
    if (record[7] != std::byte{0}) {
      ++counts.records_bad_pad;
    } else if (count == hits.size()) {
      ++counts.records_no_room;
    } else if (detail::decode_hit(record, floor, kChargeUnitPe, hits[count])) {
      ++count;
      counts.samples += samples;
    } else {
      ++counts.records_bad_pm;
    }
  }
  counts.hits += count;
  return count;
}

}  // namespace nanet::km3
