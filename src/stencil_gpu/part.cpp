// SPDX-License-Identifier: Apache-2.0
#include "stencil_gpu/part.hpp"

#include <algorithm>
#include <string>

#include "stencil_gpu/stencil.hpp"

namespace nanet::gpu {
namespace {

constexpr std::size_t kSideMax = std::size_t{1} << 30;
constexpr std::int64_t kWarpsAProcessor = 32;  // that a launch should have at least

std::int32_t processor_count() {
  int device = 0;
  int count = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  return count;
}

// As many rows as are best where there are many. With fewer rows, what leaves enough warps to fill the GPU, but not so little that a warp mostly does what its
// neighbours do too.
std::int32_t chosen_band_rows(std::int64_t rows, std::int64_t columns, std::int64_t sweeps, std::int64_t processors) {
  const std::int64_t tiles = (columns + 111) / 112;
  const std::int64_t filling = rows * tiles / (processors * kWarpsAProcessor);
  const std::int64_t best = best_band_rows(static_cast<int>(sweeps));
  return static_cast<std::int32_t>(std::clamp(filling, std::min(4 * sweeps, best), best));
}

}  // namespace

void check_field(std::size_t rows, std::size_t columns, std::uint32_t sweeps_per_pass) {
  if (rows == 0 || columns == 0 || rows > kSideMax || columns > kSideMax) {
    throw SetupError("a field of " + std::to_string(rows) + " x " + std::to_string(columns) + " cannot be swept on a GPU",
                     "it has no cell, or a side longer than 2^30",
                     "give a field of 1 x 1 cells and more that fits twice into the GPU's memory");
  }
  if (sweeps_per_pass < 1 || sweeps_per_pass > kSweepsPerPassMax) {
    throw SetupError(std::to_string(sweeps_per_pass) + " sweeps a pass cannot be had on a GPU",
                     "the rows between have to stay in registers: 1 to " + std::to_string(kSweepsPerPassMax), "give 1, 4 or 8");
  }
}

void check_device(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    throw SetupError("GPU: none to sweep on", error != cudaSuccess ? cudaGetErrorString(error) : "the driver shows none",
                     "take the CPU, or see nanet doctor");
  }
  if (device < 0 || device >= count) {
    throw SetupError("GPU " + std::to_string(device) + " cannot be used", "there are " + std::to_string(count) + ", counted from 0",
                     "name one of these");
  }
}

WorkStream::WorkStream(Priority priority) {
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority == Priority::urgent ? greatest : least),
        "cudaStreamCreate");
}

template <class T>
FieldPart<T>::FieldPart(std::int32_t rows, std::int32_t columns, RowRange memory)
    : rows_(rows), columns_(columns), memory_(memory), processors_(processor_count()) {
  constexpr std::int64_t kUnit = kRowAlignBytes / sizeof(T);
  stride_ = (columns + kUnit - 1) / kUnit * kUnit;
  for (DeviceArray<T>& field : fields_) field = DeviceArray<T>(static_cast<std::size_t>(memory.count() * stride_));
}

template <class T>
void FieldPart<T>::copy_in(int field, RowRange rows, const T* host, cudaStream_t stream) const {
  if (rows.count() == 0) return;
  const std::size_t width = static_cast<std::size_t>(columns_) * sizeof(T);
  check(cudaMemcpy2DAsync(row(field, rows.begin), row_bytes(), host + std::int64_t{rows.begin} * columns_, width, width,
                          static_cast<std::size_t>(rows.count()), cudaMemcpyHostToDevice, stream),
        "cudaMemcpy2DAsync");
}

template <class T>
void FieldPart<T>::copy_out(int field, RowRange rows, T* host, cudaStream_t stream) const {
  if (rows.count() == 0) return;
  const std::size_t width = static_cast<std::size_t>(columns_) * sizeof(T);
  check(cudaMemcpy2DAsync(host + std::int64_t{rows.begin} * columns_, width, row(field, rows.begin), row_bytes(), width,
                          static_cast<std::size_t>(rows.count()), cudaMemcpyDeviceToHost, stream),
        "cudaMemcpy2DAsync");
}

template <class T>
void FieldPart<T>::copy_across(int from, RowRange rows, cudaStream_t stream) const {
  if (rows.count() == 0) return;
  check(cudaMemcpyAsync(row(1 - from, rows.begin), row(from, rows.begin), static_cast<std::size_t>(rows.count()) * row_bytes(),
                        cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync");
}

template <class T>
void FieldPart<T>::sweep(int from, RowRange write, std::uint32_t sweeps, std::uint32_t band_rows, cudaStream_t stream) const {
  if (write.count() == 0) return;
  SweepArgs<T> work = args(from, write);
  work.band_rows = chosen_band_rows(write.count(), columns_, sweeps, processors_);
  if (band_rows != 0) work.band_rows = static_cast<std::int32_t>(std::min(band_rows, static_cast<std::uint32_t>(write.count())));
  check(launch_pass(work, static_cast<int>(sweeps), stream), "a kernel launch");
}

template <class T>
void FieldPart<T>::changes(int from, RowRange rows, RowChange* changes, cudaStream_t stream) const {
  if (rows.count() == 0) return;
  check(launch_row_changes(args(from, rows), changes, stream), "a kernel launch");
}

template <class T>
SweepArgs<T> FieldPart<T>::args(int from, RowRange write) const {
  return {.in = row(from, memory_.begin),
          .out = row(1 - from, memory_.begin),
          .stride = stride_,
          .rows = rows_,
          .columns = columns_,
          .memory_begin = memory_.begin,
          .memory_end = memory_.end,
          .row_begin = write.begin,
          .row_end = write.end,
          .band_rows = 0};
}

template class FieldPart<float>;
template class FieldPart<double>;

}  // namespace nanet::gpu
