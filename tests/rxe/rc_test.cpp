// SPDX-License-Identifier: Apache-2.0
// What only a NIC can show: that no CPU of the target takes part, that the NIC itself refuses what was not granted, and that a broken link ends
// in an error. Over RC verbs and nothing else, on the soft-RoCE device rxe0 of the network device eth0 (tests/rxe/init.sh makes both).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "forger.hpp"
#include "nanet/rdma/connection.hpp"
#include "nanet/setup_error.hpp"
#include "target_process.hpp"

namespace nanet::rdma {
namespace {

using test::fill_pattern;
using test::first_difference;
using test::Forger;
using test::TARGET_TOKEN;
using test::TargetProcess;

constexpr const char* RC = "rc_verbs";
constexpr std::size_t MIB = std::size_t{1} << 20;
constexpr std::size_t REGION_BYTES = 64 * MIB;

ConnectionConfig to(const TargetProcess& target, const std::string& region, std::uint32_t timeout_ms = 30000) {
  return {.address = test::target_address(),
          .port = target.port(),
          .region = region,
          .token = TARGET_TOKEN,
          .timeout_ms = timeout_ms,
          .require = Require::one_sided};
}

std::string check(const std::string& region, std::uint64_t offset, std::size_t bytes, std::uint64_t seed) {
  return "check " + region + " " + std::to_string(offset) + " " + std::to_string(bytes) + " " + std::to_string(seed);
}

std::string fill(const std::string& region, std::size_t bytes, std::uint64_t seed) {
  return "fill " + region + " 0 " + std::to_string(bytes) + " " + std::to_string(seed);
}

std::string refusal(const Worker& worker, const ConnectionConfig& config) {
  try {
    const Connection connection(worker, config);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

class Rc : public testing::TestWithParam<const char*> {
 protected:
  std::string region = GetParam();
};

TEST_P(Rc, is_the_only_lane_of_transfers_and_is_said_to_be_one_sided) {
  TargetProcess target(RC);
  Worker worker(test::worker_config(RC));
  const Connection connection(worker, to(target, region));
  // UD connects the queue pairs, and watches the peer.
  EXPECT_EQ(connection.path().text(), "rc_verbs/rxe0:1 ud_verbs/rxe0:1 (one-sided)");
}

TEST_P(Rc, large_puts_and_gets_come_whole) {
  TargetProcess target(RC, REGION_BYTES);
  Worker worker(test::worker_config(RC));
  Connection connection(worker, to(target, region));
  std::uint64_t seed = 20;
  for (const std::size_t bytes : {MIB, REGION_BYTES}) {
    const std::size_t offset = REGION_BYTES - bytes;
    std::vector<std::byte> data(bytes);
    fill_pattern(data, ++seed);
    EXPECT_EQ(connection.put(offset, data), Status::ok) << connection.error();
    EXPECT_EQ(connection.flush(), Status::ok) << connection.error();
    EXPECT_EQ(target.ask(check(region, offset, bytes, seed)), "same");
    ASSERT_EQ(target.ask(fill(region, bytes, ++seed)), "done");
    EXPECT_EQ(connection.get(0, data), Status::ok) << connection.error();
    EXPECT_EQ(first_difference(data, seed), bytes);
  }
}

TEST_P(Rc, a_stopped_target_is_written_and_read) {
  TargetProcess target(RC);
  Worker worker(test::worker_config(RC));
  Connection connection(worker, to(target, region));
  target.stop();
  std::uint64_t seed = 40;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4095}, std::size_t{64} << 10, 5 * MIB}) {
    std::vector<std::byte> data(bytes), back(bytes);
    fill_pattern(data, ++seed);
    ASSERT_EQ(connection.put(0, data), Status::ok) << connection.error();
    ASSERT_EQ(connection.flush(), Status::ok) << connection.error();
    ASSERT_EQ(connection.get(0, back), Status::ok) << connection.error();
    EXPECT_TRUE(back == data) << bytes;
  }
  target.resume();
  EXPECT_EQ(target.ask(check(region, 0, 5 * MIB, seed)), "same");
  EXPECT_EQ(connection.flush(), Status::ok) << connection.error();
}

TEST_P(Rc, an_atomic_needs_the_cpu_of_the_target) {
  TargetProcess target(RC);
  Worker worker(test::worker_config(RC));
  Connection connection(worker, to(target, region, 3000));
  EXPECT_EQ(connection.atomic_swap(8, 5).status, Status::ok) << connection.error();
  EXPECT_EQ(connection.atomic_add(8, 2).before, 5u);
  target.stop();
  EXPECT_EQ(name(connection.atomic_add(8, 1).status), name(Status::time_out));
}

TEST_P(Rc, a_target_that_dies_in_mid_transfer_is_an_error_within_the_time_limit) {
  TargetProcess target(RC, REGION_BYTES);
  Worker worker(test::worker_config(RC));
  Connection connection(worker, to(target, region));
  std::vector<std::byte> data(REGION_BYTES);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    target.kill();
  });
  Status status = Status::ok;
  for (int turn = 0; status == Status::ok && turn < 100; ++turn) {
    status = connection.put(0, data);
    if (status == Status::ok) status = connection.flush();
  }
  killer.join();
  EXPECT_EQ(name(status), name(Status::peer_lost)) << connection.error();
  EXPECT_EQ(connection.get(0, data), Status::closed);
}

