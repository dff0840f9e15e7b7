// SPDX-License-Identifier: Apache-2.0
// The trigger of a KM3NeT tower or string: hits of time slices in, events out.
//
// Terms
//   slice    all hits of the detector of slice_ns, numbered. Times are from its beginning. Slices come in order; hits of one in any order.
//   settled  a time before which everything is decided, however many hits come: no event will begin there.
//   carried  hits from before the end of a slice that what comes next may still need. They are hits of the next slice with times below 0.
//   event    triggered seeds (judge.hpp) whose surroundings of around_ns overlap, and all hits from around_ns before the first to around_ns after the
//            last. It belongs to the slice in which it could be closed, and its times are from the beginning of that one: they may be negative.
//            No event is cut by the end of a slice, none comes twice, and a hit is in one event.
//
//   Trigger trigger(detector, config);
//   for (each slice) {
//     use(trigger.begin(slice));                    // what a missing slice before it ends; mostly nothing
//     for (each floor) trigger.add(hits);           // or: decode into room(floor), then commit(floor, count)
//     use(trigger.finish());
//   }
//   use(trigger.flush());
//
// Everything is allocated by the constructor. What does not fit is left out and counted by name. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/km3/detector.hpp"
#include "nanet/km3/hit.hpp"
#include "nanet/km3/judge.hpp"
#include "nanet/km3/l1.hpp"

namespace nanet::km3 {

enum class Pruning : std::uint8_t { core, clique };

inline constexpr std::array kPrunings{config::Choice{"core", Pruning::core}, config::Choice{"clique", Pruning::clique}};
constexpr const auto& choices(Pruning) { return kPrunings; }

struct TriggerConfig {
  static constexpr config::Component component{"Km3Trigger", "Trigger of a KM3NeT tower or string."};

  double slice_ns = 200e6;
  double reorder_ns = 20e3;
  float threshold_pe = 0.3F;
  double simple_ns = 20.0;
  double floor_ns = 200.0;
  float charge_pe = 2.5F;
  std::uint32_t seeds_min = 5;
  double window_ns = 2000.0;
  double road_m = 90.0;
  double time_extra_ns = 20.0;
  Pruning pruning = Pruning::clique;
  double direction_step_deg = 0.0;
  double direction_extra_ns = 20.0;
  double around_ns = 6000.0;
  double event_ns_max = 1e6;
  std::uint32_t floor_hits_max = 1u << 18;
  std::uint32_t seeds_max = 1u << 17;
  std::uint32_t events_max = 1u << 12;
  std::uint32_t event_hits_max = 1u << 20;

  template <class Visit>
  void visit(Visit&& v) {
    v("slice_ns", slice_ns,
      {.help = "Length of a time slice: 200 ms of towers; 100 ms of strings, which nanet.km3.trigger takes and no engine does",
       .unit = "ns",
       .least = 1e5,
       .most = 1e9});
    v("reorder_ns", reorder_ns,
      {.help = "Hits that lie so far before their slice or after its end are taken",
       .unit = "ns",
       .least = 0,
       .most = 1e6,
       .too_small = "hits are hits_late or hits_ahead",
       .too_big = "more hits are carried from slice to slice"});
    v("threshold_pe", threshold_pe, {.help = "L0: smallest charge of a hit that is used", .unit = "photo-electrons", .least = 0});
    v("simple_ns", simple_ns,
      {.help = "Simple coincidence: two PMs of one place",
       .unit = "ns",
       .least = 0,
       .most = 1e4,
       .too_small = "light of one event is missed",
       .too_big = "more seeds by chance: 2 r^2 T a pair"});
    v("floor_ns", floor_ns,
      {.help = "Floor coincidence: opposite ends of a floor",
       .unit = "ns",
       .least = 0,
       .most = 1e4,
       .too_small = "light of one event is missed",
       .too_big = "more seeds by chance"});
    v("charge_pe", charge_pe, {.help = "A hit of more than this is a seed by itself", .unit = "photo-electrons", .least = 0});
    v("seeds_min", seeds_min,
      {.help = "Seeds of an event, each causally connected to each",
       .least = 2,
       .most = 16,
       .too_small = "noise",
       .too_big = "faint events are lost"});
    v("window_ns", window_ns,
      {.help = "From the first to the last of them",
       .unit = "ns",
       .most = 1e5,
       .above = 0,
       .too_small = "long tracks are lost",
       .too_big = "noise, time"});
    v("road_m", road_m,
      {.help = "R of match3B and match1D: how far from a muon its light is looked for", .unit = "m", .most = 1000, .above = 0});
    v("time_extra_ns", time_extra_ns,
      {.help = "tmax of match3B, for scattered light and bad calibration", .unit = "ns", .least = 0, .most = 1e4});
    v("pruning", pruning,
      {.help = "clique: each seed is connected to each; core: to seeds_min - 1 others of a group that all are, which is quicker "
               "and takes more noise"});
    v("direction_step_deg", direction_step_deg,
      {.help = "Grid of directions for match1D; 0: directions are not asked for", .unit = "degrees", .least = 0, .most = 90});
    v("direction_extra_ns", direction_extra_ns,
      {.help = "The same as time_extra_ns, for match1D", .unit = "ns", .least = 0, .most = 1e4});
    v("around_ns", around_ns,
      {.help = "Hits of an event: so long before its first seed and after its last", .unit = "ns", .most = 1e6, .above = 0});
    v("event_ns_max", event_ns_max,
      {.help = "An event whose seeds are farther apart is cut (events_cut)", .unit = "ns", .most = 1e7, .above = 0});
    v("floor_hits_max", floor_hits_max,
      {.help = "Room for the hits of a floor in a slice",
       .least = 16,
       .most = 1 << 26,
       .too_small = "hits_no_room",
       .too_big = "memory: 16 bytes each"});
    v("seeds_max", seeds_max, {.help = "Room for the seeds of a slice", .least = 16, .most = 1 << 26, .too_small = "seeds_no_room"});
    v("events_max", events_max,
      {.help = "Room for the events of a slice", .least = 1, .most = 1 << 26, .too_small = "events_no_room"});
    v("event_hits_max", event_hits_max,
      {.help = "Room for the hits of all events of a slice", .least = 16, .most = 1 << 26, .too_small = "events_no_room"});
  }

