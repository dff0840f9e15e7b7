// SPDX-License-Identifier: Apache-2.0
// Multicast groups between two network namespaces: joined and left, of any sender or of one, received over sockets and AF_XDP, and sent to.
#include <netinet/ip.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>

#include "xdp_rig.hpp"

namespace nanet::link::test {
namespace {

constexpr std::uint32_t kGroup = 0xEF4D0101;        // 239.77.1.1
constexpr std::uint32_t kOtherGroup = 0xEF4D0102;   // 239.77.1.2
constexpr std::uint32_t kSourceGroup = 0xE84D0101;  // 232.77.1.1
constexpr std::uint32_t kStranger = 0x0A4D0003;     // a second address of the other host

bool no_hosts() {
  static const std::string why = why_no_hosts();
  if (!why.empty()) std::cerr << "NOT RUN: a test of multicast groups (" << why << ")\n";
  return !why.empty();
}

// Two hosts whose kernels know where groups are, and a second address of the other one.
struct GroupHosts : Hosts {
  explicit GroupHosts(int mtu = 1500) : Hosts(1, mtu) {
    EXPECT_EQ(run("ip route add 224.0.0.0/4 dev nanet0"), 0);
    there([] {
      EXPECT_EQ(run("ip route add 224.0.0.0/4 dev nanet1"), 0);
      EXPECT_EQ(run("ip addr add 10.77.0.3/24 dev nanet1"), 0);
    });
  }

