// SPDX-License-Identifier: Apache-2.0
// The table of variants of one type.
#pragma once

#include "stencil_gpu/kernels/variants.hpp"
#include "stencil_gpu/kernels/warp.cuh"

namespace nanet::gpu {

template <class T, int kSweeps>
void add_variants(std::vector<PassVariant<T>>& all) {
  all.push_back({kSweeps, 3, &launch_sweeps<kSweeps, 3, T>});
  all.push_back({kSweeps, 4, &launch_sweeps<kSweeps, 4, T>});
  all.push_back({kSweeps, 6, &launch_sweeps<kSweeps, 6, T>});
}

template <class T>
std::vector<PassVariant<T>> all_variants() {
  std::vector<PassVariant<T>> all;
  add_variants<T, 1>(all);
  add_variants<T, 2>(all);
  add_variants<T, 3>(all);
  add_variants<T, 4>(all);
  add_variants<T, 5>(all);
  add_variants<T, 6>(all);
  add_variants<T, 7>(all);
  add_variants<T, 8>(all);
  return all;
}

}  // namespace nanet::gpu
