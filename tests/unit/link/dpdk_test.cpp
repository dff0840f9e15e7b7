// SPDX-License-Identifier: Apache-2.0
// The DPDK link on virtual devices, against the kernel's own network stack at the other end.
#include "nanet/link/dpdk.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <thread>

#include "dpdk_support.hpp"
#include "nanet/link/recorder.hpp"

namespace nanet::link::test {
namespace {

// Packets of many sizes from an ordinary socket, the answers back to it, and who asks for the station is answered.
void exchange(const std::string& device, DpdkMemory memory = DpdkMemory::dpdk) {
  FarSocket far;
  DpdkConfig config = on(device);
  config.payload_memory = memory;
  config.destinations = {Endpoint{"udp", kFar, far.port()}};
  const auto link = open_dpdk(config);
  EXPECT_EQ(link->local(), (Endpoint{"dpdk", kNear, kPort}));

  std::uint32_t sent = 0;
  std::uint64_t bytes = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<Bytes> expected;
    for (int i = 0; i < 30; ++i, ++sent) {
      expected.push_back(payload(sent, round == 0 ? 1168 : (sent * 37) % 1473));
      ASSERT_TRUE(far.send(kPort, expected.back()));
      bytes += expected.back().size();
    }
    const std::vector<Got> got = collect(*link, expected.size());
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].data, expected[i]) << "packet " << i << " of round " << round;
      EXPECT_EQ(got[i].packet.peer_address, kFar);
      EXPECT_EQ(got[i].packet.peer_port, far.port());
      EXPECT_EQ(got[i].packet.offset % 8, 0u);
      EXPECT_EQ(got[i].packet.flags, 0u);
    }
  }
  ASSERT_TRUE(far.send(kPort + 1, payload(1, 100)));  // another port
  std::vector<Bytes> answers;
  std::vector<TxPacket> packets;
  for (std::uint32_t i = 0; i < 150; ++i) answers.push_back(payload(i, (i * 53) % 1473));
  for (const Bytes& answer : answers) packets.push_back({answer.data(), static_cast<std::uint32_t>(answer.size()), 0});
  const Bytes long_one(1473);
  packets.push_back({long_one.data(), 1473, 0});  // above the MTU
  packets.push_back({long_one.data(), 10, 1});    // no such destination
  const auto dropped = std::make_unique<bool[]>(packets.size());
  for (std::size_t i = 0; i < packets.size(); ++i) packets[i].dropped = &dropped[i];
  link->send(packets, 0);
  for (std::size_t i = 0; i < packets.size(); ++i) EXPECT_EQ(dropped[i], i >= answers.size()) << i;
  for (const Bytes& answer : answers) {
    const auto packet = far.receive();  // whose kernel checks both checksums
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->data, answer);
    EXPECT_EQ(packet->address, kNear);
    EXPECT_EQ(packet->port, kPort);
  }
  EXPECT_TRUE(collect(*link, 1).empty());
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.rx_packets, sent);
  EXPECT_EQ(stats.rx_bytes, bytes);
  EXPECT_EQ(stats.rx_copied_bytes, bytes);
  EXPECT_EQ(stats.rx_foreign, 1u);
  EXPECT_EQ(stats.rx_malformed + stats.rx_truncated + stats.rx_kernel_dropped + stats.rx_errors, 0u);
  EXPECT_EQ(stats.tx_packets, answers.size());
  EXPECT_EQ(stats.tx_dropped, 2u);
  for (const std::string& note : link->notes())
    EXPECT_TRUE(contains(note, "region 'payloads of link dpdk'")) << note;  // no huge pages
  EXPECT_EQ(contains(link->path(), "received into memory of the link's own"), memory == DpdkMemory::host) << link->path();
  EXPECT_TRUE(contains(link->path(), device.substr(0, device.find('0')))) << link->path();
}

TEST(Dpdk, PacketSocketExchangesWithTheKernel) {
  with_dpdk([] { in_own_network([] { exchange("net_af_packet0,iface=near"); }); });
}

