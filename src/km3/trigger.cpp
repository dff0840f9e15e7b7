// SPDX-License-Identifier: Apache-2.0
#include "nanet/km3/trigger.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::km3 {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kInsertMax = 32;  // hits of a bucket that are put in order one by one
constexpr std::size_t kBucketsMax = 1u << 16;

// A total order, so that the order in which hits came makes no difference.
bool is_before(const Hit& a, const Hit& b) {
  if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
  if (a.pm != b.pm) return a.pm < b.pm;
  return a.charge_pe < b.charge_pe;
}

bool seed_is_before(const Seed& a, const Seed& b) {
  return a.point.time_ns != b.point.time_ns ? a.point.time_ns < b.point.time_ns : a.pm < b.pm;
}

void put_in_order(Hit* begin, Hit* end) {
  if (end - begin > kInsertMax) {
    std::sort(begin, end, is_before);
    return;
  }
  for (Hit* next = begin + 1; next < end; ++next) {
    const Hit hit = *next;
    Hit* to = next;
    for (; to > begin && is_before(hit, to[-1]); --to) *to = to[-1];
    *to = hit;
  }
}

double longest_ns(const L1Cuts& cuts) { return std::max(cuts.simple_ns, cuts.floor_ns); }

}  // namespace

std::optional<config::Problem> TriggerConfig::check() const {
  return config::first_broken({
      {window_ns + around_ns + reorder_ns > 0.25 * slice_ns,
       {"slice_ns", "slices of " + std::to_string(slice_ns) + " ns",
        "a quarter of one has to hold window_ns, around_ns and reorder_ns", "make them longer"}},
      {event_ns_max > 0.25 * slice_ns,
       {"event_ns_max", "events of " + std::to_string(event_ns_max) + " ns", "one is at most a quarter of a slice",
        "make it shorter"}},
      {direction_step_deg != 0 && direction_step_deg < 1,
       {"direction_step_deg", "directions " + std::to_string(direction_step_deg) + " degrees apart", "that is too many",
        "use 1 or more"}},
  });
}

Trigger::Trigger(const Detector& detector, const TriggerConfig& config, std::unique_ptr<SeedJudge> judge)
    : detector_(detector), config_(config), judge_(judge ? std::move(judge) : std::make_unique<CpuJudge>()) {
  if (const auto problem = config_.check()) throw SetupError(problem->problem, problem->why, problem->suggestion);
  if (config_.seeds_min < 2 || config_.seeds_min > kSeedsMinMost) {
    throw SetupError("seeds_min " + std::to_string(config_.seeds_min), "from 2 to " + std::to_string(kSeedsMinMost),
                     "choose one of these");
  }
  if (detector_.time_shift_ns_max() > config_.reorder_ns) {
    throw SetupError("time offsets of the detector differ by " + std::to_string(detector_.time_shift_ns_max()) + " ns",
                     "calibrated hits may lie so far after their slice, and reorder_ns is " + std::to_string(config_.reorder_ns),
                     "make reorder_ns larger");
  }
  l1_cuts_ = {config_.threshold_pe, config_.simple_ns, config_.floor_ns, config_.charge_pe};
  judge_cuts_ = {config_.seeds_min, config_.window_ns, config_.pruning == Pruning::clique ? 1u : 0u,
                 Match3B(config_.road_m, config_.time_extra_ns), Match1D(config_.road_m, config_.direction_extra_ns)};
  if (config_.direction_step_deg > 0) directions_ = direction_grid(config_.direction_step_deg);
  for (const Pm& pm : detector_.pms()) facts_.push_back(facts_of(pm));
  for (const Floor& floor : detector_.floors()) {
    floors_.push_back({std::vector<Hit>(floor.pm_count != 0 ? config_.floor_hits_max : 0), 0, floor.first_pm, floor.pm_count});
  }
  sorted_.resize(config_.floor_hits_max);
  bucket_begin_.resize(kBucketsMax + 1);
  seeds_.resize(config_.seeds_max);
  judgements_.resize(config_.seeds_max);
  triggered_.resize(config_.seeds_max);
  events_.resize(config_.events_max);
  event_hits_.resize(config_.event_hits_max);
  event_seeds_.resize(config_.seeds_max);
  start_afresh();
}

