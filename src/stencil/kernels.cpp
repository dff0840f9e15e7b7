// SPDX-License-Identifier: Apache-2.0
// One sweep takes four rows at once. More are a wavefront: row r of level 1, then r-1 of level 2, and so on. Three rows of each level between are kept.
#include "stencil/kernels.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stencil/kernels.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nanet::stencil {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr Index kSums = 16;
constexpr Index kAheadBytes = 2048;  // how far before its use a line is asked for

// Each pointer: the first cell to compute, or its neighbour above or below.
template <Stores kStores, class T>
void sweep_cells(const T* up, const T* mid, const T* down, T* HWY_RESTRICT out, Index count) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  const auto quarter = hn::Set(tag, T{0.25});
  Index j = 0;
  for (; j + lanes <= count; j += lanes) {
    const auto vertical = hn::Add(hn::LoadU(tag, up + j), hn::LoadU(tag, down + j));
    const auto sum = hn::Add(hn::Add(vertical, hn::LoadU(tag, mid + j - 1)), hn::LoadU(tag, mid + j + 1));
    if constexpr (kStores == Stores::streaming) {
      hn::Stream(hn::Mul(sum, quarter), tag, out + j);
    } else {
      hn::StoreU(hn::Mul(sum, quarter), tag, out + j);
    }
  }
  for (; j < count; ++j) out[j] = (((up[j] + down[j]) + mid[j - 1]) + mid[j + 1]) * T{0.25};
}

// kRowsAtOnce rows: what is loaded for one serves its neighbours, and as many streams come from memory side by side. `above`: the neighbour above
// the first cell to compute; rows of both fields are `stride` apart.
template <Stores kStores, class T>
void sweep_rows(const T* above, Index stride, T* HWY_RESTRICT out, Index count) {
  static_assert(kRowsAtOnce == 4);
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  const auto quarter = hn::Set(tag, T{0.25});
  Index j = 0;
  const auto load = [&](Index row) HWY_ATTR { return hn::LoadU(tag, above + row * stride + j); };
  const auto sweep = [&](Index row, auto up, auto down) HWY_ATTR {
    const T* mid = above + (row + 1) * stride + j;
    hwy::Prefetch(mid + stride + kAheadBytes / Index{sizeof(T)});
    const auto vertical = hn::Add(up, down);
    const auto sum = hn::Add(hn::Add(vertical, hn::LoadU(tag, mid - 1)), hn::LoadU(tag, mid + 1));
    if constexpr (kStores == Stores::streaming) {
      hn::Stream(hn::Mul(sum, quarter), tag, out + row * stride + j);
    } else {
      hn::StoreU(hn::Mul(sum, quarter), tag, out + row * stride + j);
    }
  };
  for (; j + lanes <= count; j += lanes) {
    const auto row1 = load(1), row2 = load(2), row3 = load(3), row4 = load(4);
    sweep(0, load(0), row2);
    sweep(1, row1, row3);
    sweep(2, row2, row4);
    sweep(3, row3, load(5));
  }
  for (Index row = 0; row < kRowsAtOnce; ++row) {
    const T* up = above + row * stride;
    sweep_cells<Stores::cached>(up + j, up + stride + j, up + 2 * stride + j, out + row * stride + j, count - j);
  }
}

// One sweep of a tile.
template <Stores kStores, class T>
void sweep_once(const Tile<T>& tile) {
  const Index begin = std::max<Index>(1, tile.column_begin);
  const Index count = std::min(tile.columns - 1, tile.column_end) - begin;
  const Index row_end = std::min(tile.rows - 1, tile.row_end);
  Index row = std::max<Index>(1, tile.row_begin);
  const auto in = [&](Index r) { return tile.in + r * tile.stride + begin; };
  const auto out = [&](Index r) { return tile.out + r * tile.stride + begin; };
  for (; row + kRowsAtOnce <= row_end; row += kRowsAtOnce) sweep_rows<kStores>(in(row - 1), tile.stride, out(row), count);
  for (; row < row_end; ++row) sweep_cells<kStores>(in(row - 1), in(row), in(row + 1), out(row), count);
}

// A row of a level between, from `column` on. Rows r, r+3, ... share their place.
template <class T>
T* scratch_at(const Tile<T>& tile, Index level, Index row, Index column) {
  return tile.scratch + ((level - 1) * 3 + row % 3) * tile.scratch_stride + (column - tile.column_begin + tile.levels);
}

// The same of the level that is read; the boundary rows are those of the field at every level.
template <class T>
const T* source_at(const Tile<T>& tile, Index level, Index row, Index column) {
  if (level == 0 || row == 0 || row == tile.rows - 1) return tile.in + row * tile.stride + column;
  return scratch_at(tile, level, row, column);
}

