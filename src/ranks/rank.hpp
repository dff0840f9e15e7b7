// SPDX-License-Identifier: Apache-2.0
// One rank of a field that is swept by several: it keeps its rows, and sends its edge rows to its neighbours.
//
// Rank r of n owns rows [rows * r / n, rows * (r + 1) / n) and holds up to halo_rows_max rows more on either side, its halos. A pass is up to
// halo_rows sweeps: the edges that the neighbours need are swept first, then the rest in the threads of the team, while the caller sends the edges
// and waits for the neighbours' edges of the same pass. How they go is the Exchange's. The bits are those of Jacobi over the whole field.
// docs/design/stencil.md has the protocol.
// Thread rules: one caller, which is the thread of the exchange. After the constructor and set_halo_rows() nothing here allocates (an exchange may).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ranks/exchange.hpp"
#include "stencil/jacobi.hpp"

namespace nanet::ranks {

struct RankConfig {
  std::size_t rows = 0;     // of the whole field, boundary included
  std::size_t columns = 0;  // the same
  int rank = 0;
  int rank_count = 1;
  std::uint32_t halo_rows_max = 8;   // 1 to 32, and not more than a rank has rows
  std::size_t tile_bytes = 1 << 20;  // as stencil::JacobiConfig
  std::size_t streaming_from_bytes = 32 << 20;
  stencil::TeamConfig team;
};

struct RowRange {
  std::size_t begin;
  std::size_t end;
};

RowRange rows_of_rank(std::size_t rows, int rank, int rank_count);

// Of the largest halo, as an exchange needs to know. Throws SetupError where the configuration cannot be.
template <class T>  // float, double
std::size_t halo_bytes(const RankConfig& config);

template <class T>
class Rank {
 public:
  // The exchange outlives it. Throws SetupError.
  Rank(const RankConfig& config, Exchange& exchange);
  ~Rank();

  RowRange own() const;   // rows of the whole field
  RowRange held() const;  // with halos

  // Rows held() of the field, without gaps; store() gives those of own(). Throws SetupError if the exchange has not the neighbours of this rank.
  void load(const T* rows);
  void store(T* rows) const;

  // Sweeps between two exchanges. All ranks the same, before run().
  void set_halo_rows(std::uint32_t halo_rows);

  // Throws TransferError.
  void run(std::uint64_t sweeps);
  // One sweep; what it changed, two values for each of inner(): see stencil::norm_of_rows.
  std::span<const double> run_with_changes();
  RowRange inner() const;  // own(), without the boundary of the field

  // What the model of docs/design/stencil.md is made from. Before run(); all ranks at the same time.
  double seconds_per_row(std::uint32_t sweeps);         // of one pass of so many sweeps, by this rank's team
  double seconds_of_exchange(std::uint32_t halo_rows);  // with nothing to hide it; the quickest of a few. Throws TransferError

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template std::size_t halo_bytes<float>(const RankConfig&);
extern template std::size_t halo_bytes<double>(const RankConfig&);
extern template class Rank<float>;
extern template class Rank<double>;

}  // namespace nanet::ranks
