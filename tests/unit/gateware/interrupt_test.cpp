// SPDX-License-Identifier: Apache-2.0
// A consumer that sleeps until the NIC's interrupt: it is woken for every completion, at any time relative to its falling asleep.
#include <gtest/gtest.h>

#include "nic_rig.hpp"

namespace nanet::link::gateware {
namespace {

using test::Bytes;
using test::Rig;

constexpr std::uint16_t kPort = 6200;
constexpr std::uint64_t kLongNs = 100'000;
const NicConfig kEachAtOnce{.clops = {{.buffer_count = 16, .packets_per_buffer = 1, .timeout_ns = 0}}};  // a completion for each packet

void receive_at(Rig& rig) { rig.driver->set_match({.index = 0, .port = kPort}); }

TEST(Interrupt, MaskedByDefault) {
  Rig rig(kEachAtOnce);
  receive_at(rig);
  rig.device.write(0x0D0, 0);  // armed, not enabled
  rig.push(kPort, Bytes(100));
  rig.run_dry();
  EXPECT_FALSE(rig.model.bus().take_message());
  EXPECT_EQ(rig.device.read(0x0D8), (std::uint64_t{2} << 32 | 1));  // raised, one completion
  rig.device.write(0x0C0, 1);
  rig.model.step(4);
  EXPECT_TRUE(rig.model.bus().take_message());  // it was not forgotten
  EXPECT_FALSE(rig.model.bus().take_message());
}

TEST(Interrupt, NobodyIsWokenForNothing) {
  Rig rig(kEachAtOnce);
  receive_at(rig);
  const std::uint64_t before = rig.model.cycle();
  EXPECT_FALSE(rig.driver->wait(kLongNs));
  const double waited_ns = static_cast<double>(rig.model.cycle() - before) *
                           nanet::gateware::ns_per_cycle(nanet::gateware::Line::gbps_10);
  EXPECT_NEAR(waited_ns, kLongNs, 200);
  rig.push(kPort, Bytes(100));
  EXPECT_TRUE(rig.driver->wait(kLongNs));
  EXPECT_NE(rig.driver->poll(), nullptr);
  rig.driver->release();
  EXPECT_FALSE(rig.driver->wait(kLongNs));  // what was taken does not wake again
}

// The packet is in flight for so many cycles when the consumer looks, finds nothing and falls asleep: every point of the race is met, also
// with a host in whose memory the completion lands long after the bus has taken it.
TEST(Interrupt, NoCompletionIsSleptOver) {
  for (const std::uint32_t write_cycles : {0u, 37u}) {
    Rig rig(kEachAtOnce, {.write_cycles = write_cycles});
    receive_at(rig);
    unsigned slept = 0;
    for (std::uint64_t ahead = 0; ahead < 160; ++ahead) {
      rig.push(kPort, Bytes(100, static_cast<std::byte>(ahead)));
      rig.model.step(ahead);
      const Completion* found = rig.driver->poll();
      if (found == nullptr) {
        ++slept;
        ASSERT_TRUE(rig.driver->wait(kLongNs)) << ahead << " cycles";
        found = rig.driver->poll();
      }
      ASSERT_NE(found, nullptr) << ahead << " cycles: woken before it was there";
      EXPECT_EQ(rig.driver->payload(*found, rig.driver->packets(*found)[0])[0], static_cast<std::byte>(ahead));
      rig.driver->release();
    }
    EXPECT_GT(slept, 40u);
    EXPECT_LT(slept, 150u);
  }
}

TEST(Interrupt, AConsumerThatOnlySleepsGetsEverything) {
  Rig rig({.clops = {{.buffer_count = 16, .packets_per_buffer = 3, .timeout_ns = 3000}}},
          {.write_cycles = 60, .busy_per_1024 = 100, .seed = 3});
  receive_at(rig);
  rig.driver->set_interrupt({.moderation_ns = 1500, .completions = 3});
  std::mt19937_64 random(3);
  constexpr std::uint64_t kPackets = 1000;
  std::uint64_t pushed = 0;
  std::uint64_t cycle = rig.model.cycle();
  for (; pushed < kPackets; ++pushed) {
    rig.model.wire_in().push(test::frame_to(kPort, Bytes(100 + random() % 500)), cycle += random() % 300);
  }
  std::uint64_t taken = 0;
  std::uint64_t woken = 0;
  std::uint64_t buffers = 0;
  while (taken < kPackets) {
    ASSERT_TRUE(rig.driver->wait(kLongNs)) << taken;
    ++woken;
    const Completion* found = rig.driver->poll();
    ASSERT_NE(found, nullptr) << "woken for nothing";
    for (; found != nullptr; found = rig.driver->poll()) {
      taken += found->packet_count;
      ++buffers;
      rig.driver->release();
    }
    rig.model.step(random() % 200);
  }
  EXPECT_EQ(taken, kPackets);
  EXPECT_LT(woken, buffers);  // moderated
}

TEST(Interrupt, ModerationWaitsForEnoughOrLongEnough) {
  constexpr std::uint32_t kModerationNs = 20'000;
  Rig rig(kEachAtOnce);
  receive_at(rig);
  rig.driver->set_interrupt({.moderation_ns = kModerationNs, .completions = 4});
  const auto woken_after_ns = [&](int packets) {
    for (int k = 0; k < packets; ++k) rig.push(kPort, Bytes(18));
    const std::uint64_t before = rig.model.cycle();
    EXPECT_TRUE(rig.driver->wait(kLongNs));
    for (int k = 0; k < packets; ++k) {
      EXPECT_NE(rig.driver->poll(), nullptr);
      rig.driver->release();
    }
    return static_cast<double>(rig.model.cycle() - before) * nanet::gateware::ns_per_cycle(nanet::gateware::Line::gbps_10);
  };
  constexpr double kWayNs = 1000;  // of four shortest packets, more than enough
  EXPECT_NEAR(woken_after_ns(3), kModerationNs + kWayNs / 2, kWayNs / 2);
  EXPECT_LT(woken_after_ns(4), kWayNs);
}

}  // namespace
}  // namespace nanet::link::gateware
