// SPDX-License-Identifier: Apache-2.0
// Kernels for the benchmarks alone (bench/gpu): the classic use of a GPU, to compare with, and resident kernels that do nothing useful.
//
// Pointers are the device's. Each function starts work on `stream` and returns what the launch returned.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "gpu/kernels/tables.hpp"
#include "gpu/record_fit.hpp"

namespace nanet::gpu {

// Padded MGP packets of 1168 bytes, back to back from a multiple of 16; 16 events each.
struct PacketBatch {
  const std::byte* packets;
  std::uint32_t packet_count;
  FittedCircle* circles;  // out: one for each event, in order
};

// The MATH fit of every event, four lanes per event, a block for every four packets. The packets may lie in the host's memory.
cudaError_t fit_packets(const PacketBatch& batch, const DeviceTables& tables, cudaStream_t stream);

// One thread that does nothing for work_ns, then writes `number` to *done (not if done is null).
cudaError_t idle_for(std::uint64_t work_ns, std::uint64_t* done, std::uint64_t number, cudaStream_t stream);

// Words of one resident thread, in pinned memory. `number` and `stop` are on one line, so that one load sees both.
struct alignas(64) ResidentCommand {
  std::uint64_t number;  // a new one is an order
  std::uint64_t stop;    // not 0: end
};
struct alignas(64) ResidentAnswer {
  std::uint64_t number;  // of the order that is done
};

// `count` blocks of one thread each that stay until stopped, or for idle_limit_ns without an order. Thread k polls commands[k], does nothing
// for work_ns, and answers in answers[k].
cudaError_t start_residents(const ResidentCommand* commands, ResidentAnswer* answers, std::uint32_t count, std::uint64_t work_ns,
                            std::uint64_t idle_limit_ns, cudaStream_t stream);

}  // namespace nanet::gpu
