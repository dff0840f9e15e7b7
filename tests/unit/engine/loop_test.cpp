// SPDX-License-Identifier: Apache-2.0
// The whole loop in one process, over loopback: emulated boards, engine, answers judged. No figure of time: it runs under emulators too.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "emulate/emulator.hpp"
#include "nanet/engine/engine.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/udp.hpp"
#include "sockets.hpp"

namespace nanet::engine {
namespace {

TEST(Loop, EveryEventIsAnsweredRightly) {
  constexpr std::uint64_t kEvents = 3200;
  const std::uint16_t port = test::free_port();
  emulate::EmulatorConfig boards;
  boards.destinations = {"udp://127.0.0.1:" + std::to_string(port)};
  boards.answers = "udp://127.0.0.1:0";
  boards.pool_events = 320;
  boards.outstanding_events = 65536;
  boards.events_total = kEvents;
  boards.duration_s = 0;
  boards.rate_events_per_s = 10e3;
  boards.drain_ms = 30'000;  // not used up where every event is answered
  emulate::Emulator emulator(boards);
  Engine engine(test::config_for(port, emulator.answers_endpoint().port, Topology::run_to_completion).made());
  engine.start();
  emulator.start();
  while (emulator.running()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  emulator.stop();
  engine.stop();

  const emulate::EmulatorSnapshot end = emulator.snapshot();
  EXPECT_EQ(end.events_sent, kEvents);
  EXPECT_EQ(end.answers.answered, kEvents);
  EXPECT_EQ(end.answers.wrong + end.answers.unknown + end.answers.duplicate + end.answers.stale + end.answers.bad_primitives, 0u);
}

// The engine stands still until all is sent, and its socket holds a part of that only. What the boards say again tells it how much it missed.
class LoopWithoutRoom : public testing::TestWithParam<std::uint32_t> {
 protected:
  // Strangers' datagrams, as small as a marker: with less room than a packet needs, a socket may still have some for a marker.
  static void fill(std::uint16_t port) {
    link::UdpConfig config;
    config.destinations = {link::parse_endpoint("udp://127.0.0.1:" + std::to_string(port))};
    config.gso = link::Coalesce::off;
    link::UdpLink stranger(config);
    const std::byte one{};
    const link::TxPacket packet{&one, 1, 0};
    for (int i = 0; i < 1000; ++i) stranger.send({&packet, 1}, 0);
  }
};

TEST_P(LoopWithoutRoom, TheLostEndHasAName) {
  constexpr std::uint64_t kEvents = 16'000;
  const std::uint32_t board_count = GetParam();
  const std::uint16_t port = test::free_port();
  emulate::EmulatorConfig boards;
  boards.boards = board_count;
  if (board_count > 1) boards.layout = wire::MgpLayout::packed;
  boards.destinations = {"udp://127.0.0.1:" + std::to_string(port)};
  boards.answers = "udp://127.0.0.1:0";
  boards.pool_events = 320;
  boards.outstanding_events = 65536;
  boards.events_total = kEvents;
  boards.duration_s = 0;
  boards.rate_events_per_s = 20e3;
  boards.drain_ms = 5000;  // used up: events stay unanswered
  emulate::Emulator emulator(boards);
  test::NodeConfig config = test::config_for(port, emulator.answers_endpoint().port, Topology::run_to_completion);
  config.links[0].socket_buffer_bytes = 1 << 16;
  config.links[0].sources.resize(board_count);
  for (std::uint32_t board = 0; board < board_count; ++board) {
    config.links[0].sources[board].source_sub_id = static_cast<std::uint8_t>(board);
  }
  if (board_count > 1) config.rich.merge.emplace();
  Engine engine(config.made());
  emulator.start();
  while (emulator.snapshot().events_sent == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  fill(port);
  while (emulator.snapshot().phase < emulate::RunPhase::draining) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  engine.start();
  while (emulator.running()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  emulator.stop();
  engine.stop();

  const emulate::EmulatorSnapshot end = emulator.snapshot();
  const std::uint64_t kPackets = kEvents / 16 * board_count;
  ASSERT_LT(engine.total(flow::Counter::packets_accepted), kPackets) << "nothing was lost: the socket has too much room";
  EXPECT_EQ(engine.total(flow::Counter::packets_accepted) + engine.total(flow::Counter::packets_lost_kernel) +
                engine.total(flow::Counter::packets_lost_network),
            kPackets);
  EXPECT_EQ(engine.total(flow::Counter::events_received) + engine.total(flow::Counter::events_lost), kEvents * board_count);
  if (board_count == 1) {
    EXPECT_EQ(end.answers.answered + engine.total(flow::Counter::events_lost), kEvents);
  } else {
    EXPECT_EQ(end.answers.answered + engine.total(flow::Counter::events_discarded) + engine.total(flow::Counter::events_unseen),
              kEvents);
  }
  EXPECT_EQ(engine.total(flow::Counter::packets_duplicate) + engine.total(flow::Counter::packets_late), 0u);
  EXPECT_EQ(engine.total(flow::Counter::source_restarts), 0u);
}

INSTANTIATE_TEST_SUITE_P(Boards, LoopWithoutRoom, testing::Values(1u, 4u));

}  // namespace
}  // namespace nanet::engine
