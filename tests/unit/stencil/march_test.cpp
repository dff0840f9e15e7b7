// SPDX-License-Identifier: Apache-2.0
// The march of a GPU's warp, on warps made of arrays, against a scalar loop, bit for bit: shapes, sweeps, rows loaded ahead, bands, parts of a field.
#include "stencil_gpu/kernels/march.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "../fields.hpp"

namespace nanet::gpu {
namespace {

using test::made_up_field;
using test::reference;
using test::same_bits;

// All lanes of a warp, side by side. What stands beside the tile is not a number, as what a lane has without a neighbour must never count.
template <class T, int kLaneCells>
class ArrayWarp {
 public:
  using Shape = TileShape<kLaneCells>;
  struct Cells {
    T values[Shape::kWidth];
  };

  ArrayWarp(const SweepArgs<T>& args, std::int32_t tile, int sweeps)
      : args_(args), sweeps_(sweeps), first_(Shape::first_column(tile, sweeps)) {}

  bool touches_a_column() const { return Shape::touches_a_column(first_, args_.columns); }

  Cells load(std::int32_t row) const {
    EXPECT_GE(row, args_.memory_begin);
    EXPECT_LT(row, args_.memory_end);
    Cells cells;
    for (std::int32_t k = 0; k < Shape::kWidth; ++k) {
      const bool is_there = first_ + k >= 0 && first_ + k < args_.columns;
      cells.values[k] = is_there ? args_.in[(row - args_.memory_begin) * args_.stride + first_ + k] : kNone;
    }
    return cells;
  }

  void store(std::int32_t row, const Cells& cells) const {
    EXPECT_GE(row, args_.row_begin);
    EXPECT_LT(row, args_.row_end);
    const std::int32_t margin = Shape::margin(sweeps_);
    for (std::int32_t k = margin; k < Shape::kWidth - margin && first_ + k < args_.columns; ++k) {
      args_.out[(row - args_.memory_begin) * args_.stride + first_ + k] = cells.values[k];
    }
  }

  Cells mean(const Cells& up, const Cells& mid, const Cells& down) const {
    Cells next;
    for (std::int32_t k = 0; k < Shape::kWidth; ++k) {
      const T left = k == 0 ? kNone : mid.values[k - 1];
      const T right = k == Shape::kWidth - 1 ? kNone : mid.values[k + 1];
      next.values[k] = (((up.values[k] + down.values[k]) + left) + right) * T{0.25};
    }
    return next;
  }

  Cells with_boundary_columns(Cells next, const Cells& mid) const {
    for (std::int32_t k = 0; k < Shape::kWidth; ++k) {
      if (first_ + k == 0 || first_ + k == args_.columns - 1) next.values[k] = mid.values[k];
    }
    return next;
  }

 private:
  static constexpr T kNone = std::numeric_limits<T>::quiet_NaN();
  const SweepArgs<T>& args_;
  int sweeps_;
  std::int32_t first_;
};

// As the kernel does: a warp a tile and band.
template <class T, int kLaneCells, int kSweeps, int kAhead>
void sweep(const SweepArgs<T>& args) {
  using Warp = ArrayWarp<T, kLaneCells>;
  for (std::int32_t tile = 0; tile * Warp::Shape::stored(kSweeps) < args.columns; ++tile) {
    for (std::int32_t begin = args.row_begin; begin < args.row_end; begin += args.band_rows) {
      const Warp warp(args, tile, kSweeps);
      March<Warp, kSweeps, kAhead>(warp, args.rows, args.memory_begin, args.memory_end)
          .run(begin, std::min(begin + args.band_rows, args.row_end));
    }
  }
}

template <class T, int kLaneCells, int kSweeps, int kAhead>
void expect_the_bits_of_the_formula() {
  for (auto [rows, columns] : {std::pair{3, 3}, {3, 300}, {50, 3}, {4, 5}, {17, 129}, {40, 260}}) {
    const auto height = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
    const auto field = made_up_field<T>(height, width);
    const auto wanted = reference(field, height, width, kSweeps);
    for (std::int32_t band_rows : {1, 7, 64}) {
      auto out = field;
      sweep<T, kLaneCells, kSweeps, kAhead>({field.data(), out.data(), columns, rows, columns, 0, rows, 1, rows - 1, band_rows});
      EXPECT_TRUE(same_bits(out, wanted)) << rows << " x " << columns << ", " << kSweeps << " sweeps, bands of " << band_rows;
    }
  }
}

TEST(March, HasTheBitsOfTheFormula) {
  expect_the_bits_of_the_formula<float, 4, 1, 3>();
  expect_the_bits_of_the_formula<float, 4, 2, 3>();
  expect_the_bits_of_the_formula<float, 4, 3, 4>();
  expect_the_bits_of_the_formula<float, 4, 4, 3>();
  expect_the_bits_of_the_formula<float, 4, 8, 3>();
  expect_the_bits_of_the_formula<float, 8, 5, 2>();
  expect_the_bits_of_the_formula<double, 2, 1, 6>();
  expect_the_bits_of_the_formula<double, 2, 4, 3>();
  expect_the_bits_of_the_formula<double, 2, 7, 3>();
}

// A share of the rows, with as many around them as there are sweeps; what is not to be written stays.
TEST(March, TakesAPartOfAField) {
  constexpr std::int32_t kRows = 60, kColumns = 140;
  constexpr int kSweeps = 4;
  const auto field = made_up_field<double>(kRows, kColumns);
  const auto wanted = reference(field, kRows, kColumns, kSweeps);
  for (auto [begin, end] : {std::pair{1, 20}, {20, 41}, {41, kRows - 1}}) {
    const std::int32_t memory_begin = std::max(0, begin - kSweeps);
    const std::int32_t memory_end = std::min(kRows, end + kSweeps);
    const std::vector<double> part(field.begin() + memory_begin * kColumns, field.begin() + memory_end * kColumns);
    auto out = part;
    sweep<double, 2, kSweeps, 3>({part.data(), out.data(), kColumns, kRows, kColumns, memory_begin, memory_end, begin, end, 8});
    for (std::int32_t row = memory_begin; row < memory_end; ++row) {
      const bool is_written = row >= begin && row < end;
      const double* const should = (is_written ? wanted : field).data() + row * kColumns;
      EXPECT_EQ(std::memcmp(out.data() + (row - memory_begin) * kColumns, should, kColumns * sizeof(double)), 0) << "row " << row;
    }
  }
}

}  // namespace
}  // namespace nanet::gpu
