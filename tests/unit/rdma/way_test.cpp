// SPDX-License-Identifier: Apache-2.0
// What a connection says of its path, what it refuses, and memory that is given by its address.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "nanet/rdma/connection.hpp"
#include "nanet/setup_error.hpp"
#include "rdma/connection_state.hpp"
#include "target_process.hpp"

namespace nanet::rdma {
namespace {

using test::fill_pattern;
using test::first_difference;
using test::TargetProcess;

constexpr const char* SHARED_MEMORY = "posix";

Way said(const std::string& text, std::uint64_t bytes = 1 << 20) {
  return {.operation = Way::Operation::get, .bytes = bytes, .text = text};
}

TEST(Way, is_judged_by_what_ucx_says) {
  const Way rc = said("zero-copy rc_mlx5/mlx5_0:1"), peer = said("zero-copy cuda_ipc/cuda"), tcp = said("zero-copy tcp/lo"),
            cma = said("zero-copy cma/memory"), small = said("short rc_verbs/rxe0:1"),
            emulated = said("software emulation rc_verbs/rxe0:1"),
            both = said("zero-copy 50% on rc_mlx5/mlx5_0:1 and 50% on tcp/eth0"), here = said("copied by this CPU");
  EXPECT_TRUE(rc.is_zero_copy() && rc.is_one_sided() && !rc.is_emulated());
  EXPECT_TRUE(peer.is_zero_copy() && peer.is_one_sided() && !peer.is_emulated());
  EXPECT_TRUE(!tcp.is_zero_copy() && !tcp.is_one_sided() && tcp.is_emulated());
  EXPECT_TRUE(!cma.is_zero_copy() && !cma.is_one_sided() && !cma.is_emulated());
  EXPECT_TRUE(!small.is_zero_copy() && small.is_one_sided() && !small.is_emulated());
  EXPECT_TRUE(!emulated.is_zero_copy() && !emulated.is_one_sided() && emulated.is_emulated());
  EXPECT_TRUE(!both.is_zero_copy() && !both.is_one_sided() && both.is_emulated());
  EXPECT_TRUE(!here.is_zero_copy() && here.is_one_sided() && !here.is_emulated());
}

TEST(Way, each_requirement_takes_its_ways_and_no_others) {
  Path path{.lanes = {{"rc_mlx5", "mlx5_0:1"}}, .sided = Path::Sided::one_sided};
  const auto given = [&](Require require) { return *not_given(path, require) == 0; };
  path.probe = said("zero-copy rc_mlx5/mlx5_0:1");
  EXPECT_TRUE(given(Require::one_sided) && given(Require::rdma) && given(Require::zero_copy));
  EXPECT_FALSE(given(Require::gpudirect));  // the region is no GPU's
  path.is_device = true;
  EXPECT_TRUE(given(Require::gpudirect));
  EXPECT_EQ(path.gpudirect(), "GPUDirect RDMA");
  path.probe = said("zero-copy cuda_ipc/cuda");
  EXPECT_TRUE(given(Require::gpudirect) && given(Require::zero_copy));
  EXPECT_FALSE(given(Require::rdma));
  EXPECT_EQ(path.gpudirect(), "peer to peer (cuda_ipc)");
  path.probe = said("rendezvous fragmented copy-in copy-out rc_mlx5/mlx5_0:1");
  EXPECT_FALSE(given(Require::gpudirect) || given(Require::zero_copy));
  EXPECT_EQ(path.gpudirect(), "none");
  path.probe.reset();  // a region that cannot be read: its lanes have to do
  EXPECT_FALSE(given(Require::gpudirect) || given(Require::zero_copy));
  EXPECT_TRUE(given(Require::one_sided) && given(Require::rdma));
  path.is_mapped = true;
  EXPECT_FALSE(given(Require::rdma));
  EXPECT_TRUE(given(Require::anything));
}

TEST(Path, of_a_gpus_memory_says_what_its_lanes_tell) {
  const auto sided = [](Path path) { return sided_by(path, false); };
  Path path{.lanes = {{"posix", "memory"}, {"tcp", "lo"}}, .is_mapped = true};
  EXPECT_EQ(sided(path), Path::Sided::one_sided);
  path.is_mapped = false;
  EXPECT_EQ(sided(path), Path::Sided::not_known);
  path.is_device = true;  // neither of these reaches a GPU's memory
  EXPECT_EQ(sided(path), Path::Sided::emulated);
  EXPECT_EQ(path.gpudirect(), "none");
  path.lanes.push_back({"cuda_ipc", "cuda"});
  EXPECT_EQ(sided(path), Path::Sided::not_known);
  EXPECT_EQ(path.gpudirect(), "not known");
  path.lanes = {{"rc_mlx5", "mlx5_0:1"}};
  EXPECT_EQ(sided_by(path, true), Path::Sided::not_known);
  path.is_device = false;
  EXPECT_EQ(sided_by(path, true), Path::Sided::one_sided);
  path.lanes.clear();
  EXPECT_EQ(sided(path), Path::Sided::not_known);
}

ConnectionConfig to(const TargetProcess& target, const std::string& region, Require require = Require::anything) {
  return {.address = "127.0.0.1", .port = target.port(), .region = region, .token = test::TARGET_TOKEN, .require = require};
}

// Most puts to a GPU's memory are like this one, which UCX ends while it is being asked for its path.
TEST(Ways, of_a_transfer_that_is_over_at_once_are_told_too) {
  setenv("UCX_TCP_PUT_ENABLE", "n", 1);
  Worker worker(test::worker_config("tcp"));
  unsetenv("UCX_TCP_PUT_ENABLE");
  TargetProcess target("tcp");
  Connection connection(worker, to(target, "host"));
  std::vector<std::byte> data(5000);
  fill_pattern(data, 3);
  ASSERT_EQ(connection.put(100, data), Status::ok);
  ASSERT_EQ(connection.start_put(100, std::span(data).first(64), 7), Status::ok);  // another class
  EXPECT_EQ(connection.take_completed()->tag, 7u);
  EXPECT_EQ(connection.in_flight(), 0u);
  ASSERT_EQ(connection.flush(), Status::ok);
  std::vector<std::byte> back(data.size());
  ASSERT_EQ(connection.get(100, back), Status::ok);
  EXPECT_EQ(back, data);
  for (const Way& way : connection.ways()) EXPECT_TRUE(way.text.starts_with("software emulation tcp/")) << way.text;
  EXPECT_EQ(connection.ways().size(), 3u);
  EXPECT_EQ(connection.close(), Status::ok);
}

TEST(Ways, over_tcp_both_operations_are_told_as_emulated_by_size_class) {
  TargetProcess target("tcp");
  Worker worker(test::worker_config("tcp"));
  Connection connection(worker, to(target, "host"));
  EXPECT_TRUE(connection.ways().empty());
  std::vector<std::byte> data(1 << 20);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{9}, data.size()}) {
    ASSERT_EQ(connection.put(0, std::span(data).first(bytes)), Status::ok) << connection.error();
    ASSERT_EQ(connection.get(0, std::span(data).first(bytes)), Status::ok) << connection.error();
  }
  const std::vector<Way> ways = connection.ways();
  ASSERT_EQ(ways.size(), 4u);  // 8 and 9 bytes are of one class
  for (const Way& way : ways) {
    EXPECT_NE(way.text.find("tcp/"), std::string::npos) << way.text;
    EXPECT_EQ(way.text.find("MB/s"), std::string::npos) << way.text;
    EXPECT_EQ(way.text.find("length"), std::string::npos) << way.text;
    EXPECT_TRUE(way.is_emulated()) << way.text;
    EXPECT_FALSE(way.is_from_device);
  }
  EXPECT_EQ(ways[0].operation, Way::Operation::put);
  EXPECT_EQ(ways[3].operation, Way::Operation::get);
  EXPECT_EQ(ways[0].bytes, 8u);
  EXPECT_EQ(ways[3].bytes, data.size());
}

