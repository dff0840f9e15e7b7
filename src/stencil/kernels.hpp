// SPDX-License-Identifier: Apache-2.0
// The vectorised loops of the stencil, one dynamic dispatch a tile. The same bits on every instruction set.
//
// One value: ((up + down) + left) + right, in this order, times 0.25 (exact: the same bits as divided by 4).
#pragma once

#include <cstddef>

#include "stencil/jacobi.hpp"

namespace nanet::stencil {

using Index = std::ptrdiff_t;

inline constexpr Index kRowsAtOnce = 4;  // of one sweep

// A rectangle of the interior, taken `levels` sweeps on from `in` to `out`. Reads up to `levels` cells around it, writes nothing outside.
template <class T>
struct Tile {
  const T* in;  // row 0, column 0 of the whole field
  T* out;       // the same of the other field
  Index stride;
  Index rows;  // of the whole field, boundary included
  Index columns;
  Index row_begin;
  Index row_end;
  Index column_begin;  // with streaming stores: &out[column_begin] is aligned to 64 bytes in every row
  Index column_end;
  Index levels;
  T* scratch;  // 3 rows a level but the last, each scratch_stride >= column_end - column_begin + 2 * levels
  Index scratch_stride;
  Stores stores;
};

void sweep_tile(const Tile<float>& tile);
void sweep_tile(const Tile<double>& tile);

// What `count` cells of a row changed by: the L2 part is summed in 16 sums (cell j goes to sum j mod 16), which are then added in order.
struct RowChange {
  double max;
  double square_sum;
};
RowChange row_change(const float* was, const float* is, Index count);
RowChange row_change(const double* was, const double* is, Index count);

// `to` is aligned to 64 bytes.
void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes, Stores stores);

}  // namespace nanet::stencil
