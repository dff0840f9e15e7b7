// SPDX-License-Identifier: Apache-2.0
// Receiving over AF_XDP between two network namespaces, from ordinary sockets and from frames made by hand.
#include "link/udp_frame.hpp"
#include "xdp_rig.hpp"

namespace nanet::link::test {
namespace {

// As an ordinary host would send it; `ip_bytes` and `udp_bytes` lie when they are given.
struct FrameShape {
  int tags = 0;
  std::size_t option_bytes = 0;
  bool is_fragment = false;
  std::uint16_t port = kPort;
  std::uint32_t to = kHere;
  std::uint16_t udp_bytes = 0;
};

Bytes frame_of(const Bytes& data, const FrameShape& shape) {
  Bytes headers(kFrameHeaderBytes);
  write_ethernet_header(headers.data(), {2, 0, 0, 0, 0, 1}, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF});
  write_ipv4_udp_headers(headers.data() + 14, {kThere, shape.to, 5000, shape.port}, data, 1);
  Bytes frame(headers.begin(), headers.begin() + 12);
  for (int i = 0; i < shape.tags; ++i) {
    for (const int byte : {0x81, 0x00, 0x00, 0x05}) frame.push_back(static_cast<std::byte>(byte));
  }
  Bytes ip(headers.begin() + 14, headers.begin() + 34);
  ip[0] = static_cast<std::byte>(0x45 + shape.option_bytes / 4);
  const std::size_t total = 28 + shape.option_bytes + data.size();
  ip[2] = static_cast<std::byte>(total >> 8);
  ip[3] = static_cast<std::byte>(total);
  if (shape.is_fragment) ip[6] = std::byte{0x20};
  ip.insert(ip.end(), shape.option_bytes, std::byte{1});
  ip[10] = ip[11] = std::byte{0};
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < ip.size(); i += 2)
    sum += std::to_integer<std::uint32_t>(ip[i]) << 8 | std::to_integer<std::uint32_t>(ip[i + 1]);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  ip[10] = static_cast<std::byte>(~sum >> 8);
  ip[11] = static_cast<std::byte>(~sum);
  frame.insert(frame.end(), headers.begin() + 12, headers.begin() + 14);
  frame.insert(frame.end(), ip.begin(), ip.end());
  Bytes udp(headers.begin() + 34, headers.end());
  udp[6] = udp[7] = std::byte{0};  // no checksum
  if (shape.udp_bytes != 0) {
    udp[4] = static_cast<std::byte>(shape.udp_bytes >> 8);
    udp[5] = static_cast<std::byte>(shape.udp_bytes);
  }
  frame.insert(frame.end(), udp.begin(), udp.end());
  frame.insert(frame.end(), data.begin(), data.end());
  if (frame.size() < 60) frame.resize(60);
  return frame;
}

class XdpReceive : public testing::TestWithParam<XdpAttach> {};
INSTANTIATE_TEST_SUITE_P(Modes, XdpReceive, testing::Values(XdpAttach::driver, XdpAttach::generic),
                         [](const auto& which) { return which.param == XdpAttach::driver ? "driver" : "generic"; });

TEST_P(XdpReceive, BitForBitInOrderBackToBack) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = listening_here();
  config.attach = GetParam();
  const auto link = open_xdp(config);
  EXPECT_EQ(link->local(), (Endpoint{"xdp", kHere, kPort}));
  EXPECT_EQ(link->path(),
            std::string("AF_XDP, ") + (GetParam() == XdpAttach::driver ? "driver" : "generic") + " mode, copied, queue 0");
  EXPECT_TRUE(says(link->notes(), "the kernel copies each packet"));
  Collector collector;
  std::uint32_t sent = 0;
  for (const std::size_t bytes : std::vector<std::size_t>{1168, 0, 1, 17, 18, 19, 1472}) {
    std::size_t end = 0;
    for (int round = 0; round < 4; ++round) {
      hosts.there([&] {
        HostSocket peer(kThere, 5000);
        for (std::uint32_t i = 0; i < 100; ++i) EXPECT_TRUE(peer.send(kHere, kPort, payload(sent + i, bytes)));
      });
      const std::vector<Got> got = collector.collect(*link, 100);
      expect_in_order(got, sent, 100, bytes);
      for (const Got& one : got) {
        if (bytes == 1168 && end != 0) {
          EXPECT_EQ(one.packet.offset, end);
        }
        end = one.packet.offset + bytes;
      }
      sent += 100;
    }
  }
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.rx_packets, sent);
  EXPECT_EQ(stats.rx_bytes, stats.rx_copied_bytes);
  EXPECT_EQ(stats.rx_kernel_dropped + stats.rx_foreign + stats.rx_malformed + stats.rx_truncated + stats.rx_errors, 0u);
  EXPECT_GE(stats.rx_calls, stats.rx_batches);
}

