// SPDX-License-Identifier: Apache-2.0
#include "conditions.hpp"

#include <algorithm>
#include <numeric>

#include "starts.hpp"

namespace nanet::bench {
namespace {

using gateware::Line;

constexpr std::size_t kSmall = 18, kMedium = 200, kLarge = 1472;  // payloads: frames of 64, 246 and 1518 B
constexpr std::array<std::size_t, 4> kTxPayloads{kSmall, 82, 466, kLarge};

// Name, traffic and bounds of a condition; the line, and how long it lasts, are the same for all.
struct Plan {
  std::string name;
  Traffic traffic;
  Bounds bounds;
};

std::string of_frames(std::size_t payload_bytes) { return "frames of " + std::to_string(frame_bytes(payload_bytes)) + " B"; }

std::string buffers_of(std::uint32_t packets) {
  return packets == 1 ? "buffers of 1 packet" : "buffers of " + std::to_string(packets) + " packets";
}

void add_hostile(std::vector<Plan>& plans) {
  for (const std::size_t bytes : {kSmall, kLarge}) {
    plans.push_back({of_frames(bytes) + ", each fourth is one of 64 B that announces 8,976 B",
                     {.payload_bytes = {bytes}, .packets_max = 0, .cycles_max = 0, .hostile = Hostile::announces_much},
                     {}});
    plans.push_back({of_frames(bytes) + ", each fourth with a wrong check sequence",
                     {.payload_bytes = {bytes}, .packets_max = 0, .cycles_max = 0, .hostile = Hostile::bad_fcs},
                     {}});
    plans.push_back({of_frames(bytes) + ", each fourth to a port that no one receives for",
                     {.payload_bytes = {bytes}, .packets_max = 0, .cycles_max = 0, .hostile = Hostile::unknown_port},
                     {}});
  }
}

void add_buffers(std::vector<Plan>& plans) {
  const auto add = [&](std::string name, Traffic traffic, Bounds bounds) {
    plans.push_back({std::move(name), std::move(traffic), bounds});
  };
  add("buffers handed over by time-outs of 500 ns, " + of_frames(kSmall),
      {.payload_bytes = {kSmall}, .packets_per_buffer = 64, .packets_max = 0, .cycles_max = 0, .timeout_ns = 500}, {});
  add("buffers handed over by flushes at any moment, " + of_frames(kSmall),
      {.payload_bytes = {kSmall}, .packets_per_buffer = 64, .packets_max = 0, .cycles_max = 0, .flushes = true}, {});
  add("footers after payloads, " + of_frames(kSmall) + ", " + buffers_of(16),
      {.payload_bytes = {kSmall}, .packets_max = 0, .cycles_max = 0, .footers = true}, {});
  add("footers after payloads, " + of_frames(kSmall) + ", " + buffers_of(1),
      {.payload_bytes = {kSmall}, .packets_per_buffer = 1, .packets_max = 0, .cycles_max = 0, .footers = true}, {});
  std::vector<std::size_t> tiny(kSmall - 1);
  std::iota(tiny.begin(), tiny.end(), 1);
  add("payloads of 1 to 17 B in frames of 64 B, " + buffers_of(16), {.payload_bytes = tiny, .packets_max = 0, .cycles_max = 0}, {});
}

// Both directions are then 11 words for the 10.5 cycles of a frame: more than the way to memory has. Received packets go first.
constexpr Bounds kTooMuch{.max_cycles = 32, .spread_cycles = 1, .tx_line_rate_fraction = 0.74};

void add_sending(std::vector<Plan>& plans) {
  for (const std::size_t bytes : kTxPayloads) {
    plans.push_back({"sending " + of_frames(bytes) + " alone",
                     {.payload_bytes = {}, .packets_max = 0, .cycles_max = 0, .sent_payload_bytes = bytes},
                     {.tx_line_rate_fraction = 1}});
    for (const std::uint32_t packets : {16u, 1u}) {
      plans.push_back(
          {"sending " + of_frames(bytes) + " beside reception of the same, " + buffers_of(packets),
           {.payload_bytes = {bytes}, .packets_per_buffer = packets, .packets_max = 0, .cycles_max = 0, .sent_payload_bytes = bytes},
           bytes == kSmall && packets == 1 ? kTooMuch : Bounds{.tx_line_rate_fraction = 1}});
    }
  }
}

void sum_up(Condition& condition) {
  const auto add = [&](const std::array<Latencies, 2>& lanes) {
    for (const Latencies& lane : lanes) {
      const Histogram& histogram = lane.last_to_write;
      if (histogram.count() == 0) continue;
      const bool first = condition.max_cycles == 0;
      condition.min_cycles = first ? histogram.min() : std::min(condition.min_cycles, histogram.min());
      condition.max_cycles = std::max(condition.max_cycles, histogram.max());
      condition.spread_cycles = std::max(condition.spread_cycles, histogram.spread());
    }
  };
  if (condition.measured.compared.by_size.empty()) return add(condition.measured.compared.latencies);
  for (const auto& [bytes, lanes] : condition.measured.compared.by_size) add(lanes);
}

Condition run(const Plan& plan, std::uint64_t cycles, Line line) {
  Traffic traffic = plan.traffic;
  traffic.packets_max = UINT64_MAX / 2;
  traffic.cycles_max = cycles;
  traffic.line = line;
  Condition condition{.name = plan.name,
                      .payload_bytes = traffic.payload_bytes.empty() ? std::vector{traffic.sent_payload_bytes} : traffic.payload_bytes,
                      .packets_per_buffer = traffic.packets_per_buffer,
                      .bounds = plan.bounds,
                      .measured = measure(traffic)};
  sum_up(condition);
  return condition;
}

Condition run_starts(std::size_t payload_bytes, std::uint64_t count, Line line) {
  const Starts starts = measure_starts(payload_bytes, count, line);
  return {.name = "reception enabled while " + of_frames(payload_bytes) + " arrive back to back",
          .payload_bytes = {payload_bytes},
          .packets_per_buffer = 16,
          .bounds = {},
          .measured = starts.measured,
          .starts = starts.count,
          .wrong_starts = starts.wrong};
}

}  // namespace

std::vector<std::string> Condition::passed_bounds() const {
  std::vector<std::string> passed;
  const auto at_most = [&](const char* what, std::uint64_t is, const std::optional<std::uint64_t>& bound) {
    if (bound && is > *bound)
      passed.push_back(std::string(what) + " " + std::to_string(is) + ", at most " + std::to_string(*bound));
  };
  at_most("wrong packets:", measured.compared.wrong, 0);
  at_most("wrong starts:", wrong_starts, 0);
  at_most("packets lost:", measured.compared.missing, bounds.lost_packets);
  at_most("cycles from last byte to last write:", max_cycles, bounds.max_cycles);
  at_most("cycles by which packets of one size and lane differ:", spread_cycles, bounds.spread_cycles);
  if (bounds.tx_line_rate_fraction && measured.tx_line_rate_fraction < *bounds.tx_line_rate_fraction) {
    passed.push_back("of line rate sent: " + std::to_string(measured.tx_line_rate_fraction) + ", at least " +
                     std::to_string(*bounds.tx_line_rate_fraction));
  }
  return passed;
}

std::vector<Condition> measure_conditions(std::uint64_t cycles, std::uint64_t starts, Line line) {
  std::vector<Plan> plans;
  add_hostile(plans);
  add_buffers(plans);
  add_sending(plans);
  std::vector<Condition> conditions;
  for (const std::size_t bytes : {kLarge, kMedium}) conditions.push_back(run_starts(bytes, starts, line));
  for (const Plan& plan : plans) conditions.push_back(run(plan, cycles, line));
  return conditions;
}

// In the order of add_sending().
std::vector<TxRate> tx_rates(const std::vector<Condition>& conditions) {
  std::vector<TxRate> rates;
  std::vector<double> fractions;
  for (const Condition& one : conditions) {
    if (one.measured.tx_sent != 0) fractions.push_back(one.measured.tx_line_rate_fraction);
  }
  for (std::size_t k = 0; k < kTxPayloads.size() && 3 * k + 2 < fractions.size(); ++k) {
    rates.push_back({kTxPayloads[k], fractions[3 * k], fractions[3 * k + 1], fractions[3 * k + 2]});
  }
  return rates;
}

}  // namespace nanet::bench
