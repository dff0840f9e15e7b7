// SPDX-License-Identifier: Apache-2.0
// The whole loop in one process, over loopback: emulated boards, engine, answers judged. No figure of time: it runs under emulators too.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "nanet/emulate/emulator.hpp"
#include "nanet/engine/engine.hpp"
#include "nanet/link/endpoint.hpp"
#include "sockets.hpp"

namespace nanet::engine {
namespace {

TEST(Loop, EveryEventIsAnsweredRightly) {
  constexpr std::uint64_t kEvents = 3200;
  const std::uint16_t port = test::free_port();
  emulate::EmulatorConfig boards;
  boards.endpoints = {"udp://127.0.0.1:" + std::to_string(port)};
  boards.pool_events = 320;
  boards.outstanding_events = 65536;
  boards.events_total = kEvents;
  boards.rate_events_per_s = 10e3;
  boards.drain_ms = 30'000;  // not used up where every event is answered
  emulate::Emulator emulator(boards);
  Engine engine(test::config_for(port, emulator.answers_endpoint().port, Topology::run_to_completion));
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

}  // namespace
}  // namespace nanet::engine
