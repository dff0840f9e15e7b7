// SPDX-License-Identifier: Apache-2.0
// The link over sockets with IPv6 addresses: on ::1, with groups between two network namespaces, recorded, played, and with faults put in.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>

#include "lent.hpp"
#include "link/pcap/pcap_link.hpp"
#include "link/udp_frame.hpp"
#include "nanet/link/fault_injector.hpp"
#include "nanet/link/recorder.hpp"
#include "socket6.hpp"
#include "xdp_rig.hpp"

namespace nanet::link::test {
namespace {

const IpAddress kLoopback6 = parse_endpoint("udp://[::1]:0").address;

UdpConfig listening6(Coalesce gro = Coalesce::on) {
  UdpConfig config;
  config.listen = Endpoint{"udp", kLoopback6, 0};
  config.gro = gro;
  return config;
}

struct From {
  Bytes data;
  IpAddress address;
  std::uint16_t port;
};

// As Collector, with the senders' addresses. entries: of one call.
std::vector<From> collect(Link& link, std::size_t count, std::size_t entries = 512, std::size_t room_bytes = std::size_t{1} << 18) {
  std::vector<From> got;
  std::vector<std::uint64_t> room(room_bytes / 8);
  std::vector<RxPacket> packets(entries);
  std::uint64_t now_ns = 0;
  for (int empty = 0; got.size() < count && empty < 2; now_ns += 2'000'000) {
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(room));
    const RxBatch batch = link.receive(bytes, packets, now_ns);
    empty = batch.packet_count == 0 ? empty + 1 : 0;
    if (batch.packet_count == 0) link.wait(500'000'000);
    const std::span<const IpAddress> peers = link.peers();
    for (const RxPacket& packet : std::span(packets).first(batch.packet_count)) {
      EXPECT_LT(packet.peer_address, peers.size());
      const auto payload = bytes.subspan(packet.offset, packet.bytes);
      got.push_back({Bytes(payload.begin(), payload.end()), peers[packet.peer_address], packet.peer_port});
    }
  }
  return got;
}

class Ipv6Receive : public testing::TestWithParam<Coalesce> {};
INSTANTIATE_TEST_SUITE_P(Modes, Ipv6Receive, testing::Values(Coalesce::on, Coalesce::off),
                         [](const auto& which) { return which.param == Coalesce::on ? "coalesced" : "single"; });

TEST_P(Ipv6Receive, EachPacketHasItsSender) {
  UdpLink link(listening6(GetParam()));
  EXPECT_EQ(to_string(link.local()), "udp://[::1]:" + std::to_string(link.local().port));
  Socket6 senders[3];
  for (std::uint32_t i = 0; i < 300; ++i) senders[i % 3].send("::1", link.local().port, payload(i, 100 + i));
  const std::vector<From> got = collect(link, 300);
  ASSERT_EQ(got.size(), 300u);
  for (std::uint32_t i = 0; i < 300; ++i) {
    EXPECT_EQ(got[i].data, payload(i, 100 + i));
    EXPECT_EQ(got[i].address, kLoopback6);
    EXPECT_EQ(got[i].port, senders[i % 3].port());
  }
  EXPECT_EQ(link.stats().rx_packets, 300u);
}

TEST_P(Ipv6Receive, JumboPacketsComeWhole) {
  UdpConfig config = listening6(GetParam());
  config.packet_bytes_max = 8972;
  UdpLink link(config);
  Socket6 sender;
  for (std::uint32_t i = 0; i < 20; ++i) sender.send("::1", link.local().port, payload(i, 8952));
  const std::vector<From> got = collect(link, 20);
  ASSERT_EQ(got.size(), 20u);
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(got[i].data, payload(i, 8952));
}

// Super-packets with few entries a call: the rest of each waits, and its sender with it.
TEST(Ipv6Receive, WhatWaitsKeepsItsSender) {
  UdpLink link(listening6());
  Socket6 senders[2];
  for (std::uint32_t i = 0; i < 10; ++i) senders[i % 2].send("::1", link.local().port, payload(i, 5000), 500);
  const std::vector<From> got = collect(link, 100, 3);
  ASSERT_EQ(got.size(), 100u);
  for (std::uint32_t i = 0; i < 100; ++i) {
    const Bytes whole = payload(i / 10, 5000);
    EXPECT_TRUE(std::equal(got[i].data.begin(), got[i].data.end(), whole.begin() + i % 10 * 500)) << i;
    EXPECT_EQ(got[i].data.size(), 500u);
    EXPECT_EQ(got[i].address, kLoopback6);
    EXPECT_EQ(got[i].port, senders[i / 10 % 2].port());
  }
}

// Two addresses of one machine, alternating: the address is each packet's own, not the last one's.
TEST(Ipv6Receive, SendersOfDifferentAddressesAreToldApart) {
  if (const std::string why = why_no_hosts(); !why.empty()) {
    std::cerr << "NOT RUN: a test of two addresses (" << why << ")\n";
    return;
  }
  const Hosts hosts;
  EXPECT_EQ(run("ip -6 addr add fd00:77::1/128 dev lo nodad && ip -6 addr add fd00:77::2/128 dev lo nodad"), 0);
  for (const Coalesce gro : {Coalesce::on, Coalesce::off}) {
    UdpConfig config = listening6(gro);
    config.listen = parse_endpoint("udp://[::]:0");
    UdpLink link(config);
    Socket6 one("fd00:77::1"), two("fd00:77::2");
    for (std::uint32_t i = 0; i < 100; ++i) (i % 2 == 0 ? one : two).send("fd00:77::1", link.local().port, payload(i, 200));
    const std::vector<From> got = collect(link, 100);
    ASSERT_EQ(got.size(), 100u);
    for (std::uint32_t i = 0; i < 100; ++i) {
      EXPECT_EQ(to_string(got[i].address), i % 2 == 0 ? "fd00:77::1" : "fd00:77::2") << i;
      EXPECT_EQ(got[i].data, payload(i, 200));
    }
  }
}

TEST(Ipv6Send, ReachesItsReceiverFromEitherSocket) {
  for (const SourcePort source_port : {SourcePort::own, SourcePort::listen}) {
    Socket6 receiver;
    UdpConfig config = listening6();
    config.destinations = {Endpoint{"udp", kLoopback6, receiver.port()}};
    config.source_port = source_port;
    UdpLink link(config);
    std::vector<Bytes> data;
    std::vector<TxPacket> packets;
    for (std::uint32_t i = 0; i < 20; ++i) data.push_back(payload(i, 1168));
    for (const Bytes& one : data) packets.push_back({one.data(), 1168, 0});
    link.send(packets, 0);
    for (std::uint32_t i = 0; i < 20; ++i) {
      const auto got = receiver.receive();
      ASSERT_TRUE(got);
      EXPECT_EQ(got->first, data[i]);
      if (source_port == SourcePort::listen) {
        EXPECT_EQ(got->second, link.local().port);
      }
    }
    EXPECT_EQ(link.stats().tx_packets, 20u);
    EXPECT_TRUE(link.notes().empty());
  }
}

TEST(Ipv6Send, APeerThatIsNotThereIsCounted) {
  const std::uint16_t port = Socket6().port();  // of no one any more
  UdpConfig config;
  config.destinations = {Endpoint{"udp", kLoopback6, port}};
  UdpLink link(config);
  const Bytes data = payload(1, 100);
  const TxPacket packet{data.data(), 100, 0};
  for (int i = 0; i < 5; ++i) link.send({&packet, 1}, 0);
  EXPECT_EQ(link.stats().tx_packets + link.stats().tx_dropped, 5u);
  EXPECT_GE(link.stats().tx_refused, 1u);
  Socket6 back("::1", port);
  link.send({&packet, 1}, 0);
  EXPECT_TRUE(back.receive());
}

TEST(Ipv6Setup, FamiliesAreNotMixed) {
  const auto problem_of = [](const UdpConfig& config) -> std::string {
    try {
      UdpLink link(config);
    } catch (const SetupError& error) {
      return error.what();
    }
    return "no error";
  };
  UdpConfig config = listening6();
  config.destinations = {Endpoint{"udp", INADDR_LOOPBACK, 6300}};
  EXPECT_EQ(problem_of(config), "no error");  // through a socket of its own
  config.source_port = SourcePort::listen;
  expect_says(problem_of(config), "of another family, and sends from there) use IPv4, or IPv6, for both");
  config = listening6();
  config.listen = parse_endpoint("udp://[2001:db8::77]:6200");
  expect_says(problem_of(config), "listen on an address of this machine (ip -6 address), or on [::] for all of them");
  config.listen = parse_endpoint("udp://[ff02::77]:6200");
  config.interface = "lo";
  config.group_join.senders = {IpAddress(INADDR_LOOPBACK)};
  expect_says(problem_of(config), "its sender 127.0.0.1 is of another family");
  config.listen = parse_endpoint("udp://[ff35::77]:6200");
  config.group_join.senders.clear();
  expect_says(problem_of(config), "ff3x::/32 is for groups of known senders");
}

void bring_up6(const std::string& name, const std::string& addresses) {
  EXPECT_EQ(run("echo 0 >/proc/sys/net/ipv6/conf/" + name + "/disable_ipv6"), 0);
  EXPECT_EQ(run("for a in " + addresses + "; do ip -6 addr add $a/64 dev " + name + " nodad || exit 1; done"), 0);
}

TEST(Ipv6Multicast, OnlySendersThatAreJoinedComeIn) {
  if (const std::string why = why_no_hosts(); !why.empty()) {
    std::cerr << "NOT RUN: a test of multicast groups (" << why << ")\n";
    return;
  }
  const Hosts hosts;
  bring_up6("nanet0", "fd00:77::1");
  hosts.there([&] { bring_up6("nanet1", "fd00:77::2 fd00:77::3"); });
  UdpConfig config;
  config.listen = parse_endpoint("udp://[ff35::77]:6200");
  config.interface = "nanet0";
  config.group_join.senders = {parse_endpoint("udp://[fd00:77::2]:0").address};
  std::optional<UdpLink> link(std::in_place, config);
  EXPECT_NE(output_of("ip maddress show dev nanet0").find("ff35::77"), std::string::npos);
  hosts.there([] {
    Socket6 joined("fd00:77::2"), stranger("fd00:77::3");
    for (const Socket6* one : {&joined, &stranger}) {
      const int index = static_cast<int>(::if_nametoindex("nanet1"));
      EXPECT_EQ(::setsockopt(one->fd(), SOL_IPV6, IPV6_MULTICAST_IF, &index, sizeof index), 0);
    }
    for (std::uint32_t i = 0; i < 10; ++i) {
      stranger.send("ff35::77", 6200, payload(100 + i, 700));
      joined.send("ff35::77", 6200, payload(i, 700));
    }
  });
  const std::vector<From> got = collect(*link, 11);
  ASSERT_EQ(got.size(), 10u);
  for (std::uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(got[i].data, payload(i, 700));
    EXPECT_EQ(to_string(got[i].address), "fd00:77::2");
  }
  link.reset();
  EXPECT_EQ(output_of("ip maddress show dev nanet0").find("ff35::77"), std::string::npos);
}

// Here fd00:77::1, there ::2 and ::3.
class Ipv6Xdp : public testing::TestWithParam<XdpAttach> {
 protected:
  void SetUp() override {
    if (cannot_run()) return;
    hosts_.emplace(1, 9000);
    bring_up6("nanet0", "fd00:77::1");
    hosts_->there([] { bring_up6("nanet1", "fd00:77::2 fd00:77::3"); });
    // Until the neighbours know each other: the kernel takes a while after an interface came up.
    Socket6 meeting("fd00:77::1", 7006);
    hosts_->there([&] {
      for (int i = 0; i < 100; ++i) {
        Socket6("fd00:77::2").send("fd00:77::1", 7006, payload(1, 10));
        if (meeting.receive(100)) return;
      }
      ADD_FAILURE() << "no packet goes through the veth pair";
    });
  }