TEST(Ways, a_mapped_region_is_copied_by_this_cpu_and_no_zero_copy) {
  TargetProcess target(SHARED_MEMORY);
  Worker worker(test::worker_config(SHARED_MEMORY));
  Connection connection(worker, to(target, "shared", Require::one_sided));
  std::vector<std::byte> data(100);
  ASSERT_EQ(connection.put(0, data), Status::ok);
  ASSERT_EQ(connection.ways().size(), 1u);
  EXPECT_EQ(connection.ways()[0].text, "copied by this CPU");
  EXPECT_TRUE(connection.ways()[0].is_one_sided());
}

TEST(Ways, what_is_required_and_not_given_is_refused_with_the_way) {
  const auto refusal = [](const char* transports, const char* region, Require require) -> std::string {
    TargetProcess target(transports);
    Worker worker(test::worker_config(transports));
    try {
      const Connection connection(worker, to(target, region, require));
    } catch (const SetupError& error) {
      return error.what();
    }
    return "";
  };
  std::string text = refusal("tcp", "host", Require::rdma);
  EXPECT_NE(text.find("is not RDMA (tcp/"), std::string::npos) << text;
  EXPECT_NE(text.find("a get of 1048576 bytes: software emulation tcp/"), std::string::npos) << text;
  EXPECT_NE(refusal("tcp", "shared", Require::zero_copy).find("is not without a copy (tcp/"), std::string::npos);
  EXPECT_NE(refusal("tcp", "host", Require::gpudirect).find("is not GPUDirect (tcp/"), std::string::npos);
  EXPECT_NE(refusal(SHARED_MEMORY, "shared", Require::rdma).find("is not RDMA ("), std::string::npos);
  EXPECT_NE(refusal(SHARED_MEMORY, "shared", Require::zero_copy).find("is not without a copy ("), std::string::npos);
  EXPECT_NE(refusal(SHARED_MEMORY, "host", Require::one_sided).find("is not one-sided ("), std::string::npos);
}

