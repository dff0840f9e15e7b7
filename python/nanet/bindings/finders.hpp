// SPDX-License-Identifier: Apache-2.0
// Ring finders by name, with their cuts from a dictionary.
#pragma once

#include <nanobind/ndarray.h>

#include <string>
#include <vector>

#include "bindings.hpp"
#include "nanet/rich/finder.hpp"

namespace nanet::bindings {

using HitArray = nb::ndarray<const std::uint16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using CountArray = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// cuts: {cut: number} of this finder; what is not named keeps its default. Throws SetupError for an unknown finder or cut.
rich::FinderConfig finder_config(const std::string& finder, const nb::dict& cuts);

// hits: [events, width], counts: [events]; throws SetupError where they do not fit together.
std::vector<event::Event> events_of(const HitArray& hits, const CountArray& counts);

}  // namespace nanet::bindings
