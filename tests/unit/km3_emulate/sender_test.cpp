// SPDX-License-Identifier: Apache-2.0
// Packets of a unit, and what goes wrong with them on purpose: by what packet it is, counted, and the books balance.
#include "km3_emulate/sender.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "tower_parts.hpp"

namespace nanet::km3_emulate {
namespace {

class KeepingLink final : public link::Link {
 public:
  std::size_t min_room_bytes() const override { return 0; }
  link::RxBatch receive(std::span<std::byte>, std::span<link::RxPacket>, std::uint64_t) override { return {}; }
  void send(std::span<const link::TxPacket> packets, std::uint64_t) override {
    for (const link::TxPacket& packet : packets) {
      sent.emplace_back(packet.data, packet.data + packet.bytes);
      destinations.insert(packet.destination);
    }
  }
  void wait(std::uint64_t) override {}
  link::LinkStats stats() const override { return {}; }
  link::Endpoint local() const override { return {}; }
  std::string path() const override { return {}; }
  std::vector<std::string> notes() const override { return {}; }

  std::vector<std::vector<std::byte>> sent;
  std::set<std::uint32_t> destinations;
};

std::uint32_t u32(const std::vector<std::byte>& packet, std::size_t at) {
  return static_cast<std::uint32_t>(km3::load_be32(&packet[at]));
}

std::vector<std::byte> numbered(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t k = 0; k < count; ++k) bytes[k] = static_cast<std::byte>(k * 7 + k / 256);
  return bytes;
}

// Sends `slices` units of `packets` packets of two streams.
struct Bench {
  explicit Bench(const TowerConfig& config_, std::uint32_t slices = 50, std::uint32_t packets = 20) : config(config_) {
    config.packet_bytes_max = 332;
    Sender sender(config, 2, link, counters);
    std::array<CutUnit, 2> units;
    std::array<std::uint32_t, 2> sequences{};
    const auto unit = numbered(300 * packets);
    for (CutUnit& one : units) one.cut(unit, 6, 332);
    for (std::uint64_t slice = 0; slice < slices; ++slice) {
      for (std::uint32_t k = 0; k < packets; ++k) {
        for (std::uint32_t stream = 0; stream < 2; ++stream) {
          const PacketHead head{
              .tower = 1, .floor = static_cast<std::uint8_t>(stream + 1), .run = 9, .slice = static_cast<std::uint32_t>(slice)};
          sender.send(units[stream].packet(k, head, sequences[stream]++), {slice, stream, stream, k}, 0);
        }
      }
      for (std::uint32_t stream = 0; stream < 2; ++stream) sender.release(stream, 0);
      sender.send_batch(0);
    }
  }

  std::uint64_t count(TowerCounter counter) const { return counters.value(counter); }
  bool balances() const {
    return count(TowerCounter::packets_made) == count(TowerCounter::packets_sent) - count(TowerCounter::packets_duplicated) +
                                                    count(TowerCounter::packets_lost) + count(TowerCounter::packets_silent) &&
           count(TowerCounter::packets_sent) == link.sent.size();
  }

