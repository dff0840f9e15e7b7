// SPDX-License-Identifier: Apache-2.0
// The link through a card, with the simulated NIC in the card's place: frames go in and out on the model's wire. What the kernel has to do with a card
// is of vfio_test.cpp, and of the refusals here. No card.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fake_kernel.hpp"
#include "link/gateware/card_link.hpp"
#include "nanet/setup_error.hpp"
#include "wire_rig.hpp"

namespace nanet::link::gateware {
namespace {

using test::Bytes;
using test::kAddress;
using test::kMac;
using test::kPeer;
using test::kPeerMac;
using test::kPort;
using test::Model;
using test::random_bytes;

// A model's device of a program that may be killed: then the program reaches nothing any more, and its memory is taken away.
class MortalDevice final : public Device {
 public:
  MortalDevice(Model& model, const bool& is_killed) : sim_(model), is_killed_(is_killed) {}

  std::uint64_t read(std::uint32_t offset) override { return is_killed_ ? 0 : sim_.read(offset); }
  void write(std::uint32_t offset, std::uint64_t value) override {
    if (!is_killed_) sim_.write(offset, value);
  }
  std::vector<std::uint64_t> map(std::span<std::byte> memory, std::size_t page_bytes, Access access) override {
    return sim_.map(memory, page_bytes, access);
  }
  void unmap(std::span<const std::uint64_t> pages) override { sim_.unmap(pages); }
  void poll() override {
    if (!is_killed_) sim_.poll();
  }
  bool wait(std::uint64_t timeout_ns) override { return sim_.wait(timeout_ns); }

