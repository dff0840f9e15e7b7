// SPDX-License-Identifier: Apache-2.0
// The sending half of the UDP link over real loopback sockets, and its set-up.
#include <linux/capability.h>
#include <sys/syscall.h>

#include <array>
#include <fstream>
#include <thread>

#include "nanet/setup_error.hpp"
#include "sockets.hpp"

namespace nanet::link::test {
namespace {

std::vector<TxPacket> packets_of(const std::vector<Bytes>& payloads, std::uint32_t destination = 0) {
  std::vector<TxPacket> packets;
  for (const Bytes& data : payloads) {
    packets.push_back({data.data(), static_cast<std::uint32_t>(data.size()), destination});
  }
  return packets;
}

std::vector<Bytes> payloads(std::uint32_t first, const std::vector<std::size_t>& sizes) {
  std::vector<Bytes> result;
  for (const std::size_t bytes : sizes) {
    result.push_back(payload(first++, bytes));
  }
  return result;
}

// The link's own socket to that port, found from outside.
int socket_connected_to(std::uint16_t port) {
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 && ntohs(peer.sin_port) == port) {
      return fd;
    }
  }
  return -1;
}

std::string problem_of(const UdpConfig& config) {
  try {
    UdpLink link(config);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

class Send : public testing::TestWithParam<Coalesce> {};
INSTANTIATE_TEST_SUITE_P(Gso, Send, testing::Values(Coalesce::on, Coalesce::off),
                         [](const auto& which) { return which.param == Coalesce::on ? "on" : "off"; });

TEST_P(Send, EverySizeArrivesInOrder) {
  PlainSocket receiver;
  UdpConfig config = sending_to({receiver.port()});
  config.gso = GetParam();
  UdpLink link(config);
  const auto data = payloads(0, {1168, 1168, 1168, 40, 1168, 0, 0, 1, 1, 2, 1, 0, 1472, 1472, 65507, 3, 30000, 30000, 30000, 8});
  link.send(packets_of(data), 0);
  for (const Bytes& expected : data) {
    const auto got = receiver.receive();
    ASSERT_TRUE(got);
    ASSERT_EQ(got->first, expected);
  }
  EXPECT_FALSE(receiver.receive(0));
  const LinkStats stats = link.stats();
  EXPECT_EQ(stats.tx_packets, data.size());
  std::size_t bytes = 0;
  for (const Bytes& one : data) {
    bytes += one.size();
  }
  EXPECT_EQ(stats.tx_bytes, bytes);
  EXPECT_EQ(stats.tx_dropped, 0u);
  EXPECT_EQ(stats.tx_calls, 1u);
}

TEST_P(Send, DestinationsGetTheirOwn) {
  PlainSocket first;
  PlainSocket second;
  UdpConfig config = sending_to({first.port(), second.port()});
  config.gso = GetParam();
  UdpLink link(config);
  const auto data = payloads(0, std::vector<std::size_t>(60, 500));
  std::vector<TxPacket> packets = packets_of(data);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    packets[i].destination = (i / 7) % 2;
  }
  packets[30].destination = 9;  // no such destination
  std::array<bool, 60> dropped{};
  for (std::size_t i = 0; i < packets.size(); ++i) packets[i].dropped = &dropped[i];
  link.send(packets, 0);
  for (std::size_t i = 0; i < packets.size(); ++i) EXPECT_EQ(dropped[i], i == 30) << i;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (i != 30) {
      const auto got = ((i / 7) % 2 == 0 ? first : second).receive();
      ASSERT_TRUE(got);
      ASSERT_EQ(got->first, data[i]) << i;
    }
  }
  EXPECT_EQ(link.stats().tx_packets, 59u);
  EXPECT_EQ(link.stats().tx_dropped, 1u);
}

TEST(SendGso, PacketsOfOneSizeTravelAsSuperPackets) {
  UdpLink receiver(listening());
  UdpLink link(sending_to({receiver.local().port}));
  Collector collector;
  const Bytes together = payload(3, 50 * 1168);  // side by side in memory
  std::vector<TxPacket> packets;
  for (std::size_t i = 0; i < 50; ++i) {
    packets.push_back({together.data() + i * 1168, 1168, 0});
  }
  link.send(packets, 0);
  const auto got = collector.collect(receiver, 50);
  ASSERT_EQ(got.size(), 50u);
  EXPECT_EQ(receiver.stats().rx_batches, 1u);
  const auto apart = payloads(100, std::vector<std::size_t>(50, 1168));
  link.send(packets_of(apart), 0);
  const auto more = collector.collect(receiver, 50);
  ASSERT_EQ(more.size(), 50u);
  EXPECT_EQ(receiver.stats().rx_batches, 2u);
  EXPECT_EQ(link.stats().tx_calls, 2u);
  for (std::size_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(std::equal(got[i].data.begin(), got[i].data.end(), together.begin() + static_cast<std::ptrdiff_t>(i * 1168)));
    ASSERT_EQ(more[i].data, apart[i]);
  }
}

