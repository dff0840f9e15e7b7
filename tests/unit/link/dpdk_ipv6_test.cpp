// SPDX-License-Identifier: Apache-2.0
// The DPDK link with IPv6 addresses: against the kernel's own network stack, which finds it by neighbour discovery, and byte by byte.
#include <fstream>

#include "dpdk_support.hpp"
#include "lent.hpp"
#include "socket6.hpp"

namespace nanet::link::test {
namespace {

const IpAddress kFar6 = parse_endpoint("udp://[2001:db8:77::1]:0").address;
const IpAddress kNear6 = parse_endpoint("udp://[2001:db8:77::2]:0").address;
constexpr const char* kFarText = "2001:db8:77::1";
constexpr const char* kNearText = "2001:db8:77::2";
constexpr std::size_t kMost = 1452;  // of an MTU of 1500

DpdkConfig on6(const std::string& device) {
  DpdkConfig config = on(device);
  config.listen = Endpoint{"dpdk", kNear6, kPort};
  config.packet_bytes_max = kMost;
  return config;
}

void in_own_ipv6_network(const std::function<void()>& scenario) {
  in_own_network([&] {
    if (::access("/proc/sys/net/ipv6", F_OK) != 0) {
      std::printf("NOT RUN: a test of DPDK over IPv6 (the kernel has none)\n");
      return;
    }
    ASSERT_EQ(run("echo 0 >/proc/sys/net/ipv6/conf/far/disable_ipv6"), 0);
    ASSERT_EQ(run(std::string("ip -6 addr add ") + kFarText + "/64 dev far nodad"), 0);
    scenario();
  });
}

// Takes `count` packets and looks at their bytes and sender.
void expect_packets(Link& link, const std::vector<Bytes>& expected, std::uint16_t port) {
  Bytes room(std::size_t{1} << 17);
  std::vector<RxPacket> entries(100);
  std::size_t next = 0;
  for (int idle = 0; next < expected.size() && idle < 20;) {
    const RxBatch batch = link.receive(room, entries, 0);
    for (const RxPacket& packet : std::span(entries).first(batch.packet_count)) {
      ASSERT_LT(next, expected.size());
      const auto begin = room.begin() + packet.offset;
      EXPECT_EQ(Bytes(begin, begin + packet.bytes), expected[next]) << next;
      ASSERT_LT(packet.peer_address, link.peers().size());
      EXPECT_EQ(link.peers()[packet.peer_address], kFar6);
      EXPECT_EQ(packet.peer_port, port);
      ++next;
    }
    idle = batch.packet_count != 0 ? 0 : idle + 1;
    if (batch.packet_count == 0) link.wait(50'000'000);
  }
  EXPECT_EQ(next, expected.size());
}

void exchange(const std::string& device, DpdkMemory memory = DpdkMemory::dpdk) {
  Socket6 far(kFarText);
  DpdkConfig config = on6(device);
  config.payload_memory = memory;
  config.destinations = {Endpoint{"udp", kFar6, far.port()}};
  const auto link = open_dpdk(config);
  EXPECT_EQ(link->local(), (Endpoint{"dpdk", kNear6, kPort}));
  ASSERT_EQ(run("ip -6 neigh flush dev far"), 0);  // so the kernel has to ask where the link is
  std::uint32_t sent = 0;
  std::uint64_t bytes = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<Bytes> expected;
    for (int i = 0; i < 30; ++i, ++sent) {
      expected.push_back(payload(sent, (sent * 37) % (kMost + 1)));
      far.send(kNearText, kPort, expected.back());
      bytes += expected.back().size();
    }
    expect_packets(*link, expected, far.port());
  }
  far.send(kNearText, kPort + 1, payload(1, 100));  // another port
  std::vector<Bytes> answers;
  std::vector<TxPacket> packets;
  for (std::uint32_t i = 0; i < 100; ++i) answers.push_back(payload(i, (i * 53) % (kMost + 1)));
  for (const Bytes& answer : answers) packets.push_back({answer.data(), static_cast<std::uint32_t>(answer.size()), 0});
  const Bytes long_one(kMost + 1);
  packets.push_back({long_one.data(), static_cast<std::uint32_t>(long_one.size()), 0});  // above the MTU
  link->send(packets, 0);
  for (const Bytes& answer : answers) {
    const auto packet = far.receive();  // whose kernel checks the checksum
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->first, answer);
    EXPECT_EQ(packet->second, kPort);
  }
  expect_packets(*link, {}, 0);
  link->receive({}, {}, 0);
  EXPECT_TRUE(collect(*link, 1).empty());
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.rx_packets, sent);
  EXPECT_EQ(stats.rx_bytes, bytes);
  EXPECT_GE(stats.rx_foreign, 1u);  // and what the kernel says to all routers
  EXPECT_EQ(stats.rx_malformed + stats.rx_truncated + stats.rx_kernel_dropped + stats.rx_errors, 0u);
  EXPECT_EQ(stats.tx_packets, answers.size());
  EXPECT_EQ(stats.tx_dropped, 1u);
}

