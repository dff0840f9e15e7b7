// SPDX-License-Identifier: Apache-2.0
// The sender in virtual time, without sockets.
#include "emulate/tel62.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "fake_link.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

constexpr std::uint64_t kStart = 5'000'000'000;

// A sender with all it needs, and a clock that the test moves.
class Bench {
 public:
  explicit Bench(const EmulatorConfig& config, const ScheduleConfig& schedule_config = {}, std::uint32_t pool_packets = 10,
                 double rate = 1e6)
      : schedule(with_pacing(schedule_config, config), poisson_arrivals(pool_packets * config.events_per_packet, rate, 1)),
        sample(config, schedule.pool_keys()),
        book(schedule.pool_keys(), config.events_per_packet, 1024, config.first_timestamp),
        tel62(config, schedule, sample, book, link) {
    tel62.start(kStart);
  }

  // Sends all that is due at this time, 10 ns a board.
  void advance_to(std::uint64_t elapsed_ns) {
    now_ns = std::max(now_ns, kStart + elapsed_ns);
    while (tel62.prepare(now_ns)) tel62.send(now_ns += 10);
  }

  static ScheduleConfig with_pacing(ScheduleConfig schedule, const EmulatorConfig& config) {
    schedule.events_per_packet = config.events_per_packet;
    schedule.pacing = config.rate_events_per_s > 0 ? Pacing::paced : Pacing::unpaced;
    return schedule;
  }

  Schedule schedule;
  Sample sample;
  AnswerBook book;
  FakeLink link;
  Tel62 tel62;
  std::uint64_t now_ns = kStart;
};

wire::MgpView view_of(const FakeLink::Sent& sent) {
  wire::MgpView view;
  EXPECT_EQ(wire::MgpView::parse(sent.payload, view), wire::ParseError::none);
  return view;
}

TEST(Tel62, SendsEachPacketWhenItsLastEventHasHappened) {
  Bench bench({});
  for (std::uint64_t t = 0; t < 1'000'000; t += 100) bench.advance_to(t);
  ASSERT_GT(bench.link.sent.size(), 55u);  // 1e6/s for 1 ms in packets of 16, 6 laps of the pool
  ASSERT_LT(bench.link.sent.size(), 70u);
  for (const FakeLink::Sent& sent : bench.link.sent) {
    const wire::MgpView view = view_of(sent);
    const wire::MgpEvent last = view.event(15);
    const double happened_ns = static_cast<double>(wire::ticks(last.timestamp, last.fine_time)) * wire::kTickNs;
    EXPECT_GE(static_cast<double>(sent.at_ns - kStart), happened_ns);
    EXPECT_LE(static_cast<double>(sent.at_ns - kStart), happened_ns + 130);
    EXPECT_EQ(view.header().send_time_ns, static_cast<std::uint32_t>(sent.at_ns));
  }
  EXPECT_EQ(bench.tel62.lateness().count(), bench.link.sent.size());
  EXPECT_LE(bench.tel62.lateness().max(), 130u);
}

