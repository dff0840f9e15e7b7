// SPDX-License-Identifier: Apache-2.0
#include "gpu/kernels/stencil_variants.cuh"
#include "gpu/kernels/stencil_variants.hpp"

namespace nanet::gpu {

template <>
std::vector<PassVariant<double>> pass_variants<double>() {
  return all_variants<double>();
}

}  // namespace nanet::gpu
