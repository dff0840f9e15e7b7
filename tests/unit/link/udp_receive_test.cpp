// SPDX-License-Identifier: Apache-2.0
// The receiving half of the UDP link over real loopback sockets.
#include <algorithm>
#include <random>

#include "sockets.hpp"

namespace nanet::link::test {
namespace {

// Few enough bytes at a time that even a socket buffer of 208 KiB, the usual limit without privileges, holds them.
constexpr std::size_t kSafeBytes = 60'000;

Bytes join(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class Receive : public testing::TestWithParam<Coalesce> {};
INSTANTIATE_TEST_SUITE_P(Gro, Receive, testing::Values(Coalesce::on, Coalesce::off),
                         [](const auto& which) { return which.param == Coalesce::on ? "on" : "off"; });

TEST_P(Receive, SinglePacketsComeInOrderAndBackToBack) {
  UdpLink link(listening(GetParam()));
  PlainSocket sender;
  Collector collector;
  std::vector<Got> got;
  std::uint32_t id = 0;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 40; ++i) {
      sender.send(link.local().port, payload(id++, 1168));
    }
    const auto more = collector.collect(link, 40);
    got.insert(got.end(), more.begin(), more.end());
  }
  ASSERT_EQ(got.size(), 480u);
  for (std::uint32_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].data, payload(i, 1168)) << i;
    EXPECT_EQ(got[i].packet.peer_address, INADDR_LOOPBACK);
    EXPECT_EQ(got[i].packet.peer_port, sender.port());
    EXPECT_EQ(got[i].packet.flags, 0);
    EXPECT_EQ(got[i].packet.offset, i * 1168);
  }
  const LinkStats stats = link.stats();
  EXPECT_EQ(stats.rx_packets, 480u);
  EXPECT_EQ(stats.rx_bytes, 480u * 1168);
  EXPECT_EQ(stats.rx_kernel_dropped, 0u);
  EXPECT_EQ(stats.rx_errors, 0u);
}

TEST_P(Receive, SuperPacketsAreDescribedPacketByPacket) {
  UdpLink link(listening(GetParam()));
  PlainSocket sender;
  Collector collector;
  std::uint32_t id = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<Bytes> parts;
    for (int i = 0; i < 50; ++i) {
      parts.push_back(payload(id + static_cast<std::uint32_t>(i), 1168));
    }
    sender.send_super(link.local().port, join(parts), 1168);
    const auto got = collector.collect(link, 50);
    ASSERT_EQ(got.size(), 50u);
    for (std::uint32_t i = 0; i < 50; ++i, ++id) {
      ASSERT_EQ(got[i].data, payload(id, 1168)) << id;
      EXPECT_EQ(got[i].packet.offset, id * 1168);
    }
  }
  if (GetParam() == Coalesce::on) {
    EXPECT_EQ(link.stats().rx_batches, 10u);  // one system call for each 50 packets
    EXPECT_EQ(link.stats().rx_copied_bytes, 0u);
  }
}

TEST_P(Receive, OddSizesStartAlignedAndTheLastMayBeShorter) {
  UdpLink link(listening(GetParam()));
  PlainSocket sender;
  Collector collector;
  for (std::uint32_t round = 0; round < 5; ++round) {
    const Bytes all = payload(round, 10 * 1171 + 13);
    sender.send_super(link.local().port, all, 1171);
    const auto got = collector.collect(link, 11);
    ASSERT_EQ(got.size(), 11u);
    Bytes joined;
    for (std::size_t i = 0; i < 11; ++i) {
      EXPECT_EQ(got[i].packet.bytes, i < 10 ? 1171 : 13);
      joined.insert(joined.end(), got[i].data.begin(), got[i].data.end());
      if (GetParam() == Coalesce::on && i != 0) {
        EXPECT_EQ(got[i].packet.offset, got[i - 1].packet.offset + 1171);
      }
    }
    EXPECT_EQ(joined, all);
    EXPECT_EQ(got[0].packet.offset % 8, 0u);
  }
}

TEST_P(Receive, EverySizeIsTaken) {
  UdpLink link(listening(GetParam()));
  PlainSocket sender;
  Collector collector;
  std::uint32_t id = 0;
  for (const std::size_t bytes : {1472u, 0u, 1u, 65507u, 0u, 7u, 8u, 9u, 1473u, 65507u, 9000u, 1u}) {
    sender.send(link.local().port, payload(id, bytes));
    const auto got = collector.collect(link, 1);
    ASSERT_EQ(got.size(), 1u) << bytes;
    EXPECT_EQ(got[0].data, payload(id, bytes)) << bytes;
    EXPECT_EQ(got[0].packet.flags, 0);
    EXPECT_EQ(got[0].packet.offset % 8, 0u);
    ++id;
  }
}

