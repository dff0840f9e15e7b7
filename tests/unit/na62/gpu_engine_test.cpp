// SPDX-License-Identifier: Apache-2.0
// An engine whose completions are consumed by someone who works alone and wakes no one: order, sleep, drain, faults, several lanes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fake_gpu.hpp"
#include "gpu_answers.hpp"
#include "nanet/engine/engine.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;
using test::Answers;
using test::collect;
using test::expected_answers;
using test::FakeGpuScript;
using test::gpu_config;
using test::PlainSocket;

class GpuEngineTest : public ::testing::TestWithParam<Topology> {
 protected:
  static constexpr int kPatienceMs = 60'000;  // of a test that fails
  PlainSocket l0tp;
  PlainSocket board;
  const std::uint16_t port = test::free_port();
  FakeGpuScript script;

  test::NodeConfig config() const {
    test::NodeConfig made = gpu_config(port, l0tp.port(), GetParam());
    made.rich.answers->source_sub_id = test::kAnswerSubId;
    return made;
  }
};

// Each buffer needs fifty polls. Were the polling thread to sleep while the GPU is busy, two seconds each, this would take half a day; were it to
// sleep while an answer waits in the ring, a quarter of an hour.
TEST_P(GpuEngineTest, NobodySleepsWhileTheGpuIsBusyOrAnswersWait) {
  constexpr std::uint32_t kPackets = 500;
  script.polls_a_buffer = 50;
  test::NodeConfig made = config();
  made.waiting = {.spin = 0, .sleep_us = 2'000'000};
  Engine engine(made.made(test::fake_gpu(script)));
  engine.start();
  const auto events = test::make_events(16 * kPackets, 21);
  Answers answers;
  for (std::uint32_t p = 0; p < kPackets; ++p) {
    board.send(port, test::make_packet(std::span(events).subspan(16 * p, 16), p));
    ASSERT_EQ(collect(l0tp, answers, 1, kPatienceMs), 1u);
  }
  engine.stop();
  EXPECT_EQ(answers, expected_answers(events));
  EXPECT_EQ(engine.total(Counter::events_answered), events.size());
  EXPECT_EQ(engine.total(Counter::events_unjudged), 0u);
  EXPECT_EQ(engine.total(Counter::answers_sent), kPackets);
  EXPECT_EQ(engine.residence_ns().count(), kPackets);
  EXPECT_EQ(engine.device_names(), std::vector<std::string>{"fake"});
  EXPECT_TRUE(engine.faults().empty());
}

// The engine is stopped while nearly everything is still with the GPU.
TEST_P(GpuEngineTest, EverythingIsAnsweredAtStop) {
  constexpr std::uint32_t kPackets = 200;
  script.polls_a_buffer = 3000;
  test::NodeConfig made = config();
  made.links[0].timeout_us = 1000;
  Engine engine(made.made(test::fake_gpu(script)));
  engine.start();
  const auto events = test::make_events(16 * kPackets, 22);
  for (std::uint32_t p = 0; p < kPackets; ++p) board.send(port, test::make_packet(std::span(events).subspan(16 * p, 16), p));
  engine.stop();
  EXPECT_EQ(engine.total(Counter::events_answered), events.size());
  EXPECT_EQ(engine.total(Counter::events_unjudged), 0u);
  EXPECT_EQ(engine.total(Counter::answers_sent), kPackets);
  EXPECT_EQ(script.finished, 1u);
  Answers answers;
  collect(l0tp, answers, kPackets, 0);
  EXPECT_EQ(answers, expected_answers(events));
  EXPECT_EQ(test::rich_of(engine).rings().spectra().multiplicity[0], events.size());
  ASSERT_EQ(test::rich_of(engine).rings().samples().size(), 1u);
  EXPECT_EQ(test::rich_of(engine).rings().samples()[0].answer.timestamp, events[0].time.timestamp);
}

// What the GPU has answered before is sent; the rest has a name, while the engine runs on and when it stops.
TEST_P(GpuEngineTest, AFaultIsToldAndTheBooksBalance) {
  constexpr std::uint32_t kPackets = 60;
  for (const bool ends : {true, false}) {
    FakeGpuScript broken;
    broken.fault_after_buffers = 5;
    broken.ends = ends;
    test::NodeConfig made = config();
    Engine engine(made.made(test::fake_gpu(broken)));
    engine.start();
    const auto events = test::make_events(16 * kPackets, 23);
    for (std::uint32_t p = 0; p < kPackets; ++p) {
      board.send(port, test::make_packet(std::span(events).subspan(16 * p, 16), p));
      if (p == 0) {
        while (engine.total(Counter::packets_accepted) == 0) std::this_thread::yield();
      }
    }
    while (engine.total(Counter::packets_accepted) < kPackets) std::this_thread::yield();
    while (engine.faults().empty()) std::this_thread::yield();
    EXPECT_TRUE(engine.running());
    engine.stop();
    EXPECT_EQ(engine.faults(), std::vector<std::string>{"GPU fake was given up (the test says so) see the test"});
    EXPECT_EQ(engine.total(Counter::events_received), events.size());
    EXPECT_EQ(engine.total(Counter::events_answered) + engine.total(Counter::events_unjudged), events.size()) << ends;
    EXPECT_GT(engine.total(Counter::events_unjudged), 0u);
    Answers answers;
    collect(l0tp, answers, kPackets, 0);
    EXPECT_EQ(answers.size(), engine.total(Counter::events_answered));
  }
}

