// SPDX-License-Identifier: Apache-2.0
// Rows of a field in the memory of one GPU, twice: a pass reads one and writes the other. And what waits for what: streams and events of that GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/cuda_types.hpp"
#include "stencil_gpu/kernels/stencil.hpp"

namespace nanet::gpu {

struct RowRange {
  std::int32_t begin;
  std::int32_t end;
  std::int32_t count() const { return end > begin ? end - begin : 0; }
};

// What a field must be to be swept on a GPU. Throws SetupError.
void check_field(std::size_t rows, std::size_t columns, std::uint32_t sweeps_per_pass);

// Makes `device` usable, or throws SetupError: there is no such GPU.
void check_device(int device);

// A stream of the GPU that is current when it is made. Urgent: its blocks are placed before those of other streams.
class WorkStream {
 public:
  enum class Priority : std::uint8_t { normal, urgent };
  explicit WorkStream(Priority priority);
  ~WorkStream() { cudaStreamDestroy(stream_); }
  WorkStream(const WorkStream&) = delete;
  WorkStream& operator=(const WorkStream&) = delete;

  cudaStream_t get() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "sweeping", "look at the kernel's log for the GPU's error"); }

 private:
  cudaStream_t stream_ = nullptr;
};

// A point in a stream that other streams, of any GPU, can wait for. Before the first mark() there is nothing to wait for.
class Milestone {
 public:
  Milestone() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"); }
  ~Milestone() { cudaEventDestroy(event_); }
  Milestone(const Milestone&) = delete;
  Milestone& operator=(const Milestone&) = delete;

  void mark(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void hold(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent"); }
  void wait() const { check(cudaEventSynchronize(event_), "sweeping", "look at the kernel's log for the GPU's error"); }

 private:
  cudaEvent_t event_ = nullptr;
};

template <class T>
class FieldPart {
 public:
  // memory: the rows that lie here. The GPU is the one that is current.
  FieldPart(std::int32_t rows, std::int32_t columns, RowRange memory);

  RowRange memory() const { return memory_; }
  T* row(int field, std::int32_t row) const {
    return fields_[static_cast<std::size_t>(field)].get() + (row - memory_.begin) * stride_;
  }
  std::size_t row_bytes() const { return static_cast<std::size_t>(stride_) * sizeof(T); }

  // host: row 0 of the whole field, without gaps. Asynchronous where that memory is pinned.
  void copy_in(int field, RowRange rows, const T* host, cudaStream_t stream) const;
  void copy_out(int field, RowRange rows, T* host, cudaStream_t stream) const;
  void copy_across(int from, RowRange rows, cudaStream_t stream) const;  // onto the other field

  // `write` by so many sweeps on, from `from` to the other field. band_rows 0: chosen.
  void sweep(int from, RowRange write, std::uint32_t sweeps, std::uint32_t band_rows, cudaStream_t stream) const;
  void changes(int from, RowRange rows, RowChange* changes, cudaStream_t stream) const;

 private:
  SweepArgs<T> args(int from, RowRange write) const;

  std::int32_t rows_;
  std::int32_t columns_;
  RowRange memory_;
  std::int64_t stride_;  // cells
  std::int32_t processors_;
  std::array<DeviceArray<T>, 2> fields_;
};

extern template class FieldPart<float>;
extern template class FieldPart<double>;

}  // namespace nanet::gpu