 private:
  SimDevice sim_;
  const bool& is_killed_;
};

GatewareConfig config_with(std::size_t destinations = 0) {
  GatewareConfig config{.name = "boards", .listen = Endpoint{"gateware", kAddress, kPort}};
  config.card = {.card = "0000:65:00.0", .mac = "02:00:00:00:00:01", .next_hop = "02:00:00:00:00:02"};
  for (std::size_t k = 0; k < destinations; ++k) {
    config.destinations.push_back({"udp", kPeer + 0x100, static_cast<std::uint16_t>(5000 + k)});
  }
  return config;
}

std::string refusal(const GatewareConfig& config, Kernel& kernel) {
  try {
    open_card(config, kernel);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "opened";
}

struct CardTest : ::testing::Test {
  void TearDown() override {
    link.reset();
    EXPECT_EQ(model.bus().stray_count(), strays_expected) << (model.bus().strays().empty() ? "" : model.bus().strays().front().why);
  }

  void start(const GatewareConfig& config = config_with()) {
    link = std::make_unique<CardLink>(std::make_unique<SimDevice>(model), config);
  }

  void push(Bytes frame) {
    model.wire_in().push(nanet::gateware::with_fcs(frame));
    ++pushed;
  }

  // Until what is on the wire has come through the NIC, the time-out of a buffer included.
  void settle() {
    while (model.wire_in().waiting() != 0) model.step(64);
    model.step(3000);
  }

  // One call; how many packets it gave.
  std::size_t receive(std::size_t packets_max = 128, std::size_t room_max = 1 << 18) {
    Bytes room(room_max);
    std::vector<RxPacket> packets(packets_max);
    const RxBatch batch = link->receive(room, packets, 0);
    EXPECT_LE(batch.bytes_used, room.size());
    for (std::uint32_t p = 0; p < batch.packet_count; ++p) {
      EXPECT_EQ(packets[p].peer_address, 0u) << "a card does not say it";
      cut += (packets[p].flags & RxPacket::truncated) != 0;
      if ((packets[p].flags & RxPacket::after_drop) != 0) after_drop.push_back(received.size());
      const auto payload = std::span(room).subspan(packets[p].offset, packets[p].bytes);
      received.emplace_back(payload.begin(), payload.end());
    }
    return batch.packet_count;
  }
  void receive_all() {
    settle();
    while (receive() != 0) settle();
  }

  void send(const std::vector<Bytes>& payloads, std::uint32_t destination) {
    std::vector<TxPacket> packets;
    for (const Bytes& payload : payloads)
      packets.push_back({payload.data(), static_cast<std::uint32_t>(payload.size()), destination});
    link->send(packets, 0);
  }

  Model model;
  std::unique_ptr<CardLink> link;
  std::vector<Bytes> received;
  std::uint64_t pushed = 0, cut = 0;
  std::vector<std::size_t> after_drop;  // which of `received`
  std::uint64_t strays_expected = 0;
};

TEST_F(CardTest, GivesWhatCameInOrderAndNamesWhatDidNot) {
  start();
  std::mt19937_64 random(1);
  std::vector<Bytes> sent;
  using wire::ethernet, wire::ipv4, wire::udp, wire::udp_frame;
  const Bytes some = random_bytes(random, 100);
  for (int k = 0; k < 40; ++k) {
    for (int good = 0; good < 5; ++good) {
      sent.push_back(random_bytes(random, 1 + random() % 1472));
      push(udp_frame(sent.back()));
    }
    push(udp_frame(some, {.port = kPort + 1}));
    push(ethernet(ipv4(udp(some)), {.to = kPeerMac}));
    push(ethernet(ipv4(udp(some)), {.type = wire::kIpv6}));
    push(udp_frame(some, {.checksum_error = 1}));
    push(udp_frame(some, {.length_error = -200}));
    push(udp_frame(random_bytes(random, 9100)));
    sent.push_back(random_bytes(random, 1473));
    push(udp_frame(sent.back()));
    sent.back().resize(1472);
    push(wire::arp_request());
    Bytes damaged = nanet::gateware::with_fcs(udp_frame(some));
    damaged.back() ^= std::byte{1};
    model.wire_in().push(damaged);
    ++pushed;
    if (k % 8 == 7) receive_all();
  }
  receive_all();
  EXPECT_TRUE(received == sent) << received.size() << " payloads, not " << sent.size();
  const LinkStats stats = link->stats();
  EXPECT_EQ(cut, 40u) << "longer than packet_bytes_max";
  EXPECT_TRUE(after_drop.empty());
  EXPECT_EQ(stats.rx_packets, 240u);
  EXPECT_EQ(stats.rx_foreign, 3u * 40);
  EXPECT_EQ(stats.rx_malformed, 3u * 40);
  EXPECT_EQ(stats.rx_truncated - cut, 40u) << "longer than the NIC takes";
  EXPECT_EQ(stats.rx_kernel_dropped, 0u);
  const std::uint64_t answered = model.read(0x980);  // reply_count, ARP
  EXPECT_EQ(answered, 40u);
  EXPECT_EQ(stats.rx_packets + stats.rx_foreign + stats.rx_malformed + stats.rx_truncated - cut + answered, pushed);
  EXPECT_EQ(stats.rx_copied_bytes, stats.rx_bytes);
  std::uint64_t bytes = 0;
  for (const Bytes& payload : sent) bytes += payload.size();
  EXPECT_EQ(stats.rx_bytes, bytes);
}

TEST_F(CardTest, HandsABufferOnInAsManyCallsAsItTakes) {
  start();
  std::mt19937_64 random(2);
  std::vector<Bytes> sent;
  for (int k = 0; k < 50; ++k) {
    sent.push_back(random_bytes(random, 1 + random() % 1472));
    push(wire::udp_frame(sent.back()));
  }
  do settle();
  while (receive(7, 4096) != 0);
  EXPECT_TRUE(received == sent) << received.size() << " payloads, not " << sent.size();
  EXPECT_EQ(link->stats().rx_batches + 1, link->stats().rx_calls);
}

TEST_F(CardTest, WithoutAFreeBufferPacketsAreDroppedAndCounted) {
  start();
  const std::uint64_t room = 64 * 64;  // packets that all buffers can describe
  for (std::uint64_t k = 0; k < room + 500; ++k) push(wire::udp_frame(Bytes(18, static_cast<std::byte>(k))));
  settle();
  EXPECT_GE(link->stats().rx_kernel_dropped, 400u);
  receive_all();
  const std::size_t before = received.size();
  EXPECT_EQ(before + link->stats().rx_kernel_dropped, pushed);
  EXPECT_TRUE(after_drop.empty());
  push(wire::udp_frame(Bytes(18)));
  receive_all();
  EXPECT_EQ(received.size(), before + 1) << "and it goes on";
  EXPECT_EQ(after_drop, std::vector{before}) << "the first behind the gap says so";
}

TEST_F(CardTest, SendsToTheNextHopMoreThanTheRingHolds) {
  start(config_with(3));
  std::mt19937_64 random(3);
  std::vector<Bytes> sent;
  for (int k = 0; k < 200; ++k) sent.push_back(random_bytes(random, 1 + random() % 1472));
  sent.push_back(random_bytes(random, 8960));
  send(sent, 1);
  send({Bytes{}, Bytes(9000)}, 1);
  send({Bytes(10)}, 3);
  for (int k = 0; k < 100'000 && model.wire_out().frames().size() < sent.size(); ++k) model.step();
  ASSERT_EQ(model.wire_out().frames().size(), sent.size());
  for (std::size_t k = 0; k < sent.size(); ++k) {
    const Bytes& frame = model.wire_out().frames()[k].bytes;
    Bytes head(kEthernetHeaderBytes);
    write_ethernet_header(head.data(), kMac, kPeerMac);
    EXPECT_TRUE(std::equal(head.begin(), head.end(), frame.begin()));
    UdpView view;
    ASSERT_EQ(read_udp_frame(frame, view), FrameError::none);
    EXPECT_EQ(view.flow.from_address, kAddress);
    EXPECT_EQ(view.flow.from_port, kPort);
    EXPECT_EQ(view.flow.to_address, kPeer + 0x100);
    EXPECT_EQ(view.flow.to_port, 5001);
    EXPECT_TRUE(std::equal(view.payload.begin(), view.payload.end(), sent[k].begin(), sent[k].end())) << k;
  }
  EXPECT_EQ(model.wire_out().bad(), 0u);
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.tx_packets, 201u);
  EXPECT_EQ(stats.tx_dropped, 3u);
  EXPECT_EQ(stats.tx_calls, 3u);
}

TEST_F(CardTest, WhatTheNicCouldNotReadIsDropped) {
  auto own = std::make_unique<test::WatchedDevice>(model);
  const test::WatchedDevice& device = *own;
  link = std::make_unique<CardLink>(std::move(own), config_with(1));
  std::vector<std::vector<std::uint64_t>> read;  // the ring, the payloads
  for (const test::Mapped& one : device.mapped) {
    if (one.access == Access::read) read.push_back(one.pages);
  }
  ASSERT_EQ(read.size(), 2u);
  send({Bytes(100)}, 0);
  model.step(2000);
  for (const std::uint64_t page : read[1]) model.bus().unmap(page);
  send({Bytes(100), Bytes(200)}, 0);
  model.step(2000);
  EXPECT_EQ(link->stats().tx_packets, 1u);
  EXPECT_EQ(link->stats().tx_dropped, 2u);
  EXPECT_EQ(model.wire_out().frames().size(), 1u);
  strays_expected = model.bus().stray_count();
  EXPECT_GT(strays_expected, 0u);
}

TEST_F(CardTest, ARingThatDoesNotMoveIsNotWaitedForTwice) {
  start(config_with(1));
  model.bus().fail_reads(true);  // not even a descriptor comes
  send(std::vector<Bytes>(100, Bytes(10)), 0);
  EXPECT_EQ(link->stats().tx_dropped, 100u - 64);
  const std::uint64_t before = model.cycle();
  send(std::vector<Bytes>(100, Bytes(10)), 0);
  EXPECT_LT(model.cycle() - before, 1000u);
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.tx_dropped, 200u - 64);
  EXPECT_EQ(stats.tx_packets + stats.tx_dropped, 200u);
}

TEST_F(CardTest, SleepsUntilSomethingIsThere) {
  start();
  link->wait(10'000);
  EXPECT_EQ(receive(), 0u);
  for (int k = 0; k < 3; ++k) push(wire::udp_frame(Bytes(100)));
  link->wait(1'000'000);
  const std::uint64_t woken = model.cycle();
  EXPECT_EQ(receive(1), 1u) << "without a step more";
  link->wait(1'000'000);
  EXPECT_EQ(model.cycle(), woken) << "a buffer is in hand";
  receive_all();
  EXPECT_EQ(received.size(), 3u);
}

TEST_F(CardTest, SaysWhatItIsAndHowLongPacketsTook) {
  start();
  EXPECT_EQ(link->path(), "NIC on card 0000:65:00.0 by VFIO");
  ASSERT_EQ(link->notes().size(), 1u);
  EXPECT_NE(link->notes()[0].find("link boards goes by code that was not run on hardware ("), std::string::npos);
  EXPECT_EQ(to_string(link->local()), "gateware://10.0.0.1:6200");
  EXPECT_EQ(link->min_room_bytes(), 1472u);
  for (int k = 0; k < 30; ++k) push(wire::udp_frame(Bytes(100)));
  receive_all();
  const NicTimes times = link->nic_times().value();
  EXPECT_EQ(times.clock, "the card's");
  EXPECT_EQ(times.cycle_ns, 6.4);
  EXPECT_EQ(times.stages.at(0).count, 30u);
  EXPECT_EQ(times.stages.at(0).min_cycles, 16u);
  EXPECT_EQ(link->nic_times()->stages.at(0).count, 30u) << "since start, not since the last look";

  link.reset();
  start();
  EXPECT_EQ(link->nic_times()->stages.at(0).count, 0u) << "since its own start";
  EXPECT_EQ(link->stats().rx_kernel_dropped + link->stats().rx_foreign, 0u);
}

// The card keeps CLOPs, ring, match table and counters of a program that was killed.
TEST_F(CardTest, BeginsAnewAfterAProgramThatWasKilled) {
  bool is_killed = false;
  MortalDevice device(model, is_killed);
  {
    NicConfig config{.address = kAddress, .clops = {ClopConfig{}, ClopConfig{}, ClopConfig{}}, .tx_entries = 32};
    NicDriver driver(device, config);
    driver.set_match({.index = 3, .port = kPort + 1, .clop = 2});
    driver.set_match({.index = 1, .port = kPort});
    driver.set_destination({.index = 0, .mac = 0x02'00'00'00'00'09, .address = kPeer, .port = 1, .from_port = 1});
    for (int k = 0; k < 200; ++k) push(wire::udp_frame(Bytes(100), {.port = static_cast<std::uint16_t>(kPort + k % 3)}));
    settle();
    ASSERT_NE(driver.poll(), nullptr);
    for (int k = 0; k < 5; ++k) EXPECT_TRUE(driver.send(Bytes(10), 0, 0));
    model.step(2000);
    is_killed = true;
  }
  start(config_with(1));
  model.wire_out().frames().clear();
  pushed = 0;
  std::mt19937_64 random(4);
  std::vector<Bytes> sent;
  for (int k = 0; k < 200; ++k) {
    sent.push_back(random_bytes(random, 1 + random() % 1000));
    push(wire::udp_frame(sent.back()));
    push(wire::udp_frame(Bytes(50), {.port = kPort + 1}));
  }
  receive_all();
  EXPECT_TRUE(received == sent) << received.size() << " payloads, not " << sent.size();
  send({Bytes(10), Bytes(20)}, 0);
  model.step(3000);
  EXPECT_EQ(model.wire_out().frames().size(), 2u);
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.rx_packets, 200u);
  EXPECT_EQ(stats.rx_foreign, 200u) << "the port of the other program";
  EXPECT_EQ(stats.rx_kernel_dropped + stats.rx_malformed + stats.rx_truncated, 0u);
  EXPECT_EQ(stats.tx_packets, 2u);
  EXPECT_EQ(stats.tx_dropped, 0u);
  EXPECT_EQ(link->nic_times()->stages.at(0).count, 200u);
}

TEST_F(CardTest, RefusesWhatTheNicCannotDo) {
  GatewareConfig config = config_with(17);
  EXPECT_THROW(start(config), SetupError);
  config = config_with();
  config.packet_bytes_max = 9000;
  EXPECT_THROW(start(config), SetupError);
}

TEST(CardRefusals, OfTheConfiguration) {
  struct Case {
    const char* said;
    void (*change)(GatewareConfig&);
  };
  const Case cases[] = {
      {"link boards has no address of its own (", [](GatewareConfig& c) { c.listen.reset(); }},
      {"link boards has no address of its own (", [](GatewareConfig& c) { c.listen->address = 0; }},
      {"link boards has no address of its own (", [](GatewareConfig& c) { c.listen->port = 0; }},
      {"link boards has no usable mac (", [](GatewareConfig& c) { c.card->mac = ""; }},
      {"link boards has no usable mac (", [](GatewareConfig& c) { c.card->mac = "01:00:5E:00:00:01"; }},
      {"link boards has no usable mac (", [](GatewareConfig& c) { c.card->mac = "01:02:00:00:00:00:01"; }},
      {"set next_hop to the Ethernet address", [](GatewareConfig& c) { c.card->next_hop.clear(); }},
      {"settings of the simulation (nothing is simulated with a card)", [](GatewareConfig& c) { c.seed = 2; }},
      {"settings of the simulation (nothing is simulated with a card)", [](GatewareConfig& c) { c.cycles_per_call = 1; }},
  };
  for (const Case& one : cases) {
    test::FakeKernel kernel;
    GatewareConfig config = config_with(1);
    one.change(config);
    const std::string said = refusal(config, kernel);
    EXPECT_NE(said.find(one.said), std::string::npos) << one.said << "\n" << said;
    EXPECT_EQ(kernel.command, 0) << "the card was touched";
  }
}

TEST(CardRefusals, OfTheKernelAndTheCard) {
  GatewareConfig config = config_with();
  test::FakeKernel kernel;
  EXPECT_NE(refusal(config, kernel).find("there is no PCI device 0000:65:00.0 ("), std::string::npos);
  config.card->card = test::kPciAddress;
  EXPECT_NE(refusal(config, kernel).find("the device is no NIC that this driver knows ("), std::string::npos);
  EXPECT_TRUE(kernel.maps.empty());
  kernel.links["/sys/bus/pci/devices/" + test::kPciAddress + "/driver"] = "ixgbe";
  EXPECT_NE(refusal(config, kernel).find("(its driver is ixgbe) run driverctl"), std::string::npos);
}

// The registers of a NIC as they stand before a driver comes; nothing after them.
struct CardOfTheKernel : ::testing::Test {
  void SetUp() override {
    set(0x000, 0x54454E414E | std::uint64_t{3} << 48);
    set(0x008, 4 | 16 << 8 | 16 << 16 | std::uint64_t{16} << 24 | std::uint64_t{4096} << 32 | std::uint64_t{40} << 48 |
                   std::uint64_t{140} << 56);
    set(0x038, 1000 | std::uint64_t{8000} << 32);
    set(0x0B8, 5 | 64 << 8);
    config.card->card = test::kPciAddress;
  }

  void set(std::size_t offset, std::uint64_t value) { std::memcpy(kernel.bar.data() + offset, &value, sizeof(value)); }
  std::uint64_t get(std::size_t offset) const {
    std::uint64_t value;
    std::memcpy(&value, kernel.bar.data() + offset, sizeof(value));
    return value;
  }
  std::byte* memory(std::size_t map) const { return reinterpret_cast<std::byte*>(kernel.maps.at(map).vaddr); }

  test::FakeKernel kernel;
  GatewareConfig config = config_with(1);
};

TEST_F(CardOfTheKernel, IsOpenedReceivesSendsAndIsLeft) {
  auto link = open_card(config, kernel);
  EXPECT_EQ(get(0x020), 0x02'00'00'00'00'01u);
  EXPECT_EQ(get(0x028), kAddress);
  EXPECT_EQ(get(0x200), 1u) << "CLOP 0 is enabled";
  EXPECT_EQ(get(0x058) & 0xFFFF'FFFF'FFFF, 0x02'00'00'00'00'02u) << "the next hop";
  ASSERT_EQ(kernel.maps.size(), 6u);  // completions, buffers, index, ring, payloads, sent

  const PacketRef ref{.offset = 64, .bytes = 3, .source = 0};
  std::memcpy(memory(1) + 64, "abc", 3);
  std::memcpy(memory(2), &ref, sizeof(ref));
  const Completion completion{.kind = CompletionKind::buffer_filled, .packet_count = 1, .sequence = 1};
  std::memcpy(memory(0), &completion, sizeof(completion));
  Bytes room(4096);
  std::vector<RxPacket> packets(4);
  ASSERT_EQ(link->receive(room, packets, 0).packet_count, 1u);
  EXPECT_EQ(std::memcmp(room.data() + packets[0].offset, "abc", 3), 0);
  EXPECT_EQ(get(0x228), 1u) << "the buffer is returned";

  const TxPacket packet{room.data(), 3, 0};
  link->send({&packet, 1}, 0);
  EXPECT_EQ(get(0x420), 1u) << "the doorbell";
  EXPECT_EQ(std::memcmp(memory(4), "abc", 3), 0);
  EXPECT_EQ(link->stats().tx_packets, 1u);
  EXPECT_EQ(link->nic_times().value().cycle_ns, 8.0) << "it says that it is for 1 Gb/s";

  link.reset();
  EXPECT_EQ(get(0x200) | get(0x400), 0u) << "disabled";
  EXPECT_EQ(kernel.unmaps.size(), 6u);
  EXPECT_EQ(kernel.closed.size(), 4u);
}

TEST_F(CardOfTheKernel, WithoutEnoughLockedMemoryIsLeftAsItWas) {
  for (kernel.maps_max = 0; kernel.maps_max < 6; ++kernel.maps_max) {
    const std::string said = refusal(config, kernel);
    EXPECT_NE(said.find("cannot be registered with PCI device 0000:3b:00.0 ("), std::string::npos) << said;
    EXPECT_NE(said.find("ulimit -l"), std::string::npos) << said;
    EXPECT_EQ(kernel.unmaps.size(), kernel.maps_max);
    EXPECT_EQ(get(0x200) | get(0x400), 0u) << "disabled";
    kernel.maps.clear();
    kernel.unmaps.clear();
  }
}

TEST(CardRefusals, OfThisHost) {
  GatewareConfig config = config_with();
  config.card->card = "ffff:ff:1f.7";
  try {
    open_gateware(config);
    FAIL() << "there is such a card here";
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("there is no PCI device ffff:ff:1f.7 ("), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nanet::link::gateware
