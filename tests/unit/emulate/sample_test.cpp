// SPDX-License-Identifier: Apache-2.0
#include "emulate/sample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "emulate/schedule.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::emulate {
namespace {

struct ReadEvent {
  wire::MgpEvent event;
  std::vector<std::uint16_t> hits;
};

std::vector<ReadEvent> read(std::span<const std::byte> payload, wire::MgpHeader& header) {
  wire::MgpView view;
  EXPECT_EQ(wire::MgpView::parse(payload, view), wire::ParseError::none);
  header = view.header();
  std::array<std::uint16_t, wire::kMgpScratchHits> scratch;
  std::vector<ReadEvent> events;
  wire::for_each_event(view, scratch.data(), [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
    events.push_back({event, {hits, hits + event.hit_count}});
  });
  return events;
}

std::vector<std::uint16_t> channels_of(std::span<const std::uint16_t> hits) {
  std::vector<std::uint16_t> channels;
  for (const std::uint16_t hit : hits) channels.push_back(wire::hit_channel(hit));
  std::sort(channels.begin(), channels.end());
  return channels;
}

struct Case {
  std::uint32_t boards;
  wire::MgpLayout layout;
  std::uint32_t events_per_packet;
};

class SampleLayouts : public testing::TestWithParam<Case> {
 protected:
  SampleLayouts() {
    config_.boards = GetParam().boards;
    config_.layout = GetParam().layout;
    config_.events_per_packet = GetParam().events_per_packet;
    config_.monte_carlo.seed = 42;
    config_.monte_carlo.mean_hits = 12;
    config_.monte_carlo.noise_hits = 1;
    config_.first_timestamp = 0xFFFFFF00u;
  }

