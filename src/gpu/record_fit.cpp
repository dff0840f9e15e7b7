// SPDX-License-Identifier: Apache-2.0
#include "gpu/record_fit.hpp"

#include <cuda_runtime.h>

#include "gpu/cuda_types.hpp"
#include "gpu/kernels/fit_records.hpp"
#include "gpu/tables.hpp"

namespace nanet::gpu {

struct RecordFit::Memory {
  Memory(std::span<const EventRecord> from, std::size_t repeats) : records(from.size() * repeats), circles(from.size() * repeats) {
    for (std::size_t k = 0; k < repeats; ++k) {
      check(cudaMemcpy(records.get() + k * from.size(), from.data(), from.size_bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
  }

  Tables tables;
  DeviceArray<EventRecord> records;
  DeviceArray<FittedCircle> circles;
  Event begin;
  Event end;
};

RecordFit::RecordFit(std::span<const EventRecord> records, std::size_t repeats)
    : memory_(std::make_unique<Memory>(records, repeats)) {}

RecordFit::~RecordFit() = default;

double RecordFit::fit() {
  Memory& memory = *memory_;
  const RecordBatch batch{static_cast<std::uint32_t>(memory.records.count()), memory.records.get(), memory.circles.get()};
  if (batch.count == 0) return 0;
  memory.begin.record();
  check(fit_records(batch, memory.tables.device(), nullptr), "a kernel launch");
  memory.end.record();
  memory.end.wait();
  return memory.end.seconds_since(memory.begin);
}

std::vector<FittedCircle> RecordFit::circles() const {
  std::vector<FittedCircle> circles(memory_->circles.count());
  check(cudaMemcpy(circles.data(), memory_->circles.get(), circles.size() * sizeof(FittedCircle), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  return circles;
}

double RecordFit::copy_seconds(std::size_t bytes) {
  DeviceArray<char> from(bytes);
  DeviceArray<char> to(bytes);
  Event begin;
  Event end;
  double best = 1e18;
  for (int pass = 0; pass < 5; ++pass) {
    begin.record();
    check(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice), "cudaMemcpyAsync");
    end.record();
    end.wait();
    const double seconds = end.seconds_since(begin);
    best = seconds < best ? seconds : best;
  }
  return best;
}

}  // namespace nanet::gpu
