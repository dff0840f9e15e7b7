// SPDX-License-Identifier: Apache-2.0
// Rings of a link filled by remote writers, over shared memory and over TCP: the link by itself, and a whole engine whose books balance.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "../engine/sockets.hpp"
#include "../engine/support.hpp"
#include "nanet/engine/engine.hpp"
#include "nanet/link/back_end.hpp"
#include "nanet/link/ucx.hpp"
#include "nanet/rdma/notify_ring.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

using engine::test::Bytes;
using flow::Counter;

constexpr std::uint64_t TOKEN = 0x5eed;

UcxConfig config_of(const std::string& transports, std::uint32_t ring_count, std::uint32_t slot_count) {
  return {.listen = Endpoint{"ucx", 0x7f000001, 0},
          .ring_count = ring_count,
          .slot_count = slot_count,
          .packet_bytes_max = 2000,
          .token = TOKEN,
          .transports = transports,
          .trust_network = transports == "tcp"};
}

rdma::ConnectionConfig to(std::uint16_t port, unsigned ring) {
  return {.address = "127.0.0.1", .port = port, .region = "ring-" + std::to_string(ring), .token = TOKEN, .timeout_ms = 30000};
}

// Sends all of them, however long the ring is full. True: all were notified, and the end was in order.
bool send_all(const std::string& transports, const rdma::ConnectionConfig& to, std::span<const Bytes> packets) {
  rdma::Worker worker({.transports = transports, .trust_network = transports == "tcp"});
  rdma::NotifyWriter ring{rdma::Connection(worker, to)};
  std::vector<std::span<const std::byte>> payloads(packets.begin(), packets.end());
  for (std::size_t sent = 0; sent < payloads.size();) {
    const auto batch = std::span(payloads).subspan(sent, std::min<std::size_t>(17, payloads.size() - sent));
    const auto done = ring.send(batch);
    if (done.status != rdma::Status::ok) return false;
    sent += done.count;
    if (done.count == 0) std::this_thread::yield();
  }
  return ring.sent_count() == packets.size() && ring.close() == rdma::Status::ok;
}

class Ucx : public testing::TestWithParam<const char*> {};

