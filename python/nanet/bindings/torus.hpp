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

// What the host of a node has read in its registers: groups of counters, each a tuple of name, port (-1: of the node) and counts by name.
nanobind::list registers_of(const torus::RdmaNode& node);

}  // namespace nanet::bindings
