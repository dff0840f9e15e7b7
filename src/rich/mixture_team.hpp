// SPDX-License-Identifier: Apache-2.0
// MixtureTeam: what the search of the mixture finder (mixture_search.hpp) asks for, done by the 32 lanes of a warp (mixture_team_memory.hpp says what a
// Warp is). Same bits as MixtureWorker.
//
// Every lane runs the search, and all branch alike: what decides lies in shared memory, or comes from there. Models lie in shared memory;
// lane 0 writes single numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "nanet/host_device.hpp"
#include "nanet/rich/ring.hpp"
#include "rich/hit_plane.hpp"
#include "rich/mixture_model.hpp"
#include "rich/mixture_search.hpp"
#include "rich/mixture_team_fit.hpp"
#include "rich/mixture_team_memory.hpp"
#include "rich/mixture_team_starts.hpp"

namespace nanet::rich {

template <class Warp>
class MixtureTeam {
  using Fit = MixtureTeamFit<Warp>;
  using Starts = MixtureTeamStarts<Warp>;

 public:
  using Memory = typename Warp::template Memory<MixtureTeamMemory>;
  static constexpr std::uint32_t kTogether = 4;

  NANET_HD explicit MixtureTeam(Memory memory) : memory_(memory) {}

  NANET_HD void lay_out(event::Event event, const PmPoint* points, EventRings& found) {
    MixtureTeamMemory& m = *memory_;
    const std::uint32_t count = take_keys(m, event, points);
    NANET_UNROLL(1)
    for (std::uint32_t k = Warp::lane(); k < count; k += kWarpLanes) {
      const std::uint16_t key = m.loose_keys[k];
      std::uint32_t before = 0;
      NANET_UNROLL(2)
      for (std::uint32_t j = 0; j < count; ++j) {
        const std::uint16_t other = m.loose_keys[j];
        before += other < key || (other == key && j < k) ? 1u : 0u;
      }
      m.keys[before] = key;
    }
    Warp::sync();
    const float event_ns = m.setup.time_use != 0 ? event_time_together(m, count) : 0.0F;
    NANET_UNROLL(1)
    for (std::uint32_t h = Warp::lane(); h < padded_count(count); h += kWarpLanes) {
      const bool real = h < count;
      const std::uint16_t key = m.keys[real ? h : 0];
      const PmPoint& point = points[row_of_key(key)];
      const float x = real ? point.x_mm : kFarMm;
      const float y = real ? point.y_mm : kFarMm;
      m.hits[h] = {x, y, x * x + y * y, 0.0F};
      m.weight[h] = real ? time_weight(m.setup, time_of_key(key) - event_ns) : 0.0F;
    }
    if (Warp::lane() == 0) {
      found = EventRings{};
      found.mapped_hits = static_cast<std::uint16_t>(count);
      found.truncated = event.count > kMaxHits ? 1u : 0u;
    }
    Warp::sync();
  }

  NANET_HD std::uint32_t hit_count() const { return memory_->hit_count; }
  NANET_HD const MixtureModel& model(MixtureSlot slot) const { return memory_->models[slot]; }

  NANET_HD void clear(MixtureSlot slot) {
    MixtureTeamMemory& m = *memory_;
    Warp::sync();
    if (Warp::lane() == 0) {
      m.models[slot].count = 0;
      m.models[slot].noise = maximise_noise(m.setup, m.hit_count, 0.0F);
    }
    Warp::sync();
  }

  NANET_HD void copy(MixtureSlot to, MixtureSlot from) { copy_words(memory_, to, from, Warp::lane()); }

  NANET_HD void with(MixtureSlot to, MixtureSlot from, const MixtureCircle& circle) {
    copy(to, from);
    if (Warp::lane() == 0) {
      MixtureModel& model = memory_->models[to];
      model.rings[model.count++] = ring_on(memory_->setup, circle);
    }
    Warp::sync();
  }

  NANET_HD void without(MixtureSlot to, MixtureSlot from, std::uint32_t ring) {
    const bool behind = Warp::lane() >= kRingWords * ring && Warp::lane() < kRingWords * (kMaxRings - 1);
    copy_words(memory_, to, from, behind ? Warp::lane() + kRingWords : Warp::lane());
    if (Warp::lane() == 0) --memory_->models[to].count;
    Warp::sync();
  }

  NANET_HD void only(MixtureSlot to, MixtureSlot from, std::uint32_t ring) {
    copy_words(memory_, to, from, Warp::lane() < kRingWords ? Warp::lane() + kRingWords * ring : Warp::lane());
    if (Warp::lane() == 0) memory_->models[to].count = 1;
    Warp::sync();
  }

  NANET_HD void fit(MixtureSlot first, std::uint32_t count, std::uint32_t steps) { Fit::fit(memory_, first, count, steps); }
  NANET_HD float room(MixtureSlot slot) { return Fit::room(memory_, slot); }
  NANET_HD bool make_starts(float gap) { return Starts::make(memory_, own_, gap); }
  NANET_HD void score(float needed) { Starts::score(memory_, needed); }
  NANET_HD void drop(const MixtureCircle& circle) { Starts::drop(memory_, circle.x_mm, circle.y_mm, circle.radius_mm); }

