// SPDX-License-Identifier: Apache-2.0
#include "km3_emulate/units.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "km3_emulate/purpose.hpp"
#include "nanet/config/read.hpp"
#include "nanet/km3/hit.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::km3_emulate {
namespace {

constexpr std::size_t kCharges = 4096;  // of the table of single hits: a power of two
constexpr std::size_t kHitBytes = 6;
constexpr std::size_t kSampledHeadBytes = 8;
constexpr double kPulseNs = 10;  // from the beginning of a pulse to its top
constexpr double kSampleNs = 5;
constexpr double kPedestal = 8;
constexpr double kCountsACharge = 1.2;

std::int32_t whole_ns(double time_ns) {
  return static_cast<std::int32_t>(std::clamp(std::floor(time_ns), -2147483648.0, 2147483647.0));
}

// Writes the records of hits, and knows which of them a floor sends.
class HitWriter {
 public:
  HitWriter(std::vector<std::byte>& bytes, std::size_t expected, std::uint32_t samples, const std::byte* pulses, bool sampled)
      : bytes_(bytes),
        record_bytes_(sampled ? kSampledHeadBytes + samples : kHitBytes),
        samples_(samples),
        pulses_(pulses),
        sampled_(sampled) {
    bytes_.resize(expected * record_bytes_ + 64 * record_bytes_);
  }

  void settings(const FloorSettings& settings, const km3::Pm* pms) {
    for (std::uint32_t pm = 0; pm < kPms; ++pm) {
      const std::int32_t least = settings.voltage[pm] == 0 ? 256 : (settings.threshold[pm] + 9) / 10;
      least_charge_[pm] = static_cast<std::uint32_t>(std::max(0, least));
      offset_ns_[pm] = pms[pm].time_offset_ns;
    }
  }

  void write(double time_ns, std::uint32_t pm, std::uint8_t charge) {
    if (charge < least_charge_[pm]) return;
    if (used_ + record_bytes_ > bytes_.size()) bytes_.resize(bytes_.size() * 3 / 2 + record_bytes_);
    std::byte* const to = bytes_.data() + used_;
    to[0] = static_cast<std::byte>(pm);
    km3::store_be(to + 1, static_cast<std::uint32_t>(whole_ns(time_ns - offset_ns_[pm])));
    to[5] = static_cast<std::byte>(charge);
    if (sampled_) {
      to[6] = static_cast<std::byte>(samples_);
      to[7] = std::byte{0};
      std::memcpy(to + kSampledHeadBytes, pulses_ + std::size_t{charge} * samples_, samples_);
    }
    used_ += record_bytes_;
    ++counts_[pm];
  }

  const std::array<std::uint32_t, kPms>& finish() {
    bytes_.resize(used_);
    return counts_;
  }

 private:
  std::vector<std::byte>& bytes_;
  std::size_t used_ = 0;
  std::size_t record_bytes_;
  std::uint32_t samples_;
  const std::byte* pulses_;
  bool sampled_;
  std::array<std::uint32_t, kPms> least_charge_{};
  std::array<double, kPms> offset_ns_{};
  std::array<std::uint32_t, kPms> counts_{};
};

}  // namespace

UnitMaker::UnitMaker(const TowerConfig& config, km3::Detector detector) : config_(config), detector_(std::move(detector)) {
  config::require(config_);
  find_floors();
  track_maker_.emplace(config_, detector_, first_pms_);
  if (config_.hits) kinds_.push_back(Kind::hits);
  if (config_.samples != 0) kinds_.push_back(Kind::sampled);
  if (config_.hydrophones) {
    sound_.emplace(config_);
    kinds_.insert(kinds_.end(), {Kind::hydrophone_0, Kind::hydrophone_1});
  }
  if (config_.instruments) kinds_.push_back(Kind::instruments);
  make_charges();
}

void UnitMaker::find_floors() {
  const auto tower = static_cast<std::int32_t>(config_.tower);
  for (std::uint32_t floor = 1; floor <= config_.floors; ++floor) {
    const std::uint32_t index = detector_.floor_at(tower, static_cast<std::int32_t>(floor));
    if (index == detector_.floors().size() || detector_.floors()[index].pm_count != kPms) {
      throw SetupError("the detector has no floor " + std::to_string(floor) + " of tower " + std::to_string(tower) + " with 6 PMs",
                       "the emulator plays one of its towers", "set tower and floors to what its file has");
    }
    first_pms_.push_back(detector_.floors()[index].first_pm);
  }
}

void UnitMaker::make_charges() {
  const NoiseConfig& noise = config_.noise;
  Random random({config_.seed, purpose::charges});
  for (std::size_t k = 0; k < kCharges; ++k) {
    double pe = 1.0 + noise.charge_sigma_pe * random.normal();
    if (random.chance(noise.tail_share)) pe += random.exponential(noise.tail_pe);
    charges_.push_back(charge_of(pe));
  }
  for (int charge = 0; charge < 256; ++charge) {
    for (std::uint32_t k = 0; k < config_.samples; ++k) {
      const double t = (k + 0.5) * kSampleNs / kPulseNs;
      const double height = kPedestal + kCountsACharge * charge * t * std::exp(1.0 - t);
      pulses_.push_back(static_cast<std::byte>(std::min(255L, std::lround(height))));
    }
  }
}

