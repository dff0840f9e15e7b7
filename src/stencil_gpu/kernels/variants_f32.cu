// SPDX-License-Identifier: Apache-2.0
#include "stencil_gpu/kernels/variants.cuh"
#include "stencil_gpu/kernels/variants.hpp"

namespace nanet::gpu {

template <>
std::vector<PassVariant<float>> pass_variants<float>() {
  return all_variants<float>();
}

}  // namespace nanet::gpu
