// SPDX-License-Identifier: Apache-2.0
// Two processes, over shared memory and over TCP on loopback: each byte checked by the process that has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "nanet/rdma/connection.hpp"
#include "target_process.hpp"

namespace nanet::rdma {
namespace {

using test::fill_pattern;
using test::first_difference;
using test::TARGET_REGION_BYTES;
using test::TargetProcess;

constexpr std::size_t SIZES_BYTES[] = {0, 1, 8, 4095, 64 << 10, 5 << 20};
constexpr const char* SHARED_MEMORY = "posix";

std::string number(std::uint64_t value) { return std::string(" ").append(std::to_string(value)); }

// Transports, region.
class Transfer : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  std::string region = std::get<1>(GetParam());
  TargetProcess target{std::get<0>(GetParam())};
  Worker worker{test::worker_config(std::get<0>(GetParam()))};

  ConnectionConfig config(const std::string& suffix = "") const {
    return {.address = test::target_address(), .port = target.port(), .region = region + suffix, .token = test::TARGET_TOKEN};
  }
};

TEST_P(Transfer, put_writes_these_bytes_and_no_others) {
  Connection connection(worker, config());
  std::uint64_t seed = 10;
  for (const std::size_t bytes : SIZES_BYTES) {
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{4097}, TARGET_REGION_BYTES - bytes}) {
      ASSERT_EQ(target.ask("fill " + region + number(0) + number(TARGET_REGION_BYTES) + number(1)), "done");
      std::vector<std::byte> all(TARGET_REGION_BYTES), data(bytes);
      fill_pattern(all, 1);
      fill_pattern(data, ++seed);
      EXPECT_EQ(connection.put(offset, data), Status::ok) << connection.error();
      EXPECT_EQ(connection.flush(), Status::ok) << connection.error();
      EXPECT_EQ(target.ask("check " + region + number(offset) + number(bytes) + number(seed)), "same") << bytes << " at " << offset;
      EXPECT_EQ(target.ask("check " + region + number(0) + number(offset) + number(1)), "same") << "before " << offset;
      std::copy(data.begin(), data.end(), all.begin() + static_cast<std::ptrdiff_t>(offset));
      std::vector<std::byte> seen(TARGET_REGION_BYTES);
      EXPECT_EQ(connection.get(0, seen), Status::ok) << connection.error();
      EXPECT_TRUE(seen == all) << "all around " << bytes << " at " << offset;
    }
  }
}

TEST_P(Transfer, get_reads_these_bytes) {
  Connection connection(worker, config());
  std::uint64_t seed = 100;
  for (const std::size_t bytes : SIZES_BYTES) {
    ++seed;
    ASSERT_EQ(target.ask("fill " + region + number(333) + number(bytes) + number(seed)), "done");
    std::vector<std::byte> data(bytes + 2, std::byte{0x5a});
    EXPECT_EQ(connection.get(333, std::span(data).subspan(1, bytes)), Status::ok) << connection.error();
    EXPECT_EQ(first_difference(std::span(data).subspan(1, bytes), seed), bytes);
    EXPECT_EQ(data.front(), std::byte{0x5a});
    EXPECT_EQ(data.back(), std::byte{0x5a});
  }
}

TEST_P(Transfer, many_small_chunks_come_in_their_places) {
  ConnectionConfig small = config();
  small.chunk_bytes = 1000;
  small.depth = 3;
  Connection connection(worker, small);
  std::vector<std::byte> data(1 << 20);
  fill_pattern(data, 7);
  EXPECT_EQ(connection.put(5, data), Status::ok) << connection.error();
  EXPECT_EQ(connection.flush(), Status::ok);
  EXPECT_EQ(target.ask("check " + region + number(5) + number(data.size()) + number(7)), "same");
  std::vector<std::byte> back(data.size());
  EXPECT_EQ(connection.get(5, back), Status::ok);
  EXPECT_TRUE(back == data);
}

TEST_P(Transfer, atomics_fetch_and_change) {
  Connection connection(worker, config());
  std::uint64_t value = 1000;
  ASSERT_EQ(connection.put(64, std::as_bytes(std::span(&value, 1))), Status::ok);
  ASSERT_EQ(connection.flush(), Status::ok);
  auto fetched = connection.atomic_add(64, 23);
  EXPECT_EQ(fetched.status, Status::ok) << connection.error();
  EXPECT_EQ(fetched.before, 1000u);
  fetched = connection.atomic_add(64, ~std::uint64_t{0});  // minus 1
  EXPECT_EQ(fetched.before, 1023u);
  fetched = connection.atomic_swap(64, 77);
  EXPECT_EQ(fetched.status, Status::ok);
  EXPECT_EQ(fetched.before, 1022u);
  EXPECT_EQ(connection.get(64, std::as_writable_bytes(std::span(&value, 1))), Status::ok);
  EXPECT_EQ(value, 77u);
  EXPECT_EQ(connection.atomic_add(61, 1).status, Status::misaligned);
  EXPECT_EQ(connection.atomic_add(TARGET_REGION_BYTES, 1).status, Status::out_of_bounds);
}

TEST_P(Transfer, two_connections_add_to_one_word) {
  Worker other(test::worker_config(std::get<0>(GetParam())));
  Connection first(worker, config()), second(other, config());
  for (int turn = 0; turn < 500; ++turn) {
    ASSERT_EQ(first.atomic_add(128, 1).status, Status::ok);
    ASSERT_EQ(second.atomic_add(128, 1).status, Status::ok);
  }
  EXPECT_EQ(first.atomic_add(128, 0).before, 1000u);
}