  void send_there(std::uint32_t from, std::uint32_t group, std::uint32_t first, std::uint32_t count, std::size_t bytes) const {
    there([&] {
      HostSocket sender(from, 5000);
      for (std::uint32_t i = first; i < first + count; ++i) EXPECT_TRUE(sender.send(group, kPort, payload(i, bytes)));
    });
  }
};

std::string joined() { return output_of("ip maddress show dev nanet0"); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string problem_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

// Through sockets and through AF_XDP, with the same tests.
struct Kind {
  const char* name;
  std::function<std::unique_ptr<Link>(std::uint32_t group, const std::vector<IpAddress>& senders, std::uint32_t packet_bytes_max)> open;
};

std::unique_ptr<Link> open_udp(std::uint32_t group, const std::vector<IpAddress>& senders, std::uint32_t packet_bytes_max) {
  UdpConfig config;
  config.listen = Endpoint{"udp", group, kPort};
  config.group_join.senders = senders;
  config.packet_bytes_max = packet_bytes_max;
  return std::make_unique<UdpLink>(config);
}

std::unique_ptr<Link> open_group_xdp(std::uint32_t group, const std::vector<IpAddress>& senders, std::uint32_t packet_bytes_max) {
  XdpConfig config = listening_here();
  config.listen->address = group;
  config.group_join.senders = senders;
  config.interface = "nanet0";
  config.packet_bytes_max = packet_bytes_max;
  return open_xdp(config);
}

class Multicast : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Links, Multicast, testing::Values(Kind{"udp", open_udp}, Kind{"xdp", open_group_xdp}),
                         [](const auto& which) { return std::string(which.param.name); });

TEST_P(Multicast, AGroupIsJoinedAndLeft) {
  if (no_hosts() || (GetParam().name == std::string("xdp") && cannot_run())) return;
  const GroupHosts hosts;
  EXPECT_FALSE(has(joined(), "239.77.1.1")) << joined();
  {
    const std::unique_ptr<Link> link = GetParam().open(kGroup, {}, 1472);
    EXPECT_TRUE(has(joined(), "239.77.1.1")) << joined();
    EXPECT_EQ(link->local().address, kGroup);
    hosts.send_there(kThere, kGroup, 0, 100, 1168);
    hosts.send_there(kThere, kOtherGroup, 500, 5, 1168);
    hosts.send_there(kThere, kHere, 600, 5, 1168);  // not to the group
    Collector collector;
    expect_in_order(collector.collect(*link, 101), 0, 100, 1168);
    EXPECT_EQ(link->stats().rx_packets, 100u);
  }
  EXPECT_FALSE(has(joined(), "239.77.1.1")) << joined();
}

TEST_P(Multicast, JumboFramesComeWhole) {
  if (no_hosts() || (GetParam().name == std::string("xdp") && cannot_run())) return;
  const GroupHosts hosts(9000);
  const std::unique_ptr<Link> link = GetParam().open(kGroup, {}, 8972);
  hosts.send_there(kThere, kGroup, 0, 50, 8972);
  Collector collector;
  expect_in_order(collector.collect(*link, 51), 0, 50, 8972);
}

TEST_P(Multicast, TheSendersAreToldToTheNetwork) {
  if (no_hosts() || (GetParam().name == std::string("xdp") && cannot_run())) return;
  const GroupHosts hosts;
  const std::unique_ptr<Link> link = GetParam().open(kSourceGroup, {kThere}, 1472);
  const std::string filter = output_of("cat /proc/net/mcfilter");  // what IGMPv3 reports say: INC 1
  EXPECT_TRUE(has(filter, "0xe84d0101")) << filter;
  EXPECT_TRUE(has(filter, "0x0a4d0002")) << filter;
  EXPECT_FALSE(has(filter, "0x0a4d0003")) << filter;
  hosts.send_there(kThere, kSourceGroup, 0, 10, 1168);
  Collector collector;
  expect_in_order(collector.collect(*link, 11), 0, 10, 1168);
}

TEST(UdpMulticast, OnlySendersThatAreJoinedComeIn) {
  if (no_hosts()) return;
  const GroupHosts hosts;
  const std::unique_ptr<Link> link = open_udp(kGroup, {kThere}, 1472);
  for (std::uint32_t round = 0; round < 10; ++round) {
    hosts.send_there(kStranger, kGroup, 1000 + round, 1, 1168);
    hosts.send_there(kThere, kGroup, round, 1, 1168);
  }
  Collector collector;
  expect_in_order(collector.collect(*link, 11), 0, 10, 1168);
  EXPECT_EQ(link->stats().rx_kernel_dropped, 0u);  // a stranger's packet is no loss
}

TEST(UdpMulticast, AnySenderComesInWhereNoneIsNamed) {
  if (no_hosts()) return;
  const GroupHosts hosts;
  const std::unique_ptr<Link> link = open_udp(kGroup, {}, 1472);
  hosts.send_there(kThere, kGroup, 0, 1, 1168);
  hosts.send_there(kStranger, kGroup, 1, 1, 1168);
  Collector collector;
  const std::vector<Got> got = collector.collect(*link, 2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].packet.peer_address, kThere);
  EXPECT_EQ(got[1].packet.peer_address, kStranger);
}

TEST(UdpMulticast, SeveralReceiversOfOneMachineGetEveryPacket) {
  if (no_hosts()) return;
  const GroupHosts hosts;
  const std::unique_ptr<Link> links[] = {open_udp(kGroup, {}, 1472), open_udp(kGroup, {}, 1472)};
  hosts.send_there(kThere, kGroup, 0, 20, 1168);
  for (const auto& link : links) {
    Collector collector;
    expect_in_order(collector.collect(*link, 20), 0, 20, 1168);
  }
}

TEST(UdpMulticast, TheInterfaceThatIsNamedCounts) {
  if (no_hosts()) return;
  const GroupHosts hosts;
  EXPECT_EQ(run("ip link add nanet2 type veth peer name nanet3 && ip link set nanet3 up"), 0);
  bring_up("nanet2", "10.78.0.1", 1500);
  EXPECT_EQ(run("ip route replace 224.0.0.0/4 dev nanet2"), 0);
  UdpConfig config;
  config.listen = Endpoint{"udp", kGroup, kPort};
  config.interface = "nanet0";
  UdpLink named(config);
  const std::unique_ptr<Link> routed = open_udp(kOtherGroup, {}, 1472);
  EXPECT_TRUE(has(joined(), "239.77.1.1")) << joined();
  EXPECT_FALSE(has(joined(), "239.77.1.2")) << joined();
  hosts.send_there(kThere, kGroup, 0, 3, 1168);
  Collector collector;
  expect_in_order(collector.collect(named, 3), 0, 3, 1168);
}

TEST(UdpMulticast, WrongUseIsRefused) {
  if (no_hosts()) return;
  const Hosts hosts;  // no route to any group
  UdpConfig config;
  config.listen = Endpoint{"udp", kGroup, kPort};
  const auto problem = [&] { return problem_of([&] { UdpLink link(config); }); };
  expect_says(problem(),
              "link udp cannot join udp://239.77.1.1:6200 (no route leads to it) name the network interface in `interface`");
  config.interface = "nanet9";
  expect_says(problem(), "see `ip link`");
  config.interface = "nanet0";
  EXPECT_EQ(problem(), "no error");
  config.listen->address = kSourceGroup;
  expect_says(problem(), "232.0.0.0/8 is for groups of known senders) list the address of each in `senders`");
  config.group_join.senders = {kThere, kThere};
  expect_says(problem(), "name each sender once");
  config.group_join.senders.clear();
  for (std::uint32_t i = 0; i < 11; ++i) config.group_join.senders.emplace_back(0x0A4D0100 + i);
  EXPECT_EQ(run("echo 10 >/proc/sys/net/ipv4/igmp_max_msf"), 0);
  expect_says(problem(), ") sysctl -w net.ipv4.igmp_max_msf=11");  // networks are refused there
  config.listen = Endpoint{"udp", kGroup, kPort};
  expect_says(problem(), "name networks instead of 11 addresses, or: sysctl -w net.ipv4.igmp_max_msf=11");
  config.group_join.senders.clear();
  config.destinations = {*config.listen};
  expect_says(problem(), "it listens there and would receive what it sends) set multicast_loop: false");
  config.group_sending.loop = false;
  EXPECT_EQ(problem(), "no error");
  if (cannot_run()) return;
  XdpConfig xdp = listening_here();
  xdp.listen->address = kGroup;
  expect_says(error_of(xdp), "name one in `interface`");
}

// A socket that is a member, and says with which TTL packets came.
class Member {
 public:
  explicit Member(const char* interface, std::uint16_t port) : socket_(INADDR_ANY, port) {
    ip_mreqn request{};
    request.imr_multiaddr.s_addr = htonl(kGroup);
    request.imr_ifindex = static_cast<int>(::if_nametoindex(interface));
    EXPECT_EQ(::setsockopt(socket_.fd(), SOL_IP, IP_ADD_MEMBERSHIP, &request, sizeof request), 0);
    const int on = 1;
    EXPECT_EQ(::setsockopt(socket_.fd(), SOL_IP, IP_RECVTTL, &on, sizeof on), 0);
  }

