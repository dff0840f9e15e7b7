// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "nanet/flow/clock.hpp"
#include "nanet/flow/region.hpp"
#include "nanet/flow/wait.hpp"
#include "nanet/rdma/connection.hpp"
#include "nanet/setup_error.hpp"
#include "stencil/layout.hpp"
#include "stencil/passes.hpp"
#include "tiles/moved_tile.hpp"

namespace nanet::tiles {
namespace {

constexpr std::uint32_t kSweepsMax = 32;

// Adds the time of its life to `sum`.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum_s) : sum_s_(sum_s), begin_ns_(flow::clock_now_ns()) {}
  ~Stopwatch() { sum_s_ += static_cast<double>(flow::clock_now_ns() - begin_ns_) * 1e-9; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_s_;
  std::uint64_t begin_ns_;
};

// Memory for some rows of the tile's layout.
template <class T>
class Rows {
 public:
  Rows(std::size_t rows, std::size_t columns) : stride_(stencil::stride_of<T>(columns)), memory_(config(rows, columns)) {
    std::memset(memory_.data(), 0, memory_.bytes());  // every page is there before a clock runs
  }
  T* row(std::size_t index) const { return reinterpret_cast<T*>(memory_.data() + stencil::kOriginBytes<T>) + index * stride_; }
  std::span<std::byte> bytes(std::size_t row_begin, std::size_t row_count) const {
    return std::as_writable_bytes(std::span(row(row_begin), row_count * stride_));
  }

 private:
  static flow::RegionConfig config(std::size_t rows, std::size_t columns) {
    const std::size_t bytes = stencil::field_bytes<T>(rows, columns);
    return {.name = "rows of a tile", .bytes = bytes, .huge_pages = bytes >= flow::kHugePageBytes, .locked = false};
  }
  std::size_t stride_;
  flow::Region memory_;
};

}  // namespace

template <class T>
struct Mover<T>::State {
  // Chunk c is rows [c * chunk_rows, ...) of the tile. Its window holds them after the 2 * sweeps rows before them; what is swept from it are
  // the rows from `sweeps` before the chunk to `sweeps` before its end, or to the end of the tile.
  struct Chunk {
    std::size_t begin, end;              // rows of the tile that are got
    std::size_t window_begin;            // the first row of the tile that the window holds
    std::size_t swept_begin, swept_end;  // rows of the tile that are put: never the boundary
  };
  struct Window {
    Rows<T> in, out;
  };

  explicit State(const MoverConfig& given);
  void get(std::size_t row, std::span<std::byte> to);
  void put(std::size_t row, std::span<const std::byte> from);
  void check(rdma::Status status, const char* what);
  std::size_t offset(std::size_t row) const { return stencil::kOriginBytes<T> + row * stride * sizeof(T); }
  stencil::Passes<T>& passes(std::uint32_t sweeps);

  void move(std::uint64_t sweeps, MoveTimes& times);
  std::size_t sweep_whole(std::uint64_t sweeps);
  void prepare_stream(std::uint32_t sweeps);
  void stream(std::uint32_t sweeps, MoveTimes& times);
  void transfer_step(std::size_t step, std::uint32_t sweeps, MoveTimes& times);
  void transfer_alone(std::uint32_t sweeps, MoveTimes& times);
  std::size_t chunk_count() const { return (config.rows + chunk_rows - 1) / chunk_rows; }
  Chunk chunk(std::size_t index, std::uint32_t sweeps) const;
  Window& window(std::size_t index) { return windows[index % 2]; }
  std::size_t place(const Chunk& of, std::size_t row) const {
    return row - of.begin + lead_rows;
  }  // of a row of the tile in its window
  void carry(std::size_t index, std::uint32_t sweeps);
  stencil::Part<T> part(std::size_t index, std::uint32_t sweeps);
  void set_sides(std::size_t index, std::uint32_t sweeps);

