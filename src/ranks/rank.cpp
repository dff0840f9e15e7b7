// SPDX-License-Identifier: Apache-2.0
#include "ranks/rank.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "nanet/flow/clock.hpp"
#include "nanet/flow/region.hpp"
#include "nanet/setup_error.hpp"
#include "stencil/layout.hpp"
#include "stencil/passes.hpp"

namespace nanet::ranks {
namespace {

constexpr std::uint32_t kHaloRowsMax = 32;
constexpr int kExchanges = 20;                              // of a measurement
constexpr std::size_t kProbeBytes = std::size_t{64} << 20;  // of the rows swept for one

double seconds_since(std::uint64_t begin_ns) { return static_cast<double>(flow::clock_now_ns() - begin_ns) * 1e-9; }

const RankConfig& checked(const RankConfig& config) {
  const std::string which = "rank " + std::to_string(config.rank) + " of " + std::to_string(config.rank_count);
  if (config.rank_count < 1 || config.rank < 0 || config.rank >= config.rank_count)
    throw SetupError(which + " is none", "ranks are counted from 0", "give 0 to the number of ranks - 1");
  if (config.rows < 3 || config.columns < 3)
    throw SetupError("a field of " + std::to_string(config.rows) + " x " + std::to_string(config.columns) + " has no inner cell",
                     "its outermost rows and columns are boundary", "give 3 x 3 cells or more");
  const std::size_t rows_min = config.rows / static_cast<std::size_t>(config.rank_count);
  if (config.halo_rows_max < 1 || config.halo_rows_max > kHaloRowsMax || (config.rank_count > 1 && config.halo_rows_max > rows_min))
    throw SetupError("halos of " + std::to_string(config.halo_rows_max) + " rows cannot be had",
                     "1 to " + std::to_string(kHaloRowsMax) + ", and a rank has " + std::to_string(rows_min) + " rows or one more",
                     "give fewer ranks, or thinner halos");
  return config;
}

}  // namespace

RowRange rows_of_rank(std::size_t rows, int rank, int rank_count) {
  const auto at = static_cast<std::size_t>(rank), count = static_cast<std::size_t>(rank_count);
  return {rows * at / count, rows * (at + 1) / count};
}

template <class T>
std::size_t halo_bytes(const RankConfig& config) {
  return checked(config).halo_rows_max * stencil::stride_of<T>(config.columns) * sizeof(T);
}

template <class T>
struct Rank<T>::State {
  State(const RankConfig& given, Exchange& with);

  T* row(std::size_t field, std::size_t index) const {
    return origins[field] + (index - held.begin) * stride;
  }  // of the whole field
  std::span<std::byte> bytes_of(std::size_t field, RowRange rows) const;
  stencil::Part<T> part(RowRange rows, std::uint32_t sweeps) const;
  void sweep(RowRange rows, std::uint32_t sweeps, double* row_changes);
  void pass(std::uint32_t sweeps, double* row_changes);
  void send_edges(std::uint32_t halo_rows);
  void take_halos(std::uint32_t halo_rows);
  RowRange edge(Side side, std::uint32_t rows_deep) const;
  RowRange halo(Side side, std::uint32_t rows_deep) const;