// Singles of any size, super-packets, any room and any number of entries: nothing is lost, however it was received.
TEST_P(Receive, NothingIsLostInAnyMixture) {
  UdpConfig config = listening(GetParam());
  config.packet_bytes_max = 1600;
  UdpLink link(config);
  PlainSocket sender;
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  std::vector<std::uint64_t> buffer(200'000 / 8);
  std::vector<RxPacket> entries(300);
  std::uint32_t id = 0;
  std::size_t checked = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<Bytes> expected;
    std::size_t budget = kSafeBytes;
    const std::uint32_t kind = below(4);
    const std::uint32_t wanted = 1 + below(60);
    for (std::uint32_t i = 0; i < wanted && budget > 3000; ++i) {
      const bool super = kind == 0 || (kind == 1 && below(4) == 0);
      if (super) {
        const std::uint32_t segment = 1 + below(1400);
        const std::uint32_t bytes = std::min<std::uint32_t>(static_cast<std::uint32_t>(budget),
                                                            segment * (1 + below(40)) + 1 + below(segment));
        const Bytes all = payload(id++, std::min(bytes, segment * 60));
        sender.send_super(link.local().port, all, static_cast<std::uint16_t>(segment));
        for (std::size_t at = 0; at < all.size(); at += segment) {
          expected.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                                all.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(all.size(), at + segment)));
        }
        budget -= std::min<std::size_t>(budget, all.size() + 1000);
      } else {
        expected.push_back(payload(id++, kind == 2 ? 1168 : below(1600)));
        sender.send(link.local().port, expected.back());
        budget -= std::min<std::size_t>(budget, expected.back().size() + 1000);
      }
    }
    std::size_t seen = 0;
    while (seen < expected.size()) {
      const std::size_t spare = below(3) == 0 ? below(100'000) : 0;
      const std::span<std::byte> room = std::as_writable_bytes(std::span(buffer))
                                            .first(std::min<std::size_t>(199'992, link.min_room_bytes() + spare));
      const std::size_t entry_count = below(3) == 0 ? 1 + below(20) : 300;
      const RxBatch batch = link.receive(room, std::span(entries).first(entry_count), 0);
      ASSERT_GT(batch.packet_count, 0u) << "packet " << seen << " of " << expected.size() << " in round " << round;
      std::size_t end = 0;
      for (std::uint32_t i = 0; i < batch.packet_count; ++i) {
        const RxPacket& packet = entries[i];
        ASSERT_GE(packet.offset, end);
        end = packet.offset + std::size_t{packet.bytes};
        ASSERT_LE(end, room.size());
        ASSERT_LT(seen, expected.size());
        ASSERT_TRUE(std::equal(expected[seen].begin(), expected[seen].end(), room.begin() + packet.offset,
                               room.begin() + static_cast<std::ptrdiff_t>(end)))
            << "packet " << seen << " in round " << round;
        ++seen;
      }
      ASSERT_LE(end, batch.bytes_used);
    }
    checked += seen;
  }
  EXPECT_EQ(link.stats().rx_packets, checked);
  EXPECT_EQ(link.stats().rx_truncated, 0u);
  EXPECT_EQ(link.stats().rx_kernel_dropped, 0u);
}

TEST_P(Receive, OverflowIsCountedAndFlagged) {
  UdpConfig config = listening(GetParam());
  config.rx_socket_bytes = 8192;
  UdpLink link(config);
  PlainSocket sender;
  Collector collector;
  for (std::uint32_t i = 0; i < 200; ++i) {
    sender.send(link.local().port, payload(i, 1000));
  }
  std::vector<Got> got = collector.collect(link, 200);
  ASSERT_GT(got.size(), 0u);
  ASSERT_LT(got.size(), 200u);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].packet.flags, 0) << i;  // they came before the first drop
    EXPECT_EQ(got[i].data, payload(static_cast<std::uint32_t>(i), 1000));
  }
  EXPECT_EQ(link.stats().rx_kernel_dropped, 200 - got.size());  // known although no packet came since
  for (std::uint32_t i = 0; i < 2; ++i) {
    sender.send(link.local().port, payload(500 + i, 1000));
  }
  const auto later = collector.collect(link, 2);
  ASSERT_EQ(later.size(), 2u);
  EXPECT_EQ(later[0].packet.flags, RxPacket::after_drop);
  EXPECT_EQ(later[1].packet.flags, 0);
  EXPECT_EQ(link.stats().rx_kernel_dropped, 200 - got.size());
}

