// SPDX-License-Identifier: Apache-2.0
// What a person wants to see of the rings while the engine runs: spectra of radius, multiplicity and ring count, and the first events whole.
//
// Thread rules: one thread calls record; any thread may read.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "nanet/rich/decision.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::engine {

struct EventSample {
  static constexpr std::size_t kHitsMax = rich::kMaxHits;
  wire::Primitive answer;
  std::uint16_t hit_count = 0;  // of the event; only the first kHitsMax are kept
  std::array<std::uint16_t, kHitsMax> hits{};
  rich::EventRings rings;
  std::uint8_t good_rings = 0;  // bit k: rings.rings[k] passed the cuts
};

class RingMonitor {
 public:
  static constexpr std::size_t kRadiusBins = 400;       // of 1 mm, from 0; a larger radius is not binned
  static constexpr std::size_t kMultiplicityBins = 64;  // the last one takes all above
  static constexpr std::size_t kSamples = 256;

  RingMonitor() : samples_(kSamples) {}

  void record(const rich::EventHits& event, const rich::EventRings& rings, const rich::Verdict& verdict,
              const wire::Primitive& answer) {
    bump(multiplicity_[std::min<std::size_t>(verdict.multiplicity, kMultiplicityBins - 1)]);
    bump(ring_count_[verdict.rings]);
    for (std::uint32_t k = 0; k < rings.count; ++k) {
      const auto bin = static_cast<std::size_t>(rings.rings[k].radius_mm);
      bump(radius_mm_[(verdict.good_rings >> k & 1) != 0 ? std::min(bin, kRadiusBins) : kRadiusBins]);  // cheaper than a branch
    }
    const std::size_t taken = sample_count_.load(std::memory_order_relaxed);
    if (taken < kSamples) [[unlikely]]
      keep(taken, event, rings, verdict, answer);
  }

  std::span<const std::atomic<std::uint64_t>> radius_mm() const { return std::span(radius_mm_).first(kRadiusBins); }
  std::span<const std::atomic<std::uint64_t>> multiplicity() const { return multiplicity_; }
  std::span<const std::atomic<std::uint64_t>> ring_count() const { return ring_count_; }
  std::span<const EventSample> samples() const { return std::span(samples_).first(sample_count_.load(std::memory_order_acquire)); }

 private:
  static void bump(std::atomic<std::uint64_t>& bin) {
    bin.store(bin.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  void keep(std::size_t slot, const rich::EventHits& event, const rich::EventRings& rings, const rich::Verdict& verdict,
            const wire::Primitive& answer) {
    EventSample& sample = samples_[slot];
    sample.answer = answer;
    sample.hit_count = static_cast<std::uint16_t>(event.count);
    std::copy_n(event.hits, std::min<std::size_t>(event.count, EventSample::kHitsMax), sample.hits.begin());
    sample.rings = rings;
    sample.good_rings = verdict.good_rings;
    sample_count_.store(slot + 1, std::memory_order_release);
  }

  std::array<std::atomic<std::uint64_t>, kRadiusBins + 1> radius_mm_{};
  std::array<std::atomic<std::uint64_t>, kMultiplicityBins> multiplicity_{};
  std::array<std::atomic<std::uint64_t>, rich::kMaxRings + 1> ring_count_{};  // of events, by number of good rings
  std::vector<EventSample> samples_;
  std::atomic<std::size_t> sample_count_{0};
};

}  // namespace nanet::engine