  EmulatorConfig config_;
};

// The parts in the packets, put together, are the Monte Carlo's events (made again here), with the times of the schedule.
TEST_P(SampleLayouts, PacketsHoldThePoolsEvents) {
  const std::uint32_t per_packet = config_.events_per_packet;
  const Arrivals arrivals = poisson_arrivals(per_packet * 20, 1e7, 3);
  Sample sample(config_, arrivals.keys);
  ASSERT_EQ(sample.pool_packets(), 20u);
  MonteCarlo monte_carlo(config_.monte_carlo);
  for (std::uint32_t p = 0; p < 20; ++p) {
    const std::uint64_t number = (std::uint64_t{1} << 33) + p;
    const std::uint64_t shift = 1'000'000'007u;
    std::vector<std::vector<std::uint16_t>> together(per_packet);
    for (std::uint32_t board = 0; board < sample.boards(); ++board) {
      sample.prepare(board, p, number, shift);
      sample.stamp(board, p, 1, 0xFEDCBA98u);
      wire::MgpHeader header;
      const std::vector<ReadEvent> events = read(sample.packet(board, p), header);
      EXPECT_EQ(header.source_id, 0x1C);
      EXPECT_EQ(header.source_sub_id, board);
      EXPECT_EQ(header.layout, config_.layout);
      EXPECT_EQ(header.sequence, p);
      EXPECT_EQ(header.send_time_ns, 0xFEDCBA98u);
      ASSERT_EQ(events.size(), per_packet);
      for (std::uint32_t i = 0; i < per_packet; ++i) {
        const std::uint64_t key = arrivals.keys[p * per_packet + i];
        EXPECT_EQ(events[i].event.timestamp, static_cast<std::uint32_t>(0xFFFFFF00u + shift + key / 256));
        EXPECT_EQ(events[i].event.fine_time, key % 256);
        EXPECT_EQ(events[i].event.event_number, static_cast<std::uint16_t>(number * per_packet + i));
        for (const std::uint16_t hit : events[i].hits) {
          if (sample.boards() == 4) {
            EXPECT_EQ(wire::hit_channel(hit) / 512, board);
          }
          together[i].push_back(hit);
        }
      }
    }
    for (std::uint32_t i = 0; i < per_packet; ++i) {
      const McEvent truth = monte_carlo.next();
      const PoolEvent& pool_event = sample.events()[p * per_packet + i];
      std::vector<std::uint16_t> all(truth.hits.begin(), truth.hits.begin() + truth.hit_count);
      if (config_.boards == 1 && config_.layout == wire::MgpLayout::packed) {
        std::erase_if(all, [](std::uint16_t hit) { return wire::hit_channel(hit) >= 512; });
      }
      EXPECT_EQ(channels_of(together[i]), channels_of(all));
      EXPECT_EQ(pool_event.hit_count, all.size());
      EXPECT_EQ(pool_event.hits_unsent, truth.hit_count - all.size());
      EXPECT_EQ(pool_event.truth.rings[0].radius_mm, truth.truth.rings[0].radius_mm);
      const auto channels = channels_of(all);
      const std::set<std::uint16_t> distinct(channels.begin(), channels.end());
      EXPECT_EQ(pool_event.mapped_hits,
                std::count_if(distinct.begin(), distinct.end(), [](std::uint16_t c) { return c % 512 < 488; }));
      const rich::EventRings rings = rich::find_rings_scalar(config_.finder, {all.data(), static_cast<std::uint32_t>(all.size())});
      EXPECT_EQ(pool_event.primitive_id, rich::primitive_id(rings, config_.decision));
      EXPECT_EQ(sample.primitive_ids()[p * per_packet + i], pool_event.primitive_id);
    }
  }
}

TEST_P(SampleLayouts, StampAgreesWithAFullSealForAnyTime) {
  const Arrivals arrivals = poisson_arrivals(config_.events_per_packet * 3, 1e7, 3);
  Sample sample(config_, arrivals.keys);
  for (const std::uint32_t time : {0u, 1u, 0xFFFFu, 0x10000u, 0xFFFF0000u, 0xFFFFFFFFu, 123456789u}) {
    for (std::uint32_t p = 0; p < 3; ++p) sample.prepare(0, p, 77, 5);
    sample.stamp(0, 0, 3, time);
    for (std::uint32_t p = 0; p < 3; ++p) {
      const auto packet = sample.packet(0, p);
      EXPECT_EQ(wire::load_le<std::uint32_t>(packet.data() + 12), wire::mgp_checksum_scalar(packet.data(), packet.size()));
      EXPECT_EQ(wire::load_le<std::uint32_t>(packet.data() + 8), time);
    }
  }
}

TEST_P(SampleLayouts, PacketsHaveOneSizeAndLieBackToBack) {
  const Arrivals arrivals = poisson_arrivals(config_.events_per_packet * 50, 1e7, 3);
  Sample sample(config_, arrivals.keys);
  EXPECT_EQ(sample.packet_bytes() % 8, 0u);
  EXPECT_LE(sample.packet_bytes(), 1472u);
  if (config_.layout == wire::MgpLayout::padded) {
    EXPECT_EQ(sample.packet_bytes(), 1168u);
  }
  for (std::uint32_t board = 0; board < sample.boards(); ++board) {
    for (std::uint32_t p = 1; p < 50; ++p) {
      EXPECT_EQ(sample.packet(board, p - 1).data() + sample.packet_bytes(), sample.packet(board, p).data());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SampleLayouts,
                         testing::Values(Case{1, wire::MgpLayout::padded, 16}, Case{1, wire::MgpLayout::padded, 3},
                                         Case{4, wire::MgpLayout::padded, 16}, Case{4, wire::MgpLayout::packed, 16},
                                         Case{4, wire::MgpLayout::packed, 40}, Case{1, wire::MgpLayout::packed, 16}));

TEST(Sample, RefusesPackedPacketsThatCannotHoldTheirEvents) {
  EmulatorConfig config;
  config.boards = 4;
  config.layout = wire::MgpLayout::packed;
  config.events_per_packet = 182;
  config.monte_carlo.mean_hits = 12;
  const Arrivals arrivals = poisson_arrivals(182 * 10, 1e7, 3);
  EXPECT_THROW(Sample(config, arrivals.keys), SetupError);
  config.events_per_packet = 10;
  config.packet_bytes = 100;
  EXPECT_THROW(Sample(config, arrivals.keys), SetupError);
  config.packet_bytes = 1000;
  EXPECT_EQ(Sample(config, arrivals.keys).packet_bytes(), 1000u);
}

TEST(Sample, EventTimesOfTheFirstLap) {
  EmulatorConfig config;
  config.first_timestamp = 0xFFFFFFF0u;
  const Arrivals arrivals = poisson_arrivals(160, 1e7, 3);
  const Sample sample(config, arrivals.keys);
  for (std::uint32_t e = 0; e < 160; ++e) {
    const auto timestamp = static_cast<std::uint32_t>(0xFFFFFFF0u + arrivals.keys[e] / 256);
    const auto fine_time = static_cast<std::uint8_t>(arrivals.keys[e] % 256);
    EXPECT_EQ(sample.event_time(e).timestamp, timestamp);
    EXPECT_EQ(sample.event_time(e).fine_time, fine_time);
  }
}

}  // namespace
}  // namespace nanet::emulate
