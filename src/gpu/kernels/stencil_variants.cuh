// SPDX-License-Identifier: Apache-2.0
// The table of variants of one type.
#pragma once

#include "gpu/kernels/stencil_variants.hpp"
#include "gpu/kernels/stencil_warp.cuh"

namespace nanet::gpu {

template <class T, int kSweeps, int kPieces, int kAhead, StoreHint kHint>
PassVariant<T> variant() {
  return {kSweeps, kPieces, kAhead, kHint == StoreHint::streaming, &launch_sweeps<SweepWarp<T, kPieces, kHint>, kSweeps, kAhead, T>};
}

template <class T, int kSweeps>
void add_variants(std::vector<PassVariant<T>>& all) {
  all.push_back(variant<T, kSweeps, 1, 2, StoreHint::none>());
  all.push_back(variant<T, kSweeps, 1, 3, StoreHint::none>());
  all.push_back(variant<T, kSweeps, 1, 3, StoreHint::streaming>());
  all.push_back(variant<T, kSweeps, 1, 4, StoreHint::none>());
  all.push_back(variant<T, kSweeps, 1, 6, StoreHint::none>());
}

template <class T>
std::vector<PassVariant<T>> all_variants() {
  std::vector<PassVariant<T>> all;
  add_variants<T, 1>(all);
  add_variants<T, 2>(all);
  add_variants<T, 4>(all);
  add_variants<T, 6>(all);
  add_variants<T, 8>(all);
  all.push_back(variant<T, 3, 1, 3, StoreHint::none>());
  all.push_back(variant<T, 5, 1, 3, StoreHint::none>());
  all.push_back(variant<T, 10, 1, 3, StoreHint::none>());
  all.push_back(variant<T, 12, 1, 3, StoreHint::none>());
  all.push_back(variant<T, 1, 1, 6, StoreHint::streaming>());
  all.push_back(variant<T, 1, 2, 3, StoreHint::none>());
  all.push_back(variant<T, 2, 2, 3, StoreHint::none>());
  all.push_back(variant<T, 4, 2, 3, StoreHint::none>());
  all.push_back(variant<T, 4, 2, 2, StoreHint::none>());
  all.push_back(variant<T, 6, 2, 3, StoreHint::none>());
  return all;
}

}  // namespace nanet::gpu
