// SPDX-License-Identifier: Apache-2.0
#include "nanet/stencil/jacobi.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "nanet/setup_error.hpp"
#include "stencil/kernels.hpp"

namespace nanet::stencil {
namespace {

constexpr Index kLineBytes = 64;
constexpr Index kPageBytes = 4096;
constexpr Index kStripCellsMin = 256;  // far more than the margins of a tile
constexpr std::uint32_t kSweepsMax = 32;
constexpr std::size_t kSideMax = std::size_t{1} << 31;
constexpr std::size_t kCellsMax = std::size_t{1} << 44;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr Index kFieldOffsetBytes = 2048;  // of the second field: rows of both at one offset of a page would look alike to the store buffer

Index round_up(Index value, Index unit) { return (value + unit - 1) / unit * unit; }

const JacobiConfig& checked(const JacobiConfig& config) {
  const std::string size = std::to_string(config.rows) + " x " + std::to_string(config.columns);
  if (config.rows == 0 || config.columns == 0 || config.rows > kSideMax || config.columns > kSideMax ||
      config.rows * config.columns > kCellsMax) {
    throw SetupError("a field of " + size + " cannot be swept", "it has no cell, or more than there is memory for",
                     "give a field of 1 x 1 cells and more that fits twice into memory");
  }
  if (config.sweeps_per_pass < 1 || config.sweeps_per_pass > kSweepsMax) {
    throw SetupError(std::to_string(config.sweeps_per_pass) + " sweeps a pass cannot be had",
                     "the rows between have to stay in the cache: 1 to " + std::to_string(kSweepsMax), "give 1, 4 or 8");
  }
  return config;
}

// Cells from one row to the next: whole lines, an odd number of them, so that rows do not fall onto the same sets of the cache.
template <class T>
Index stride_of(Index columns) {
  const Index lines = (columns * Index{sizeof(T)} + kLineBytes + kLineBytes - 1) / kLineBytes;
  return (lines | 1) * kLineBytes / Index{sizeof(T)};
}

// Cells from one row of a level between to the next: three lines short of whole pages. So a row that is written lies, seen by the last 12 bits of
// the address, behind those that are read with it, and no load has to wait for a store a few vectors ago that only looks like its own.
template <class T>
Index scratch_stride_of(Index cells) {
  return (round_up(cells * Index{sizeof(T)} + 3 * kLineBytes, kPageBytes) - 3 * kLineBytes) / Index{sizeof(T)};
}

// A pass holds three rows of each level and the one that it writes.
template <class T>
Index strip_cells_of(const JacobiConfig& config) {
  const Index sweeps = config.sweeps_per_pass;
  const Index fits = static_cast<Index>(config.tile_bytes / sizeof(T)) / (3 * sweeps + 1) - 2 * sweeps;
  const Index unit = kLineBytes / Index{sizeof(T)};
  return std::max(kStripCellsMin, fits / unit * unit);
}

flow::Region region_of(const char* name, Index bytes) {
  const auto size = static_cast<std::size_t>(std::max<Index>(bytes, 1));
  return flow::Region({.name = name, .bytes = size, .huge_pages = size >= kHugePageBytes, .locked = false});
}

}  // namespace

template <class T>
Jacobi<T>::Jacobi(const JacobiConfig& config)
    : config_(checked(config)),
      team_(config.team),
      rows_(static_cast<Index>(config.rows)),
      columns_(static_cast<Index>(config.columns)),
      stride_(stride_of<T>(columns_)),
      strip_cells_(std::min(strip_cells_of<T>(config), round_up(columns_, kLineBytes))),
      scratch_stride_(scratch_stride_of<T>(strip_cells_ + 2 * Index{config.sweeps_per_pass})),
      scratch_cells_(3 * (Index{config.sweeps_per_pass} - 1) * scratch_stride_),
      scratch_(region_of("stencil rows between", scratch_cells_ * Index{sizeof(T)} * team_.size())),
      row_changes_(config.norm_every == 0 ? 0 : 4 * config.rows) {
  const Index bytes = stride_ * rows_ * Index{sizeof(T)} + kFieldOffsetBytes + kLineBytes;
  for (std::size_t field = 0; field < 2; ++field) {
    regions_.push_back(region_of("stencil field", bytes));
    // Column 1, where the inner cells begin, is at the beginning of a line.
    const Index offset = (field == 0 ? 0 : kFieldOffsetBytes) + kLineBytes - Index{sizeof(T)};
    origins_[field] = reinterpret_cast<T*>(regions_[field].data() + offset);
  }
}

template <class T>
void Jacobi<T>::load(const T* field) {
  current_ = 0;
  sweeps_done_ = 0;
  team_.run([&](int worker) {
    const Rows share = share_of(worker, 0, rows_);
    for (Index r = share.begin; r < share.end; ++r) {
      for (int copy : {0, 1}) std::copy_n(field + r * columns_, columns_, row(copy, r));
    }
  });
}

template <class T>
void Jacobi<T>::store(T* field) {
  team_.run([&](int worker) {
    const Rows share = share_of(worker, 0, rows_);
    for (Index r = share.begin; r < share.end; ++r) std::copy_n(row(current_, r), columns_, field + r * columns_);
  });
}

template <class T>
std::size_t Jacobi<T>::norm_count(std::uint64_t sweeps) const {
  if (config_.norm_every == 0) return 0;
  return static_cast<std::size_t>((sweeps_done_ + sweeps) / config_.norm_every - sweeps_done_ / config_.norm_every);
}

template <class T>
void Jacobi<T>::run(std::uint64_t sweeps, std::span<ChangeNorm> norms) {
  int last = current_;
  team_.run([&](int worker) {
    int from = current_;
    std::size_t norm = 0;
    for (std::uint64_t done = 0; done < sweeps;) {
      const Pass pass = next_pass(sweeps_done_ + done, sweeps - done);
      done += pass.sweeps;
      if (pass.has_norm) {
        sweep_share_with_norm(worker, from, norm);
      } else {
        sweep_share(worker, from, pass.sweeps);
      }
      team_.meet();
      if (pass.has_norm) {
        if (worker == 0) {
          norms[norm] = add_rows(norm);
          norms[norm].sweep = sweeps_done_ + done;
        }
        ++norm;
      }
      from = 1 - from;
    }
    if (worker == 0) last = from;
  });
  current_ = last;
  sweeps_done_ += sweeps;
}

template <class T>
typename Jacobi<T>::Pass Jacobi<T>::next_pass(std::uint64_t done, std::uint64_t left) const {
  std::uint64_t sweeps = std::min<std::uint64_t>(config_.sweeps_per_pass, left);
  if (config_.norm_every != 0) {
    const std::uint64_t to_norm = config_.norm_every - done % config_.norm_every;
    if (to_norm == 1) return {1, true};
    sweeps = std::min(sweeps, to_norm - 1);
  }
  return {static_cast<std::uint32_t>(sweeps), false};
}

template <class T>
void Jacobi<T>::sweep_share(int worker, int from, std::uint32_t sweeps) {
  const Rows share = share_of(worker, 1, rows_ - 1);
  const auto field_bytes = static_cast<std::size_t>(rows_ * stride_) * sizeof(T);
  for (Index column = 1; share.begin < share.end && column < columns_ - 1; column += strip_cells_) {
    sweep_tile(Tile<T>{.in = row(from, 0),
                       .out = row(1 - from, 0),
                       .stride = stride_,
                       .rows = rows_,
                       .columns = columns_,
                       .row_begin = share.begin,
                       .row_end = share.end,
                       .column_begin = column,
                       .column_end = std::min(column + strip_cells_, columns_ - 1),
                       .levels = Index{sweeps},
                       .scratch = reinterpret_cast<T*>(scratch_.data()) + worker * scratch_cells_,
                       .scratch_stride = scratch_stride_,
                       .stores = field_bytes >= config_.streaming_from_bytes ? Stores::streaming : Stores::cached});
  }
}

// Row by row, so that the change is taken while both rows are in the cache.
template <class T>
void Jacobi<T>::sweep_share_with_norm(int worker, int from, std::size_t norm) {
  const Rows share = share_of(worker, 1, rows_ - 1);
  for (Index r = share.begin; r < share.end && columns_ > 2; ++r) {
    sweep_tile(Tile<T>{.in = row(from, 0),
                       .out = row(1 - from, 0),
                       .stride = stride_,
                       .rows = rows_,
                       .columns = columns_,
                       .row_begin = r,
                       .row_end = r + 1,
                       .column_begin = 1,
                       .column_end = columns_ - 1,
                       .levels = 1,
                       .scratch = nullptr,
                       .scratch_stride = 0,
                       .stores = Stores::cached});
    const RowChange change = row_change(row(from, r) + 1, row(1 - from, r) + 1, columns_ - 2);
    double* place = row_changes_.data() + 2 * (static_cast<Index>(norm % 2) * rows_ + r);
    place[0] = change.max;
    place[1] = change.square_sum;
  }
}

// In the order of the rows, whoever swept them.
template <class T>
ChangeNorm Jacobi<T>::add_rows(std::size_t norm) const {
  double max = 0.0;
  double square_sum = 0.0;
  const double* changes = row_changes_.data() + 2 * static_cast<Index>(norm % 2) * rows_;
  for (Index r = 1; r < rows_ - 1; ++r) {
    max = std::max(max, changes[2 * r]);
    square_sum += changes[2 * r + 1];
  }
  if (std::isnan(square_sum)) max = square_sum = std::numeric_limits<double>::quiet_NaN();
  return {0, max, std::sqrt(square_sum)};
}

template <class T>
std::size_t Jacobi<T>::copy(Stores stores) {
  const int from = current_;
  team_.run([&](int worker) {
    const Rows share = share_of(worker, 0, rows_);
    const auto bytes = static_cast<std::size_t>((share.end - share.begin) * stride_) * sizeof(T);
    // From the line of column 1 on: the one cell before it is of the boundary, and the region has a line more than the rows.
    const Index first = share.begin * stride_ + 1;
    copy_bytes(reinterpret_cast<const std::byte*>(row(from, 0) + first), reinterpret_cast<std::byte*>(row(1 - from, 0) + first),
               bytes, stores);
  });
  return 2 * static_cast<std::size_t>(rows_ * stride_) * sizeof(T);
}

template <class T>
typename Jacobi<T>::Rows Jacobi<T>::share_of(int worker, std::ptrdiff_t begin, std::ptrdiff_t end) const {
  const Index count = std::max<Index>(end - begin, 0);
  return {begin + count * worker / team_.size(), begin + count * (worker + 1) / team_.size()};
}

template class Jacobi<float>;
template class Jacobi<double>;

}  // namespace nanet::stencil
