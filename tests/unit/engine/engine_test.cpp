// SPDX-License-Identifier: Apache-2.0
// The whole engine over real sockets in one process, both topologies; and that nothing is allocated once it runs.
#include "nanet/engine/engine.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "../allocation_count.hpp"
#include "nanet/setup_error.hpp"
#include "sockets.hpp"
#include "support.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;
using test::Bytes;

using test::config_for;
using test::free_port;
using test::PlainSocket;

class EngineTest : public ::testing::TestWithParam<Topology> {};

TEST_P(EngineTest, AnswersEveryEventAndDrainsOnStop) {
  PlainSocket l0tp;
  PlainSocket board;
  const std::uint16_t port = free_port();
  Engine engine(config_for(port, l0tp.port(), GetParam()).made());
  engine.start();
  EXPECT_TRUE(engine.running());
  const auto events = test::make_events(16 * 100, 11);
  std::multiset<std::uint64_t> answered;
  Bytes room(2048);
  const auto collect = [&](int timeout_ms) {
    const std::size_t bytes = l0tp.receive(room, timeout_ms);
    wire::MtpView view;
    if (bytes == 0) return false;
    EXPECT_EQ(wire::MtpView::parse(std::span(room).first(bytes), view), wire::ParseError::none);
    wire::for_each_primitive(view, [&](wire::Primitive p) { answered.insert(event::event_key(p.timestamp, p.fine_time)); });
    return true;
  };
  for (std::uint32_t p = 0; p < 99; ++p) {
    board.send(port, test::make_packet(std::span(events).subspan(16 * p, 16), p));
    collect(1000);
  }
  board.send(port, test::make_packet(std::span(events).subspan(16 * 99, 16), 99));
  engine.stop();  // the last packet may still be in flight
  while (collect(0)) {
  }
  EXPECT_FALSE(engine.running());
  std::multiset<std::uint64_t> sent;
  for (const auto& event : events) sent.insert(event::event_key(event.time.timestamp, event.time.fine_time));
  EXPECT_EQ(answered, sent);
  EXPECT_EQ(engine.total(Counter::events_answered), events.size());
  EXPECT_EQ(engine.total(Counter::packets_accepted), 100u);
  EXPECT_EQ(engine.residence_ns().count(), engine.total(Counter::answers_sent));
}

TEST_P(EngineTest, AllocatesNothingOnceItRuns) {
  PlainSocket l0tp;
  PlainSocket board;
  const std::uint16_t port = free_port();
  test::NodeConfig config = config_for(port, l0tp.port(), GetParam());
  config.links[0].faults = link::FaultConfig{.duplicate = 0.1, .reorder = 0.1, .corrupt = 0.1, .delay = 0.1};
  Engine engine(config.made());
  engine.start();
  const auto events = test::make_events(16, 12);
  std::vector<Bytes> packets;
  for (std::uint32_t p = 0; p < 300; ++p) packets.push_back(test::make_packet(events, p));
  Bytes room(2048);
  std::size_t answer_packets = 0;
  std::uint64_t before = 0;
  for (std::uint32_t p = 0; p < packets.size(); ++p) {
    if (p == 50) before = nanet::test::allocation_count;  // by then every thread has run
    board.send(port, packets[p]);
    answer_packets += l0tp.receive(room, 5) > 0;
  }
  EXPECT_EQ(nanet::test::allocation_count - before, 0u);
  EXPECT_GT(before, 0u);  // the counter works
  EXPECT_GT(answer_packets, 100u);
  engine.stop();
}

TEST_P(EngineTest, GoesOnWithoutAnL0tp) {
  PlainSocket board;
  const std::uint16_t port = free_port();
  Engine engine(config_for(port, free_port(), GetParam()).made());
  engine.start();
  const auto events = test::make_events(16, 13);
  for (std::uint32_t p = 0; p < 50; ++p) {
    board.send(port, test::make_packet(events, p));
    usleep(500);
  }
  engine.stop();
  EXPECT_EQ(engine.total(Counter::events_answered), 800u);
  EXPECT_GT(engine.send_link()->stats().tx_refused + engine.send_link()->stats().tx_dropped, 0u);
}