// What only the GPU could check and refused has a name, and nothing is sent for it; with a GPU that is given up later, too.
TEST_P(GpuEngineTest, WhatTheGpuRefusesIsCountedAndNotAnswered) {
  constexpr std::uint32_t kPackets = 60;
  for (const bool fails : {false, true}) {
    FakeGpuScript refusing;
    refusing.refuse_every = 4;
    if (fails) refusing.fault_after_buffers = 9;
    Engine engine(config().made(test::fake_gpu(refusing)));
    engine.start();
    const auto events = test::make_events(16 * kPackets, 26);
    for (std::uint32_t p = 0; p < kPackets; ++p) {
      board.send(port, test::make_packet(std::span(events).subspan(16 * p, 16), p));
      const auto done = [&] { return engine.total(Counter::events_answered) + engine.total(Counter::events_bad_body); };
      while (p < 9 && done() < 16 * (p + 1)) std::this_thread::yield();  // a buffer each
    }
    while (engine.total(Counter::packets_accepted) < kPackets) std::this_thread::yield();
    while (fails && engine.faults().empty()) std::this_thread::yield();
    engine.stop();
    const std::uint64_t refused = engine.total(Counter::packets_bad_body);
    EXPECT_EQ(engine.total(Counter::events_bad_body), 16 * refused);
    EXPECT_EQ(engine.total(Counter::events_received), events.size());
    EXPECT_EQ(
        engine.total(Counter::events_answered) + engine.total(Counter::events_bad_body) + engine.total(Counter::events_unjudged),
        events.size())
        << fails;
    EXPECT_EQ(engine.total(Counter::answers_sent), engine.total(Counter::events_answered) / 16);
    if (fails) {
      EXPECT_EQ(refused, 2u);
      EXPECT_GT(engine.total(Counter::events_unjudged), 0u);
    } else {
      EXPECT_EQ(refused, kPackets / 4);
      EXPECT_EQ(engine.total(Counter::events_unjudged), 0u);
    }
    Answers answers;
    collect(l0tp, answers, kPackets, 0);
    EXPECT_EQ(answers.size(), engine.total(Counter::events_answered));
  }
}

TEST_P(GpuEngineTest, LinksGoToTheGpusInTurn) {
  constexpr std::uint32_t kPackets = 40;
  test::NodeConfig made = config();
  const std::uint16_t second_port = test::free_port();
  LinkConfig second = made.links[0];
  second.name = "second";
  second.endpoint = "udp://127.0.0.1:" + std::to_string(second_port);
  second.sources[0] = {.name = "second", .source_sub_id = 1};
  made.links.push_back(second);
  made.rich.gpu.devices = {0, 0};
  made.rich.gpu.blocks = 8;
  std::vector<std::unique_ptr<FakeGpuScript>> scripts;
  Engine engine(made.made([&](const gpu::EventProcessorConfig& config, gpu::ContractMemory memory) {
    EXPECT_EQ(memory.clops.size(), 1u);
    EXPECT_EQ(config.gpu.kernels, 2u);  // both on GPU 0
    scripts.push_back(std::make_unique<FakeGpuScript>());
    return std::make_unique<test::FakeGpu>(*scripts.back(), config, std::move(memory));
  }));
  ASSERT_EQ(scripts.size(), 2u);
  engine.start();
  const auto events = test::make_events(2 * 16 * kPackets, 24);
  const auto half = std::span(events).first(16 * kPackets);
  const auto other = std::span(events).subspan(16 * kPackets);
  for (std::uint32_t p = 0; p < kPackets; ++p) {
    board.send(port, test::make_packet(half.subspan(16 * p, 16), p));
    board.send(second_port, test::make_packet(other.subspan(16 * p, 16), p, 1));
  }
  Answers answers;
  collect(l0tp, answers, 2 * kPackets, kPatienceMs);
  engine.stop();
  EXPECT_EQ(answers, expected_answers(events));
  EXPECT_EQ(engine.total(Counter::events_answered), events.size());
  EXPECT_EQ(engine.total(Counter::answers_sent), 2 * kPackets);
  EXPECT_EQ(engine.residence_ns().count(), 2 * kPackets);
  EXPECT_EQ(test::rich_of(engine).rings().spectra().multiplicity[0], events.size());
  EXPECT_EQ(test::rich_of(engine).rings().samples().size(), 2u);
}

