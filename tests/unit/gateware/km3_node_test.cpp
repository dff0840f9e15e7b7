// SPDX-License-Identifier: Apache-2.0
// The node with links of floors, in C++: floors' frames in 8b/10b, its registers through the driver, and every byte of every CLOP against packets written here
// from docs/formats-km3.md.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "link/gateware/km3_node.hpp"
#include "link/gateware/nic_counts.hpp"
#include "link/gateware/nic_driver.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

using nanet::gateware::Design;
using nanet::gateware::FloorFrame;
using nanet::gateware::FrameTime;
using nanet::gateware::Line;
using nanet::gateware::Model;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kSecond = 0xFEDC'0000, kRun = 77, kSliceFrames = 3;
constexpr std::uint8_t kTower = 9;
constexpr std::array<std::uint8_t, 4> kClops{2, 0, 3, 1};
constexpr std::array<std::uint32_t, 10> kRecordWords{3, 3, 3, 3, 3, 3, 3, 3, 6, 14};

std::uint16_t source_of(std::size_t port, std::size_t kind_class) {
  return static_cast<std::uint16_t>(0x100 * (port + 1) + kind_class);
}

void put_be(Bytes& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<std::uint8_t>(value >> shift));
}

struct Km3NodeTest : ::testing::TestWithParam<std::uint32_t> {
  void start() {
    model.emplace(nanet::gateware::HostTiming{.write_cycles = 30, .busy_per_1024 = 50, .seed = 6}, Line::gbps_10,
                  GetParam() == 800 ? Design::km3_800 : Design::km3_2500);
    device.emplace(*model);
    const ClopConfig clop{.packets_per_buffer = 5, .timeout_ns = 20'000};
    driver.emplace(*device, NicConfig{.clops = {clop, clop, clop, clop}});
    node.emplace(*device);
    for (std::size_t port = 0; port < 4; ++port) {
      Km3Port to{.tower = kTower, .floor = static_cast<std::uint8_t>(port + 1), .sampled = false, .clops = kClops, .sources = {}};
      for (std::size_t k = 0; k < 4; ++k) to.sources[k] = source_of(port, k);
      node->set_port(port, to);
    }
    for (int k = 0; k < 500 && !all_up(); ++k) run(200);
    ASSERT_TRUE(all_up());
  }

  bool all_up() {
    for (std::size_t port = 0; port < 4; ++port) {
      if (!node->state(port).aligned || !node->state(port).sends) return false;
    }
    return true;
  }

  void begin_run() {
    node->set_time(kSecond);
    run(200);
    model->floors().pulse();
    for (std::size_t port = 0; port < 4; ++port)
      node->begin_run(port, {.run = kRun, .second = kSecond, .slice_frames = kSliceFrames});
    ASSERT_TRUE(until({kSecond, 0}));
    ASSERT_EQ(node->second(), kSecond);
  }

  // Lets frames of before the run go by.
  void run(std::uint64_t cycles) {
    for (std::uint64_t k = 0; k < cycles; k += 8) {
      if (model->floors().stand()) give({});
      model->step(8);
      take();
    }
  }

  bool until(FrameTime at) {
    for (int k = 0; k < 100'000; ++k) {
      if (model->floors().due() == at) return true;
      run(8);
    }
    return false;
  }

  void give(const std::vector<std::optional<FloorFrame>>& frames) {
    std::size_t port = 0;
    for (auto& end : model->floors().ends()) end.give(port < frames.size() ? frames[port] : std::nullopt), ++port;
  }

  // Frame `number` of the run, once it is due; every floor's words are random.
  std::vector<std::optional<FloorFrame>> send(std::uint16_t number) {
    EXPECT_TRUE(until({kSecond, number}));
    std::vector<std::optional<FloorFrame>> frames;
    for (std::size_t port = 0; port < 4; ++port) {
      FloorFrame& frame = *frames.emplace_back(FloorFrame{.floor = static_cast<std::uint8_t>(port + 1), .slots = {}, .spoiled = {}});
      for (std::size_t slot = 0; slot < 10; ++slot) {
        const auto most = model->floors().geometry().slot_words[slot] / kRecordWords[slot];
        const std::size_t records = random() % 4 == 0 ? 0 : random() % (most + 1);
        for (std::size_t k = 0; k < records * kRecordWords[slot]; ++k)
          frame.slots[slot].push_back(static_cast<std::uint16_t>(random()));
      }
    }
    return frames;
  }

  // What is in flight comes to the host.
  void flush() {
    for (int k = 0; k < 1000; ++k) {
      model->step(16);
      take();
    }
  }

  void take() {
    while (const Completion* completion = driver->poll()) {
      for (const PacketRef& packet : driver->packets(*completion)) {
        const auto payload = driver->payload(*completion, packet);
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(payload.data());
        found[{completion->clop, packet.source}].emplace_back(bytes, bytes + payload.size());
      }
      driver->release(1, completion->clop);
    }
  }

  void TearDown() override {
    driver.reset();
    EXPECT_EQ(model->bus().stray_count(), 0u);
  }

  std::optional<Model> model;
  std::optional<SimDevice> device;
  std::optional<NicDriver> driver;
  std::optional<Km3Node> node;
  std::mt19937_64 random{5};
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::vector<Bytes>> found;  // by CLOP and source
};

// The packets that a port makes of a floor's whole frames, by class.
struct Expected {
  std::size_t port, together;  // modules in a packet
  std::array<std::vector<Bytes>, 4> packets{};
  std::array<std::uint32_t, 4> offsets{}, sequences{};  // hits, hydrophones 0 and 1, instruments

