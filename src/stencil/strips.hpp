// SPDX-License-Identifier: Apache-2.0
// How a thread goes over its rows: in strips of columns whose rows between stay in its cache.
#pragma once

#include "nanet/flow/region.hpp"
#include "stencil/kernels.hpp"

namespace nanet::stencil {

struct RowSpan {
  Index begin;
  Index end;
};

// What thread `worker` of `count` has of these rows; always the same.
RowSpan share_of(RowSpan rows, int worker, int count);

flow::Region stencil_region(const char* name, std::size_t bytes);

// Throws SetupError unless it is 1 to 32.
void check_sweeps_per_pass(std::uint32_t sweeps);

template <class T>
class Strips {
 public:
  Strips(Index columns, std::uint32_t sweeps_per_pass, std::size_t tile_bytes, int thread_count);

  // `rows` of the field of `tile`, whose rows, columns, levels, in, out, stride and stores are set.
  void sweep(int worker, Tile<T> tile, RowSpan rows) const;
  // One sweep, a few rows at a time, so that the change is taken while both are in the cache. changes: two a row of the field.
  void sweep_with_changes(Tile<T> tile, RowSpan rows, double* changes) const;

 private:
  Index strip_cells_;  // width of a tile
  Index scratch_stride_;
  Index scratch_cells_;  // a thread
  flow::Region scratch_;
};

extern template class Strips<float>;
extern template class Strips<double>;

}  // namespace nanet::stencil
