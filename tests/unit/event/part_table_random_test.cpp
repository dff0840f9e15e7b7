// SPDX-License-Identifier: Apache-2.0
// Random streams with every fault: the part table against the merger, where the rules of both agree, and against its own books, where
// memory is so tight that they do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "nanet/event/merger.hpp"
#include "part_table_watch.hpp"

namespace nanet::event {
namespace {

struct Part {
  std::uint32_t source;
  std::uint64_t key;
  std::vector<std::uint16_t> hits;
};

struct Stream {
  const char* name;
  MergerConfig config;
  double lost;  // probabilities a part
  double duplicated;
  double delayed;
  double wild;  // any key
  std::uint32_t events;
  std::uint32_t mean_gap_ns;  // between parts
};

// All parts of a stream's events in blocks of 16 events a source, then with faults.
std::vector<Part> parts_of(const Stream& stream, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto chance = [&](double probability) { return std::uniform_real_distribution<>()(random) < probability; };
  std::vector<Part> parts;
  std::vector<Part> delayed;
  std::uint64_t key = kKeyMask - 100'000;  // so that keys wrap early
  for (std::uint32_t done = 0; done < stream.events; done += 16) {
    std::vector<std::uint64_t> keys(16);
    for (auto& one : keys) one = key = (key + 1 + random() % 2000) & kKeyMask;
    for (std::uint32_t source = 0; source < stream.config.source_count; ++source) {
      for (const std::uint64_t one : keys) {
        if (chance(stream.lost)) continue;
        Part part{source, chance(stream.wild) ? random() & kKeyMask : one, {}};
        part.hits.resize(chance(0.02) ? random() % 200 : random() % 8);
        for (auto& hit : part.hits) hit = static_cast<std::uint16_t>(random());
        if (chance(stream.duplicated)) delayed.push_back(part);
        (chance(stream.delayed) ? delayed : parts).push_back(part);
      }
    }
    while (!delayed.empty() && chance(0.5)) {
      parts.push_back(delayed.front());
      delayed.erase(delayed.begin());
    }
  }
  parts.insert(parts.end(), delayed.begin(), delayed.end());
  return parts;
}

using Delivered = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t, CloseReason, std::vector<std::uint16_t>>;

Delivered delivered_of(const MergedEvent& event) {
  const auto hits = event.hit_span();
  return {event.key, event.first_part_ns, event.parts_mask, event.hits_cut, event.closed_by, {hits.begin(), hits.end()}};
}
Delivered delivered_of(const TableEvent& event) {
  return {event.key,      event.first_part_ns, event.parts_mask,
          event.hits_cut, event.closed_by,     {event.hits, event.hits + event.hit_count}};
}

void expect_same_stats(const MergerStats& a, const MergerStats& b) {
  EXPECT_EQ(a.parts_merged, b.parts_merged);
  EXPECT_EQ(a.parts_late, b.parts_late);
  EXPECT_EQ(a.parts_duplicate, b.parts_duplicate);
  EXPECT_EQ(a.parts_no_room, b.parts_no_room);
  EXPECT_EQ(a.parts_overflow_hits, b.parts_overflow_hits);
  EXPECT_EQ(a.events_opened, b.events_opened);
  EXPECT_EQ(a.events_complete, b.events_complete);
  EXPECT_EQ(a.events_missing_parts, b.events_missing_parts);
  EXPECT_EQ(a.events_overflow, b.events_overflow);
}

// The same answers, events and totals, so long as nothing is forgotten and nothing overflows: what differs then is told in the design page.
class PartTableAndMerger : public ::testing::TestWithParam<Stream> {};

TEST_P(PartTableAndMerger, AgreeCallByCall) {
  const Stream stream = GetParam();
  std::mt19937_64 random(3);
  Merger merger(stream.config);
  const PartTableRoom room(stream.config);
  const HostPartTable table(stream.config, room.memory());
  PartTally tally;
  std::uint64_t now_ns = 1'000'000'000;
  std::uint64_t events = 0;
  const auto compare = [&] {
    std::vector<Delivered> by_merger;
    for (const MergedEvent* event : merger.ready()) by_merger.push_back(delivered_of(*event));
    std::vector<Delivered> by_table;
    for (std::uint32_t i = 0; i < table.ready_count(); ++i) by_table.push_back(delivered_of(table.ready(i)));
    std::ranges::sort(by_merger);
    std::ranges::sort(by_table);
    EXPECT_EQ(by_merger, by_table);
    events += by_table.size();
    merger.clear_ready();
    table.release_ready(now_ns, {});
    table.commit(tally);
    table.finish_round();
  };
  std::size_t number = 0;
  for (const Part& part : parts_of(stream, 7)) {
    const auto hit_count = static_cast<std::uint32_t>(part.hits.size());
    const PartResult by_merger = merger.add_part(part.source, part.key, part.hits.data(), hit_count, now_ns);
    ASSERT_EQ(table.add_part(part.source, part.key, part.hits.data(), hit_count, now_ns, tally), by_merger) << "part " << number;
    if (++number % 64 != 0) continue;
    now_ns += random() % (2 * 64 * std::uint64_t{stream.mean_gap_ns});
    merger.expire(now_ns);
    table.commit(tally);
    if (table.expire_due(now_ns)) table.expire(now_ns, {}, tally);
    compare();
    if (number % (64 * 200) == 0) {  // a new run now and then: the memory begins again
      merger.flush();
      table.flush({}, tally);
      compare();
    }
    ASSERT_FALSE(HasFailure()) << "part " << number;
  }
  merger.drain(now_ns);
  table.commit(tally);
  table.drain(now_ns, {}, tally);
  compare();
  expect_same_stats(merger.stats(), table.stats());
  EXPECT_EQ(table.open_count(), 0u);
  EXPECT_EQ(events, table.stats().events_opened);
  EXPECT_GT(table.stats().events_complete, stream.events / 4);
}

INSTANTIATE_TEST_SUITE_P(
    Streams, PartTableAndMerger,
    ::testing::Values(
        Stream{"clean", {.source_count = 4, .window_ns = 10'000'000}, 0, 0, 0, 0, 30'000, 25},
        Stream{"all_faults", {.source_count = 4, .window_ns = 20'000}, 0.01, 0.01, 0.01, 0.002, 30'000, 25},
        Stream{"late", {.source_count = 3, .window_ns = 1'000}, 0.05, 0.2, 0.2, 0.01, 30'000, 25},
        Stream{"one_source", {.source_count = 1, .window_ns = 20'000, .open_events_max = 16'384}, 0.01, 0.1, 0.05, 0.01, 30'000, 25},
        Stream{"eight", {.source_count = 8, .window_ns = 50'000, .hits_max = 20}, 0.005, 0.01, 0.01, 0.001, 30'000, 25}),
    [](const auto& stream) { return stream.param.name; });

class PartTableBooks : public ::testing::TestWithParam<Stream> {};

TEST_P(PartTableBooks, BalanceAndWhatIsDeliveredIsWhatCame) {
  const Stream stream = GetParam();
  std::mt19937_64 random(5);
  PartTableWatch watch(stream.config, 0u - 5000u, 3);
  std::uint64_t now_ns = 0;
  std::size_t number = 0;
  for (const Part& part : parts_of(stream, 11)) {
    watch.add_part(part.source, part.key, part.hits, now_ns);
    if (++number % 40 != 0) continue;
    now_ns += random() % (2 * 40 * std::uint64_t{stream.mean_gap_ns});
    if (random() % 1000 == 0) now_ns += 3'000'000'000;
    if (random() % 20 != 0) watch.expire(now_ns);  // forgets to ask now and then
    if (random() % 200 == 0) watch.drain(now_ns);
    if (random() % 500 == 0) watch.flush();
    if (random() % 20 != 0) watch.finish_round(now_ns);
    ASSERT_EQ(watch.failure(), "");
  }
  watch.flush();
  watch.finish_round(now_ns);
  EXPECT_EQ(watch.failure(), "");
  EXPECT_EQ(watch.table.open_count(), 0u);
  EXPECT_GT(watch.table.stats().events_complete, stream.events / 100);
}

INSTANTIATE_TEST_SUITE_P(
    Streams, PartTableBooks,
    ::testing::Values(
        Stream{"all_faults", {.source_count = 4, .window_ns = 20'000}, 0.01, 0.01, 0.01, 0.002, 20'000, 25},
        Stream{"tight", {.source_count = 4, .window_ns = 100'000, .open_events_max = 64}, 0.02, 0.05, 0.02, 0.002, 20'000, 25},
        Stream{"tiny", {.source_count = 3, .window_ns = 1'000, .open_events_max = 1, .hits_max = 5}, 0.01, 0.3, 0.1, 0.01, 20'000, 5},
        Stream{"full", {.source_count = 8, .window_ns = 10'000'000, .open_events_max = 64}, 0.2, 0.01, 0.01, 0.05, 20'000, 25},
        Stream{"slow", {.source_count = 2, .window_ns = 10'000'000, .open_events_max = 256}, 0.01, 0.1, 0.1, 0.01, 20'000, 3'000'000}),
    [](const auto& stream) { return stream.param.name; });

}  // namespace
}  // namespace nanet::event