TEST_P(XdpReceive, OnlyItsPortAndAddressAndTheRestGoesToTheKernel) {
  if (cannot_run()) return;
  const Hosts hosts;
  run("ip addr add 10.77.0.9/24 dev nanet0");
  XdpConfig config = listening_here();
  config.attach = GetParam();
  const auto link = open_xdp(config);
  HostSocket other_port(kHere, kPort + 1);
  HostSocket other_address(0x0A4D0009, kPort);
  hosts.there([&] {
    run("ip neigh flush all");  // ARP once more, with the program attached
    HostSocket peer(kThere, 5000);
    peer.send(kHere, kPort + 1, payload(1, 100));
    peer.send(0x0A4D0009, kPort, payload(2, 100));
    peer.send(kHere, kPort, payload(3, 100));
  });
  const auto first = other_port.receive();
  const auto second = other_address.receive();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->data, payload(1, 100));
  EXPECT_EQ(second->data, payload(2, 100));
  Collector collector;
  expect_in_order(collector.collect(*link, 1), 3, 1, 100);
  EXPECT_EQ(link->stats().rx_packets, 1u);
}

TEST_P(XdpReceive, FramesOfEveryShape) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = listening_here();
  config.attach = GetParam();
  config.listen->address = 0;
  config.interface = "nanet0";
  const auto link = open_xdp(config);
  const FrameShape taken[] = {
      {}, {.tags = 1}, {.tags = 2}, {.option_bytes = 4}, {.tags = 2, .option_bytes = 40}, {.to = 0x01020304}};
  const FrameShape passed[] = {{.is_fragment = true}, {.tags = 2, .is_fragment = true}, {.port = kPort + 1}, {.tags = 3}};
  std::uint32_t id = 0;
  hosts.there([&] {
    RawSocket wire("nanet1");
    for (const FrameShape& shape : passed) wire.send(frame_of(payload(99, 200), shape));
    // A length in it that says more than there is, and one that is impossible.
    wire.send(frame_of(payload(99, 200), {.udp_bytes = 209}));
    wire.send(frame_of(payload(99, 200), {.udp_bytes = 7}));
    for (const FrameShape& shape : taken) wire.send(frame_of(payload(id++, 200), shape));
    wire.send(frame_of(payload(id++, 3), {}));  // padded to Ethernet's least length
  });
  Collector collector;
  const std::vector<Got> got = collector.collect(*link, id);
  ASSERT_EQ(got.size(), id);
  for (std::uint32_t i = 0; i < id; ++i) EXPECT_EQ(got[i].data, payload(i, i + 1 == id ? 3 : 200)) << i;
  EXPECT_EQ(link->stats().rx_malformed, 2u);
  EXPECT_EQ(link->stats().rx_foreign, 0u);
}