  RankConfig config;
  RowRange own, held, inner;
  std::size_t stride;
  Exchange& exchange;
  std::vector<flow::Region> memory;
  std::array<T*, 2> origins{};  // cell (held.begin, 0)
  std::unique_ptr<stencil::Passes<T>> passes;
  std::vector<double> changes;  // two a row of held
  std::uint32_t halo_rows = 1;
  std::uint64_t number = 0;  // of the last exchange
  std::size_t current = 0;
};

template <class T>
Rank<T>::State::State(const RankConfig& given, Exchange& with)
    : config(checked(given)),
      own(rows_of_rank(config.rows, config.rank, config.rank_count)),
      held{own.begin - std::min<std::size_t>(own.begin, config.halo_rows_max),
           std::min<std::size_t>(own.end + config.halo_rows_max, config.rows)},
      inner{std::max<std::size_t>(own.begin, 1), std::min(own.end, config.rows - 1)},
      stride(stencil::stride_of<T>(config.columns)),
      exchange(with),
      changes(2 * (held.end - held.begin)) {
  const std::size_t bytes = stencil::field_bytes<T>(held.end - held.begin, config.columns);
  for (T*& origin : origins) {
    memory.emplace_back(
        flow::RegionConfig{.name = "rows of a rank", .bytes = bytes, .huge_pages = bytes >= flow::kHugePageBytes, .locked = false});
    origin = reinterpret_cast<T*>(memory.back().data() + stencil::kOriginBytes<T>);
  }
}

template <class T>
std::span<std::byte> Rank<T>::State::bytes_of(std::size_t field, RowRange rows) const {
  return std::as_writable_bytes(std::span(row(field, rows.begin), (rows.end - rows.begin) * stride));
}

template <class T>
stencil::Part<T> Rank<T>::State::part(RowRange rows, std::uint32_t sweeps) const {
  return {.from = origins[current],
          .to = origins[1 - current],
          .rows = held.end - held.begin,
          .row_begin = rows.begin - held.begin,
          .row_end = rows.end - held.begin,
          .sweeps = sweeps};
}

// The own rows that the neighbour has as its halo. Boundary rows of the field may be among them: they are the same in both fields.
template <class T>
RowRange Rank<T>::State::edge(Side side, std::uint32_t rows_deep) const {
  return side == Side::up ? RowRange{own.begin, own.begin + rows_deep} : RowRange{own.end - rows_deep, own.end};
}

template <class T>
RowRange Rank<T>::State::halo(Side side, std::uint32_t rows_deep) const {
  return side == Side::up ? RowRange{own.begin - rows_deep, own.begin} : RowRange{own.end, own.end + rows_deep};
}

template <class T>
void Rank<T>::State::sweep(RowRange rows, std::uint32_t sweeps, double* row_changes) {
  if (rows.begin >= rows.end) return;
  stencil::Part<T> edge_part = part(rows, sweeps);
  edge_part.changes = row_changes;
  passes->run(edge_part);
}

template <class T>
void Rank<T>::State::send_edges(std::uint32_t rows_deep) {
  ++number;
  for (const Side side : kSides)
    if (exchange.has(side)) exchange.send(side, number, bytes_of(1 - current, edge(side, rows_deep)));
}

template <class T>
void Rank<T>::State::take_halos(std::uint32_t rows_deep) {
  for (const Side side : kSides) {
    if (!exchange.has(side)) continue;
    exchange.await(side, number);
    const std::span<std::byte> to = bytes_of(1 - current, halo(side, rows_deep));
    std::memcpy(to.data(), exchange.halo(side, number, to.size()).data(), to.size());
  }
}

template <class T>
void Rank<T>::State::pass(std::uint32_t sweeps, double* row_changes) {
  RowRange middle = inner;
  if (exchange.has(Side::up)) {
    middle.begin = std::min(inner.end, own.begin + halo_rows);
    sweep({inner.begin, middle.begin}, sweeps, row_changes);
  }
  if (exchange.has(Side::down)) {
    middle.end = std::max(middle.begin, own.end - halo_rows);
    sweep({middle.end, inner.end}, sweeps, row_changes);
  }
  stencil::Part<T> rest = part(middle, sweeps);
  rest.changes = row_changes;
  if ((middle.end - middle.begin) * stride * sizeof(T) >= config.streaming_from_bytes) rest.stores = stencil::Stores::streaming;
  passes->begin(rest);
  try {
    send_edges(halo_rows);
    take_halos(halo_rows);
    // What neighbours still put here, or are still told, may need this thread.
    while (exchange.needs_serving() && !passes->is_done()) exchange.serve(1);
  } catch (...) {
    passes->finish();
    throw;
  }
  passes->finish();
  current = 1 - current;
}

template <class T>
Rank<T>::Rank(const RankConfig& config, Exchange& exchange) : state_(std::make_unique<State>(config, exchange)) {
  set_halo_rows(config.halo_rows_max);
}
template <class T>
Rank<T>::~Rank() = default;

template <class T>
RowRange Rank<T>::own() const {
  return state_->own;
}
template <class T>
RowRange Rank<T>::held() const {
  return state_->held;
}
template <class T>
RowRange Rank<T>::inner() const {
  return state_->inner;
}
template <class T>
void Rank<T>::load(const T* rows) {
  const RankConfig& config = state_->config;
  if (state_->exchange.has(Side::up) != (config.rank > 0) ||
      state_->exchange.has(Side::down) != (config.rank + 1 < config.rank_count))
    throw SetupError("rank " + std::to_string(config.rank) + " cannot begin", "its neighbours are not those that it has",
                     "connect it to the rank before and the rank after, where there is one");
  state_->current = 0;
  const std::size_t columns = config.columns;
  for (std::size_t r = state_->held.begin; r < state_->held.end; ++r)
    for (const std::size_t field : {std::size_t{0}, std::size_t{1}})
      std::copy_n(rows + (r - state_->held.begin) * columns, columns, state_->row(field, r));
}

template <class T>
void Rank<T>::store(T* rows) const {
  const std::size_t columns = state_->config.columns;
  for (std::size_t r = state_->own.begin; r < state_->own.end; ++r)
    std::copy_n(state_->row(state_->current, r), columns, rows + (r - state_->own.begin) * columns);
}

template <class T>
void Rank<T>::set_halo_rows(std::uint32_t halo_rows) {
  State& state = *state_;
  if (halo_rows < 1 || halo_rows > state.config.halo_rows_max)
    throw SetupError("halos of " + std::to_string(halo_rows) + " rows cannot be had",
                     "there is room for " + std::to_string(state.config.halo_rows_max), "give 1 or more, and at most that");
  state.halo_rows = halo_rows;
  state.passes.reset();  // its threads may be pinned where the next ones are to be
  state.passes = std::make_unique<stencil::Passes<T>>(stencil::PassesConfig{
      .columns = state.config.columns, .sweeps_per_pass = halo_rows, .tile_bytes = state.config.tile_bytes, .team = state.config.team});
}

template <class T>
void Rank<T>::run(std::uint64_t sweeps) {
  for (std::uint64_t done = 0; done < sweeps;) {
    const auto now = static_cast<std::uint32_t>(std::min<std::uint64_t>(state_->halo_rows, sweeps - done));
    state_->pass(now, nullptr);
    done += now;
  }
}

template <class T>
std::span<const double> Rank<T>::run_with_changes() {
  State& state = *state_;
  state.pass(1, state.changes.data());
  return {state.changes.data() + 2 * (state.inner.begin - state.held.begin), 2 * (state.inner.end - state.inner.begin)};
}

template <class T>
double Rank<T>::seconds_per_row(std::uint32_t sweeps) {
  set_halo_rows(sweeps);
  State& state = *state_;
  const std::size_t row_bytes = state.stride * sizeof(T);
  const RowRange rows{state.inner.begin,
                      std::min(state.inner.end, state.inner.begin + std::max<std::size_t>(kProbeBytes / row_bytes, 4 * sweeps))};
  stencil::Part<T> probe = state.part(rows, sweeps);
  if ((rows.end - rows.begin) * row_bytes >= state.config.streaming_from_bytes) probe.stores = stencil::Stores::streaming;
  double best_s = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::uint64_t begin_ns = flow::clock_now_ns();
    state.passes->run(probe);
    best_s = std::min(best_s, seconds_since(begin_ns));
  }
  // The rows at the ends are computed by both neighbours: see the model.
  return best_s / static_cast<double>(rows.end - rows.begin + sweeps - 1);
}

template <class T>
double Rank<T>::seconds_of_exchange(std::uint32_t halo_rows) {
  double best_s = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < kExchanges; ++repeat) {
    const std::uint64_t begin_ns = flow::clock_now_ns();
    state_->send_edges(halo_rows);
    state_->take_halos(halo_rows);
    best_s = std::min(best_s, seconds_since(begin_ns));
  }
  return best_s;
}

template std::size_t halo_bytes<float>(const RankConfig&);
template std::size_t halo_bytes<double>(const RankConfig&);
template class Rank<float>;
template class Rank<double>;

}  // namespace nanet::ranks