TEST(Dpdk, PacketSocketExchangesWithTheKernelInMemoryOfTheLinksOwn) {
  with_dpdk([] { in_own_network([] { exchange("net_af_packet0,iface=near", DpdkMemory::host); }); });
}

TEST(Dpdk, AfXdpExchangesWithTheKernel) {
  with_dpdk([] { in_own_network([] { exchange("net_af_xdp0,iface=near"); }); });
}

// A device that the driver makes: the kernel's end of it is the far one.
TEST(Dpdk, TapExchangesWithTheKernel) {
  with_dpdk([] {
    in_own_network([] {
      DpdkConfig config = on("net_tap0,iface=tap");
      const auto link = open_dpdk(config);
      ASSERT_EQ(run("ip address del 10.77.0.1/24 dev far && ip address add 10.77.0.1/24 dev tap && ip link set tap up"), 0);
      FarSocket far;
      ASSERT_TRUE(far.send(kPort, payload(7, 1168)));
      const std::vector<Got> got = collect(*link, 1);
      ASSERT_EQ(got.size(), 1u);
      EXPECT_EQ(got[0].data, payload(7, 1168));
    });
  });
}

TEST(Dpdk, JumboPacketsTakeTheRing) {
  with_dpdk([] {
    in_own_network([] {
      ASSERT_EQ(run("ip link set near mtu 9100 && ip link set far mtu 9100"), 0);
      DpdkConfig config = on("net_af_packet0,iface=near");
      config.packet_bytes_max = 9014;
      config.descriptors = 64;
      const auto link = open_dpdk(config);
      FarSocket far;
      for (const std::uint32_t bytes : {9014u, 8972u, 1u}) {
        ASSERT_TRUE(far.send(kPort, payload(bytes, bytes)));
        const std::vector<Got> got = collect(*link, 1);
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].data, payload(bytes, bytes));
      }
    });
  });
}

TEST(Dpdk, PacketsOfOneSizeLieBackToBackAndTheRestWaits) {
  with_dpdk([] {
    in_own_network([] {
      const auto link = open_dpdk(on("net_af_packet0,iface=near"));
      EXPECT_EQ(link->min_room_bytes(), 1472u);
      FarSocket far;
      constexpr std::uint32_t kCount = 40;
      for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_TRUE(far.send(kPort, payload(i, 1168)));
      Bytes room(std::size_t{1168} * 10 + 1000);  // ten, and not eleven
      std::vector<RxPacket> entries(7);           // at first fewer entries than would fit
      std::uint32_t next = 0;
      for (int calls = 0; calls < 1000 && next < kCount; ++calls) {
        if (next >= 7) entries.resize(64);
        const RxBatch batch = link->receive(room, entries, 0);
        EXPECT_LE(batch.packet_count, std::min<std::size_t>(entries.size(), 10));
        EXPECT_EQ(batch.bytes_used, batch.packet_count * 1168);
        for (std::uint32_t i = 0; i < batch.packet_count; ++i, ++next) {
          EXPECT_EQ(entries[i].offset, i * 1168);
          EXPECT_EQ(std::memcmp(room.data() + entries[i].offset, payload(next, 1168).data(), 1168), 0);
        }
        if (batch.packet_count == 0) link->wait(10'000'000);
      }
      EXPECT_EQ(next, kCount);
      ASSERT_TRUE(far.send(kPort, payload(1, 1168)));
      link->wait(1'000'000'000);
      const RxBatch cut = link->receive(std::span(room).first(100), entries, 0);
      ASSERT_EQ(cut.packet_count, 1u);
      EXPECT_EQ(entries[0].bytes, 100u);
      EXPECT_EQ(entries[0].flags, RxPacket::truncated);
      EXPECT_EQ(link->stats().rx_truncated, 1u);
    });
  });
}

// What the driver does not tell, the kernel does: nothing is lost without a count.
void overload(const std::string& device) {
  DpdkConfig config = on(device);
  config.descriptors = 64;
  const auto link = open_dpdk(config);
  FarSocket far;
  std::uint64_t sent = 0;
  ASSERT_TRUE(far.send(kPort, payload(0, 100)));  // the kernel learns where the link is
  sent += collect(*link, 1).size();
  ASSERT_EQ(sent, 1u);
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < 5000; ++i) sent += far.send(kPort, payload(i, 1168)) ? 1 : 0;
    collect(*link, sent);
  }
  const LinkStats stats = link->stats();
  EXPECT_GT(stats.rx_kernel_dropped, 0u);
  EXPECT_EQ(stats.rx_packets + stats.rx_kernel_dropped, sent);
  EXPECT_EQ(link->stats().rx_kernel_dropped, stats.rx_kernel_dropped);  // reading takes nothing away
}

