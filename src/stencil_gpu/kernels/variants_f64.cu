// SPDX-License-Identifier: Apache-2.0
#include "stencil_gpu/kernels/variants.cuh"
#include "stencil_gpu/kernels/variants.hpp"

namespace nanet::gpu {

template <>
std::vector<PassVariant<double>> pass_variants<double>() {
  return all_variants<double>();
}

}  // namespace nanet::gpu
