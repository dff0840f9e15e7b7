// SPDX-License-Identifier: Apache-2.0
// The Python module nanet._torus in parts.
#pragma once

#include <nanobind/nanobind.h>

#include "model/torus/rdma_node.hpp"

namespace nanet::bindings {

void bind_torus_ranks(nanobind::module_& module);
void bind_torus_shared(nanobind::module_& module);

// What a node has counted, by name.
void add_counts(nanobind::dict& dict, const torus::RdmaCounts& counts);

}  // namespace nanet::bindings
