// SPDX-License-Identifier: Apache-2.0
// Cost of the L0 trigger processor: nanoseconds a reference event of taking all inputs' primitives and deciding.
//
//   bench_l0tp [--csv FILE]
//
// 10 M reference primitives/s in MTP packets of 6.4 us; each other input sees an event with the given efficiency, a Gaussian 1 ns
// away, and 1 MHz of accidental primitives beside. Packets are made before the clock starts; decide() is called after each
// packet. The figure is the best of 60 repeats over 3.2 ms of data.
#include <algorithm>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "l0tp/trigger_processor.hpp"
#include "nanet/wire/timestamp.hpp"

namespace {

using namespace nanet;

constexpr std::uint32_t kFrames = 500;  // of 6.4 us
constexpr std::uint64_t kFrameTicks = 65'536;
constexpr double kReferenceTicks = 1026.0;  // mean distance at 10 MHz
constexpr double kAccidentalTicks = 10'260.0;
constexpr double kSigmaTicks = 10.0;

struct Packets {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> offsets;  // one more than packets
  std::uint64_t references = 0;
  std::uint64_t primitives = 0;
};

void add_packet(Packets& packets, std::uint8_t source, std::uint64_t frame, std::vector<std::uint64_t>& times,
                std::mt19937_64& random) {
  std::sort(times.begin(), times.end());
  std::vector<std::byte> room(wire::kMtpBytesMax);
  wire::MtpWriter writer(room);
  writer.begin(source, 0, wire::timestamp_of(frame * kFrameTicks));
  for (const std::uint64_t time : times) {
    const auto id = static_cast<std::uint16_t>(0x4000 | (random() & 0x3FFF));
    packets.primitives += writer.add({wire::timestamp_of(time), wire::fine_time_of(time), id}) ? 1 : 0;
  }
  const auto payload = writer.finish();
  packets.bytes.insert(packets.bytes.end(), payload.begin(), payload.end());
  packets.offsets.push_back(packets.bytes.size());
}

Packets make_packets(const l0tp::Config& config, double efficiency) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> gap(1.0 / kReferenceTicks);
  std::exponential_distribution<double> accidental_gap(1.0 / kAccidentalTicks);
  std::normal_distribution<double> smear(0.0, kSigmaTicks);
  std::uniform_real_distribution<double> uniform;
  Packets packets;
  packets.offsets.push_back(0);
  double next = 1000;
  std::vector<double> next_accidental(config.inputs.size(), 0.0);
  for (std::uint64_t frame = 0; frame < kFrames; ++frame) {
    const double end = static_cast<double>((frame + 1) * kFrameTicks);
    std::vector<std::uint64_t> events;
    for (; next < end; next += gap(random)) events.push_back(static_cast<std::uint64_t>(next));
    packets.references += events.size();
    for (std::size_t i = 0; i < config.inputs.size(); ++i) {
      std::vector<std::uint64_t> times = events;
      if (i != config.reference_index()) {
        times.clear();
        for (const std::uint64_t event : events) {
          if (uniform(random) < efficiency)
            times.push_back(static_cast<std::uint64_t>(std::max(0.0, static_cast<double>(event) + smear(random))));
        }
        for (double& t = next_accidental[i]; t < end; t += accidental_gap(random)) times.push_back(static_cast<std::uint64_t>(t));
      }
      add_packet(packets, config.inputs[i].source_id, frame, times, random);
    }
  }
  return packets;
}

double best_ns_an_event(const l0tp::Config& config, const Packets& packets) {
  l0tp::TriggerProcessor processor(config);
  std::vector<l0tp::Decision> room(512);
  double best_ns = 1e9;
  for (int repeat = 0; repeat < 60; ++repeat) {
    const std::uint64_t before = processor.stats().decided;
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t p = 0; p + 1 < packets.offsets.size(); ++p) {
      processor.take(std::span(packets.bytes).subspan(packets.offsets[p], packets.offsets[p + 1] - packets.offsets[p]), 1);
      while (processor.decide(1, room) == room.size()) continue;
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    while (processor.flush(room) == room.size()) continue;
    const std::uint64_t decided = processor.stats().decided - before;
    const std::uint64_t overwritten = processor.input_stats(processor.reference_index()).overwritten /
                                      (static_cast<std::uint64_t>(repeat) + 1);
    if (decided + overwritten != packets.references || processor.input_stats(1).late != 0) {
      std::fprintf(stderr, "l0tp bench: %llu of %llu decided\n", static_cast<unsigned long long>(decided),
                   static_cast<unsigned long long>(packets.references));
      std::exit(1);
    }
    best_ns = std::min(best_ns, taken.count() / static_cast<double>(packets.references));
  }
  return best_ns;
}

}  // namespace

int main(int argc, char** argv) {
  std::ofstream csv;
  if (argc == 3 && std::string(argv[1]) == "--csv") {
    csv.open(argv[2]);
    csv << "fine_time_bits,efficiency,masks,primitives_per_event,ns_per_event\n";
  } else if (argc != 1) {
    std::fprintf(stderr, "usage: bench_l0tp [--csv FILE]\n");
    return 2;
  }
  std::printf("%8s %12s %8s %20s %14s\n", "b", "efficiency", "masks", "primitives/event", "ns/event");
  for (const std::uint32_t bits : {0u, 2u, 3u}) {
    for (const double efficiency : {0.1, 0.5, 0.9}) {
      l0tp::Config config;
      config.fine_time_bits = bits;
      for (l0tp::InputConfig& input : config.inputs) input.time_cut_ns = std::min(input.time_cut_ns, config.cell_ns());
      config.read_lag_us = 8.0;  // inputs speak one after the other, so each may be a frame late
      for (std::uint32_t m = 0; m < l0tp::kMasksMax; ++m) {
        const std::string pattern = std::string(12, 'x') + std::bitset<4>(m).to_string();
        config.masks.push_back({std::to_string(m), {{"RICH", pattern}}, m + 1});
      }
      const Packets packets = make_packets(config, efficiency);
      const double ns = best_ns_an_event(config, packets);
      const double primitives = static_cast<double>(packets.primitives) / static_cast<double>(packets.references);
      std::printf("%8u %12.1f %8zu %20.2f %14.1f\n", bits, efficiency, config.masks.size(), primitives, ns);
      csv << bits << ',' << efficiency << ',' << config.masks.size() << ',' << primitives << ',' << ns << '\n';
    }
  }
}
