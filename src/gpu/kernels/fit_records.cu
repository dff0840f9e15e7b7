// SPDX-License-Identifier: Apache-2.0
#include "gpu/kernels/fit_records.cuh"

namespace nanet::gpu {

cudaError_t fit_records(const RecordBatch& batch, const DeviceTables& tables, cudaStream_t stream) {
  return launch_fit<RecordFitter<8, 1, 5>>(batch, tables.packed, stream);
}

}  // namespace nanet::gpu
