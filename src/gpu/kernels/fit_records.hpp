// SPDX-License-Identifier: Apache-2.0
// The MATH fit of records in device memory, as the host sees it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/kernels/tables.hpp"
#include "gpu/record_fit.hpp"

namespace nanet::gpu {

// Records and circles in device memory, aligned to 16 bytes.
struct RecordBatch {
  std::uint32_t count;
  const EventRecord* records;
  FittedCircle* circles;  // out
};

// The circles of all records, on a stream.
cudaError_t fit_records(const RecordBatch& batch, const DeviceTables& tables, cudaStream_t stream);

}  // namespace nanet::gpu
