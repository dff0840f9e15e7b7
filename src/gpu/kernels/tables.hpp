// SPDX-License-Identifier: Apache-2.0
// The tables of the ring finders in device memory.
#pragma once

#include "nanet/rich/hit_plane.hpp"

namespace nanet::gpu {

struct DeviceTables {
  const rich::PmPoint* points;  // a copy of rich::kPmPoints
};

}  // namespace nanet::gpu