TEST(SendGso, RefusalByTheKernelFallsBackToSingles) {
  PlainSocket receiver;
  UdpLink link(sending_to({receiver.port()}));
  EXPECT_TRUE(link.notes().empty() || link.notes()[0].find("UDP_SEGMENT") == std::string::npos);
  const int fd = socket_connected_to(receiver.port());
  ASSERT_GE(fd, 0);
  const int on = 1;
  ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);  // without checksums the kernel refuses UDP_SEGMENT
  const auto data = payloads(0, std::vector<std::size_t>(30, 1168));
  for (int round = 0; round < 3; ++round) {
    link.send(packets_of(data), 0);
    for (const Bytes& expected : data) {
      const auto got = receiver.receive();
      ASSERT_TRUE(got);
      ASSERT_EQ(got->first, expected);
    }
  }
  EXPECT_EQ(link.stats().tx_packets, 90u);
  EXPECT_EQ(link.stats().tx_dropped, 0u);
  ASSERT_FALSE(link.notes().empty());
  EXPECT_NE(link.notes().back().find("refused UDP_SEGMENT"), std::string::npos) << link.notes().back();
}

TEST(SendErrors, PeerGoneIsCountedAndPeerBackIsServed) {
  std::uint16_t port = 0;
  {
    const PlainSocket gone;
    port = gone.port();
  }
  UdpLink link(sending_to({port}));
  const auto data = payloads(0, {100, 200, 300});
  for (int i = 0; i < 10; ++i) {
    link.send(packets_of(data), 0);
  }
  const LinkStats stats = link.stats();
  EXPECT_EQ(stats.tx_packets + stats.tx_dropped, 30u);
  EXPECT_GE(stats.tx_refused, 9u);
  EXPECT_LE(stats.tx_refused, 30u);
  PlainSocket back(port);
  link.send(packets_of(data), 0);  // an old notice must not cost the new packets
  for (const Bytes& expected : data) {
    const auto got = back.receive();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->first, expected);
  }
}

TEST(SendErrors, RefusalsAreCountedByDestination) {
  PlainSocket receiver;
  std::uint16_t port = 0;
  {
    const PlainSocket gone;
    port = gone.port();
  }
  UdpLink link(sending_to({receiver.port(), port}));
  const Bytes data = payload(0, 100);
  const std::vector<TxPacket> packets{{data.data(), 100, 0}, {data.data(), 100, 1}};
  for (int i = 0; i < 10; ++i) link.send(packets, 0);
  const auto refusals = link.refusals();
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals.begin()->first, "udp://127.0.0.1:" + std::to_string(port));
  EXPECT_GE(refusals.begin()->second, 9u);
  EXPECT_EQ(refusals.begin()->second, link.stats().tx_refused);
}

TEST(SendErrors, TooLongIsDroppedAndTheRestGoesOn) {
  PlainSocket receiver;
  UdpLink link(sending_to({receiver.port()}));
  const auto data = payloads(0, {10, 65508, 20});
  std::vector<TxPacket> packets = packets_of(data);
  std::array<bool, 3> dropped{};
  for (std::size_t i = 0; i < packets.size(); ++i) packets[i].dropped = &dropped[i];
  link.send(packets, 0);
  EXPECT_EQ(dropped, (std::array{false, true, false}));
  EXPECT_EQ(receiver.receive()->first, data[0]);
  EXPECT_EQ(receiver.receive()->first, data[2]);
  EXPECT_EQ(link.stats().tx_packets, 2u);
  EXPECT_EQ(link.stats().tx_dropped, 1u);
}

TEST(SendErrors, LinkWithoutDestinationsDropsAndCounts) {
  UdpLink link(listening());
  const auto data = payloads(0, {10, 20});
  link.send(packets_of(data), 0);
  EXPECT_EQ(link.stats().tx_dropped, 2u);
}

TEST(SourcePorts, OwnOrListening) {
  PlainSocket peer;
  UdpConfig config = listening();
  config.destinations = sending_to({peer.port()}).destinations;
  const auto data = payloads(0, {100, 100, 100});
  {
    UdpLink link(config);
    link.send(packets_of(data), 0);
    EXPECT_NE(peer.receive()->second, link.local().port);
    EXPECT_TRUE(peer.receive());
    EXPECT_TRUE(peer.receive());
  }
  config.source_port = SourcePort::listen;
  UdpLink link(config);
  link.send(packets_of(data), 0);
  for (const Bytes& expected : data) {
    const auto got = peer.receive();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->first, expected);
    EXPECT_EQ(got->second, link.local().port);
  }
}

