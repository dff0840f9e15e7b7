// SPDX-License-Identifier: Apache-2.0
// Slices from units: whole, late, missing, of a wrong time, of another run, with holes; buffers go back in order, every unit has a name, and events
// are those of a trigger that got the same hits directly.
#include "km3_engine/slice_builder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "km3_emulate/units.hpp"

namespace nanet::km3_engine {
namespace {

using flow::Counter;
using km3_emulate::Kind;
using km3_emulate::TowerConfig;
using km3_emulate::UnitMaker;

constexpr std::uint32_t kFloors = 5;
constexpr std::uint64_t kSecond = 1'500'000'000;
constexpr std::uint64_t kTicksASlice = 62'500;  // 1 ms

TowerConfig tower() {
  TowerConfig config;
  config.floors = kFloors;
  config.slice_ms = 1;
  config.muons.rate_hz = 3000;
  return config;
}

Km3Config quick() {
  Km3Config config;
  config.floors = kFloors;
  config.timeout_ms = 100;
  config.trigger.slice_ns = 1e6;
  config.trigger.event_ns_max = 1e5;
  config.event_packet_bytes = 256;
  config.trigger.floor_hits_max = 1 << 12;
  config.trigger.seeds_max = 1 << 12;
  return config;
}

struct Given {
  std::uint64_t slice = 0;
  std::uint32_t floor = 1;  // as in packets
  std::uint32_t run = 7;
  std::int64_t late_ticks = 0;
  int kind = 1;
  std::vector<UnitRange> holes = {};
  std::uint64_t data_slice = ~std::uint64_t{0};
  bool untimed = false;
};

class Bench {
 public:
  explicit Bench(const Km3Config& config = quick(), const TowerConfig& sent = tower())
      : maker(sent, km3::make_towers({.floors = kFloors})), builder_(config, detector, parts()) {}

  engine::LaneParts parts() {
    return {.lane = 0,
            .completions = queue,
            .origins = {{&clop, nullptr, 0}},
            .payloads = {},
            .source_count = 0,
            .tx_ring = &ring,
            .sent_completions = &sent_queue,
            .inline_transmitter = nullptr,
            .counters = counters};
  }

  std::vector<std::byte> bytes_of(const Given& given) {
    std::vector<std::byte> bytes;
    const std::uint64_t slice = given.data_slice != ~std::uint64_t{0} ? given.data_slice : given.slice;
    maker.unit(slice, std::min(given.floor, kFloors) - 1, Kind::hits, km3_emulate::kFloorSettings, bytes);
    return bytes;
  }

  void give(const Given& given, std::uint64_t now_ns = 1'000'000) {
    std::uint32_t buffer = 0;
    ASSERT_TRUE(clop.acquire(buffer)) << "buffers did not come back";
    const auto bytes = bytes_of(given);
    std::memcpy(clop.buffer(buffer).data(), bytes.data(), bytes.size());
    UnitHead head{};
    head.stream = 1 << 11 | given.floor << 3 | static_cast<std::uint32_t>(given.kind);
    head.unit = std::uint64_t{given.untimed} << 63 | std::uint64_t{given.run} << 32 | given.slice;
    head.time = static_cast<std::uint64_t>(static_cast<std::int64_t>(kSecond * 62'500'000 + given.slice * kTicksASlice) +
                                           given.late_ticks);
    head.bytes = static_cast<std::uint32_t>(bytes.size());
    std::vector<UnitRange> ranges;
    std::uint32_t at = 0;
    for (const UnitRange& hole : given.holes) {
      std::memset(clop.buffer(buffer).data() + hole.begin, 0, hole.end - hole.begin);  // hits of PM 0 at time 0, if they were read
      ranges.push_back({at, hole.begin});
      at = hole.end;
    }
    ranges.push_back({at, head.bytes});
    head.range_count = static_cast<std::uint32_t>(ranges.size());
    auto* const index = reinterpret_cast<std::byte*>(clop.packet_index(buffer).data());
    std::memcpy(index, &head, sizeof head);
    std::memcpy(index + sizeof head, ranges.data(), ranges.size() * sizeof(UnitRange));
    Completion completion{};
    completion.status = static_cast<std::uint16_t>(status::unit | (given.holes.empty() ? 0 : status::incomplete));
    completion.kind = CompletionKind::buffer_filled;
    completion.buffer_index = static_cast<std::uint16_t>(buffer);
    completion.bytes = head.bytes;
    clop.hand_over();
    ASSERT_TRUE(queue.push(completion));
    ++given_;
    poll(now_ns);
  }