TEST(DpdkIpv6, PacketSocketExchangesWithTheKernel) {
  with_dpdk([] { in_own_ipv6_network([] { exchange("net_af_packet0,iface=near"); }); });
}

TEST(DpdkIpv6, PacketSocketExchangesWithTheKernelInMemoryOfTheLinksOwn) {
  with_dpdk([] { in_own_ipv6_network([] { exchange("net_af_packet0,iface=near", DpdkMemory::host); }); });
}

TEST(DpdkIpv6, AfXdpExchangesWithTheKernel) {
  with_dpdk([] { in_own_ipv6_network([] { exchange("net_af_xdp0,iface=near"); }); });
}

TEST(DpdkIpv6, PayloadsStayInPlace) {
  with_dpdk([] {
    in_own_ipv6_network([] {
      Socket6 far(kFarText);
      DpdkConfig config = on6("net_af_packet0,iface=near");
      config.payload_memory = DpdkMemory::host;
      config.payloads = Payloads::in_place;
      config.lent_max = 256;
      const auto link = open_dpdk(config);
      std::vector<Bytes> expected;
      for (std::uint32_t i = 0; i < 100; ++i) {
        expected.push_back(payload(i, (i * 41) % (kMost + 1)));
        far.send(kNearText, kPort, expected.back());
      }
      Lent lent(*link);
      lent.collect(expected.size());
      ASSERT_EQ(lent.all().size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(lent.all()[i].data(), expected[i]) << i;
      ASSERT_EQ(link->peers().size(), 1u);
      EXPECT_EQ(link->peers()[0], kFar6);
    });
  });
}

// The interface hears the group of those who look for the link only while there is one.
TEST(DpdkIpv6, TheInterfaceJoinsItsGroup) {
  with_dpdk([] {
    in_own_ipv6_network([] {
      const std::string heard = "ip maddress show dev near | grep -qi 33:33:ff:00:00:02";
      EXPECT_NE(run(heard), 0);
      {
        const auto link = open_dpdk(on6("net_af_packet0,iface=near"));
        EXPECT_EQ(run(heard), 0);
      }
      EXPECT_NE(run(heard), 0);
    });
  });
}

using Frame = std::vector<std::uint8_t>;

Frame hex(const std::string& text) {
  Frame frame;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    frame.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return frame;
}

void write_pcap(const std::string& path, const std::vector<Frame>& frames) {
  std::ofstream file(path, std::ios::binary);
  const auto put32 = [&](std::uint32_t value) { file.write(reinterpret_cast<const char*>(&value), 4); };
  for (const std::uint32_t word : {0xA1B2C3D4u, 0x00040002u, 0u, 0u, 65'535u, 1u}) put32(word);
  for (const Frame& frame : frames) {
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    for (const std::uint32_t word : {0u, 0u, bytes, bytes}) put32(word);
    file.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
  }
}

std::vector<Frame> read_pcap(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const Frame all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<Frame> frames;
  for (std::size_t at = 24; at + 16 <= all.size();) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, all.data() + at + 8, 4);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at + 16);
    frames.emplace_back(begin, begin + bytes);
    at += 16 + bytes;
  }
  return frames;
}

