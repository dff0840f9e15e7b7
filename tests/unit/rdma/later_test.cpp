// SPDX-License-Identifier: Apache-2.0
// Transfers that are only begun: never more than the depth, each reported once, and the bytes are there when the flush is reported.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <tuple>

#include "../allocation_count.hpp"
#include "nanet/rdma/connection.hpp"
#include "rdma/slots.hpp"
#include "target_process.hpp"

namespace nanet::rdma {
namespace {

using test::fill_pattern;
using test::first_difference;
using test::TARGET_REGION_BYTES;
using test::TargetProcess;

constexpr const char* SHARED_MEMORY = "posix";
constexpr std::uint32_t DEPTH = 5;

// Transports, region.
class Later : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  std::string region = std::get<1>(GetParam());
  TargetProcess target{std::get<0>(GetParam())};
  Worker worker{test::worker_config(std::get<0>(GetParam()), 200)};

  ConnectionConfig config(std::uint32_t timeout_ms = 10000) const {
    return {.address = test::target_address(),
            .port = target.port(),
            .region = region,
            .token = test::TARGET_TOKEN,
            .timeout_ms = timeout_ms,
            .depth = DEPTH};
  }

  std::string ask(const std::string& verb, std::uint64_t offset, std::uint64_t bytes, std::uint64_t seed) {
    return target.ask(verb + " " + region + " " + std::to_string(offset) + " " + std::to_string(bytes) + " " + std::to_string(seed));
  }

