// SPDX-License-Identifier: Apache-2.0
// Event building and the trigger against the scalar fit: every event answered once, with the right primitive, whatever the packing.
#include "na62/rich_trigger.hpp"

#include <gtest/gtest.h>

#include <map>

#include "../engine/support.hpp"
#include "na62/protocols.hpp"
#include "nanet/engine/event_builder.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/engine/transmitter.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;
using test::Bytes;
using test::TestEvent;

// What an event must be answered with, from the scalar fit.
std::map<std::uint64_t, std::uint16_t> expected_answers(std::span<const TestEvent> events) {
  std::map<std::uint64_t, std::uint16_t> answers;
  for (const TestEvent& event : events) {
    const rich::EventRings rings = rich::find_rings_scalar({}, {event.hits.data(), static_cast<std::uint32_t>(event.hits.size())});
    answers[event::event_key(event.time.timestamp, event.time.fine_time)] = rich::primitive_id(rings, rich::Decision{});
  }
  return answers;
}

class RichTriggerTest : public ::testing::Test {
 protected:
  void make(std::uint32_t source_count, std::optional<MergeConfig> merge) {
    clop = std::make_unique<flow::Clop>(
        flow::ClopConfig{.buffer_count = 64, .buffer_bytes = 1 << 18, .huge_pages = false, .locked = false});
    std::vector<flow::Route> routes;
    for (std::uint8_t s = 0; s < source_count; ++s) routes.push_back({0x1C, s, s, 0});
    receiver = na62::kMgp.make_receiver({.batch_size = 16}, {link, *clop, queue, flow::Router(routes), source_count});
    event_builder = std::make_unique<EventBuilder>(
        queue, std::vector<EventOrigin>{{clop.get(), &na62::kMgp, 0}}, source_count, merge,
        std::make_unique<na62::RichTrigger>(na62::RichConfig{},
                                            na62::AnswerWriter(ring, sent_queue, {.source_sub_id = 7}, counters, &transmitter),
                                            counters, monitor, *channels),
        counters);
  }

  // Moves everything from the link through the builder and the trigger to the answer link.
  void run(std::uint64_t now_ns) {
    while (receiver->poll(now_ns) > 0) {
      while (queue.peek() != nullptr) {
        event_builder->poll(now_ns, now_ns);
        while (transmitter.poll(now_ns) > 0) {
        }
      }
    }
    collect_sent(sent_queue, counters, Counter::answers_sent);
  }
  void finish() {
    event_builder->finish();
    while (transmitter.poll(0) > 0) {
    }
  }

  std::map<std::uint64_t, std::uint16_t> answers() {
    std::map<std::uint64_t, std::uint16_t> found;
    for (const Bytes& packet : link.outgoing) {
      wire::MtpView view;
      EXPECT_EQ(wire::MtpView::parse(packet, view), wire::ParseError::none);
      EXPECT_EQ(view.source_id(), 0x1C);
      EXPECT_EQ(view.source_sub_id(), 7);
      wire::for_each_primitive(view, [&](wire::Primitive primitive) {
        const auto key = event::event_key(primitive.timestamp, primitive.fine_time);
        EXPECT_TRUE(found.emplace(key, primitive.id).second) << "answered twice";
      });
    }
    return found;
  }

  test::MemoryLink link;
  std::unique_ptr<flow::Clop> clop;
  flow::CompletionQueue queue{128};
  flow::TxRing ring{{.capacity = 4, .slot_bytes = 1472}};  // short, so that the writer has to wait for room
  flow::CompletionQueue sent_queue{8};
  flow::Counters counters;
  Transmitter transmitter{ring, link, sent_queue};
  na62::RingMonitor monitor;
  std::unique_ptr<na62::ChannelMonitor> channels = std::make_unique<na62::ChannelMonitor>();
  std::unique_ptr<Receiver> receiver;
  std::unique_ptr<EventBuilder> event_builder;
};

