// SPDX-License-Identifier: Apache-2.0
// What follows from an address: transports and network devices, and what is refused.
#include <gtest/gtest.h>

#include "nanet/setup_error.hpp"
#include "rdma/reach.hpp"

namespace nanet::rdma::detail {
namespace {

std::string refusal(const WorkerConfig& config, bool is_one_machine = true, const std::string& devices = "") {
  try {
    reach_of(config, is_one_machine, is_one_machine ? "lo" : "eth0", devices);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

void expect_in(const std::string& part, const std::string& text) { EXPECT_NE(text.find(part), std::string::npos) << text; }

TEST(Reach, on_one_machine_is_shared_memory_and_no_network_device) {
  for (const bool trust_network : {false, true}) {  // TCP has to be named
    const Reach reach = reach_of({.trust_network = trust_network}, true, "lo", "");
    EXPECT_EQ(reach.transports.find("posix"), 0u);
    EXPECT_EQ(reach.transports.find("tcp"), std::string::npos);
    EXPECT_EQ(reach.transports.find("cma"), std::string::npos);
    EXPECT_EQ(reach.net_devices, "");
  }
  EXPECT_EQ(reach_of({.transports = "shm"}, true, "lo", "").transports, "posix");
  EXPECT_EQ(reach_of({.transports = "posix,cuda"}, true, "lo", "").transports, "posix,cuda");
}

TEST(Reach, of_trusted_tcp_is_the_interface_of_the_address) {
  Reach reach = reach_of({.transports = "tcp", .trust_network = true}, true, "lo", "");
  EXPECT_EQ(reach.net_devices, "lo");
  expect_in("whoever reaches interface lo has full control", reach.text);
  reach = reach_of({.address = "10.0.0.1", .trust_network = true}, false, "eth0", "");
  EXPECT_EQ(reach.net_devices, "eth0");
  expect_in("tcp", reach.transports);
}

TEST(Reach, of_rdma_hardware_is_its_device_alone) {
  const Reach reach = reach_of({.address = "10.0.0.1", .trust_network = true}, false, "eth0", "mlx5_0:1");
  EXPECT_EQ(reach.transports, "rc,dc");
  EXPECT_EQ(reach.net_devices, "mlx5_0:1");
  EXPECT_EQ(reach_of({.transports = "rc_verbs"}, false, "eth0", "rxe0:1").net_devices, "rxe0:1");
  EXPECT_EQ(reach_of({.transports = "rc_verbs"}, false, "eth0", "rxe0:1").transports, "rc_verbs,ud_verbs:aux");
  EXPECT_EQ(reach_of({.transports = "rc_verbs,tcp", .trust_network = true}, false, "eth0", "rxe0:1").net_devices, "rxe0:1,eth0");
}

TEST(Reach, what_is_not_allowed_is_refused_in_one_line) {
  expect_in("UCX's TCP is not used at 127.0.0.1 (it checks no keys", refusal({.transports = "tcp"}));
  expect_in("UCX's TCP is not used", refusal({.transports = "posix,tcp"}));
  expect_in("no RDMA hardware is at 10.0.0.1 (what is left is UCX's TCP", refusal({.address = "10.0.0.1"}, false));
  expect_in("--trust-network", refusal({.address = "10.0.0.1"}, false));
  expect_in("no RDMA hardware is at 10.0.0.1 (no device", refusal({.transports = "rc", .address = "10.0.0.1"}, false));
  expect_in("transport 'rc' is not used at 127.0.0.1 (RDMA hardware has no such address)", refusal({.transports = "rc"}));
  for (const char* name : {"cma", "sysv", "all", "pigeon", "", "posix,", "^tcp", "xpmem"})
    if (*name) expect_in("is not used", refusal({.transports = name}));
}

TEST(Reach, of_an_address_is_found_out) {
  for (const char* here : {"127.0.0.1", "127.9.9.9", "::1", "localhost", "/tmp/any"}) {
    const Reach reach = reach_of({.address = here});
    EXPECT_TRUE(reach.is_one_machine) << here;
    EXPECT_EQ(reach.net_devices, "") << here;
  }
  for (const char* none : {"0.0.0.0", "::"}) EXPECT_THROW(reach_of({.address = none}), SetupError) << none;
  EXPECT_THROW(reach_of({.transports = "tcp", .address = "/tmp/any", .trust_network = true}), SetupError);
}

}  // namespace
}  // namespace nanet::rdma::detail