TEST_P(Rc, wrong_tokens_unknown_names_and_what_is_out_of_bounds_are_refused) {
  TargetProcess target(RC);
  Worker worker(test::worker_config(RC));
  ConnectionConfig config = to(target, region);
  ++config.token;
  EXPECT_NE(refusal(worker, config).find("is refused (no such name, or another token)"), std::string::npos);
  EXPECT_NE(refusal(worker, to(target, region + "r")).find("is refused"), std::string::npos);
  EXPECT_EQ(target.ask("refused"), "2");
  Connection connection(worker, to(target, region));
  std::vector<std::byte> data(2);
  EXPECT_EQ(connection.put(connection.bytes() - 1, data), Status::out_of_bounds);
  EXPECT_EQ(connection.get(connection.bytes() - 1, data), Status::out_of_bounds);
}

INSTANTIATE_TEST_SUITE_P(Region, Rc, testing::Values("host", "shared"), [](const auto& kind) { return std::string(kind.param); });

TEST(RcBesideTcp, is_not_said_to_be_one_sided_and_a_get_waits_for_a_stopped_target) {
  constexpr const char* BOTH = "rc_verbs,tcp";
  TargetProcess target(BOTH);
  Worker worker(test::worker_config(BOTH));
  EXPECT_NE(refusal(worker, to(target, "host")).find("is not one-sided"), std::string::npos);
  ConnectionConfig config = to(target, "host", 3000);
  config.require = Require::anything;
  Connection connection(worker, config);
  EXPECT_EQ(connection.path().sided, Path::Sided::not_known);
  EXPECT_NE(connection.path().text().find("rc_verbs/rxe0:1"), std::string::npos) << connection.path().text();
  target.stop();
  std::vector<std::byte> data(4096);
  fill_pattern(data, 1);
  EXPECT_EQ(connection.put(0, data), Status::ok) << connection.error();
  EXPECT_EQ(connection.flush(), Status::ok) << connection.error();
  EXPECT_EQ(name(connection.get(0, data)), name(Status::time_out));
  target.resume();
  EXPECT_EQ(target.ask(check("host", 0, 4096, 1)), "same");
}

// A region's key, as the target gave it away, used without this library's checks.
class Thief {
 public:
  Thief(const TargetProcess& target, const std::string& region)
      : forger_(RC, target.port(), region), answer_(forger_.answer().message) {
    detail::check(ucp_ep_rkey_unpack(forger_.endpoint(), forger_.answer().key.data(), &key_), "no key", "");
  }
  ~Thief() { ucp_rkey_destroy(key_); }
  Thief(const Thief&) = delete;
  Thief& operator=(const Thief&) = delete;

  std::uint64_t bytes() const { return answer_.bytes; }

  ucs_status_t put(std::uint64_t offset, std::span<const std::byte> data) {
    const ucp_request_param_t param{};
    return finish(ucp_put_nbx(forger_.endpoint(), data.data(), data.size(), answer_.address + offset, key_, &param));
  }
  ucs_status_t get(std::uint64_t offset, std::span<std::byte> data) {
    const ucp_request_param_t param{};
    return finish(ucp_get_nbx(forger_.endpoint(), data.data(), data.size(), answer_.address + offset, key_, &param));
  }

