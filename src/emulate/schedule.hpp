// SPDX-License-Identifier: Apache-2.0
// Schedule: when each packet of a run is due, from a pool of event times that is played again and again. No clock, no I/O.
//
// Terms
//   unit      one timestamp unit, 24.951059536 ns; a tick is 1/256 of it (wire/timestamp.hpp).
//   key       time of an event in ticks since the start of the run (64 bits, never wraps). (timestamp, fine_time) on the wire
//             are its lower 40 bits.
//   pool keys the keys of the pool's events within one lap, strictly increasing.
//   lap       one pass over the pool. Lap l starts at floor(l * period) units: the fraction is carried over, so the mean rate never drifts.
//   shift     units to add to the pool's time of every event of a packet. Whole units, so fine times never change.
//   spill     the sender is on for spill_s, off for pause_s, on again... A packet belongs to the spill of its first event, so no packet
//             waits through a pause; its last events may lie a little after the end of the spill.
//
// Thread rules: immutable after construction.
#pragma once

#include <cstdint>
#include <vector>

namespace nanet::emulate {

inline constexpr std::uint64_t kTicksPerUnit = 256;

struct Arrivals {
  std::vector<std::uint64_t> keys;  // strictly increasing; the last one is less than floor(period_units) * 256
  double period_units = 0;          // length of a lap: exactly keys.size() events at the requested rate
};

// Poisson arrivals: exponential gaps from a generator of its own (same seed, same times on any machine), scaled so that the mean rate is
// exactly rate_events_per_s (more than 0, at most 1e9). event_count: at least 1.
Arrivals poisson_arrivals(std::uint32_t event_count, double rate_events_per_s, std::uint64_t seed);

enum class Pacing : std::uint8_t {
  paced,    // a packet is due when its last event has happened
  unpaced,  // every packet is due at once; event times advance as if paced
};

struct ScheduleConfig {
  std::uint32_t events_per_packet = 16;  // divides the number of pool events
  Pacing pacing = Pacing::paced;
  double spill_s = 0;               // 0: no spill structure
  double pause_s = 0;               // 0: no spill structure
  double duration_s = 0;            // 0: no end by time; else packets due later than this do not exist (paced only)
  std::uint64_t packets_total = 0;  // 0: no end by number
};

class Schedule {
 public:
  static constexpr std::uint64_t kEndless = ~std::uint64_t{0};

  struct Packet {
    std::uint64_t shift_units;
    std::uint64_t due_ns;       // since start
    std::uint64_t spill;        // number of the spill, from 0
    std::uint32_t pool_packet;  // which packet of the pool
  };

  Schedule(const ScheduleConfig& config, Arrivals arrivals);

  Packet packet(std::uint64_t number) const;

  // Packets first, first + 1, ... that may leave together at now_ns: due, of one lap of the pool, at most `limit`. With burst > 1 they wait until
  // that many are due, unless the run, the spill or the lap ends first.
  std::uint32_t ready(std::uint64_t first, std::uint64_t now_ns, std::uint32_t burst, std::uint32_t limit) const;

  // kEndless: only stopped from outside.
  std::uint64_t packet_count() const { return packet_count_; }
  std::uint32_t pool_packets() const { return pool_packets_; }
  std::uint32_t events_per_packet() const { return config_.events_per_packet; }
  const std::vector<std::uint64_t>& pool_keys() const { return arrivals_.keys; }

 private:
  std::uint64_t packets_until(std::uint64_t end_ns) const;

  ScheduleConfig config_;
  Arrivals arrivals_;
  std::uint32_t pool_packets_;
  std::uint64_t spill_ticks_;  // 0: none
  std::uint64_t pause_units_;
  std::uint64_t packet_count_;
};

}  // namespace nanet::emulate