TEST_P(GpuEngineTest, RingsAreCountedWithoutAnswers) {
  test::NodeConfig made = config();
  made.rich.answers.reset();
  made.send.reset();
  Engine engine(made.made(test::fake_gpu(script)));
  engine.start();
  const auto events = test::make_events(16 * 20, 25);
  for (std::uint32_t p = 0; p < 20; ++p) board.send(port, test::make_packet(std::span(events).subspan(16 * p, 16), p));
  engine.stop();
  EXPECT_EQ(engine.total(Counter::events_answered), events.size());
  EXPECT_EQ(engine.residence_ns().count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Topologies, GpuEngineTest, ::testing::Values(Topology::run_to_completion, Topology::pipelined),
                         [](const auto& test) { return test.param == Topology::pipelined ? "pipelined" : "run_to_completion"; });

// The configuration with one change is refused, with these words.
void expect_refused(void (*change)(test::NodeConfig&), const std::string& words) {
  test::NodeConfig config = gpu_config(test::free_port(), test::free_port(), Topology::pipelined);
  change(config);
  FakeGpuScript script;
  try {
    const Engine engine(config.made(test::fake_gpu(script)));
    ADD_FAILURE() << "accepted: " << words;
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(GpuSetUp, WhatAGpuCannotDoIsRefused) {
  expect_refused([](test::NodeConfig& c) { c.links[0].packet_bytes_max = 8972; }, "at most 1472 B");
  expect_refused([](test::NodeConfig& c) { c.links[0].sources.push_back({.name = "b", .source_sub_id = 1}); },
                 "'boards' has 2 sources");
  expect_refused([](test::NodeConfig& c) { c.links[0].sources.clear(); }, "'boards' has no sources");
  expect_refused([](test::NodeConfig& c) { c.links[0].protocol = &kRaw, c.links[0].sources.clear(); }, "its protocol is raw");
  expect_refused([](test::NodeConfig& c) { c.rich.gpu.devices = {0, 1}; }, "2 GPUs for 1 link(s)");
  expect_refused([](test::NodeConfig& c) { c.rich.gpu.devices.clear(); }, "0 GPUs for 1 link(s)");
  expect_refused([](test::NodeConfig& c) { c.rich.answers->primitives_max = 100; }, "leave it at 255");
  expect_refused([](test::NodeConfig& c) { c.cpu_cores.send = 0; }, "sends too");
}

TEST(GpuSetUp, WhatTheConfigurationSaysReachesTheGpu) {
  test::NodeConfig config = gpu_config(test::free_port(), test::free_port(), Topology::pipelined);
  config.rich.finder.kind = rich::FinderKind::almagest;
  config.rich.decision.cuts.min_hits = 6;
  config.rich.gpu.buffers_in_flight = 3;
  config.rich.gpu.devices = {5};
  config.rich.answers->source_id = 0x20;
  FakeGpuScript script;
  const Engine engine(config.made(test::fake_gpu(script)));
  EXPECT_EQ(script.config.finder.kind, rich::FinderKind::almagest);
  EXPECT_EQ(script.config.decision.cuts.min_hits, 6u);
  EXPECT_EQ(script.config.gpu.runtime, gpu::Runtime::persistent);
  EXPECT_EQ(script.config.gpu.buffers_in_flight, 3u);
  EXPECT_EQ(script.config.gpu.device, 5);
  EXPECT_EQ(script.config.answer_source_id, 0x20);
}

// However short the packets are, a buffer of them has room in the TX ring.
TEST(GpuSetUp, ABufferNeverHoldsMorePacketsThanTheTxRingHasDescriptors) {
  for (const std::uint32_t buffer_bytes : {1u << 16, 1u << 18, 1u << 22}) {
    test::NodeConfig config = gpu_config(test::free_port(), test::free_port(), Topology::run_to_completion);
    config.links[0].memory_region.buffer_bytes = buffer_bytes;
    const Engine engine(config.made([&](const gpu::EventProcessorConfig&, gpu::ContractMemory memory) {
      EXPECT_LE(memory.clops[0]->index_capacity(), memory.answers->capacity());
      static FakeGpuScript script;
      return std::make_unique<test::FakeGpu>(script, gpu::EventProcessorConfig{}, std::move(memory));
    }));
  }
}

#ifndef NANET_CUDA
TEST(GpuSetUp, ABuildWithoutCudaSaysSo) {
  const test::NodeConfig config = gpu_config(test::free_port(), test::free_port(), Topology::run_to_completion);
  try {
    const Engine engine(config.made());
    ADD_FAILURE() << "accepted";
  } catch (const SetupError& error) {
    EXPECT_STREQ(
        error.what(),
        "processor runtime persistent is not in this build (it was built without CUDA) run make cuda, or set runtime: cpu");
  }
}
#endif

}  // namespace
}  // namespace nanet::engine