template <class T>
void sweep_level_row(const Tile<T>& tile, Index level, Index row) {
  const Index margin = tile.levels - level;
  if (row < std::max<Index>(1, tile.row_begin - margin) || row >= std::min(tile.rows - 1, tile.row_end + margin)) return;
  const Index begin = std::max<Index>(1, tile.column_begin - margin);
  const Index end = std::min(tile.columns - 1, tile.column_end + margin);
  const T* up = source_at(tile, level - 1, row - 1, begin);
  const T* mid = source_at(tile, level - 1, row, begin);
  const T* down = source_at(tile, level - 1, row + 1, begin);
  if (level == tile.levels) {
    T* out = tile.out + row * tile.stride + begin;
    if (tile.stores == Stores::streaming) {
      sweep_cells<Stores::streaming>(up, mid, down, out, end - begin);
    } else {
      sweep_cells<Stores::cached>(up, mid, down, out, end - begin);
    }
    return;
  }
  sweep_cells<Stores::cached>(up, mid, down, scratch_at(tile, level, row, begin), end - begin);
  const T* field = tile.in + row * tile.stride;
  if (begin == 1) *scratch_at(tile, level, row, 0) = field[0];
  if (end == tile.columns - 1) *scratch_at(tile, level, row, end) = field[end];
}

template <class T>
void sweep_any_tile(const Tile<T>& tile) {
  const bool is_streaming = tile.stores == Stores::streaming;
  if (tile.levels == 1) {
    is_streaming ? sweep_once<Stores::streaming>(tile) : sweep_once<Stores::cached>(tile);
    if (is_streaming) hwy::FlushStream();
    return;
  }
  const Index lead = tile.levels - 1;
  for (Index step = tile.row_begin - lead; step < tile.row_end + lead; ++step) {
    for (Index level = 1; level <= tile.levels; ++level) sweep_level_row(tile, level, step - (level - 1));
  }
  if (is_streaming) hwy::FlushStream();
}

void sweep_tile_f32(const Tile<float>& tile) { sweep_any_tile(tile); }
void sweep_tile_f64(const Tile<double>& tile) { sweep_any_tile(tile); }

template <class D>
auto load_as_double(D tag, const double* from) {
  return hn::LoadU(tag, from);
}

template <class D>
auto load_as_double(D tag, const float* from) {
  const hn::Rebind<float, D> narrow;
  return hn::PromoteTo(tag, hn::LoadU(narrow, from));
}

template <class T>
RowChange any_row_change(const T* was, const T* is, Index count) {
  HWY_ALIGN double sums[kSums] = {};
  HWY_ALIGN double maxima[kSums] = {};
  const hn::CappedTag<double, 8> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  Index j = 0;
  for (; j + kSums <= count; j += kSums) {
    for (Index k = 0; k < kSums; k += lanes) {
      const auto change = hn::Abs(hn::Sub(load_as_double(tag, is + j + k), load_as_double(tag, was + j + k)));
      hn::StoreU(hn::Add(hn::LoadU(tag, sums + k), hn::Mul(change, change)), tag, sums + k);
      hn::StoreU(hn::Max(hn::LoadU(tag, maxima + k), change), tag, maxima + k);
    }
  }
  for (Index k = 0; j < count; ++j, ++k) {
    const double change = std::abs(static_cast<double>(is[j]) - static_cast<double>(was[j]));
    sums[k] += change * change;
    maxima[k] = std::max(maxima[k], change);
  }
  RowChange total{0.0, 0.0};
  for (Index k = 0; k < kSums; ++k) {
    total.max = std::max(total.max, maxima[k]);
    total.square_sum += sums[k];
  }
  return total;
}

RowChange row_change_f32(const float* was, const float* is, Index count) { return any_row_change(was, is, count); }
RowChange row_change_f64(const double* was, const double* is, Index count) { return any_row_change(was, is, count); }

void copy_any_bytes(const std::byte* from, std::byte* to, std::size_t bytes, Stores stores) {
  const hn::ScalableTag<std::uint8_t> tag;
  const std::size_t lanes = hn::Lanes(tag);
  const auto* source = reinterpret_cast<const std::uint8_t*>(from);
  auto* target = reinterpret_cast<std::uint8_t*>(to);
  std::size_t k = 0;
  if (stores == Stores::streaming) {
    for (; k + lanes <= bytes; k += lanes) hn::Stream(hn::LoadU(tag, source + k), tag, target + k);
    hwy::FlushStream();
  } else {
    for (; k + lanes <= bytes; k += lanes) hn::StoreU(hn::LoadU(tag, source + k), tag, target + k);
  }
  for (; k < bytes; ++k) target[k] = source[k];
}

}  // namespace HWY_NAMESPACE
}  // namespace nanet::stencil
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::stencil {

HWY_EXPORT(sweep_tile_f32);
HWY_EXPORT(sweep_tile_f64);
HWY_EXPORT(row_change_f32);
HWY_EXPORT(row_change_f64);
HWY_EXPORT(copy_any_bytes);

void sweep_tile(const Tile<float>& tile) { HWY_DYNAMIC_DISPATCH(sweep_tile_f32)(tile); }
void sweep_tile(const Tile<double>& tile) { HWY_DYNAMIC_DISPATCH(sweep_tile_f64)(tile); }

RowChange row_change(const float* was, const float* is, Index count) {
  return HWY_DYNAMIC_DISPATCH(row_change_f32)(was, is, count);
}
RowChange row_change(const double* was, const double* is, Index count) {
  return HWY_DYNAMIC_DISPATCH(row_change_f64)(was, is, count);
}

void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes, Stores stores) {
  HWY_DYNAMIC_DISPATCH(copy_any_bytes)(from, to, bytes, stores);
}

}  // namespace nanet::stencil
#endif  // HWY_ONCE
