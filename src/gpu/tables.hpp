// SPDX-License-Identifier: Apache-2.0
// Tables: the ring finders' tables in device memory. One object serves any number of kernels and streams of its device.
#pragma once

#include "gpu/cuda_types.hpp"
#include "gpu/kernels/tables.hpp"

namespace nanet::gpu {

class Tables {
 public:
  // Copies them to the current device. Throws SetupError where that fails.
  Tables();

  // Valid as long as this object.
  DeviceTables device() const { return {points_.get(), packed_.get(), cells_.get()}; }

 private:
  DeviceArray<rich::PmPoint> points_;
  DeviceArray<PackedPoint> packed_;
  DeviceArray<std::uint16_t> cells_;
};

}  // namespace nanet::gpu