TEST(Tel62, SequenceAndEventNumbersRunOnOverLapsAndBatches) {
  Bench bench({});
  for (std::uint64_t t = 0; t < 200'000'000; t += 70'000) bench.advance_to(t);
  ASSERT_GT(bench.link.sent.size(), 12000u);  // more than 65536 events
  std::uint32_t sequence = 0;
  std::uint32_t event_number = 0;
  std::uint64_t key = 0;
  std::set<std::pair<std::uint32_t, std::uint8_t>> times;
  for (const FakeLink::Sent& sent : bench.link.sent) {
    const wire::MgpView view = view_of(sent);
    ASSERT_EQ(view.header().sequence, sequence++);
    for (std::size_t i = 0; i < 16; ++i) {
      const wire::MgpEvent event = view.event(i);
      ASSERT_EQ(event.event_number, static_cast<std::uint16_t>(event_number++));
      ASSERT_TRUE(times.insert({event.timestamp, event.fine_time}).second);
      ASSERT_GT(wire::ticks(event.timestamp, event.fine_time) + 1, key);
      key = wire::ticks(event.timestamp, event.fine_time) + 1;
    }
  }
}

TEST(Tel62, LatePacketsLeaveTogetherInBoundedBatches) {
  Bench bench({}, {}, 100);
  bench.advance_to(bench.schedule.packet(250).due_ns);
  ASSERT_EQ(bench.link.sent.size(), 251u);
  // Pool of 100: 48 + 48 + 4, twice, then 48 + 3. Batches lie back to back in memory, so they can leave as one message.
  EXPECT_EQ(bench.link.send_sizes, (std::vector<std::size_t>{48, 48, 4, 48, 48, 4, 48, 3}));
  EXPECT_TRUE(bench.link.contiguous);
  const std::uint64_t first_late = bench.link.sent[0].at_ns - kStart - bench.schedule.packet(0).due_ns;
  EXPECT_GE(bench.tel62.lateness().max(), first_late);  // the own overload is seen
}

TEST(Tel62, BurstsWaitAndAreNotCalledLate) {
  EmulatorConfig config;
  config.burst_packets = 8;
  Bench bench(config, {}, 80);
  for (std::uint64_t t = 0; t < 2'000'000; t += 100) bench.advance_to(t);
  ASSERT_GT(bench.link.send_sizes.size(), 10u);
  for (const std::size_t size : bench.link.send_sizes) EXPECT_EQ(size, 8u);
  EXPECT_LE(bench.tel62.lateness().max(), 130u);
}

TEST(Tel62, EachBoardSendsItsPartOfTheSameEvents) {
  EmulatorConfig config;
  config.boards = 4;
  config.layout = wire::MgpLayout::packed;
  Bench bench(config);
  for (std::uint64_t t = 0; t < 500'000; t += 1000) bench.advance_to(t);
  std::map<std::uint32_t, std::vector<const FakeLink::Sent*>> by_sequence;
  for (const FakeLink::Sent& sent : bench.link.sent) by_sequence[view_of(sent).header().sequence].push_back(&sent);
  ASSERT_EQ(by_sequence.size(), bench.tel62.packets_sent());
  ASSERT_GT(by_sequence.size(), 25u);
  for (const auto& [sequence, parts] : by_sequence) {
    ASSERT_EQ(parts.size(), 4u);
    for (std::size_t board = 0; board < 4; ++board) {
      EXPECT_EQ(parts[board]->destination, board);
      EXPECT_EQ(view_of(*parts[board]).header().source_sub_id, board);
      EXPECT_EQ(view_of(*parts[board]).first_event_number(), static_cast<std::uint16_t>(sequence * 16));
      std::array<std::uint16_t, wire::kMgpScratchHits> scratch;
      std::vector<std::uint64_t> keys;
      std::vector<std::uint64_t> keys_0;
      wire::for_each_event(view_of(*parts[board]), scratch.data(), [&](const wire::MgpEvent& event, const std::uint16_t*) {
        keys.push_back(wire::ticks(event.timestamp, event.fine_time));
      });
      wire::for_each_event(view_of(*parts[0]), scratch.data(), [&](const wire::MgpEvent& event, const std::uint16_t*) {
        keys_0.push_back(wire::ticks(event.timestamp, event.fine_time));
      });
      EXPECT_EQ(keys, keys_0);
    }
    // The latency of an answer counts from the last part.
    EXPECT_EQ(bench.book.send_ns(sequence), parts[3]->at_ns);
  }
}

TEST(Tel62, EverySentEventIsInTheBook) {
  EmulatorConfig config;
  config.first_timestamp = 0xFFFFFFFEu;
  Bench bench(config);
  for (std::uint64_t t = 0; t < 1'000'000; t += 5000) bench.advance_to(t);
  for (const FakeLink::Sent& sent : bench.link.sent) {
    const wire::MgpView view = view_of(sent);
    for (std::size_t i = 0; i < 16; ++i) {
      const wire::MgpEvent event = view.event(i);
      const AnswerBook::Answer answer = bench.book.answer(wire::ticks(event.timestamp, event.fine_time));
      ASSERT_EQ(answer.match, Match::answered);
      ASSERT_EQ(answer.packet, view.header().sequence);
      ASSERT_EQ(answer.in_packet, i);
    }
  }
}

TEST(Tel62, MarkersOfEveryBoardSayWhatComesNext) {
  EmulatorConfig config;
  config.boards = 4;
  config.first_sub_id = 8;
  Bench bench(config, {.packets_total = 7});
  bench.tel62.send_markers(MarkerKind::start, 123);
  EXPECT_FALSE(bench.tel62.finished());
  bench.advance_to(1'000'000'000);
  EXPECT_TRUE(bench.tel62.finished());
  bench.tel62.send_markers(MarkerKind::end, 456);
  ASSERT_EQ(bench.link.sent.size(), 4u + 28u + 4u);
  for (std::size_t board = 0; board < 4; ++board) {
    const wire::MgpView start = view_of(bench.link.sent[board]);
    EXPECT_TRUE(start.is_marker());
    EXPECT_TRUE(start.header().run_start);
    EXPECT_FALSE(start.header().run_end);
    EXPECT_EQ(start.header().source_sub_id, 8 + board);
    EXPECT_EQ(start.header().sequence, 0u);
    EXPECT_EQ(start.next_event_number(), 0u);
    EXPECT_EQ(bench.link.sent[board].destination, board);
    const wire::MgpView end = view_of(bench.link.sent[32 + board]);
    EXPECT_TRUE(end.is_marker());
    EXPECT_TRUE(end.header().run_end);
    EXPECT_EQ(end.header().sequence, 7u);
    EXPECT_EQ(end.next_event_number(), 112u);
    EXPECT_EQ(end.header().send_time_ns, 456u);
  }
}

TEST(Tel62, UnpacedSendsWithoutWaiting) {
  EmulatorConfig config;
  config.rate_events_per_s = 0;
  Bench bench(config, {.packets_total = 1000}, 100);
  bench.advance_to(0);
  EXPECT_EQ(bench.link.sent.size(), 1000u);
  EXPECT_TRUE(bench.tel62.finished());
  EXPECT_EQ(bench.tel62.lateness().count(), 0u);
}

}  // namespace
}  // namespace nanet::emulate
