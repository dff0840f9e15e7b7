// SPDX-License-Identifier: Apache-2.0
// The whole engine over real sockets in one process, both topologies; and that nothing is allocated once it runs.
#include "nanet/engine/engine.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

#include "../allocation_count.hpp"
#include "nanet/setup_error.hpp"
#include "support.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;
using test::Bytes;

// A socket on the loopback interface with a port of the kernel's choice, without any of nanet's code.
class PlainSocket {
 public:
  PlainSocket() : fd_(socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const int bytes = 4 << 20;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  ~PlainSocket() { close(fd_); }
  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    return ntohs(address.sin_port);
  }
  void send(std::uint16_t port, std::span<const std::byte> payload) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(sendto(fd_, payload.data(), payload.size(), 0, reinterpret_cast<sockaddr*>(&address), sizeof address),
              static_cast<ssize_t>(payload.size()));
  }
  // Bytes of the next packet, 0 when none comes in time.
  std::size_t receive(std::span<std::byte> room, int timeout_ms) const {
    pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, timeout_ms) <= 0) return 0;
    const ssize_t bytes = recv(fd_, room.data(), room.size(), 0);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  }

 private:
  int fd_;
};

std::uint16_t free_port() { return PlainSocket().port(); }

EngineConfig config_for(std::uint16_t port, std::uint16_t answer_port, Topology topology) {
  EngineConfig config;
  config.topology = topology;
  config.waiting = {.spins = 100, .sleep_ns = 200'000};
  LinkConfig& link = config.links.emplace_back();
  link.name = "boards";
  link.endpoint = "udp://127.0.0.1:" + std::to_string(port);
  link.memory_region.huge_pages = false;
  link.memory_region.buffer_count = 16;
  link.socket_buffer_bytes = 4 << 20;
  link.sources.resize(1);
  config.answers = AnswersConfig{.endpoint = "udp://127.0.0.1:" + std::to_string(answer_port)};
  return config;
}

class EngineTest : public ::testing::TestWithParam<Topology> {};

TEST_P(EngineTest, AnswersEveryEventAndDrainsOnStop) {
  PlainSocket l0tp;
  PlainSocket board;
  const std::uint16_t port = free_port();
  Engine engine(config_for(port, l0tp.port(), GetParam()));
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
  engine.stop();  // the last packet may still be on its way
  while (collect(0)) {
  }
  EXPECT_FALSE(engine.running());
  std::multiset<std::uint64_t> sent;
  for (const auto& event : events) sent.insert(event::event_key(event.time.timestamp, event.time.fine_time));
  EXPECT_EQ(answered, sent);
  EXPECT_EQ(engine.total(Counter::events_answered), events.size());
  EXPECT_EQ(engine.total(Counter::packets_accepted), 100u);
  EXPECT_EQ(engine.residence_ns()->count(), engine.total(Counter::answers_sent));
}

TEST_P(EngineTest, AllocatesNothingOnceItRuns) {
  PlainSocket l0tp;
  PlainSocket board;
  const std::uint16_t port = free_port();
  EngineConfig config = config_for(port, l0tp.port(), GetParam());
  config.links[0].faults = link::FaultConfig{.duplicate = 0.1, .reorder = 0.1, .corrupt = 0.1, .delay = 0.1};
  Engine engine(config);
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
  Engine engine(config_for(port, free_port(), GetParam()));
  engine.start();
  const auto events = test::make_events(16, 13);
  for (std::uint32_t p = 0; p < 50; ++p) {
    board.send(port, test::make_packet(events, p));
    usleep(500);
  }
  engine.stop();
  EXPECT_EQ(engine.total(Counter::events_answered), 800u);
  EXPECT_GT(engine.answer_link()->stats().tx_refused + engine.answer_link()->stats().tx_dropped, 0u);
}

INSTANTIATE_TEST_SUITE_P(Topologies, EngineTest, ::testing::Values(Topology::run_to_completion, Topology::pipelined),
                         [](const auto& test) { return test.param == Topology::pipelined ? "pipelined" : "run_to_completion"; });

TEST(EngineSetUp, RefusesToStartUnpinned) {
  EngineConfig config = config_for(free_port(), free_port(), Topology::run_to_completion);
  config.receive_core = 100000;
  Engine engine(config);
  EXPECT_THROW(engine.start(), SetupError);
  EXPECT_FALSE(engine.running());
}

TEST(EngineSetUp, RefusesABufferTooSmallForABatch) {
  EngineConfig config = config_for(free_port(), free_port(), Topology::run_to_completion);
  config.links[0].memory_region.buffer_bytes = 4096;
  EXPECT_THROW(Engine{config}, SetupError);
}

TEST(EngineSetUp, RefusesAPortInUse) {
  PlainSocket taken;
  EXPECT_THROW(Engine{config_for(taken.port(), free_port(), Topology::run_to_completion)}, SetupError);
}

}  // namespace
}  // namespace nanet::engine
