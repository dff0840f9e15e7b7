// SPDX-License-Identifier: Apache-2.0
// One worker is stopped before any of its steps on shared memory, and others do their whole work in between: what threads show rarely,
// and lanes of a GPU often, repeatably and at every step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "part_table_watch.hpp"

namespace nanet::event {
namespace {

// Called before every step that others can see.
std::function<void()> before_step;

struct InterleavedAtomics {
  static void step() {
    if (before_step) before_step();
  }
  template <class Word>
  static Word load(Word& word) {
    step();
    return word;
  }
  template <class Word>
  static void store(Word& word, Word value) {
    step();
    word = value;
  }
  static bool compare_exchange(std::uint64_t& word, std::uint64_t& expected, std::uint64_t desired) {
    step();
    if (word != expected) {
      expected = word;
      return false;
    }
    word = desired;
    return true;
  }
  template <class Word>
  static Word fetch_add(Word& word, Word value) {
    step();
    return std::exchange(word, word + value);
  }
  template <class Word>
  static void fetch_max(Word& word, Word value) {
    step();
    word = std::max(word, value);
  }
};

using Table = PartTable<InterleavedAtomics>;

// Keys that all lie in one bucket.
std::vector<std::uint64_t> keys_of_one_bucket(const MergerConfig& config, std::size_t count) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 1; keys.size() < count; ++key) {
    const PartTableRoom room(config);
    PartTally tally;
    Table(config, room.memory()).place_part(0, key, 0, 0, tally);
    for (std::uint32_t way = 0; way < kWays; ++way) {
      if (room.memory().words[way] != 0) keys.push_back(key);
    }
  }
  return keys;
}

struct Bench {
  explicit Bench(const MergerConfig& config) : room(config), table(config, room.memory()) {}

  void add(std::uint32_t source, std::uint64_t key) {
    PartTally tally;
    const PartResult result = table.place_part(source, key, 1, now_ns, tally).result;
    table.commit(tally);
    ++calls;
    merged += result == PartResult::merged;
  }
  void finish_round() {
    table.release_ready(now_ns, {});
    table.finish_round();
  }
  // The keys of words that are not closed.
  std::multiset<std::uint64_t> live_keys() const {
    std::multiset<std::uint64_t> keys;
    for (std::uint32_t way = 0; way < kWays; ++way) {
      const std::uint64_t word = room.memory().words[way];
      if (word >> 62 == 1 || word >> 62 == 2) keys.insert(word & kKeyMask);
    }
    return keys;
  }

  PartTableRoom room;
  Table table;
  std::uint64_t now_ns = 1'000'000'000;
  std::uint64_t calls = 0;
  std::uint64_t merged = 0;
};

// From an empty, a half full or a full bucket of closed events: parts of few keys by many workers, stopped anywhere.
TEST(PartTableInterleaved, NoEventIsOpenedTwiceAndNoPartLost) {
  const MergerConfig config{.source_count = 4, .open_events_max = 1};
  const auto keys = keys_of_one_bucket(config, 40);
  std::mt19937 random(1);
  for (int trial = 0; trial < 20'000; ++trial) {
    Bench bench(config);
    const std::size_t old_count = random() % 24;
    for (std::size_t i = 0; i < old_count; ++i) {
      for (std::uint32_t source = 0; source < 4; ++source) bench.add(source, keys[i]);
      if (i % 4 == 3) bench.finish_round();
    }
    bench.finish_round();
    if (trial % 3 == 0) bench.now_ns += 3'000'000'000;  // what is closed has lapsed
    const std::uint64_t old_merged = bench.merged;

    // All parts of some keys, of which a few are among the remembered ones, and duplicates.
    const std::size_t new_count = 1 + random() % 12;
    const std::size_t first = trial % 3 == 0 ? random() % 24 : 24;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> parts;
    for (std::size_t i = 0; i < new_count; ++i) {
      for (std::uint32_t source = 0; source < 4; ++source) {
        for (std::uint32_t copies = 1 + random() % 2; copies > 0; --copies) parts.emplace_back(source, keys[first + i]);
      }
    }
    std::ranges::shuffle(parts, random);
    std::size_t next = 0;
    std::uint32_t depth = 0;
    before_step = [&] {
      if (random() % 12 != 0 || depth == 6 || next == parts.size()) return;
      ++depth;
      const auto [source, key] = parts[next++];
      bench.add(source, key);
      --depth;
    };
    while (next < parts.size()) {
      const auto [source, key] = parts[next++];
      bench.add(source, key);
    }
    before_step = nullptr;

    const MergerStats s = bench.table.stats();
    ASSERT_EQ(bench.merged - old_merged, 4 * new_count) << "trial " << trial;
    ASSERT_EQ(s.events_complete, old_count + new_count) << "trial " << trial;
    ASSERT_EQ(bench.table.open_count(), 0u) << "trial " << trial;
    ASSERT_EQ(s.parts_merged + s.parts_late + s.parts_duplicate + s.parts_no_room, bench.calls);
    ASSERT_EQ(s.parts_late + s.parts_no_room, 0u);
    ASSERT_EQ(bench.table.ready_count(), new_count);
    for (std::uint32_t i = 0; i < new_count; ++i) ASSERT_EQ(bench.table.ready(i).hit_count, 4);
    const auto live = bench.live_keys();
    ASSERT_EQ(std::set<std::uint64_t>(live.begin(), live.end()).size(), new_count);
    ASSERT_EQ(live.size(), new_count);
  }
}

// More keys than the bucket holds: whoever finds no room is told so, and no key gets two events.
TEST(PartTableInterleaved, AFullBucketRefusesWithoutSplittingAnEvent) {
  const MergerConfig config{.source_count = 3, .open_events_max = 1};
  const auto keys = keys_of_one_bucket(config, 24);
  std::mt19937 random(2);
  for (int trial = 0; trial < 5'000; ++trial) {
    Bench bench(config);
    std::vector<std::pair<std::uint32_t, std::uint64_t>> parts;
    for (const std::uint64_t key : keys) {
      for (std::uint32_t source = 0; source < 3; ++source) parts.emplace_back(source, key);
    }
    std::ranges::shuffle(parts, random);
    std::size_t next = 0;
    std::uint32_t depth = 0;
    before_step = [&] {
      if (random() % 8 != 0 || depth == 6 || next == parts.size()) return;
      ++depth;
      const auto [source, key] = parts[next++];
      bench.add(source, key);
      --depth;
    };
    while (next < parts.size()) {
      const auto [source, key] = parts[next++];
      bench.add(source, key);
    }
    before_step = nullptr;
    const auto live = bench.live_keys();
    ASSERT_EQ(live.size(), kWays) << "trial " << trial;
    ASSERT_EQ(std::set<std::uint64_t>(live.begin(), live.end()).size(), kWays) << "trial " << trial;
    const MergerStats s = bench.table.stats();
    ASSERT_EQ(s.events_opened, kWays);
    ASSERT_EQ(s.parts_merged + s.parts_no_room, parts.size());
    ASSERT_EQ(s.parts_no_room, (keys.size() - kWays) * 3) << "a part whose event is open always finds it";
  }
}

}  // namespace
}  // namespace nanet::event