const std::vector<Track>& UnitMaker::tracks(std::uint64_t slice) {
  Kept& kept = kept_[slice % kept_.size()];
  if (kept.slice != slice) {
    kept.tracks = track_maker_->tracks(slice);
    kept.slice = slice;
  }
  return kept.tracks;
}

void UnitMaker::unit(std::uint64_t slice, std::uint32_t floor, Kind kind, const FloorSettings& settings,
                     std::vector<std::byte>& bytes, std::array<std::uint32_t, kPms>* hits) {
  bytes.clear();
  switch (kind) {
    case Kind::hits: return hits_unit(slice, floor, false, settings, bytes, hits);
    case Kind::sampled: return hits_unit(slice, floor, true, settings, bytes, hits);
    case Kind::instruments: return instruments_unit(slice, floor, bytes);
    case Kind::hydrophone_0:
    case Kind::hydrophone_1: {
      const std::uint32_t which = kind == Kind::hydrophone_0 ? 0 : 1;
      if (!sound_ || settings.hydrophone_on[which] == 0) return;
      const std::uint64_t begin_ns = std::uint64_t{config_.gps_second} * 1'000'000'000 + slice * config_.slice_ns();
      const km3::Vector& place = detector_.pms()[first_pms_[floor] + (which == 0 ? 0 : kPms - 1)].position_m;
      return sound_->unit(begin_ns, (slice << 8 | floor) << 1 | which, place, bytes);
    }
  }
}

std::vector<UnitMaker::Stretch> UnitMaker::stretches(std::uint64_t slice, std::uint32_t floor) const {
  const NoiseConfig& noise = config_.noise;
  const auto slice_ns = static_cast<double>(config_.slice_ns());
  double loud = 1;
  for (const LoudConfig& one : config_.loud) {
    const bool here = one.floor == 0 || one.floor == floor + 1;
    if (here && slice >= one.slice && slice < std::uint64_t{one.slice} + one.slices) loud *= one.factor;
  }
  std::vector<Stretch> bursts;
  if (noise.bursts_hz > 0) {
    const auto back = static_cast<std::uint64_t>(std::ceil(4e9 * noise.burst_s / slice_ns));
    for (std::uint64_t of = slice - std::min(slice, back); of <= slice; ++of) {
      Random random({config_.seed, purpose::bursts, of, floor});
      const double shift_ns = -static_cast<double>(slice - of) * slice_ns;
      for (std::uint32_t left = random.poisson(noise.bursts_hz * slice_ns * 1e-9); left > 0; --left) {
        const double begin_ns = random.uniform() * slice_ns + shift_ns;
        const double length_ns = 1e9 * std::min(random.exponential(noise.burst_s), 4.0 * noise.burst_s);
        bursts.push_back({begin_ns, begin_ns + length_ns, noise.burst_factor});
      }
    }
  }
  std::vector<double> cuts{0, slice_ns};
  for (const Stretch& burst : bursts) {
    cuts.push_back(std::clamp(burst.begin_ns, 0.0, slice_ns));
    cuts.push_back(std::clamp(burst.end_ns, 0.0, slice_ns));
  }
  std::ranges::sort(cuts);
  std::vector<Stretch> result;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    if (cuts[k] == cuts[k + 1]) continue;
    double factor = loud;
    for (const Stretch& burst : bursts) factor *= burst.begin_ns <= cuts[k] && cuts[k + 1] <= burst.end_ns ? burst.factor : 1.0;
    result.push_back({cuts[k], cuts[k + 1], factor});
  }
  return result;
}

void UnitMaker::add_coincidences(Random& random, std::uint32_t of, std::uint32_t first_pm, std::uint32_t pm_count, double rate_hz,
                                 std::vector<NoiseHit>& hits) const {
  const auto slice_ns = static_cast<double>(config_.slice_ns());
  for (std::uint32_t left = random.poisson(rate_hz * slice_ns * 1e-9); left > 0; --left) {
    const double time_ns = random.uniform() * slice_ns;
    std::array<std::uint32_t, kPms> pms;
    std::iota(pms.begin(), pms.end(), first_pm);
    for (std::uint32_t k = 0; k < of; ++k) {
      std::swap(pms[k], pms[k + random.below(pm_count - k)]);
      const double spread_ns = config_.noise.coincidence_sigma_ns * random.normal();
      hits.push_back({time_ns + spread_ns, static_cast<std::uint8_t>(pms[k]), charges_[random.below(kCharges)]});
    }
  }
}

