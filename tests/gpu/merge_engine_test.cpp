// SPDX-License-Identifier: Apache-2.0
// Whole engine, four boards over UDP, event building and rings on the GPU: every answer is right and the books balance, on a good and on a bad
// network. The engine's own thread does the same beside it.
#include <chrono>
#include <string>
#include <thread>

#include "check.hpp"
#include "emulate/emulator.hpp"
#include "na62/protocols.hpp"
#include "na62/rich_processor.hpp"
#include "nanet/engine/engine.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/udp.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;

constexpr std::uint32_t kBoards = 4;
constexpr std::uint64_t kForEverUs = 10'000'000;  // the longest window: nothing is closed by time

struct Way {
  const char* name;
  gpu::GpuConfig gpu;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"cpu", {}},
      {"persistent", {.runtime = gpu::Runtime::persistent}},
      {"launch, mapped", {.runtime = gpu::Runtime::launch}},
      {"graph, copied", {.runtime = gpu::Runtime::graph, .path = gpu::BufferPath::copied}},
  };
  return all;
}

std::uint16_t free_port() {
  return link::UdpLink({.name = "free", .listen = link::parse_endpoint("udp://127.0.0.1:0")}).local().port;
}

struct Loop {
  MergeConfig merge;
  std::optional<link::FaultConfig> faults;
  Topology topology = Topology::run_to_completion;
  wire::MgpLayout layout = wire::MgpLayout::packed;
};

emulate::EmulatorConfig emulator_config(const Loop& loop, std::uint16_t port) {
  emulate::EmulatorConfig config;
  config.boards = kBoards;
  config.layout = loop.layout;
  config.pool_events = 4096;
  config.destinations = {"udp://127.0.0.1:" + std::to_string(port)};
  config.answers = "udp://127.0.0.1:0";
  config.monte_carlo.mean_hits = 12;
  config.rate_events_per_s = check::under_sanitizer() ? 2e4 : 3e5;
  config.events_total = check::under_sanitizer() ? 4000 : 150'000;
  config.duration_s = 0;
  config.drain_ms = 2000;
  // An incomplete event may have another answer.
  const bool whole_only = !loop.faults || loop.merge.incomplete == IncompletePolicy::drop;
  config.answer_check = whole_only ? emulate::AnswerCheck::primitive : emulate::AnswerCheck::time_only;
  return config;
}

EngineConfig engine_config(const Way& way, const Loop& loop, std::uint16_t port, std::uint16_t answer_port) {
  EngineConfig config;
  config.topology = loop.topology;
  LinkConfig& boards = config.links.emplace_back();
  boards.name = "boards";
  boards.endpoint = "udp://127.0.0.1:" + std::to_string(port);
  boards.memory_region.huge_pages = false;
  boards.faults = loop.faults;
  boards.sources.resize(kBoards);
  for (std::uint8_t b = 0; b < kBoards; ++b) boards.sources[b].source_sub_id = b;
  boards.protocol = &na62::kMgp;
  config.processor = std::make_shared<na62::RichProcessor>(
      na62::RichConfig{.merge = loop.merge, .answers = na62::AnswerConfig{}, .gpu = way.gpu});
  config.send = SendConfig{.endpoints = {"udp://127.0.0.1:" + std::to_string(answer_port)}};
  return config;
}

// docs/design/books.md, 4 and 5.
void expect_balanced_books(const Engine& engine, std::uint64_t events_sent, const std::string& what) {
  const auto total = [&](Counter counter) { return engine.total(counter); };
  EXPECT_EQ(total(Counter::events_received), total(Counter::parts_merged) + total(Counter::parts_late) +
                                                 total(Counter::parts_duplicate) + total(Counter::parts_no_room))
      << what;
  EXPECT_EQ(total(Counter::events_complete) + total(Counter::events_missing_parts) + total(Counter::events_overflow),
            total(Counter::events_answered) + total(Counter::events_discarded))
      << what;
  EXPECT_EQ(events_sent, total(Counter::events_answered) + total(Counter::events_discarded) + total(Counter::events_unseen)) << what;
  EXPECT_EQ(total(Counter::events_unjudged) + total(Counter::parts_unjudged), 0u) << what;
}

void run(const Way& way, const Loop& loop, const std::string& what) {
  const std::uint16_t port = free_port();
  emulate::Emulator emulator(emulator_config(loop, port));
  Engine engine(engine_config(way, loop, port, emulator.answers_endpoint().port));
  engine.start();
  emulator.start();
  while (emulator.running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  engine.stop();
  const emulate::EmulatorSnapshot sent = emulator.snapshot();
  EXPECT_EQ(engine.faults().size(), 0u) << what;
  expect_balanced_books(engine, sent.events_sent, what);
  EXPECT_EQ(sent.answers.wrong, 0u) << what;
  EXPECT_EQ(sent.answers.unknown + sent.answers.duplicate + sent.answers.bad_primitives, 0u) << what;
  EXPECT_GT(sent.answers.answered, 0u) << what;
  // What is open when the boards end is closed by stop(), which no one listens to any more.
  EXPECT_LE(sent.answers.answered, engine.total(Counter::events_answered)) << what;
  if (loop.faults) {
    EXPECT_GT(engine.total(Counter::events_missing_parts), 0u) << what;
  } else if (!check::under_sanitizer()) {
    EXPECT_EQ(engine.total(Counter::events_complete), sent.events_sent) << what;
    EXPECT_EQ(sent.answers.answered, sent.events_sent) << what;
  }
}

TEST(MergeEngine, four_boards_lose_nothing) {
  for (const Way& way : ways()) {
    const MergeConfig merge{.window_us = kForEverUs};
    run(way, {.merge = merge}, std::string(way.name) + ", packed");
    run(way, {.merge = merge, .topology = Topology::pipelined, .layout = wire::MgpLayout::padded},
        std::string(way.name) + ", padded, pipelined");
  }
}

TEST(MergeEngine, the_books_balance_on_a_bad_network) {
  const link::FaultConfig faults{
      .loss = 0.01, .duplicate = 0.02, .reorder = 0.02, .delay = 0.02, .delay_us = 3'000, .hold_max_ns = 5'000'000};
  for (const Way& way : ways()) {
    for (const IncompletePolicy incomplete : {IncompletePolicy::drop, IncompletePolicy::process}) {
      const MergeConfig merge{.window_us = 1'000, .incomplete = incomplete};
      run(way, {.merge = merge, .faults = faults},
          std::string(way.name) + (incomplete == IncompletePolicy::drop ? ", incomplete dropped" : ", incomplete answered"));
    }
  }
}

}  // namespace
}  // namespace nanet::engine