  void give_slice(std::uint64_t slice, std::uint32_t run = 7, std::int64_t late_ticks = 0, std::uint64_t now_ns = 1'000'000) {
    for (std::uint32_t floor = 1; floor <= kFloors; ++floor) {
      give({.slice = slice, .floor = floor, .run = run, .late_ticks = late_ticks}, now_ns);
    }
  }

  void poll(std::uint64_t now_ns) { builder_.poll(now_ns, now_ns); }

  void finish() {
    builder_.finish();
    EXPECT_EQ(clop.in_use(), 0u);
    EXPECT_EQ(given_, count(Counter::units_used) + count(Counter::units_passed_over) + count(Counter::units_of_no_part) +
                          count(Counter::units_too_late) + count(Counter::units_bad_time));
  }

  std::uint64_t count(Counter counter) const { return counters.value(counter); }

  void expect(std::uint64_t whole, std::uint64_t incomplete, std::uint64_t absent) const {
    EXPECT_EQ(count(Counter::slices_whole), whole);
    EXPECT_EQ(count(Counter::slices_incomplete), incomplete);
    EXPECT_EQ(count(Counter::units_absent), absent);
  }

  const km3::Detector detector = km3::make_towers({.floors = kFloors});
  UnitMaker maker;
  flow::Clop clop{flow::ClopConfig{.buffer_count = 64, .buffer_bytes = 1 << 16, .huge_pages = false, .locked = false}};
  flow::CompletionQueue queue{64};
  flow::TxRing ring{{.capacity = 4096, .slot_bytes = 1472, .locked = false}};
  flow::CompletionQueue sent_queue{4096};
  flow::Counters counters;