  XdpConfig config(const std::string& endpoint) const {
    XdpConfig config = listening_here();
    config.listen = parse_endpoint(endpoint);
    config.interface = "nanet0";
    config.attach = GetParam();
    return config;
  }

  std::optional<Hosts> hosts_;
};
INSTANTIATE_TEST_SUITE_P(Modes, Ipv6Xdp, testing::Values(XdpAttach::driver, XdpAttach::generic),
                         [](const auto& which) { return which.param == XdpAttach::driver ? "driver" : "generic"; });

TEST_P(Ipv6Xdp, EachPacketHasItsSender) {
  if (!hosts_) return;
  for (const std::string endpoint : {"xdp://[fd00:77::1]:6200", "xdp://[::]:6200"}) {
    XdpConfig jumbo = config(endpoint);
    jumbo.packet_bytes_max = GetParam() == XdpAttach::driver ? 3700 : 8952;
    const auto link = open_xdp(jumbo);
    EXPECT_EQ(to_string(link->local()), endpoint);
    std::uint16_t ports[2];
    hosts_->there([&] {
      Socket6 one("fd00:77::2"), two("fd00:77::3");
      ports[0] = one.port();
      ports[1] = two.port();
      for (std::uint32_t i = 0; i < 60; ++i)
        (i % 2 == 0 ? one : two).send("fd00:77::1", 6200, payload(i, i == 59 ? jumbo.packet_bytes_max : 100 + i));
    });
    const std::vector<From> got = collect(*link, 60, 7);
    ASSERT_EQ(got.size(), 60u);
    for (std::uint32_t i = 0; i < 60; ++i) {
      EXPECT_EQ(got[i].data, payload(i, i == 59 ? jumbo.packet_bytes_max : 100 + i)) << i;
      EXPECT_EQ(to_string(got[i].address), i % 2 == 0 ? "fd00:77::2" : "fd00:77::3");
      EXPECT_EQ(got[i].port, ports[i % 2]);
    }
    EXPECT_EQ(link->stats().rx_packets, 60u);
    EXPECT_EQ(link->stats().rx_foreign + link->stats().rx_malformed, 0u);
  }
}

TEST_P(Ipv6Xdp, EverythingElseStaysWithTheKernel) {
  if (!hosts_) return;
  EXPECT_EQ(run("ip -6 addr add fd00:77::9/64 dev nanet0 nodad"), 0);
  const auto link = open_xdp(config("xdp://[fd00:77::1]:6200"));
  Socket6 other_port("fd00:77::1", 6201), other_address("fd00:77::9", 6200);
  HostSocket ipv4(kHere, 6200);
  hosts_->there([] {
    Socket6 sender("fd00:77::2");
    sender.send("fd00:77::1", 6201, payload(1, 100));
    sender.send("fd00:77::9", 6200, payload(2, 100));
    HostSocket(kThere, 5000).send(kHere, 6200, payload(3, 100));
    sender.send("fd00:77::1", 6200, payload(4, 100));
  });
  const std::vector<From> got = collect(*link, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].data, payload(4, 100));
  for (Socket6* one : {&other_port, &other_address}) EXPECT_TRUE(one->receive(5000));
  EXPECT_TRUE(ipv4.receive(5000));
}