void Trigger::start_afresh() {
  for (FloorHits& floor : floors_) floor.count = 0;
  settled_ns_ = -kNever;
  built_until_ns_ = -kNever;
  counted_until_ns_ = -kNever;
}

std::span<const Event> Trigger::begin(std::uint32_t slice) {
  std::span<const Event> ended;
  is_old_ = has_last_ && slice < slice_;
  has_slice_ = true;
  if (is_old_) {
    ++counts_.slices_old;
    return ended;
  }
  ++counts_.slices;
  if (has_last_ && slice != slice_) {
    counts_.slices_missing += slice - slice_;
    ended = flush();
    has_slice_ = true;
  }
  has_last_ = true;
  slice_ = slice;
  return ended;
}

// Whether the hit is to be kept.
bool Trigger::take(FloorHits& floor, const Hit& hit) {
  ++counts_.hits_in;
  std::uint64_t* refused = nullptr;
  if (!has_slice_) {
    refused = &counts_.hits_no_slice;
  } else if (hit.pm - floor.first_pm >= floor.pm_count) {
    refused = &counts_.hits_bad_pm;
  } else if (!(hit.charge_pe >= l1_cuts_.threshold_pe)) {
    refused = &counts_.hits_below_threshold;
  } else if (is_old_ || hit.time_ns < -config_.reorder_ns) {
    refused = &counts_.hits_late;
  } else if (!(hit.time_ns < config_.slice_ns + config_.reorder_ns)) {
    refused = std::isnan(hit.time_ns) ? &counts_.hits_bad_time : &counts_.hits_ahead;
  } else {
    ++counts_.hits_used;
    return true;
  }
  ++*refused;
  return false;
}

void Trigger::add(std::span<const Hit> hits) {
  for (const Hit& hit : hits) {
    if (hit.pm >= facts_.size()) {
      ++counts_.hits_in;
      ++counts_.hits_bad_pm;
      continue;
    }
    FloorHits& floor = floors_[facts_[hit.pm].floor];
    if (!take(floor, hit)) continue;
    if (floor.count == floor.hits.size()) {
      --counts_.hits_used;
      ++counts_.hits_no_room;
      continue;
    }
    floor.hits[floor.count++] = hit;
  }
}

std::span<Hit> Trigger::room(std::uint32_t floor) {
  if (floor >= floors_.size()) return {};
  return std::span(floors_[floor].hits).subspan(floors_[floor].count);
}

void Trigger::commit(std::uint32_t floor, std::size_t count) {
  const std::span<Hit> hits = room(floor).first(std::min(count, room(floor).size()));
  if (hits.empty()) return;
  FloorHits& one = floors_[floor];
  std::uint32_t kept = one.count;
  for (const Hit& hit : hits) {
    one.hits[kept] = hit;  // before or at its own place
    kept += take(one, hit) ? 1u : 0u;
  }
  one.count = kept;
}

std::span<const Event> Trigger::finish() {
  if (!has_slice_ || is_old_) {
    has_slice_ = false;
    is_old_ = false;
    event_count_ = 0;
    return {};
  }
  has_slice_ = false;
  run(config_.slice_ns - config_.reorder_ns - config_.window_ns - longest_ns(l1_cuts_));
  carry(config_.slice_ns);
  ++slice_;
  return {events_.data(), event_count_};
}

std::span<const Event> Trigger::flush() {
  has_slice_ = false;
  run(kNever);
  start_afresh();
  has_last_ = false;
  return {events_.data(), event_count_};
}

void Trigger::run(double horizon_ns) {
  event_count_ = event_hit_count_ = event_seed_count_ = 0;
  seed_count_ = 0;
  for (FloorHits& floor : floors_) {
    sort(floor);
    find_seeds(floor);
  }
  const std::span<Seed> seeds(seeds_.data(), seed_count_);
  std::sort(seeds.begin(), seeds.end(), seed_is_before);
  judge_->judge_all(seeds, judge_cuts_, directions_, std::span(judgements_).first(seed_count_));
  mark_triggered();
  count_seeds(horizon_ns);
  build_events(horizon_ns);
}

