// SPDX-License-Identifier: Apache-2.0
#include "gpu/kernels/stencil_variants.cuh"
#include "gpu/kernels/stencil_variants.hpp"

namespace nanet::gpu {

template <>
std::vector<PassVariant<float>> pass_variants<float>() {
  return all_variants<float>();
}

}  // namespace nanet::gpu
