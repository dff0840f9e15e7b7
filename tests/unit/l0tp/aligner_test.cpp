// SPDX-License-Identifier: Apache-2.0
// The aligner: whatever the machine does to who sends, the processor gets everything in the order of time.
#include "l0tp/aligner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "rig.hpp"

namespace nanet::l0tp {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kPatienceNs = 1'000;
constexpr std::uint64_t kMs = 10'261'000;  // ticks of a millisecond: 20 times the memory of the test's processor
constexpr std::uint32_t kRich = 0, kChod = 1, kMuv3 = 2;

struct AlignedRig {
  AlignedRig() : processor(without_silence()), aligner(processor, without_silence(), kPatienceNs) {}

  static Config without_silence() {
    Config config = test::three_inputs();
    config.silence_us = 0;
    return config;
  }

  static Bytes packet(std::uint32_t input, std::uint64_t header_ticks, const std::vector<std::uint64_t>& times) {
    Bytes room(wire::kMtpBytesMax);
    wire::MtpWriter writer(room);
    writer.begin(without_silence().inputs[input].source_id, 0, wire::timestamp_of(header_ticks));
    for (const std::uint64_t time : times) EXPECT_TRUE(writer.add(test::at(time)));
    room.resize(writer.finish().size());
    return room;
  }

