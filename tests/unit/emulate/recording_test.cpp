// SPDX-License-Identifier: Apache-2.0
// Raw data played: packets of the boards, with markers and numbers that balance, and hits whose times are those of the TDC words.
#include "emulate/recording.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "nanet/setup_error.hpp"

namespace nanet::emulate {
namespace {

using Bytes = std::vector<std::byte>;

class RecordingTest : public ::testing::Test {
 protected:
  RecordingTest() : path_(std::filesystem::temp_directory_path() / ("nanet_recording_" + std::to_string(std::random_device{}()))) {}
  ~RecordingTest() override { std::filesystem::remove(path_); }

  void add(std::span<const std::byte> bytes) {
    std::ofstream file(path_, std::ios::binary | std::ios::app);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  // Events of one board, one every 100 timestamps.
  void add_mep(std::uint8_t board, std::uint32_t first, std::uint32_t count, std::span<const wire::MepHit> hits,
               std::uint8_t source_id = 0x1C) {
    wire::MepBuilder builder;
    builder.begin({.first_event_number = first, .source_id = source_id, .source_sub_id = board});
    for (std::uint32_t e = 0; e < count; ++e) ASSERT_TRUE(builder.add_event(1000 + 100 * (first + e), hits));
    add(builder.finish());
  }
  std::unique_ptr<link::ReplaySource> open(RecordingConfig config = {}) {
    config.path = path_;
    return open_recording(config);
  }
  static std::vector<Bytes> play(link::ReplaySource& source, std::size_t at_once = 3) {
    std::vector<Bytes> all;
    std::vector<link::ReplayPacket> packets(at_once);
    while (const std::size_t count = source.next(packets)) {
      for (const auto& packet : std::span(packets).first(count)) {
        EXPECT_EQ(packet.event_count, events_in(packet.payload));
        EXPECT_GE(packet.time_ns, last_ns);
        last_ns = packet.time_ns;
        all.emplace_back(packet.payload.begin(), packet.payload.end());
      }
    }
    last_ns = 0;
    return all;
  }
  static std::uint64_t count(const link::ReplaySource& source, std::string_view name) {
    for (const auto& [known, value] : source.counts()) {
      if (known == name) return value;
    }
    ADD_FAILURE() << "no count " << name;
    return 0;
  }

  static inline std::uint64_t last_ns = 0;
  const std::filesystem::path path_;
};

TEST_F(RecordingTest, RawDataBecomesPacketsOfTheBoards) {
  const std::vector<wire::MepHit> hits = {{3, -32, 10}, {200, 0, 0}, {487, 30, 5}};
  for (std::uint32_t first = 0; first < 200; first += 40) {
    for (std::uint8_t board = 0; board < 2; ++board) add_mep(board, first, 40, hits);
  }
  for (const auto layout : {wire::MgpLayout::padded, wire::MgpLayout::packed}) {
    const auto source = open({.layout = layout});
    for (int lap = 0; lap < 2; ++lap) {
      std::vector<std::uint32_t> sequence(2);
      std::vector<std::uint32_t> events(2);
      std::vector<int> markers(2);
      for (const Bytes& packet : play(*source)) {
        wire::MgpView view;
        ASSERT_EQ(wire::MgpView::parse(packet, view), wire::ParseError::none);
        EXPECT_EQ(view.header().layout, layout);
        const std::size_t board = view.header().source_sub_id;
        EXPECT_EQ(view.header().sequence, sequence[board]);
        if (view.is_marker()) {
          EXPECT_EQ(view.header().run_start, markers[board]++ == 0);
          EXPECT_EQ(view.next_event_number(), events[board]);
          continue;
        }
        ++sequence[board];
        std::vector<std::uint16_t> scratch(wire::kMgpScratchHits);
        wire::for_each_event(view, scratch.data(), [&](const wire::MgpEvent& event, const std::uint16_t* found) {
          EXPECT_EQ(event.timestamp, 1000 + 100 * events[board]);
          EXPECT_EQ(event.event_number, events[board]++);
          ASSERT_EQ(event.hit_count, 3);
          const int times[] = {-16, 0, 15};
          for (std::size_t h = 0; h < 3; ++h) {
            EXPECT_EQ(wire::hit_channel(found[h]), 512 * board + hits[h].channel);
            EXPECT_EQ(wire::hit_time(found[h]), layout == wire::MgpLayout::padded ? times[h] : 0);
          }
        });
      }
      EXPECT_EQ(markers, (std::vector<int>{4, 4}));
      EXPECT_EQ(events, (std::vector<std::uint32_t>{200, 200}));
      EXPECT_EQ(count(*source, "events"), 400u);
      EXPECT_EQ(count(*source, "hits"), 1200u);
      EXPECT_EQ(count(*source, "hits_moved") + count(*source, "hits_cut") + count(*source, "bytes_damaged"), 0u);
      source->rewind();
    }
  }
}

TEST_F(RecordingTest, CountsWhatDoesNotFit) {
  std::vector<wire::MepHit> hits;
  for (std::uint16_t channel = 0; channel < 40; ++channel) hits.push_back({channel, channel < 2 ? 40 : 0, 0});
  add_mep(0, 0, 1, hits);
  const auto source = open({.fine_time = 6});
  const auto packets = play(*source);
  wire::MgpView view;
  ASSERT_EQ(wire::MgpView::parse(packets.at(1), view), wire::ParseError::none);
  EXPECT_EQ(view.event(0).fine_time, 6);
  EXPECT_EQ(view.event(0).hit_count, 32);
  EXPECT_EQ(count(*source, "hits_cut"), 8u);
  std::size_t last = 0;
  for (const std::uint16_t hit : view.hits(0)) last += wire::hit_time(hit) == 15;
  EXPECT_EQ(last, count(*source, "hits_moved"));
  const auto packed = open({.layout = wire::MgpLayout::packed});
  play(*packed);
  EXPECT_EQ(count(*packed, "hits_cut"), 0u);
}

// The largest packets there can be: many events without hits, and few with many.
TEST_F(RecordingTest, EveryMepHasRoom) {
  std::vector<wire::MepHit> hits;
  for (std::uint16_t channel = 0; channel < 250; ++channel) hits.push_back({channel, 0, 0});
  add_mep(1, 0, 60, hits);
  add_mep(1, 60, 255, {});
  add_mep(1, 315, 255, std::span(hits).first(55));
  for (const auto layout : {wire::MgpLayout::padded, wire::MgpLayout::packed}) {
    const auto source = open({.layout = layout});
    std::uint32_t events = 0;
    for (const Bytes& packet : play(*source, 64)) events += events_in(packet);
    EXPECT_EQ(events, 570u);
  }
}

TEST_F(RecordingTest, PassesOverOtherDetectorsBadPacketsAndTheRest) {
  const std::vector<wire::MepHit> hits = {{3, 0, 0}};
  add_mep(0, 0, 4, hits);
  add_mep(4, 0, 4, hits);
  add_mep(0, 0, 4, hits, 0x24);
  wire::MepBuilder builder;
  builder.begin({.source_id = 0x1C});
  builder.add_event_data(2000, Bytes(5));
  const auto odd = builder.finish();
  add(odd);
  Bytes bad(odd.begin(), odd.end());
  bad[10] = std::byte{9};  // an event number that does not fit
  add(bad);
  add(std::span(odd).first(12));
  const auto source = open();
  EXPECT_EQ(play(*source).size(), 1u + 1 + 1 + 3);
  EXPECT_EQ(count(*source, "meps"), 2u);
  EXPECT_EQ(count(*source, "meps_other"), 2u);
  EXPECT_EQ(count(*source, "meps_bad"), 1u);
  EXPECT_EQ(count(*source, "events"), 5u);
  EXPECT_EQ(count(*source, "events_bad"), 1u);
  EXPECT_EQ(count(*source, "bytes_damaged"), 12u);
}

TEST_F(RecordingTest, RefusesOtherFiles) {
  EXPECT_THROW(open(), SetupError);
  add({});
  EXPECT_THROW(open(), SetupError);
  add(Bytes(100, std::byte{7}));
  EXPECT_THROW(open(), SetupError);
}

TEST(EventsIn, CountsOurPacketsOnly) {
  Bytes packet(16);
  packet[3] = std::byte{9};
  for (const unsigned format : {0u, 4u, 15u}) {
    packet[2] = static_cast<std::byte>(format);
    EXPECT_EQ(events_in(packet), 0u);
  }
  for (const unsigned format : {1u, 2u, 3u, 0x13u}) {
    packet[2] = static_cast<std::byte>(format);
    EXPECT_EQ(events_in(packet), 9u);
  }
  EXPECT_EQ(events_in(std::span(packet).first(15)), 0u);
}

}  // namespace
}  // namespace nanet::emulate