TEST(Dpdk, OverloadOfAPacketSocketBalances) {
  with_dpdk([] { in_own_network([] { overload("net_af_packet0,iface=near"); }); });
}

TEST(Dpdk, OverloadOfAfXdpBalances) {
  with_dpdk([] { in_own_network([] { overload("net_af_xdp0,iface=near"); }); });
}

// That driver gives the kernel 2048 frames, whatever it is told: a ring of 4096 holds no more while no one reads.
TEST(Dpdk, AfXdpSaysHowLittleItHolds) {
  with_dpdk([] {
    in_own_network([] {
      DpdkConfig config = on("net_af_xdp0,iface=near,busy_budget=0");
      config.descriptors = 4096;
      const auto link = open_dpdk(config);
      EXPECT_TRUE(contains(link->notes().at(0), "no more than 2048 packets wait while no one reads, not 4096")) << link->notes()[0];
      FarSocket far;
      ASSERT_TRUE(far.send(kPort, payload(0, 100)));  // the kernel learns where the link is
      ASSERT_EQ(collect(*link, 1).size(), 1u);
      std::uint64_t sent = 1;
      for (std::uint32_t i = 0; i < 4000; ++i) sent += far.send(kPort, payload(i, 100)) ? 1 : 0;
      EXPECT_EQ(collect(*link, sent).size(), 2048u);
      EXPECT_EQ(link->stats().rx_kernel_dropped, sent - 1 - 2048);
    });
  });
}

// Looks for an echo answer with this payload.
bool pings(FarSocket& raw, std::uint16_t number) {
  std::vector<std::byte> request(56);
  request[0] = std::byte{8};
  request[4] = std::byte{0x12};
  request[7] = static_cast<std::byte>(number);
  const std::uint16_t checksum = static_cast<std::uint16_t>(~(0x0800u + 0x1200u + number));
  request[2] = static_cast<std::byte>(checksum >> 8);
  request[3] = static_cast<std::byte>(checksum);
  if (!raw.send(0, request)) return false;
  for (int i = 0; i < 10; ++i) {
    const auto packet = raw.receive(500);
    if (!packet) return false;
    if (packet->data.size() == 76 && packet->address == kNear && packet->data[20] == std::byte{0} && packet->data[27] == request[7]) {
      // The kernel gives raw sockets packets with wrong ICMP checksums too.
      std::uint32_t sum = 0;
      for (std::size_t at = 20; at < 76; at += 2) {
        sum += std::to_integer<std::uint32_t>(packet->data[at]) << 8 | std::to_integer<std::uint32_t>(packet->data[at + 1]);
      }
      while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
      return sum == 0xFFFF;
    }
  }
  return false;
}

