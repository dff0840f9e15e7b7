// SPDX-License-Identifier: Apache-2.0
// The link over the fibres of floors, over a wire made of memory: units of floors in, and the same out, hit by hit; and each packet that cannot go by its name.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "../engine/support.hpp"
#include "link/gateware/km3_link.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

using engine::test::MemoryLink;
using Bytes = std::vector<std::byte>;
using Key = std::tuple<unsigned, unsigned, std::uint32_t>;                          // floor, kind, slice
using Counts = std::map<std::tuple<std::string, int, std::string>, std::uint64_t>;  // group, port or -1, counter

constexpr std::uint32_t kSecond = 1'400'000'000, kRun = 41, kSliceFrames = 2;
constexpr std::uint32_t kSliceTicks = kSliceFrames * 6250;  // of 16 ns
constexpr std::uint64_t kMs = 1'000'000;

void put(Bytes& to, std::uint64_t value, int bytes) {
  for (int k = bytes - 1; k >= 0; --k) to.push_back(static_cast<std::byte>(value >> 8 * k));
}

std::uint32_t get(std::span<const std::byte> from, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < 4; ++k) value = value << 8 | std::to_integer<std::uint32_t>(from[at + k]);
  return value;
}

struct Packet {
  unsigned floor = 1, kind = 1;
  std::uint32_t slice = 0, offset = 0;
  Bytes payload{};
  unsigned last = 1, tower = 3, flags = 0;
  std::uint32_t run = kRun, second = kSecond;
  std::uint64_t magic = 0x4B4D3346;

  Bytes bytes() const {
    Bytes all;
    put(all, magic, 4);
    for (const unsigned one : {tower, floor, kind, flags | last}) put(all, one, 1);
    for (const std::uint32_t one : {run, slice, second, slice * kSliceTicks, offset, 0u}) put(all, one, 4);
    all.insert(all.end(), payload.begin(), payload.end());
    return all;
  }
};

struct Km3LinkTest : ::testing::Test {
  void open(std::uint32_t mbps = 800) {
    auto own = std::make_unique<MemoryLink>();
    own->room_bytes = 1 << 16;
    wire = own.get();
    GatewareConfig config;
    config.packet_bytes_max = 8960;
    config.floors = GatewareFloors{.tower = 3, .first = 1, .floors = 2, .mbps = mbps, .slice_us = 100 * kSliceFrames};
    link = std::make_unique<Km3Link>(std::move(own), config);
  }

  Bytes hits(std::size_t count) {
    Bytes unit;
    for (std::size_t k = 0; k < count; ++k) {
      put(unit, random() % 6, 1);
      put(unit, random() % (kSliceTicks * 16), 4);
      put(unit, random() % 256, 1);
    }
    return unit;
  }

  void send(const Packet& packet) { wire->incoming.push_back({.payload = packet.bytes()}); }

  // A whole unit in two packets.
  void send_unit(unsigned floor, unsigned kind, std::uint32_t slice, const Bytes& unit, std::uint32_t record) {
    const auto first = static_cast<std::uint32_t>(unit.size() / 2 / record * record);
    const auto cut = unit.begin() + first;
    if (first != 0) send({.floor = floor, .kind = kind, .slice = slice, .payload = Bytes(unit.begin(), cut), .last = 0});
    send({.floor = floor, .kind = kind, .slice = slice, .offset = first, .payload = Bytes(cut, unit.end())});
    sent[{floor, kind, slice}] = unit;
  }

  // Until nothing has come for longer than any stream is waited for.
  void receive() {
    Bytes room(1 << 16);
    std::vector<RxPacket> packets(16);
    for (std::uint64_t quiet_ms = 0; quiet_ms < 700; ++quiet_ms) {
      const RxBatch batch = link->receive(room, packets, now_ns += kMs);
      if (batch.packet_count != 0) quiet_ms = 0;
      for (std::uint32_t p = 0; p < batch.packet_count; ++p) take(std::span(room).subspan(packets[p].offset, packets[p].bytes));
    }
  }

