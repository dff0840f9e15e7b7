// SPDX-License-Identifier: Apache-2.0
// Passes over parts of fields whose memory is someone else's: what ranks and moved tiles are swept with.
//
// A part is begun, goes on in the threads of a team while the caller does something else, and is finished. The bits are those of Jacobi.
// Thread rules: one caller. Memory: rows between, per thread, taken by the constructor; nothing is allocated while sweeping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "stencil/jacobi.hpp"

namespace nanet::stencil {

struct PassesConfig {
  std::size_t columns = 0;            // boundary included
  std::uint32_t sweeps_per_pass = 4;  // 1 to 32, at most, of a part
  std::size_t tile_bytes = 1 << 20;   // as in JacobiConfig
  TeamConfig team;
};

// Rows [row_begin, row_end) of the inner rows of a field, taken `sweeps` sweeps on from `from` to `to`, both of the layout of layout.hpp. Rows
// and columns at the edge of the field are boundary. Reads up to `sweeps` rows above and below; writes the inner cells of its rows only.
template <class T>
struct Part {
  const T* from;  // cell (0, 0)
  T* to;
  std::size_t rows;  // of the field
  std::size_t row_begin;
  std::size_t row_end;
  std::uint32_t sweeps = 1;
  Stores stores = Stores::cached;
  double* changes = nullptr;  // of one sweep only: two a row of the field, largest change and sum of the squares; see norm_of_rows
};

template <class T>  // float, double
class Passes {
 public:
  explicit Passes(const PassesConfig& config);  // throws SetupError
  ~Passes();

  void begin(const Part<T>& part);  // none is in flight
  bool is_done() const;
  void finish();  // sleeps until it is done
  void run(const Part<T>& part) {
    begin(part);
    finish();
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class Passes<float>;
extern template class Passes<double>;

// The norm of a sweep from the changes of its inner rows, two values a row, added in this order. `sweep` is 0.
ChangeNorm norm_of_rows(std::span<const double> changes);

}  // namespace nanet::stencil
