// SPDX-License-Identifier: Apache-2.0
// After construction nothing is allocated, whatever comes.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "../allocation_count.hpp"
#include "l0tp/aligner.hpp"
#include "rig.hpp"

namespace nanet::l0tp {
namespace {

TEST(TriggerProcessorMemory, NothingIsAllocatedAfterConstruction) {
  TriggerProcessor processor(test::three_inputs());
  std::array<std::byte, wire::kMtpBytesMax> bytes{};
  wire::MtpWriter writer(bytes);
  std::array<Decision, 64> room;
  std::mt19937_64 random(1);
  const std::uint64_t before = nanet::test::allocation_count.load();
  std::uint64_t time = 1'000'000;
  std::size_t decided = 0;
  for (std::uint32_t packet = 0; packet < 3'000; ++packet) {
    writer.begin(std::array{wire::kSourceRich, wire::kSourceChod, wire::kSourceGtk}[packet % 3], 0, wire::timestamp_of(time));
    for (int i = 0; i < 50; ++i) writer.add(test::at(time + random() % 60'000, static_cast<std::uint16_t>(0x0100 | random())));
    time += 20'000;
    processor.take(writer.finish(), packet);
    processor.take(std::span(bytes).first(packet % 100), packet);
    decided += processor.decide(packet, room);
  }
  for (std::size_t count = room.size(); count == room.size(); decided += count) count = processor.flush(room);
  EXPECT_EQ(nanet::test::allocation_count.load(), before);
  EXPECT_GT(decided, 1'000u);
}

TEST(AlignerMemory, NothingIsAllocatedAfterConstruction) {
  Config config = test::three_inputs();
  config.silence_us = 0;
  TriggerProcessor processor(config);
  Aligner aligner(processor, config, 100);
  std::array<std::byte, wire::kMtpBytesMax> bytes{};
  wire::MtpWriter writer(bytes);
  std::array<Decision, 64> room;
  const std::uint64_t before = nanet::test::allocation_count.load();
  std::size_t decided = 0;
  for (std::uint64_t packet = 0; packet < 3'000; ++packet) {
    const std::uint64_t time = 1'000'000 + packet / 3 * 20'000;
    writer.begin(config.inputs[packet % 3].source_id, 0, wire::timestamp_of(time));
    for (std::uint64_t i = 0; i < 50; ++i) writer.add(test::at(time + i * 400));
    aligner.take(writer.finish(), packet);
    if (packet % 50 == 0) aligner.give_up_on_silent(packet);
    for (std::size_t count = room.size(); count == room.size(); decided += count) count = aligner.decide(packet, room);
  }
  for (std::size_t count = room.size(); count == room.size(); decided += count) count = aligner.flush(3'000, room);
  EXPECT_EQ(nanet::test::allocation_count.load(), before);
  EXPECT_EQ(decided, 50'000u);
}

}  // namespace
}  // namespace nanet::l0tp
