// SPDX-License-Identifier: Apache-2.0
// The GPU that is current in this thread is another one for as long as this lives.
#pragma once

#include <cuda_runtime.h>

#include "gpu/cuda_types.hpp"

namespace nanet::gpu {

class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    check(cudaSetDevice(device), "cudaSetDevice");
  }
  ~CurrentDevice() { cudaSetDevice(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

}  // namespace nanet::gpu
