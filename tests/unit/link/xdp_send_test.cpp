// SPDX-License-Identifier: Apache-2.0
// Sending over AF_XDP between two network namespaces, to ordinary sockets; sending and receiving at once.
#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "xdp_rig.hpp"

namespace nanet::test {
inline std::atomic<std::uint64_t> allocation_count{0};  // counted in allocation_test.cpp
}

namespace nanet::link::test {
namespace {

TEST(Xdp, AnswersArriveAtAnOrdinarySocket) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = listening_here();
  config.destinations = {Endpoint{"xdp", kThere, 5001}, Endpoint{"xdp", kThere, 5002}};
  const auto link = open_xdp(config);
  std::optional<HostSocket> first, second;
  hosts.there([&] {
    first.emplace(kThere, 5001);
    second.emplace(kThere, 5002);
  });
  // The receiving kernel checks each checksum: these frames come without an offload's promise that they are right.
  for (std::uint32_t bytes = 0; bytes <= 1472; bytes += 8) {
    std::vector<Bytes> data;
    std::vector<TxPacket> packets;
    for (std::uint32_t i = 0; i < 8; ++i) data.push_back(payload(bytes + i, std::min(bytes + i, 1472u)));
    for (std::uint32_t i = 0; i < 8; ++i) packets.push_back({data[i].data(), static_cast<std::uint32_t>(data[i].size()), i % 2});
    link->send(packets, 0);
    for (std::uint32_t i = 0; i < 8; ++i) {
      const auto got = (i % 2 == 0 ? first : second)->receive();
      ASSERT_TRUE(got) << bytes + i;
      EXPECT_EQ(got->data, data[i]);
      EXPECT_EQ(got->address, kHere);
      EXPECT_EQ(got->port, kPort);
    }
  }
  const Bytes data(1473);
  std::array<bool, 2> dropped{};
  const TxPacket hopeless[] = {{data.data(), 1473, 0, &dropped[0]}, {data.data(), 10, 2, &dropped[1]}};  // too long; no such destination
  link->send(hopeless, 0);
  EXPECT_EQ(dropped, (std::array{true, true}));
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.tx_packets, 185u * 8);
  EXPECT_EQ(stats.tx_dropped, 2u);
}

// The next UDP packet to port 5001 as it is on the wire of nanet1; empty: none within a second.
Bytes next_frame(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  while (::poll(&waiting, 1, 1000) > 0) {
    Bytes frame(2048);
    const ssize_t bytes = ::recv(fd, frame.data(), frame.size(), MSG_DONTWAIT);
    frame.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    if (frame.size() > 42 && frame[23] == std::byte{17} && frame[36] == std::byte{5001 >> 8} && frame[37] == std::byte{5001 & 255}) {
      return frame;
    }
  }
  return {};
}

TEST(Xdp, ChecksumIsThereOrZero) {
  if (cannot_run()) return;
  for (const XdpChecksum checksum : {XdpChecksum::present, XdpChecksum::absent}) {
    const Hosts hosts;
    XdpConfig config;
    config.interface = "nanet0";
    config.destinations = {Endpoint{"xdp", kThere, 5001}};
    config.huge_pages = false;
    config.checksum = checksum;
    const auto link = open_xdp(config);
    int wire = -1;
    std::optional<HostSocket> peer;
    hosts.there([&] {
      peer.emplace(kThere, 5001);
      wire = ::socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));
    });
    const Bytes data = payload(7, 100);
    const TxPacket packet{data.data(), 100, 0};
    link->send({&packet, 1}, 0);
    const Bytes frame = next_frame(wire);
    ::close(wire);
    ASSERT_EQ(frame.size(), 142u);
    const bool is_zero = frame[40] == std::byte{0} && frame[41] == std::byte{0};
    EXPECT_EQ(is_zero, checksum == XdpChecksum::absent);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), frame.begin() + 42));
    const auto got = peer->receive();  // the receiving kernel takes both
    ASSERT_TRUE(got);
    EXPECT_EQ(got->data, data);
  }
}

TEST(Xdp, SendsWithoutListeningAndWithoutAProgram) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config;
  config.interface = "nanet0";
  config.destinations = {Endpoint{"xdp", kThere, 5001}};
  config.huge_pages = false;
  const auto link = open_xdp(config);
  EXPECT_EQ(link->path(), "AF_XDP, sends only, copied, queue 0");
  EXPECT_EQ(attached(), "");
  std::optional<HostSocket> peer;
  hosts.there([&] { peer.emplace(kThere, 5001); });
  const Bytes data = payload(1, 1168);
  std::vector<TxPacket> packets(3000, TxPacket{data.data(), 1168, 0});
  std::array<bool, 3000> dropped{};
  for (std::size_t i = 0; i < packets.size(); ++i) packets[i].dropped = &dropped[i];
  link->send(packets, 0);
  std::uint64_t received = 0;
  while (const auto got = peer->receive(300)) received += got->data == data ? 1 : 0;
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.tx_packets + stats.tx_dropped, 3000u);
  EXPECT_EQ(stats.tx_dropped, static_cast<std::uint64_t>(std::ranges::count(dropped, true)));
  EXPECT_EQ(received, stats.tx_packets);
  EXPECT_GT(received, 0u);
  EXPECT_EQ(link->local(), (Endpoint{"xdp", 0, 0}));
}