TEST_P(EngineTest, AnswersByWayOfTheLinkThatReceives) {
  PlainSocket l0tp;
  PlainSocket board;
  const std::uint16_t port = free_port();
  test::NodeConfig config = config_for(port, l0tp.port(), GetParam());
  config.send->via = "boards";
  Engine engine(config.made());
  engine.start();
  board.send(port, test::make_packet(test::make_events(16, 14), 0));
  Bytes room(2048);
  EXPECT_GT(l0tp.receive(room, 5000), 0u);
  EXPECT_EQ(l0tp.from_port(), port);
  engine.stop();
  EXPECT_EQ(engine.send_link(), engine.inputs().front().link.get());
  EXPECT_EQ(engine.send_link()->stats().tx_packets, 1u);
}

INSTANTIATE_TEST_SUITE_P(Topologies, EngineTest, ::testing::Values(Topology::run_to_completion, Topology::pipelined),
                         [](const auto& test) { return test.param == Topology::pipelined ? "pipelined" : "run_to_completion"; });

// The engine's own socket to that port, found from outside.
int socket_connected_to(std::uint16_t port) {
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 && ntohs(peer.sin_port) == port) return fd;
  }
  return -1;
}

TEST(EngineNotes, HaveWhatALinkNotesWhileItRuns) {
  PlainSocket l0tp;
  PlainSocket board;
  const std::uint16_t port = free_port();
  Engine engine(config_for(port, l0tp.port(), Topology::run_to_completion).made());
  const std::vector<std::string> before = engine.notes();
  const int on = 1;  // a socket without checksums is refused UDP_SEGMENT, which the answers of many events ask for
  ASSERT_EQ(::setsockopt(socket_connected_to(l0tp.port()), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
  const auto events = test::make_events(16 * 60, 13);
  for (std::uint32_t p = 0; p < 60; ++p) board.send(port, test::make_packet(std::span(events).subspan(16 * p, 16), p));
  engine.start();
  engine.stop();
  ASSERT_EQ(engine.total(Counter::events_answered), events.size());
  const std::vector<std::string> after = engine.notes();
  ASSERT_EQ(after.size(), before.size() + 1);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
  EXPECT_NE(after.back().find("refused UDP_SEGMENT"), std::string::npos) << after.back();
}

TEST(EngineSetUp, RefusesAnswersByWayOfNoLink) {
  test::NodeConfig config = config_for(free_port(), free_port(), Topology::run_to_completion);
  config.send->via = "nobody";
  EXPECT_THROW(Engine{config.made()}, SetupError);
}

TEST(EngineSetUp, RefusesAnEndpointThatNoLinkServes) {
  test::NodeConfig config = config_for(free_port(), free_port(), Topology::run_to_completion);
  config.links[0].endpoint = "carrier-pigeon://127.0.0.1:6200";
  EXPECT_THROW(Engine{config.made()}, SetupError);
}

TEST(EngineSetUp, RefusesToStartUnpinned) {
  test::NodeConfig config = config_for(free_port(), free_port(), Topology::run_to_completion);
  config.cpu_cores.receive = 100000;
  Engine engine(config.made());
  EXPECT_THROW(engine.start(), SetupError);
  EXPECT_FALSE(engine.running());
}

TEST(EngineSetUp, RefusesABufferTooSmallForABatch) {
  test::NodeConfig config = config_for(free_port(), free_port(), Topology::run_to_completion);
  config.links[0].memory_region.buffer_bytes = 4096;
  EXPECT_THROW(Engine{config.made()}, SetupError);
}

TEST(EngineSetUp, RefusesAPortInUse) {
  PlainSocket taken;
  EXPECT_THROW(Engine{config_for(taken.port(), free_port(), Topology::run_to_completion).made()}, SetupError);
}

}  // namespace
}  // namespace nanet::engine
