// SPDX-License-Identifier: Apache-2.0
#include "emulate/detector_bank.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fake_link.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

constexpr double kRate = 1e6;

Schedule schedule(std::uint64_t packets, double spill_s = 0, double pause_s = 0) {
  return Schedule({.events_per_packet = 16, .spill_s = spill_s, .pause_s = pause_s, .packets_total = packets},
                  poisson_arrivals(160, kRate, 3));
}

// Two detectors that see everything as it is.
DetectorBankConfig perfect(double frame_us) {
  DetectorConfig one{.name = "CHOD", .source_id = wire::kSourceChod, .efficiency = 1, .time_sigma_ns = 0, .accidental_rate_hz = 0};
  DetectorConfig other = one;
  other.name = "MUV3";
  other.source_id = wire::kSourceMuv3;
  return {.endpoint = "udp://127.0.0.1:1", .frame_us = frame_us, .detectors = {one, other}};
}

// Times on the wire of all events of the schedule.
std::vector<std::uint64_t> times_of(const Schedule& schedule, std::uint32_t first_timestamp) {
  std::vector<std::uint64_t> times;
  for (std::uint64_t p = 0; p < schedule.packet_count(); ++p) {
    const Schedule::Packet packet = schedule.packet(p);
    for (std::uint32_t e = 0; e < 16; ++e) {
      const std::uint64_t ticks = (first_timestamp + packet.shift_units) * 256 + schedule.pool_keys()[packet.pool_packet * 16 + e];
      times.push_back(ticks & wire::kTickMask);
    }
  }
  return times;
}

struct Got {
  std::map<std::uint8_t, std::vector<std::uint64_t>> times;
  std::map<std::uint8_t, std::vector<std::uint32_t>> headers;
};

Got read(const FakeLink& link) {
  Got got;
  for (const FakeLink::Sent& sent : link.sent) {
    wire::MtpView view;
    EXPECT_EQ(wire::MtpView::parse(sent.payload, view), wire::ParseError::none);
    EXPECT_EQ(sent.destination, 4u);
    got.headers[view.source_id()].push_back(view.first_timestamp());
    wire::for_each_primitive(
        view, [&](const wire::Primitive& p) { got.times[view.source_id()].push_back(wire::ticks(p.timestamp, p.fine_time)); });
  }
  return got;
}

void run_until(DetectorBank& bank, std::uint64_t boards_ns) {
  while (bank.turn(boards_ns, boards_ns)) {
  }
}

class DetectorBankFrames : public testing::TestWithParam<std::tuple<double, std::uint32_t>> {};