TEST_P(Receive, PacketLongerThanTheRoomIsCutAndFlagged) {
  UdpLink link(listening(GetParam()));
  PlainSocket sender;
  sender.send(link.local().port, payload(1, 1000));
  sender.send(link.local().port, payload(2, 50));
  link.wait(1'000'000'000);
  std::array<std::byte, 100> room{};
  std::array<RxPacket, 4> entries{};
  RxBatch batch = link.receive(room, entries, 0);
  ASSERT_EQ(batch.packet_count, 1u);
  EXPECT_EQ(batch.bytes_used, 100u);
  EXPECT_EQ(entries[0].bytes, 100);
  EXPECT_EQ(entries[0].flags, RxPacket::truncated);
  const Bytes expected = payload(1, 1000);
  EXPECT_TRUE(std::equal(room.begin(), room.end(), expected.begin()));
  EXPECT_EQ(link.stats().rx_truncated, 1u);
  batch = link.receive(room, entries, 0);
  ASSERT_EQ(batch.packet_count, 1u);
  EXPECT_EQ(entries[0].bytes, 50);
  EXPECT_EQ(entries[0].flags, 0);
}

TEST_P(Receive, IdleAndLonePacketCostOneSystemCall) {
  UdpLink link(listening(GetParam()));
  PlainSocket sender;
  Bytes room(std::size_t{1} << 17);
  std::array<RxPacket, 256> entries{};
  EXPECT_EQ(link.receive(room, entries, 0).packet_count, 0u);
  EXPECT_EQ(link.stats().rx_calls, 1u);
  for (std::uint32_t i = 0; i < 10; ++i) {
    sender.send(link.local().port, payload(i, 1168));
    const std::uint64_t before = link.stats().rx_calls;
    ASSERT_EQ(link.receive(room, entries, 0).packet_count, 1u);
    EXPECT_EQ(link.stats().rx_calls, before + 1);
    EXPECT_EQ(link.receive(room, entries, 0).packet_count, 0u);
    EXPECT_EQ(link.stats().rx_calls, before + 2);
  }
  EXPECT_EQ(link.stats().rx_batches, 10u);
  EXPECT_EQ(link.stats().rx_errors, 0u);
}

TEST(ReceiveWays, ManySinglesAreTakenByFewCallsAndASuperPacketSwitchesBack) {
  UdpLink link(listening());
  PlainSocket sender;
  Collector collector;
  std::vector<Got> got;
  std::uint32_t id = 0;
  // Never let it run dry: the singles of the next round wait before those of this one are taken.
  for (std::uint32_t i = 0; i < 24; ++i) {
    sender.send(link.local().port, payload(id++, 1168));
  }
  std::uint64_t calls_late = 0;
  for (int round = 0; round < 20; ++round) {
    for (std::uint32_t i = 0; i < 24; ++i) {
      sender.send(link.local().port, payload(id++, 1168));
    }
    const std::uint64_t before = link.stats().rx_calls;
    while (got.size() + 24 < id) {
      collector.receive_once(link, got);
    }
    calls_late = link.stats().rx_calls - before;
  }
  EXPECT_LE(calls_late, 4u);  // for 24 packets, after the switch
  const std::uint64_t copied_before = link.stats().rx_copied_bytes;
  const Bytes super = payload(id, 20 * 1168);
  sender.send_super(link.local().port, super, 1168);
  const auto rest = collector.collect(link, id - got.size() + 20);
  ASSERT_EQ(rest.size(), id - got.size() + 20);
  Bytes joined;
  for (std::size_t i = rest.size() - 20; i < rest.size(); ++i) {
    joined.insert(joined.end(), rest[i].data.begin(), rest[i].data.end());
  }
  EXPECT_EQ(joined, super);
  for (std::uint32_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].data, payload(i, 1168));
  }
  const std::uint64_t copied = link.stats().rx_copied_bytes;
  EXPECT_GE(copied, copied_before);
  sender.send_super(link.local().port, super, 1168);
  EXPECT_EQ(collector.collect(link, 20).size(), 20u);
  EXPECT_EQ(link.stats().rx_copied_bytes, copied);  // coalesced again: in place
}

TEST(ReceiveWays, EqualSinglesAreNotMoved) {
  UdpLink link(listening(Coalesce::off));
  PlainSocket sender;
  Collector collector;
  std::vector<Got> got;
  for (int round = 0; round < 10; ++round) {
    for (std::uint32_t i = 0; i < 30; ++i) {
      sender.send(link.local().port, payload(i, 1168));
    }
    ASSERT_EQ(collector.collect(link, 30).size(), 30u);
  }
  // Only the first batches can have had the wrong guess of the distance, 1472.
  EXPECT_LE(link.stats().rx_copied_bytes, 2u * 1168);
}

}  // namespace
}  // namespace nanet::link::test