TEST_P(XdpReceive, JumboFramesInSeveralPieces) {
  if (cannot_run()) return;
  const Hosts hosts(1, 9000);
  XdpConfig config = listening_here();
  config.attach = GetParam();
  config.packet_bytes_max = 8972;
  config.destinations = {Endpoint{"xdp", kThere, 5001}};
  const auto link = open_xdp(config);
  Collector collector;
  std::uint32_t id = 0;
  for (const std::size_t bytes : std::vector<std::size_t>{8972, 100, 3790, 3798, 3799, 4096, 7638, 7639, 1168}) {
    hosts.there([&] {
      HostSocket peer(kThere, 5000);
      for (std::uint32_t i = 0; i < 20; ++i) EXPECT_TRUE(peer.send(kHere, kPort, payload(id + i, bytes)));
    });
    expect_in_order(collector.collect(*link, 20), id, 20, bytes);
    id += 20;
  }
  EXPECT_EQ(link->stats().rx_kernel_dropped, 0u);

  std::optional<HostSocket> peer;
  hosts.there([&] { peer.emplace(kThere, 5001); });
  for (const std::size_t bytes : std::vector<std::size_t>{8972, 4054, 4055, 8150, 8151, 12}) {
    const Bytes data = payload(7, bytes);
    const TxPacket packet{data.data(), static_cast<std::uint32_t>(bytes), 0};
    link->send({&packet, 1}, 0);
    const auto got = peer->receive();
    ASSERT_TRUE(got) << bytes;
    EXPECT_EQ(got->data, data);
  }
  EXPECT_EQ(link->stats().tx_packets, 6u);
}

