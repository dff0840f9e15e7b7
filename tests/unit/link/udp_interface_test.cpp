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

}  // namespace
}  // namespace nanet::link::test