class Given : public testing::TestWithParam<const char*> {};

// Regions of this side as source and destination, one of them memory that is given; exposed too.
TEST_P(Given, memory_is_written_and_read_like_any_other) {
  std::vector<std::byte> memory(3 << 20), other(1 << 20);
  Worker worker(test::worker_config(GetParam()));
  Region given(worker, {.name = "given", .kind = RegionKind::cuda_pinned},
               memory);  // host memory is all that UCX can see of pinned memory
  Region local(worker, {.name = "local", .bytes = 1 << 20});
  EXPECT_EQ(given.kind(), RegionKind::cuda_pinned);
  EXPECT_EQ(given.data(), memory.data());
  Target target(worker);
  target.expose(given, {.name = "given", .permissions = {.read = true, .write = true}});
  Connection connection(worker, {.address = "127.0.0.1", .port = target.port(), .region = "given"});
  fill_pattern(local.span(), 3);
  EXPECT_EQ(connection.put(5, Connection::Part{local, 0, local.bytes()}), Status::ok) << connection.error();
  EXPECT_EQ(connection.flush(), Status::ok);
  EXPECT_EQ(first_difference(std::span(memory).subspan(5, local.bytes()), 3), local.bytes());
  std::ranges::fill(local.span(), std::byte{0});
  EXPECT_EQ(connection.start_get(5, Connection::Part{local, 16, 1000}, 7), Status::ok);
  while (connection.in_flight() != 0) {
    ASSERT_EQ(connection.progress(), Status::ok);
    while (const auto completed = connection.take_completed()) EXPECT_EQ(completed->status, Status::ok);
  }
  EXPECT_EQ(first_difference(local.span().subspan(16, 1000), 3), 1000u);
  EXPECT_EQ(local.span()[1016], std::byte{0});
  EXPECT_EQ(connection.put(0, Connection::Part{local, 1, local.bytes()}), Status::out_of_bounds);
  EXPECT_EQ(connection.start_put(0, Connection::Part{local, ~std::uint64_t{0}, 2}, 1), Status::out_of_bounds);
  EXPECT_EQ(connection.get(memory.size(), Connection::Part{local, 0, 1}), Status::out_of_bounds);
  EXPECT_EQ(connection.close(), Status::ok);
}

INSTANTIATE_TEST_SUITE_P(Ways, Given, testing::Values(SHARED_MEMORY, "tcp"),
                         [](const auto& way) { return std::string(way.index == 0 ? "shm" : "tcp"); });

TEST(GivenMemory, what_it_is_not_is_refused) {
  alignas(64) static std::array<std::byte, 4096> memory;
  Worker worker(test::worker_config("tcp"));
  const auto refusal = [&](const RegionConfig& config, std::span<std::byte> given) -> std::string {
    try {
      given.empty() ? Region(worker, config) : Region(worker, config, given);
    } catch (const SetupError& error) {
      return error.what();
    }
    return "";
  };
  const auto expect_in = [](const std::string& part, const std::string& text) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  EXPECT_EQ(refusal({.kind = RegionKind::host}, memory), "");
  expect_in("4096 bytes (100 are said)", refusal({.bytes = 100, .kind = RegionKind::host}, memory));
  expect_in("host_shared cannot be given (UCX has to allocate it)", refusal({}, memory));
  expect_in("cuda_managed (it moves between host and GPU", refusal({.kind = RegionKind::cuda_managed}, memory));
  expect_in("cuda_managed (it moves", refusal({.bytes = 8, .kind = RegionKind::cuda_managed}, {}));
  expect_in("cuda_device cannot be allocated here", refusal({.bytes = 8, .kind = RegionKind::cuda_device}, {}));
  // With transports of the network alone UCX has no CUDA, on any machine.
  expect_in("cuda_device cannot be used (UCX ", refusal({.kind = RegionKind::cuda_device}, memory));
}

}  // namespace
}  // namespace nanet::rdma