// Literal bytes in, literal bytes out, with checksums that other code has computed. The driver's own Ethernet address is 02:70:63:61:70:00.
TEST(DpdkIpv6, FramesAreToldApartByTheirBytes) {
  const Frame ask = hex(
      "3333ff00000206010203040586dd6000000000203aff20010db8007700000000000000000001ff0200000000000000000001ff0000028700113100000000"
      "2001"
      "0db80077000000000000000000020101060102030405");
  const Frame told = hex(
      "06010203040502706361700086dd6000000000203aff20010db800770000000000000000000220010db80077000000000000000000018800b53c60000000"
      "2001"
      "0db80077000000000000000000020201027063617000");
  const Frame wanted = hex(  // by someone who has no address yet
      "3333ff00000206010203040586dd6000000000183aff00000000000000000000000000000000ff0200000000000000000001ff00000287004c7400000000"
      "2001"
      "0db8007700000000000000000002");
  const Frame taken = hex(
      "33330000000102706361700086dd6000000000203aff20010db8007700000000000000000002ff0200000000000000000000000000018800246a20000000"
      "2001"
      "0db80077000000000000000000020201027063617000");
  const Frame udp = hex(
      "02706361700006010203040586dd60000000000b114020010db800770000000000000000000120010db8007700000000000000000002012c1838000bc5ae"
      "6162"
      "63");
  const Frame ping = hex(
      "02706361700006010203040586dd60000000000b3a4020010db800770000000000000000000120010db800770000000000000000000280000d2012340001"
      "0102"
      "03");
  const Frame pong = hex(
      "06010203040502706361700086dd60000000000b3a4020010db800770000000000000000000220010db800770000000000000000000181000c2012340001"
      "0102"
      "03");
  const auto changed = [](Frame frame, std::size_t at, std::uint8_t value) {
    frame[at] = value;
    return frame;
  };
  Frame tagged = udp;
  tagged.insert(tagged.begin() + 12, {0x81, 0, 0, 5});
  Frame options = changed(changed(udp, 20, 60), 19, 19);  // a destination header before UDP
  options.insert(options.begin() + 54, {17, 0, 1, 4, 0, 0, 0, 0});
  Frame fragment = changed(changed(udp, 20, 44), 19, 19);
  fragment.insert(fragment.begin() + 54, {17, 0, 0, 1, 0, 0, 0, 9});

  with_dpdk([&] {
    in_own_process([&] {
      char in[] = "/tmp/nanet_dpdk_XXXXXX";
      char out[] = "/tmp/nanet_dpdk_XXXXXX";
      ASSERT_TRUE(::mkstemp(in) >= 0 && ::mkstemp(out) >= 0);
      write_pcap(in, {ask, udp, wanted, tagged, ping, options, changed(ask, 21, 254),  // a router has let it through
                      changed(ask, 56, 0x12),                                          // a wrong checksum
                      changed(ask, 77, 9),                                             // and so is this one's
                      Frame(ask.begin(), ask.end() - 9), changed(ping, 56, 0x0E),      // again
                      changed(udp, 53, 3),                                             // another address
                      changed(udp, 57, 0x39),                                          // another port
                      changed(udp, 20, 6),                                             // TCP
                      changed(udp, 59, 12),                                            // UDP longer than the packet
                      changed(udp, 59, 7),                                             // UDP length below 8
                      changed(udp, 19, 12),                                            // the packet longer than the frame
                      fragment});
      {
        const auto link = open_dpdk(on6(std::string("net_pcap0,rx_pcap=") + in + ",tx_pcap=" + out));
        const std::vector<Got> got = collect(*link, 100);
        ASSERT_EQ(got.size(), 3u);
        for (const Got& one : got) {
          EXPECT_EQ(one.data, (Bytes{std::byte{'a'}, std::byte{'b'}, std::byte{'c'}}));
          EXPECT_EQ(one.packet.peer_port, 300);
        }
        const LinkStats stats = link->stats();
        EXPECT_EQ(stats.rx_malformed, 4u);
        EXPECT_EQ(stats.rx_foreign, 8u);
      }
      EXPECT_EQ(read_pcap(out), (std::vector<Frame>{told, taken, pong}));
      ::unlink(in);
      ::unlink(out);
    });
  });
}

TEST(DpdkIpv6, FaultsOfTheConfigurationAreExplained) {
  with_dpdk([] {
    in_own_process([] {  // one of them is found only after DPDK was started
      const auto expect = [](const DpdkConfig& config, const std::string& part) {
        const std::string problem = problem_of(config);
        EXPECT_TRUE(contains(problem, part)) << (problem.empty() ? "nothing was wrong" : problem);
      };
      DpdkConfig config = on6("net_ring0");
      config.destinations = {Endpoint{"udp", kFar, 9}};
      expect(config, "is of one family, and its own address is 2001:db8:77::2");
      config.destinations = {Endpoint{"udp", parse_endpoint("udp://[2001:db8:78::1]:9").address, 9}};
      expect(config, "no gateway is set");
      config.gateway = "10.77.0.1";
      expect(config, "it is no IPv6 address of its own network");
      config.gateway = "2001:db8:78::9";
      expect(config, "it is no IPv6 address of its own network");
      config.gateway = "fe80::9";
      config.arp_wait_ms = 1;
      expect(config, "fe80::9 did not answer NDP within 1 ms");
      config = on6("net_ring0");
      config.address = "2001:db8:77::2/129";
      expect(config, "no IPv4 or IPv6 address with prefix length");
      config.address = "2001:db8:77::3/64";
      expect(config, "its own address is 2001:db8:77::3/64");
      config = on6("net_ring0");
      config.listen = Endpoint{"dpdk", parse_endpoint("udp://[ff05::1]:0").address, kPort};
      expect(config, "it is a multicast group");
      config = on6("net_ring0");
      config.payload_memory = DpdkMemory::gpu;
      config.payloads = Payloads::in_place;
      config.split_bytes = 66;
      expect(config, "set split_bytes: 86");
    });
  });
}

}  // namespace
}  // namespace nanet::link::test