 private:
  // Of the transfer, then of the flush after it.
  ucs_status_t finish(void* request) {
    const ucp_request_param_t param{};
    ucs_status_t status = wait(request);
    return status == UCS_OK ? wait(ucp_ep_flush_nbx(forger_.endpoint(), &param)) : status;
  }
  ucs_status_t wait(void* request) {
    if (!request || UCS_PTR_IS_ERR(request)) return UCS_PTR_STATUS(request);
    const auto is_done = [request] { return ucp_request_check_status(request) != UCS_INPROGRESS; };
    forger_.state().run_until(is_done, detail::deadline_ns(30000));
    const ucs_status_t status = ucp_request_check_status(request);
    ucp_request_free(request);
    return status;
  }

  Forger forger_;
  AnswerMessage answer_;
  ucp_rkey_h key_ = nullptr;
};

// UCX (1.18) registers memory with all rights, whatever it is told: this shows what the design page says of it, and fails once that is mended.
TEST(Nic, does_not_know_what_a_region_is_exposed_for) {
  TargetProcess target(RC);
  ASSERT_EQ(target.ask(fill("host", MIB, 1)), "done");
  std::vector<std::byte> data(MIB);
  EXPECT_EQ(Thief(target, "host-write").get(0, data), UCS_OK);
  EXPECT_EQ(first_difference(data, 1), MIB);
  fill_pattern(data, 2);
  EXPECT_EQ(Thief(target, "host-read").put(0, data), UCS_OK);
  EXPECT_EQ(target.ask(check("host", 0, MIB, 2)), "same");
}

TEST(Nic, refuses_a_put_across_the_end_of_a_region) {
  for (const char* region : {"host", "shared"}) {
    TargetProcess target(RC);
    const std::size_t all = test::TARGET_REGION_BYTES;
    ASSERT_EQ(target.ask(fill(region, all, 1)), "done");
    const std::vector<std::byte> data(64 << 10);
    Thief thief(target, region);
    EXPECT_LT(thief.put(all - 4096, data), UCS_OK);
    EXPECT_EQ(target.ask(check(region, 0, all - 4096, 1)), "same");
  }
}

TEST(Nic, refuses_what_comes_after_a_region_was_revoked) {
  TargetProcess target(RC);
  ASSERT_EQ(target.ask(fill("host", MIB, 1)), "done");
  Worker worker(test::worker_config(RC));
  Connection writer(worker, to(target, "host")), reader(worker, to(target, "host"));
  std::vector<std::byte> data(MIB);
  EXPECT_EQ(reader.get(0, data), Status::ok);
  EXPECT_EQ(first_difference(data, 1), MIB);
  for (const char* name : {"host", "host-read", "host-write"}) EXPECT_EQ(target.ask(std::string("revoke ") + name), "revoked");
  fill_pattern(data, 2);
  Status status = writer.put(0, data);
  if (status == Status::ok) status = writer.flush();
  EXPECT_EQ(name(status), name(Status::peer_lost)) << writer.error();
  EXPECT_EQ(target.ask(check("host", 0, MIB, 1)), "same");
  EXPECT_EQ(name(reader.get(0, data)), name(Status::peer_lost)) << reader.error();
  EXPECT_EQ(first_difference(data, 2), MIB);
}

// The last one: soft-RoCE carries nothing more on a link that was lost under load.
TEST(Link, that_is_lost_in_mid_transfer_is_an_error_and_nothing_is_said_to_be_done) {
  TargetProcess target(RC, REGION_BYTES);
  Worker worker(test::worker_config(RC));
  Connection connection(worker, to(target, "host"));
  std::vector<std::byte> data(REGION_BYTES);
  std::atomic<int> down = -1;
  std::thread breaker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    down = std::system("ip link set eth0 down");
  });
  std::uint64_t seed = 1;
  Status status = Status::ok;
  while (status == Status::ok && seed < 100) {
    fill_pattern(data, ++seed);
    status = connection.put(0, data);
    if (status == Status::ok) status = connection.flush();
  }
  breaker.join();
  EXPECT_EQ(down, 0);
  EXPECT_EQ(name(status), name(Status::peer_lost)) << connection.error();
  EXPECT_FALSE(connection.error().empty());
  EXPECT_EQ(connection.put(0, data), Status::closed);
  EXPECT_EQ(connection.get(0, data), Status::closed);
}

}  // namespace
}  // namespace nanet::rdma
