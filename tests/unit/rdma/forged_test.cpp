// SPDX-License-Identifier: Apache-2.0
// Messages that this library's connections never send: the target refuses them by itself, and goes on.
#include <gtest/gtest.h>

#include "forger.hpp"
#include "nanet/rdma/connection.hpp"
#include "target_process.hpp"

namespace nanet::rdma {
namespace {

using test::Forger;
using test::TARGET_REGION_BYTES;
using test::TARGET_TOKEN;

FetchMessage fetch_message(std::string_view region, std::uint64_t offset) {
  FetchMessage message{.operation = FetchOperation::add, .offset = offset, .value = 1};
  message.region.name_bytes = static_cast<std::uint16_t>(region.size());
  message.region.id = 7;
  message.region.token = TARGET_TOKEN;
  std::copy(region.begin(), region.end(), message.region.name);
  return message;
}

Refusal refusal_of(Forger& forger, const FetchMessage& message) {
  const auto before = parse_before(forger.ask(to_bytes(message), message.region.id));
  if (!before) throw std::runtime_error("no answer");
  return before->refusal;
}

TEST(Forged, atomics_are_checked_by_the_target) {
  test::TargetProcess target("tcp");
  Forger forger("tcp", target.port());
  EXPECT_EQ(refusal_of(forger, fetch_message("host", 8)), Refusal::none);
  EXPECT_EQ(refusal_of(forger, fetch_message("host-read", 8)), Refusal::not_allowed);
  EXPECT_EQ(refusal_of(forger, fetch_message("host-write", 8)), Refusal::not_allowed);
  EXPECT_EQ(refusal_of(forger, fetch_message("host", 4)), Refusal::not_allowed);
  EXPECT_EQ(refusal_of(forger, fetch_message("host", TARGET_REGION_BYTES)), Refusal::not_allowed);
  EXPECT_EQ(refusal_of(forger, fetch_message("host", ~std::uint64_t{7})), Refusal::not_allowed);
  EXPECT_EQ(refusal_of(forger, fetch_message("hose", 8)), Refusal::not_exposed);
  FetchMessage message = fetch_message("host", 8);
  message.region.token ^= 1;
  EXPECT_EQ(refusal_of(forger, message), Refusal::not_exposed);
  message = fetch_message("host", 8);
  message.operation = static_cast<FetchOperation>(2);
  EXPECT_EQ(refusal_of(forger, message), Refusal::not_allowed);
  const auto last = parse_before(forger.ask(to_bytes(fetch_message("host", 8)), 7));
  ASSERT_TRUE(last);
  EXPECT_EQ(last->before, 1u);  // the first one alone was done
}

TEST(Forged, rubbish_is_counted_and_not_answered) {
  test::TargetProcess target("tcp");
  Forger forger("tcp", target.port());
  std::vector<std::vector<std::byte>> rubbish = {std::vector<std::byte>(1), std::vector<std::byte>(88), std::vector<std::byte>(112),
                                                 std::vector<std::byte>(4 << 20, std::byte{0xff})};
  for (std::size_t index = 0; index < rubbish.size(); ++index) forger.send(rubbish[index]);
  EXPECT_EQ(refusal_of(forger, fetch_message("host", 8)), Refusal::none);
  EXPECT_EQ(target.ask("refused"), std::to_string(rubbish.size()));
  Worker worker({.transports = "tcp"});
  Connection connection(worker, {.address = "127.0.0.1", .port = target.port(), .region = "host", .token = TARGET_TOKEN});
  EXPECT_EQ(connection.flush(), Status::ok);
}

}  // namespace
}  // namespace nanet::rdma
