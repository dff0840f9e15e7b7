// SPDX-License-Identifier: Apache-2.0
// Threads that add parts to one table at the same time, in rounds with barriers, as blocks of a GPU do. To be run under the thread
// sanitizer too.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "part_table_watch.hpp"

namespace nanet::event {
namespace {

constexpr std::uint32_t kWorkers = 4;
constexpr std::uint64_t kStepNs = 10'000;  // of time between rounds

struct Part {
  std::uint32_t source;
  std::uint64_t key;
  std::uint16_t copy;  // 0, or 1 for the duplicate, which has other hits
};

// Hits from which everything about them can be told.
std::uint16_t hit_of(const Part& part, std::uint32_t k) {
  return static_cast<std::uint16_t>(part.key << 8 | std::uint64_t{part.copy} << 7 | part.source << 4 | k);
}
std::uint32_t hit_count_of(const Part& part) { return static_cast<std::uint32_t>(part.key * 7 + part.source * 3) % 13; }

using Round = std::vector<std::vector<Part>>;  // for each worker

// What the workers found, and what they delivered.
struct Outcome {
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::uint16_t>> merged;  // (key, source) -> copies merged
  std::vector<TableEvent> events;
  MergerStats stats;
  std::uint64_t calls = 0;
};

struct Finding {
  Part part;
  PartResult result;
};

Outcome run(const MergerConfig& config, const std::vector<Round>& rounds) {
  const PartTableRoom room(config);
  const HostPartTable table(config, room.memory());
  std::vector<std::vector<Finding>> findings(kWorkers);
  std::vector<std::vector<TableEvent>> delivered(kWorkers);
  std::barrier barrier(kWorkers);
  const auto read = [&](std::uint32_t worker, std::uint64_t now_ns) {
    for (std::uint32_t i = worker; i < table.ready_count(); i += kWorkers) {
      delivered[worker].push_back(table.ready(i));
      table.release(i, now_ns);
    }
  };
  const auto work = [&](std::uint32_t worker) {
    const Share share{worker, kWorkers};
    PartTally tally;
    std::uint64_t now_ns = 0;
    std::uint16_t hits[16];
    for (const Round& round : rounds) {
      for (const Part& part : round[worker]) {
        const std::uint32_t hit_count = hit_count_of(part);
        for (std::uint32_t k = 0; k < hit_count; ++k) hits[k] = hit_of(part, k);
        findings[worker].push_back({part, table.add_part(part.source, part.key, hits, hit_count, now_ns, tally)});
      }
      table.commit(tally);
      barrier.arrive_and_wait();
      now_ns += kStepNs;
      const bool due = table.expire_due(now_ns);
      if (due) table.expire(now_ns, share, tally);
      barrier.arrive_and_wait();
      table.commit(tally);
      read(worker, now_ns);
      barrier.arrive_and_wait();
      if (worker == 0) table.finish_round();
      barrier.arrive_and_wait();
    }
    table.drain(now_ns, share, tally);
    barrier.arrive_and_wait();
    table.commit(tally);
    read(worker, now_ns);
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t worker = 0; worker < kWorkers; ++worker) threads.emplace_back(work, worker);
  }
  Outcome outcome;
  for (const auto& found : findings) {
    for (const Finding& one : found) {
      if (one.result != PartResult::merged && one.result != PartResult::merged_cut) continue;
      outcome.merged[{one.part.key, one.part.source}].push_back(one.part.copy);
    }
    outcome.calls += found.size();
  }
  for (const auto& events : delivered) outcome.events.insert(outcome.events.end(), events.begin(), events.end());
  outcome.stats = table.stats();
  EXPECT_EQ(table.open_count(), 0u);
  return outcome;
}

void expect_books(const Outcome& outcome) {
  const MergerStats& s = outcome.stats;
  EXPECT_EQ(outcome.calls, s.parts_merged + s.parts_late + s.parts_duplicate + s.parts_no_room);
  EXPECT_EQ(s.events_opened, s.events_complete + s.events_missing_parts + s.events_overflow);
  EXPECT_EQ(s.events_opened, outcome.events.size());
  std::uint64_t parts = 0;
  for (const TableEvent& event : outcome.events) parts += static_cast<std::uint64_t>(std::popcount(event.parts_mask));
  EXPECT_EQ(s.parts_merged, parts);
}

// The event holds the hits of exactly the parts that were merged, each part's together and in order.
void expect_whole(const Outcome& outcome, const TableEvent& event) {
  std::multiset<std::uint16_t> should;
  for (std::uint32_t source = 0; source < kSourcesMax; ++source) {
    if ((event.parts_mask >> source & 1u) == 0) continue;
    const auto merged = outcome.merged.find({event.key, source});
    ASSERT_TRUE(merged != outcome.merged.end() && merged->second.size() == 1) << event.key;
    const Part part{source, event.key, merged->second[0]};
    for (std::uint32_t k = 0; k < hit_count_of(part); ++k) should.insert(hit_of(part, k));
  }
  const std::multiset<std::uint16_t> is(event.hits, event.hits + event.hit_count);
  ASSERT_EQ(event.hit_count + event.hits_cut, should.size()) << event.key;
  ASSERT_TRUE(std::ranges::includes(should, is)) << event.key;
}

// Every part of `events_a_round` events and some duplicates, dealt out to the workers in any order, or so that all workers have the
// same keys at the same time.
std::vector<Round> make_rounds(std::uint32_t source_count, std::uint32_t round_count, std::uint32_t events_a_round,
                               std::uint32_t lost_percent) {
  std::mt19937_64 random(source_count);
  std::vector<Round> rounds;
  std::uint64_t key = kKeyMask - 5000;
  for (std::uint32_t r = 0; r < round_count; ++r) {
    std::vector<Part> parts;
    for (std::uint32_t i = 0; i < events_a_round; ++i) {
      key = (key + 1 + random() % 100) & kKeyMask;
      for (std::uint32_t source = 0; source < source_count; ++source) {
        if (random() % 100 < lost_percent) continue;
        parts.push_back({source, key, 0});
        if (random() % 8 == 0) parts.push_back({source, key, 1});
      }
    }
    if (r % 2 == 0) std::ranges::shuffle(parts, random);
    Round round(kWorkers);
    for (std::size_t i = 0; i < parts.size(); ++i) round[i % kWorkers].push_back(parts[i]);
    rounds.push_back(round);
  }
  return rounds;
}

TEST(PartTableStress, EveryEventIsCompleteAndEveryDuplicateIsFound) {
  for (const std::uint32_t source_count : {1u, 2u, 4u, 8u}) {
    const auto rounds = make_rounds(source_count, 60, 64, 0);
    const Outcome outcome = run({.source_count = source_count, .open_events_max = 4096}, rounds);
    expect_books(outcome);
    EXPECT_EQ(outcome.stats.events_complete, 60u * 64u);
    EXPECT_EQ(outcome.stats.events_opened, outcome.stats.events_complete);
    EXPECT_EQ(outcome.stats.parts_merged, 60u * 64u * source_count);
    EXPECT_EQ(outcome.stats.parts_duplicate, outcome.calls - outcome.stats.parts_merged);
    for (const TableEvent& event : outcome.events) expect_whole(outcome, event);
  }
}

TEST(PartTableStress, LossesCloseByTheWindow) {
  const auto rounds = make_rounds(4, 100, 50, 5);
  const Outcome outcome = run({.source_count = 4, .window_ns = 3 * kStepNs, .open_events_max = 2048, .hits_max = 20}, rounds);
  expect_books(outcome);
  EXPECT_GT(outcome.stats.events_complete, 3000u);
  EXPECT_GT(outcome.stats.events_missing_parts, 500u);
  EXPECT_GT(outcome.stats.parts_overflow_hits, 100u);
  EXPECT_EQ(outcome.stats.events_overflow + outcome.stats.parts_late + outcome.stats.parts_no_room, 0u);
  for (const TableEvent& event : outcome.events) expect_whole(outcome, event);
}

// A table so small that buckets are full, events forgotten and their slots taken over by several workers at once.
TEST(PartTableStress, BooksBalanceInATableThatIsFarTooSmall) {
  const auto rounds = make_rounds(4, 100, 280, 10);
  const Outcome outcome = run({.source_count = 4, .window_ns = 3 * kStepNs, .open_events_max = 16}, rounds);
  expect_books(outcome);
  EXPECT_GT(outcome.stats.parts_no_room, 0u);
  EXPECT_GT(outcome.stats.events_overflow, 0u);
  EXPECT_GT(outcome.stats.events_complete, 1000u);
}

// All workers fight for the same few keys of one bucket.
TEST(PartTableStress, TheSameEventsByAllWorkersAtOnce) {
  constexpr std::uint32_t kRounds = 500;
  std::vector<Round> rounds;
  for (std::uint32_t r = 0; r < kRounds; ++r) {
    Round round(kWorkers);
    for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
      for (std::uint64_t key = r * 8; key < r * 8 + 8; ++key) {
        for (std::uint32_t source = 0; source < 8; ++source) round[worker].push_back({source, key, 0});
      }
    }
    rounds.push_back(round);
  }
  const Outcome outcome = run({.source_count = 8, .open_events_max = 4096}, rounds);
  expect_books(outcome);
  EXPECT_EQ(outcome.stats.events_complete, kRounds * 8u);
  EXPECT_EQ(outcome.stats.parts_merged, kRounds * 64u);
  EXPECT_EQ(outcome.stats.parts_duplicate, kRounds * 64u * (kWorkers - 1));
  for (const TableEvent& event : outcome.events) expect_whole(outcome, event);
}

}  // namespace
}  // namespace nanet::event
