// SPDX-License-Identifier: Apache-2.0
// An engine over the queues of one endpoint: in one thread, and each in a thread of its own.
#include <sched.h>

#include <chrono>
#include <thread>

#include "nanet/link/udp.hpp"
#include "nanet/setup_error.hpp"
#include "sockets.hpp"
#include "support.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;
using test::PlainSocket;

constexpr std::uint32_t kStreams = 4;
constexpr std::uint32_t kPackets = 200;  // of each

// Packets of MGP, steered by the board that their header names.
EngineConfig queues_config(std::uint32_t queues) {
  EngineConfig config = test::config_for(0, 1, Topology::run_to_completion);
  config.send.reset();
  config.processor = std::make_shared<CountProcessor>();
  LinkConfig& link = config.links.front();
  link.sources.resize(kStreams);
  for (std::uint32_t s = 0; s < kStreams; ++s) {
    link.sources[s] = {.name = "board" + std::to_string(s), .source_sub_id = static_cast<std::uint8_t>(s)};
  }
  link.section = link::UdpConfig{.queues = queues, .steer_by = link::SteerBy::key, .key_at = 1};
  return config;
}

// The first two cores that this process may run on.
std::vector<int> two_cores() {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::uint64_t accepted(const Input& input, std::size_t source) {
  return input.receiver->source_counters(source).value(Counter::packets_accepted);
}

void send_all(const Engine& engine) {
  const std::uint16_t port = engine.inputs().front().link->local().port;
  PlainSocket sender;
  const auto events = test::make_events(16, 5);
  for (std::uint32_t p = 0; p < kPackets; ++p) {
    for (std::uint32_t s = 0; s < kStreams; ++s) sender.send(port, test::make_packet(events, p, static_cast<std::uint8_t>(s)));
    if (p % 20 == 19) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void expect_each_in_its_queue(const Engine& engine) {
  ASSERT_EQ(engine.inputs().size(), 2u);
  for (std::size_t q = 0; q < 2; ++q) {
    const Input& input = engine.inputs()[q];
    EXPECT_EQ(input.config.name, "boards." + std::to_string(q));
    EXPECT_EQ(input.link->local().port, engine.inputs().front().link->local().port);
    for (std::size_t s = 0; s < kStreams; ++s) EXPECT_EQ(accepted(input, s), s % 2 == q ? kPackets : 0u) << q << " " << s;
  }
  EXPECT_EQ(engine.total(Counter::packets_accepted), std::uint64_t{kStreams} * kPackets);
  EXPECT_EQ(engine.total(Counter::events_received), std::uint64_t{kStreams} * kPackets * 16);
  EXPECT_EQ(engine.total(Counter::packets_lost_network) + engine.total(Counter::packets_lost_kernel), 0u);
}

TEST(EngineQueues, OneThreadTakesThemInTurn) {
  Engine engine(queues_config(2));
  engine.start();
  send_all(engine);
  engine.stop();
  expect_each_in_its_queue(engine);
}

TEST(EngineQueues, EachHasAThreadOfItsOwn) {
  EngineConfig config = queues_config(2);
  config.cpu_cores.lanes = two_cores();
  ASSERT_EQ(config.cpu_cores.lanes.size(), 2u) << "this test needs two cores";
  Engine engine(config);
  engine.start();
  send_all(engine);
  engine.stop();
  expect_each_in_its_queue(engine);
}

// More links than lanes: they are dealt in turn.
TEST(EngineQueues, AThreadServesSeveral) {
  EngineConfig config = queues_config(2);
  config.links.push_back(config.links.front());
  config.links.back().name = "others";
  config.links.back().section = {};
  for (SourceConfig& source : config.links.back().sources) {
    source.name = "other_" + source.name;
    source.source_sub_id = static_cast<std::uint8_t>(source.source_sub_id + 100);
  }
  config.cpu_cores.lanes = two_cores();
  Engine engine(config);
  engine.start();
  send_all(engine);
  PlainSocket sender;
  sender.send(engine.inputs()[2].link->local().port, test::make_packet(test::make_events(16, 6), 0, 101));
  engine.stop();
  EXPECT_EQ(engine.inputs()[2].config.name, "others");
  EXPECT_EQ(accepted(engine.inputs()[2], 1), 1u);
  EXPECT_EQ(engine.total(Counter::packets_accepted), std::uint64_t{kStreams} * kPackets + 1);
}

// A consumer with a queue of its own that never gives a buffer back.
class Holder final : public Consumer {
 public:
  std::uint32_t poll(std::uint64_t, std::uint64_t) override { return 0; }
  void finish() override {}
};

class HoldsLaneOne final : public Processor {
 public:
  ProcessorNeeds needs() const override { return {.shares_nothing = true}; }
  std::unique_ptr<Consumer> make_consumer(LaneParts parts) override {
    if (parts.lane == 1) return std::make_unique<Holder>();
    return std::make_unique<CountConsumer>(parts.completions, parts.clops());
  }
};

TEST(EngineQueues, AConsumerThatStopsTakesNothingFromTheOthers) {
  EngineConfig config = queues_config(2);
  config.processor = std::make_shared<HoldsLaneOne>();
  config.cpu_cores.lanes = two_cores();
  config.links.front().memory_region.buffer_count = 2;
  Engine engine(config);
  engine.start();
  send_all(engine);
  engine.stop();
  const auto sum = [&](std::size_t q, Counter counter) {
    std::uint64_t all = 0;
    for (std::size_t s = 0; s < kStreams; ++s) all += engine.inputs()[q].receiver->source_counters(s).value(counter);
    return all;
  };
  EXPECT_EQ(sum(0, Counter::packets_accepted), std::uint64_t{kStreams} * kPackets / 2);
  EXPECT_GT(sum(1, Counter::packets_clop_full), 0u);
  EXPECT_EQ(sum(1, Counter::packets_accepted) + sum(1, Counter::packets_clop_full), std::uint64_t{kStreams} * kPackets / 2);
}

// Two boards behind one port whose packets the kernel coalesces: what the link flags is refused by name.
TEST(EngineQueues, AForgedKeyIsRefusedByName) {
  Engine engine(queues_config(2));
  engine.start();
  const auto events = test::make_events(16, 7);
  test::Bytes message = test::make_packet(events, 0, 0);
  const test::Bytes forged = test::make_packet(events, 0, 1);
  message.insert(message.end(), forged.begin(), forged.end());
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  const int segment_bytes = static_cast<int>(forged.size());
  ASSERT_EQ(::setsockopt(fd, IPPROTO_UDP, 103 /* UDP_SEGMENT */, &segment_bytes, sizeof segment_bytes), 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(engine.inputs().front().link->local().port);
  ASSERT_EQ(::sendto(fd, message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
            static_cast<ssize_t>(message.size()));
  ::close(fd);
  engine.stop();
  EXPECT_EQ(engine.total(Counter::packets_accepted), 1u);
  EXPECT_EQ(engine.total(Counter::packets_wrong_queue), 1u);
  EXPECT_EQ(engine.inputs()[0].receiver->link_counters().value(Counter::packets_wrong_queue), 1u);
}

void expect_refused(const EngineConfig& config, const std::string& problem) {
  try {
    const Engine engine(config);
    ADD_FAILURE() << "accepted: " << problem;
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find(problem), std::string::npos) << error.what();
  }
}

TEST(EngineQueues, WhatCannotBeIsRefused) {
  EngineConfig config = queues_config(65);
  expect_refused(config, "queue 0 of 65");
  config = queues_config(2);
  config.links.front().record = RecordConfig{.file = "/tmp/never"};
  expect_refused(config, "has record");
  config = queues_config(2);
  config.links.front().packet_bytes_max = 24;
  std::any_cast<link::UdpConfig&>(config.links.front().section).key_at = 24;
  expect_refused(config, "the key of link 'boards' ends at 25 B");
  config = queues_config(2);
  config.links.front().endpoint = "udp://239.1.2.3:6200";
  expect_refused(config, "listens to a group");
  config = queues_config(2);
  config.links.push_back(config.links.front());
  config.links.back().name = "boards.1";
  config.links.back().section = {};
  expect_refused(config, "link boards.1 appears 2 times");
}

TEST(EngineQueues, LanesThatCannotBeAreRefused) {
  EngineConfig config = queues_config(2);
  config.cpu_cores.lanes = {0, 1, 2};
  expect_refused(config, "there are 2 links and queues");
  config.cpu_cores.lanes = {0, 0};
  expect_refused(config, "core 0 appears 2 times");
  config.cpu_cores.lanes = {0, 1};
  config.cpu_cores.receive = 0;
  expect_refused(config, "receive and lanes");
  config.cpu_cores.receive.reset();
  config.topology = Topology::pipelined;
  expect_refused(config, "the threads of a pipeline share all links");
  test::NodeConfig rich = test::config_for(0, 1, Topology::run_to_completion);
  rich.cpu_cores.lanes = {0};
  expect_refused(rich.made(), "the processor works in one thread");
  rich.cpu_cores.lanes.clear();
  rich.rich.merge = MergeConfig{};
  rich.links.front().section = link::UdpConfig{.queues = 2};
  expect_refused(rich.made(), "would be expected from each of them");
}

}  // namespace
}  // namespace nanet::engine