// A receiving and a sending thread and one that reads the books, while the receiving one also has to answer pings and ARP.
TEST(Dpdk, OneReceivesOneSendsOneReadsTheBooks) {
  with_dpdk([] {
    in_own_network([] {
      FarSocket far;
      DpdkConfig config = on("net_af_packet0,iface=near");
      config.destinations = {Endpoint{"udp", kFar, far.port()}};
      const auto link = open_dpdk(config);
      std::atomic<bool> done{false};
      std::atomic<std::uint64_t> received{0};
      std::uint64_t given = 0;
      std::thread receiver([&] {
        Bytes room(std::size_t{1} << 17);
        std::vector<RxPacket> entries(64);
        for (std::uint64_t now_ns = 1; !done; now_ns += 1'000'000'000) {  // asks for its neighbour again now and then
          received += link->receive(room, entries, now_ns).packet_count;
          link->wait(1'000'000);
        }
      });
      std::thread sender([&] {
        const Bytes data = payload(1, 200);
        const std::vector<TxPacket> packets(16, TxPacket{data.data(), 200, 0});
        while (!done) {
          link->send(packets, 0);
          given += packets.size();
          std::this_thread::yield();
        }
      });
      FarSocket raw(SOCK_RAW, IPPROTO_ICMP);
      std::uint64_t sent = 0;
      for (std::uint16_t round = 0; round < 50; ++round) {
        if (round % 10 == 0) run("ip neigh flush dev far");
        // Far's kernel drops what it cannot take of the other thread's packets, and an answer may be among them: then ping asks again.
        bool answered = false;
        for (int attempt = 0; attempt < 20 && !answered; ++attempt) answered = pings(raw, round);
        EXPECT_TRUE(answered) << round;
        sent += far.send(kPort, payload(round, 500)) ? 1 : 0;
        (void)link->stats();
      }
      for (int i = 0; i < 200 && received < sent; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      done = true;
      receiver.join();
      sender.join();
      EXPECT_EQ(received, sent);
      const LinkStats stats = link->stats();
      EXPECT_EQ(stats.tx_packets + stats.tx_dropped, given);
      EXPECT_GT(stats.tx_packets, 0u);
      EXPECT_EQ(stats.rx_packets, sent);
      EXPECT_EQ(stats.rx_malformed, 0u);
    });
  });
}

// A link that only sends is a station too: it answers ARP when it sends.
TEST(Dpdk, ASendingLinkAnswersArp) {
  with_dpdk([] {
    in_own_network([] {
      FarSocket far;
      DpdkConfig config = on("net_af_packet0,iface=near");
      config.listen.reset();
      config.address = "10.77.0.2/24";
      config.destinations = {Endpoint{"udp", kFar, far.port()}};
      const auto link = open_dpdk(config);
      EXPECT_EQ(link->local(), (Endpoint{"dpdk", 0, 0}));
      EXPECT_EQ(link->receive({}, {}, 0).packet_count, 0u);
      ASSERT_EQ(run("ip neigh flush dev far"), 0);
      const Bytes data = payload(3, 100);
      bool answered = false;
      far.send(kPort, data);  // the kernel asks
      for (std::uint64_t i = 1; i < 200 && !answered; ++i) {
        link->send(std::vector<TxPacket>{{data.data(), 100, 0}}, i * 2'000'000);
        answered = run("ip neigh show 10.77.0.2 dev far | grep -q lladdr") == 0;
      }
      EXPECT_TRUE(answered);
      const auto packet = far.receive();
      ASSERT_TRUE(packet);
      EXPECT_EQ(packet->data, data);
    });
  });
}

TEST(Dpdk, ARecordingOfIpPacketsIsPlayed) {
  with_dpdk([] {
    in_own_network([] {
      char name[] = "/tmp/nanet_dpdk_XXXXXX";
      ASSERT_GE(::mkstemp(name), 0);
      const std::vector<std::size_t> sizes{1168, 1, 0, 9000, 1472, 65'000, 40};
      {
        auto udp = std::make_unique<UdpLink>(listening());
        const Endpoint at = udp->local();
        Recorder recorder(std::move(udp), {.path = name, .local = {"udp", kNear, kPort}, .destinations = {}});
        PlainSocket plain;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          plain.send(at.port, payload(static_cast<std::uint32_t>(i), sizes[i]));
          ASSERT_EQ(Collector().collect(recorder, 1).size(), 1u);
        }
      }
      const auto link = open_dpdk(on(std::string("net_pcap0,rx_pcap=") + name));
      const std::vector<Got> got = collect(*link, sizes.size());
      ASSERT_EQ(got.size(), sizes.size());
      std::uint64_t bytes = 0;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_EQ(got[i].data, payload(static_cast<std::uint32_t>(i), sizes[i])) << sizes[i];
        bytes += sizes[i];
      }
      const LinkStats stats = link->stats();
      EXPECT_EQ(stats.rx_bytes, bytes);
      EXPECT_EQ(stats.rx_copied_bytes, bytes);  // once, though the long ones came in several buffers
      EXPECT_EQ(stats.rx_foreign + stats.rx_malformed + stats.rx_truncated, 0u);
      ::unlink(name);
    });
  });
}

