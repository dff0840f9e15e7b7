// SPDX-License-Identifier: Apache-2.0
// A target that is stopped shows who does the work; one that is killed must be noticed. And what set-up refuses.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "nanet/rdma/connection.hpp"
#include "nanet/setup_error.hpp"
#include "target_process.hpp"

namespace nanet::rdma {
namespace {

using test::fill_pattern;
using test::first_difference;
using test::TARGET_REGION_BYTES;
using test::TARGET_TOKEN;
using test::TargetProcess;

constexpr const char* SHARED_MEMORY = "posix";

ConnectionConfig to(const TargetProcess& target, const std::string& region, std::uint32_t timeout_ms = 10000) {
  return {.address = "127.0.0.1", .port = target.port(), .region = region, .token = TARGET_TOKEN, .timeout_ms = timeout_ms};
}

// The text of the error that setting up a connection ends with; empty if there is none.
std::string refusal(const Worker& worker, const ConnectionConfig& config) {
  try {
    const Connection connection(worker, config);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(OneSided, over_shared_memory_a_stopped_target_is_written_read_and_added_to) {
  TargetProcess target(SHARED_MEMORY);
  Worker worker(test::worker_config(SHARED_MEMORY));
  ConnectionConfig config = to(target, "shared");
  config.require = Require::one_sided;
  Connection connection(worker, config);
  EXPECT_EQ(connection.path().sided, Path::Sided::one_sided);
  target.stop();
  std::uint64_t seed = 0;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4095}, std::size_t{64} << 10, std::size_t{5} << 20}) {
    std::vector<std::byte> data(bytes), back(bytes);
    fill_pattern(data, ++seed);
    ASSERT_EQ(connection.put(0, data), Status::ok) << connection.error();
    ASSERT_EQ(connection.flush(), Status::ok) << connection.error();
    ASSERT_EQ(connection.get(0, back), Status::ok) << connection.error();
    EXPECT_TRUE(back == data);
  }
  EXPECT_EQ(connection.atomic_swap(TARGET_REGION_BYTES - 8, 5).status, Status::ok) << connection.error();
  EXPECT_EQ(connection.atomic_add(TARGET_REGION_BYTES - 8, 2).before, 5u);
  target.resume();
  EXPECT_EQ(target.ask("check shared 0 5242880 " + std::to_string(seed)), "same");
}

TEST(OneSided, over_tcp_a_stopped_target_does_nothing_and_the_time_limit_ends_it) {
  TargetProcess target("tcp");
  Worker worker(test::worker_config("tcp"));
  Connection connection(worker, to(target, "shared", 2000));
  EXPECT_EQ(connection.path().sided, Path::Sided::emulated);
  ASSERT_EQ(target.ask("fill shared 0 4096 1"), "done");
  target.stop();
  std::vector<std::byte> data(4096);
  fill_pattern(data, 2);
  Status status = connection.put(0, data);                // may be out of our hands
  if (status == Status::ok) status = connection.flush();  // but is not there
  EXPECT_EQ(name(status), name(Status::time_out));
  EXPECT_EQ(connection.flush(), Status::closed);
  EXPECT_EQ(connection.put(0, data), Status::closed);
}

TEST(OneSided, a_get_that_times_out_leaves_the_memory_to_its_owner) {
  TargetProcess target("tcp");
  Worker worker(test::worker_config("tcp"));
  Connection connection(worker, to(target, "shared", 2000));
  ASSERT_EQ(target.ask("fill shared 0 5242880 1"), "done");
  target.stop();
  std::vector<std::byte> data(5 << 20, std::byte{0x11});
  EXPECT_EQ(connection.get(0, data), Status::time_out);
  const std::vector<std::byte> then = data;
  target.resume();
  EXPECT_NE(target.ask("connections"), "");  // it is awake again
  for (int turn = 0; turn < 20; ++turn) worker.wait(10);
  EXPECT_TRUE(data == then);  // nothing comes late
}

TEST(OneSided, where_it_is_required_any_other_way_is_refused) {
  TargetProcess target("tcp");
  Worker worker(test::worker_config("tcp"));
  ConnectionConfig config = to(target, "shared");
  config.require = Require::one_sided;
  const std::string text = refusal(worker, config);
  EXPECT_NE(text.find("is not one-sided (tcp/"), std::string::npos) << text;
  EXPECT_NE(text.find("emulated by the target's CPU"), std::string::npos) << text;
}

TEST(PathTaken, names_the_transports_and_devices) {
  for (const std::string transports : {"tcp", "posix"}) {
    TargetProcess target(transports);
    Worker worker(test::worker_config(transports));
    const Path path = Connection(worker, to(target, "shared")).path();
    ASSERT_FALSE(path.lanes.empty());
    for (const Lane& lane : path.lanes) {
      EXPECT_NE(("," + transports + ",").find("," + lane.transport + ","), std::string::npos) << path.text();
      EXPECT_FALSE(lane.device.empty());
    }
    EXPECT_NE(path.text().find(transports.substr(0, transports.find(',')) + "/"), std::string::npos) << path.text();
  }
}

class Death : public testing::TestWithParam<const char*> {};

TEST_P(Death, in_the_middle_of_transfers_is_an_error_within_the_time_limit) {
  constexpr std::uint32_t TIMEOUT_MS = 20000;
  TargetProcess target(GetParam());
  Worker worker(test::worker_config(GetParam(), 200));
  Connection connection(worker, to(target, "shared", TIMEOUT_MS));
  std::vector<std::byte> data(TARGET_REGION_BYTES);
  ASSERT_EQ(connection.put(0, data), Status::ok);
  ASSERT_EQ(connection.flush(), Status::ok);
  target.stop();  // over TCP nothing gets done any more, so the kill comes in the middle
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    target.kill();
  });
  // Shared memory outlives the process: there each put succeeds until UCX notices.
  Status status = Status::ok;
  const auto begin = std::chrono::steady_clock::now();
  while (status == Status::ok && std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(TIMEOUT_MS)) {
    status = connection.put(0, data);
    if (status == Status::ok) status = connection.flush();
  }
  killer.join();
  EXPECT_EQ(name(status), name(Status::peer_lost)) << connection.error();
  EXPECT_FALSE(connection.error().empty());
  EXPECT_EQ(connection.put(0, data), Status::closed);
  EXPECT_EQ(connection.get(0, data), Status::closed);
}

