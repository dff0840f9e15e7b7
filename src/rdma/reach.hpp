// SPDX-License-Identifier: Apache-2.0
// Which of UCX's transports and network devices a worker is given. They follow from the address that its target listens on or its connections
// go to, so that UCX opens no port that was not asked for.
#pragma once

#include <string>

#include "nanet/rdma/worker.hpp"

namespace nanet::rdma::detail {

struct Reach {
  std::string transports;   // as UCX_TLS, never empty
  std::string net_devices;  // as UCX_NET_DEVICES; empty: none of the transports has any
  bool is_one_machine = true;
  std::string text;  // who can do what through it, one sentence

  bool has_tcp() const { return transports.find("tcp") != std::string::npos; }
  bool has_shared_memory() const { return transports.find("posix") != std::string::npos; }
};

// Throws SetupError for what the address and the options do not allow.
Reach reach_of(const WorkerConfig& config);

// The same for known interfaces: `interface` owns the address, `rdma_devices` are those of it ("mlx5_0:1"), as UCX calls them.
Reach reach_of(const WorkerConfig& config, bool is_one_machine, const std::string& interface, const std::string& rdma_devices);

bool is_rdma(std::string_view transport);  // as UCX calls them: rc_verbs, dc_mlx5, ...

}  // namespace nanet::rdma::detail
