// SPDX-License-Identifier: Apache-2.0
// The merger against its model on random streams with every fault, call by call; and that it never allocates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "../allocation_count.hpp"
#include "merger_model.hpp"

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
  double delayed;       // by up to 5000 parts
  double wild;          // any key
  double mean_gap_ns;   // between parts
  std::uint32_t block;  // events of a source before the next source's turn
};

// Parts of consecutive events in blocks of one source after the other, then with faults.
class FaultyBoards {
 public:
  FaultyBoards(const Stream& stream, std::uint64_t seed) : stream_(stream), random_(seed) {}

  Part next() {
    while (queue_.empty()) fill();
    Part part = queue_.front();
    queue_.pop_front();
    return part;
  }

  void restart() { key_ = 0; }
  bool chance(double probability) { return std::uniform_real_distribution<>()(random_) < probability; }
  std::uint64_t below(std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random_); }

 private:
  void fill() {
    std::vector<std::uint64_t> keys(stream_.block);
    for (auto& key : keys) key = key_ = (key_ + 1 + below(2000)) & kKeyMask;
    for (std::uint32_t source = 0; source < stream_.config.source_count; ++source) {
      for (const std::uint64_t key : keys) add(source, key);
    }
    std::vector<Part> held;
    for (auto& part : delayed_) {
      if (chance(0.1)) {
        queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(below(queue_.size() + 1)), part);
      } else {
        held.push_back(part);
      }
    }
    delayed_ = held;
  }

  void add(std::uint32_t source, std::uint64_t key) {
    if (chance(stream_.lost)) return;
    Part part{source, chance(stream_.wild) ? below(std::uint64_t{1} << 40) : key, {}};
    part.hits.resize(chance(0.02) ? below(200) : below(8));
    for (auto& hit : part.hits) hit = static_cast<std::uint16_t>(below(65536));
    if (chance(stream_.duplicated)) delayed_.push_back(part);
    (chance(stream_.delayed) ? delayed_.push_back(part) : queue_.push_back(part));
  }

  const Stream stream_;
  std::mt19937_64 random_;
  std::uint64_t key_ = kKeyMask - 1'000'000;  // so that keys wrap early
  std::deque<Part> queue_;
  std::vector<Part> delayed_;
};

void expect_books(const Merger& merger, std::uint64_t parts_added, std::uint64_t events_delivered) {
  const MergerStats& s = merger.stats();
  EXPECT_EQ(parts_added, s.parts_merged + s.parts_late + s.parts_duplicate + s.parts_no_room);
  EXPECT_EQ(s.events_opened, s.events_complete + s.events_missing_parts + s.events_overflow + merger.open_count());
  EXPECT_EQ(events_delivered, s.events_complete + s.events_missing_parts + s.events_overflow);
}

class MergerProperty : public ::testing::TestWithParam<Stream> {};

TEST_P(MergerProperty, DoesWhatTheModelDoes) {
  const Stream stream = GetParam();
  FaultyBoards boards(stream, 20'26);
  Merger merger(stream.config);
  MergerModel model(stream.config);
  std::uint64_t now_ns = 0;
  std::uint64_t events_delivered = 0;
  constexpr std::uint64_t part_count = 150'000;
  for (std::uint64_t i = 0; i < part_count; ++i) {
    const Part part = boards.next();
    now_ns += static_cast<std::uint64_t>(stream.mean_gap_ns * 2) * boards.below(1000) / 1000;
    if (boards.chance(1e-5)) now_ns += 3'000'000'000;
    if (boards.chance(5e-5)) {
      boards.restart();
      if (boards.chance(0.5)) {
        merger.flush();
        model.flush();
      }
    }
    if (boards.chance(2e-5)) {
      merger.drain(now_ns);
      model.drain(now_ns);
    }
    const auto hit_count = static_cast<std::uint32_t>(part.hits.size());
    const PartResult is = merger.add_part(part.source, part.key, part.hits.data(), hit_count, now_ns);
    ASSERT_EQ(is, model.add_part(part.source, part.key, part.hits, now_ns)) << "part " << i;
    if (!boards.chance(1.0 / 40)) continue;
    merger.expire(now_ns);
    model.expire(now_ns);
    ASSERT_EQ(model.difference(merger), "") << "part " << i;
    if (boards.chance(0.02)) continue;  // forgets to clear now and then
    events_delivered += merger.ready().size();
    merger.clear_ready();
    model.ready.clear();
  }
  merger.flush();
  model.flush();
  ASSERT_EQ(model.difference(merger), "");
  events_delivered += merger.ready().size();
  expect_books(merger, part_count, events_delivered);
  EXPECT_GT(merger.stats().events_complete, part_count / 100);
}

INSTANTIATE_TEST_SUITE_P(
    Streams, MergerProperty,
    ::testing::Values(
        Stream{"clean", {.source_count = 4, .window_ns = 10'000'000}, 0, 0, 0, 0, 25, 16},
        Stream{"all_faults", {.source_count = 4, .window_ns = 20'000}, 0.01, 0.01, 0.01, 0.002, 25, 16},
        Stream{"tight", {.source_count = 4, .window_ns = 100'000, .open_events_max = 64}, 0.02, 0.05, 0.02, 0.002, 25, 48},
        Stream{"tiny", {.source_count = 3, .window_ns = 1'000, .open_events_max = 1, .hits_max = 5}, 0.01, 0.3, 0.1, 0.01, 5, 1},
        Stream{"slow", {.source_count = 2, .window_ns = 10'000'000, .open_events_max = 256}, 0.01, 0.1, 0.1, 0.01, 3e6, 4},
        Stream{"one_source", {.source_count = 1, .window_ns = 20'000, .open_events_max = 128}, 0.01, 0.1, 0.05, 0.01, 25, 16},
        Stream{
            "eight", {.source_count = 8, .window_ns = 50'000, .open_events_max = 512, .hits_max = 20}, 0.005, 0.01, 0.01, 0.001, 25, 64}),
    [](const auto& stream) { return stream.param.name; });

TEST(MergerAllocation, NothingIsAllocatedAfterConstruction) {
  const Stream stream{"", {.source_count = 4, .window_ns = 20'000, .open_events_max = 64}, 0.01, 0.02, 0.02, 0.002, 25, 16};
  FaultyBoards boards(stream, 1);
  std::vector<Part> parts;
  for (int i = 0; i < 200'000; ++i) parts.push_back(boards.next());
  const std::uint64_t before_construction = test::allocation_count;
  Merger merger(stream.config);
  EXPECT_GT(test::allocation_count, before_construction);  // the counter works
  const std::uint64_t after_construction = test::allocation_count;
  std::uint64_t now_ns = 0;
  for (const Part& part : parts) {
    now_ns += 25;
    merger.add_part(part.source, part.key, part.hits.data(), static_cast<std::uint32_t>(part.hits.size()), now_ns);
    if (now_ns % 1000 == 0) {
      merger.expire(now_ns);
      merger.clear_ready();
    }
    if (now_ns % 1'000'000 == 0) merger.drain(now_ns);
  }
  merger.flush();
  merger.clear_ready();
  EXPECT_EQ(test::allocation_count, after_construction);
  EXPECT_GT(merger.stats().events_complete, 10'000u);
  EXPECT_GT(merger.stats().events_overflow + merger.stats().events_missing_parts, 1'000u);
}

}  // namespace
}  // namespace nanet::event