std::vector<UnitMaker::NoiseHit> UnitMaker::coincident(std::uint64_t slice, std::uint32_t floor) {
  Random random({config_.seed, purpose::coincidences, slice, floor});
  std::vector<NoiseHit> hits;
  const auto& rates = config_.noise.coincidences_hz;
  for (std::uint32_t place = 0; place < 3; ++place) add_coincidences(random, 2, 2 * place, 2, rates[0], hits);
  for (std::uint32_t of = 3; of <= kPms; ++of) add_coincidences(random, of, 0, kPms, rates[of - 2], hits);
  add_light(slice, floor, hits);
  std::ranges::sort(hits, {}, &NoiseHit::time_ns);
  return hits;
}

// With a pool no light comes from a neighbouring slice: which that is changes from lap to lap.
void UnitMaker::add_light(std::uint64_t slice, std::uint32_t floor, std::vector<NoiseHit>& hits) {
  const auto slice_ns = static_cast<double>(config_.slice_ns());
  for (int away = -1; away <= 1; ++away) {
    if (away != 0 && (config_.pool_slices != 0 || (away < 0 && slice == 0))) continue;
    for (const Track& track : tracks(slice + static_cast<std::uint64_t>(static_cast<std::int64_t>(away)))) {
      for (const LightHit& hit : track.hits) {
        const double time_ns = hit.time_ns + away * slice_ns;
        if (hit.floor == floor && time_ns >= 0 && time_ns < slice_ns) hits.push_back({time_ns, hit.pm, hit.charge});
      }
    }
  }
}

void UnitMaker::hits_unit(std::uint64_t slice, std::uint32_t floor, bool sampled, const FloorSettings& settings,
                          std::vector<std::byte>& bytes, std::array<std::uint32_t, kPms>* counts) {
  const std::vector<NoiseHit> extra = coincident(slice, floor);
  const std::vector<Stretch> all = stretches(slice, floor);
  const double rate = kPms * config_.noise.singles_hz * 1e-9;  // of the floor, per ns
  double expected = static_cast<double>(extra.size());
  for (const Stretch& one : all) expected += (one.end_ns - one.begin_ns) * rate * one.factor;
  HitWriter writer(bytes, static_cast<std::size_t>(expected + 5.0 * std::sqrt(expected)), config_.samples, pulses_.data(), sampled);
  writer.settings(settings, &detector_.pms()[first_pms_[floor]]);
  const double old_share = config_.faults.old_hits;
  const double old_ns = config_.faults.old_hits_ms * 1e6;
  Random random({config_.seed, purpose::noise, slice, floor});
  auto next = extra.begin();
  for (const Stretch& stretch : all) {
    if (rate * stretch.factor <= 0) continue;
    const double gap_ns = 1.0 / (rate * stretch.factor);
    for (double t = stretch.begin_ns + random.exponential(gap_ns); t < stretch.end_ns; t += random.exponential(gap_ns)) {
      for (; next != extra.end() && next->time_ns <= t; ++next) writer.write(next->time_ns, next->pm, next->charge);
      const std::uint64_t bits = random.bits();
      const auto pm = static_cast<std::uint32_t>((bits >> 32) * kPms >> 32);
      const double hit_ns = old_share > 0 && random.chance(old_share) ? t - old_ns : t;
      writer.write(hit_ns, pm, charges_[bits & (kCharges - 1)]);
    }
  }
  for (; next != extra.end(); ++next) writer.write(next->time_ns, next->pm, next->charge);
  const auto& counted = writer.finish();
  if (counts != nullptr) *counts = counted;
}

std::int32_t UnitMaker::instrument(std::uint64_t slice, std::uint32_t floor, std::uint16_t number) const {
  Random random({config_.seed, purpose::instruments, slice, floor, number});
  const double noise = random.normal();
  const double turn = 0.7 * floor + 1e-4 * static_cast<double>(slice);
  switch (number) {
    case 64: return kTemperature + static_cast<std::int32_t>(std::lround(noise));
    case 65:
      return static_cast<std::int32_t>(std::lround(9000.0 * (floor % 2) + 300.0 * std::sin(turn) + 5.0 * noise + 36000.0)) % 36000;
    case 66: return static_cast<std::int32_t>(std::lround(50.0 * std::sin(1.3 * turn) + 3.0 * noise));
    default: return static_cast<std::int32_t>(std::lround(50.0 * std::cos(1.7 * turn) + 3.0 * noise));
  }
}

void UnitMaker::instruments_unit(std::uint64_t slice, std::uint32_t floor, std::vector<std::byte>& bytes) const {
  bytes.resize(std::size(kInstruments) * 12);
  std::byte* to = bytes.data();
  for (const std::uint16_t number : kInstruments) {
    km3::store_be(to, std::uint32_t{number} << 16);
    km3::store_be(to + 4, 0);
    km3::store_be(to + 8, static_cast<std::uint32_t>(instrument(slice, floor, number)));
    to += 12;
  }
}

}  // namespace nanet::km3_emulate
