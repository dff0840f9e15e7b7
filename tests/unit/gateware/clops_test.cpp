// SPDX-License-Identifier: Apache-2.0
// Several CLOPs, one of them in a GPU's memory: each packet goes where the match table says, completions of all come in one order.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "nanet/setup_error.hpp"
#include "nic_rig.hpp"

namespace nanet::link::gateware {
namespace {

using nanet::gateware::Model;
using test::Bytes;
using test::Rig;

constexpr std::uint16_t kHostPort = 6200, kGpuPort = 6300;
constexpr std::uint32_t kBufferBytes = 64 << 10, kBufferCount = 4;

// Stands for memory of a GPU: of this process, but in the other aperture of the NIC's bus.
struct GpuMemory {
  static constexpr std::size_t size = std::size_t{kBufferBytes} * kBufferCount;
  std::unique_ptr<void, decltype(&std::free)> memory{std::aligned_alloc(kBufferBytes, size), &std::free};
  std::span<std::byte> bytes{static_cast<std::byte*>(memory.get()), size};
  GpuMemory() { std::fill(bytes.begin(), bytes.end(), std::byte{0xEE}); }
};

NicConfig two_clops(const GpuMemory& gpu) {
  return {.clops = {{.buffer_bytes = kBufferBytes, .buffer_count = 8, .packets_per_buffer = 5, .timeout_ns = 4000},
                    {.buffer_bytes = kBufferBytes,
                     .buffer_count = kBufferCount,
                     .packets_per_buffer = 9,
                     .timeout_ns = 4000,
                     .footer = true,
                     .gpu_memory = gpu.bytes}}};
}

void receive_both(Rig& rig) {
  rig.driver->set_match({.index = 0, .port = kHostPort, .source = 11});
  rig.driver->set_match({.index = 1, .port = kGpuPort, .source = 22, .clop = 1});
}

TEST(Clops, PacketsOfTwoPortsLandInTwoMemoriesInOrder) {
  const GpuMemory gpu;
  Rig rig(two_clops(gpu), {.write_cycles = 30, .busy_per_1024 = 50, .seed = 6});
  receive_both(rig);
  std::mt19937_64 random(6);
  std::array<std::vector<Bytes>, 2> sent;
  constexpr std::size_t kPackets = 800;
  for (std::size_t k = 0; k < kPackets; ++k) {
    const unsigned clop = random() % 3 == 0;
    sent[clop].push_back(test::random_bytes(random, 1 + random() % 1472));
    rig.push(clop == 0 ? kHostPort : kGpuPort, sent[clop].back());
  }
  std::array<std::vector<Bytes>, 2> found;
  std::array<std::uint64_t, 2> buffers{};
  std::uint32_t sequence = 0;
  for (int k = 0; k < 2'000'000 && found[0].size() + found[1].size() < kPackets; ++k) {
    rig.device.poll();
    const Completion* completion = rig.driver->poll();
    if (completion == nullptr) continue;
    const unsigned clop = completion->clop;
    ASSERT_LT(clop, 2u);
    EXPECT_EQ(completion->sequence, ++sequence);  // one order for all
    EXPECT_EQ(completion->tag, buffers[clop]++);  // and one of each
    for (const PacketRef& packet : rig.driver->packets(*completion)) {
      const auto payload = rig.driver->payload(*completion, packet);
      const bool in_gpu = payload.data() >= gpu.bytes.data() && payload.data() + payload.size() <= gpu.bytes.data() + gpu.size;
      EXPECT_EQ(in_gpu, clop == 1);
      EXPECT_EQ(packet.source, clop == 0 ? 11 : 22);
      found[clop].emplace_back(payload.begin(), payload.end());
    }
    rig.driver->release(1, clop);
  }
  EXPECT_TRUE(found[0] == sent[0]) << found[0].size() << " of " << sent[0].size();
  EXPECT_TRUE(found[1] == sent[1]) << found[1].size() << " of " << sent[1].size();
}

TEST(Clops, AFullOneDoesNotHoldUpTheOther) {
  const GpuMemory gpu;
  NicConfig config = two_clops(gpu);
  config.clops[1].timeout_ns = 0;
  Rig rig(config);
  receive_both(rig);
  constexpr int kFits = kBufferCount * 9;
  for (int k = 0; k < kFits + 10; ++k) {
    rig.push(kGpuPort, Bytes(500, std::byte{1}));
    rig.push(kHostPort, Bytes(500, std::byte{2}));
  }
  std::size_t received = 0;
  for (int k = 0; k < 100'000 && received < kFits + 10; ++k) {
    rig.device.poll();
    const Completion* completion = rig.driver->poll();
    if (completion == nullptr || completion->clop == 1) continue;  // those are kept
    received += completion->packet_count;
    rig.driver->release();
  }
  EXPECT_EQ(received, kFits + 10u);
  EXPECT_EQ(rig.driver->rx_count(rx::no_buffer), 10u);
}

TEST(Clops, EachIsFlushedByItself) {
  const GpuMemory gpu;
  NicConfig config = two_clops(gpu);
  config.clops[0].timeout_ns = config.clops[1].timeout_ns = 0;
  Rig rig(config);
  receive_both(rig);
  rig.push(kHostPort, Bytes(100));
  rig.push(kGpuPort, Bytes(100));
  rig.run_dry();
  EXPECT_EQ(rig.driver->poll(), nullptr);
  rig.driver->flush(1);
  rig.model.step(400);
  const Completion* completion = rig.driver->poll();
  ASSERT_NE(completion, nullptr);
  EXPECT_EQ(completion->clop, 1);
  EXPECT_EQ(completion->status, status::flush);
  const auto stamps = rig.driver->stamps(*completion, rig.driver->packets(*completion)[0]);
  EXPECT_EQ(stamps[1] - stamps[0], 16u);
  EXPECT_EQ(rig.driver->poll(), nullptr);
}

// The page table says which aperture a page is in. Without it, the bus sees an access to the host that is not there.
TEST(Clops, TheAperturesAreNotMixedUp) {
  const GpuMemory gpu;
  Rig rig(two_clops(gpu));
  receive_both(rig);
  std::uint64_t entry = 0;
  for (const test::Mapped& mapped : rig.device.mapped) {
    EXPECT_EQ(mapped.access == Access::write_gpu, mapped.memory.data() == gpu.bytes.data());
    if (mapped.access != Access::write_gpu) {
      entry += mapped.pages.size();
      continue;
    }
    constexpr std::uint64_t kValid = 1, kWritable = 4;
    rig.device.write(0x068, mapped.pages[0] | kValid | kWritable);
    rig.device.write(0x070, entry);
    break;
  }
  rig.push(kGpuPort, Bytes(100, std::byte{7}));
  rig.run_dry();
  rig.strays_expected = 2;  // payload and footer
  EXPECT_EQ(rig.model.bus().stray_count(), 2u);
  EXPECT_STREQ(rig.model.bus().strays().front().why, "the other aperture");
  EXPECT_EQ(gpu.bytes[0], std::byte{0xEE});
}

TEST(Clops, WhatTheNicHasNotIsRefused) {
  Model model;
  SimDevice device(model);
  EXPECT_THROW(NicDriver(device, {.clops = std::vector<ClopConfig>(5)}), SetupError);
  EXPECT_THROW(NicDriver(device, {.clops = {}}), SetupError);
  EXPECT_THROW(NicDriver(device, {.clops = {{.buffer_count = 3}}}), SetupError);
  const GpuMemory gpu;
  EXPECT_THROW(NicDriver(device, {.clops = {{.buffer_count = 8, .gpu_memory = gpu.bytes}}}), SetupError);
  EXPECT_THROW(NicDriver(device, {.clops = {{.buffer_count = 2, .gpu_memory = gpu.bytes.subspan(64, 2 * kBufferBytes)}}}),
               SetupError);
}

// The second driver continues where the first one's completions ended.
TEST(Clops, ANewDriverTakesTheNicOver) {
  const GpuMemory gpu;
  Model model;
  SimDevice device(model);
  for (int round = 0; round < 3; ++round) {
    NicConfig config = two_clops(gpu);
    config.address = test::kAddress;
    NicDriver driver(device, config);
    driver.set_match({.index = 1, .port = kGpuPort, .clop = 1});
    for (int k = 0; k < 13; ++k) model.wire_in().push(test::frame_to(kGpuPort, Bytes(100, static_cast<std::byte>(round))));
    std::uint32_t packets = 0;
    while (packets < 13) {
      ASSERT_TRUE(driver.wait(20'000)) << "round " << round;
      while (const Completion* found = driver.poll()) {
        packets += found->packet_count;
        EXPECT_EQ(driver.payload(*found, driver.packets(*found)[0])[0], static_cast<std::byte>(round));
        driver.release(1, 1);
      }
    }
  }
  EXPECT_EQ(model.bus().stray_count(), 0u);
}

}  // namespace
}  // namespace nanet::link::gateware