// Into buckets of equal lengths of time, with a few hits each, which are then put in order.
void Trigger::sort(FloorHits& floor) {
  Hit* const hits = floor.hits.data();
  const std::uint32_t count = floor.count;
  if (count < 2) return;
  double first_ns = hits[0].time_ns;
  double last_ns = first_ns;
  bool in_order = true;
  for (std::uint32_t k = 1; k < count; ++k) {
    in_order = in_order && !is_before(hits[k], hits[k - 1]);
    first_ns = std::min(first_ns, hits[k].time_ns);
    last_ns = std::max(last_ns, hits[k].time_ns);
  }
  if (in_order) return;
  const std::size_t buckets = std::clamp<std::size_t>(std::bit_floor(count) / 2, 1, kBucketsMax);
  const double scale = last_ns > first_ns ? static_cast<double>(buckets) / (last_ns - first_ns) : 0.0;
  const auto bucket_of = [&](const Hit& hit) {
    return std::min(static_cast<std::size_t>(static_cast<std::int64_t>((hit.time_ns - first_ns) * scale)), buckets - 1);
  };
  std::fill_n(bucket_begin_.begin(), buckets + 1, 0u);
  for (std::uint32_t k = 0; k < count; ++k) ++bucket_begin_[bucket_of(hits[k]) + 1];
  for (std::size_t b = 1; b <= buckets; ++b) bucket_begin_[b] += bucket_begin_[b - 1];
  for (std::uint32_t k = 0; k < count; ++k) sorted_[bucket_begin_[bucket_of(hits[k])]++] = hits[k];
  std::uint32_t begin = 0;
  for (std::size_t b = 0; b < buckets; ++b) {  // bucket_begin_[b] is now its end
    if (bucket_begin_[b] - begin > 1) put_in_order(sorted_.data() + begin, sorted_.data() + bucket_begin_[b]);
    begin = bucket_begin_[b];
  }
  std::swap(floor.hits, sorted_);
}

void Trigger::find_seeds(const FloorHits& floor) {
  const Hit* const hits = floor.hits.data();
  for (std::uint32_t k = 0; k < floor.count; ++k) {
    const std::uint32_t kinds = seed_kinds(hits, floor.count, k, facts_.data(), l1_cuts_);
    if (kinds == 0) continue;
    if (seed_count_ == seeds_.size()) {
      ++counts_.seeds_no_room;
      continue;
    }
    const PmFacts& pm = facts_[hits[k].pm];
    seeds_[seed_count_++] = {{pm.x, pm.y, pm.z, hits[k].time_ns}, hits[k].pm, kinds};
  }
}

void Trigger::count_seeds(double horizon_ns) {
  for (std::size_t i = 0; i < seed_count_; ++i) {
    const double time_ns = seeds_[i].point.time_ns;
    if (time_ns < counted_until_ns_ || !(time_ns < horizon_ns)) continue;
    const std::uint32_t kinds = seeds_[i].kinds;
    ++counts_.seeds;
    counts_.seeds_simple += (kinds & kSimple) != 0 ? 1u : 0u;
    counts_.seeds_floor += (kinds & kFloor) != 0 ? 1u : 0u;
    counts_.seeds_charge += (kinds & kCharge) != 0 ? 1u : 0u;
    counts_.seeds_crowded += (judgements_[i].flags & kCrowded) != 0 ? 1u : 0u;
    counts_.cliques_given_up += (judgements_[i].flags & kGaveUp) != 0 ? 1u : 0u;
  }
  counted_until_ns_ = horizon_ns;
}

void Trigger::mark_triggered() {
  std::fill_n(triggered_.begin(), seed_count_, std::uint8_t{0});
  for (std::size_t i = 0; i < seed_count_; ++i) {
    if (judgements_[i].triggered == 0) continue;
    triggered_[i] = 1;
    for (std::uint64_t left = judgements_[i].members; left != 0; left &= left - 1) triggered_[i + 1 + detail::lowest_of(left)] = 1;
  }
}

