// SPDX-License-Identifier: Apache-2.0
#include "emulate/detectors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nanet/setup_error.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

struct Seen {
  std::vector<std::int64_t> ticks;  // from the begin of the first frame
  std::vector<std::uint16_t> ids;
  std::vector<std::byte> bytes;
  std::vector<std::size_t> packet_bytes;
};

// Shows an event every `gap` ticks, from the given frame on.
Seen watch(Detector& detector, std::uint8_t source_id, std::uint64_t first_frame, std::uint64_t frames, std::uint64_t gap) {
  Seen seen;
  const std::uint64_t begin = first_frame * kFrameTicks;
  std::uint64_t next = begin + gap / 2;
  for (std::uint64_t frame = first_frame; frame < first_frame + frames; ++frame) {
    std::vector<std::uint64_t> events;
    for (; gap != 0 && next < (frame + 1) * kFrameTicks; next += gap) events.push_back(next);
    detector.see_frame(frame, events);
    for (auto packet = detector.next_packet(); !packet.empty(); packet = detector.next_packet()) {
      wire::MtpView view;
      EXPECT_EQ(wire::MtpView::parse(packet, view), wire::ParseError::none);
      EXPECT_EQ(view.source_id(), source_id);
      EXPECT_EQ(view.first_timestamp(), wire::timestamp_of(frame * kFrameTicks));
      wire::for_each_primitive(view, [&](const wire::Primitive& p) {
        seen.ticks.push_back(wire::tick_difference(wire::ticks(p.timestamp, p.fine_time), begin));
        seen.ids.push_back(p.id);
      });
      seen.bytes.insert(seen.bytes.end(), packet.begin(), packet.end());
      seen.packet_bytes.push_back(packet.size());
    }
  }
  return seen;
}

TEST(Detector, APacketEveryFrameAlsoWhenThereIsNothing) {
  Detector detector({.accidental_rate_hz = 0}, 1);
  const Seen seen = watch(detector, wire::kSourceChod, 0, 10, 0);
  EXPECT_EQ(seen.packet_bytes, std::vector<std::size_t>(10, wire::kMtpHeaderBytes));
}

TEST(Detector, APerfectDetectorSeesEverythingAsItIs) {
  Detector detector({.efficiency = 1, .time_sigma_ns = 0, .accidental_rate_hz = 0, .primitive_id = 0x0100, .random_bits = 0}, 1);
  const Seen seen = watch(detector, wire::kSourceChod, 7, 20, 1000);
  ASSERT_EQ(seen.ticks.size(), 1311u);
  for (std::size_t i = 0; i < seen.ticks.size(); ++i) EXPECT_EQ(seen.ticks[i], static_cast<std::int64_t>(1000 * i + 500));
  EXPECT_EQ(std::ranges::count(seen.ids, 0x0100), static_cast<std::ptrdiff_t>(seen.ids.size()));
}

TEST(Detector, EfficiencyOffsetResolutionAndAccidentals) {
  constexpr std::uint64_t kFrames = 1'000;
  constexpr double kGap = 1024;
  DetectorConfig config{.efficiency = 0.7, .time_sigma_ns = 2.0, .offset_ns = -3.0, .accidental_rate_hz = 0};
  Detector detector(config, 5);
  const Seen seen = watch(detector, wire::kSourceChod, 100, kFrames, 1024);
  const double shown = static_cast<double>(detector.events_shown());
  EXPECT_EQ(detector.events_shown(), kFrames * 64);
  const double found = static_cast<double>(seen.ticks.size());
  EXPECT_NEAR(found / shown, 0.7, 5 * std::sqrt(0.7 * 0.3 / shown));
  double sum = 0;
  double square = 0;
  for (const std::int64_t ticks : seen.ticks) {
    const double away = static_cast<double>(ticks) - 512 - kGap * std::round((static_cast<double>(ticks) - 512) / kGap);
    sum += away;
    square += away * away;
  }
  const double sigma = 2.0 / wire::kTickNs;
  const double mean = sum / found;
  EXPECT_NEAR(mean, -3.0 / wire::kTickNs, 5 * sigma / std::sqrt(found));
  EXPECT_NEAR(std::sqrt(square / found - mean * mean), sigma, 5 * sigma / std::sqrt(2 * found));

  config.efficiency = 0;
  config.accidental_rate_hz = 3e6;
  Detector noisy(config, 6);
  const Seen noise = watch(noisy, wire::kSourceChod, 0, kFrames, 1024);
  const double expected = 3e6 * static_cast<double>(kFrames * kFrameTicks) * wire::kTickNs * 1e-9;
  EXPECT_NEAR(static_cast<double>(noise.ticks.size()), expected, 5 * std::sqrt(expected));
  EXPECT_EQ(noise.ticks.size(), noisy.accidentals());
  EXPECT_EQ(noisy.events_seen(), 0u);
}

