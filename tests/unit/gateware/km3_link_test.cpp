// SPDX-License-Identifier: Apache-2.0
// The link over the fibres of floors, over a wire made of memory: units of floors in, and the same out, hit by hit; and each packet that cannot go by its name.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../engine/support.hpp"
#include "link/gateware/km3_link.hpp"
#include "link/reply_sockets.hpp"
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
    config.floors->control = control;
    config.floors->floor_control = floor_control;
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
    EXPECT_EQ((all.at({"given", -1, "packets"})) + (all.at({"given", -1, "slow_control"})), forwarded);
    for (int port = 0; port < 2; ++port) {
      EXPECT_EQ((all.at({"floor", port, "frames"})), (all.at({"km3", port, "count_good"})));
      EXPECT_EQ((all.at({"km3", port, "count_good"})), (all.at({"km3", port, "placed"})) + (all.at({"km3", port, "control_only"})));
    }
    EXPECT_EQ(link->stray_count(), 0u);
  }

  std::uint64_t fate(const std::string& name) const { return counts().at({"fibre", -1, name}); }

  MemoryLink* wire = nullptr;
  std::string control, floor_control;
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
  for (int port = 0; port < 2; ++port) {
    const auto state = [&, all = counts()](const char* name) { return all.at({"link_state", port, name}); };
    for (const char* one : {"aligned", "sends", "hears", "timed"}) EXPECT_EQ(state(one), 1u) << one;
    EXPECT_EQ(state("floor"), static_cast<unsigned>(port) + 1);
    EXPECT_LT(state("slip_bits"), 20u);
    EXPECT_EQ(state("trip_frames"), 0u);
    EXPECT_GT(state("trip_words"), 0u);
  }
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

// Two floors' programs and one that asks, on either side of a link: what each got.
struct Km3ControlTest : Km3LinkTest {
  using Message = std::array<std::byte, kKm3ControlBytes>;

  void SetUp() override {
    std::tie(programs, floor_control) = pair_of_ports();
    std::string host;
    {
      std::unique_ptr<ReplySockets> free;
      std::tie(free, host) = pair_of_ports();
    }
    control = host;
    open();
    for (std::uint32_t port = 0; port < 2; ++port) {
      Endpoint to = parse_endpoint(control);
      to.port = static_cast<std::uint16_t>(to.port + port);
      const SocketAddress address(to);
      ASSERT_EQ(::connect(askers[port].fd(), address.data(), address.bytes()), 0);
    }
  }