TEST_P(Transfer, out_of_bounds_is_refused_and_changes_nothing) {
  ASSERT_EQ(target.ask("fill " + region + number(0) + number(TARGET_REGION_BYTES) + number(3)), "done");
  Connection connection(worker, config());
  EXPECT_EQ(connection.bytes(), TARGET_REGION_BYTES);
  std::vector<std::byte> data(16);
  EXPECT_EQ(connection.put(TARGET_REGION_BYTES - 15, data), Status::out_of_bounds);
  EXPECT_EQ(connection.put(TARGET_REGION_BYTES + 1, {}), Status::out_of_bounds);
  EXPECT_EQ(connection.put(~std::uint64_t{0} - 7, data), Status::out_of_bounds);  // would wrap round
  EXPECT_EQ(connection.get(TARGET_REGION_BYTES - 15, data), Status::out_of_bounds);
  EXPECT_EQ(connection.flush(), Status::ok);
  EXPECT_EQ(target.ask("check " + region + number(0) + number(TARGET_REGION_BYTES) + number(3)), "same");
}

TEST_P(Transfer, permissions_are_kept) {
  ASSERT_EQ(target.ask("fill " + region + number(0) + number(64) + number(3)), "done");
  Connection reader(worker, config("-read"));
  EXPECT_TRUE(reader.permissions().read);
  EXPECT_FALSE(reader.permissions().write);
  std::vector<std::byte> data(64);
  EXPECT_EQ(reader.put(0, data), Status::not_permitted);
  EXPECT_EQ(reader.atomic_swap(0, 1).status, Status::not_permitted);
  EXPECT_EQ(reader.get(0, data), Status::ok) << reader.error();
  EXPECT_EQ(first_difference(data, 3), 64u);
  if (region != "host") return;  // the one that is exposed for writing only
  Connection writer(worker, config("-write"));
  EXPECT_EQ(writer.get(0, data), Status::not_permitted);
  fill_pattern(data, 4);
  EXPECT_EQ(writer.put(0, data), Status::ok);
  EXPECT_EQ(writer.flush(), Status::ok);
  EXPECT_EQ(target.ask("check " + region + number(0) + number(64) + number(4)), "same");
}

TEST_P(Transfer, close_is_clean) {
  {
    Connection connection(worker, config());
    std::vector<std::byte> data(5 << 20);
    fill_pattern(data, 9);
    EXPECT_EQ(target.ask("connections"), "1");
    EXPECT_EQ(connection.put(0, data), Status::ok);
    EXPECT_EQ(connection.close(), Status::ok);  // what was put is there
    EXPECT_EQ(target.ask("check " + region + number(0) + number(data.size()) + number(9)), "same");
    EXPECT_EQ(connection.put(0, data), Status::closed);
    EXPECT_EQ(connection.get(0, data), Status::closed);
    EXPECT_EQ(connection.flush(), Status::closed);
    EXPECT_EQ(connection.atomic_add(0, 1).status, Status::closed);
    EXPECT_EQ(connection.close(), Status::closed);
  }
  Connection again(worker, config());
  EXPECT_EQ(again.flush(), Status::ok);
  EXPECT_EQ(again.close(), Status::ok);
  for (int turn = 0; turn < 500 && target.ask("connections") != "0"; ++turn) worker.wait(10);
  EXPECT_EQ(target.ask("connections"), "0");
  EXPECT_EQ(target.ask("quit"), "bye");
  EXPECT_EQ(target.join(), 0);
}

// A rank that is both: while its connection waits, its target is served.
TEST(OneWorker, carries_a_target_and_a_connection_to_it) {
  for (const char* transports : {SHARED_MEMORY, "tcp", ""}) {
    Worker worker(test::worker_config(transports));
    Region region(worker, {.name = "r", .bytes = 1 << 20});
    Target target(worker);
    target.expose(region, {.name = "r", .permissions = {.read = true, .write = true}, .token = 5});
    Connection connection(worker, {.address = "127.0.0.1", .port = target.port(), .region = "r", .token = 5});
    std::vector<std::byte> data(region.bytes()), back(region.bytes());
    fill_pattern(data, 6);
    EXPECT_EQ(connection.put(0, data), Status::ok) << connection.error();
    EXPECT_EQ(connection.flush(), Status::ok) << connection.error();
    EXPECT_EQ(first_difference(region.span(), 6), region.bytes()) << transports;
    EXPECT_EQ(connection.get(0, back), Status::ok) << connection.error();
    EXPECT_TRUE(back == data);
    EXPECT_EQ(connection.atomic_swap(8, 3).status, Status::ok);
    EXPECT_EQ(connection.atomic_add(8, 1).before, 3u);
    EXPECT_EQ(connection.close(), Status::ok);
    for (int turn = 0; turn < 500 && target.connection_count() != 0; ++turn) worker.wait(10);
    EXPECT_EQ(target.connection_count(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Transfer,
                         testing::Combine(testing::ValuesIn(test::ways({SHARED_MEMORY, "tcp", ""})),
                                          testing::Values("shared", "host")),
                         [](const auto& way) { return test::way_name(std::get<0>(way.param)) + "_" + std::get<1>(way.param); });

}  // namespace
}  // namespace nanet::rdma
