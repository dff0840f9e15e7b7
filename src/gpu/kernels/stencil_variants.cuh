// SPDX-License-Identifier: Apache-2.0
// The table of variants of one type.
#pragma once

#include "gpu/kernels/stencil_variants.hpp"
#include "gpu/kernels/stencil_warp.cuh"

namespace nanet::gpu {

template <class T, int kSweeps, int kPieces, int kAhead, StoreHint kHint, Sides kSides = Sides::margins>
PassVariant<T> variant() {
  return {kSweeps,
          kPieces,
          kAhead,
          kSides == Sides::loaded,
          kHint == StoreHint::streaming,
          sweep_threads_max(kSweeps),
          &launch_sweeps<SweepWarp<T, kPieces, kHint, kSides>, kSweeps, kAhead, T>};
}

template <class T, int kSweeps>
void add_variants(std::vector<PassVariant<T>>& all) {
  all.push_back(variant<T, kSweeps, 1, 3, StoreHint::none>());
  all.push_back(variant<T, kSweeps, 1, 3, StoreHint::streaming>());
  all.push_back(variant<T, kSweeps, 1, 4, StoreHint::none>());
  all.push_back(variant<T, kSweeps, 1, 4, StoreHint::streaming>());
  all.push_back(variant<T, kSweeps, 1, 6, StoreHint::none>());
  all.push_back(variant<T, kSweeps, 1, 6, StoreHint::streaming>());
}

// One sweep a pass.
template <class T, int kPieces, int kAhead>
void add_plain_variants(std::vector<PassVariant<T>>& all) {
  all.push_back(variant<T, 1, kPieces, kAhead, StoreHint::none, Sides::loaded>());
  all.push_back(variant<T, 1, kPieces, kAhead, StoreHint::streaming, Sides::loaded>());
}

template <class T>
std::vector<PassVariant<T>> all_variants() {
  std::vector<PassVariant<T>> all;
  add_plain_variants<T, 1, 3>(all);
  add_plain_variants<T, 1, 4>(all);
  add_plain_variants<T, 1, 6>(all);
  add_plain_variants<T, 1, 10>(all);
  add_plain_variants<T, 2, 3>(all);
  add_plain_variants<T, 2, 6>(all);
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