  static std::pair<std::unique_ptr<ReplySockets>, std::string> pair_of_ports() {
    for (std::uint16_t port = 21'000;; port = static_cast<std::uint16_t>(port + 2)) {
      try {
        const std::string first = "udp://127.0.0.1:" + std::to_string(port);
        return {std::make_unique<ReplySockets>(parse_endpoint(first), 2), first};
      } catch (const SetupError&) {
        if (port > 60'000) throw;
      }
    }
  }

  static Message message(const char* magic, unsigned floor, std::uint32_t sequence, unsigned command = 1) {
    Bytes bytes;
    for (int k = 0; k < 4; ++k) put(bytes, static_cast<std::uint8_t>(magic[k]), 1);
    for (const unsigned one : {3u, floor, command, 0u}) put(bytes, one, 1);
    for (const std::uint32_t one : {sequence, 64u << 16, sequence * 77, 0u, 0u}) put(bytes, one, 4);
    Message whole;
    std::copy(bytes.begin(), bytes.end(), whole.begin());
    return whole;
  }

  void ask(std::uint32_t port, std::span<const std::byte> bytes) {
    ASSERT_EQ(::send(askers[port].fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  // Programs answer, and what they answered comes to who asked, for so many calls of receive().
  void serve(int calls) {
    Bytes room(1 << 16), small(64);
    std::vector<RxPacket> packets(16);
    for (int call = 0; call < calls; ++call) {
      const RxBatch batch = link->receive(room, packets, now_ns += kMs);
      for (std::uint32_t p = 0; p < batch.packet_count; ++p) take(std::span(room).subspan(packets[p].offset, packets[p].bytes));
      while (const auto request = programs->receive(small)) {
        ASSERT_EQ(request->bytes, kKm3ControlBytes);
        Message& heard = came_down[request->socket].emplace_back();
        std::copy_n(small.begin(), heard.size(), heard.begin());
        if (is_dumb) continue;
        Message answer = message("KM3A", request->socket + 1, get(heard, 8), std::to_integer<unsigned>(heard[6]));
        ASSERT_TRUE(programs->reply(*request, answer));
      }
      for (std::uint32_t port = 0; port < 2; ++port) {
        for (ssize_t bytes; (bytes = ::recv(askers[port].fd(), small.data(), small.size(), 0)) >= 0;) {
          ASSERT_EQ(bytes, static_cast<ssize_t>(kKm3ControlBytes));
          std::copy_n(small.begin(), kKm3ControlBytes, came_back[port].emplace_back().begin());
        }
      }
    }
  }

  void serve_without_programs(int calls) {
    Bytes room(1 << 16);
    std::vector<RxPacket> packets(16);
    for (int call = 0; call < calls; ++call) link->receive(room, packets, now_ns += kMs);
  }

  // Each request and answer is where it should be, and has one fate.
  void check_control(std::uint64_t bad_requests = 0, std::uint64_t not_answers = 0) {
    const Counts all = counts();
    for (int port = 0; port < 2; ++port) {
      const auto of = [&](const char* name) { return all.at({"slow_control", port, name}); };
      const auto km3 = [&](const char* name) { return all.at({"km3", port, name}); };
      EXPECT_EQ(of("requests"), of("bad_request") + of("down") + of("express"));
      EXPECT_EQ(of("down"), km3("to_floor") + km3("to_floor_cut") + km3("to_floor_full"));
      EXPECT_EQ(km3("to_floor"), of("heard"));
      EXPECT_EQ(of("answers"), of("bad_answer") + of("no_room") + of("up") + of("held"));
      EXPECT_EQ(of("up"), of("came"));
      EXPECT_EQ(of("came"), of("returned") + of("no_asker"));
      EXPECT_EQ(of("heard"), came_down[static_cast<std::size_t>(port)].size());
      EXPECT_EQ(of("returned") + of("express_answered"), came_back[static_cast<std::size_t>(port)].size());
      EXPECT_EQ(km3("unplaced"), 0u);
      bad_requests -= of("bad_request");
      not_answers -= of("bad_answer") + of("no_asker");
    }
    EXPECT_EQ(bad_requests, 0u);
    EXPECT_EQ(not_answers, 0u);
    check_books();
  }

  std::unique_ptr<ReplySockets> programs;
  std::array<Socket, 2> askers{Socket(), Socket()};
  std::array<std::vector<Message>, 2> came_down, came_back;
  bool is_dumb = false;
};

TEST_F(Km3ControlTest, FloorsAnswerBeforeThereIsARun) {
  std::array<std::vector<Message>, 2> asked, answers;
  for (std::uint32_t k = 0; k < 40; ++k) {  // more than go with one frame
    const std::uint32_t port = k % 3 == 0 ? 1 : 0;
    ask(port, asked[port].emplace_back(message("KM3C", port + 1, 100 + k, 1 + k % 5)));
    answers[port].push_back(message("KM3A", port + 1, 100 + k, 1 + k % 5));
  }
  serve(150);
  EXPECT_EQ(came_down, asked);
  EXPECT_EQ(came_back, answers);
  EXPECT_TRUE(found.empty());
  check_control();
  const std::uint64_t frames = counts().at({"floor", 0, "frames"});
  serve(60);
  EXPECT_EQ((counts().at({"floor", 0, "frames"})), frames);  // and then the links stand again
}

// The link itself answers: after how many words the code was back, on an idle link and beside data. One that is asked for again is not sent again.
TEST_F(Km3ControlTest, ExpressCodesAreSentAndTheirTimeIsToldOnce) {
  const auto express = [](std::uint32_t port, std::uint32_t sequence, unsigned code) {
    Message request = message("KM3C", port + 1, sequence, 6);
    request[12] = static_cast<std::byte>(code >> 8);
    request[13] = static_cast<std::byte>(code);
    request[14] = request[15] = std::byte{};
    return request;
  };
  std::set<std::uint32_t> trips;
  const auto send_one = [&](std::uint32_t port, std::uint32_t sequence, unsigned code) {
    const Message request = express(port, sequence, code);
    const std::size_t before = came_back[port].size();
    ask(port, request);
    for (int k = 0; k < 400 && came_back[port].size() == before; ++k) serve(1);
    ASSERT_EQ(came_back[port].size(), before + 1);
    const Message& answer = came_back[port].back();
    EXPECT_EQ(std::to_integer<unsigned>(answer[7]), 0u);
    EXPECT_TRUE(std::equal(answer.begin() + 4, answer.begin() + 7, request.begin() + 4));
    EXPECT_TRUE(std::equal(answer.begin() + 8, answer.begin() + 14, request.begin() + 8));
    trips.insert(get(answer, 16));
    EXPECT_LT(get(answer, 24), 62'500'000u);
  };
  for (std::uint32_t k = 0; k < 4; ++k) send_one(k % 2, k, 37 * k);
  ask(1, express(1, 3, 37 * 3));
  ask(0, express(0, 9, 256));
  serve(20);
  ASSERT_EQ(came_back[1].size(), 3u);
  EXPECT_EQ(came_back[1][2], came_back[1][1]);
  ASSERT_EQ(came_back[0].size(), 3u);
  EXPECT_EQ(std::to_integer<unsigned>(came_back[0][2][7]), 3u);  // out of bounds

  for (std::uint32_t slice = 0; slice < 6; ++slice) {
    for (const unsigned floor : {1u, 2u}) send_unit(floor, 1, slice, hits(400), 6);
  }
  for (int k = 0; k < 400 && found.empty(); ++k) serve(1);  // the run has begun
  for (std::uint32_t k = 10; k < 14; ++k) send_one(k % 2, k, 11 * k);
  serve(1500);
  for (const auto& [key, unit] : sent) EXPECT_TRUE(by_module(found[key]) == by_module(unit));
  EXPECT_TRUE(holed.empty());
  EXPECT_EQ(trips.size(), 1u);
  EXPECT_EQ((counts().at({"km3", 0, "express_sent"})), 4u);
  EXPECT_EQ((counts().at({"km3", 1, "express_taken"})), 4u);
  EXPECT_TRUE(came_down[0].empty());
  check_control();
}

TEST_F(Km3ControlTest, DataAreTheSameBesideIt) {
  for (std::uint32_t slice = 0; slice < 4; ++slice) {
    for (const unsigned floor : {1u, 2u}) {
      send_unit(floor, 1, slice, hits(random() % 400), 6);
      send_unit(floor, 3, slice, hits(19), 3);
    }
    if (slice > 0) {  // what is on its way when the time jumps, as a run begins, is to_floor_cut
      for (const std::uint32_t port : {0u, 1u}) ask(port, message("KM3C", port + 1, slice));
    }
    serve(30);
  }
  serve(3500);
  for (const auto& [key, unit] : sent) {
    const bool is_hits = std::get<1>(key) == 1;
    EXPECT_TRUE(is_hits ? by_module(found[key]) == by_module(unit) : found[key] == unit);
    EXPECT_EQ(found[key].size(), unit.size());
    EXPECT_TRUE(ended.contains(key));
  }
  EXPECT_TRUE(holed.empty());
  for (const std::size_t port : {0u, 1u}) EXPECT_EQ(came_back[port].size(), 3u);
  check_control();
}

// Nothing has come for long: slices go by without data for what is asked, and those that come after it are whole.
TEST_F(Km3ControlTest, FloorsThatSendNothingAnswer) {
  const auto slice_of_both = [&](std::uint32_t slice) {
    for (const unsigned floor : {1u, 2u}) send_unit(floor, 1, slice, hits(30), 6);
  };
  slice_of_both(0);
  serve(700);
  const std::size_t units = found.size();
  ask(1, message("KM3C", 2, 7));
  serve(1500);
  EXPECT_TRUE(came_back[1].empty());  // a floor that is late is waited for
  serve(2000);
  ASSERT_EQ(came_back[1], std::vector<Message>{message("KM3A", 2, 7)});
  EXPECT_EQ(found.size(), units);  // a frame with an answer is no empty unit
  EXPECT_EQ((counts().at({"km3", 1, "missing"})), 0u);
  slice_of_both(15);
  serve(1500);
  EXPECT_EQ(by_module((found[{2, 1, 15}])), by_module((sent[{2, 1, 15}])));
  EXPECT_TRUE(holed.empty());
  check_control();
}

// Reading takes time of the node: it must not count for time in which something is on its way, or a run would not begin while anyone reads.
TEST_F(Km3ControlTest, ARunBeginsHoweverOftenTheLinkIsRead) {
  for (const unsigned floor : {1u, 2u}) send_unit(floor, 1, 0, hits(100), 6);
  ask(0, message("KM3C", 1, 5));
  for (int call = 0; call < 150 && ended.size() < 2; ++call) {
    now_ns += 20 * kMs;
    serve(1);
    link->stats();
  }
  EXPECT_EQ(ended.size(), 2u);
  serve(700);
  for (const auto& [key, unit] : sent) EXPECT_TRUE(by_module(found[key]) == by_module(unit));
  EXPECT_TRUE(holed.empty());
  check_control();
}

// Words of a request are lost, any number of them from its end: the next one is whole, and nothing is asked of a floor that no one asked.
TEST_F(Km3ControlTest, ARequestThatLostWordsCostsNoOther) {
  GatewareFloors floors{.floors = 2};
  std::unique_ptr<ReplySockets> free;
  std::tie(free, floors.control) = pair_of_ports();
  free.reset();
  floors.floor_control = floor_control;
  Km3Control own(floors);
  const Message cut = message("KM3C", 1, 0x01020304, 2), whole = message("KM3C", 1, 0x05060708, 2);
  Bytes room(64);
  for (std::size_t left = 2; left < cut.size(); left += 2) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t k = 0; k < left; ++k) bytes.push_back(std::to_integer<std::uint8_t>(cut[k]));
    for (const std::byte one : whole) bytes.push_back(std::to_integer<std::uint8_t>(one));
    for (const std::byte one : whole) bytes.push_back(std::to_integer<std::uint8_t>(one));
    own.heard(0, bytes);
    std::size_t good = 0;
    for (int look = 0; look < 2000 && good == 0; ++look) {
      while (const auto request = programs->receive(room)) {
        const bool is_whole = std::equal(whole.begin(), whole.end(), room.begin());
        good += is_whole ? 1 : 0;
        EXPECT_TRUE(is_whole || std::to_integer<unsigned>(room[6]) > 5) << left;  // else it is a command that there is not
      }
    }
    EXPECT_GE(good, 1u) << left;
    bytes.clear();
  }
  EXPECT_GT(own.counts(0).counts[4].second, 10u);  // torn
}

TEST_F(Km3ControlTest, WhatIsNoSlowControlHasAName) {
  const Message good = message("KM3C", 1, 5);
  ask(0, std::span(good).first(27));
  ask(0, message("KM3A", 1, 5));
  ask(1, good);  // a floor that is asked for another one says so itself
  serve(40);
  EXPECT_EQ(came_down[0].size(), 0u);
  EXPECT_EQ(came_down[1], std::vector<Message>{good});
  EXPECT_EQ(came_back[1], std::vector<Message>{message("KM3A", 2, 5)});
  check_control(2);

  // Answers that are none, that no one asked for, and that come twice.
  is_dumb = true;
  Bytes small(64);
  ask(0, good);
  for (int k = 0; k < 400 && came_down[0].empty(); ++k) {
    link->receive(small, std::span<RxPacket>(), now_ns += kMs);
    if (const auto request = programs->receive(small)) {
      came_down[0].push_back(good);
      const Message answer = message("KM3A", 1, 5);
      for (const Message& one : {good, message("KM3A", 1, 6), answer, answer}) ASSERT_TRUE(programs->reply(*request, one));
    }
  }
  serve(60);
  EXPECT_EQ(came_back[0], std::vector<Message>{message("KM3A", 1, 5)});
  check_control(2, 3);

  // A floor whose program is gone: what came down is named, and others answer.
  programs.reset();
  ask(0, message("KM3C", 1, 8));
  serve_without_programs(60);
  ask(0, message("KM3C", 1, 9));
  serve_without_programs(60);
  EXPECT_EQ((counts().at({"slow_control", 0, "heard"})), 3u);
  EXPECT_GE((counts().at({"slow_control", 0, "unreachable"})), 1u);
}

}  // namespace
}  // namespace nanet::link::gateware