TEST_F(RichTriggerTest, AnswersEveryEventOfPaddedPackets) {
  make(1, std::nullopt);
  const auto events = test::make_events(16 * 200, 3);
  for (std::uint32_t p = 0; p < 200; ++p) link.incoming.push_back({test::make_packet(std::span(events).subspan(16 * p, 16), p)});
  run(1000);
  EXPECT_EQ(answers(), expected_answers(events));
  EXPECT_EQ(counters.value(Counter::events_answered), events.size());
  EXPECT_EQ(counters.value(Counter::answers_sent), link.outgoing.size());
  EXPECT_EQ(counters.value(Counter::hits_unmapped), 0u);
  std::uint64_t found = 0;
  for (const auto& [key, id] : answers()) found += id >> 8 & 1u;
  EXPECT_EQ(counters.value(Counter::rings_found), found);
  EXPECT_EQ(monitor.samples().size(), rich::kSamples);
  EXPECT_EQ(monitor.samples()[5].hit_count, events[5].hits.size());
}

TEST_F(RichTriggerTest, MaskedHitsAreNotLookedAt) {
  const auto events = test::make_events(16 * 20, 3);
  rich::ChannelSet mask;
  for (const std::uint16_t hit : events[0].hits) mask.add(hit);
  channels = std::make_unique<na62::ChannelMonitor>(mask);
  make(1, std::nullopt);
  for (std::uint32_t p = 0; p < 20; ++p) link.incoming.push_back({test::make_packet(std::span(events).subspan(16 * p, 16), p)});
  run(1000);
  auto left = events;
  std::uint64_t masked = 0;
  for (TestEvent& event : left) masked += std::erase_if(event.hits, [&](std::uint16_t hit) { return mask.has(hit); });
  EXPECT_TRUE(left[0].hits.empty());
  EXPECT_EQ(answers(), expected_answers(left));
  EXPECT_EQ(counters.value(Counter::hits_masked), masked);
  EXPECT_EQ(counters.value(Counter::hits_unmapped), 0u);
  EXPECT_EQ(counters.value(Counter::rings_over_answer), 0u);
}

TEST_F(RichTriggerTest, AnswersEveryEventOfPackedPackets) {
  make(1, std::nullopt);
  auto events = test::make_events(3000, 4);
  Bytes room(1472);
  std::uint32_t sequence = 0;
  for (std::size_t e = 0; e < events.size();) {
    wire::MgpBuilder builder(room);
    builder.begin(wire::MgpLayout::packed);
    // A packed packet holds the hits of one board only.
    for (auto& hit : events[e].hits) hit &= 0x1FF;
    while (e < events.size() && builder.add_event(events[e].time, events[e].hits)) {
      if (++e < events.size()) {
        for (auto& hit : events[e].hits) hit &= 0x1FF;
      }
    }
    const auto packet = builder.finish({.source_id = 0x1C, .source_sub_id = 0, .sequence = sequence++}, 1472);
    link.incoming.push_back({Bytes(packet.begin(), packet.end())});
  }
  run(1000);
  EXPECT_EQ(answers(), expected_answers(events));
}

TEST_F(RichTriggerTest, CountsHitsWithoutAPm) {
  make(1, std::nullopt);
  auto events = test::make_events(16, 5);
  events[3].hits = {500, 1012, 100, 200, 300};  // ids 488..511 of a board have no PM
  link.incoming.push_back({test::make_packet(events, 0)});
  run(1000);
  EXPECT_EQ(counters.value(Counter::hits_unmapped), 2u);
  EXPECT_EQ(answers(), expected_answers(events));
}

TEST_F(RichTriggerTest, MergesFourBoards) {
  make(4, MergeConfig{.window_us = 1, .open_events_max = 1024});
  const auto events = test::make_events(16 * 300, 6);
  for (std::uint32_t p = 0; p < 300; ++p) {
    for (std::uint8_t board = 0; board < 4; ++board) {
      std::vector<TestEvent> parts;
      for (const TestEvent& event : std::span(events).subspan(16 * p, 16)) parts.push_back(test::part_of(event, board));
      link.incoming.push_back({test::make_packet(parts, p, board)});
    }
  }
  run(1000);
  EXPECT_EQ(answers(), expected_answers(events));
  EXPECT_EQ(counters.value(Counter::events_complete), events.size());
  EXPECT_EQ(counters.value(Counter::parts_merged), 4 * events.size());
  EXPECT_EQ(event_builder->events_opened(), events.size());
}

