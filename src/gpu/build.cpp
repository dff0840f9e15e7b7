// SPDX-License-Identifier: Apache-2.0
#include "nanet/gpu/build.hpp"

#include <cuda_runtime.h>

namespace nanet::gpu {

Build build() {
  Build found{0, NANET_CUDA_ARCHITECTURES};
  if (cudaRuntimeGetVersion(&found.cuda_version) != cudaSuccess) found.cuda_version = CUDART_VERSION;
  return found;
}

}  // namespace nanet::gpu
