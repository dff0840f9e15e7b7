// SPDX-License-Identifier: Apache-2.0
// AF_XDP with payloads that stay in their frames: bit for bit, untouched while they are lent, none lost, each frame used again.
#include <atomic>
#include <random>

#include "lent.hpp"
#include "link/udp_frame.hpp"
#include "xdp_rig.hpp"

namespace nanet::test {
inline std::atomic<std::uint64_t> allocation_count{0};  // counted in allocation_test.cpp
}

namespace nanet::link::test {
namespace {

XdpConfig lending_here(std::uint32_t lent_max, std::uint32_t frame_count = 64) {
  XdpConfig config = listening_here();
  config.payloads = Payloads::in_place;
  config.lent_max = lent_max;
  config.frame_count = frame_count;
  return config;
}

// Packets first, first + 1, ... from the other host's port 5000.
void send(const Hosts& hosts, std::uint32_t first, std::uint32_t count, std::size_t bytes, std::uint16_t port = 5000) {
  hosts.there([&] {
    HostSocket peer(kThere, port);
    for (std::uint32_t i = 0; i < count; ++i) EXPECT_TRUE(peer.send(kHere, kPort, payload(first + i, bytes)));
  });
}

class XdpInPlace : public testing::TestWithParam<XdpAttach> {};
INSTANTIATE_TEST_SUITE_P(Modes, XdpInPlace, testing::Values(XdpAttach::driver, XdpAttach::generic),
                         [](const auto& which) { return which.param == XdpAttach::driver ? "driver" : "generic"; });

TEST_P(XdpInPlace, BitForBitAtMultiplesOf16) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = lending_here(128, 128);
  config.attach = GetParam();
  const auto link = open_xdp(config);
  EXPECT_EQ(link->path(), std::string("AF_XDP, ") + (GetParam() == XdpAttach::driver ? "driver" : "generic") +
                              " mode, copied, queue 0, payloads in place");
  EXPECT_EQ(link->min_room_bytes(), sizeof(PlacedPacket));
  EXPECT_EQ(link->payload_memory().kind, MemoryKind::host);
  Lent lent(*link);
  std::uint32_t sent = 0;
  std::uint64_t bytes_sent = 0;
  for (const std::size_t bytes : std::vector<std::size_t>{1168, 1, 17, 1472, 24}) {
    send(hosts, sent, 100, bytes);
    lent.collect(100);
    ASSERT_EQ(lent.all().size(), 100u);
    for (std::uint32_t i = 0; i < 100; ++i) {
      const Lent::One& one = lent.all()[i];
      ASSERT_EQ(one.data(), payload(sent + i, bytes)) << i;
      EXPECT_EQ(one.placed.address % 16, 0u);
      EXPECT_EQ(one.placed.head_bytes, 0u);
      EXPECT_EQ(one.packet.peer_address, kThere);
      EXPECT_EQ(one.packet.peer_port, 5000);
      EXPECT_EQ(one.packet.flags, 0);
    }
    lent.give_back(100);
    sent += 100;
    bytes_sent += 100 * bytes;
  }
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.rx_packets, sent);
  EXPECT_EQ(stats.rx_bytes, bytes_sent);
  EXPECT_EQ(stats.rx_copied_bytes, 0u);
  EXPECT_EQ(stats.rx_kernel_dropped + stats.rx_foreign + stats.rx_malformed + stats.rx_truncated + stats.rx_errors, 0u);
}

TEST_P(XdpInPlace, WhatIsLentIsNotTouchedAndNothingIsLostMeanwhile) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = lending_here(320, 64);
  config.attach = GetParam();
  const auto link = open_xdp(config);
  Lent lent(*link);
  std::mt19937_64 random(3);
  std::uint32_t sent = 0;
  for (int lap = 0; lap < 40; ++lap) {
    while (lent.all().size() + 60 <= 320) {
      send(hosts, sent, 60, 700);
      sent += 60;
      lent.collect(60);
    }
    ASSERT_EQ(lent.all().size(), 300u);
    for (std::uint32_t i = 0; i < 300; ++i) ASSERT_EQ(lent.all()[i].data(), payload(sent - 300 + i, 700)) << "lap " << lap;
    if (lap % 8 == 7) std::shuffle(lent.all().begin(), lent.all().end(), random);  // in any order
    lent.give_back(lap % 8 == 7 ? 300 : 60 * (1 + random() % 5));
  }
  EXPECT_EQ(link->stats().rx_packets, sent);
  EXPECT_EQ(link->stats().rx_kernel_dropped, 0u);
}

TEST_P(XdpInPlace, FramesThatAreNotDeliveredGoBackAtOnce) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = lending_here(64, 64);
  config.attach = GetParam();
  const auto link = open_xdp(config);
  Lent lent(*link);
  Bytes lying(kFrameHeaderBytes + 100);
  write_ethernet_header(lying.data(), {2, 0, 0, 0, 0, 1}, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF});
  write_ipv4_udp_headers(lying.data() + 14, {kThere, kHere, 5000, kPort}, std::span(lying).subspan(kFrameHeaderBytes), 1);
  lying[38] = std::byte{7};  // a UDP length beyond the frame
  for (int round = 0; round < 20; ++round) {
    hosts.there([&] {
      RawSocket wire("nanet1");
      for (int i = 0; i < 50; ++i) wire.send(lying);
    });
    send(hosts, static_cast<std::uint32_t>(round), 1, 100);
    lent.collect(1);
  }
  EXPECT_EQ(link->stats().rx_malformed, 1000u);
  EXPECT_EQ(link->stats().rx_kernel_dropped, 0u);
  ASSERT_EQ(lent.all().size(), 20u);
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(lent.all()[i].data(), payload(i, 100));
}

