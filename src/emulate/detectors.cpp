// SPDX-License-Identifier: Apache-2.0
#include "emulate/detectors.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "nanet/config/read.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

constexpr std::size_t kShifts = 4096;

// The value that a standard Gaussian is below with this probability, 0 < probability <= 0.5; by bisection.
double quantile(double probability) {
  double low = -10.0;
  double high = 0.0;
  for (int step = 0; step < 40; ++step) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < probability ? low : high) = middle;
  }
  return high;
}

// The middles of kShifts equally likely parts of the Gaussian, in whole ticks.
std::vector<std::int16_t> shifts_of(const DetectorConfig& config) {
  std::vector<std::int16_t> shifts(kShifts);
  const auto in_ticks = [&](double sigmas) {
    return static_cast<std::int16_t>(std::floor((config.offset_ns + config.time_sigma_ns * sigmas) / wire::kTickNs + 0.5));
  };
  for (std::size_t i = 0; i < kShifts / 2; ++i) {
    const double below = quantile((static_cast<double>(i) + 0.5) / static_cast<double>(kShifts));
    shifts[i] = in_ticks(below);
    shifts[kShifts - 1 - i] = in_ticks(-below);
  }
  return shifts;
}

}  // namespace

Detector::Detector(const DetectorConfig& config, std::uint64_t seed, std::uint64_t frame_ticks)
    : config_(config),
      random_(seed * 256 + config.source_id),
      frame_ticks_(frame_ticks),
      accidental_gap_ticks_(config.accidental_rate_hz > 0 ? 1.0e9 / config.accidental_rate_hz / wire::kTickNs : 0.0) {
  config::require(config, "detector");
  if (frame_ticks == 0 || frame_ticks % kFrameTicks != 0) {
    throw SetupError("a frame of " + std::to_string(frame_ticks) + " ticks", "a packet's header counts 65536 ticks",
                     "use a multiple");
  }
  seen_below_ = static_cast<std::uint64_t>(config.efficiency * 0x1p24);
  shifts_ = shifts_of(config);
  waiting_.reserve(kFramePrimitives);
  if (accidental_gap_ticks_ > 0) draw_accidental();
}

void Detector::see_frame(std::uint64_t frame, std::span<const std::uint64_t> event_ticks) {
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(ready_count_));
  frame_ = frame;
  const std::uint64_t begin = frame * frame_ticks_;
  const std::uint64_t end = begin + frame_ticks_;
  // In order of time except for the shifts, so that little has to be moved.
  const auto accidentals_until = [&](std::uint64_t ticks) {
    while (accidental_gap_ticks_ > 0 && next_accidental_ticks_ < static_cast<double>(ticks - begin)) {
      ++accidentals_;
      insert(begin + static_cast<std::uint64_t>(next_accidental_ticks_), random_());
      draw_accidental();
    }
  };
  events_shown_ += event_ticks.size();
  for (const std::uint64_t event : event_ticks) {
    accidentals_until(event);
    const std::uint64_t bits = random_();
    if (bits >> 40 >= seen_below_) continue;
    ++events_seen_;
    const std::int64_t ticks = static_cast<std::int64_t>(event) + shifts_[bits >> 28 & (kShifts - 1)];
    insert(static_cast<std::uint64_t>(std::max(std::int64_t{0}, ticks)), bits);
  }
  accidentals_until(end);
  if (accidental_gap_ticks_ > 0) next_accidental_ticks_ -= static_cast<double>(frame_ticks_);
  ready_count_ = waiting_.size();
  while (ready_count_ > 0 && waiting_[ready_count_ - 1].ticks >= end) --ready_count_;
  sent_count_ = 0;
  packet_due_ = true;
}

void Detector::draw_accidental() { next_accidental_ticks_ -= accidental_gap_ticks_ * std::log1p(-uniform()); }

// To its place in time order, which is near the end.
void Detector::insert(std::uint64_t ticks, std::uint64_t bits) {
  const Sighting seen{ticks, static_cast<std::uint16_t>(config_.primitive_id | (bits & config_.random_bits))};
  waiting_.push_back(seen);
  std::size_t place = waiting_.size() - 1;
  for (; place > 0 && waiting_[place - 1].ticks > ticks; --place) waiting_[place] = waiting_[place - 1];
  waiting_[place] = seen;
}

std::span<const std::byte> Detector::next_packet() {
  if (!packet_due_) return {};
  wire::MtpWriter writer(room_);
  writer.begin(config_.source_id, config_.source_sub_id, wire::timestamp_of(frame_ * frame_ticks_));
  for (; sent_count_ < ready_count_; ++sent_count_) {
    const Sighting& seen = waiting_[sent_count_];
    if (!writer.add({wire::timestamp_of(seen.ticks), wire::fine_time_of(seen.ticks), seen.id})) break;
  }
  packet_due_ = sent_count_ < ready_count_;
  packet_primitives_ = writer.primitive_count();
  return writer.finish();
}

// [0, 1), 53 bits.
double Detector::uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

std::vector<DetectorConfig> default_detectors() {
  return {{.name = "CHOD", .source_id = wire::kSourceChod, .efficiency = 0.98, .time_sigma_ns = 0.25},
          {.name = "NewCHOD", .source_id = wire::kSourceNewChod, .efficiency = 0.97, .time_sigma_ns = 1.0},
          {.name = "MUV3", .source_id = wire::kSourceMuv3, .efficiency = 0.6, .time_sigma_ns = 0.5},
          {.name = "LAV", .source_id = wire::kSourceLav, .efficiency = 0.2, .time_sigma_ns = 1.0},
          {.name = "LKr", .source_id = wire::kSourceLkr, .efficiency = 0.4, .time_sigma_ns = 0.5},
          {.name = "CEDAR", .source_id = wire::kSourceCedar, .efficiency = 0.95, .time_sigma_ns = 0.1}};
}

}  // namespace nanet::emulate