 private:
  SliceBuilder builder_;
  std::uint64_t given_ = 0;
};

std::uint64_t hits_of(Bench& bench, const Given& given) { return bench.bytes_of(given).size() / 6; }

TEST(SliceBuilder, WholeSlicesAreJudgedAndEveryHitIsUsed) {
  Bench bench;
  std::uint64_t hits = 0;
  for (std::uint64_t slice = 0; slice < 30; ++slice) {
    bench.give_slice(slice);
    for (std::uint32_t floor = 1; floor <= kFloors; ++floor) hits += hits_of(bench, {.slice = slice, .floor = floor});
    EXPECT_EQ(bench.clop.in_use(), 0u);
  }
  bench.finish();
  bench.expect(30, 0, 0);
  EXPECT_EQ(bench.count(Counter::hits_used), hits);
  EXPECT_EQ(bench.count(Counter::records_bad), 0u);
  EXPECT_GT(bench.count(Counter::seeds_found), 100u);
  EXPECT_GT(bench.count(Counter::events_triggered), 5u);
}

TEST(SliceBuilder, FloorsThatAreAheadKeepTheirBuffersUntilTheirTurn) {
  Bench bench;
  for (std::uint32_t floor = 1; floor <= kFloors; ++floor) {  // each floor two slices at once, in turns
    bench.give({.slice = 0, .floor = floor});
    bench.give({.slice = 1, .floor = floor});
  }
  EXPECT_EQ(bench.clop.in_use(), 0u);
  bench.give({.slice = 3, .floor = 1});
  bench.give({.slice = 3, .floor = 2});
  EXPECT_EQ(bench.clop.in_use(), 2u);
  bench.give_slice(2);
  EXPECT_EQ(bench.clop.in_use(), 0u);
  for (std::uint32_t floor = 3; floor <= kFloors; ++floor) bench.give({.slice = 3, .floor = floor});
  bench.finish();
  bench.expect(4, 0, 0);
}

TEST(SliceBuilder, AMissingFloorIsNamedAndTheOthersGoOn) {
  Bench bench;
  for (std::uint64_t slice = 0; slice < 10; ++slice) {
    for (std::uint32_t floor = 1; floor <= kFloors; ++floor) {
      if (slice >= 3 && slice < 6 && floor == 2) continue;
      bench.give({.slice = slice, .floor = floor});
    }
    EXPECT_LE(bench.clop.in_use(), 3 * kFloors);
  }
  bench.finish();
  bench.expect(7, 3, 3);
  EXPECT_EQ(bench.count(Counter::units_used), 47u);
}

TEST(SliceBuilder, ASliceIsClosedAfterTheTimeOutAndWhatComesThenIsTooLate) {
  Bench bench;
  for (std::uint32_t floor = 1; floor < kFloors; ++floor) bench.give({.slice = 0, .floor = floor}, 1'000'000);
  bench.poll(90'000'000);
  bench.expect(0, 0, 0);
  bench.poll(102'000'000);
  bench.expect(0, 1, 1);
  bench.give({.slice = 0, .floor = kFloors}, 103'000'000);
  EXPECT_EQ(bench.count(Counter::units_too_late), 1u);
  EXPECT_EQ(bench.clop.in_use(), 0u);
  bench.give_slice(1);
  bench.give({.slice = 1, .floor = 1});
  EXPECT_EQ(bench.count(Counter::units_too_late), 2u);
  bench.finish();
  bench.expect(1, 1, 1);
}

TEST(SliceBuilder, SlicesOfWhichNothingCameAreMissing) {
  Bench bench;
  bench.give_slice(0);
  for (std::uint64_t slice = 5; slice < 8; ++slice) bench.give_slice(slice);
  bench.finish();
  bench.expect(4, 0, 0);
  EXPECT_EQ(bench.count(Counter::slices_missing), 4u);
}

TEST(SliceBuilder, AFloorWhoseTimeJumpsIsRefusedAndTheOthersAreNot) {
  Bench bench;
  for (std::uint64_t slice = 0; slice < 12; ++slice) {
    for (std::uint32_t floor = 1; floor <= kFloors; ++floor) {
      const bool jumped = floor == 3 && slice >= 4 && slice < 8;
      bench.give({.slice = slice, .floor = floor, .late_ticks = jumped ? 62'500'000 : 0}, 1'000'000 + slice * 40'000'000);
    }
  }
  bench.finish();
  bench.expect(8, 4, 4);
  EXPECT_EQ(bench.count(Counter::units_bad_time), 4u);
}

// Though the time that it says would fit. Two floors say it: that must not make another run of it.
TEST(SliceBuilder, AUnitWhoseFloorSaysThatItsTimeIsNotRightIsRefused) {
  Bench bench;
  std::uint64_t hits = 0;
  for (std::uint64_t slice = 0; slice < 6; ++slice) {
    for (std::uint32_t floor = 1; floor <= kFloors; ++floor) {
      const bool untimed = floor <= 2 && slice < 3;
      bench.give({.slice = slice, .floor = floor, .untimed = untimed});
      if (!untimed) hits += hits_of(bench, {.slice = slice, .floor = floor});
    }
  }
  bench.finish();
  bench.expect(3, 3, 6);
  EXPECT_EQ(bench.count(Counter::units_bad_time), 6u);
  EXPECT_EQ(bench.count(Counter::hits_used), hits);
}

TEST(SliceBuilder, WhenHalfOfTheFloorsSayAnotherTimeItIsTheTime) {
  Bench bench;
  for (std::uint64_t slice = 0; slice < 4; ++slice) bench.give_slice(slice);
  for (std::uint64_t slice = 4; slice < 8; ++slice) bench.give_slice(slice, 7, 1000);
  bench.finish();
  EXPECT_EQ(bench.count(Counter::units_bad_time), 0u);
  EXPECT_EQ(bench.count(Counter::units_used), 40u);
  EXPECT_EQ(bench.count(Counter::slices_restarted), 1u);
  bench.expect(8, 0, 0);
}

// All floors agree, and each slice begins elsewhere than the one before it says: no event goes on from one to the next.
TEST(SliceBuilder, SlicesOfAnotherLengthThanThatOfTheTriggerAreToldOf) {
  Km3Config config = quick();
  config.trigger.slice_ns = 2e6;
  Bench bench(config);
  for (std::uint64_t slice = 0; slice < 6; ++slice) bench.give_slice(slice);
  bench.finish();
  EXPECT_EQ(bench.count(Counter::slices_restarted), 5u);
  EXPECT_EQ(bench.count(Counter::units_bad_time), 0u);
}

TEST(SliceBuilder, ANewRunBeginsAtItsFirstSliceAndEndsTheOld) {
  Bench bench;
  for (std::uint64_t slice = 0; slice < 4; ++slice) bench.give_slice(slice);
  bench.give({.slice = 4, .floor = 1});
  for (std::uint64_t slice = 0; slice < 4; ++slice) bench.give_slice(slice, 8, 62'500'000);
  bench.give({.slice = 9, .floor = 1});  // of the old run
  bench.finish();
  bench.expect(8, 1, kFloors - 1);
  EXPECT_EQ(bench.count(Counter::units_bad_time), 1u);
  EXPECT_EQ(bench.count(Counter::slices_restarted), 0u);
}

TEST(SliceBuilder, ADamagedRunOrSliceOrFloorHoldsNothingUp) {
  Bench bench;
  for (std::uint64_t slice = 0; slice < 10; ++slice) {
    const std::uint64_t now_ns = slice * 40'000'000;  // what is damaged keeps its buffer until the time-out
    bench.give_slice(slice, 7, 0, now_ns);
    bench.give({.slice = slice, .floor = 2, .run = 7 | 1 << 20}, now_ns);
    bench.give(
        {.slice = slice + (1 << 20), .floor = 2, .late_ticks = -static_cast<std::int64_t>(kTicksASlice << 20), .data_slice = 0},
        now_ns);
    bench.give({.slice = slice, .floor = 30, .data_slice = 0}, now_ns);
    bench.give({.slice = slice, .floor = 2, .kind = 4}, now_ns);
  }
  bench.poll(900'000'000);
  EXPECT_EQ(bench.clop.in_use(), 0u);
  bench.finish();
  bench.expect(10, 0, 0);
  EXPECT_EQ(bench.count(Counter::units_bad_time), 20u);
  EXPECT_EQ(bench.count(Counter::units_of_no_part), 10u);
  EXPECT_EQ(bench.count(Counter::units_passed_over), 10u);
}

TEST(SliceBuilder, WhatLiesInAHoleIsNotRead) {
  Bench bench;
  const Given given{.slice = 0, .floor = 1, .holes = {{60, 120}, {300, 360}}};
  const std::uint64_t hits = hits_of(bench, given);
  ASSERT_GT(hits, 100u);
  bench.give(given);
  for (std::uint32_t floor = 2; floor <= kFloors; ++floor) bench.give({.slice = 0, .floor = floor});
  bench.finish();
  bench.expect(0, 1, 0);
  std::uint64_t all = hits - 20;
  for (std::uint32_t floor = 2; floor <= kFloors; ++floor) all += hits_of(bench, {.slice = 0, .floor = floor});
  EXPECT_EQ(bench.count(Counter::hits_used), all);
}

std::uint32_t u32(const std::byte* from) { return static_cast<std::uint32_t>(km3::load_be32(from)); }

std::int64_t i64(const std::byte* from) { return static_cast<std::int64_t>(std::uint64_t{u32(from)} << 32 | u32(from + 4)); }

// The packets that were written, put together by number, against events of a trigger that gets the hits from the same units.
TEST(SliceBuilder, EventsAreThoseOfATriggerThatGotTheHitsDirectly) {
  Bench bench;
  km3::Trigger trigger(bench.detector, quick().trigger);
  std::map<std::uint32_t, std::vector<std::byte>> expected;
  std::size_t seed_hits = 0;
  const auto keep = [&](std::span<const km3::Event> events) {
    for (const km3::Event& event : events) {
      std::vector<std::byte>& bytes = expected[static_cast<std::uint32_t>(event.number)];
      for (const km3::Hit& hit : trigger.hits(event)) {
        std::uint32_t kinds = 0;
        for (const km3::Seed& seed : trigger.seeds(event)) {
          if (seed.pm == hit.pm && seed.point.time_ns == hit.time_ns) kinds = seed.kinds;
        }
        seed_hits += kinds != 0 ? 1 : 0;
        const auto time = static_cast<std::uint64_t>(std::llround(hit.time_ns * 1024));
        const std::uint32_t floor = hit.pm / 6 + 1;
        for (const std::uint32_t one :
             {1u, floor, kinds << 5 | hit.pm % 6, static_cast<std::uint32_t>(std::lround(hit.charge_pe * 10))}) {
          bytes.push_back(static_cast<std::byte>(one));
        }
        for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::byte>(time >> shift));
      }
    }
  };
  for (std::uint64_t slice = 0; slice < 40; ++slice) {
    bench.give_slice(slice);
    keep(trigger.begin(static_cast<std::uint32_t>(slice)));
    for (std::uint32_t floor = 0; floor < kFloors; ++floor) {
      km3::DecodeCounts counts;
      const auto bytes = bench.bytes_of({.slice = slice, .floor = floor + 1});
      trigger.commit(floor, km3::decode_hits(bytes, bench.detector.calibration(floor), trigger.room(floor), counts));
    }
    keep(trigger.finish());
  }
  keep(trigger.flush());
  bench.finish();
  ASSERT_GT(expected.size(), 10u);
  EXPECT_GE(seed_hits, 5 * expected.size());
  EXPECT_EQ(bench.count(Counter::events_triggered), expected.size());

