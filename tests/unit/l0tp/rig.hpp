// SPDX-License-Identifier: Apache-2.0
// A trigger processor with short words for the tests: primitives in, decisions out, books held.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "l0tp/trigger_processor.hpp"
#include "nanet/wire/mtp.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::l0tp::test {

// A primitive by its time in ticks.
inline wire::Primitive at(std::uint64_t tick_count, std::uint16_t id = 0x4000) {
  return {wire::timestamp_of(tick_count), wire::fine_time_of(tick_count), id};
}

// A mask that matches every decision.
inline MaskConfig any_mask() { return {.name = "any"}; }

inline Config three_inputs() {
  Config config;
  constexpr double cut_ns = 50 * wire::kTickNs;
  config.inputs = {{"RICH", wire::kSourceRich, cut_ns}, {"CHOD", wire::kSourceChod, cut_ns}, {"MUV3", wire::kSourceMuv3, cut_ns}};
  config.fine_time_bits = 2;                // cells of 64 ticks
  config.read_lag_us = 10 * wire::kTickNs;  // 10,000 ticks
  config.masks = {any_mask()};
  return config;
}

// The same with cells of 256 >> bits ticks, and cuts no longer than they are.
inline Config with_cells(Config config, std::uint32_t bits) {
  config.fine_time_bits = bits;
  for (InputConfig& input : config.inputs) input.time_cut_ns = std::min(input.time_cut_ns, config.cell_ns());
  return config;
}

class Rig {
 public:
  explicit Rig(const Config& given) : config(given), processor(given) {}

  // One packet whose header has the first primitive's time.
  void send(std::uint32_t input, std::vector<wire::Primitive> primitives) { send(input, primitives.at(0).timestamp, primitives); }
  void send(std::uint32_t input, std::uint32_t header_timestamp, const std::vector<wire::Primitive>& primitives) {
    std::vector<std::byte> room(wire::kMtpBytesMax);
    wire::MtpWriter writer(room);
    writer.begin(config.inputs[input].source_id, 3, header_timestamp);
    for (const wire::Primitive& primitive : primitives) ASSERT_TRUE(writer.add(primitive));
    processor.take(writer.finish(), now_ns);
    check_books();
  }
  // An empty packet: time goes on to this, less what a header cannot say (whole 65536 ticks).
  void advance(std::uint32_t input, std::uint64_t tick_count) { send(input, wire::timestamp_of(tick_count), {}); }

  std::vector<Decision> decide() {
    return gather([this](std::span<Decision> room) { return processor.decide(now_ns, room); });
  }
  std::vector<Decision> flush() {
    return gather([this](std::span<Decision> room) { return processor.flush(room); });
  }

  void check_books() const {
    for (std::uint32_t i = 0; i < processor.input_count(); ++i) {
      const InputStats s = processor.input_stats(i);
      EXPECT_EQ(s.primitives, s.stored + s.calibrations + s.late + s.out_of_range + s.duplicates + s.calibrations_no_room);
    }
    const Stats& s = processor.stats();
    EXPECT_EQ(s.packets, s.packets_good + s.packets_bad_length + s.packets_bad_format + s.packets_unknown_source);
  }

  Config config;
  TriggerProcessor processor;
  std::uint64_t now_ns = 1'000;
  std::size_t room_count = 7;  // decisions a call: small, so that calls are repeated

 private:
  template <class Call>
  std::vector<Decision> gather(Call call) {
    std::vector<Decision> all;
    std::vector<Decision> room(room_count);
    for (std::size_t count = room.size(); count == room.size();) {
      count = call(std::span(room));
      all.insert(all.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(count));
    }
    check_books();
    return all;
  }
};

}  // namespace nanet::l0tp::test
