// SPDX-License-Identifier: Apache-2.0
// The verilated NIC with its driver: what goes in on XGMII is in the buffers, what is rung goes out, and no access is astray.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <string>

#include "nic_rig.hpp"

namespace nanet::link::gateware {
namespace {

using test::Bytes;
using test::HostTiming;
using test::kAddress;
using test::kPeer;
using test::kPeerPort;
using test::kPort;
using test::Model;
using test::random_bytes;

Bytes frame_of(std::span<const std::byte> payload, std::uint16_t port = kPort) { return test::frame_to(port, payload); }

class NicTest : public test::RigTest {
 protected:
  Match match() const override { return {.index = 3, .port = kPort, .from_address = 0, .from_mask = 0, .source = 9}; }

  // Payloads of the next buffers, until `count` or a long time has gone by.
  std::vector<Bytes> receive(std::size_t count, bool release = true) {
    std::vector<Bytes> found;
    for (int k = 0; k < 1'000'000 && found.size() < count; ++k) {
      device->poll();
      const Completion* completion = driver->poll();
      if (completion == nullptr) continue;
      last = *completion;
      for (const PacketRef& ref : driver->packets(*completion)) {
        const auto payload = driver->payload(*completion, ref);
        found.emplace_back(payload.begin(), payload.end());
        EXPECT_EQ(ref.source, 9);
      }
      if (release) driver->release();
    }
    return found;
  }

  void push(const Bytes& frame) { model->wire_in().push(frame); }
  void run_dry() { rig->run_dry(); }

