// SPDX-License-Identifier: Apache-2.0
// An engine whose GPU merges the parts of several boards, over real sockets: whole events, the books, windows that end while nothing comes, the end
// of a run, a new run, a GPU that is given up. The GPU is a thread with the part table of the kernels (fake_gpu.hpp).
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "fake_gpu.hpp"
#include "gpu_answers.hpp"
#include "nanet/engine/engine.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;
using test::Answers;
using test::FakeGpuScript;
using test::PlainSocket;
using test::TestEvent;

constexpr std::uint32_t kBoards = 4;
constexpr std::uint32_t kPacketEvents = 16;
constexpr std::uint64_t kForEverUs = 10'000'000;  // the longest window: no test takes so long
constexpr int kPatienceMs = 60'000;               // of a test that fails

// False when it is not so in time.
bool comes_true(const std::function<bool()>& is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// The boards' side: who sent which part, and what the GPU makes of it.
class Boards {
 public:
  Boards(std::vector<std::uint16_t> ports, std::uint32_t packets, std::uint64_t seed)
      : ports_(std::move(ports)),
        events_(test::make_events(kPacketEvents * packets, seed)),
        hits_(events_.size()),
        came_(events_.size()) {
    for (std::size_t e = 0; e < events_.size(); ++e) hits_[e] = {.time = events_[e].time};
  }

  // The board's part of packet p; with `content`, the times and hits of another packet under p's numbers.
  void send(std::uint32_t board, std::uint32_t p, std::uint32_t content) {
    std::vector<TestEvent> parts;
    for (std::uint32_t k = 0; k < kPacketEvents; ++k) {
      TestEvent part = test::part_of(events_[kPacketEvents * content + k], board);
      part.time.event_number = static_cast<std::uint16_t>(kPacketEvents * p + k);
      parts.push_back(std::move(part));
    }
    socket_.send(port_of(board), test::make_packet(parts, p, static_cast<std::uint8_t>(board)));
    sent_parts_ += kPacketEvents;
  }
  void send(std::uint32_t board, std::uint32_t p) {
    send(board, p, p);
    for (std::uint32_t k = 0; k < kPacketEvents; ++k) {
      const std::uint32_t e = kPacketEvents * p + k;
      const TestEvent part = test::part_of(events_[e], board);
      hits_[e].hits.insert(hits_[e].hits.end(), part.hits.begin(), part.hits.end());
      came_[e] |= 1u << board;
    }
  }

  void end_run(std::uint32_t packets) {
    for (std::uint32_t board = 0; board < kBoards; ++board)
      socket_.send(port_of(board), test::make_end_marker(packets, kPacketEvents * packets, static_cast<std::uint8_t>(board)));
  }
  void start_run() {
    for (std::uint32_t board = 0; board < kBoards; ++board)
      socket_.send(port_of(board), test::make_start_marker(0, 0, static_cast<std::uint8_t>(board)));
  }

  // Of events of which at least one part was merged, or only of whole ones.
  Answers expected(bool whole_only) const {
    std::vector<TestEvent> seen;
    for (std::size_t e = 0; e < events_.size(); ++e) {
      if (whole_only ? came_[e] == (1u << kBoards) - 1 : came_[e] != 0) seen.push_back(hits_[e]);
    }
    return test::expected_answers(seen);
  }
  std::uint64_t event_count() const { return events_.size(); }
  std::uint64_t sent_parts() const { return sent_parts_; }

 private:
  std::uint16_t port_of(std::uint32_t board) const { return ports_[board * ports_.size() / kBoards]; }

  const std::vector<std::uint16_t> ports_;  // the boards are spread over them, in order
  std::vector<TestEvent> events_;
  std::vector<TestEvent> hits_;      // those that came
  std::vector<std::uint32_t> came_;  // bit b: the part of board b
  PlainSocket socket_;
  std::uint64_t sent_parts_ = 0;
};

using Param = std::tuple<Topology, std::size_t>;  // and the number of links

class GpuMergeTest : public ::testing::TestWithParam<Param> {
 protected:
  PlainSocket l0tp;
  std::vector<std::uint16_t> ports;
  FakeGpuScript script;

  void SetUp() override {
    for (std::size_t k = 0; k < std::get<1>(GetParam()); ++k) ports.push_back(test::free_port());
  }

  test::NodeConfig config(std::uint64_t window_us, IncompletePolicy incomplete) const {
    test::NodeConfig made = test::gpu_config(ports[0], l0tp.port(), std::get<0>(GetParam()));
    made.rich.answers->source_sub_id = test::kAnswerSubId;
    made.rich.merge = MergeConfig{.window_us = window_us, .incomplete = incomplete};
    made.links.resize(ports.size(), made.links[0]);
    std::uint8_t board = 0;
    for (std::size_t k = 0; k < ports.size(); ++k) {
      made.links[k].name = "boards" + std::to_string(k);
      made.links[k].endpoint = "udp://127.0.0.1:" + std::to_string(ports[k]);
      made.links[k].sources.resize(kBoards / ports.size());
      for (SourceConfig& source : made.links[k].sources) source.source_sub_id = board++;
    }
    return made;
  }
};

// docs/design/books.md, 4 and 5. Of a GPU that was given up too.
void expect_balanced_books(const Engine& engine, const Boards& boards, const std::string& what = "") {
  const auto total = [&](Counter counter) { return engine.total(counter); };
  EXPECT_EQ(total(Counter::events_received), boards.sent_parts()) << what;
  EXPECT_EQ(total(Counter::events_received), total(Counter::parts_merged) + total(Counter::parts_late) +
                                                 total(Counter::parts_duplicate) + total(Counter::parts_no_room) +
                                                 total(Counter::parts_unjudged) + total(Counter::events_bad_body))
      << what;
  EXPECT_EQ(boards.event_count(), total(Counter::events_answered) + total(Counter::events_discarded) +
                                      total(Counter::events_unseen) + total(Counter::events_unjudged))
      << what;
  if (!engine.faults().empty()) return;
  EXPECT_EQ(total(Counter::parts_unjudged) + total(Counter::events_unjudged), 0u) << what;
  EXPECT_EQ(total(Counter::events_complete) + total(Counter::events_missing_parts) + total(Counter::events_overflow),
            total(Counter::events_answered) + total(Counter::events_discarded))
      << what;
}

TEST_P(GpuMergeTest, PartsOfAllBoardsAreWholeEventsAtOnce) {
  constexpr std::uint32_t kPackets = 60;
  Engine engine(config(kForEverUs, IncompletePolicy::drop).made(test::fake_gpu(script)));
  engine.start();
  Boards boards(ports, kPackets, 31);
  for (std::uint32_t p = 0; p < kPackets; ++p) {
    for (std::uint32_t k = 0; k < kBoards; ++k) boards.send((k + p) % kBoards, p);
  }
  const Answers expected = boards.expected(true);
  Answers answers;
  while (answers.size() < expected.size() && test::collect(l0tp, answers, 1, kPatienceMs) == 1) {
  }
  EXPECT_EQ(answers, expected);
  engine.stop();
  expect_balanced_books(engine, boards);
  EXPECT_EQ(engine.total(Counter::events_complete), kPacketEvents * kPackets);
  EXPECT_EQ(engine.total(Counter::events_answered), kPacketEvents * kPackets);
  EXPECT_EQ(engine.total(Counter::events_unseen), 0u);
  EXPECT_EQ(test::rich_of(engine).rings().spectra().multiplicity[0], kPacketEvents * kPackets);
  EXPECT_EQ(engine.residence_ns().count(), engine.total(Counter::answers_sent));
}

// Nothing is closed by time: what misses a part is open until the engine is stopped, and is then answered, or dropped.
TEST_P(GpuMergeTest, TheBooksBalanceWithLossAndDuplicatesAndStopClosesWhatIsOpen) {
  constexpr std::uint32_t kPackets = 50;
  for (const IncompletePolicy incomplete : {IncompletePolicy::process, IncompletePolicy::drop}) {
    const bool drops = incomplete == IncompletePolicy::drop;
    Engine engine(config(kForEverUs, incomplete).made(test::fake_gpu(script)));
    engine.start();
    Boards boards(ports, kPackets, 32);
    for (std::uint32_t p = 0; p < kPackets; ++p) {
      for (std::uint32_t board = 0; board < kBoards; ++board) {
        const bool lost = p == 17 || (p % 10 == 2 && board == 3) || (p % 10 == 8 && board == 0);
        const bool again = p % 10 == 5 && board == 1;  // the parts of the packet before, instead of its own
        if (again) {
          boards.send(board, p, p - 1);
        } else if (!lost) {
          boards.send(board, p);
        }
      }
    }
    boards.end_run(kPackets);
    engine.stop();
    expect_balanced_books(engine, boards, drops ? "drop" : "process");
    EXPECT_EQ(engine.total(Counter::parts_duplicate), 5 * kPacketEvents);
    EXPECT_EQ(engine.total(Counter::parts_late) + engine.total(Counter::parts_no_room), 0u);
    EXPECT_EQ(engine.total(Counter::events_unseen), kPacketEvents);
    EXPECT_EQ(engine.total(Counter::events_missing_parts), 15 * kPacketEvents);
    EXPECT_EQ(engine.total(Counter::events_complete), (kPackets - 16) * kPacketEvents);
    EXPECT_EQ(engine.total(Counter::events_discarded), drops ? 15 * kPacketEvents : 0);
    Answers answers;
    test::collect(l0tp, answers, engine.total(Counter::answers_sent), 0);
    EXPECT_EQ(answers, boards.expected(drops));
  }
}

// The counters are up to date although no buffer comes that would be given back; what comes after the window is late.
TEST_P(GpuMergeTest, WindowsEndWhileNothingComesAndThenPartsAreLate) {
  constexpr std::uint32_t kPackets = 3;
  Engine engine(config(20'000, IncompletePolicy::process).made(test::fake_gpu(script)));
  engine.start();
  Boards boards(ports, kPackets, 33);
  for (std::uint32_t p = 0; p < kPackets; ++p) {
    for (const std::uint32_t board : {0u, 1u, 3u}) boards.send(board, p);
  }
  const auto closed = [&] { return engine.total(Counter::events_missing_parts); };
  ASSERT_TRUE(comes_true([&] { return closed() == kPacketEvents * kPackets; })) << closed();
  for (std::uint32_t p = 0; p < kPackets; ++p) boards.send(2, p);
  ASSERT_TRUE(comes_true([&] { return engine.total(Counter::parts_late) >= kPacketEvents * kPackets; }));
  engine.stop();
  expect_balanced_books(engine, boards);
  EXPECT_EQ(engine.total(Counter::events_answered), kPacketEvents * kPackets);
  EXPECT_EQ(engine.total(Counter::events_complete), 0u);
  EXPECT_EQ(engine.total(Counter::parts_duplicate), 0u);
}

// Parts of packets that only the GPU could check and refused are missing in their events, and have a name of their own.
TEST_P(GpuMergeTest, PartsThatTheGpuRefusesAreCountedAndNotMerged) {
  constexpr std::uint32_t kPackets = 40;
  script.refuse_every = 7;
  Engine engine(config(kForEverUs, IncompletePolicy::process).made(test::fake_gpu(script)));
  engine.start();
  Boards boards(ports, kPackets, 35);
  for (std::uint32_t p = 0; p < kPackets; ++p) {
    for (std::uint32_t board = 0; board < kBoards; ++board) boards.send(board, p);
  }
  ASSERT_TRUE(comes_true([&] { return engine.total(Counter::packets_accepted) == kPackets * kBoards; }));
  engine.stop();
  expect_balanced_books(engine, boards);
  constexpr std::uint64_t kRefused = kPackets * kBoards / 7;
  EXPECT_EQ(engine.total(Counter::packets_bad_body), kRefused);
  EXPECT_EQ(engine.total(Counter::events_bad_body), kRefused * kPacketEvents);
  EXPECT_EQ(engine.total(Counter::parts_merged), (kPackets * kBoards - kRefused) * kPacketEvents);
  EXPECT_GT(engine.total(Counter::events_missing_parts), 0u);
}

// What the GPU has closed before is answered; the parts and events that it had have a name, while the engine runs on and when it stops.
TEST_P(GpuMergeTest, AFaultIsToldAndTheBooksBalance) {
  constexpr std::uint32_t kPackets = 20;
  for (const bool ends : {true, false}) {
    FakeGpuScript broken;
    broken.fault_after_buffers = kBoards + 2;
    broken.ends = ends;
    Engine engine(config(kForEverUs, IncompletePolicy::process).made(test::fake_gpu(broken)));
    engine.start();
    Boards boards(ports, kPackets, 34);
    std::uint64_t merged = 0;
    for (std::uint32_t p = 0; p < kPackets; ++p) {
      for (std::uint32_t board = 0; board < kBoards; ++board) {
        boards.send(board, p);
        if (++merged > broken.fault_after_buffers) continue;  // a buffer for each of the first packets
        ASSERT_TRUE(comes_true([&] { return engine.total(Counter::parts_merged) == merged * kPacketEvents; }));
      }
    }
    ASSERT_TRUE(comes_true([&] { return engine.total(Counter::packets_accepted) == kPackets * kBoards; }));
    ASSERT_TRUE(comes_true([&] { return !engine.faults().empty(); }));
    engine.stop();
    expect_balanced_books(engine, boards, ends ? "it ends" : "it hangs");
    EXPECT_EQ(engine.total(Counter::parts_merged), (kBoards + 2) * kPacketEvents);
    EXPECT_EQ(engine.total(Counter::events_answered), kPacketEvents);
    EXPECT_EQ(engine.total(Counter::events_unjudged), kPacketEvents) << "the events that had two parts";
    EXPECT_EQ(engine.total(Counter::parts_unjudged), (kPackets * kBoards - kBoards - 2) * kPacketEvents);
    Answers answers;
    test::collect(l0tp, answers, kPackets, 0);
    EXPECT_EQ(answers.size(), kPacketEvents);
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, GpuMergeTest,
                         ::testing::Combine(::testing::Values(Topology::run_to_completion, Topology::pipelined),
                                            ::testing::Values<std::size_t>(1, 2)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param) == Topology::pipelined ? "pipelined" : "run_to_completion") +
                                  "_" + std::to_string(std::get<1>(test.param)) + "_links";
                         });

// The same times again: a run that begins is told from one that goes on. One link, so that all of the first run is there before.
TEST(GpuMergeRuns, ANewRunForgetsTheOneBefore) {
  constexpr std::uint32_t kPackets = 20;
  PlainSocket l0tp;
  const std::uint16_t port = test::free_port();
  test::NodeConfig config = test::gpu_config(port, l0tp.port(), Topology::run_to_completion);
  config.rich.answers->source_sub_id = test::kAnswerSubId;
  config.rich.merge = MergeConfig{.window_us = kForEverUs, .incomplete = IncompletePolicy::process};
  config.links[0].sources.resize(kBoards);
  for (std::uint8_t board = 0; board < kBoards; ++board) config.links[0].sources[board].source_sub_id = board;
  FakeGpuScript script;
  Engine engine(config.made(test::fake_gpu(script)));
  engine.start();
  Boards boards({port}, kPackets, 35);
  for (std::uint32_t run = 0; run < 2; ++run) {
    boards.start_run();
    for (std::uint32_t p = 0; p < kPackets; ++p) {
      for (std::uint32_t board = run == 0 && p % 5 == 1 ? 1 : 0; board < kBoards; ++board) boards.send(board, p, p);
    }
    boards.end_run(kPackets);
  }
  engine.stop();
  EXPECT_EQ(engine.total(Counter::source_restarts), kBoards);
  EXPECT_EQ(engine.total(Counter::parts_merged), boards.sent_parts());
  EXPECT_EQ(engine.total(Counter::events_missing_parts), kPackets / 5 * kPacketEvents);
  EXPECT_EQ(engine.total(Counter::events_complete), (2 * kPackets - kPackets / 5) * kPacketEvents);
  EXPECT_EQ(engine.total(Counter::events_answered), 2 * kPackets * kPacketEvents);
}

test::NodeConfig merging_config() {
  test::NodeConfig config = test::gpu_config(test::free_port(), test::free_port(), Topology::pipelined);
  config.links.push_back(config.links[0]);
  config.links[1].name = "others";
  config.links[1].endpoint = "udp://127.0.0.1:" + std::to_string(test::free_port());
  config.links[0].sources.resize(3);
  config.links[1].sources.resize(2);
  for (std::uint8_t board = 0; board < 5; ++board) config.links[board / 3].sources[board % 3].source_sub_id = board;
  config.rich.merge = MergeConfig{.window_us = 300, .open_events_max = 1u << 20};
  return config;
}

TEST(GpuMergeSetUp, WhatTheConfigurationSaysReachesTheGpu) {
  FakeGpuScript script;
  gpu::EventProcessorConfig told;
  std::uint32_t descriptors = 0;
  const Engine engine(merging_config().made([&](const gpu::EventProcessorConfig& config, gpu::ContractMemory memory) {
    told = config;
    descriptors = memory.answers->capacity();
    EXPECT_EQ(memory.clops.size(), 2u);
    return std::make_unique<test::FakeGpu>(script, gpu::EventProcessorConfig{}, std::move(memory));  // without 1.3 GB of table
  }));
  ASSERT_TRUE(told.merge.has_value());
  EXPECT_EQ(told.merge->first_source, (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(told.merge->merger.source_count, 5u);
  EXPECT_EQ(told.merge->merger.window_ns, 300'000u);
  EXPECT_EQ(told.merge->merger.open_events_max, 1u << 20);
  EXPECT_EQ(told.merge->incomplete, gpu::IncompletePolicy::drop);
  EXPECT_EQ(told.gpu.buffers_in_flight, 1u);
  EXPECT_GE(descriptors, (1u << 20) / gpu::kMergedAnswersMax + 2) << "the last answers have to fit";
}

TEST(GpuMergeSetUp, WhatAGpuCannotMergeIsRefused) {
  const auto expect_refused = [](void (*change)(test::NodeConfig&), const std::string& words) {
    test::NodeConfig config = merging_config();
    change(config);
    FakeGpuScript script;
    try {
      const Engine engine(config.made(test::fake_gpu(script)));
      ADD_FAILURE() << "accepted: " << words;
    } catch (const SetupError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  expect_refused([](test::NodeConfig& c) { c.rich.gpu.devices = {0, 1}; }, "merge on 2 GPUs");
  expect_refused(
      [](test::NodeConfig& c) {
        for (std::uint8_t k = 5; k < 9; ++k) c.links[1].sources.push_back({.name = "", .source_sub_id = k});
      },
      "merge of 9 sources on a GPU");
  expect_refused([](test::NodeConfig& c) { c.links[1].sources.clear(); }, "'others' has no sources");
  expect_refused([](test::NodeConfig& c) { c.rich.merge->window_us = 0; }, "window_ns is 0");
  expect_refused([](test::NodeConfig& c) { c.rich.merge->open_events_max = 1000; }, "open_events_max is 1000");
  expect_refused([](test::NodeConfig& c) { c.rich.answers->primitives_max = 63; }, "primitives_max 63");
}

}  // namespace
}  // namespace nanet::engine
