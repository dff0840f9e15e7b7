// SPDX-License-Identifier: Apache-2.0
// After set-up a link allocates nothing: every operator new of this program is counted.
#include <unistd.h>

#include <cstdlib>

#include "../allocation_count.hpp"
#include "link/pcap/pcap_link.hpp"
#include "nanet/link/fault_injector.hpp"
#include "nanet/link/recorder.hpp"
#include "sockets.hpp"

namespace nanet::link::test {
namespace {

TEST(Allocation, TheCounterCounts) {
  const std::uint64_t before = nanet::test::allocation_count;
  const auto number = std::make_unique<int>(1);
  EXPECT_EQ(*number, 1);
  EXPECT_GT(nanet::test::allocation_count, before);
}

class Allocation : public testing::TestWithParam<Coalesce> {};
INSTANTIATE_TEST_SUITE_P(Coalescing, Allocation, testing::Values(Coalesce::on, Coalesce::off),
                         [](const auto& which) { return which.param == Coalesce::on ? "on" : "off"; });

TEST_P(Allocation, NoneInReceiveAndSend) {
  auto owned = std::make_unique<UdpLink>(listening(GetParam()));
  const std::uint16_t port = owned->local().port;
  FaultConfig faults;
  faults.duplicate = faults.reorder = faults.corrupt = faults.truncate = faults.delay = faults.loss = 0.01;
  FaultInjector receiver(std::move(owned), faults);
  UdpConfig config = sending_to({port, 9});  // no one is at the second
  config.gso = GetParam();
  UdpLink sender(config);
  const Bytes data = payload(1, 1168);
  std::vector<TxPacket> packets(20, TxPacket{data.data(), 1168, 0});
  packets[3].bytes = 1000;
  packets[7].bytes = 0;
  packets[9].destination = 1;
  packets[11].destination = 2;  // not configured
  Bytes room(std::size_t{1} << 18);
  std::vector<RxPacket> entries(256);
  std::uint64_t received = 0;
  const std::uint64_t before = nanet::test::allocation_count;
  for (std::uint64_t round = 0; round < 500; ++round) {
    sender.send(packets, round * 1000);
    for (int i = 0; i < 4; ++i) {
      received += receiver.receive(room, entries, round * 1000).packet_count;
      receiver.wait(1000);
    }
    (void)receiver.stats();
  }
  const std::uint64_t after = nanet::test::allocation_count;
  EXPECT_EQ(after, before);
  EXPECT_EQ(sender.stats().tx_packets + sender.stats().tx_dropped, 10'000u);
  EXPECT_GT(received, 8000u);
}

TEST(Allocation, NoneInPlayingAFile) {
  char file[] = "/tmp/nanet-allocation-XXXXXX";
  const int opened = ::mkstemp(file);
  ASSERT_GE(opened, 0);
  ::close(opened);
  {
    auto sender = std::make_unique<UdpLink>(sending_to({9}));
    RecorderConfig config;
    config.path = file;
    config.destinations.resize(1);
    Recorder recorder(std::move(sender), config);
    const Bytes data = payload(1, 1168);
    const std::vector<TxPacket> packets(64, TxPacket{data.data(), 1168, 0});
    for (int round = 0; round < 50; ++round) recorder.send(packets, 0);
  }
  PcapLink link({.path = file, .pace = ReplayPace::maximum});
  ::unlink(file);
  Bytes room(std::size_t{1} << 16);
  std::vector<RxPacket> entries(64);
  std::uint64_t received = 0;
  const std::uint64_t before = nanet::test::allocation_count;
  while (!link.finished()) {
    received += link.receive(room, entries, 0).packet_count;
    link.wait(1000);
    (void)link.stats();
  }
  const std::uint64_t after = nanet::test::allocation_count;
  EXPECT_EQ(after, before);
  EXPECT_EQ(received, 3200u);
}

}  // namespace
}  // namespace nanet::link::test
