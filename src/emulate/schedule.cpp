// SPDX-License-Identifier: Apache-2.0
#include "emulate/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "nanet/setup_error.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {

Arrivals poisson_arrivals(std::uint32_t event_count, double rate_events_per_s, std::uint64_t seed) {
  if (event_count == 0) throw SetupError("event_count is 0", "a pool needs events", "use 1 or more");
  if (!(rate_events_per_s > 0) || rate_events_per_s > 1e9) {
    throw SetupError("rate " + std::to_string(rate_events_per_s) + " events/s is out of range",
                     "fine times of 0.097 ns must stay unique", "use more than 0 and at most 1e9");
  }
  Arrivals arrivals;
  arrivals.period_units = event_count / rate_events_per_s * 1e9 / wire::kTimestampNs;
  std::mt19937_64 random(seed);
  std::vector<double> times(event_count);
  double total = 0;
  for (double& time : times) {
    time = total;
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;  // [0, 1)
    total -= std::log1p(-uniform);
  }
  // A pool of one event, or the (impossible) sum 0: everything at the start of the lap.
  const double scale = total > 0 ? arrivals.period_units * static_cast<double>(kTicksPerUnit) / total : 0;
  const auto limit = static_cast<std::uint64_t>(arrivals.period_units) * kTicksPerUnit;
  if (limit < event_count) {
    throw SetupError("a lap of " + std::to_string(event_count) + " events is too short",
                     "it must last a whole timestamp unit of 24.95 ns", "use more pool events or a lower rate");
  }
  arrivals.keys.resize(event_count);
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    arrivals.keys[i] = std::max(next, static_cast<std::uint64_t>(times[i] * scale));
    next = arrivals.keys[i] + 1;
  }
  std::uint64_t bound = limit;
  for (std::size_t i = times.size(); i-- > 0;) {
    arrivals.keys[i] = std::min(arrivals.keys[i], bound - 1);
    bound = arrivals.keys[i];
  }
  return arrivals;
}

Schedule::Schedule(const ScheduleConfig& config, Arrivals arrivals) : config_(config), arrivals_(std::move(arrivals)) {
  if (config.events_per_packet == 0 || arrivals_.keys.empty() || arrivals_.keys.size() % config.events_per_packet != 0) {
    throw SetupError("pool of " + std::to_string(arrivals_.keys.size()) + " events",
                     "packets of " + std::to_string(config.events_per_packet) + " events do not fill it evenly", "use a multiple");
  }
  pool_packets_ = static_cast<std::uint32_t>(arrivals_.keys.size() / config.events_per_packet);
  const bool spills = config.spill_s > 0 && config.pause_s > 0;
  spill_ticks_ = spills ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(config.spill_s * 1e9 / wire::kTickNs)) : 0;
  pause_units_ = spills ? static_cast<std::uint64_t>(config.pause_s * 1e9 / wire::kTimestampNs) : 0;
  packet_count_ = config.packets_total > 0 ? config.packets_total : kEndless;
  if (config.duration_s > 0 && config.pacing == Pacing::paced) {
    packet_count_ = std::min(packet_count_, packets_until(static_cast<std::uint64_t>(config.duration_s * 1e9)));
  }
}

Schedule::Packet Schedule::packet(std::uint64_t number) const {
  const std::uint64_t lap = number / pool_packets_;
  Packet packet{};
  packet.pool_packet = static_cast<std::uint32_t>(number - lap * pool_packets_);
  packet.shift_units = static_cast<std::uint64_t>(static_cast<double>(lap) * arrivals_.period_units);
  const std::size_t first = std::size_t{packet.pool_packet} * config_.events_per_packet;
  if (spill_ticks_ != 0) {
    packet.spill = (packet.shift_units * kTicksPerUnit + arrivals_.keys[first]) / spill_ticks_;
    packet.shift_units += packet.spill * pause_units_;
  }
  if (config_.pacing == Pacing::paced) {
    const std::uint64_t last_key = packet.shift_units * kTicksPerUnit + arrivals_.keys[first + config_.events_per_packet - 1];
    packet.due_ns = static_cast<std::uint64_t>(static_cast<double>(last_key) * wire::kTickNs) + 1;
  }
  return packet;
}

std::uint32_t Schedule::ready(std::uint64_t first, std::uint64_t now_ns, std::uint32_t burst, std::uint32_t limit) const {
  if (first >= packet_count_) return 0;
  const Packet head = packet(first);
  if (head.due_ns > now_ns) return 0;
  const auto room = static_cast<std::uint32_t>(
      std::min<std::uint64_t>({limit, pool_packets_ - head.pool_packet, packet_count_ - first}));
  std::uint32_t count = 1;
  while (count < room) {
    const Packet next = packet(first + count);
    if (next.due_ns > now_ns) return count >= burst || next.spill != head.spill ? count : 0;
    ++count;
  }
  return count;
}

std::uint64_t Schedule::packets_until(std::uint64_t end_ns) const {
  std::uint64_t low = 0;  // every packet below it is due by end_ns
  std::uint64_t high = 1;
  while (packet(high).due_ns <= end_ns) {
    low = high;
    high *= 2;
  }
  if (low == 0 && packet(0).due_ns > end_ns) return 0;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (packet(middle).due_ns <= end_ns ? low : high) = middle;
  }
  return high;
}

}  // namespace nanet::emulate
