// SPDX-License-Identifier: Apache-2.0
// A whole engine over AF_XDP whose payloads stay in their frames: the same answers and the same books as one that copies them.
#include <atomic>
#include <optional>
#include <tuple>
#include <vector>

#include "../link/xdp_rig.hpp"
#include "engine/set_up.hpp"
#include "nanet/engine/engine.hpp"
#include "nanet/engine/port.hpp"
#include "nanet/link/dpdk.hpp"
#include "nanet/link/xdp.hpp"
#include "nanet/wire/mtp.hpp"
#include "sockets.hpp"
#include "support.hpp"

namespace nanet::test {
inline std::atomic<std::uint64_t> allocation_count{0};  // counted in engine_test.cpp
}

namespace nanet::engine {
namespace {

using flow::Counter;
using link::Payloads;
using link::test::cannot_run;
using link::test::Hosts;
using link::test::HostSocket;
using link::test::kHere;
using link::test::kThere;
using test::Bytes;

constexpr std::uint16_t kPort = 6200;
constexpr std::uint16_t kAnswers = 6300;

test::NodeConfig config_over_xdp(Payloads payloads, Topology topology) {
  test::NodeConfig config = test::config_for(kPort, kAnswers, topology);
  config.send->endpoints[0] = "udp://10.77.0.2:" + std::to_string(kAnswers);
  config.rich.merge = MergeConfig{.window_us = 2'000'000};
  LinkConfig& link = config.links[0];
  link.endpoint = "xdp://10.77.0.1:" + std::to_string(kPort);
  link.socket_buffer_bytes = LinkConfig{}.socket_buffer_bytes;
  link.batch_size = 16;
  link.memory_region.buffer_count = 4;  // 4 x 85 records: many laps
  link.memory_region.buffer_bytes = 64 * 1024;
  link.sources = {{.name = "board0", .source_sub_id = 0}, {.name = "board1", .source_sub_id = 1}};
  link.section = link::XdpConfig{.frame_count = 512, .payloads = payloads, .huge_pages = false};
  return config;
}

// What two boards send of the same events: now and then a packet is missing, harmed or comes twice.
std::vector<Bytes> packets_of_two_boards() {
  const auto events = test::make_events(16 * 500, 21);
  std::vector<Bytes> packets;
  for (std::uint32_t p = 0; p < 500; ++p) {
    for (std::uint8_t board = 0; board < 2; ++board) {
      std::vector<test::TestEvent> parts;
      for (const auto& event : std::span(events).subspan(16 * p, 16)) parts.push_back(test::part_of(event, board));
      Bytes packet = test::make_packet(parts, p, board);
      const std::uint32_t which = 2 * p + board;
      if (which % 97 == 13) continue;
      if (which % 89 == 17) packet[200] ^= std::byte{1};
      if (which % 83 == 19) packets.push_back(packet);
      packets.push_back(std::move(packet));
    }
  }
  return packets;
}

struct Outcome {
  std::vector<std::uint64_t> counters;
  std::vector<std::tuple<std::uint32_t, std::uint8_t, std::uint16_t>> answers;
  std::uint64_t copied_bytes = 0;
  std::uint64_t answered = 0;
  std::uint64_t allocated = 0;
};

void collect(HostSocket& socket, int timeout_ms, Outcome& outcome) {
  while (const auto got = socket.receive(timeout_ms)) {
    wire::MtpView view;
    ASSERT_EQ(wire::MtpView::parse(got->data, view), wire::ParseError::none);
    wire::for_each_primitive(view, [&](wire::Primitive p) { outcome.answers.emplace_back(p.timestamp, p.fine_time, p.id); });
  }
}

Outcome run(Payloads payloads, Topology topology) {
  const Hosts hosts;
  std::optional<HostSocket> boards;
  std::optional<HostSocket> l0tp;
  hosts.there([&] {
    boards.emplace(kThere, 5000);
    l0tp.emplace(kThere, kAnswers);
  });
  Engine engine(config_over_xdp(payloads, topology).made());
  engine.start();
  const std::vector<Bytes> packets = packets_of_two_boards();
  const Input& input = engine.inputs()[0];
  const auto received = [&] { return input.link->stats().rx_packets; };
  std::uint64_t before = 0;
  for (std::size_t p = 0; p < packets.size(); ++p) {
    if (p == 200) before = nanet::test::allocation_count;
    EXPECT_TRUE(boards->send(kHere, kPort, packets[p]));
    for (int i = 0; i < 2000 && p % 20 == 19 && (received() < p + 1 || input.clop->in_use() > 1); ++i) {
      ::usleep(1000);  // so that neither has a reason to drop one
    }
  }
  Outcome outcome;
  outcome.allocated = nanet::test::allocation_count - before;
  engine.stop();
  EXPECT_EQ(received(), packets.size());
  collect(*l0tp, 0, outcome);
  std::sort(outcome.answers.begin(), outcome.answers.end());
  // How answers fall into packets, and what depends on the time of day, is not compared.
  for (std::size_t c = 0; c < flow::kCounterCount; ++c) {
    const auto counter = static_cast<Counter>(c);
    outcome.counters.push_back(counter == Counter::answers_sent ? 0 : engine.total(counter));
  }
  const link::LinkStats stats = input.link->stats();
  EXPECT_EQ(stats.rx_kernel_dropped, 0u);
  outcome.copied_bytes = stats.rx_copied_bytes;
  outcome.answered = engine.total(Counter::events_answered);
  return outcome;
}

class EngineInPlace : public ::testing::TestWithParam<Topology> {};
INSTANTIATE_TEST_SUITE_P(Topologies, EngineInPlace, testing::Values(Topology::run_to_completion, Topology::pipelined),
                         [](const auto& which) { return which.param == Topology::pipelined ? "pipelined" : "run_to_completion"; });

TEST_P(EngineInPlace, AnswersAndBooksAreThoseOfAnEngineThatCopies) {
  if (cannot_run()) return;
  const Outcome copied = run(Payloads::copied, GetParam());
  const Outcome in_place = run(Payloads::in_place, GetParam());
  EXPECT_EQ(in_place.answers, copied.answers);
  for (std::size_t c = 0; c < flow::kCounterCount; ++c) {
    EXPECT_EQ(in_place.counters[c], copied.counters[c]) << flow::kCounterTable[c].name;
  }
  EXPECT_GT(copied.copied_bytes, 0u);
  EXPECT_EQ(in_place.copied_bytes, 0u);
  EXPECT_GT(in_place.answered, 7000u);
  EXPECT_EQ(in_place.allocated, 0u);
}

std::string error_of(const test::NodeConfig& config) {
  try {
    const Engine engine(config.made());
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

TEST(EngineInPlaceSetUp, BuffersHoldRecordsOfAsManyPacketsAsTheyWouldHaveHeld) {
  if (cannot_run()) return;
  const Hosts hosts;
  test::NodeConfig config = config_over_xdp(Payloads::in_place, Topology::run_to_completion);
  config.links[0].memory_region.buffer_bytes = 256 * 1024;
  const Engine engine(config.made());
  const flow::Clop& clop = *engine.inputs()[0].clop;
  EXPECT_EQ(clop.buffer_bytes(), 12'288u);  // 178 packets of 1472 bytes, 48 each, in whole pages
  EXPECT_EQ(clop.index_capacity(), 256u + 16);
  const std::size_t frames = engine.inputs()[0].link->payload_memory().memory.size() / 2048;
  EXPECT_GE(frames, 4 * 256u + 16 + 512);
}

TEST(EngineInPlaceSetUp, FaultsAreRefused) {
  if (cannot_run()) return;
  const Hosts hosts;
  test::NodeConfig config = config_over_xdp(Payloads::in_place, Topology::run_to_completion);
  config.links[0].faults.emplace();
  link::test::expect_says(error_of(config), "link 'boards' has faults, but its payloads stay in place (they are put into copies)");
}

TEST(EngineInPlaceSetUp, AGpuIsToldWhatLiesInPlace) {
  if (cannot_run()) return;
  const Hosts hosts;
  test::NodeConfig config = config_over_xdp(Payloads::in_place, Topology::run_to_completion);
  config.rich.merge.reset();
  config.rich.gpu.runtime = gpu::Runtime::persistent;
  config.links[0].sources.resize(1);
  LinkConfig copied = config.links[0];
  copied.name = "others";
  copied.section.reset();
  copied.sources[0] = {.name = "others", .source_sub_id = 1};
  copied.endpoint = "udp://127.0.0.1:0";
  config.links.push_back(copied);
  std::vector<flow::PayloadMemory> told;
  const na62::GpuFactory asks = [&](const gpu::EventProcessorConfig&,
                                    const gpu::ContractMemory& memory) -> std::unique_ptr<gpu::EventProcessor> {
    told = memory.payloads;
    throw SetupError("no GPU", "this one only asks", "");
  };
  EXPECT_THROW(Engine(config.made(asks)), SetupError);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(told[0].in_place());
  EXPECT_EQ(told[0].kind, MemoryKind::host);
  EXPECT_FALSE(told[1].in_place());
}

// Before anything of a GPU or of DPDK is there.
TEST(EngineInPlaceSetUp, TheMemoryOfAGpuNeedsAProcessorOnOne) {
  test::NodeConfig config = config_over_xdp(Payloads::in_place, Topology::run_to_completion);
  config.links[0].endpoint = "dpdk://10.77.0.1:6200";
  config.links[0].section = link::DpdkConfig{.device = "0000:3b:00.0", .split_bytes = 66, .payload_memory = link::DpdkMemory::gpu};
  EXPECT_TRUE(wants_gpu_memory(config.links[0]));
  EXPECT_EQ(error_of(config),
            "link 'boards' cannot put payloads into the memory of a GPU (the processor does not run on one) set payload_memory: "
            "host, or a "
            "runtime of the processor that is not cpu");
#ifndef NANET_CUDA
  config.rich.gpu.runtime = gpu::Runtime::persistent;
  EXPECT_EQ(error_of(config),
            "payloads of link boards cannot lie in the memory of GPU 0 (nanet was built without CUDA) run make cuda, or set "
            "payload_memory: "
            "host");
#endif
}

TEST(PortInPlace, ShowsEachPacketWhereItIs) {
  if (cannot_run()) return;
  const Hosts hosts;
  LinkConfig config = config_over_xdp(Payloads::in_place, Topology::run_to_completion).links[0];
  config.protocol = &kRaw;
  config.sources.clear();
  Port port(config);
  std::vector<Bytes> sent;
  for (std::uint32_t i = 0; i < 300; ++i) sent.push_back(link::test::payload(i, 100 + i));
  std::size_t seen = 0;
  for (std::size_t first = 0; first < sent.size(); first += 20) {
    hosts.there([&] {
      HostSocket peer(kThere, 5000);
      for (std::size_t i = first; i < first + 20; ++i) EXPECT_TRUE(peer.send(kHere, kPort, sent[i]));
    });
    while (seen < first + 20) {
      const Completion* completion = port.poll(1'000'000'000);
      ASSERT_NE(completion, nullptr);
      for (const PacketRef& ref : port.packet_index(*completion)) {
        const auto payload = port.payload(*completion, ref);
        EXPECT_EQ(Bytes(payload.begin(), payload.end()), sent[seen]) << seen;
        ++seen;
      }
      port.release();
    }
  }
  EXPECT_EQ(port.stats().rx_copied_bytes, 0u);
}

TEST(PortInPlace, AGpuIsRefused) {
  if (cannot_run()) return;
  const Hosts hosts;
  const LinkConfig config = config_over_xdp(Payloads::in_place, Topology::run_to_completion).links[0];
  try {
    const Port port(config, MemoryKind::host_pinned);
    ADD_FAILURE() << "not refused";
  } catch (const SetupError& error) {
    link::test::expect_says(error.what(), "a port cannot show payloads in place to a GPU (they do not lie in its buffers)");
  }
}

}  // namespace
}  // namespace nanet::engine
