// SPDX-License-Identifier: Apache-2.0
#include "stencil/jacobi.hpp"

#include <algorithm>
#include <string>

#include "nanet/setup_error.hpp"
#include "stencil/layout.hpp"
#include "stencil/passes.hpp"
#include "stencil/strips.hpp"

namespace nanet::stencil {
namespace {

constexpr std::size_t kSideMax = std::size_t{1} << 31;
constexpr std::size_t kCellsMax = std::size_t{1} << 44;
constexpr std::size_t kFieldOffsetBytes = 2048;  // of the second field: rows of both at one offset of a page would look alike to the store buffer

const JacobiConfig& checked(const JacobiConfig& config) {
  const std::string size = std::to_string(config.rows) + " x " + std::to_string(config.columns);
  if (config.rows == 0 || config.columns == 0 || config.rows > kSideMax || config.columns > kSideMax ||
      config.rows * config.columns > kCellsMax) {
    throw SetupError("a field of " + size + " cannot be swept", "it has no cell, or more than there is memory for",
                     "give a field of 1 x 1 cells and more that fits twice into memory");
  }
  check_sweeps_per_pass(config.sweeps_per_pass);
  return config;
}

}  // namespace

template <class T>
Jacobi<T>::Jacobi(const JacobiConfig& config)
    : config_(checked(config)),
      team_(config.team),
      rows_(static_cast<Index>(config.rows)),
      columns_(static_cast<Index>(config.columns)),
      stride_(static_cast<Index>(stride_of<T>(config.columns))),
      strips_(std::make_unique<Strips<T>>(columns_, config.sweeps_per_pass, config.tile_bytes, team_.size())),
      row_changes_(config.norm_every == 0 ? 0 : 4 * config.rows) {
  const std::size_t bytes = field_bytes<T>(config.rows, config.columns) + kFieldOffsetBytes;
  for (std::size_t field = 0; field < 2; ++field) {
    regions_.push_back(stencil_region("stencil field", bytes));
    origins_[field] = reinterpret_cast<T*>(regions_[field].data() + (field == 0 ? 0 : kFieldOffsetBytes) + kOriginBytes<T>);
  }
}

template <class T>
Jacobi<T>::~Jacobi() = default;

template <class T>
void Jacobi<T>::load(const T* field, std::uint64_t sweeps_done) {
  current_ = 0;
  sweeps_done_ = sweeps_done;
  team_.run([&](int worker) {
    const RowSpan share = share_of({0, rows_}, worker, team_.size());
    for (Index r = share.begin; r < share.end; ++r) {
      for (int copy : {0, 1}) std::copy_n(field + r * columns_, columns_, row(copy, r));
    }
  });
}

template <class T>
void Jacobi<T>::store(T* field) {
  team_.run([&](int worker) {
    const RowSpan share = share_of({0, rows_}, worker, team_.size());
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
      sweep_share(worker, from, pass, norm);
      team_.meet();
      if (pass.has_norm) {
        if (worker == 0) {  // while the others go on
          const auto inner_rows = static_cast<std::size_t>(std::max<Index>(rows_ - 2, 0));
          norms[norm] = norm_of_rows({changes_of(norm) + 2, 2 * inner_rows});
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
void Jacobi<T>::sweep_share(int worker, int from, const Pass& pass, std::size_t norm) {
  const RowSpan share = share_of({1, rows_ - 1}, worker, team_.size());
  const auto bytes = static_cast<std::size_t>(rows_ * stride_) * sizeof(T);
  const Tile<T> tile{.in = row(from, 0),
                     .out = row(1 - from, 0),
                     .stride = stride_,
                     .rows = rows_,
                     .columns = columns_,
                     .levels = Index{pass.sweeps},
                     .stores = bytes >= config_.streaming_from_bytes ? Stores::streaming : Stores::cached};
  if (pass.has_norm) {
    strips_->sweep_with_changes(tile, share, changes_of(norm));
  } else {
    strips_->sweep(worker, tile, share);
  }
}

// Two norms may be in flight at the same time.
template <class T>
double* Jacobi<T>::changes_of(std::size_t norm) {
  return row_changes_.data() + 2 * static_cast<Index>(norm % 2) * rows_;
}

template <class T>
std::size_t Jacobi<T>::copy(Stores stores) {
  const int from = current_;
  team_.run([&](int worker) {
    const RowSpan share = share_of({0, rows_}, worker, team_.size());
    const auto bytes = static_cast<std::size_t>((share.end - share.begin) * stride_) * sizeof(T);
    // From the line of column 1 on: the one cell before it is of the boundary, and the region has a line more than the rows.
    const Index first = share.begin * stride_ + 1;
    copy_bytes(reinterpret_cast<const std::byte*>(row(from, 0) + first), reinterpret_cast<std::byte*>(row(1 - from, 0) + first),
               bytes, stores);
  });
  return 2 * static_cast<std::size_t>(rows_ * stride_) * sizeof(T);
}

template class Jacobi<float>;
template class Jacobi<double>;

}  // namespace nanet::stencil