  void send(std::uint32_t input, const std::vector<std::uint64_t>& times) { take(packet(input, times.at(0), times)); }
  void take(const Bytes& datagram) {
    aligner.take(datagram, now_ns);
    const std::vector<Decision> found = decide();
    decided.insert(decided.end(), found.begin(), found.end());
  }
  void flush() {
    std::array<Decision, 7> room;
    for (std::size_t count = room.size(); count == room.size();) {
      count = aligner.flush(now_ns, room);
      decided.insert(decided.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }
  std::vector<Decision> decide() {
    std::vector<Decision> all;
    std::array<Decision, 7> room;
    for (std::size_t count = room.size(); count == room.size();) {
      count = aligner.decide(now_ns, room);
      all.insert(all.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return all;
  }
  std::uint64_t lost(std::uint32_t input) const {
    const InputStats s = processor.input_stats(input);
    return s.late + s.out_of_range;
  }

  TriggerProcessor processor;
  Aligner aligner;
  std::uint64_t now_ns = 1'000'000;
  std::vector<Decision> decided;
};

// 0.2 s of three detectors, an event each 30'000 ticks (3 us), which all see.
std::vector<std::vector<Bytes>> streams(std::uint64_t first) {
  std::vector<std::vector<Bytes>> of_input(3);
  for (std::uint64_t packet = 0; packet < 4'000; ++packet) {
    std::vector<std::uint64_t> times;
    for (std::uint64_t i = 0; i < 16; ++i) times.push_back(first + (packet * 16 + i) * 30'000);
    for (std::uint32_t input = 0; input < 3; ++input) of_input[input].push_back(AlignedRig::packet(input, times[0], times));
  }
  return of_input;
}

// One detector after the other is stopped for up to 0.2 s of data, 4'000 times the alignment memory.
TEST(Aligner, WhoeverIsStoppedEverythingIsDecidedOn) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    AlignedRig rig;
    std::mt19937_64 random(seed);
    const auto of_input = streams(seed == 3 ? wire::kTickMask - 50 * kMs : 5 * kMs);  // the third: across the wrap
    std::array<std::size_t, 3> sent{};
    while (std::ranges::any_of(sent, [](std::size_t count) { return count < 4'000; })) {
      const std::size_t input = random() % 3;
      for (std::uint64_t burst = random() % 2'000; burst > 0 && sent[input] < 4'000; --burst)
        rig.take(of_input[input][sent[input]++]);
    }
    rig.flush();
    EXPECT_EQ(rig.decided.size(), 64'000u);
    for (const Decision& decision : rig.decided) ASSERT_EQ(decision.matched_inputs, 7);
    for (std::uint32_t input = 0; input < 3; ++input) {
      EXPECT_EQ(rig.lost(input), 0u);
      EXPECT_EQ(rig.aligner.held(input), 0u);
      EXPECT_EQ(rig.processor.input_stats(input).primitives, 64'000u);
    }
  }
}

// The same without: what this is for.
TEST(Aligner, WithoutItTheyAreLost) {
  TriggerProcessor processor(AlignedRig::without_silence());
  std::array<Decision, 4'096> room;
  const auto of_input = streams(5 * kMs);
  for (const std::uint32_t input : {kChod, kMuv3, kRich}) {
    for (const Bytes& datagram : of_input[input]) {
      processor.take(datagram, 1);
      processor.decide(1, room);
    }
  }
  EXPECT_LT(processor.input_stats(kChod).matched, 1'000u);
}

TEST(Aligner, OutOfOrderInAPacketAndAcrossPackets) {
  AlignedRig rig;
  rig.send(kRich, {10 * kMs, 10 * kMs + 5'000, 10 * kMs + 100});
  rig.send(kRich, {10 * kMs + 4'000});
  rig.send(kChod, {10 * kMs + 5'000, 10 * kMs});
  rig.flush();
  ASSERT_EQ(rig.decided.size(), 4u);
  EXPECT_TRUE(std::ranges::is_sorted(rig.decided, {}, [](const Decision& d) { return wire::ticks(d.timestamp, d.fine_time); }));
  EXPECT_EQ(rig.decided[0].matched_inputs, 3);
  EXPECT_EQ(rig.decided[1].matched_inputs, 1);
  EXPECT_EQ(rig.decided[3].matched_inputs, 3);
}

TEST(Aligner, ASilentDetectorIsGivenUpAndWaitedForAgain) {
  AlignedRig rig;
  for (std::uint64_t i = 0; i < 100; ++i) {
    rig.send(kRich, {10 * kMs + i * 30'000});
    rig.send(kChod, {10 * kMs + i * 30'000});
  }
  EXPECT_EQ(rig.decided.size(), 0u);  // the third never said anything
  rig.now_ns += kPatienceNs;
  rig.send(kRich, {10 * kMs + 100 * 30'000});
  rig.send(kChod, {10 * kMs + 100 * 30'000});
  rig.aligner.give_up_on_silent(rig.now_ns);
  EXPECT_FALSE(rig.aligner.all_silent());
  rig.send(kRich, {10 * kMs + 101 * 30'000});
  EXPECT_GT(rig.decided.size(), 90u);
  // Now it comes: nothing of it is late from here on, and the others wait for it again.
  rig.send(kMuv3, {10 * kMs + 102 * 30'000});
  const std::size_t before = rig.decided.size();
  for (std::uint64_t i = 110; i < 200; ++i) {
    rig.send(kRich, {10 * kMs + i * 30'000});
    rig.send(kChod, {10 * kMs + i * 30'000});
  }
  EXPECT_LE(rig.decided.size(), before + 3);
  rig.now_ns += kPatienceNs;
  rig.aligner.give_up_on_silent(rig.now_ns);
  EXPECT_TRUE(rig.aligner.all_silent());
  rig.flush();
  EXPECT_FALSE(rig.aligner.all_silent());
  EXPECT_EQ(rig.decided.size(), 102u + 90u);
  EXPECT_EQ(rig.lost(kMuv3), 0u);
}

TEST(Aligner, AWildClockKeepsNobodyWaiting) {
  AlignedRig rig;
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    const std::uint64_t time = 10 * kMs + i * 30'000;
    rig.send(kRich, {time});
    rig.send(kChod, i % 100 == 50 ? std::vector{time, time + 20'000 * kMs} : std::vector{time});
    rig.send(kMuv3, {time});
  }
  rig.flush();
  EXPECT_EQ(rig.decided.size(), 2'000u);
  EXPECT_EQ(rig.lost(kChod), 20u);
  EXPECT_EQ(rig.lost(kRich) + rig.lost(kMuv3), 0u);
}

// Boards that begin again at an earlier time, without a pause: some packets vote, then all goes on there.
TEST(Aligner, TimeJumpsBack) {
  AlignedRig rig;
  for (const std::uint64_t first : {500 * kMs, 10 * kMs}) {
    for (std::uint64_t i = 0; i < 1'000; ++i) {
      for (const std::uint32_t input : {kRich, kChod, kMuv3}) rig.send(input, {first + i * 30'000});
    }
  }
  rig.flush();
  EXPECT_EQ(rig.processor.stats().time_jumps, 1u);
  EXPECT_GT(rig.decided.size(), 1'970u);
  const InputStats rich = rig.processor.input_stats(kRich);
  EXPECT_EQ(rich.primitives, 2'000u);
  EXPECT_EQ(rich.primitives, rich.stored + rich.late + rich.out_of_range);
  EXPECT_EQ(rich.stored, rig.decided.size());
}

// One detector goes on for ever while another says nothing and patience is not over: room is bounded, and nothing is dropped here.
TEST(Aligner, AFullQueueGoesOn) {
  AlignedRig rig;
  rig.send(kRich, {10 * kMs});
  std::uint64_t time = 10 * kMs;
  std::vector<std::uint64_t> times(200);
  for (std::uint64_t i = 0; i < Aligner::kHeldMax / 200 * 2; ++i) {
    for (std::uint64_t& one : times) one = time += 300;
    rig.send(kChod, times);
  }
  EXPECT_LE(rig.aligner.held(kChod), Aligner::kHeldMax / 8 * 7 + 2'000);
  rig.flush();
  EXPECT_EQ(rig.lost(kChod), 0u);
  EXPECT_EQ(rig.decided.size(), 1u);
}

// Any primitives in good packets, so that every path is taken, and the books balance.
TEST(Aligner, AnyBytesAreCounted) {
  AlignedRig rig;
  std::mt19937_64 random(5);
  Bytes bytes(200);
  std::array<Decision, 64> room;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    bytes[3] = static_cast<std::byte>(std::array{wire::kSourceRich, wire::kSourceChod, wire::kSourceMuv3}[i % 3]);
    bytes[4] = std::byte{200};
    bytes[5] = std::byte{0};
    int count = 0;  // of words with a top byte
    for (std::size_t at = 11; at < bytes.size(); at += 4) count += bytes[at] != std::byte{0} ? 1 : 0;
    bytes[6] = static_cast<std::byte>(count);
    rig.aligner.take(bytes, i);
    rig.aligner.decide(i, room);
    if (i % 1'000 == 0) rig.aligner.give_up_on_silent(i);
  }
  for (std::size_t count = room.size(); count == room.size();) count = rig.aligner.flush(20'000, room);
  EXPECT_EQ(rig.processor.stats().packets_good, 20'000u);
  for (std::uint32_t input = 0; input < 3; ++input) {
    const InputStats s = rig.processor.input_stats(input);
    EXPECT_GT(s.primitives, 0u);
    EXPECT_EQ(s.primitives, s.stored + s.calibrations + s.late + s.out_of_range + s.duplicates + s.calibrations_no_room);
  }
}

}  // namespace
}  // namespace nanet::l0tp