  // Until all that was accepted is reported: how often each tag was, by status.
  static std::map<std::uint64_t, std::map<Status, int>> take_all(Connection& connection) {
    std::map<std::uint64_t, std::map<Status, int>> told;
    while (connection.in_flight() != 0) {
      connection.progress();
      while (const auto completed = connection.take_completed()) ++told[completed->tag][completed->status];
    }
    return told;
  }
};

TEST_P(Later, puts_then_a_flush_then_gets_and_each_tag_is_told_once) {
  Connection connection(worker, config());
  constexpr std::size_t PIECE_BYTES = 3001, PIECE_COUNT = 1000;
  std::vector<std::byte> data(PIECE_BYTES * PIECE_COUNT), back(data.size());
  fill_pattern(data, 5);
  std::vector<int> told(2 * PIECE_COUNT + 1);
  const auto take = [&] {
    EXPECT_EQ(connection.progress(), Status::ok) << connection.error();
    EXPECT_LE(connection.in_flight(), DEPTH);
    while (const auto completed = connection.take_completed()) {
      EXPECT_EQ(completed->status, Status::ok);
      ++told.at(completed->tag);
    }
  };
  const auto start = [&](const auto& begin) {
    Status status;
    while ((status = begin()) == Status::would_block) take();
    EXPECT_EQ(status, Status::ok) << connection.error();
  };
  for (std::size_t piece = 0; piece < PIECE_COUNT; ++piece)
    start([&] {
      return connection.start_put(7 + piece * PIECE_BYTES, std::span(data).subspan(piece * PIECE_BYTES, PIECE_BYTES), piece);
    });
  start([&] { return connection.start_flush(2 * PIECE_COUNT); });
  while (told.back() == 0) take();
  EXPECT_EQ(ask("check", 7, data.size(), 5), "same");
  for (std::size_t piece = 0; piece < PIECE_COUNT; ++piece)
    start([&] {
      return connection.start_get(7 + piece * PIECE_BYTES, std::span(back).subspan(piece * PIECE_BYTES, PIECE_BYTES),
                                  PIECE_COUNT + piece);
    });
  while (connection.in_flight() != 0) take();
  EXPECT_TRUE(back == data);
  EXPECT_TRUE(std::ranges::all_of(told, [](int count) { return count == 1; }));
  EXPECT_FALSE(connection.take_completed());
  EXPECT_EQ(connection.close(), Status::ok);
}

TEST_P(Later, more_than_the_depth_would_block_until_they_are_taken_and_waiting_calls_still_go) {
  Connection connection(worker, config());
  std::vector<std::byte> data(8), other(64 << 10), back(other.size());
  fill_pattern(data, 1);
  for (std::uint64_t tag = 0; tag < DEPTH; ++tag) ASSERT_EQ(connection.start_put(8 * tag, data, tag), Status::ok);
  EXPECT_EQ(connection.start_put(0, data, 99), Status::would_block);
  EXPECT_EQ(connection.start_flush(99), Status::would_block);
  EXPECT_EQ(connection.in_flight(), DEPTH);
  fill_pattern(other, 2);
  EXPECT_EQ(connection.put(1000, other), Status::ok) << connection.error();  // in the slot of the calls that wait
  EXPECT_EQ(connection.flush(), Status::ok);
  EXPECT_EQ(connection.get(1000, back), Status::ok);
  EXPECT_TRUE(back == other);
  EXPECT_EQ(connection.start_put(0, data, 99), Status::would_block);  // all have ended, none is reported
  const auto told = take_all(connection);
  EXPECT_EQ(told.size(), DEPTH);
  EXPECT_FALSE(told.contains(99));
  EXPECT_EQ(connection.start_put(0, data, 99), Status::ok);
  EXPECT_EQ(take_all(connection).at(99).at(Status::ok), 1);
  for (std::uint64_t tag = 1; tag < DEPTH; ++tag) EXPECT_EQ(ask("check", 8 * tag, 8, 1), "same");
}

TEST_P(Later, nothing_is_allocated_once_it_is_set_up) {
  Connection connection(worker, config());
  std::vector<std::byte> data(1000), more(3 << 20);
  const std::uint64_t before = test::allocation_count;
  EXPECT_GT(before, 0u);  // the counter works
  Status worst = Status::ok;
  const auto note = [&](Status status) {
    if (status != Status::ok && status != Status::would_block) worst = status;
  };
  for (std::uint64_t turn = 0; turn < 300; ++turn) {
    note(connection.start_put(turn, data, turn));
    note(connection.start_get(turn, data, turn));
    note(connection.start_flush(turn));
    note(connection.progress());
    while (connection.take_completed()) {
    }
  }
  note(connection.put(0, more));
  note(connection.flush());
  note(connection.get(0, more));
  EXPECT_EQ(test::allocation_count - before, 0u);
  EXPECT_EQ(name(worst), name(Status::ok)) << connection.error();
}

TEST_P(Later, what_is_refused_takes_no_slot) {
  Connection connection(worker, config());
  std::vector<std::byte> data(16);
  EXPECT_EQ(connection.start_put(TARGET_REGION_BYTES - 15, data, 1), Status::out_of_bounds);
  EXPECT_EQ(connection.start_get(~std::uint64_t{0} - 7, data, 1), Status::out_of_bounds);
  EXPECT_EQ(connection.in_flight(), 0u);
  ConnectionConfig read_only = config();
  read_only.region += "-read";
  Connection reader(worker, read_only);
  EXPECT_EQ(reader.start_put(0, data, 1), Status::not_permitted);
  EXPECT_EQ(reader.in_flight(), 0u);
  EXPECT_EQ(connection.close(), Status::ok);
  EXPECT_EQ(connection.start_put(0, data, 1), Status::closed);
  EXPECT_EQ(connection.start_get(0, data, 1), Status::closed);
  EXPECT_EQ(connection.start_flush(1), Status::closed);
  EXPECT_EQ(connection.progress(), Status::closed);
  EXPECT_FALSE(connection.take_completed());
}

TEST_P(Later, close_ends_what_is_in_flight_and_it_can_still_be_taken) {
  Connection connection(worker, config());
  std::vector<std::byte> data(1 << 20);
  fill_pattern(data, 8);
  for (std::uint64_t tag = 0; tag < DEPTH; ++tag) ASSERT_EQ(connection.start_put(tag * data.size(), data, tag), Status::ok);
  EXPECT_EQ(connection.close(), Status::ok) << connection.error();
  const auto told = take_all(connection);
  ASSERT_EQ(told.size(), DEPTH);
  for (const auto& [tag, statuses] : told) EXPECT_EQ(statuses.at(Status::ok), 1) << tag;
  for (std::uint64_t tag = 0; tag < DEPTH; ++tag) EXPECT_EQ(ask("check", tag * data.size(), data.size(), 8), "same");
}

INSTANTIATE_TEST_SUITE_P(Ways, Later,
                         testing::Combine(testing::ValuesIn(test::ways({SHARED_MEMORY, "tcp"})), testing::Values("shared", "host")),
                         [](const auto& way) { return test::way_name(std::get<0>(way.param)) + "_" + std::get<1>(way.param); });

// Gets over TCP that the target is never to answer.
class LaterFault : public Later {
 protected:
  std::vector<std::byte> memory = std::vector<std::byte>(DEPTH * 4096, std::byte{0x11});
  std::vector<std::byte> then = memory;