  void take(const FloorFrame& frame, std::uint32_t number) {
    const std::uint32_t slice = number / kSliceFrames;
    const bool ends = number % kSliceFrames == kSliceFrames - 1;
    if (number % kSliceFrames == 0) offsets = {};
    for (std::size_t first = 0; first < 6; first += together)
      add(frame, 0, first, first + together, slice, ends && first + together == 6);
    for (std::size_t stream = 1; stream < 4; ++stream) add(frame, stream, 5 + stream, 6 + stream, slice, ends);
    if (!frame.slots[9].empty()) packets[3].push_back(bytes_of(frame, 9, 10));
  }

  static Bytes bytes_of(const FloorFrame& frame, std::size_t from, std::size_t to) {
    Bytes bytes;
    for (std::size_t slot = from; slot < to; ++slot) {
      for (const std::uint16_t word : frame.slots[slot]) {
        bytes.push_back(static_cast<std::uint8_t>(word));
        bytes.push_back(static_cast<std::uint8_t>(word >> 8));
      }
    }
    return bytes;
  }

  void add(const FloorFrame& frame, std::size_t stream, std::size_t from, std::size_t to, std::uint32_t slice, bool last) {
    constexpr std::array<std::uint8_t, 4> kKinds{1, 3, 4, 5};
    const Bytes payload = bytes_of(frame, from, to);
    if (payload.empty() && !last) return;
    Bytes packet{
        'K', 'M', '3', 'F', kTower, static_cast<std::uint8_t>(port + 1), kKinds[stream], static_cast<std::uint8_t>(last ? 1 : 0)};
    put_be(packet, kRun);
    put_be(packet, slice);
    put_be(packet, kSecond);
    put_be(packet, slice * kSliceFrames * 6250);  // 100 us in 16 ns
    put_be(packet, offsets[stream]);
    put_be(packet, sequences[stream]++);
    packet.insert(packet.end(), payload.begin(), payload.end());
    offsets[stream] += static_cast<std::uint32_t>(payload.size());
    packets[stream == 0 ? 0 : stream == 3 ? 2 : 1].push_back(packet);
  }
};

TEST_P(Km3NodeTest, EveryByteOfEveryFloorIsInTheClopOfItsKind) {
  start();
  begin_run();
  std::vector<Expected> expected;
  for (std::size_t port = 0; port < 4; ++port) expected.push_back({.port = port, .together = GetParam() == 800 ? 6u : 2u});
  for (std::uint16_t number = 0; number < 2 * kSliceFrames; ++number) {
    const auto frames = send(number);
    give(frames);
    for (std::size_t port = 0; port < 4; ++port) expected[port].take(*frames[port], number);
  }
  until({kSecond, 2 * kSliceFrames});
  flush();
  for (std::size_t port = 0; port < 4; ++port) {
    for (std::size_t k = 0; k < 4; ++k) {
      const auto key = std::pair<std::uint32_t, std::uint16_t>(kClops[k], source_of(port, k));
      EXPECT_TRUE(found[key] == expected[port].packets[k])
          << "port " << port << ", class " << k << ": " << found[key].size() << " of " << expected[port].packets[k].size();
    }
    EXPECT_EQ(node->count(port, km3::count_good), 2 * kSliceFrames);
    EXPECT_EQ(node->count(port, km3::placed), 2 * kSliceFrames);
    for (const unsigned none :
         {km3::lost, km3::missing, km3::error_time, km3::error_second, km3::error_trip, km3::error_code, km3::full}) {
      EXPECT_EQ(node->count(port, none), 0u) << km3::kNames[none];
    }
  }
}

TEST_P(Km3NodeTest, ABadFrameHasANameAndItsSliceAHole) {
  start();
  begin_run();
  for (std::uint16_t number = 0; number < kSliceFrames; ++number) {
    auto frames = send(number);
    frames[0]->slots = {};
    frames[0]->slots[0] = {1, 2, 3};
    if (number == 1) frames[0]->spoiled = 200;
    if (number == 1) frames[1]->floor = 7;
    give(frames);
  }
  until({kSecond, kSliceFrames});
  flush();
  EXPECT_EQ(node->count(0, km3::count_good), kSliceFrames - 1);
  EXPECT_EQ(node->count(0, km3::drop_crc) + node->count(0, km3::drop_symbol), 1u);
  EXPECT_EQ(node->count(0, km3::missing), 1u);
  EXPECT_EQ(node->count(1, km3::drop_floor), 1u);
  EXPECT_EQ(node->count(2, km3::count_good), kSliceFrames);
  const auto& hits = found[{kClops[0], source_of(0, 0)}];
  ASSERT_EQ(hits.size(), GetParam() == 800 ? 2u : 3u);  // where a packet has fewer modules an empty one ends the unit
  EXPECT_EQ(Bytes(hits[1].begin() + 24, hits[1].begin() + 28), Bytes({0, 0, 0, 6 + 12}));  // its place: 12 B further than what came
}

TEST_P(Km3NodeTest, SlowControlOfTheRingComesToItsFloor) {
  start();
  begin_run();
  std::array<Bytes, 4> sent;
  for (std::uint64_t tag = 0; tag < 8; ++tag) {
    const std::size_t port = random() % 4;
    Bytes payload(28);
    for (std::uint8_t& byte : payload) byte = static_cast<std::uint8_t>(random());
    sent[port].insert(sent[port].end(), payload.begin(), payload.end());
    ASSERT_TRUE(driver->send(std::as_bytes(std::span(payload)), static_cast<std::uint32_t>(port), tag));
  }
  run(2000);
  give({});
  until({kSecond, 2});
  for (std::size_t port = 0; port < 4; ++port) {
    EXPECT_EQ(model->floors().ends()[port].slow_control(), sent[port]) << port;
    EXPECT_EQ(model->floors().ends()[port].bad(), 0u);
  }
  EXPECT_EQ(node->node_count(km3_node::from_host), 8u);
}

// Frames of any words and none: each floor's code is there and back after the same time, and no frame is moved.
TEST_P(Km3NodeTest, ExpressCodesTakeOneTimeWhateverIsSent) {
  start();
  begin_run();
  constexpr std::uint16_t kFrames = 8;
  std::set<std::int64_t> trips;
  for (std::uint16_t number = 0; number < kFrames; ++number) {
    const auto frames = send(number);
    give(number % 2 == 0 ? frames : std::vector<std::optional<FloorFrame>>{});
    for (std::size_t port = 0; port < 4; ++port) {
      model->step(random() % 400);
      const auto code = static_cast<std::uint8_t>(random());
      ASSERT_TRUE(node->send_express(port, code));
      std::optional<Km3Express> came;
      for (int k = 0; k < 20 && !came; ++k) {
        model->step(64);
        came = node->take_express(port);
      }
      ASSERT_TRUE(came) << number << ' ' << port;
      EXPECT_EQ(came->code, code);
      const std::optional<Km3Moment> sent = node->express_sent(port);
      ASSERT_TRUE(sent);
      EXPECT_EQ(sent->second, kSecond);
      trips.insert(node->words(*sent, came->at));
    }
  }
  EXPECT_EQ(trips.size(), 1u) << "from " << *trips.begin() << " to " << *trips.rbegin();
  model->floors().ends()[2].send_express(0x42);  // one that no one asked for
  model->step(400);
  const std::optional<Km3Express> own = node->take_express(2);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->code, 0x42);
  EXPECT_FALSE(node->take_express(2));
  until({kSecond, kFrames});
  flush();
  for (std::size_t port = 0; port < 4; ++port) {
    EXPECT_EQ(node->count(port, km3::express_sent), kFrames);
    EXPECT_EQ(node->count(port, km3::express_taken), kFrames + (port == 2 ? 1u : 0u));
    EXPECT_EQ(node->count(port, km3::count_good), kFrames / 2);
    EXPECT_EQ(model->floors().ends()[port].express_heard(), kFrames);
    EXPECT_EQ(model->floors().ends()[port].bad(), 0u);
    for (const unsigned none : {km3::express_dark, km3::express_refused, km3::express_unread, km3::error_express, km3::error_trip}) {
      EXPECT_EQ(node->count(port, none), 0u) << km3::kNames[none];
    }
  }
}

TEST_P(Km3NodeTest, WhatThePortsCannotHaveIsRefused) {
  start();
  EXPECT_EQ(node->mbps(), GetParam());
  EXPECT_EQ(node->frames_per_s(), 10'000u);
  EXPECT_THROW(node->set_port(4, {}), SetupError);
  EXPECT_THROW(node->set_port(0, {.clops = {0, 0, 4, 0}}), SetupError);
  EXPECT_THROW(node->send_express(4, 1), SetupError);
  EXPECT_THROW(node->begin_run(0, {.run = 1u << 31}), SetupError);
  EXPECT_THROW(node->begin_run(0, {.slice_frames = 0}), SetupError);
  EXPECT_THROW(node->begin_run(0, {.slice_frames = 10'001}), SetupError);
}

TEST(Km3Node, ANicIsNoNodeWithFloors) {
  Model model;
  SimDevice device(model);
  EXPECT_ANY_THROW(Km3Node{device});
}

INSTANTIATE_TEST_SUITE_P(BothRates, Km3NodeTest, ::testing::Values(800u, 2500u),
                         [](const auto& one) { return "Mbps" + std::to_string(one.param); });

}  // namespace
}  // namespace nanet::link::gateware