TEST_P(Ucx, payloads_of_two_senders_come_in_the_order_of_each_whatever_the_room) {
  constexpr std::size_t COUNT = 500;
  std::vector<Bytes> packets;
  for (std::size_t number = 0; number < COUNT; ++number) {
    Bytes& packet = packets.emplace_back(4 + number * 37 % 1900);
    for (std::size_t at = 0; at < packet.size(); ++at) packet[at] = static_cast<std::byte>(number * 31 + at);
  }
  const auto link = open_ucx(config_of(GetParam(), 2, 16));
  EXPECT_TRUE(link->keeps_packets());
  const std::uint16_t port = link->local().port;
  std::atomic<int> good{0};
  std::vector<std::thread> senders;
  for (unsigned ring = 0; ring < 2; ++ring)
    senders.emplace_back([&, ring] { good += send_all(GetParam(), to(port, ring), packets); });
  std::size_t next[2] = {0, 0};
  std::vector<std::byte> room(3000);  // fits one of the longest, or a few
  RxPacket entries[5];
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((next[0] < COUNT || next[1] < COUNT || good < 2) && std::chrono::steady_clock::now() < give_up) {
    const RxBatch batch = link->receive(room, entries, 0);
    std::uint32_t end = 0;
    for (const RxPacket& packet : std::span(entries).first(batch.packet_count)) {
      ASSERT_GE(packet.offset, end);
      ASSERT_EQ(packet.offset % 8, 0u);
      end = packet.offset + packet.bytes;
      ASSERT_LE(end, batch.bytes_used);
      ASSERT_TRUE(packet.peer_port == 1 || packet.peer_port == 2);
      const Bytes& expected = packets.at(next[packet.peer_port - 1]++);
      ASSERT_TRUE(std::ranges::equal(std::span(room).subspan(packet.offset, packet.bytes), expected));
    }
    if (batch.packet_count == 0) link->wait(1'000'000);
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(good, 2);
  EXPECT_EQ(next[0], COUNT);
  EXPECT_EQ(next[1], COUNT);
  EXPECT_EQ(link->stats().rx_packets, 2 * COUNT);
  EXPECT_EQ(link->stats().rx_malformed, 0u);
}

TEST_P(Ucx, an_engine_is_fed_by_puts_and_its_books_balance) {
  for (const auto topology : {engine::Topology::run_to_completion, engine::Topology::pipelined}) {
    engine::test::PlainSocket l0tp;
    engine::test::NodeConfig config = engine::test::config_for(0, l0tp.port(), topology);
    engine::LinkConfig& link = config.links.front();
    link.endpoint = "ucx://127.0.0.1:0";
    link.socket_buffer_bytes = engine::LinkConfig{}.socket_buffer_bytes;
    link.packet_bytes_max = 2000;
    link.section = config_of(GetParam(), 1, 32);
    link.memory_region.buffer_count = 2;
    link.memory_region.buffer_bytes = 16 << 10;
    engine::Engine engine(config.made());
    engine.start();
    constexpr std::uint32_t PACKETS = 1000;
    const auto events = engine::test::make_events(16, 21);
    std::vector<Bytes> packets;
    for (std::uint32_t p = 0; p < PACKETS; ++p) packets.push_back(engine::test::make_packet(events, p));
    packets[500][40] ^= std::byte{1};  // its checksum is wrong
    EXPECT_TRUE(send_all(GetParam(), to(engine.inputs().front().link->local().port, 0), packets));
    engine.stop();
    EXPECT_EQ(engine.total(Counter::packets_accepted), PACKETS - 1);
    EXPECT_EQ(engine.total(Counter::events_answered), 16 * (PACKETS - 1));
    EXPECT_EQ(engine.total(Counter::packets_clop_full), 0u);  // they wait in the ring
    EXPECT_EQ(engine.inputs().front().link->stats().rx_packets, PACKETS);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Ucx, testing::Values("posix", "tcp"),
                         [](const auto& way) { return std::string(way.index == 0 ? "shm" : "tcp"); });

TEST(UcxLink, a_full_ring_keeps_its_packets_and_stops_its_sender) {
  const auto link = open_ucx(config_of("tcp", 1, 4));
  const std::uint16_t port = link->local().port;
  std::atomic<std::size_t> before{0}, after{0};
  std::atomic<bool> is_over{false};
  std::thread sender([&] {
    rdma::Worker worker({.transports = "tcp", .trust_network = true});
    rdma::NotifyWriter ring{rdma::Connection(worker, to(port, 0))};
    const Bytes packet(100);
    const std::vector<std::span<const std::byte>> payloads(6, packet);
    before = ring.send(payloads).count;
    after = ring.send(payloads).count;
    EXPECT_EQ(ring.close(), rdma::Status::ok);
    is_over = true;
  });
  while (!is_over) link->wait(1'000'000);  // serves its connections, takes nothing
  sender.join();
  EXPECT_EQ(before, 4u);
  EXPECT_EQ(after, 0u);
  std::vector<std::byte> room(4096);
  RxPacket entries[8];
  EXPECT_EQ(link->receive(room, entries, 0).packet_count, 4u);
  EXPECT_EQ(link->receive(room, entries, 0).packet_count, 0u);
}

TEST(UcxLink, set_up_refuses_what_it_cannot_do) {
  const auto refusal = [](UcxConfig config) -> std::string {
    try {
      open_ucx(config);
    } catch (const SetupError& error) {
      return error.what();
    }
    return "";
  };
  UcxConfig config = config_of("tcp", 1, 4);
  EXPECT_EQ(refusal(config), "");
  config.destinations.push_back({"udp", 0x7f000001, 1});
  EXPECT_EQ(refusal(config), "link ucx cannot send (over UCX it only receives) send by another link, or by a UDP socket");
  EXPECT_NE(refusal({}).find("does not know where to listen"), std::string::npos);
  config = config_of("tcp", 0, 4);
  EXPECT_NE(refusal(config).find("cannot have ring_count = 0"), std::string::npos);
  config = config_of("tcp", 1, 0);
  EXPECT_NE(refusal(config).find("no ring of 0 slots"), std::string::npos);
  config = config_of("tcp", 1, 4);
  config.packet_bytes_max = 65508;
  EXPECT_NE(refusal(config).find("packet_bytes_max = 65508"), std::string::npos);
}

}  // namespace
}  // namespace nanet::link