// Events of the triggered seeds from settled_ns_ to the horizon. The last one may be open: then it is decided in the next slice, whole.
void Trigger::build_events(double horizon_ns) {
  const double apart_ns = 2.0 * config_.around_ns;
  Cluster cluster;
  for (std::uint32_t i = 0; i < seed_count_; ++i) {
    const double time_ns = seeds_[i].point.time_ns;
    if (triggered_[i] == 0 || time_ns < settled_ns_ || !(time_ns < horizon_ns)) continue;
    if (cluster.is_open && time_ns - seeds_[cluster.last].point.time_ns < apart_ns) {
      if (time_ns - seeds_[cluster.first].point.time_ns <= config_.event_ns_max) {
        cluster.last = i;
        continue;
      }
      build(cluster, true);
    } else if (cluster.is_open) {
      build(cluster, false);
    }
    cluster = {i, i, true};
  }
  if (cluster.is_open && horizon_ns - seeds_[cluster.last].point.time_ns >= apart_ns) {
    build(cluster, false);
    cluster.is_open = false;
  }
  settled_ns_ = cluster.is_open ? seeds_[cluster.first].point.time_ns : horizon_ns;
}

void Trigger::build(const Cluster& cluster, bool is_cut) {
  Event event;
  event.number = counts_.events++;
  event.slice = slice_;
  event.is_cut = is_cut ? 1u : 0u;
  event.begin_ns = std::max(seeds_[cluster.first].point.time_ns - config_.around_ns, built_until_ns_);
  event.end_ns = seeds_[cluster.last].point.time_ns + config_.around_ns;
  built_until_ns_ = event.end_ns;
  counts_.events_cut += event.is_cut;
  event.first_seed = static_cast<std::uint32_t>(event_seed_count_);
  for (std::uint32_t i = cluster.first; i <= cluster.last; ++i) {  // room for all of seeds_
    if (triggered_[i] == 0) continue;
    event.kinds |= seeds_[i].kinds;
    event_seeds_[event_seed_count_++] = seeds_[i];
  }
  event.seed_count = static_cast<std::uint32_t>(event_seed_count_) - event.first_seed;
  counts_.seeds_triggered += event.seed_count;
  if (event_count_ == events_.size() || !gather(event)) {
    ++counts_.events_no_room;
    return;
  }
  counts_.event_hits += event.hit_count;
  events_[event_count_++] = event;
}

// The hits of an event, in the order of their times. False: they do not fit.
bool Trigger::gather(Event& event) {
  const auto is_earlier = [](const Hit& hit, double time_ns) { return hit.time_ns < time_ns; };
  const std::size_t first = event_hit_count_;
  for (const FloorHits& floor : floors_) {
    const Hit* const end = floor.hits.data() + floor.count;
    const Hit* hit = std::lower_bound(floor.hits.data(), end, event.begin_ns, is_earlier);
    for (; hit < end && hit->time_ns < event.end_ns; ++hit) {
      if (event_hit_count_ == event_hits_.size()) {
        event_hit_count_ = first;
        return false;
      }
      event_hits_[event_hit_count_++] = *hit;
    }
  }
  std::sort(event_hits_.begin() + static_cast<std::ptrdiff_t>(first),
            event_hits_.begin() + static_cast<std::ptrdiff_t>(event_hit_count_), is_before);
  event.first_hit = static_cast<std::uint32_t>(first);
  event.hit_count = static_cast<std::uint32_t>(event_hit_count_ - first);
  return true;
}

// What may still be needed becomes the beginning of the next slice's hits. Differences of near times are exact.
void Trigger::carry(double shift_ns) {
  const double from_ns = settled_ns_ - std::max(config_.around_ns, config_.window_ns);
  for (FloorHits& floor : floors_) {
    std::uint32_t first = floor.count;
    while (first > 0 && floor.hits[first - 1].time_ns >= from_ns) --first;
    for (std::uint32_t k = first; k < floor.count; ++k) {
      floor.hits[k - first] = floor.hits[k];
      floor.hits[k - first].time_ns -= shift_ns;
    }
    floor.count -= first;
  }
  settled_ns_ -= shift_ns;
  built_until_ns_ -= shift_ns;
  counted_until_ns_ -= shift_ns;
}

}  // namespace nanet::km3
