// SPDX-License-Identifier: Apache-2.0
// One rank of a field that is swept by several processes: it keeps its rows, and puts its edge rows into its neighbours' memory.
//
// Rank r of n owns rows [rows * r / n, rows * (r + 1) / n) and holds up to halo_rows_max rows more on either side, its halos. A pass is up to
// halo_rows sweeps: the edges that the neighbours need are swept first, then the rest in the threads of the team, while the caller puts the edges,
// flushes, writes the number of the pass after them, and waits for the neighbours' edges of the same pass. The bits are those of Jacobi over the
// whole field. docs/design/stencil.md has the protocol.
// Thread rules: one caller, which is the thread of the worker of nanet::rdma. After connect() nothing here allocates (UCX may).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "stencil/jacobi.hpp"

namespace nanet::tiles {

// A neighbour or an owner is gone, or did not answer in time: the run is over.
class TransferError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct RankConfig {
  std::size_t rows = 0;     // of the whole field, boundary included
  std::size_t columns = 0;  // the same
  int rank = 0;
  int rank_count = 1;
  std::uint32_t halo_rows_max = 8;    // 1 to 32, and not more than a rank has rows
  std::string address = "127.0.0.1";  // where the neighbours reach this rank
  std::string transports;             // as rdma::WorkerConfig
  bool trust_network = false;         // likewise
  std::uint64_t token = 0;            // the same for all ranks of a run
  std::uint32_t timeout_ms = 30000;   // for a neighbour to connect, or to send its edge; too short: a slow neighbour ends the run
  std::size_t tile_bytes = 1 << 20;   // as stencil::JacobiConfig
  std::size_t streaming_from_bytes = 32 << 20;
  stencil::TeamConfig team;
};

struct Neighbour {
  std::string address;
  std::uint16_t port = 0;
};

struct RowRange {
  std::size_t begin;
  std::size_t end;
};

RowRange rows_of_rank(std::size_t rows, int rank, int rank_count);

template <class T>  // float, double
class Rank {
 public:
  explicit Rank(const RankConfig& config);  // throws SetupError
  ~Rank();

  std::uint16_t port() const;  // where it listens
  RowRange own() const;        // rows of the whole field
  RowRange held() const;       // with halos

  // To the ranks before and after this one, which listen already; all ranks at the same time. Throws SetupError.
  void connect(const std::optional<Neighbour>& up, const std::optional<Neighbour>& down);
  // How data goes to a neighbour, such as "posix/memory (one-sided)"; empty without one.
  std::string path() const;

  // Rows held() of the field, without gaps; store() gives those of own().
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

  // Serves the neighbours, and sleeps at most that long if they want nothing. To be called while this rank waits for anything else: over TCP
  // they cannot go on without. One that is gone is not noticed here: at the end of a run others may leave first.
  void serve(std::uint32_t sleep_ms);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class Rank<float>;
extern template class Rank<double>;

}  // namespace nanet::tiles
