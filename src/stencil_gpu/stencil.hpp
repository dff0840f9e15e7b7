// SPDX-License-Identifier: Apache-2.0
// Five-point Jacobi sweeps on GPUs: the formula, and the bits, of stencil/jacobi.hpp.
//
// Jacobi: the field stays in the memory of one GPU or of several, which share its rows and hand one another the rows at the seams.
// JacobiTile: the field lies in memory of the host, goes through a GPU and comes back, in one piece or in chunks of rows.
//
// Errors: SetupError, problem (why) suggestion; also when a GPU fails while it sweeps. After a failure the object can only be destroyed.
// Thread rules: one thread per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "stencil/jacobi.hpp"

namespace nanet::gpu {

inline constexpr std::uint32_t kSweepsPerPassMax = 8;

struct JacobiConfig {
  std::size_t rows = 0;               // boundary included, 1 to 2^30
  std::size_t columns = 0;            // the same
  std::uint32_t sweeps_per_pass = 8;  // 1 to 8 sweeps each time the field goes through memory; more need more work at seams of tiles
  std::uint64_t norm_every = 0;  // a norm after every so many sweeps; 0: none. Such a sweep is a pass of its own, and reads both fields again
  std::vector<int> devices = {0};  // GPUs as CUDA counts them, a share of the rows for each; one may be named twice (for tests)
  std::uint32_t band_rows = 0;  // rows that a warp goes through; 0: chosen. Too few: rows computed twice; too many: idle multiprocessors
};

// What a copy of the field within device memory moved and how long it took: bytes read plus bytes written, as STREAM counts them.
struct CopyTime {
  std::size_t bytes;
  double seconds;  // of the GPU that took longest
};

template <class T>  // float, double
class Jacobi {
 public:
  explicit Jacobi(const JacobiConfig& config);
  ~Jacobi();
  Jacobi(const Jacobi&) = delete;
  Jacobi& operator=(const Jacobi&) = delete;

  // rows x columns, row-major, without gaps, anywhere in the host's memory. Sweeps are counted from here.
  void load(const T* field);
  void store(T* field) const;

  // How many norms run(sweeps) writes.
  std::size_t norm_count(std::uint64_t sweeps) const;

  // Returns when all is done. `norms` has norm_count(sweeps) places; they have the bits of stencil::Jacobi's.
  void run(std::uint64_t sweeps, std::span<stencil::ChangeNorm> norms);

  // Copies the field into the memory of the other one; the field stays as it is.
  CopyTime copy();

  // How rows at the seams go from GPU to GPU: true if directly, false if through the host (or there is only one GPU).
  bool is_direct() const;

  std::uint64_t sweeps_done() const;
  const JacobiConfig& config() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

struct JacobiTileConfig {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::uint32_t sweeps_per_pass = 8;
  int device = 0;
  std::size_t chunk_bytes = 0;  // what is in flight at a time when streaming; 0: chosen. Too big: long ends of the pipe; too small: many launches
};

// Each from the first of its kind to begin to the last to end. When streaming they overlap: their sum is more than the total.
struct TileTimes {
  double in_seconds;
  double compute_seconds;
  double out_seconds;
  double total_seconds;
};

template <class T>
class JacobiTile {
 public:
  // tile: rows x columns, row-major, without gaps, in the host's memory, which is pinned for as long as this lives.
  JacobiTile(const JacobiTileConfig& config, std::span<T> tile);
  ~JacobiTile();
  JacobiTile(const JacobiTile&) = delete;
  JacobiTile& operator=(const JacobiTile&) = delete;

  // The whole tile in, swept, the whole tile out.
  TileTimes move_sweep_move(std::uint64_t sweeps);

  // The same in chunks of rows: one is coming in, others are swept, one is going out.
  TileTimes stream(std::uint64_t sweeps);

  // The transfers' own time: the tile in and out at the same time, in the chunks of stream(), neither waiting for the other. The tile stays as it is.
  TileTimes transfer();

 private:
  struct Pipeline;
  std::unique_ptr<Pipeline> pipeline_;
};

extern template class Jacobi<float>;
extern template class Jacobi<double>;
extern template class JacobiTile<float>;
extern template class JacobiTile<double>;

}  // namespace nanet::gpu