TEST(Xdp, ThroughAGatewayAndToEverybody) {
  if (cannot_run()) return;
  const Hosts hosts;
  run("ip route add 10.99.0.0/24 via 10.77.0.2");
  XdpConfig config = listening_here();
  config.destinations = {Endpoint{"xdp", 0x0A630001, 5001}, Endpoint{"xdp", 0x0A4D00FF, 5001}};
  const auto link = open_xdp(config);
  std::optional<HostSocket> behind;
  hosts.there([&] {
    run("ip addr add 10.99.0.1/24 dev lo");
    behind.emplace(0, 5001);
  });
  const Bytes data = payload(1, 100);
  const TxPacket packets[] = {{data.data(), 100, 0}, {data.data(), 100, 1}};
  link->send(packets, 0);
  ASSERT_TRUE(behind->receive());
  ASSERT_TRUE(behind->receive());
}

TEST(Xdp, ANeighbourThatComesLateAndOneThatMoves) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = listening_here();
  config.destinations = {Endpoint{"xdp", 0x0A4D0007, 5001}};
  const auto link = open_xdp(config);
  EXPECT_TRUE(says(link->notes(), "packets to xdp://10.77.0.7:5001 are dropped (no one answers ARP for it on nanet0)"));
  const Bytes data = payload(1, 100);
  const TxPacket packet{data.data(), 100, 0};
  link->send({&packet, 1}, 0);
  EXPECT_EQ(link->stats().tx_dropped, 1u);
  std::optional<HostSocket> peer;
  const auto arrives = [&] {
    for (int i = 0; i < 100; ++i) {
      link->send({&packet, 1}, 0);
      if (peer->receive(100)) return true;
    }
    return false;
  };
  hosts.there([&] {
    run("ip addr add 10.77.0.7/24 dev nanet1");
    peer.emplace(0x0A4D0007, 5001);
  });
  EXPECT_TRUE(arrives());
  EXPECT_FALSE(says(link->notes(), "no one answers ARP"));
  // Another card takes over: what the kernel learns of it is used.
  hosts.there([] { run("ip link set nanet1 address 02:00:00:00:77:77"); });
  run("ip neigh replace 10.77.0.7 lladdr 02:00:00:00:77:77 dev nanet0");
  EXPECT_TRUE(arrives());
}

TEST(Xdp, ReceivesAndSendsFromTwoThreadsWithoutAllocating) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = listening_here();
  config.destinations = {Endpoint{"xdp", kThere, 5001}};
  const auto link = open_xdp(config);
  std::optional<HostSocket> answers, sender;
  hosts.there([&] {
    answers.emplace(kThere, 5001);
    sender.emplace(kThere, 5000);
  });
  constexpr std::uint32_t kRounds = 300;
  constexpr std::uint32_t kEach = 20;
  const Bytes data = payload(3, 1168);
  const std::vector<TxPacket> packets(kEach, TxPacket{data.data(), 1168, 0});
  std::atomic<std::uint64_t> received{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> allocated{0};
  std::thread receiver([&] {
    Bytes room(std::size_t{1} << 18);
    std::vector<RxPacket> entries(256);
    const std::uint64_t before = nanet::test::allocation_count;
    while (!stop) {
      received += link->receive(room, entries, 0).packet_count;
      link->wait(100'000);
    }
    allocated += nanet::test::allocation_count - before;
  });
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    for (std::uint32_t i = 0; i < kEach; ++i) sender->send(kHere, kPort, data);
    link->send(packets, 0);
    (void)link->stats();
  }
  const auto all = [&] {
    const LinkStats stats = link->stats();
    return stats.rx_packets + stats.rx_kernel_dropped == kRounds * kEach;
  };
  for (int i = 0; i < 200 && !all(); ++i) ::usleep(10'000);
  stop = true;
  receiver.join();
  EXPECT_TRUE(all());
  EXPECT_EQ(received, link->stats().rx_packets);
  EXPECT_EQ(allocated, 0u);
  EXPECT_EQ(link->stats().tx_packets + link->stats().tx_dropped, kRounds * kEach);
  std::uint64_t answered = 0;
  while (const auto got = answers->receive(200)) answered += got->data == data ? 1 : 0;
  EXPECT_LE(answered, link->stats().tx_packets);
  EXPECT_GT(answered, 0u);
}

}  // namespace
}  // namespace nanet::link::test
