// SPDX-License-Identifier: Apache-2.0
// What nanet._rdma gives to Python: the two sides, each with a worker of its own.
#pragma once

#include <nanobind/nanobind.h>

#include "nanet/rdma/connection.hpp"
#include "nanet/rdma/region.hpp"
#include "nanet/rdma/target.hpp"
#include "nanet/rdma/worker.hpp"

namespace nanet::bindings {

struct Exposed {
  explicit Exposed(const nanobind::dict& config);  // throws SetupError
  rdma::Worker worker;
  rdma::Region region;
  rdma::Target target;
};

struct Initiator {
  explicit Initiator(const nanobind::dict& config);  // throws SetupError
  rdma::Worker worker;
  rdma::Connection connection;
};

}  // namespace nanet::bindings
