// SPDX-License-Identifier: Apache-2.0
// The Python module nanet._torus in parts.
#pragma once

#include <nanobind/nanobind.h>

namespace nanet::bindings {

void bind_torus_ranks(nanobind::module_& module);

}  // namespace nanet::bindings