  void start_gets(Connection& connection) {
    for (std::uint64_t tag = 0; tag < DEPTH; ++tag)
      ASSERT_EQ(connection.start_get(0, std::span(memory).subspan(tag * 4096, 4096), tag), Status::ok);
  }

  void expect_all_told(Connection& connection, Status status) {
    const auto told = take_all(connection);
    ASSERT_EQ(told.size(), DEPTH);
    for (const auto& [tag, statuses] : told) EXPECT_EQ(statuses.at(status), 1) << tag;
    EXPECT_EQ(connection.start_get(0, memory, 0), Status::closed);
  }
};

TEST_P(LaterFault, a_time_limit_ends_all_of_them) {
  Connection connection(worker, config(2000));
  ASSERT_EQ(ask("fill", 0, 4096, 1), "done");
  target.stop();
  const auto begin = std::chrono::steady_clock::now();
  start_gets(connection);
  Status status;
  while ((status = connection.progress()) == Status::ok) {
  }
  EXPECT_EQ(name(status), name(Status::time_out));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2000));
  expect_all_told(connection, Status::time_out);
  target.resume();
  EXPECT_NE(target.ask("connections"), "");  // it is awake again
  for (int turn = 0; turn < 20; ++turn) worker.wait(10);
  EXPECT_TRUE(memory == then);  // nothing comes late
}

TEST_P(LaterFault, a_target_that_dies_ends_all_of_them) {
  Connection connection(worker, config(20000));
  target.stop();
  start_gets(connection);
  target.kill();
  expect_all_told(connection, Status::peer_lost);
  EXPECT_FALSE(connection.error().empty());
}

TEST_P(LaterFault, a_connection_that_goes_with_transfers_in_flight_takes_them_back) {
  {
    Connection connection(worker, config(3000));
    target.stop();
    start_gets(connection);
  }
  target.resume();
  EXPECT_NE(target.ask("connections"), "");
  for (int turn = 0; turn < 20; ++turn) worker.wait(10);
  EXPECT_TRUE(memory == then);
}

INSTANTIATE_TEST_SUITE_P(Ways, LaterFault, testing::Combine(testing::Values("tcp"), testing::Values("shared")),
                         [](const auto&) { return "tcp"; });

TEST(Slots, a_slot_that_expires_is_seen_and_one_that_ended_is_not) {
  detail::Slots slots(nullptr, 2);
  EXPECT_FALSE(slots.has_expired(UINT64_MAX - 1));
  detail::Slot& first = *slots.take(detail::Use::later);
  detail::Slot& second = *slots.take(detail::Use::later);
  EXPECT_EQ(slots.take(detail::Use::later), nullptr);
  slots.is_posted(first, 100);
  slots.is_posted(second, 200);
  EXPECT_FALSE(slots.has_expired(99));
  EXPECT_TRUE(slots.has_expired(100));
  slots.end(first, UCS_OK);
  EXPECT_FALSE(slots.has_expired(199));
  EXPECT_TRUE(slots.has_expired(200));
  slots.end(second, UCS_ERR_CANCELED);
  EXPECT_FALSE(slots.has_expired(300));
  EXPECT_EQ(slots.next_ended(), &first);
  EXPECT_EQ(slots.next_ended(), &second);
  EXPECT_EQ(slots.next_ended(), nullptr);
  EXPECT_EQ(slots.take(detail::Use::later), nullptr);  // neither was given back
  EXPECT_NE(slots.take(detail::Use::waits), nullptr);  // which has one of its own
}

}  // namespace
}  // namespace nanet::rdma