TEST_F(RichTriggerTest, DropsOrAnswersIncompleteEventsAsConfigured) {
  for (const auto policy : {IncompletePolicy::drop, IncompletePolicy::process}) {
    SetUp();
    counters.set(Counter::events_discarded, 0);
    counters.set(Counter::events_answered, 0);
    make(2, MergeConfig{.window_us = 1, .open_events_max = 1024, .incomplete = policy});
    const auto events = test::make_events(32, 7);
    link.incoming.push_back({test::make_packet(std::span(events).first(16), 0, 0)});
    link.incoming.push_back({test::make_packet(std::span(events).first(16), 0, 1)});
    link.incoming.push_back({test::make_packet(std::span(events).subspan(16, 16), 1, 0)});  // board 1's packet is missing
    run(1000);
    EXPECT_EQ(counters.value(Counter::events_answered), 16u);
    event_builder->poll(1999, 1999);
    EXPECT_EQ(counters.value(Counter::events_missing_parts), 0u);
    event_builder->poll(2000, 2000);
    EXPECT_EQ(counters.value(Counter::events_missing_parts), 16u);
    EXPECT_EQ(counters.value(Counter::events_discarded), policy == IncompletePolicy::drop ? 16u : 0u);
    EXPECT_EQ(counters.value(Counter::events_answered), policy == IncompletePolicy::drop ? 16u : 32u);
  }
}

TEST_F(RichTriggerTest, FinishClosesOpenEvents) {
  make(2, MergeConfig{.window_us = 1000, .open_events_max = 1024, .incomplete = IncompletePolicy::process});
  const auto events = test::make_events(16, 8);
  link.incoming.push_back({test::make_packet(events, 0, 0)});
  run(1000);
  EXPECT_EQ(counters.value(Counter::events_answered), 0u);
  finish();
  EXPECT_EQ(counters.value(Counter::events_answered), 16u);
  EXPECT_EQ(answers().size(), 16u);
}

TEST_F(RichTriggerTest, ANewRunMayStartItsTimestampsAgain) {
  make(2, MergeConfig{.window_us = 1000, .open_events_max = 1024});
  const auto first = test::make_events(64, 9, 5000);
  const auto second = test::make_events(64, 10, 100);
  for (const auto* events : {&first, &second}) {
    for (std::uint8_t board = 0; board < 2; ++board) link.incoming.push_back({test::make_start_marker(0, 0, board)});
    for (std::uint32_t p = 0; p < 4; ++p) {
      for (std::uint8_t board = 0; board < 2; ++board) {
        link.incoming.push_back({test::make_packet(std::span(*events).subspan(16 * p, 16), p, board)});
      }
    }
    for (std::uint8_t board = 0; board < 2; ++board) link.incoming.push_back({test::make_end_marker(4, 64, board)});
    run(1000);
  }
  EXPECT_EQ(counters.value(Counter::events_answered), 128u);
  EXPECT_EQ(counters.value(Counter::parts_late), 0u);
}

class NoSink final : public event::EventSink {
  void take(std::span<const event::Event>, std::uint64_t) override {}
};

TEST(EventBuilderSetUp, RefusesSeveralSourcesWithoutMergingAndPacketsWithoutEvents) {
  flow::CompletionQueue queue(8);
  flow::Counters counters;
  const auto build = [&](const Protocol& protocol, std::uint32_t sources) {
    EventBuilder(queue, {{nullptr, &protocol, 0}}, sources, std::nullopt, std::make_unique<NoSink>(), counters);
  };
  EXPECT_THROW(build(na62::kMgp, 2), SetupError);
  EXPECT_THROW(build(kRaw, 1), SetupError);
  EXPECT_NO_THROW(build(na62::kM2egp, 1));
}

}  // namespace
}  // namespace nanet::engine
