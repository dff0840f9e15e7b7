// SPDX-License-Identifier: Apache-2.0
// The link over sockets on an interface that goes down, comes back and disappears, between two network namespaces.
#include <iostream>

#include "xdp_hosts.hpp"

namespace nanet::link::test {
namespace {

constexpr std::uint16_t kPort = 6200;

TEST(UdpInterface, GoesDownAndComesBackAndIsGone) {
  if (const std::string why = why_no_hosts(); !why.empty()) {
    std::cerr << "NOT RUN: a test of interfaces (" << why << ")\n";
    return;
  }
  const Hosts hosts;
  UdpConfig config;
  config.listen = Endpoint{"udp", kHere, kPort};
  config.destinations = {Endpoint{"udp", kThere, 5001}};
  config.interface = "nanet0";
  UdpLink link(config);
  std::optional<HostSocket> peer;
  hosts.there([&] { peer.emplace(kThere, 5001); });
  const Bytes data = payload(5, 100);
  const TxPacket packet{data.data(), 100, 0};
  Collector collector;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(run("ip link set nanet0 down"), 0);
    link.send({&packet, 1}, 0);  // lost, with a name
    link.wait(1'000'000);
    EXPECT_EQ(run("ip link set nanet0 up"), 0);
    hosts.meet();
    link.send({&packet, 1}, 0);
    ASSERT_TRUE(peer->receive());
    hosts.there([&] {
      HostSocket sender(kThere, 5000);
      for (std::uint32_t i = 0; i < 10; ++i) sender.send(kHere, kPort, payload(i, 1168));
    });
    const std::vector<Got> got = collector.collect(link, 10);
    ASSERT_EQ(got.size(), 10u);
    for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(got[i].data, payload(i, 1168));
  }
  EXPECT_EQ(link.stats().tx_packets + link.stats().tx_dropped, 6u);
  EXPECT_EQ(link.stats().tx_packets, 3u);
  EXPECT_EQ(run("ip link del nanet0"), 0);
  link.send({&packet, 1}, 0);
  EXPECT_EQ(link.stats().tx_dropped, 4u);
  std::vector<Got> nothing;
  collector.receive_once(link, nothing);
  EXPECT_TRUE(nothing.empty());
}

// The sender's kernel cuts packets up, and ours puts them together. Ours is the one that is asked for its MTU first, so both are small.
TEST(UdpInterface, AnMtuTooSmallLosesNothing) {
  if (const std::string why = why_no_hosts(); !why.empty()) {
    std::cerr << "NOT RUN: a test of interfaces (" << why << ")\n";
    return;
  }
  const Hosts hosts(1, 600);
  UdpConfig config;
  config.listen = Endpoint{"udp", kHere, kPort};
  config.destinations = {Endpoint{"udp", kThere, 5001}};
  UdpLink link(config);
  std::optional<HostSocket> peer;
  hosts.there([&] {
    peer.emplace(kThere, 5001);
    HostSocket sender(kThere, 5000);
    for (std::uint32_t i = 0; i < 50; ++i) EXPECT_TRUE(sender.send(kHere, kPort, payload(i, 1168)));
  });
  Collector collector;
  const std::vector<Got> got = collector.collect(link, 50);
  ASSERT_EQ(got.size(), 50u);
  for (std::uint32_t i = 0; i < 50; ++i) EXPECT_EQ(got[i].data, payload(i, 1168));
  const Bytes data = payload(7, 1168);
  const std::vector<TxPacket> packets(20, {data.data(), 1168, 0});
  link.send(packets, 0);
  for (std::size_t i = 0; i < packets.size(); ++i) EXPECT_EQ(peer->receive()->data, data);
  EXPECT_EQ(link.stats().tx_packets, 20u);
  EXPECT_EQ(link.stats().tx_dropped, 0u);
}

}  // namespace
}  // namespace nanet::link::test