TEST(SourcePorts, RefusalsOfTheListeningSocketStopNothing) {
  std::uint16_t port = 0;
  {
    const PlainSocket gone;
    port = gone.port();
  }
  UdpConfig config = listening();
  config.destinations = sending_to({port}).destinations;
  config.source_port = SourcePort::listen;
  UdpLink link(config);
  PlainSocket other;
  Collector collector;
  const auto data = payloads(0, {100});
  for (std::uint32_t i = 0; i < 20; ++i) {
    link.send(packets_of(data), 0);
    other.send(link.local().port, payload(i, 64));
    const auto got = collector.collect(link, 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].data, payload(i, 64));
  }
  const LinkStats stats = link.stats();
  EXPECT_EQ(stats.tx_packets + stats.tx_dropped, 20u);
  EXPECT_GE(stats.tx_refused, 19u);
  EXPECT_LE(stats.tx_refused, 20u);
  EXPECT_EQ(stats.rx_errors, 0u);
}

TEST(Setup, SaysWhatIsWrong) {
  EXPECT_NE(problem_of(UdpConfig{}).find("has nothing to do"), std::string::npos);
  UdpConfig config = listening();
  const PlainSocket holder;
  config.listen->port = holder.port();
  EXPECT_NE(problem_of(config).find("ss -ulpn 'sport = :" + std::to_string(holder.port()) + "'"), std::string::npos)
      << problem_of(config);
  config = listening();
  config.listen->address = 0xC6336401;  // 198.51.100.1, reserved for documents
  EXPECT_NE(problem_of(config).find("0.0.0.0 for all"), std::string::npos) << problem_of(config);
  config = listening();
  config.listen->scheme = "upd";
  EXPECT_NE(problem_of(config).find("scheme 'upd' is not udp"), std::string::npos);
  EXPECT_NE(problem_of(sending_to({0})).find("a destination needs an address and a port"), std::string::npos);
  config = listening();
  config.packet_bytes_max = 65508;
  EXPECT_NE(problem_of(config).find("1..65507"), std::string::npos);
  config = listening();
  config.rx_socket_bytes = (1u << 30) + 1;
  EXPECT_NE(problem_of(config).find("at most 1073741824"), std::string::npos);
  config = sending_to({9});
  config.source_port = SourcePort::listen;
  EXPECT_NE(problem_of(config).find("listen is not set"), std::string::npos);
}

TEST(Setup, LimitedSocketBufferIsNoted) {
  std::uint64_t limit = 0;
  std::ifstream("/proc/sys/net/core/rmem_max") >> limit;
  UdpConfig config = listening();
  config.rx_socket_bytes = 1u << 30;
  std::vector<std::string> notes;
  // Capabilities belong to a thread: this one gives up what would let it pass the limit.
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2]{};
    ASSERT_EQ(::syscall(SYS_capset, &header, none), 0);
    notes = UdpLink(config).notes();
  }).join();
  if (limit >= config.rx_socket_bytes) {
    EXPECT_TRUE(notes.empty());
  } else {
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("the receive buffer holds"), std::string::npos) << notes[0];
    EXPECT_NE(notes[0].find("sysctl -w net.core.rmem_max=1073741824"), std::string::npos) << notes[0];
  }
}

TEST(Threads, OneReceivesOneSendsOneReadsTheBooks) {
  UdpConfig config = listening();
  UdpLink first(config);
  config.destinations = {first.local()};
  UdpLink second(config);  // sends to the first
  constexpr std::uint32_t kRounds = 300;
  std::atomic<std::uint32_t> received{0};
  std::atomic<bool> done{false};
  std::thread receiver([&] {
    Bytes room(std::size_t{1} << 17);
    std::vector<RxPacket> entries(256);
    while (!done) {
      received += first.receive(room, entries, 0).packet_count;
      first.wait(1'000'000);
    }
    received += first.receive(room, entries, 0).packet_count;
  });
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!done) {
      const LinkStats stats = first.stats();
      EXPECT_GE(stats.rx_packets, last);
      last = stats.rx_packets;
      std::this_thread::yield();
    }
  });
  const auto data = payloads(0, std::vector<std::size_t>(10, 100));
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    second.send(packets_of(data), 0);
    while (first.stats().rx_packets + first.stats().rx_kernel_dropped * 64 < (i + 1) * 10) {
      std::this_thread::yield();
    }
  }
  done = true;
  receiver.join();
  reader.join();
  EXPECT_EQ(second.stats().tx_packets, kRounds * 10);
  EXPECT_EQ(received, first.stats().rx_packets);
  EXPECT_EQ(first.stats().rx_kernel_dropped, 0u);
  EXPECT_EQ(received, kRounds * 10);
}

TEST(Interface, IsKeptToOrRefused) {
  PlainSocket receiver;
  UdpConfig config = sending_to({receiver.port()});
  config.interface = "lo";
  UdpLink link(config);
  link.send(packets_of({payload(0, 100)}), 0);
  EXPECT_TRUE(receiver.receive());
  config.interface = "nosuchthing";
  EXPECT_NE(problem_of(config).find("cannot keep to interface nosuchthing"), std::string::npos);
  config.destinations.clear();
  config.listen = parse_endpoint("udp://127.0.0.1:0");
  EXPECT_NE(problem_of(config).find("cannot keep to interface nosuchthing"), std::string::npos);
}

}  // namespace
}  // namespace nanet::link::test