// Every packet is received or in rx_kernel_dropped, and the packet after each gap says that the kernel dropped.
TEST_P(XdpReceive, OverloadIsInTheBooks) {
  if (cannot_run()) return;
  const Hosts hosts;
  XdpConfig config = listening_here();
  config.attach = GetParam();
  config.frame_count = 256;
  const auto link = open_xdp(config);
  // What follows the packets on the same path shows that the kernel has dealt with them all; the path depends on the processor.
  const OneProcessor one_processor;
  HostSocket behind(kHere, kPort + 1);
  Collector collector(std::size_t{1} << 20, 50);
  std::vector<Got> got;
  std::uint32_t sent = 0;
  for (int round = 0; round < 30; ++round) {
    hosts.there([&] {
      HostSocket peer(kThere, 5000);
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(peer.send(kHere, kPort, payload(sent++, 64)));
      EXPECT_TRUE(peer.send(kHere, kPort + 1, payload(0, 64)));
    });
    ASSERT_TRUE(behind.receive(10'000));
    collector.receive_once(*link, got);  // half of what was sent
  }
  const std::vector<Got> rest = collector.collect(*link, sent);
  got.insert(got.end(), rest.begin(), rest.end());
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.rx_packets, got.size());
  EXPECT_GT(stats.rx_kernel_dropped, 500u);
  EXPECT_EQ(stats.rx_packets + stats.rx_kernel_dropped, sent);
  std::uint32_t next = 0;
  std::size_t gaps = 0;
  for (const Got& one : got) {
    std::uint32_t id = next;
    while (id < sent && one.data != payload(id, 64)) ++id;
    ASSERT_LT(id, sent);
    EXPECT_EQ(one.packet.flags, id == next ? 0 : RxPacket::after_drop) << id;
    gaps += id == next ? 0 : 1;
    next = id + 1;
  }
  EXPECT_GT(gaps, 10u);
}

TEST(Xdp, RoomAndEntriesAreKept) {
  if (cannot_run()) return;
  const Hosts hosts;
  const auto link = open_xdp(listening_here());
  EXPECT_EQ(link->min_room_bytes(), 1472u);
  hosts.there([&] {
    HostSocket peer(kThere, 5000);
    for (std::uint32_t i = 0; i < 8; ++i) peer.send(kHere, kPort, payload(i, 100));
  });
  std::vector<RxPacket> entries(8);
  Bytes room(220);
  link->wait(1'000'000'000);
  EXPECT_EQ(link->receive(room, std::span(entries).first(1), 0).packet_count, 1u);
  RxBatch batch = link->receive(room, entries, 0);
  EXPECT_EQ(batch.packet_count, 2u);  // at 0 and 104, to 204
  EXPECT_EQ(batch.bytes_used, 208u);
  EXPECT_EQ(entries[1].offset, 104u);
  batch = link->receive(std::span(room).first(50), entries, 0);  // less than one packet takes
  EXPECT_EQ(batch.packet_count, 1u);
  EXPECT_EQ(entries[0].bytes, 50);
  EXPECT_EQ(entries[0].flags, RxPacket::truncated);
  EXPECT_EQ(link->receive(room, std::span(entries).first(0), 0).packet_count, 0u);
  Collector collector;
  expect_in_order(collector.collect(*link, 4), 4, 4, 100);
  EXPECT_EQ(link->stats().rx_truncated, 1u);
}

TEST(Xdp, SeveralQueuesAndOneThatIsNotRead) {
  if (cannot_run()) return;
  const Hosts hosts(4);
  run("ethtool -L nanet0 rx 2 tx 2");
  hosts.there([] { run("ethtool -L nanet1 rx 2 tx 2"); });
  const auto send = [&](std::uint32_t count) {
    hosts.there([&] {
      for (std::uint32_t i = 0; i < count; ++i)
        HostSocket(kThere, 0).send(kHere, kPort, payload(i, 100));  // a queue by sender's port
    });
  };
  Collector collector;
  {
    const auto link = open_xdp(listening_here());
    EXPECT_EQ(link->path(), "AF_XDP, driver mode, copied, queues 0-1");
    send(400);
    EXPECT_EQ(collector.collect(*link, 400).size(), 400u);
    EXPECT_EQ(link->stats().rx_packets, 400u);
    EXPECT_FALSE(says(link->notes(), "queues"));
    // The count of queues is raised under us, which is said; the kernel refuses to take a queue from under a socket.
    EXPECT_EQ(run("ethtool -L nanet0 rx 4 tx 4"), 0);
    EXPECT_TRUE(says(link->notes(), "interface nanet0 has 4 queues now, not 2"));
    EXPECT_NE(run("ethtool -L nanet0 rx 1 tx 1"), 0);
    EXPECT_EQ(run("ethtool -L nanet0 rx 2 tx 2"), 0);
  }
  XdpConfig config = listening_here();
  config.queues = {1};
  const auto link = open_xdp(config);
  EXPECT_EQ(link->path(), "AF_XDP, driver mode, copied, queue 1");
  send(400);
  const std::vector<Got> got = collector.collect(*link, 400);
  EXPECT_LT(got.size(), 400u);
  EXPECT_GT(got.size(), 0u);
  EXPECT_EQ(got.size() + link->stats().rx_kernel_dropped, 400u);
  EXPECT_TRUE(says(link->notes(), "packets came on queues of nanet0 that it does not read"));
}

TEST(Xdp, QueuesThatAreSplitAreLinksOfTheirOwn) {
  if (cannot_run()) return;
  const Hosts hosts(2);
  const auto send = [&](std::uint32_t count) {
    hosts.there([&] {
      for (std::uint32_t i = 0; i < count; ++i) HostSocket(kThere, 0).send(kHere, kPort, payload(i, 100));
    });
  };
  XdpConfig config = listening_here();
  config.queues = {0, 1};
  config.split_queues = true;
  config.queue = 1;
  expect_says(error_of(config), "the first queue of its endpoint is not open in this process");
  config.queue = 2;
  expect_says(error_of(config), "names no such queue");
  config.queue = 0;
  std::unique_ptr<Link> first = open_xdp(config);
  config.queue = 1;
  std::unique_ptr<Link> second = open_xdp(config);
  EXPECT_EQ(first->path(), "AF_XDP, driver mode, copied, queue 0");
  EXPECT_EQ(second->path(), "AF_XDP, driver mode, copied, queue 1");
  EXPECT_EQ(second->local(), first->local());
  send(400);
  Collector of_first, of_second;
  std::size_t got[2] = {of_first.collect(*first, 400).size(), of_second.collect(*second, 400).size()};
  EXPECT_GT(got[0], 0u);
  EXPECT_GT(got[1], 0u);
  EXPECT_EQ(got[0] + got[1], 400u);
  EXPECT_EQ(first->stats().rx_kernel_dropped + second->stats().rx_kernel_dropped, 0u);
  // The program outlives the link that attached it; what is for its queue goes to the kernel then.
  first.reset();
  EXPECT_NE(attached(), "");
  send(400);
  got[1] = of_second.collect(*second, 400).size();
  EXPECT_GT(got[1], 0u);
  EXPECT_LT(got[1], 400u);
  second.reset();
  EXPECT_EQ(attached(), "");
}

}  // namespace
}  // namespace nanet::link::test