  // 0: no packet came.
  int next_ttl(const Bytes& wanted, int timeout_ms) {
    pollfd waiting{socket_.fd(), POLLIN, 0};
    if (::poll(&waiting, 1, timeout_ms) <= 0) return 0;
    Bytes data(65536);
    iovec piece{data.data(), data.size()};
    alignas(cmsghdr) char control[64];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t bytes = ::recvmsg(socket_.fd(), &message, MSG_DONTWAIT);
    EXPECT_EQ(bytes, static_cast<ssize_t>(wanted.size()));
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), data.begin()));
    const cmsghdr* c = CMSG_FIRSTHDR(&message);
    if (c == nullptr || c->cmsg_type != IP_TTL) return -1;
    int ttl = 0;
    std::memcpy(&ttl, CMSG_DATA(c), sizeof ttl);
    return ttl;
  }

 private:
  HostSocket socket_;
};

TEST(UdpMulticast, SendingReachesEveryMemberWithTheTtl) {
  if (no_hosts()) return;
  const GroupHosts hosts;
  std::optional<Member> there;
  hosts.there([&] { there.emplace("nanet1", std::uint16_t{6300}); });
  Member here("nanet0", 6300);
  const Bytes data = payload(1, 1168);
  const TxPacket packet{data.data(), 1168, 0};
  for (const SourcePort source_port : {SourcePort::own, SourcePort::listen}) {
    for (const std::uint8_t ttl : {std::uint8_t{1}, std::uint8_t{5}}) {
      UdpConfig config;
      config.listen = Endpoint{"udp", kHere, kPort};
      config.destinations = {Endpoint{"udp", kGroup, 6300}};
      config.source_port = source_port;
      config.group_sending = {.ttl = ttl, .loop = ttl == 5};
      UdpLink link(config);
      link.send({&packet, 1}, 0);
      EXPECT_EQ(there->next_ttl(data, 1000), ttl);
      EXPECT_EQ(here.next_ttl(data, ttl == 5 ? 1000 : 50), ttl == 5 ? 5 : 0);
      EXPECT_EQ(link.stats().tx_packets, 1u);
    }
  }
}

TEST(XdpMulticast, SendingReachesMembersWithTheTtl) {
  if (no_hosts() || cannot_run()) return;
  const GroupHosts hosts;
  std::optional<Member> there;
  hosts.there([&] { there.emplace("nanet1", std::uint16_t{6300}); });
  XdpConfig config = listening_here();
  config.listen->address = kOtherGroup;  // what is sent comes from the interface's own address all the same
  config.interface = "nanet0";
  config.destinations = {Endpoint{"udp", kGroup, 6300}};
  config.group_sending.ttl = 3;
  const std::unique_ptr<Link> link = open_xdp(config);
  const Bytes data = payload(1, 1168);
  const TxPacket packet{data.data(), 1168, 0};
  link->send({&packet, 1}, 0);
  EXPECT_EQ(there->next_ttl(data, 1000), 3);
}

}  // namespace
}  // namespace nanet::link::test
