// SPDX-License-Identifier: Apache-2.0
// The tile that goes through a GPU. Streaming, chunk c of C rows is taken on as far as what is there allows: after passes of S sweeps in all that is up to row
// (c+1) C - S, since the rows below are not there yet.
//
//   chunk c arrives, in field 0         rows c C      ... (c+1) C - 1
//   pass 1, field 0 -> field 1          rows c C - S1 ... (c+1) C - S1 - 1
//   pass 2, field 1 -> field 0          rows c C - S2 ... (c+1) C - S2 - 1
//   the last pass's rows leave          rows c C - S  ... (c+1) C - S - 1
//
// A pass writes over rows that the pass before it in the other field, and the next chunk's turn of that one, no longer reads, as long as no pass has fewer
// sweeps than the one before it: so the pass that has what is left over comes first.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gpu/cuda_types.hpp"
#include "nanet/setup_error.hpp"
#include "stencil_gpu/part.hpp"
#include "stencil_gpu/stencil.hpp"

namespace nanet::gpu {
namespace {

constexpr std::size_t kChunkRowsMin = 16;
// Chosen: this part of the tile, within these limits.
constexpr std::size_t kChunks = 32;
constexpr std::size_t kChunkBytesMin = std::size_t{4} << 20;
constexpr std::size_t kChunkBytesMax = std::size_t{64} << 20;

// Begin and end of one kind of work on one stream.
struct Span {
  Event begin;
  Event end;
  double seconds() const { return end.seconds_since(begin); }
};

}  // namespace

template <class T>
struct JacobiTile<T>::Pipeline {
  Pipeline(const JacobiTileConfig& wanted, std::span<T> memory);

  TileTimes move(std::uint64_t sweeps, std::int32_t rows_a_chunk);
  TileTimes transfer();

  RowRange chunk(std::int64_t index, std::int64_t rows_a_chunk) const;
  RowRange swept(RowRange chunk, std::uint64_t sweeps) const;
  std::vector<std::uint32_t> passes(std::uint64_t sweeps) const;
  int sweep_chunk(RowRange chunk, const std::vector<std::uint32_t>& list) const;
  void begin();
  TileTimes end();

