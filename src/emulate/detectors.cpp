// SPDX-License-Identifier: Apache-2.0
#include "nanet/emulate/detectors.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "nanet/setup_error.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

void check(const char* name, double value, double min, double max) {
  if (value >= min && value <= max) return;
  throw SetupError(std::string(name) + " is " + std::to_string(value), "out of range",
                   "choose " + std::to_string(min) + " to " + std::to_string(max));
}

void check(const DetectorConfig& config) {
  check("efficiency", config.efficiency, 0.0, 1.0);
  check("time_sigma_ns", config.time_sigma_ns, 0.0, 100.0);
  check("offset_ns", config.offset_ns, -1000.0, 1000.0);
  check("accidental_rate_hz", config.accidental_rate_hz, 0.0, 1.0e9);
  if (config.id < wire::kPrimitiveIdMin || ((config.id | config.id_random_bits) & 0x8000) != 0) {
    throw SetupError("primitive ID " + std::to_string(config.id), "its top byte is never 0 and bit 15 marks calibration",
                     "set a bit from 8 to 14");
  }
}

}  // namespace

Detector::Detector(const DetectorConfig& config, std::uint64_t seed)
    : config_(config),
      random_(seed * 256 + config.source_id),
      sigma_ticks_(config.time_sigma_ns / wire::kTickNs),
      offset_ticks_(config.offset_ns / wire::kTickNs),
      accidental_gap_ticks_(config.accidental_rate_hz > 0 ? 1.0e9 / config.accidental_rate_hz / wire::kTickNs : 0.0) {
  check(config);
  waiting_.reserve(kFramePrimitives);
  if (accidental_gap_ticks_ > 0) next_accidental_ticks_ = -accidental_gap_ticks_ * std::log1p(-uniform());
}

void Detector::see_frame(std::uint64_t frame, std::span<const std::uint64_t> event_ticks) {
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(ready_count_));
  frame_ = frame;
  for (const std::uint64_t event : event_ticks) {
    ++events_shown_;
    if (uniform() >= config_.efficiency) continue;
    ++events_seen_;
    const auto shift = static_cast<std::int64_t>(std::floor(offset_ticks_ + sigma_ticks_ * gaussian() + 0.5));
    const auto ticks = std::max(std::int64_t{0}, static_cast<std::int64_t>(event) + shift);
    waiting_.push_back({static_cast<std::uint64_t>(ticks), draw_id()});
  }
  if (accidental_gap_ticks_ > 0) {
    for (; next_accidental_ticks_ < static_cast<double>(kFrameTicks);
         next_accidental_ticks_ -= accidental_gap_ticks_ * std::log1p(-uniform())) {
      ++accidentals_;
      waiting_.push_back({frame * kFrameTicks + static_cast<std::uint64_t>(next_accidental_ticks_), draw_id()});
    }
    next_accidental_ticks_ -= static_cast<double>(kFrameTicks);
  }
  std::ranges::sort(waiting_, {}, &Sighting::ticks);
  const auto later = std::ranges::lower_bound(waiting_, (frame + 1) * kFrameTicks, {}, &Sighting::ticks);
  ready_count_ = static_cast<std::size_t>(later - waiting_.begin());
  sent_count_ = 0;
  packet_due_ = true;
}

std::span<const std::byte> Detector::next_packet() {
  if (!packet_due_) return {};
  wire::MtpWriter writer(room_);
  writer.begin(config_.source_id, config_.source_sub_id, wire::timestamp_of(frame_ * kFrameTicks));
  for (; sent_count_ < ready_count_; ++sent_count_) {
    const Sighting& seen = waiting_[sent_count_];
    if (!writer.add({wire::timestamp_of(seen.ticks), wire::fine_time_of(seen.ticks), seen.id})) break;
  }
  packet_due_ = sent_count_ < ready_count_;
  return writer.finish();
}

// [0, 1), 53 bits.
double Detector::uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

// Box and Muller, cut at five sigma.
double Detector::gaussian() {
  for (;;) {
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    const double value = radius * std::cos(2.0 * std::numbers::pi * uniform());
    if (std::abs(value) <= 5.0) return value;
  }
}

std::uint16_t Detector::draw_id() { return static_cast<std::uint16_t>(config_.id | (random_() >> 48 & config_.id_random_bits)); }

std::array<DetectorConfig, 6> default_detectors() {
  return {{
      {.source_id = wire::kSourceChod, .efficiency = 0.98, .time_sigma_ns = 0.25, .accidental_rate_hz = 2.0e6},
      {.source_id = wire::kSourceNewChod, .efficiency = 0.97, .time_sigma_ns = 1.0, .accidental_rate_hz = 2.0e6},
      {.source_id = wire::kSourceMuv3, .efficiency = 0.6, .time_sigma_ns = 0.5, .accidental_rate_hz = 3.0e6},
      {.source_id = wire::kSourceLav, .efficiency = 0.2, .time_sigma_ns = 1.0, .accidental_rate_hz = 1.0e6},
      {.source_id = wire::kSourceLkr, .efficiency = 0.4, .time_sigma_ns = 0.5, .accidental_rate_hz = 1.0e6},
      {.source_id = wire::kSourceCedar, .efficiency = 0.95, .time_sigma_ns = 0.1, .accidental_rate_hz = 5.0e6},
  }};
}

}  // namespace nanet::emulate