  MoverConfig config;
  std::size_t stride;
  rdma::Worker worker;
  rdma::Connection connection;
  std::unique_ptr<stencil::Passes<T>> made_passes;
  std::uint32_t made_for_sweeps = 0;
  std::vector<Rows<T>> whole;  // two, for move()
  std::vector<Window> windows;
  std::size_t chunk_rows = 0, lead_rows = 0;
};

template <class T>
Mover<T>::State::State(const MoverConfig& given)
    : config(given),
      stride(stencil::stride_of<T>(config.columns)),
      worker({.transports = config.transports, .address = config.owner.address, .trust_network = config.trust_network}),
      connection(worker, {.address = config.owner.address,
                          .port = config.owner.port,
                          .region = "tile",
                          .token = config.token,
                          .timeout_ms = config.timeout_ms}) {
  const std::string size = std::to_string(config.rows) + " x " + std::to_string(config.columns);
  if (config.rows < 3 || config.columns < 3)
    throw SetupError("a tile of " + size + " has no inner cell", "its outermost rows and columns are boundary",
                     "give 3 x 3 cells or more");
  if (connection.bytes() != stencil::field_bytes<T>(config.rows, config.columns))
    throw SetupError("the owner's tile is not " + size, "it has " + std::to_string(connection.bytes()) + " bytes",
                     "give the shape and type that the owner has");
}

template <class T>
void Mover<T>::State::check(rdma::Status status, const char* what) {
  if (status == rdma::Status::ok) return;
  throw TransferError("rows of the tile cannot be " + std::string(what) + " (" + std::string(rdma::name(status)) + ": " +
                      connection.error() + ") look at why its owner ended, or give a longer timeout");
}

template <class T>
void Mover<T>::State::get(std::size_t row, std::span<std::byte> to) {
  check(connection.get(offset(row), to), "got");
}

// Done when it is in the owner's memory.
template <class T>
void Mover<T>::State::put(std::size_t row, std::span<const std::byte> from) {
  check(connection.put(offset(row), from), "put");
  check(connection.flush(), "put");
}

template <class T>
stencil::Passes<T>& Mover<T>::State::passes(std::uint32_t sweeps) {
  if (made_for_sweeps != sweeps) {
    made_passes.reset();  // its threads may be pinned where the next ones are to be
    made_passes = std::make_unique<stencil::Passes<T>>(stencil::PassesConfig{
        .columns = config.columns, .sweeps_per_pass = sweeps, .tile_bytes = config.tile_bytes, .team = config.team});
    made_for_sweeps = sweeps;
  }
  return *made_passes;
}

template <class T>
Mover<T>::Mover(const MoverConfig& config) : state_(std::make_unique<State>(config)) {}
template <class T>
Mover<T>::~Mover() = default;

template <class T>
std::string Mover<T>::path() const {
  return state_->connection.path().text();
}

template <class T>
MoveTimes Mover<T>::move(std::uint64_t sweeps) {
  State& state = *state_;
  while (state.whole.size() < 2) state.whole.emplace_back(state.config.rows, state.config.columns);
  state.passes(state.config.sweeps_per_pass);
  MoveTimes times;
  {
    const Stopwatch total(times.total_s);
    state.move(sweeps, times);
  }
  return times;
}

template <class T>
void Mover<T>::State::move(std::uint64_t sweeps, MoveTimes& times) {
  {
    const Stopwatch in(times.in_s);
    get(0, whole[0].bytes(0, config.rows));
  }
  std::size_t last = 0;
  {
    const Stopwatch compute(times.compute_s);
    last = sweep_whole(sweeps);
  }
  const Stopwatch out(times.out_s);
  put(0, whole[last].bytes(0, config.rows));
}

// Which of the two fields has the result.
template <class T>
std::size_t Mover<T>::State::sweep_whole(std::uint64_t sweeps) {
  const std::size_t rows = config.rows, columns = config.columns;
  const bool is_large = rows * stride * sizeof(T) >= config.streaming_from_bytes;
  for (const std::size_t r : {std::size_t{0}, rows - 1}) std::copy_n(whole[0].row(r), columns, whole[1].row(r));
  for (std::size_t r = 1; r + 1 < rows; ++r)
    for (const std::size_t c : {std::size_t{0}, columns - 1}) whole[1].row(r)[c] = whole[0].row(r)[c];
  std::size_t current = 0;
  for (std::uint64_t done = 0; done < sweeps; current = 1 - current) {
    const auto now = static_cast<std::uint32_t>(std::min<std::uint64_t>(config.sweeps_per_pass, sweeps - done));
    passes(config.sweeps_per_pass)
        .run({.from = whole[current].row(0),
              .to = whole[1 - current].row(0),
              .rows = rows,
              .row_begin = 1,
              .row_end = rows - 1,
              .sweeps = now,
              .stores = is_large ? stencil::Stores::streaming : stencil::Stores::cached});
    done += now;
  }
  return current;
}

template <class T>
void Mover<T>::State::prepare_stream(std::uint32_t sweeps) {
  if (sweeps < 1 || sweeps > kSweepsMax)
    throw SetupError(std::to_string(sweeps) + " sweeps cannot be streamed", "a chunk's rows are swept at once: 1 to 32",
                     "give 1 to 32, or stream more than once");
  const std::size_t wanted = std::max<std::size_t>(config.chunk_bytes / (stride * sizeof(T)), 1);
  const std::size_t rows = std::max<std::size_t>(wanted, 2 * sweeps);  // what is carried over is of one chunk
  if (rows == chunk_rows && 2 * sweeps == lead_rows) return;
  chunk_rows = rows;
  lead_rows = 2 * sweeps;
  windows.clear();
  for (int k = 0; k < 2; ++k)
    windows.push_back({Rows<T>(lead_rows + chunk_rows, config.columns), Rows<T>(lead_rows + chunk_rows, config.columns)});
}

template <class T>
typename Mover<T>::State::Chunk Mover<T>::State::chunk(std::size_t index, std::uint32_t sweeps) const {
  const std::size_t begin = index * chunk_rows, end = std::min(begin + chunk_rows, config.rows);
  const bool is_last = end == config.rows;
  return {.begin = begin,
          .end = end,
          .window_begin = index == 0 ? 0 : begin - lead_rows,
          .swept_begin = index == 0 ? 1 : begin - sweeps,
          .swept_end = is_last ? config.rows - 1 : end - sweeps};
}

// The last rows of the chunk before, whole by now, to the head of this window.
template <class T>
void Mover<T>::State::carry(std::size_t index, std::uint32_t sweeps) {
  const Chunk before = chunk(index - 1, sweeps);
  const std::span<const std::byte> tail = window(index - 1).in.bytes(place(before, before.end) - lead_rows, lead_rows);
  std::memcpy(window(index).in.bytes(0, lead_rows).data(), tail.data(), tail.size());
}

template <class T>
stencil::Part<T> Mover<T>::State::part(std::size_t index, std::uint32_t sweeps) {
  const Chunk now = chunk(index, sweeps);
  const std::size_t first = place(now, now.window_begin);
  return {.from = window(index).in.row(first),
          .to = window(index).out.row(first),
          .rows = now.end - now.window_begin,
          .row_begin = now.swept_begin - now.window_begin,
          .row_end = std::max(now.swept_end, now.swept_begin) - now.window_begin,
          .sweeps = sweeps};
}

// Whole rows are put: the boundary columns are those that came.
template <class T>
void Mover<T>::State::set_sides(std::size_t index, std::uint32_t sweeps) {
  const Chunk now = chunk(index, sweeps);
  for (std::size_t r = now.swept_begin; r < now.swept_end; ++r)
    for (const std::size_t c : {std::size_t{0}, config.columns - 1})
      window(index).out.row(place(now, r))[c] = window(index).in.row(place(now, r))[c];
}

template <class T>
MoveTimes Mover<T>::stream(std::uint32_t sweeps) {
  state_->prepare_stream(sweeps);
  state_->passes(sweeps);
  MoveTimes times;
  {
    const Stopwatch total(times.total_s);
    state_->stream(sweeps, times);
  }
  return times;
}

// In step k chunk k comes in, chunk k - 1 is swept, chunk k - 2 goes out.
template <class T>
void Mover<T>::State::stream(std::uint32_t sweeps, MoveTimes& times) {
  const std::size_t count = chunk_count();
  for (std::size_t step = 0; step < count + 2; ++step) {
    if (step >= 1 && step < count) carry(step, sweeps);
    const bool has_sweeps = step >= 1 && step - 1 < count;
    if (has_sweeps) passes(sweeps).begin(part(step - 1, sweeps));
    try {
      transfer_step(step, sweeps, times);
    } catch (...) {
      passes(sweeps).finish();
      throw;
    }
    const Stopwatch compute(times.compute_s);
    if (!has_sweeps) continue;
    for (std::uint32_t spin = 0; spin < config.team.spins_max && !passes(sweeps).is_done(); ++spin) flow::cpu_relax();
    passes(sweeps).finish();
    set_sides(step - 1, sweeps);
  }
}

template <class T>
void Mover<T>::State::transfer_step(std::size_t step, std::uint32_t sweeps, MoveTimes& times) {
  if (step < chunk_count()) {
    const Stopwatch in(times.in_s);
    const Chunk now = chunk(step, sweeps);
    get(now.begin, window(step).in.bytes(lead_rows, now.end - now.begin));
  }
  if (step < 2) return;
  const Stopwatch out(times.out_s);
  const Chunk swept = chunk(step - 2, sweeps);
  if (swept.swept_begin >= swept.swept_end) return;
  const std::size_t row_count = swept.swept_end - swept.swept_begin;
  put(swept.swept_begin, window(step).out.bytes(place(swept, swept.swept_begin), row_count));
}

template <class T>
MoveTimes Mover<T>::stream_transfer_alone(std::uint32_t sweeps) {
  state_->prepare_stream(sweeps);
  MoveTimes times;
  {
    const Stopwatch total(times.total_s);
    state_->transfer_alone(sweeps, times);
  }
  return times;
}

template <class T>
void Mover<T>::State::transfer_alone(std::uint32_t sweeps, MoveTimes& times) {
  for (std::size_t index = 0; index < chunk_count(); ++index) {
    const Chunk now = chunk(index, sweeps);
    const std::span<std::byte> bytes = window(index).in.bytes(lead_rows, now.end - now.begin);
    {
      const Stopwatch in(times.in_s);
      get(now.begin, bytes);
    }
    const Stopwatch out(times.out_s);
    put(now.begin, bytes);
  }
}

template class Mover<float>;
template class Mover<double>;

}  // namespace nanet::tiles
