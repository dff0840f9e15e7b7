// SPDX-License-Identifier: Apache-2.0
// What a user wants to see of the rings while the engine runs: spectra of radius, multiplicity and ring count, and the first events whole.
//
// Thread rules: one thread calls record and take; any thread may read.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "nanet/rich/decision.hpp"
#include "nanet/rich/spectra.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::na62 {

class RingMonitor {
 public:
  RingMonitor() : samples_(rich::kSamples) {}

  void record(const event::Event& event, const rich::EventRings& rings, const rich::Verdict& verdict, const wire::Primitive& answer) {
    add(spectra_.multiplicity[std::min<std::size_t>(verdict.multiplicity, rich::kSpectrumMultiplicityBins - 1)]);
    add(spectra_.ring_count[verdict.rings]);
    for (std::uint32_t k = 0; k < rings.count; ++k) {
      const auto bin = static_cast<std::size_t>(rings.rings[k].radius_mm);
      const bool good = (verdict.good_rings >> k & 1) != 0;
      add(spectra_.radius_mm[good ? std::min(bin, rich::kSpectrumRadiusBins) : rich::kSpectrumRadiusBins]);  // cheaper than a branch
    }
    const std::size_t taken = sample_count_.load(std::memory_order_relaxed);
    if (taken < rich::kSamples) [[unlikely]]
      keep(taken, event, rings, verdict, answer);
  }

  // Adds what someone else has recorded.
  void take(const rich::Spectra& spectra, std::span<const rich::EventSample> samples) {
    add_all(spectra_.radius_mm, spectra.radius_mm);
    add_all(spectra_.multiplicity, spectra.multiplicity);
    add_all(spectra_.ring_count, spectra.ring_count);
    const std::size_t taken = sample_count_.load(std::memory_order_relaxed);
    const std::size_t count = std::min(samples.size(), rich::kSamples - taken);
    std::copy_n(samples.begin(), count, samples_.begin() + static_cast<std::ptrdiff_t>(taken));
    sample_count_.store(taken + count, std::memory_order_release);
  }

  // A snapshot.
  rich::Spectra spectra() const {
    rich::Spectra copy;
    load_all(spectra_.radius_mm, copy.radius_mm);
    load_all(spectra_.multiplicity, copy.multiplicity);
    load_all(spectra_.ring_count, copy.ring_count);
    return copy;
  }
  std::span<const rich::EventSample> samples() const {
    return std::span(samples_).first(sample_count_.load(std::memory_order_acquire));
  }

 private:
  // Plain words, touched through relaxed atomics: ordinary loads and stores to the compiler, and a reader sees no tear.
  static std::uint64_t load(std::uint64_t& bin) { return std::atomic_ref(bin).load(std::memory_order_relaxed); }
  static void add(std::uint64_t& bin, std::uint64_t n = 1) { std::atomic_ref(bin).store(load(bin) + n, std::memory_order_relaxed); }

  template <std::size_t count>
  static void add_all(std::uint64_t (&to)[count], const std::uint64_t (&from)[count]) {
    for (std::size_t i = 0; i < count; ++i) add(to[i], from[i]);
  }
  template <std::size_t count>
  static void load_all(std::uint64_t (&from)[count], std::uint64_t (&to)[count]) {
    for (std::size_t i = 0; i < count; ++i) to[i] = load(from[i]);
  }

  void keep(std::size_t slot, const event::Event& event, const rich::EventRings& rings, const rich::Verdict& verdict,
            const wire::Primitive& answer) {
    rich::EventSample& sample = samples_[slot];
    sample.answer = answer;
    sample.hit_count = static_cast<std::uint16_t>(event.count);
    std::copy_n(event.hits, std::min(event.count, rich::kMaxHits), sample.hits);
    sample.rings = rings;
    sample.good_rings = verdict.good_rings;
    sample_count_.store(slot + 1, std::memory_order_release);
  }

  mutable rich::Spectra spectra_;  // a reader loads through std::atomic_ref, which takes no const
  std::vector<rich::EventSample> samples_;
  std::atomic<std::size_t> sample_count_{0};
};

}  // namespace nanet::na62