  TowerConfig config;
  KeepingLink link;
  TowerCounters counters;
};

TEST(TowerPackets, AUnitIsCutIntoWholeRecordsWithItsPlace) {
  const auto unit = numbered(20'000 * 6);
  CutUnit cut;
  cut.cut(unit, 6, kPacketBytesMax);
  ASSERT_EQ(cut.packet_count(), 14u);  // of 8940 B
  std::vector<std::byte> joined;
  for (std::uint32_t k = 0; k < cut.packet_count(); ++k) {
    const PacketHead head{
        .tower = 3, .floor = 14, .kind = Kind::sampled, .untimed = true, .run = 77, .slice = 5, .gps_ns = 1'234'567'890'000'000'160};
    const auto packet = cut.packet(k, head, 100 + k);
    const std::vector<std::byte> bytes(packet.begin(), packet.end());
    EXPECT_EQ(u32(bytes, 0), 0x4B4D3346u);
    EXPECT_EQ(u32(bytes, 4), (3u << 24 | 14u << 16 | 2u << 8 | (k == 13 ? 3u : 2u)));
    EXPECT_EQ(u32(bytes, 8), 77u);
    EXPECT_EQ(u32(bytes, 12), 5u);
    EXPECT_EQ(u32(bytes, 16), 1'234'567'890u);
    EXPECT_EQ(u32(bytes, 20), 10u);
    EXPECT_EQ(u32(bytes, 24), joined.size());
    EXPECT_EQ(u32(bytes, 28), 100 + k);
    EXPECT_LE(bytes.size(), kPacketBytesMax);
    joined.insert(joined.end(), bytes.begin() + 32, bytes.end());
  }
  EXPECT_EQ(joined, unit);
}

TEST(TowerPackets, AnEmptyUnitIsOnePacketThatIsTheLast) {
  CutUnit cut;
  cut.cut({}, 6, kPacketBytesMax);
  ASSERT_EQ(cut.packet_count(), 1u);
  const auto packet = cut.packet(0, {}, 0);
  EXPECT_EQ(packet.size(), 32u);
  EXPECT_EQ(std::to_integer<int>(packet[7]), 1);
}

TEST(TowerSender, WithoutFaultsAllIsSentInOrder) {
  const Bench bench({});
  EXPECT_TRUE(bench.balances());
  EXPECT_EQ(bench.link.sent.size(), 2000u);
  std::array<std::uint32_t, 2> next{};
  for (const auto& packet : bench.link.sent) {
    EXPECT_EQ(u32(packet, 28), next[std::to_integer<std::size_t>(packet[5]) - 1]++);
  }
  EXPECT_EQ(bench.link.destinations, std::set<std::uint32_t>{0});
}

TEST(TowerSender, FaultsHaveTheirSharesAndAreCounted) {
  TowerConfig config;
  config.faults = {.loss = 0.1, .duplicate = 0.05, .reorder = 0.2, .damage = 0.1};
  const Bench bench(config);
  EXPECT_TRUE(bench.balances());
  EXPECT_NEAR(static_cast<double>(bench.count(TowerCounter::packets_lost)), 200, 80);
  EXPECT_NEAR(static_cast<double>(bench.count(TowerCounter::packets_duplicated)), 100, 60);
  EXPECT_NEAR(static_cast<double>(bench.count(TowerCounter::packets_damaged)), 200, 80);
  EXPECT_GT(bench.count(TowerCounter::packets_reordered), 200u);
  EXPECT_EQ(Bench(config).link.sent, bench.link.sent);  // the same again
  config.seed = 2;
  EXPECT_NE(Bench(config).link.sent, bench.link.sent);
}

TEST(TowerSender, EachFieldIsDamagedByOneBitAndTheNextTimeItIsWhole) {
  TowerConfig config;
  const Bench whole(config);
  config.faults.damage = 0.5;
  const Bench bench(config);
  ASSERT_EQ(bench.link.sent.size(), whole.link.sent.size());
  std::uint64_t damaged = 0;
  for (std::size_t k = 0; k < whole.link.sent.size(); ++k) {
    int bits = 0;
    for (std::size_t at = 0; at < whole.link.sent[k].size(); ++at) {
      bits += std::popcount(std::to_integer<unsigned>(whole.link.sent[k][at] ^ bench.link.sent[k][at]));
    }
    ASSERT_LE(bits, 1);
    damaged += static_cast<std::uint64_t>(bits);
  }
  EXPECT_EQ(damaged, bench.count(TowerCounter::packets_damaged));
  std::uint64_t by_field = 0;
  for (std::size_t field = 0; field < std::size(kPacketFields); ++field) {
    EXPECT_GT(bench.counters.damaged(field), 30u) << kPacketFields[field].name;
    by_field += bench.counters.damaged(field);
  }
  EXPECT_EQ(by_field, damaged);
}

TEST(TowerSender, AReorderedPacketComesRightAfterTheNextOneOfItsStream) {
  TowerConfig config;
  config.faults.reorder = 0.3;
  const Bench bench(config);
  EXPECT_TRUE(bench.balances());
  std::array<std::vector<std::uint32_t>, 2> sequences;
  for (const auto& packet : bench.link.sent) sequences[std::to_integer<std::size_t>(packet[5]) - 1].push_back(u32(packet, 28));
  for (auto& one : sequences) {
    std::uint64_t moved = 0;
    for (std::size_t k = 0; k < one.size(); ++k) {
      EXPECT_LE(std::max<std::size_t>(one[k], k) - std::min<std::size_t>(one[k], k), 1u);
      moved += one[k] != k ? 1u : 0u;
    }
    EXPECT_GT(moved, 200u);
    std::ranges::sort(one);
    EXPECT_EQ(std::ranges::adjacent_find(one), one.end());
  }
}

TEST(TowerSender, ASilentFloorSendsNothingForATimeAndReturns) {
  TowerConfig config;
  config.faults.silent = {{.floor = 2, .slice = 10, .slices = 5}};
  const Bench bench(config);
  EXPECT_TRUE(bench.balances());
  EXPECT_EQ(bench.count(TowerCounter::packets_silent), 100u);
  for (const auto& packet : bench.link.sent) {
    const std::uint32_t slice = u32(packet, 12);
    EXPECT_FALSE(std::to_integer<int>(packet[5]) == 2 && slice >= 10 && slice < 15);
  }
}

}  // namespace
}  // namespace nanet::km3_emulate