  void take(std::span<const std::byte> packet) {
    ASSERT_GE(packet.size(), 32u);
    const auto u8 = [&](std::size_t at) { return std::to_integer<unsigned>(packet[at]); };
    EXPECT_EQ(get(packet, 8), kRun);
    EXPECT_EQ(get(packet, 16), kSecond);
    EXPECT_EQ(get(packet, 20), get(packet, 12) * kSliceTicks);
    const Key key{u8(5), u8(6), get(packet, 12)};
    Bytes& unit = found[key];
    if (unit.size() != get(packet, 24)) holed.insert(key);
    const auto payload = packet.subspan(32);
    unit.insert(unit.end(), payload.begin(), payload.end());
    if ((u8(7) & 1) != 0) ended.insert(key);
  }

  // Of each photomultiplier its hits, in order.
  static std::map<unsigned, std::vector<Bytes>> by_module(const Bytes& unit) {
    std::map<unsigned, std::vector<Bytes>> modules;
    for (std::size_t at = 0; at + 6 <= unit.size(); at += 6) {
      const auto hit = unit.begin() + static_cast<std::ptrdiff_t>(at);
      modules[std::to_integer<unsigned>(*hit)].emplace_back(hit, hit + 6);
    }
    return modules;
  }

  Counts counts() const {
    Counts all;
    for (const NicCounts& group : link->nic_counts()) {
      for (const auto& [name, count] : group.counts)
        all[{group.name, group.port ? static_cast<int>(*group.port) : -1, name}] = count;
    }
    return all;
  }

  // Each packet has one fate, each frame is good, and what the ports made has come.
  void check_books() {
    const Counts all = counts();
    std::uint64_t fates = 0, forwarded = 0;
    for (const auto& [key, count] : all) {
      if (std::get<0>(key) == "fibre" && std::get<2>(key) != "received") fates += count;
      if (std::get<2>(key) == "forwarded") forwarded += count;
    }
    EXPECT_EQ((all.at({"fibre", -1, "received"})), fates);
    EXPECT_EQ((all.at({"given", -1, "packets"})), forwarded);
    for (int port = 0; port < 2; ++port) {
      EXPECT_EQ((all.at({"floor", port, "frames"})), (all.at({"km3", port, "count_good"})));
      EXPECT_EQ((all.at({"km3", port, "count_good"})), (all.at({"km3", port, "placed"})));
    }
    EXPECT_EQ(link->stray_count(), 0u);
  }

  std::uint64_t fate(const std::string& name) const { return counts().at({"fibre", -1, name}); }

  MemoryLink* wire = nullptr;
  std::unique_ptr<Km3Link> link;
  std::mt19937_64 random{11};
  std::uint64_t now_ns = 1;
  std::map<Key, Bytes> sent, found;
  std::set<Key> ended, holed;
};

struct Km3LinkRates : Km3LinkTest, ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(Km3LinkRates, WhatFloorsSendComesFromTheNode) {
  open(GetParam());
  for (std::uint32_t slice = 0; slice < 3; ++slice) {
    for (const unsigned floor : {1u, 2u}) {
      send_unit(floor, 1, slice, hits(random() % 400), 6);
      send_unit(floor, 3, slice, hits(19), 3);
      send_unit(floor, 5, slice, hits(4), 12);
    }
  }
  receive();
  for (const auto& [key, unit] : sent) {
    if (std::get<1>(key) == 1) {
      EXPECT_EQ(by_module(found[key]), by_module(unit));
    } else {
      EXPECT_EQ(found[key], unit);
    }
    EXPECT_EQ(found[key].size(), unit.size());
    EXPECT_TRUE(ended.contains(key));
  }
  EXPECT_TRUE(holed.empty());
  EXPECT_EQ(fate("carried"), fate("received"));
  check_books();
}
INSTANTIATE_TEST_SUITE_P(BothRates, Km3LinkRates, ::testing::Values(800u, 2500u),
                         [](const auto& one) { return "Mbps" + std::to_string(one.param); });

TEST_F(Km3LinkTest, APacketThatIsMissingIsAHole) {
  open();
  for (std::uint32_t slice = 0; slice < 3; ++slice) {
    for (const unsigned floor : {1u, 2u}) send_unit(floor, 1, slice, hits(60), 6);
  }
  wire->incoming.erase(wire->incoming.begin() + 5);  // the end of floor 1's second unit: the third says that it does not come
  receive();
  const Key cut{1, 1, 1};
  EXPECT_EQ(by_module(found[cut]), by_module(Bytes(sent[cut].begin(), sent[cut].begin() + 180)));
  EXPECT_TRUE(holed.contains(cut));
  EXPECT_EQ(holed, (std::set<Key>{cut, {1, 5, 1}}));  // of instruments there may have been something in the frame
  EXPECT_EQ((counts().at({"km3", 0, "missing"})), 1u);
  EXPECT_EQ((counts().at({"km3", 1, "missing"})), 0u);
  check_books();
}

