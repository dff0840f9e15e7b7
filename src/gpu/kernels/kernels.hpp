// SPDX-License-Identifier: Apache-2.0
// The kernels as the host sees them: one set for each ring finder.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/kernels/tables.hpp"
#include "nanet/rich/finder.hpp"

namespace nanet::gpu {

// Events in device memory: event e has hits[first_hit[e] .. first_hit[e + 1] - 1].
struct EventTable {
  std::uint32_t count;
  const std::uint16_t* hits;
  const std::uint64_t* first_hit;
  rich::EventRings* rings;   // out
  std::uint32_t rounds = 1;  // times that all of it is done; more only to measure
};

// Kernels of runtimes.cuh, for the host to launch. Arguments: rich::FinderConfig, DeviceTables, Work, and for `item` an Item. Those of
// merge_runtimes.cuh: rich::FinderConfig, DeviceTables, Work, MergeWork, and for `item` a Round.
struct RuntimeKernels {
  const void* persistent;  // where no CLOP is in place: what those need made each buffer 0.2 to 0.4 us slower
  const void* persistent_in_place;
  const void* item;
  std::uint32_t threads;       // of a block
  std::uint32_t shared_bytes;  // of a block, dynamic
};

template <rich::FinderKind kind>
struct FinderKernels {
  static RuntimeKernels runtimes();
  static RuntimeKernels merge_runtimes();
  static cudaError_t find(const rich::FinderConfig& config, const DeviceTables& tables, const EventTable& events,
                          cudaStream_t stream);
};

}  // namespace nanet::gpu
