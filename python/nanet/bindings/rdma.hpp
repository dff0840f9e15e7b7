// SPDX-License-Identifier: Apache-2.0
// What nanet._rdma gives to Python: the two sides, each with a worker of its own.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nanet/rdma/connection.hpp"
#include "nanet/rdma/region.hpp"
#include "nanet/rdma/target.hpp"
#include "nanet/rdma/worker.hpp"

namespace nanet::bindings {

// A region as a configuration has it: `memory` and `bytes`, and `given` if somebody else allocated it, as memory of CUDA always is.
struct Memory {
  Memory(const rdma::Worker& worker, const nanobind::dict& config, const std::string& name, const char* given_key);  // throws SetupError
  bool is_device() const { return region.kind() == rdma::RegionKind::cuda_device; }
  nanobind::object given;  // with `address` and `bytes`; it goes after the region
  rdma::Region region;
};

struct Exposed {
  explicit Exposed(const nanobind::dict& config);  // throws SetupError
  rdma::Worker worker;
  Memory memory;
  rdma::Target target;
};

struct Initiator {
  explicit Initiator(const nanobind::dict& config);  // throws SetupError
  rdma::Worker worker;
  std::optional<Memory> memory;  // given by CUDA, for put_given and get_given
  std::optional<rdma::Connection> connection;
};

rdma::RegionKind memory_kind(const std::string& name);  // throws SetupError where this library lacks it
rdma::ConnectionConfig connection_config(const nanobind::dict& dict);
nanobind::list ways_list(const std::vector<rdma::Way>& ways);
nanobind::dict path_dict(const rdma::Path& path);

// Serves for a while. Spinning: the core is busy all the time, and what the transports leave to this CPU is done at once.
void serve_for(rdma::Worker& worker, std::uint32_t milliseconds, bool spin);

void bind_rank(nanobind::module_& module);

}  // namespace nanet::bindings
