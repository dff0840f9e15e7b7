// SPDX-License-Identifier: Apache-2.0
// The path of one warp through its tile of a field: down the rows, several sweeps in succession, nothing in memory between them.
//
//   row r of the field -> row r-1 of level 1 -> row r-2 of level 2 -> ... -> row r-s of level s, which is stored
//
// Of each level but the last two rows are kept, a few cells of them in each lane. A tile is kWidth cells wide; of its output `margin` cells at
// either side are wrong, since what stands beyond is not known, and not stored. The outermost rows and columns of the field keep what they are.
// Where there is no cell (above the field, beside it) a lane reads another one: what comes of it never gets past the boundary.
//
// The Warp is a GPU's (stencil_warp.cuh) or made of arrays (tests); both give the bits of stencil/kernels.hpp.
#pragma once

#include <cstdint>

#include "nanet/host_device.hpp"

namespace nanet::gpu {

// Rows and columns of a field, of which a part may lie in memory; and what is to be written.
template <class T>
struct SweepArgs {
  const T* in;          // row memory_begin, column 0; aligned to 32 bytes, as each row is
  T* out;               // the same of the other memory
  std::int64_t stride;  // cells
  std::int32_t rows;    // of the whole field, boundary included
  std::int32_t columns;
  std::int32_t memory_begin;  // rows that may be read
  std::int32_t memory_end;
  std::int32_t row_begin;  // rows to write, all of them inner ones; as many rows around them as there are sweeps must be in memory, or end the field
  std::int32_t row_end;
  std::int32_t band_rows;  // rows a warp goes through
};

// A tile of a warp with so many cells a lane.
template <int kLaneCells>
struct TileShape {
  static constexpr int kWidth = 32 * kLaneCells;
  // Cells at either side that are not stored: whole lanes.
  static constexpr int margin(int sweeps) { return (sweeps + kLaneCells - 1) / kLaneCells * kLaneCells; }
  static constexpr int stored(int sweeps) { return kWidth - 2 * margin(sweeps); }
  static constexpr std::int32_t first_column(std::int32_t tile, int sweeps) { return tile * stored(sweeps) - margin(sweeps); }
  // Its lanes have cells of the outermost columns, or beyond.
  static constexpr bool touches_a_column(std::int32_t first, std::int32_t columns) {
    return first <= 0 || first + kWidth >= columns;
  }
};

template <class Warp, int kSweeps, int kAhead>
class March {
  using Cells = typename Warp::Cells;
  enum class Place { inside, beside_a_column, in_a_corner };

 public:
  NANET_HD March(const Warp& warp, std::int32_t rows, std::int32_t memory_begin, std::int32_t memory_end)
      : warp_(warp), rows_(rows), memory_begin_(memory_begin), memory_end_(memory_end) {}

  // Writes rows begin .. end-1.
  NANET_HD void run(std::int32_t begin, std::int32_t end) {
    begin_ = begin;
    end_ = end;
    last_ = (memory_end_ < end + kSweeps ? memory_end_ : end + kSweeps) - 1;
    if (warp_.touches_a_column()) {
      run_rows<Place::beside_a_column>();
    } else {
      run_rows<Place::inside>();
    }
  }

 private:
  template <Place kPlace>
  NANET_HD void run_rows() {
    std::int32_t row = begin_ - kSweeps > memory_begin_ ? begin_ - kSweeps : memory_begin_;
    NANET_UNROLL(kAhead)
    for (int k = 0; k < kAhead; ++k) ahead_[k] = warp_.load(clamped(row + k));
    NANET_UNROLL(kSweeps)
    for (int level = 0; level < kSweeps; ++level) up_[level] = mid_[level] = Cells{};
    for (; row < end_ + kSweeps; row += kAhead) {
      if (row <= kSweeps || row + kAhead > rows_) {
        advance<Place::in_a_corner>(row);
      } else {
        advance<kPlace>(row);
      }
    }
  }

  // By kAhead rows, from `row` on; each is loaded that many rows before it is needed.
  template <Place kPlace>
  NANET_HD void advance(std::int32_t row) {
    NANET_UNROLL(kAhead)
    for (int k = 0; k < kAhead; ++k) {
      const Cells down = ahead_[k];
      ahead_[k] = warp_.load(clamped(row + k + kAhead));
      step<kPlace>(row + k, down);
    }
  }

  template <Place kPlace>
  NANET_HD void step(std::int32_t row, Cells down) {
    NANET_UNROLL(kSweeps)
    for (int level = 0; level < kSweeps; ++level) {
      const std::int32_t made = row - 1 - level;
      Cells next = warp_.mean(up_[level], mid_[level], down);
      if constexpr (kPlace != Place::inside) next = warp_.with_boundary_columns(next, mid_[level]);
      if constexpr (kPlace == Place::in_a_corner) {
        if (made == 0 || made == rows_ - 1) next = mid_[level];
      }
      up_[level] = mid_[level];
      mid_[level] = down;
      down = next;
    }
    const std::int32_t made = row - kSweeps;
    if (made >= begin_ && made < end_) warp_.store(made, down);
  }

  // Past the end the last row is loaded again: it is in the nearest cache, and nothing is made of it.
  NANET_HD std::int32_t clamped(std::int32_t row) const { return row < last_ ? row : last_; }

  const Warp& warp_;
  std::int32_t rows_;
  std::int32_t memory_begin_;
  std::int32_t memory_end_;
  std::int32_t last_ = 0;  // row that is loaded
  std::int32_t begin_ = 0;
  std::int32_t end_ = 0;
  Cells up_[kSweeps];
  Cells mid_[kSweeps];
  Cells ahead_[kAhead];
};

}  // namespace nanet::gpu