INSTANTIATE_TEST_SUITE_P(Ways, Death, testing::Values(SHARED_MEMORY, "tcp"),
                         [](const auto& way) { return std::string(way.param == SHARED_MEMORY ? "shm" : "tcp"); });

TEST(Refused, wrong_token_and_unknown_and_revoked_names) {
  TargetProcess target("tcp");
  Worker worker(test::worker_config("tcp"));
  ConnectionConfig config = to(target, "shared");
  EXPECT_EQ(refusal(worker, config), "");
  ++config.token;
  EXPECT_NE(refusal(worker, config).find("is refused (no such name, or another token)"), std::string::npos);
  config = to(target, "sharer");
  EXPECT_NE(refusal(worker, config).find("region 'sharer'"), std::string::npos);
  EXPECT_EQ(target.ask("refused"), "2");
  EXPECT_EQ(target.ask("revoke host"), "revoked");
  EXPECT_EQ(target.ask("revoke host"), "unknown");
  EXPECT_NE(refusal(worker, to(target, "host")), "");
  EXPECT_EQ(refusal(worker, to(target, "host-read")), "");
}

TEST(Refused, an_atomic_on_a_region_that_was_revoked_meanwhile_is_refused_by_the_target) {
  TargetProcess target("tcp");
  Worker worker(test::worker_config("tcp"));
  Connection connection(worker, to(target, "host"));
  EXPECT_EQ(connection.atomic_add(0, 1).status, Status::ok);
  ASSERT_EQ(target.ask("revoke host"), "revoked");
  EXPECT_EQ(connection.atomic_add(0, 1).status, Status::not_permitted);
  EXPECT_EQ(target.ask("revoke host-read"), "revoked");
}

TEST(Refused, more_connections_than_the_target_takes) {
  TargetProcess target("tcp");  // takes 3
  Worker worker(test::worker_config("tcp"));
  std::vector<Connection> connections;
  for (int index = 0; index < 3; ++index) connections.emplace_back(worker, to(target, "shared"));
  EXPECT_NE(refusal(worker, to(target, "shared", 2000)), "");
  std::vector<std::byte> data(8);
  for (Connection& connection : connections) EXPECT_EQ(connection.put(0, data), Status::ok);
  for (Connection& connection : connections) EXPECT_EQ(connection.close(), Status::ok);
  for (int turn = 0; turn < 500 && target.ask("connections") != "0"; ++turn) worker.wait(10);
  EXPECT_EQ(refusal(worker, to(target, "shared")), "");
}

TEST(Refused, set_up_says_problem_why_and_suggestion) {
  const auto text = [](const auto& make) -> std::string {
    try {
      make();
    } catch (const SetupError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(text([] { Worker(test::worker_config("carrier-pigeon")); }).find("transport 'carrier-pigeon' is not used ("),
            std::string::npos);
  Worker worker(test::worker_config("tcp"));
  EXPECT_EQ(text([&] { Region(worker, {.name = "r", .bytes = 0}); }), "region r has 0 bytes (nothing to expose) give 1 or more");
  const auto connect = [&](const std::string& address, std::uint16_t port) {
    return refusal(worker, {.address = address, .port = port, .region = "r", .timeout_ms = 2000});
  };
  EXPECT_NE(connect("127.0.0.1", 1).find("cannot connect to 127.0.0.1 port 1 (Connection refused)"), std::string::npos);
  EXPECT_NE(connect("no.such.host.invalid", 1).find("no address for 'no.such.host.invalid'"), std::string::npos);
  EXPECT_NE(text([&] { Target(worker, {.address = "192.0.2.1"}); }).find("its worker has the transports of another address"),
            std::string::npos);
  EXPECT_NE(connect("192.0.2.1", 1).find("the worker has the transports of another address"), std::string::npos);
  Region region(worker, {.name = "r", .bytes = 4096});
  Target target(worker, {.address = "127.0.0.1"});
  EXPECT_NE(text([&] { Target(worker, {.address = "127.0.0.1"}); }).find("a second target on one worker"), std::string::npos);
  Worker other(test::worker_config("posix"));
  EXPECT_NE(text([&] { Target(other, {.address = "127.0.0.1", .port = target.port()}); }).find("(Address already in use)"),
            std::string::npos);
  EXPECT_NE(text([&] { target.expose(region, {.name = "r"}); }).find("may neither be read nor written"), std::string::npos);
  EXPECT_NE(text([&] { target.expose(region, {.name = "", .permissions = {.read = true}}); }).find("names have 1 to 64"),
            std::string::npos);
  target.expose(region, {.name = "r", .permissions = {.read = true}});
  EXPECT_NE(text([&] { target.expose(region, {.name = "r", .permissions = {.read = true}}); }).find("is exposed already"),
            std::string::npos);
}

}  // namespace
}  // namespace nanet::rdma
