// SPDX-License-Identifier: Apache-2.0
#include "stencil/strips.hpp"

#include <algorithm>
#include <string>

#include "nanet/flow/region.hpp"
#include "nanet/setup_error.hpp"
#include "stencil/layout.hpp"

namespace nanet::stencil {
namespace {

constexpr Index kLine = kLineBytes;
constexpr Index kPageBytes = 4096;
constexpr Index kStripCellsMin = 256;  // far more than the margins of a tile
constexpr std::uint32_t kSweepsMax = 32;

Index round_up(Index value, Index unit) { return (value + unit - 1) / unit * unit; }

// Cells from one row of a level between to the next: three lines short of whole pages. So a row that is written lies, seen by the last 12 bits of
// the address, before those that are read with it, and no load has to wait for a store a few vectors ago that only looks like its own.
template <class T>
Index scratch_stride_of(Index cells) {
  return (round_up(cells * Index{sizeof(T)} + 3 * kLine, kPageBytes) - 3 * kLine) / Index{sizeof(T)};
}

// A pass holds three rows of each level and the one that it writes; one sweep the rows that it takes at once, and those around them.
template <class T>
Index strip_cells_of(Index sweeps, std::size_t tile_bytes) {
  const Index fits = static_cast<Index>(tile_bytes / sizeof(T)) / std::max(3 * sweeps + 1, kRowsAtOnce + 2) - 2 * sweeps;
  const Index unit = kLine / Index{sizeof(T)};
  return std::max(kStripCellsMin, fits / unit * unit);
}

}  // namespace

RowSpan share_of(RowSpan rows, int worker, int count) {
  const Index size = std::max<Index>(rows.end - rows.begin, 0);
  return {rows.begin + size * worker / count, rows.begin + size * (worker + 1) / count};
}

flow::Region stencil_region(const char* name, std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  return flow::Region({.name = name, .bytes = size, .huge_pages = size >= flow::kHugePageBytes, .locked = false});
}

void check_sweeps_per_pass(std::uint32_t sweeps) {
  if (sweeps >= 1 && sweeps <= kSweepsMax) return;
  throw SetupError(std::to_string(sweeps) + " sweeps a pass cannot be had",
                   "the rows between have to stay in the cache: 1 to " + std::to_string(kSweepsMax), "give 1, 4 or 8");
}

template <class T>
Strips<T>::Strips(Index columns, std::uint32_t sweeps_per_pass, std::size_t tile_bytes, int thread_count)
    : strip_cells_(std::min(strip_cells_of<T>(Index{sweeps_per_pass}, tile_bytes), round_up(columns, kLine))),
      scratch_stride_(scratch_stride_of<T>(strip_cells_ + 2 * Index{sweeps_per_pass})),
      scratch_cells_(3 * (Index{sweeps_per_pass} - 1) * scratch_stride_),
      scratch_(stencil_region("stencil rows between", static_cast<std::size_t>(scratch_cells_ * thread_count) * sizeof(T))) {}

template <class T>
void Strips<T>::sweep(int worker, Tile<T> tile, RowSpan rows) const {
  tile.row_begin = rows.begin;
  tile.row_end = rows.end;
  tile.scratch = reinterpret_cast<T*>(scratch_.data()) + worker * scratch_cells_;
  tile.scratch_stride = scratch_stride_;
  for (Index column = 1; rows.begin < rows.end && column < tile.columns - 1; column += strip_cells_) {
    tile.column_begin = column;
    tile.column_end = std::min(column + strip_cells_, tile.columns - 1);
    sweep_tile(tile);
  }
}

template <class T>
void Strips<T>::sweep_with_changes(Tile<T> tile, RowSpan rows, double* changes) const {
  tile.levels = 1;
  tile.column_begin = 1;
  tile.column_end = tile.columns - 1;
  tile.stores = Stores::cached;
  for (Index row = rows.begin; row < rows.end && tile.columns > 2; row += kRowsAtOnce) {
    tile.row_begin = row;
    tile.row_end = std::min(row + kRowsAtOnce, rows.end);
    sweep_tile(tile);
    for (Index r = tile.row_begin; r < tile.row_end; ++r) {
      const RowChange change = row_change(tile.in + r * tile.stride + 1, tile.out + r * tile.stride + 1, tile.columns - 2);
      changes[2 * r] = change.max;
      changes[2 * r + 1] = change.square_sum;
    }
  }
}

template class Strips<float>;
template class Strips<double>;

}  // namespace nanet::stencil