using Frame = std::vector<std::uint8_t>;

void write_pcap(const std::string& path, const std::vector<Frame>& frames) {
  std::ofstream file(path, std::ios::binary);
  const auto put32 = [&](std::uint32_t value) { file.write(reinterpret_cast<const char*>(&value), 4); };
  for (const std::uint32_t word : {0xA1B2C3D4u, 0x00040002u, 0u, 0u, 65'535u, 1u}) put32(word);
  for (const Frame& frame : frames) {
    put32(0);
    put32(0);
    put32(static_cast<std::uint32_t>(frame.size()));
    put32(static_cast<std::uint32_t>(frame.size()));
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

// Literal bytes in, literal bytes out. The driver's own Ethernet address is 02:70:63:61:70:00.
TEST(Dpdk, FramesAreToldApartByTheirBytes) {
  const Frame ask{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x06, 1,  2,  3, 4, 5, 8, 6, 0, 1, 8, 0,  6,  4, 0,
                  1,    6,    1,    2,    3,    4,    5,    10, 77, 0, 1, 0, 0, 0, 0, 0, 0, 10, 77, 0, 2};
  Frame ask_other = ask;
  ask_other[41] = 9;
  Frame told{6, 1, 2,   3,   4,   5,   2, 'p', 'c', 'a', 'p', 0, 8, 6, 0, 1, 8, 0,  6,  4, 0,
             2, 2, 'p', 'c', 'a', 'p', 0, 10,  77,  0,   2,   6, 1, 2, 3, 4, 5, 10, 77, 0, 1};
  told.resize(60);
  const Frame udp{2,  'p', 'c', 'a', 'p', 0, 6, 1,  2,  3, 4, 5, 8,  0,    0x45, 0, 0,  31, 0, 0,   0x40, 0,  64,
                  17, 0,   0,   10,  77,  0, 1, 10, 77, 0, 2, 1, 44, 0x18, 0x38, 0, 11, 0,  0, 'a', 'b',  'c'};
  const auto changed = [&](std::size_t at, std::uint8_t value) {
    Frame frame = udp;
    frame[at] = value;
    return frame;
  };
  Frame tagged = udp;
  tagged.insert(tagged.begin() + 12, {0x81, 0, 0, 5});
  Frame half(udp.begin(), udp.begin() + 33);  // ends in the IPv4 header: no one's
  const Frame ping{2, 'p', 'c', 'a', 'p', 0, 6, 1,  2,  3, 4, 5, 8, 0,    0x45, 0,    0,    32, 0, 0, 0, 0, 64,
                   1, 0,   0,   10,  77,  0, 1, 10, 77, 0, 2, 8, 0, 0xAB, 0xCD, 0x12, 0x34, 0,  1, 1, 2, 3, 4};
  Frame pong{6, 1, 2, 3,  4,  5, 2, 'p', 'c', 'a', 'p', 0, 8, 0,    0x45, 0,    0,    32, 0, 0, 0, 0, 64,
             1, 0, 0, 10, 77, 0, 2, 10,  77,  0,   1,   0, 0, 0xB3, 0xCD, 0x12, 0x34, 0,  1, 1, 2, 3, 4};
  pong.resize(60);

  with_dpdk([&] {
    in_own_process([&] {
      char in[] = "/tmp/nanet_dpdk_XXXXXX";
      char out[] = "/tmp/nanet_dpdk_XXXXXX";
      ASSERT_TRUE(::mkstemp(in) >= 0 && ::mkstemp(out) >= 0);
      write_pcap(in, {ask, udp, ask_other, tagged, changed(39, 12), changed(20, 0x20), changed(33, 3), changed(37, 0x39), half,
                      ping, changed(39, 7), changed(14, 0x44), changed(23, 6)});
      {
        const auto link = open_dpdk(on(std::string("net_pcap0,rx_pcap=") + in + ",tx_pcap=" + out));
        const std::vector<Got> got = collect(*link, 100);
        ASSERT_EQ(got.size(), 2u);
        for (const Got& one : got) {
          EXPECT_EQ(one.data, (Bytes{std::byte{'a'}, std::byte{'b'}, std::byte{'c'}}));
          EXPECT_EQ(one.packet.peer_address, kFar);
          EXPECT_EQ(one.packet.peer_port, 300);
        }
        const LinkStats stats = link->stats();
        // UDP longer than the packet, a first fragment, UDP length below 8, an IPv4 header too short to be one.
        EXPECT_EQ(stats.rx_malformed, 4u);
        // ARP for another, another address, another port, half a header, TCP.
        EXPECT_EQ(stats.rx_foreign, 5u);
      }
      EXPECT_EQ(read_pcap(out), (std::vector<Frame>{told, pong}));
      ::unlink(in);
      ::unlink(out);
    });
  });
}

TEST(Dpdk, ARingGivesBackWhatWasSentAndBalancesWhenFull) {
  with_dpdk([] {
    in_own_process([] {
      for (int again = 0; again < 2; ++again) {  // a device can be opened again
        DpdkConfig config = on("net_ring0");
        config.destinations = {*config.listen};
        const auto link = open_dpdk(config);
        DpdkConfig other = on("net_ring1");
        const auto second = open_dpdk(other);  // more links share DPDK
        std::uint64_t given = 0;
        for (std::uint32_t round = 0; round < 20; ++round) {
          std::vector<Bytes> data;
          std::vector<TxPacket> packets;
          for (std::uint32_t i = 0; i < 100; ++i) data.push_back(payload(round * 100 + i, (i * 97) % 1473));
          for (const Bytes& one : data) packets.push_back({one.data(), static_cast<std::uint32_t>(one.size()), 0});
          link->send(packets, 0);
          given += packets.size();
          const std::vector<Got> got = collect(*link, 100);
          ASSERT_EQ(got.size(), 100u);
          for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(got[i].data, data[i]);
        }
        EXPECT_EQ(link->stats().tx_dropped, 0u);
        const Bytes data = payload(1, 500);
        std::vector<TxPacket> many(3000, TxPacket{data.data(), 500, 0});
        std::array<bool, 3000> dropped{};
        for (std::size_t i = 0; i < many.size(); ++i) many[i].dropped = &dropped[i];
        link->send(many, 0);
        given += many.size();
        collect(*link, many.size());
        const LinkStats stats = link->stats();
        EXPECT_GT(stats.tx_dropped, 0u);
        EXPECT_EQ(stats.tx_dropped, static_cast<std::uint64_t>(std::ranges::count(dropped, true)));
        EXPECT_EQ(stats.tx_packets + stats.tx_dropped, given);
        EXPECT_EQ(stats.rx_packets, stats.tx_packets);
        EXPECT_EQ(stats.rx_bytes, stats.tx_bytes);
        EXPECT_EQ(second->stats().rx_packets, 0u);
      }
    });
  });
}

TEST(Dpdk, TheCallingThreadKeepsItsCores) {
  with_dpdk([] {
    in_own_process([] {
      cpu_set_t before, after;
      ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
      const auto link = open_dpdk(on("net_ring0"));
      Bytes room(2000);
      RxPacket entry;
      (void)link->receive(room, {&entry, 1}, 0);
      ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
      EXPECT_TRUE(CPU_EQUAL(&before, &after));
    });
  });
}

}  // namespace
}  // namespace nanet::link::test