  std::optional<config::Problem> check() const;
};

// hits_in is the sum of hits_used and the seven after it.
struct TriggerCounts {
  std::uint64_t slices = 0;
  std::uint64_t slices_missing = 0;  // between those that came
  std::uint64_t slices_old = 0;      // came after a newer one: their hits are hits_late
  std::uint64_t hits_in = 0;
  std::uint64_t hits_used = 0;
  std::uint64_t hits_below_threshold = 0;
  std::uint64_t hits_late = 0;   // before the slice by more than reorder_ns, or of an old slice
  std::uint64_t hits_ahead = 0;  // after its end by more
  std::uint64_t hits_bad_pm = 0;
  std::uint64_t hits_bad_time = 0;  // no number
  std::uint64_t hits_no_room = 0;
  std::uint64_t hits_no_slice = 0;  // before the first begin(), or after finish()
  std::uint64_t seeds = 0;
  std::uint64_t seeds_simple = 0;
  std::uint64_t seeds_floor = 0;
  std::uint64_t seeds_charge = 0;
  std::uint64_t seeds_no_room = 0;
  std::uint64_t seeds_crowded = 0;     // as anchors (judge.hpp: kCrowded)
  std::uint64_t cliques_given_up = 0;  // anchors (kGaveUp)
  std::uint64_t seeds_triggered = 0;   // in events
  std::uint64_t events = 0;
  std::uint64_t events_cut = 0;
  std::uint64_t events_no_room = 0;  // not handed out
  std::uint64_t event_hits = 0;
};

struct Event {
  std::uint64_t number = 0;  // running
  std::uint32_t slice = 0;
  std::uint32_t kinds = 0;  // of its seeds
  double begin_ns = 0;      // its hits: begin_ns <= time < end_ns
  double end_ns = 0;
  std::uint32_t first_hit = 0;
  std::uint32_t hit_count = 0;
  std::uint32_t first_seed = 0;
  std::uint32_t seed_count = 0;
  std::uint32_t is_cut = 0;  // 1: goes on in the next event
  std::uint32_t zero = 0;
};

class Trigger {
 public:
  // judge: null for the CPU. Throws SetupError where the configuration makes no sense, alone or with the detector.
  Trigger(const Detector& detector, const TriggerConfig& config, std::unique_ptr<SeedJudge> judge = nullptr);

  // Spans of events are good until the next call of begin(), finish() or flush().
  std::span<const Event> begin(std::uint32_t slice);
  void add(std::span<const Hit> hits);
  std::span<Hit> room(std::uint32_t floor);
  void commit(std::uint32_t floor, std::size_t count);  // hits at the beginning of room(floor), all of that floor
  std::span<const Event> finish();
  std::span<const Event> flush();

  std::span<const Hit> hits(const Event& event) const { return {event_hits_.data() + event.first_hit, event.hit_count}; }
  std::span<const Seed> seeds(const Event& event) const { return {event_seeds_.data() + event.first_seed, event.seed_count}; }

  const TriggerCounts& counts() const { return counts_; }
  const TriggerConfig& config() const { return config_; }
  const Detector& detector() const { return detector_; }
  const std::vector<Direction>& directions() const { return directions_; }

 private:
  struct FloorHits {
    std::vector<Hit> hits;  // as long as there is room
    std::uint32_t count = 0;
    std::uint32_t first_pm = 0;
    std::uint32_t pm_count = 0;
  };
  struct Cluster {
    std::uint32_t first = 0;  // places in seeds_
    std::uint32_t last = 0;
    bool is_open = false;
  };

  bool take(FloorHits& floor, const Hit& hit);
  void sort(FloorHits& floor);
  void find_seeds(const FloorHits& floor);
  void count_seeds(double horizon_ns);
  void mark_triggered();
  void build_events(double horizon_ns);
  void build(const Cluster& cluster, bool is_cut);
  bool gather(Event& event);
  void carry(double shift_ns);
  void start_afresh();
  void run(double horizon_ns);

  Detector detector_;
  TriggerConfig config_;
  L1Cuts l1_cuts_;
  JudgeCuts judge_cuts_;
  std::vector<Direction> directions_;
  std::unique_ptr<SeedJudge> judge_;
  std::vector<PmFacts> facts_;
  std::vector<FloorHits> floors_;
  std::vector<Hit> sorted_;                  // scratch of sort()
  std::vector<std::uint32_t> bucket_begin_;  // the same
  std::vector<Seed> seeds_;
  std::vector<Judgement> judgements_;
  std::vector<std::uint8_t> triggered_;
  std::vector<Event> events_;
  std::vector<Hit> event_hits_;
  std::vector<Seed> event_seeds_;
  std::size_t seed_count_ = 0;
  std::size_t event_count_ = 0;
  std::size_t event_hit_count_ = 0;
  std::size_t event_seed_count_ = 0;

  bool has_slice_ = false;  // between begin() and finish()
  bool is_old_ = false;
  bool has_last_ = false;
  std::uint32_t slice_ = 0;  // whose beginning is time 0
  double settled_ns_ = 0;
  double built_until_ns_ = 0;
  double counted_until_ns_ = 0;
  TriggerCounts counts_;
};

}  // namespace nanet::km3