TEST_P(Ipv6Xdp, PayloadsStayInPlaceOnMultiplesOf16) {
  if (!hosts_) return;
  XdpConfig in_place = config("xdp://[fd00:77::1]:6200");
  in_place.payloads = Payloads::in_place;
  in_place.lent_max = 256;
  const auto link = open_xdp(in_place);
  hosts_->there([] {
    Socket6 sender("fd00:77::2");
    for (std::uint32_t i = 0; i < 20; ++i) sender.send("fd00:77::1", 6200, payload(i, 100 + i));
  });
  Lent lent(*link);
  lent.collect(20);
  ASSERT_EQ(lent.all().size(), 20u);
  for (std::uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(lent.all()[i].data(), payload(i, 100 + i));
    EXPECT_EQ(lent.all()[i].placed.address % 16, 0u);
  }
}

TEST_P(Ipv6Xdp, AGroupIsJoined) {
  if (!hosts_) return;
  XdpConfig group = config("xdp://[ff15::77]:6200");
  std::unique_ptr<Link> link = open_xdp(group);
  EXPECT_NE(output_of("ip maddress show dev nanet0").find("ff15::77"), std::string::npos);
  hosts_->there([] {
    Socket6 sender("fd00:77::2");
    const int index = static_cast<int>(::if_nametoindex("nanet1"));
    EXPECT_EQ(::setsockopt(sender.fd(), SOL_IPV6, IPV6_MULTICAST_IF, &index, sizeof index), 0);
    sender.send("ff15::77", 6200, payload(1, 500));
  });
  const std::vector<From> got = collect(*link, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(to_string(got[0].address), "fd00:77::2");
  link.reset();
  EXPECT_EQ(output_of("ip maddress show dev nanet0").find("ff15::77"), std::string::npos);
}

// The receiving kernel checks each checksum: these frames come without an offload's promise that they are right.
TEST_P(Ipv6Xdp, SendsToAnOrdinarySocketAndThroughAGateway) {
  if (!hosts_) return;
  XdpConfig both = config("xdp://[fd00:77::1]:6200");
  both.destinations = {parse_endpoint("xdp://[fd00:77::2]:5001"), parse_endpoint("xdp://[fd00:99::1]:5002")};
  EXPECT_EQ(run("ip -6 route add fd00:99::/64 via fd00:77::2"), 0);
  std::optional<Socket6> near, behind;
  hosts_->there([&] {
    EXPECT_EQ(run("ip -6 addr add fd00:99::1/64 dev lo nodad && ip link set lo up"), 0);
    near.emplace("fd00:77::2", 5001);
    behind.emplace("fd00:99::1", 5002);
  });
  const auto link = open_xdp(both);
  // The kernel asks for a neighbour once a second: if the first question is lost, the link opens without the answer and says so.
  const auto says_dropped = [](const std::string& note) { return note.find("are dropped") != std::string::npos; };
  for (int look = 0; std::ranges::any_of(link->notes(), says_dropped) && look < 1000; ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (std::uint32_t bytes = 0; bytes <= 1472; bytes += 46) {
    for (std::uint32_t to = 0; to < 2; ++to) {
      const Bytes data = payload(bytes, bytes);
      const TxPacket packet{data.data(), bytes, to};
      link->send({&packet, 1}, 0);
      const auto got = (to == 0 ? near : behind)->receive();
      ASSERT_TRUE(got) << bytes << " to " << to;
      EXPECT_EQ(*got, std::pair(data, std::uint16_t{6200}));
    }
  }
  EXPECT_EQ(link->stats().tx_packets, 66u);
  EXPECT_EQ(link->stats().tx_dropped, 0u);
}

TEST_P(Ipv6Xdp, SendsToAGroupWithoutListening) {
  if (!hosts_) return;
  std::optional<Socket6> member;
  hosts_->there([&] {
    member.emplace("::", 5001);
    ipv6_mreq group{};
    group.ipv6mr_multiaddr = Socket6::at("ff15::88", 0).sin6_addr;
    group.ipv6mr_interface = ::if_nametoindex("nanet1");
    EXPECT_EQ(::setsockopt(member->fd(), SOL_IPV6, IPV6_JOIN_GROUP, &group, sizeof group), 0);
  });
  XdpConfig sending = config("xdp://[::]:0");
  sending.listen.reset();
  sending.destinations = {parse_endpoint("xdp://[ff15::88]:5001")};
  const auto link = open_xdp(sending);
  const Bytes data = payload(1, 700);
  const TxPacket packet{data.data(), 700, 0};
  link->send({&packet, 1}, 0);
  const auto got = member->receive();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->first, data);
}

TEST_P(Ipv6Xdp, WhatCannotBeIsRefused) {
  if (!hosts_) return;
  XdpConfig wrong = config("xdp://[fd00:77::5]:6200");
  expect_says(error_of(wrong), "it does not have the address of xdp://[fd00:77::5]:6200");
  wrong = config("xdp://[fd00:77::1]:6200");
  wrong.packet_bytes_max = 8972;
  expect_says(error_of(wrong), "set packet_bytes_max to 8952");
  wrong.packet_bytes_max = 1472;
  wrong.destinations = {Endpoint{"udp", kThere, 6300}};
  expect_says(error_of(wrong), "all that it receives and sends is of one family");
  wrong.destinations = {parse_endpoint("udp://[fd00:77::2]:6300")};
  wrong.checksum = XdpChecksum::absent;
  expect_says(error_of(wrong), "cannot have checksum: absent (packets over IPv6 have one always)");
  wrong.checksum = XdpChecksum::present;
  wrong.destinations = {parse_endpoint("udp://[fd00:88::2]:6300")};  // no route
  expect_says(error_of(wrong), "cannot send to udp://[fd00:88::2]:6300 through nanet0 (Network is unreachable)");
  wrong.destinations = {parse_endpoint("udp://[fd00:77::1]:6300")};
  expect_says(error_of(wrong), "the address is this machine's own");
  wrong.listen = Endpoint{"xdp", kHere, 6200};
  wrong.destinations = {parse_endpoint("udp://[fd00:77::2]:6300")};
  expect_says(error_of(wrong), "cannot have the destination udp://[fd00:77::2]:6300");
}

class Ipv6File : public testing::Test {
 protected:
  ~Ipv6File() override { std::remove(path.c_str()); }
  const std::string path = testing::TempDir() + "nanet_ipv6_" + std::to_string(::getpid()) + ".pcap";
};

TEST_F(Ipv6File, ARecordingPlaysAsItCame) {
  std::uint16_t ports[2];
  std::uint16_t own = 0;
  {
    auto link = std::make_unique<UdpLink>(listening6());
    own = link->local().port;
    const RecorderConfig config{.path = path, .max_bytes = 1 << 20, .local = link->local(), .destinations = {}};
    Recorder recorder(std::move(link), config);
    Socket6 senders[2];
    for (int i = 0; i < 2; ++i) ports[i] = senders[i].port();
    for (std::uint32_t i = 0; i < 50; ++i) senders[i % 2].send("::1", own, payload(i, 60 + i));
    EXPECT_EQ(collect(recorder, 50).size(), 50u);
    EXPECT_EQ(recorder.recorder_stats().packets_recorded, 50u);
  }
  PcapLinkConfig config;
  config.path = path;
  config.pace = ReplayPace::maximum;
  config.port = own;
  PcapLink played(config);
  const std::vector<From> got = collect(played, 50);
  ASSERT_EQ(got.size(), 50u);
  for (std::uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(got[i].data, payload(i, 60 + i));
    EXPECT_EQ(got[i].address, kLoopback6);
    EXPECT_EQ(got[i].port, ports[i % 2]);
  }
  EXPECT_TRUE(played.finished());
  EXPECT_EQ(played.stats().rx_skipped_not_udp, 0u);
}

TEST(Ipv6Faults, WhatIsHeldKeepsItsSender) {
  FaultConfig faults;
  faults.reorder = 0.5;
  faults.duplicate = 0.3;
  FaultInjector link(std::make_unique<UdpLink>(listening6()), faults);
  Socket6 senders[3];
  constexpr std::uint32_t kCount = 300;
  for (std::uint32_t i = 0; i < kCount; ++i) senders[i % 3].send("::1", link.local().port, payload(i, 400));
  const std::vector<From> got = collect(link, 2 * kCount);
  EXPECT_GT(got.size(), kCount);
  for (const From& one : got) {
    EXPECT_EQ(one.address, kLoopback6);
    std::uint32_t i = 0;
    while (i < kCount && (one.data != payload(i, 400) || one.port != senders[i % 3].port())) ++i;
    EXPECT_LT(i, kCount);
  }
}

// ---- frames

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// fd00::1 to fd00::2, ports 5000 to 6200, "abcd".
Bytes whole_packet() {
  const Bytes data = bytes_of({'a', 'b', 'c', 'd'});
  Bytes packet(kIpv6UdpHeaderBytes);
  IpAddress::Bytes from{0xFD}, to{0xFD};
  from[15] = 1;
  to[15] = 2;
  write_ipv6_udp_headers(packet.data(), {IpAddress::ipv6(from), IpAddress::ipv6(to), 5000, 6200}, data);
  packet.insert(packet.end(), data.begin(), data.end());
  return packet;
}

TEST(Ipv6Frame, IsWrittenByteForByte) {
  // 0xFD00 + 1 + 0xFD00 + 2 + 17 + 12 + 5000 + 6200 + 12 + 0x6162 + 0x6364 = 0x2EAB2; folded 0xEAB4; its complement is 0x154B.
  EXPECT_EQ(whole_packet(), bytes_of({0x60, 0, 0, 0, 0,    12,   17,   64,   0xFD, 0,  0,    0,    0,   0,   0,   0,  0, 0,
                                      0,    0, 0, 0, 0,    1,    0xFD, 0,    0,    0,  0,    0,    0,   0,   0,   0,  0, 0,
                                      0,    0, 0, 2, 0x13, 0x88, 0x18, 0x38, 0,    12, 0x15, 0x4B, 'a', 'b', 'c', 'd'}));
}

TEST(Ipv6Frame, IsReadWithHeadersBetweenAndWithoutThem) {
  const Bytes plain = whole_packet();
  const auto with = [&](Bytes between, int first) {
    Bytes packet = plain;
    packet[6] = static_cast<std::byte>(first);
    packet[5] = static_cast<std::byte>(12 + between.size());
    packet.insert(packet.begin() + 40, between.begin(), between.end());
    return packet;
  };
  const Bytes options = bytes_of({17, 0, 1, 4, 0, 0, 0, 0});
  const Bytes long_options = bytes_of({60, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0});
  for (const Bytes& packet : {plain, with(options, 0), with(options, 43), with(options, 60), with(long_options, 0)}) {
    IpUdpView view;
    ASSERT_EQ(read_ip_udp(packet, view), FrameError::none);
    EXPECT_EQ(to_string(view.flow.from_address), "fd00::1");
    EXPECT_EQ(to_string(view.flow.to_address), "fd00::2");
    EXPECT_EQ(view.flow.from_port, 5000);
    EXPECT_EQ(view.flow.to_port, 6200);
    EXPECT_EQ(Bytes(view.payload.begin(), view.payload.end()), bytes_of({'a', 'b', 'c', 'd'}));
    for (std::size_t bytes = 1; bytes < packet.size(); ++bytes) {
      EXPECT_EQ(read_ip_udp(std::span(packet).first(bytes), view), FrameError::cut) << bytes;
    }
  }
  IpUdpView view;
  EXPECT_EQ(read_ip_udp(with(bytes_of({17, 0, 0, 0, 0, 0, 0, 1}), 44), view), FrameError::fragment);
  EXPECT_EQ(read_ip_udp(with({}, 6), view), FrameError::not_udp);
  EXPECT_EQ(read_ip_udp(with(bytes_of({17, 9, 0, 0, 0, 0, 0, 0}), 0), view), FrameError::cut);  // a header longer than the packet
  Bytes lies = plain;
  lies[45] = std::byte{13};
  EXPECT_EQ(read_ip_udp(lies, view), FrameError::cut);
  lies[45] = std::byte{7};
  EXPECT_EQ(read_ip_udp(lies, view), FrameError::cut);
}

}  // namespace
}  // namespace nanet::link::test