TEST_P(XdpInPlace, OverloadIsInTheBooksAndMarkedToThePacket) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = lending_here(128, 128);
  config.attach = GetParam();
  const auto link = open_xdp(config);
  const OneProcessor one_processor;
  HostSocket behind(kHere, kPort + 1);  // what comes here says that the kernel has dealt with all before it
  Lent lent(*link, 50);
  std::uint32_t sent = 0;
  std::uint32_t next = 0;
  std::size_t gaps = 0;
  const auto look = [&] {
    for (; !lent.all().empty(); lent.give_back(1)) {
      const Lent::One& one = lent.all().front();
      std::uint32_t id = next;
      while (id < sent && one.data() != payload(id, 64)) ++id;
      ASSERT_LT(id, sent);
      EXPECT_EQ(one.packet.flags, id == next ? 0 : RxPacket::after_drop) << id;
      gaps += id == next ? 0 : 1;
      next = id + 1;
    }
  };
  for (int round = 0; round < 40; ++round) {
    hosts.there([&] {
      HostSocket peer(kThere, 5000);
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(peer.send(kHere, kPort, payload(sent++, 64)));
      EXPECT_TRUE(peer.send(kHere, kPort + 1, payload(0, 64)));
    });
    ASSERT_TRUE(behind.receive(10'000));
    lent.receive();  // half of what was sent
    if (round % 2 == 1) look();
  }
  while (lent.receive() != 0) look();
  look();
  const LinkStats stats = link->stats();
  EXPECT_GT(stats.rx_kernel_dropped, 500u);
  EXPECT_EQ(stats.rx_packets + stats.rx_kernel_dropped, sent);
  EXPECT_GT(gaps, 5u);
}

TEST(XdpInPlace, AShortRoomLeavesTheRestForTheNextCall) {
  if (cannot_run()) return;
  const Hosts hosts;
  const auto link = open_xdp(lending_here(64));
  send(hosts, 0, 8, 100);
  link->wait(1'000'000'000);
  std::vector<PlacedPacket> room(4);
  std::vector<RxPacket> entries(8);
  const auto receive = [&](std::size_t bytes) {
    const RxBatch batch = link->receive(std::as_writable_bytes(std::span(room)).first(bytes), entries, 0);
    link->give_back(std::span(room).first(batch.packet_count));
    return batch.packet_count;
  };
  EXPECT_EQ(receive(sizeof(PlacedPacket) - 1), 0u);
  EXPECT_EQ(receive(3 * sizeof(PlacedPacket) + 40), 3u);
  EXPECT_EQ(entries[2].offset, 2 * sizeof(PlacedPacket));
  Lent lent(*link);
  lent.collect(5);
  ASSERT_EQ(lent.all().size(), 5u);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(lent.all()[i].data(), payload(3 + i, 100));
}

TEST(XdpInPlace, FramesOfSeveralQueuesGoBackToTheirOwn) {
  if (cannot_run()) return;
  const Hosts hosts(2);
  const auto link = open_xdp(lending_here(256));
  Lent lent(*link);
  std::mt19937_64 random(4);
  std::uint32_t sent = 0;
  for (int round = 0; round < 30; ++round) {
    for (std::uint16_t port = 5000; port < 5020; ++port, ++sent) send(hosts, sent, 1, 200, port);  // a queue by sender's port
    lent.collect(20);
    if (lent.all().size() + 20 > 256) {
      std::shuffle(lent.all().begin(), lent.all().end(), random);
      lent.give_back(200);
    }
  }
  EXPECT_EQ(link->stats().rx_packets, sent);
  EXPECT_EQ(link->stats().rx_kernel_dropped, 0u);
}

TEST(XdpInPlace, ReceivesAndGivesBackWithoutAllocating) {
  if (cannot_run()) return;
  const Hosts hosts;
  const auto link = open_xdp(lending_here(512, 1024));
  std::vector<PlacedPacket> room(512);
  std::vector<RxPacket> entries(512);
  std::uint64_t received = 0;
  std::uint64_t allocated = 0;
  for (std::uint32_t round = 0; round < 20; ++round) {
    send(hosts, 0, 200, 1168);
    link->wait(1'000'000'000);
    const std::uint64_t before = nanet::test::allocation_count;
    for (std::uint32_t count = 1; count != 0; received += count) {
      count = link->receive(std::as_writable_bytes(std::span(room)), entries, 0).packet_count;
      link->give_back(std::span(room).first(count));
    }
    allocated += nanet::test::allocation_count - before;
  }
  EXPECT_GT(nanet::test::allocation_count, 0u);
  EXPECT_EQ(allocated, 0u);
  EXPECT_EQ(received + link->stats().rx_kernel_dropped, 4000u);
}

TEST(XdpInPlace, WhatCannotBeIsRefused) {
  if (cannot_run()) return;
  const Hosts hosts(1, 9000);
  XdpConfig config = lending_here(64);
  config.packet_bytes_max = 3785;
  expect_says(error_of(config),
              "cannot leave payloads in place (packets of 3785 bytes take several frames, and a consumer reads a payload in "
              "one piece) set packet_bytes_max to 3784 at most, or payloads: copied");
  config.packet_bytes_max = 3784;
  EXPECT_EQ(error_of(config), "no error");
  config = lending_here(0);
  expect_says(error_of(config), "(lent_max is 0, not 1 to 16777216)");
  config = lending_here(64);
  config.listen.reset();
  config.interface = "nanet0";
  config.destinations = {Endpoint{"xdp", kThere, 5001}};
  expect_says(error_of(config), "cannot leave payloads in place (it only sends) leave payloads out");
}

}  // namespace
}  // namespace nanet::link::test
