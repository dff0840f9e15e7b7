// SPDX-License-Identifier: Apache-2.0
// What the bindings of the L0 trigger processor and of the node around it share.
#pragma once

#include <span>

#include "bindings.hpp"
#include "l0tp/trigger_processor.hpp"

namespace nanet::bindings {

// Totals by name, with `inputs` and `masks` as lists of their own.
nb::dict l0tp_counters(const l0tp::Stats& stats, std::span<const l0tp::InputStats> inputs, std::span<const l0tp::MaskStats> masks);

}  // namespace nanet::bindings