TEST_F(Km3LinkTest, AFloorThatSaysNothingHasNoFrames) {
  open();
  for (std::uint32_t slice = 0; slice < 3; ++slice) {
    for (const unsigned floor : {1u, 2u}) {
      if (slice != 1 || floor != 2) send_unit(floor, 1, slice, hits(30), 6);
    }
  }
  receive();
  EXPECT_FALSE(found.contains({2, 1, 1}));
  for (const auto& [key, unit] : sent) EXPECT_EQ(by_module(found[key]), by_module(unit));
  EXPECT_TRUE(holed.empty());
  EXPECT_EQ((counts().at({"floor", 1, "frames"})), 2 * kSliceFrames);
  check_books();
}

TEST_F(Km3LinkTest, WhatCannotGoHasAName) {
  open();
  for (const unsigned floor : {1u, 2u}) send_unit(floor, 1, 0, hits(30), 6);
  for (const unsigned floor : {1u, 2u}) send_unit(floor, 1, 1, hits(30), 6);
  receive();
  const std::size_t before = fate("carried");
  send({.slice = 2, .magic = 7});
  send({.floor = 3, .slice = 2});
  send({.slice = 2, .tower = 4});
  send({.kind = 2, .slice = 2});
  send({.slice = 2, .flags = 2});
  send({.slice = 2, .run = 5});
  send({.slice = 2, .second = kSecond + 1});
  send({.slice = 1});
  send({.floor = 2, .slice = 2, .payload = Bytes(7)});        // its hits: no records
  send({.floor = 1, .slice = 2, .payload = Bytes(6 * 500)});  // more hits of one module than two frames have
  send({.floor = 1, .slice = 2, .payload = Bytes(6)});
  receive();
  for (const char* name :
       {"bad_head", "no_slot", "untimed", "wrong_run", "wrong_time", "too_late", "bad_record", "no_room", "again"}) {
    EXPECT_EQ(fate(name), 1u) << name;
  }
  EXPECT_EQ(fate("wrong_floor"), 2u);
  EXPECT_EQ(fate("carried"), before);
  EXPECT_EQ(fate("held"), 0u);
  EXPECT_TRUE(holed.contains({1, 1, 2}) || !ended.contains({1, 1, 2}));  // never an empty unit that looks whole
  check_books();
}

TEST_F(Km3LinkTest, TheNextRunBeginsWithItsOwnTime) {
  open();
  for (const unsigned floor : {1u, 2u}) send({.floor = floor, .payload = hits(5)});
  receive();
  found.clear();
  EXPECT_EQ(fate("carried"), 2u);
  for (const unsigned floor : {1u, 2u}) send({.floor = floor, .run = kRun + 1, .second = kSecond + 77});
  Bytes room(1 << 16);
  std::vector<RxPacket> packets(16);
  std::size_t came = 0;
  for (int call = 0; call < 700; ++call) {
    const RxBatch batch = link->receive(room, packets, now_ns += kMs);
    for (std::uint32_t p = 0; p < batch.packet_count; ++p) {
      const auto packet = std::span<const std::byte>(room).subspan(packets[p].offset, packets[p].bytes);
      EXPECT_EQ(get(packet, 8), kRun + 1);
      EXPECT_EQ(get(packet, 16), kSecond + 77);
      ++came;
    }
  }
  EXPECT_EQ(came, 8u);  // of both floors an empty unit of each kind
  EXPECT_EQ(fate("carried"), 4u);
  EXPECT_TRUE(link->notes().empty());
  check_books();
}

TEST_F(Km3LinkTest, PacketsThatAreTooShortAreRefused) {
  GatewareConfig config;
  config.floors = GatewareFloors{};
  EXPECT_THROW(Km3Link(std::make_unique<MemoryLink>(), config), SetupError);  // 1472 bytes
}

}  // namespace
}  // namespace nanet::link::gateware