TEST(Detector, NothingIsLostAtTheEndOfAFrameAndTimesAreInOrder) {
  Detector detector({.efficiency = 1, .time_sigma_ns = 50, .offset_ns = 400, .accidental_rate_hz = 1e6}, 2);
  const Seen seen = watch(detector, wire::kSourceChod, 50, 200, 700);
  const Seen rest = watch(detector, wire::kSourceChod, 250, 1, 0);
  EXPECT_EQ(seen.ticks.size() + rest.ticks.size(), detector.events_seen() + detector.accidentals());
  EXPECT_EQ(detector.events_seen(), detector.events_shown());
  EXPECT_TRUE(std::ranges::is_sorted(seen.ticks)) << "the offset is more than five sigma";
}

TEST(Detector, AFullFrameTakesSeveralPackets) {
  Detector detector({.efficiency = 1, .time_sigma_ns = 0, .accidental_rate_hz = 0}, 1);
  const Seen seen = watch(detector, wire::kSourceChod, 0, 1, 64);
  EXPECT_EQ(seen.ticks.size(), 1024u);
  EXPECT_EQ(seen.packet_bytes.size(), 5u);
  EXPECT_EQ(seen.packet_bytes[0], wire::kMtpHeaderBytes + 255 * wire::kMtpWordBytes);
}

TEST(Detector, TheSameSeedGivesTheSameBytesAndAnotherDoesNot) {
  const auto bytes = [](std::uint64_t seed) {
    Detector detector(default_detectors()[0], seed);
    return watch(detector, wire::kSourceChod, 0, 20, 1024).bytes;
  };
  EXPECT_EQ(bytes(3), bytes(3));
  EXPECT_NE(bytes(3), bytes(4));
}

TEST(Detector, GoesOnAcrossTheWrapOfTheWire) {
  Detector detector({.efficiency = 1, .time_sigma_ns = 0, .accidental_rate_hz = 0}, 1);
  const Seen seen = watch(detector, wire::kSourceChod, (std::uint64_t{1} << 24) - 3, 6, 4096);
  ASSERT_EQ(seen.ticks.size(), 6 * 16u);
  for (std::size_t i = 0; i < seen.ticks.size(); ++i) EXPECT_EQ(seen.ticks[i], static_cast<std::int64_t>(4096 * i + 2048));
}

TEST(Detector, DrawsTheBitsItMay) {
  Detector detector({.efficiency = 1, .accidental_rate_hz = 0, .primitive_id = 0x4010, .random_bits = 0x0F03}, 1);
  const Seen seen = watch(detector, wire::kSourceChod, 0, 50, 256);
  std::uint16_t all = 0xFFFF;
  std::uint16_t any = 0;
  for (const std::uint16_t id : seen.ids) {
    all &= id;
    any |= id;
  }
  EXPECT_EQ(all, 0x4010);
  EXPECT_EQ(any, 0x4F13);
}

TEST(Detector, WhatCannotWorkIsRefused) {
  EXPECT_THROW(Detector({.efficiency = 1.1}, 1), SetupError);
  EXPECT_THROW(Detector({.time_sigma_ns = -1}, 1), SetupError);
  EXPECT_THROW(Detector({.offset_ns = 2000}, 1), SetupError);
  EXPECT_THROW(Detector({.accidental_rate_hz = -1}, 1), SetupError);
  EXPECT_THROW(Detector({.primitive_id = 0x00FF}, 1), SetupError);
  EXPECT_THROW(Detector({.random_bits = 0x8000}, 1), SetupError);
}

TEST(Detector, SixByDefault) {
  for (const DetectorConfig& config : default_detectors()) EXPECT_NO_THROW(Detector(config, 1));
}

}  // namespace
}  // namespace nanet::emulate