  std::map<std::uint32_t, std::vector<std::byte>> came;
  std::size_t cut = 0;
  for (const TxDescriptor& descriptor : bench.ring.memory()) {
    if (descriptor.sequence == 0) break;
    const auto* const packet = reinterpret_cast<const std::byte*>(descriptor.address);
    ASSERT_EQ(u32(packet), 0x4B4D3345u);
    ASSERT_EQ(u32(packet + 4), 7u);
    const std::uint64_t ticks = std::uint64_t{u32(packet + 16)} * 62'500'000 + u32(packet + 20);
    ASSERT_EQ(ticks, kSecond * 62'500'000 + u32(packet + 8) * kTicksASlice);
    std::vector<std::byte>& bytes = came[u32(packet + 12)];
    ASSERT_EQ(u32(packet + 24), bytes.size());
    bytes.insert(bytes.end(), packet + 32, packet + descriptor.bytes);
    if (bytes.size() < u32(packet + 28)) ++cut;
  }
  EXPECT_GT(cut, 0u);  // some are longer than a packet
  ASSERT_EQ(came.size(), expected.size());
  for (auto& [number, bytes] : came) {
    ASSERT_GE(bytes.size(), 24u);
    EXPECT_EQ(24 + 12 * u32(bytes.data()), bytes.size());
    EXPECT_GE(u32(bytes.data() + 4), 5u);                       // seeds
    EXPECT_LE(i64(bytes.data() + 16), i64(bytes.data() + 28));  // begins before its first hit
    bytes.erase(bytes.begin(), bytes.begin() + 24);
    EXPECT_EQ(bytes, expected[number]);
  }
}

}  // namespace
}  // namespace nanet::km3_engine