  NANET_HD bool next(MixtureStart& start) const {
    const std::uint32_t at = Starts::next(memory_, own_);
    if (at == kMixtureOffers) return false;
    const MixtureQuad offer = memory_->offers[at];
    start = {{offer.x, offer.y, offer.z}, offer.w};
    return true;
  }

  // `found` is the one of the memory.
  NANET_HD void answer(MixtureSlot slot, EventRings&) { Fit::answer(memory_, slot); }

 private:
  static constexpr std::uint32_t kRingWords = sizeof(MixtureRing) / 4;
  static constexpr std::uint32_t kModelWords = sizeof(MixtureModel) / 4;
  static_assert(kModelWords <= kWarpLanes && sizeof(MixtureModel) == 4 * (kMaxRings * kRingWords + 3));

  // As event_time_ns: each lane looks at the window about one code.
  NANET_HD static float event_time_together(const MixtureTeamMemory& m, std::uint32_t count) {
    static_assert(kTimeCodes == kWarpLanes);
    const int code = static_cast<int>(Warp::lane()) - 16;
    std::uint32_t hits = 0;
    int codes = 0;
    NANET_UNROLL(1)
    for (std::uint32_t h = 0; h < count; ++h) {
      const int other = time_code_of_key(m.keys[h]);
      const bool inside = other >= code - m.setup.time_reach && other <= code + m.setup.time_reach;
      hits += inside ? 1u : 0u;
      codes += inside ? other : 0;
    }
    const std::int32_t best = Warp::max(time_window_rank(code, hits));
    return event_time_ns(Warp::from_lane(codes, static_cast<std::uint32_t>(code_of_time_window(best) + 16)),
                         hits_of_time_window(best));
  }

  // The hits on PMs, in the order in which they came.
  NANET_HD static std::uint32_t take_keys(MixtureTeamMemory& m, event::Event event, const PmPoint* points) {
    const std::uint32_t looked_at = event.count < kMaxHits ? event.count : kMaxHits;
    std::uint32_t count = 0;
    std::uint32_t on_disk0 = 0;
    Warp::sync();
    NANET_UNROLL(1)
    for (std::uint32_t first = 0; first < looked_at; first += kWarpLanes) {
      const std::uint32_t k = first + Warp::lane();
      const std::uint16_t hit = event.hits[k < looked_at ? k : first];
      const bool mapped = k < looked_at && points[hit & 1023u].mapped != 0;
      const std::uint16_t key = mixture_order(m.setup, hit);
      const std::uint32_t taken = Warp::ballot(mapped);
      if (mapped) m.loose_keys[count + Warp::bit_count(taken & ((1u << Warp::lane()) - 1u))] = key;
      count += Warp::bit_count(taken);
      on_disk0 += Warp::bit_count(Warp::ballot(mapped && key >> 15 == 0));
    }
    if (Warp::lane() == 0) {
      m.hit_count = count;
      m.on_disk0 = on_disk0;
    }
    Warp::sync();
    return count;
  }

  // Word lane() of a model becomes word `word` of another.
  [[gnu::noinline]] NANET_HD static void copy_words(Memory memory, MixtureSlot to, MixtureSlot from, std::uint32_t word) {
    Warp::sync();
    if (Warp::lane() < kModelWords) {
      auto* const target = reinterpret_cast<unsigned char*>(&memory->models[to]) + 4 * Warp::lane();
      std::memcpy(target, reinterpret_cast<const unsigned char*>(&memory->models[from]) + 4 * word, 4);
    }
    Warp::sync();
  }

  Memory memory_;
  MixtureOwn own_;
};

// The search, with memory->setup made.
template <class Warp>
[[gnu::noinline]] NANET_HD void search_mixture_together(event::Event event, const PmPoint* points,
                                                        typename MixtureTeam<Warp>::Memory memory) {
  MixtureTeam<Warp> team(memory);
  MixtureSearch search(memory->setup, team);
  search.find(event, points, memory->found);
}

// The rings of one event, in memory->found. All lanes call.
template <class Warp>
NANET_HD inline void find_mixture_together(event::Event event, const PmPoint* points, const MixtureSetup& setup,
                                           typename MixtureTeam<Warp>::Memory memory) {
  constexpr std::uint32_t kWords = sizeof(MixtureSetup) / 4;
  static_assert(kWords <= kWarpLanes && std::is_trivially_copyable_v<MixtureSetup>);
  Warp::sync();
  if (Warp::lane() < kWords) {
    auto* const copy = reinterpret_cast<unsigned char*>(&memory->setup) + 4 * Warp::lane();
    std::memcpy(copy, reinterpret_cast<const unsigned char*>(&setup) + 4 * Warp::lane(), 4);
  }
  Warp::sync();
  search_mixture_together<Warp>(event, points, memory);
}

}  // namespace nanet::rich
