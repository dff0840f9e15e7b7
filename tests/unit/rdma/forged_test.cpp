// SPDX-License-Identifier: Apache-2.0
// Messages that this library's connections never send, from one that has proved the token: the target refuses them by itself, and goes on.
#include <gtest/gtest.h>

#include "forger.hpp"
#include "nanet/rdma/connection.hpp"

namespace nanet::rdma {
namespace {

using test::Forger;
using test::TARGET_REGION_BYTES;
using test::TARGET_TOKEN;

constexpr const char* SHARED_MEMORY = "posix";

Refusal refusal_of(Forger& forger, const FetchMessage& message) {
  const auto before = parse_before(forger.ask(to_bytes(message)));
  if (!before) throw std::runtime_error("no answer");
  return before->refusal;
}

TEST(Forged, atomics_are_checked_by_the_target) {
  test::TargetProcess target(SHARED_MEMORY);
  const std::uint16_t port = target.port();
  Forger forger(SHARED_MEMORY, port, "host"), reader(SHARED_MEMORY, port, "host-read");
  EXPECT_EQ(refusal_of(forger, {.offset = 8, .value = 1}), Refusal::none);
  EXPECT_EQ(refusal_of(reader, {.offset = 8}), Refusal::not_allowed);
  EXPECT_EQ(refusal_of(forger, {.offset = 4}), Refusal::not_allowed);
  EXPECT_EQ(refusal_of(forger, {.offset = TARGET_REGION_BYTES}), Refusal::not_allowed);
  EXPECT_EQ(refusal_of(forger, {.offset = ~std::uint64_t{7}}), Refusal::not_allowed);
  EXPECT_EQ(refusal_of(forger, {.operation = static_cast<FetchOperation>(2), .offset = 8}), Refusal::not_allowed);
  const auto last = parse_before(forger.ask(to_bytes(FetchMessage{.offset = 8, .value = 1})));
  ASSERT_TRUE(last);
  EXPECT_EQ(last->before, 1u);  // the first one alone was done
}

TEST(Forged, rubbish_is_counted_and_ends_its_connection_alone) {
  test::TargetProcess target(SHARED_MEMORY);
  Worker worker(test::worker_config(SHARED_MEMORY));
  Connection connection(worker, {.address = test::target_address(), .port = target.port(), .region = "host", .token = TARGET_TOKEN});
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{24}, std::size_t{25}, std::size_t{100'000}}) {
    Forger forger(SHARED_MEMORY, target.port(), "host");
    EXPECT_TRUE(forger.ask(std::vector<std::byte>(bytes, std::byte{0xff})).empty()) << bytes;
  }
  for (int turn = 0; turn < 500 && target.ask("connections") != "1"; ++turn) worker.wait(10);
  EXPECT_EQ(target.ask("connections"), "1");
  EXPECT_EQ(connection.atomic_add(0, 1).status, Status::ok);
  EXPECT_EQ(connection.flush(), Status::ok);
}

}  // namespace
}  // namespace nanet::rdma
