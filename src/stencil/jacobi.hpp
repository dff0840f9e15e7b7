// SPDX-License-Identifier: Apache-2.0
// Five-point Jacobi sweeps over a field in memory: every inner cell becomes the mean of its four neighbours, the boundary stays.
//
//   new[i][j] = ((old[i-1][j] + old[i+1][j]) + old[i][j-1] + old[i][j+1]) / 4     additions from left to right, each rounded once
//
// The outermost rows and columns are the boundary; a field with fewer than three of either has no inner cell. The bits of the result depend on
// the field and the number of sweeps alone: not on the instruction set, the threads, or how many sweeps go through memory at once.
// Memory: two fields and a little per thread, all taken by the constructor; nothing is allocated while sweeping.
// Thread rules: one caller; the work is done by a Team.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nanet/flow/region.hpp"
#include "stencil/team.hpp"

namespace nanet::stencil {

// How results reach memory: through the caches, or past them (no read of what is overwritten).
enum class Stores : std::uint8_t { cached, streaming };

struct JacobiConfig {
  std::size_t rows = 0;     // boundary included, at least 1
  std::size_t columns = 0;  // boundary included, at least 1
  std::uint32_t sweeps_per_pass = 4;  // 1 to 32 sweeps each time the field goes through memory: too many, and the rows between leave the cache
  std::uint64_t norm_every = 0;  // a norm after every so many sweeps; 0: none. Such a sweep is a pass of its own
  std::size_t tile_bytes = 1 << 20;  // what a thread may keep in its cache: half of L2. Too big: misses; too small: more cells computed twice
  std::size_t streaming_from_bytes = 32 << 20;  // of one field: a field that stays in a cache is better stored there
  TeamConfig team;
};

// What one sweep changed: max |new - old| and sqrt(sum (new - old)^2) over the inner cells, in fp64, in an order that is always the same.
// Both are NaN if a difference is.
struct ChangeNorm {
  std::uint64_t sweep;  // counted from load() on
  double max;
  double l2;
};

template <class T>
class Strips;

template <class T>  // float, double
class Jacobi {
 public:
  explicit Jacobi(const JacobiConfig& config);  // throws SetupError
  ~Jacobi();

  // rows x columns, row-major, without gaps. Sweeps are counted on from `sweeps_done`.
  void load(const T* field, std::uint64_t sweeps_done = 0);
  void store(T* field);

  // How many norms run(sweeps) writes.
  std::size_t norm_count(std::uint64_t sweeps) const;

  // `norms` has norm_count(sweeps) places.
  void run(std::uint64_t sweeps, std::span<ChangeNorm> norms);

  // Copies the field onto the memory of the other one with the same threads; returns bytes read plus bytes written, as STREAM counts them.
  std::size_t copy(Stores stores);

  std::uint64_t sweeps_done() const { return sweeps_done_; }
  const JacobiConfig& config() const { return config_; }

 private:
  struct Pass {
    std::uint32_t sweeps;
    bool has_norm;
  };

  Pass next_pass(std::uint64_t done, std::uint64_t left) const;
  void sweep_share(int worker, int from, const Pass& pass, std::size_t norm);
  double* changes_of(std::size_t norm);
  T* row(int field, std::ptrdiff_t index) const { return origins_[static_cast<std::size_t>(field)] + index * stride_; }

  JacobiConfig config_;
  Team team_;
  std::ptrdiff_t rows_;
  std::ptrdiff_t columns_;
  std::ptrdiff_t stride_;  // cells
  std::unique_ptr<Strips<T>> strips_;
  std::vector<flow::Region> regions_;
  std::array<T*, 2> origins_{};
  std::vector<double> row_changes_;  // [2][rows][max, square sum]: two norms may be in flight
  int current_ = 0;
  std::uint64_t sweeps_done_ = 0;
};

extern template class Jacobi<float>;
extern template class Jacobi<double>;

}  // namespace nanet::stencil