  Completion last{};
};

TEST_F(NicTest, RegistersKeepWhatWasWrittenAndOthersAreRefused) {
  start();
  model->write(0x020, 0x1234'5678'9ABC);
  EXPECT_EQ(model->read(0x020), 0x1234'5678'9ABCu);
  EXPECT_EQ(model->read(0x008) & 0xFFFF'FFFF, 0x1010'1004u);  // regions, destinations, match entries, CLOPs
  EXPECT_THROW(model->read(0x0F8), std::out_of_range);
  EXPECT_THROW(model->write(0x0F8, 1), std::out_of_range);
  model->write(0x030, 1'000'000);  // the clock of arrivals
  const std::uint64_t before = model->cycle();
  const std::uint64_t now = model->read(0x010);
  EXPECT_NEAR(static_cast<double>(now), 1e6 + static_cast<double>(model->cycle() - before) * 6.4, 40);
}

TEST_F(NicTest, PayloadsOfAllSizesArriveUnderEveryTimingOfTheHost) {
  for (const HostTiming& timing :
       {HostTiming{},
        HostTiming{.write_cycles = 300, .read_cycles_min = 10, .read_cycles_max = 400, .busy_per_1024 = 300, .seed = 3}}) {
    SCOPED_TRACE("busy " + std::to_string(timing.busy_per_1024));
    start(timing);
    std::mt19937_64 random(timing.seed);
    std::vector<Bytes> sent;
    for (std::size_t bytes = 1; bytes <= 8960; bytes += bytes < 200 ? 3 : 397) sent.push_back(random_bytes(random, bytes));
    for (const Bytes& payload : sent) push(frame_of(payload));
    EXPECT_TRUE(receive(sent.size()) == sent);
    EXPECT_EQ(driver->rx_count(rx::parsed), sent.size());
    EXPECT_EQ(driver->rx_count(rx::stored), sent.size());
    TearDown();
  }
}

TEST_F(NicTest, ACompletionTellsOfItsPackets) {
  start({}, {.clops = {{.packets_per_buffer = 4, .timeout_ns = 0}}});
  const Bytes payload(64, std::byte{5});
  for (int k = 0; k < 6; ++k) push(frame_of(payload));
  EXPECT_EQ(receive(4).size(), 4u);
  EXPECT_EQ(last.status, status::full);
  EXPECT_EQ(last.stride_bytes, 64);
  EXPECT_EQ(last.bytes, 256u);
  EXPECT_EQ(last.tag, 0u);
  EXPECT_LT(last.first_packet_ns, last.last_packet_ns);
  run_dry();
  driver->flush();
  EXPECT_EQ(receive(2).size(), 2u);
  EXPECT_EQ(last.status, status::flush);
  EXPECT_EQ(last.tag, 1u);
}

TEST_F(NicTest, AWaitingConsumerGetsWhatIsThereAfterTheTimeOut) {
  constexpr std::uint32_t kTimeoutNs = 5000;
  start({}, {.clops = {{.timeout_ns = kTimeoutNs}}});
  push(frame_of(Bytes(500, std::byte{4})));
  while (model->wire_in().waiting() != 0) device->poll();
  const std::uint64_t begin = model->cycle();
  EXPECT_EQ(receive(1).size(), 1u);
  EXPECT_EQ(last.status, status::timeout);
  const double waited_ns = static_cast<double>(model->cycle() - begin) *
                           nanet::gateware::ns_per_cycle(nanet::gateware::Line::gbps_10);
  EXPECT_NEAR(waited_ns, kTimeoutNs, 300);
  EXPECT_EQ(last.first_packet_ns, last.last_packet_ns);
}

TEST_F(NicTest, NothingIsWrittenOverWhileTheConsumerHoldsIt) {
  start({}, {.clops = {{.buffer_count = 2, .packets_per_buffer = 2, .timeout_ns = 0}}});
  for (int k = 0; k < 10; ++k) push(frame_of(Bytes(100, static_cast<std::byte>(k))));
  run_dry();
  const std::vector<Bytes> held = receive(4, false);
  ASSERT_EQ(held.size(), 4u);
  for (int k = 0; k < 4; ++k) EXPECT_EQ(held[static_cast<std::size_t>(k)], Bytes(100, static_cast<std::byte>(k)));
  EXPECT_EQ(driver->rx_count(rx::no_buffer), 6u);
  driver->release();
  push(frame_of(Bytes(100, std::byte{77})));
  run_dry();
  driver->flush();
  EXPECT_EQ(receive(1), std::vector<Bytes>{Bytes(100, std::byte{77})});
  EXPECT_EQ(last.packets_lost, 6u);
  EXPECT_TRUE(last.status & status::gap);
}

TEST_F(NicTest, WhatIsBadOrForeignIsCountedAndTheNextFrameArrives) {
  start();
  Bytes bad = frame_of(Bytes(300, std::byte{1}));
  bad[100] ^= std::byte{1};
  push(bad);
  push(frame_of(Bytes(300, std::byte{2}), kPort + 1));
  push(frame_of(Bytes(300, std::byte{3})));
  EXPECT_EQ(receive(1), std::vector<Bytes>{Bytes(300, std::byte{3})});
  EXPECT_EQ(driver->rx_count(rx::fcs), 1u);
  EXPECT_EQ(driver->rx_count(rx::no_match), 1u);
  EXPECT_EQ(driver->rx_count(rx::stored), 1u);
}

TEST_F(NicTest, FootersHoldStampsInOrder) {
  start({}, {.clops = {{.footer = true}}});
  push(frame_of(Bytes(1168, std::byte{9})));
  std::uint64_t start_cycle = 0;
  for (int k = 0; k < 5000 && driver->under_way() == 0; ++k) {
    device->poll();
    const Completion* completion = driver->poll();
    if (completion == nullptr) continue;
    const auto stamps = driver->stamps(*completion, driver->packets(*completion)[0]);
    for (std::size_t s = 0; s + 1 < stamps.size(); ++s) EXPECT_LT(stamps[s], stamps[s + 1]);
    EXPECT_EQ(stamps[1] - stamps[0], 16u);  // the payload's first word leaves the parser so long after the start character
    start_cycle = stamps[0];
    driver->release();
    break;
  }
  EXPECT_NE(start_cycle, 0u);
}

TEST_F(NicTest, WhatIsRungGoesOutAsFramesInOrder) {
  for (const HostTiming& timing :
       {HostTiming{},
        HostTiming{.write_cycles = 100, .read_cycles_min = 20, .read_cycles_max = 600, .busy_per_1024 = 200, .seed = 5}}) {
    start(timing);
    std::mt19937_64 random(timing.seed);
    std::vector<Bytes> sent;
    std::vector<Bytes> seen;
    std::uint64_t completions = 0;
    for (int k = 0; k < 100'000 && completions < 200; ++k) {
      if (sent.size() < 200) {
        Bytes payload = random_bytes(random, 1 + random() % 2000);
        if (driver->send(payload, 2, 1000 + sent.size())) sent.push_back(std::move(payload));
      }
      device->poll();
      while (const Completion* done = driver->poll_sent()) {
        EXPECT_EQ(done->kind, CompletionKind::packet_sent);
        EXPECT_EQ(done->tag, 1000 + completions++);
      }
    }
    model->step(2000);
    for (const auto& frame : model->wire_out().frames()) {
      UdpView view;
      ASSERT_EQ(read_udp_frame(frame.bytes, view), FrameError::none);
      EXPECT_EQ(view.flow.to_address, kPeer);
      EXPECT_EQ(view.flow.to_port, kPeerPort);
      EXPECT_EQ(view.flow.from_port, kPort);
      seen.emplace_back(view.payload.begin(), view.payload.end());
    }
    EXPECT_TRUE(seen == sent) << seen.size() << " frames, not " << sent.size();
    EXPECT_EQ(model->wire_out().bad(), 0u);
    TearDown();
  }
}

// A frame of some kind, and whether it is to be delivered.
Bytes spoilt(std::mt19937_64& random, const Bytes& payload, bool& good) {
  Bytes frame = frame_of(payload);
  good = false;
  switch (random() % 8) {
    case 0:  // a bit is flipped
      frame[random() % frame.size()] ^= std::byte{1} << (random() % 8);
      return frame;
    case 1:  // cut, the check sequence with it
      frame.resize(1 + random() % (frame.size() - 1));
      return frame;
    case 2:  // for another port
      return frame_of(payload, kPort + 1);
    case 3: {  // an IPv4 header that contradicts itself, the check sequence right
      frame.resize(frame.size() - nanet::gateware::kFcsBytes);
      frame[14 + random() % 20] ^= std::byte{0x10};
      return nanet::gateware::with_fcs(frame);
    }
    case 4:  // too long for any frame
      return nanet::gateware::with_fcs(Bytes(9100 + random() % 500));
    default: good = true; return frame;
  }
}

TEST_F(NicTest, EveryFrameIsDeliveredOrInOneCounter) {
  start({.write_cycles = 40, .busy_per_1024 = 60, .seed = 11});
  std::mt19937_64 random(11);
  std::vector<Bytes> expected;
  constexpr std::size_t kFrames = 1500;
  for (std::size_t k = 0; k < kFrames; ++k) {
    const Bytes payload = random_bytes(random, 1 + random() % 600);
    bool good = false;
    push(spoilt(random, payload, good));
    if (good) expected.push_back(payload);
  }
  const std::vector<Bytes> found = receive(expected.size());
  run_dry();
  EXPECT_TRUE(found == expected) << found.size() << " payloads, not " << expected.size();
  std::uint64_t began = 0;
  std::uint64_t behind = 0;
  for (unsigned k = 0; k < rx::stored; ++k) began += driver->rx_count(k);
  for (unsigned k = rx::stored; k < rx::bad; ++k) behind += driver->rx_count(k);
  EXPECT_EQ(began, kFrames);
  EXPECT_EQ(behind, driver->rx_count(rx::parsed));
  EXPECT_EQ(driver->rx_count(rx::stored), expected.size());
  EXPECT_LE(driver->rx_count(rx::bad), driver->rx_count(rx::fcs));  // those of them whose payload had begun to be written
  EXPECT_GT(driver->rx_count(rx::bad), 0u);
}

// What of a page may be read and written is the page table's: a write beside it never reaches the bus.
TEST_F(NicTest, AMissedTranslationStopsTheClopUntilItIsDisabled) {
  start({}, {.clops = {{.timeout_ns = 0}}});
  const std::uint32_t entries = 1;  // the completions have one page, so the buffers' first is entry 1
  model->write(0x068, 0);
  model->write(0x070, entries);
  const std::uint64_t writes = model->bus().write_count();
  for (int k = 0; k < 50; ++k) push(frame_of(Bytes(700, std::byte{1})));
  run_dry();
  EXPECT_EQ(model->read(0x230) >> 33 & 1, 1u);  // fault
  EXPECT_EQ(driver->poll(), nullptr);
  EXPECT_GT(driver->rx_count(rx::disabled), 40u);      // its CLOP is as if disabled
  EXPECT_LT(model->bus().write_count() - writes, 5u);  // packet indexes of what was in flight
  model->write(0x200, 0);
  model->step(2000);
  EXPECT_EQ(model->read(0x230) >> 33 & 1, 0u);
}

TEST_F(NicTest, APoisonedDescriptorStopsTheRing) {
  start();
  model->bus().fail_reads(true);
  ASSERT_TRUE(driver->send(Bytes(100, std::byte{1}), 2, 1));
  model->step(2000);
  EXPECT_EQ(model->read(0x428) >> 33 & 1, 1u);  // the descriptor could not be read: the ring stands still
  EXPECT_EQ(driver->poll_sent(), nullptr);
  EXPECT_TRUE(model->wire_out().frames().empty());
  model->bus().fail_reads(false);
}

TEST_F(NicTest, AResetInMidPacketLeavesNothingBehind) {
  start();
  for (int k = 0; k < 3; ++k) push(frame_of(Bytes(1400, std::byte{1})));
  ASSERT_TRUE(driver->send(Bytes(1400, std::byte{1}), 2, 1));
  model->step(250);
  const std::uint64_t writes = model->bus().write_count();
  model->reset();
  run_dry();
  EXPECT_EQ(model->bus().write_count(), writes);  // it has forgotten where
  EXPECT_EQ(model->read(0x800 + 8 * rx::stored), 0u);
  EXPECT_TRUE(model->bus().idle());
}

// The table of the model catches what the page table of the NIC lets through: here a driver's mistake.
TEST(NicStray, AnAccessBesideRegisteredMemoryIsReportedAndNotDone) {
  Model model;
  {
    SimDevice device(model);
    NicDriver driver(device, {.address = kAddress});
    driver.set_match({.index = 0, .port = kPort});
    model.write(0x068, 0x7777'0000'0000 | 7);  // page 0 of the first region, the completions: a bus address that is no one's
    model.write(0x070, 0);
    model.wire_in().push(frame_of(Bytes(64, std::byte{1})));
    while (model.wire_in().waiting() != 0) device.poll();
    model.step(1000);
    EXPECT_EQ(driver.poll(), nullptr);
  }
  EXPECT_EQ(model.bus().stray_count(), 1u);
  ASSERT_EQ(model.bus().strays().size(), 1u);
  EXPECT_TRUE(model.bus().strays()[0].is_write);
  EXPECT_EQ(model.bus().strays()[0].address, 0x7777'0000'0000u);
}

}  // namespace
}  // namespace nanet::link::gateware