  JacobiTileConfig config;
  std::int32_t rows;
  std::int32_t chunk_rows;
  std::int32_t chunk_count;
  T* tile;
  Registration pinned;
  FieldPart<T> field;
  WorkStream in{WorkStream::Priority::normal};
  WorkStream compute{WorkStream::Priority::normal};
  WorkStream out{WorkStream::Priority::normal};
  std::vector<Milestone> arrived;
  std::vector<Milestone> done;
  Milestone begun;
  Milestone ended;
  Span in_span, compute_span, out_span, total;
};

namespace {

template <class T>
const JacobiTileConfig& checked(const JacobiTileConfig& config, std::span<T> tile) {
  check_field(config.rows, config.columns, config.sweeps_per_pass);
  if (tile.size() != config.rows * config.columns) {
    throw SetupError("a tile of " + std::to_string(tile.size()) + " cells cannot be swept",
                     "it is said to have " + std::to_string(config.rows) + " x " + std::to_string(config.columns),
                     "give its rows and columns");
  }
  return config;
}

template <class T>
std::int32_t chunk_rows_of(const JacobiTileConfig& config) {
  const std::size_t row_bytes = config.columns * sizeof(T);
  const std::size_t chosen = std::clamp(config.rows * row_bytes / kChunks, kChunkBytesMin, kChunkBytesMax);
  const std::size_t fitting = (config.chunk_bytes != 0 ? config.chunk_bytes : chosen) / row_bytes;
  return static_cast<std::int32_t>(std::clamp<std::size_t>(fitting, std::min<std::size_t>(kChunkRowsMin, config.rows), config.rows));
}

}  // namespace

template <class T>
JacobiTile<T>::Pipeline::Pipeline(const JacobiTileConfig& wanted, std::span<T> memory)
    : config(checked(wanted, memory)),
      rows(static_cast<std::int32_t>(config.rows)),
      chunk_rows(chunk_rows_of<T>(config)),
      chunk_count((rows + chunk_rows - 1) / chunk_rows),
      tile(memory.data()),
      pinned(std::as_writable_bytes(memory), "the tile"),
      field(rows, static_cast<std::int32_t>(config.columns), {0, rows}),
      arrived(static_cast<std::size_t>(chunk_count)),
      done(static_cast<std::size_t>(chunk_count)) {}

template <class T>
JacobiTile<T>::JacobiTile(const JacobiTileConfig& config, std::span<T> tile) {
  check_device(config.device);
  const CurrentDevice current(config.device);
  pipeline_ = std::make_unique<Pipeline>(config, tile);
}

template <class T>
JacobiTile<T>::~JacobiTile() = default;

template <class T>
TileTimes JacobiTile<T>::move_sweep_move(std::uint64_t sweeps) {
  return pipeline_->move(sweeps, pipeline_->rows);
}

template <class T>
TileTimes JacobiTile<T>::stream(std::uint64_t sweeps) {
  return pipeline_->move(sweeps, pipeline_->chunk_rows);
}

template <class T>
TileTimes JacobiTile<T>::transfer() {
  return pipeline_->transfer();
}

template <class T>
TileTimes JacobiTile<T>::Pipeline::move(std::uint64_t sweeps, std::int32_t rows_a_chunk) {
  const CurrentDevice current(config.device);
  const std::vector<std::uint32_t> list = passes(sweeps);
  begin();
  for (std::int32_t c = 0; c * std::int64_t{rows_a_chunk} < rows; ++c) {
    const RowRange here = chunk(c, rows_a_chunk);
    const auto index = static_cast<std::size_t>(c);
    field.copy_in(0, here, tile, in.get());
    arrived[index].mark(in.get());
    arrived[index].hold(compute.get());
    if (c == 0) compute_span.begin.record(compute.get());
    const int last = sweep_chunk(here, list);
    done[index].mark(compute.get());
    done[index].hold(out.get());
    if (c == 0) out_span.begin.record(out.get());
    field.copy_out(last, list.empty() ? here : swept(here, sweeps), tile, out.get());
  }
  return end();
}

// Both fields have the tile before the clock runs, so what leaves is what is there.
template <class T>
TileTimes JacobiTile<T>::Pipeline::transfer() {
  const CurrentDevice current(config.device);
  field.copy_in(0, {0, rows}, tile, in.get());
  field.copy_across(0, {0, rows}, in.get());
  in.wait();
  begin();
  compute_span.begin.record(compute.get());
  out_span.begin.record(out.get());
  for (std::int32_t c = 0; c < chunk_count; ++c) {
    field.copy_in(0, chunk(c, chunk_rows), tile, in.get());
    field.copy_out(1, chunk(c, chunk_rows), tile, out.get());
  }
  return end();
}

template <class T>
RowRange JacobiTile<T>::Pipeline::chunk(std::int64_t index, std::int64_t rows_a_chunk) const {
  return {static_cast<std::int32_t>(index * rows_a_chunk),
          static_cast<std::int32_t>(std::min<std::int64_t>((index + 1) * rows_a_chunk, rows))};
}

// The inner rows that a chunk makes possible after so many sweeps: those of the chunk, and shifted up, since what is below is not there yet.
template <class T>
RowRange JacobiTile<T>::Pipeline::swept(RowRange chunk, std::uint64_t sweeps) const {
  const auto shift = static_cast<std::int32_t>(std::min<std::uint64_t>(sweeps, static_cast<std::uint64_t>(rows)));
  const auto shifted = [&](std::int32_t row) { return std::clamp(row - shift, 1, std::max(rows - 1, 1)); };
  return {chunk.begin == 0 ? 1 : shifted(chunk.begin), chunk.end == rows ? rows - 1 : shifted(chunk.end)};
}

// None for a field without an inner cell.
template <class T>
std::vector<std::uint32_t> JacobiTile<T>::Pipeline::passes(std::uint64_t sweeps) const {
  std::vector<std::uint32_t> list;
  if (rows < 3 || config.columns < 3 || sweeps == 0) return list;
  const auto left_over = static_cast<std::uint32_t>(sweeps % config.sweeps_per_pass);
  if (left_over != 0) list.push_back(left_over);
  list.resize(list.size() + sweeps / config.sweeps_per_pass, config.sweeps_per_pass);
  return list;
}

// Returns which field the last pass wrote.
template <class T>
int JacobiTile<T>::Pipeline::sweep_chunk(RowRange chunk, const std::vector<std::uint32_t>& list) const {
  if (list.empty()) return 0;
  // The outermost rows are written by no pass, but read by each.
  if (chunk.begin == 0) field.copy_across(0, {0, 1}, compute.get());
  if (chunk.end == rows) field.copy_across(0, {rows - 1, rows}, compute.get());
  int from = 0;
  std::uint64_t sweeps = 0;
  for (const std::uint32_t more : list) {
    sweeps += more;
    field.sweep(from, swept(chunk, sweeps), more, 0, compute.get());
    from = 1 - from;
  }
  return from;
}

template <class T>
void JacobiTile<T>::Pipeline::begin() {
  total.begin.record(in.get());
  begun.mark(in.get());
  begun.hold(compute.get());
  begun.hold(out.get());
  in_span.begin.record(in.get());
}

template <class T>
TileTimes JacobiTile<T>::Pipeline::end() {
  in_span.end.record(in.get());
  ended.mark(in.get());
  compute_span.end.record(compute.get());
  out_span.end.record(out.get());
  ended.hold(out.get());
  total.end.record(out.get());
  in.wait();
  compute.wait();
  out.wait();
  return {in_span.seconds(), compute_span.seconds(), out_span.seconds(), total.seconds()};
}

template class JacobiTile<float>;
template class JacobiTile<double>;

}  // namespace nanet::gpu
