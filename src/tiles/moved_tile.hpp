// SPDX-License-Identifier: Apache-2.0
// A tile that lies in another process: its owner exposes it, a mover gets it, sweeps it and puts it back.
//
// Owner and mover agree on the layout of stencil/layout.hpp, so that any rows are one transfer. move() takes the whole tile in, sweeps
// it, and puts the whole tile back, one after the other; stream() does so in chunks of rows, the transfers beside the sweeps. The bits are those
// of stencil::Jacobi. The tile is changed in place: an operation that fails leaves it half old, half new.
// Thread rules: one caller each, which is the thread of its worker of nanet::rdma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ranks/exchange.hpp"
#include "stencil/jacobi.hpp"
#include "tiles/neighbour.hpp"

namespace nanet::tiles {

using ranks::TransferError;

struct OwnerConfig {
  std::size_t rows = 0;  // boundary included
  std::size_t columns = 0;
  std::string address = "127.0.0.1";
  std::string transports;  // as rdma::WorkerConfig
  bool trust_network = false;
  std::uint64_t token = 0;
};

template <class T>  // float, double
class Owner {
 public:
  explicit Owner(const OwnerConfig& config);  // throws SetupError
  ~Owner();

  std::uint16_t port() const;
  // Rows [row_begin, row_begin + row_count) from or to `cells`, without gaps.
  void load(const T* cells, std::size_t row_begin, std::size_t row_count);
  void store(T* cells, std::size_t row_begin, std::size_t row_count) const;
  void serve(std::uint32_t sleep_ms);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct MoverConfig {
  std::size_t rows = 0;  // as the owner's
  std::size_t columns = 0;
  Neighbour owner;
  std::string transports;
  bool trust_network = false;
  std::uint64_t token = 0;
  std::uint32_t timeout_ms = 30000;  // of each transfer of a chunk, or of a whole tile
  std::size_t chunk_bytes = 4 << 20;  // of stream(): too large: it leaves the cache, and the first and last wait longer; too small: more waiting
  std::uint32_t sweeps_per_pass = 4;  // of move()
  std::size_t tile_bytes = 1 << 20;   // as stencil::JacobiConfig
  std::size_t streaming_from_bytes = 32 << 20;
  stencil::TeamConfig team;  // with spins_max the caller waits for the sweeps too, before it sleeps: give many if it has a core of its own
};

// Of one round trip.
struct MoveTimes {
  double in_s = 0.0;
  double compute_s = 0.0;  // of stream(): what the transfers did not hide
  double out_s = 0.0;
  double total_s = 0.0;
};

template <class T>
class Mover {
 public:
  explicit Mover(const MoverConfig& config);  // connects; throws SetupError
  ~Mover();

  std::string path() const;
  // Each throws TransferError, stream() with 1 to 32 sweeps also SetupError. The memory for the whole tile, twice, is taken by the first move().
  MoveTimes move(std::uint64_t sweeps);
  MoveTimes stream(std::uint32_t sweeps);
  // What stream() would transfer, in the same chunks through the same memory, with nothing swept: the tile stays as it is.
  MoveTimes stream_transfer_alone(std::uint32_t sweeps);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class Owner<float>;
extern template class Owner<double>;
extern template class Mover<float>;
extern template class Mover<double>;

}  // namespace nanet::tiles
