// SPDX-License-Identifier: Apache-2.0
// Any bytes as the unit of a floor, of each kind, with room for all hits and with less; then slices of them through the trigger, whose books must add
// up. Judge: the records read a second time, by offset.
#include <vector>

#include "fuzz_common.hpp"
#include "nanet/km3/trigger.hpp"

namespace {

using namespace nanet;
using fuzz::require;
using km3::DecodeCounts;
using km3::Hit;

const km3::Detector& detector() {
  static const km3::Detector made = km3::make_towers({.floors = 3});
  return made;
}

std::vector<Hit> check_short(std::span<const std::byte> unit) {
  const km3::FloorCalibration floor = detector().calibration(1);
  std::vector<Hit> hits(unit.size() / km3::kHitBytes + 1);
  DecodeCounts counts;
  hits.resize(km3::decode_hits(unit, floor, hits, counts));
  std::size_t at = 0;
  std::uint64_t bad = 0;
  for (std::size_t k = 0; k + km3::kHitBytes <= unit.size(); k += km3::kHitBytes) {
    const auto pm = std::to_integer<std::uint32_t>(unit[k]);
    if (pm >= 6) {
      ++bad;
      continue;
    }
    require(at < hits.size() && hits[at].pm == floor.first_pm + pm, "each good record is a hit of its PM");
    require(hits[at].time_ns == static_cast<double>(km3::load_be32(unit.data() + k + 1)) + floor.time_shift_ns[pm], "at its time");
    ++at;
  }
  require(at == hits.size() && counts.hits == at && counts.records_bad_pm == bad, "and there are no others");
  require(counts.records_cut == (unit.size() % km3::kHitBytes != 0 ? 1u : 0u), "a cut record is counted");
  return hits;
}

void check_sampled(std::span<const std::byte> unit) {
  const km3::FloorCalibration floor = detector().calibration(2);
  std::vector<Hit> hits(unit.size() / km3::kSampledHitHeadBytes + 1);
  DecodeCounts counts;
  hits.resize(km3::decode_sampled_hits(unit, floor, hits, counts));
  require(counts.hits == hits.size() && counts.records_no_room == 0 && counts.records_cut <= 1, "the books are of what is there");
  require(counts.samples + counts.hits * km3::kSampledHitHeadBytes <= unit.size(), "samples lie in the unit");
  std::vector<Hit> few(hits.size() / 2);
  DecodeCounts of_few;
  require(km3::decode_sampled_hits(unit, floor, few, of_few) == few.size(), "no more hits than there is room");
  for (std::size_t k = 0; k < few.size(); ++k) require(few[k].pm == hits[k].pm && few[k].time_ns == hits[k].time_ns, "the first");
}

void check_trigger(const std::vector<Hit>& hits) {
  km3::TriggerConfig config;
  config.slice_ns = 1e6;
  config.event_ns_max = 1e5;
  config.seeds_min = 3;
  config.floor_hits_max = 64;
  config.seeds_max = 64;
  config.events_max = 4;
  config.event_hits_max = 128;
  km3::Trigger trigger(detector(), config);
  for (std::uint32_t slice = 0; slice < 2; ++slice) {
    trigger.begin(slice);
    trigger.add(hits);
    trigger.finish();
  }
  trigger.flush();
  const km3::TriggerCounts& counts = trigger.counts();
  require(counts.hits_in == 2 * hits.size(), "every hit came in");
  require(counts.hits_in == counts.hits_used + counts.hits_below_threshold + counts.hits_late + counts.hits_ahead +
                                counts.hits_bad_pm + counts.hits_bad_time + counts.hits_no_room + counts.hits_no_slice,
          "and has a name");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  check_trigger(check_short(input.bytes()));
  check_sampled(input.bytes());
  return 0;
}