TEST_P(DetectorBankFrames, EveryDetectorSeesEveryEventOnceAndInItsFrame) {
  const auto [frame_us, first_timestamp] = GetParam();
  const Schedule events = schedule(100, 0.0005, 0.0002);
  FakeLink link;
  DetectorBank bank(perfect(frame_us), events, first_timestamp, 1, link, 4);
  EXPECT_FALSE(bank.finished(events.packet_count()));
  run_until(bank, 10'000'000);
  EXPECT_TRUE(bank.finished(events.packet_count()));
  const Got got = read(link);
  ASSERT_EQ(got.times.size(), 2u);
  for (const auto& [source, times] : got.times) {
    EXPECT_EQ(times, times_of(events, first_timestamp));
    const std::vector<std::uint32_t>& headers = got.headers.at(source);
    const std::set<std::uint32_t> frames(headers.begin(), headers.end());
    EXPECT_NEAR(static_cast<double>(frames.size()), 10e6 / static_cast<double>(bank.frame_ns()), 2) << "empty ones too";
  }
  const std::vector<DetectorCounts> counts = bank.counts();
  for (const DetectorCounts& one : counts) {
    EXPECT_EQ(one.events_shown, 1'600u);
    EXPECT_EQ(one.events_seen, 1'600u);
    EXPECT_EQ(one.primitives, 1'600u);
    EXPECT_EQ(one.accidentals, 0u);
  }
  EXPECT_EQ(counts[0].packets + counts[1].packets, link.sent.size());
}

INSTANTIATE_TEST_SUITE_P(All, DetectorBankFrames,
                         testing::Combine(testing::Values(6.4, 64.0, 700.0), testing::Values(0u, 1'000'123u, 0xFFFF'F000u)));

TEST(DetectorBank, AFrameLeavesWhenItsEndHasComeAndAllInOneCallOfOneSize) {
  const Schedule events = schedule(10);
  FakeLink link;
  DetectorBank bank(perfect(64.0), events, 0, 1, link, 4);
  const std::uint64_t frame_ns = bank.frame_ns();
  EXPECT_NEAR(static_cast<double>(frame_ns), 63'875, 1);
  run_until(bank, frame_ns - 2);
  EXPECT_TRUE(link.sent.empty());
  EXPECT_TRUE(bank.turn(frame_ns + 2, 0));
  EXPECT_TRUE(link.sent.empty()) << "one packet a turn is made, the frame leaves as a whole";
  EXPECT_TRUE(bank.turn(frame_ns + 2, 0));
  EXPECT_FALSE(bank.turn(frame_ns + 2, 0));
  EXPECT_EQ(link.send_sizes, std::vector<std::size_t>{2});
  EXPECT_EQ(link.sent[0].payload.size(), link.sent[1].payload.size());
  EXPECT_FALSE(bank.must_catch_up(3 * frame_ns - 10));
  EXPECT_TRUE(bank.must_catch_up(3 * frame_ns + 10));
}

TEST(DetectorBank, PacketsOfDifferentLengthAreFilledWithTimestampWords) {
  const Schedule events = schedule(40);
  DetectorBankConfig config = perfect(200.0);
  config.detectors[1].efficiency = 0.3;
  FakeLink link;
  DetectorBank bank(config, events, 77'000, 1, link, 4);
  run_until(bank, 1'000'000);
  const Got got = read(link);
  EXPECT_EQ(got.times.at(wire::kSourceChod), times_of(events, 77'000));
  EXPECT_EQ(got.times.at(wire::kSourceMuv3).size(), bank.counts()[1].events_seen);
  EXPECT_LT(bank.counts()[1].events_seen, 350u);
  for (std::size_t i = 0; i + 1 < link.sent.size(); i += 2) {
    EXPECT_EQ(link.sent[i].payload.size(), link.sent[i + 1].payload.size());
  }
}

TEST(DetectorBank, AFrameOfManyPackets) {
  const Schedule events = Schedule({.events_per_packet = 16, .packets_total = 400}, poisson_arrivals(6'400, 10e6, 3));
  FakeLink link;
  DetectorBank bank(perfect(1'000.0), events, 0, 1, link, 4);
  run_until(bank, 3'000'000);
  EXPECT_EQ(read(link).times.at(wire::kSourceChod), times_of(events, 0));
  EXPECT_GT(link.sent.size(), 48u);
}

TEST(DetectorBank, WhatCannotWorkIsRefused) {
  const Schedule events = schedule(1);
  FakeLink link;
  const auto make = [&](const DetectorBankConfig& config) { DetectorBank bank(config, events, 0, 1, link, 0); };
  DetectorBankConfig config = perfect(5.0);
  EXPECT_THROW(make(config), SetupError);
  config.frame_us = 1'001;
  EXPECT_THROW(make(config), SetupError);
  config.frame_us = 64;
  EXPECT_NO_THROW(make(config));
  config.detectors[1].source_id = config.detectors[0].source_id;
  EXPECT_THROW(make(config), SetupError);
  config = perfect(64);
  config.detectors[1].name = config.detectors[0].name;
  EXPECT_THROW(make(config), SetupError);
  config.detectors.clear();
  EXPECT_THROW(make(config), SetupError);
}

}  // namespace
}  // namespace nanet::emulate
