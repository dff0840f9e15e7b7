// SPDX-License-Identifier: Apache-2.0
#include "gpu/kernels/bench_kernels.hpp"

#include "gpu/kernels/fast_solve.hpp"
#include "gpu/kernels/ordered_access.cuh"
#include "gpu/kernels/packed_points.hpp"
#include "gpu/kernels/team.cuh"
#include "nanet/wire/mgp.hpp"

namespace nanet::gpu {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kLanes = 4;
constexpr std::uint32_t kBlockPackets = kThreads / kLanes / wire::kMgpEventsMax;
constexpr std::uint32_t kPacketVectors = wire::kMgpPaddedBytes / 16;
constexpr std::uint32_t kRounds = (kBlockPackets * kPacketVectors + kThreads - 1) / kThreads;
static_assert(kPacketVectors * 16 == wire::kMgpPaddedBytes);

__device__ std::uint64_t global_timer_ns() {
  std::uint64_t time_ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time_ns));
  return time_ns;
}

__device__ void do_nothing_for(std::uint64_t work_ns) {
  const std::uint64_t begin_ns = global_timer_ns();
  while (global_timer_ns() - begin_ns < work_ns) {
  }
}

__global__ void __launch_bounds__(kThreads) fit_packets_kernel(PacketBatch batch, const PackedPoint* table) {
  __shared__ uint4 staged[kBlockPackets * kPacketVectors];
  __shared__ PackedPoint points[rich::kPmPointRows];
  const std::uint32_t first = blockIdx.x * kBlockPackets;
  const std::uint32_t vectors = min(kBlockPackets, batch.packet_count - first) * kPacketVectors;
  const uint4* const from = reinterpret_cast<const uint4*>(batch.packets) + std::uint64_t{first} * kPacketVectors;
  uint4 loaded[kRounds];  // in flight, all of them, while the table is copied
#pragma unroll
  for (std::uint32_t r = 0; r < kRounds; ++r) {
    const std::uint32_t v = r * kThreads + threadIdx.x;
    if (v < vectors) loaded[r] = load_relaxed_sys16(from + v);
  }
  for (std::uint32_t k = threadIdx.x; k < rich::kPmPointRows; k += kThreads) points[k] = table[k];
#pragma unroll
  for (std::uint32_t r = 0; r < kRounds; ++r) {
    const std::uint32_t v = r * kThreads + threadIdx.x;
    if (v < vectors) staged[v] = loaded[r];
  }
  __syncthreads();
  const std::uint32_t event = threadIdx.x / kLanes;
  if (event >= vectors / kPacketVectors * wire::kMgpEventsMax) return;
  const std::byte* const slot = reinterpret_cast<const std::byte*>(staged) + event / wire::kMgpEventsMax * wire::kMgpPaddedBytes +
                                wire::mgp_slot_offset(event % wire::kMgpEventsMax);
  const uint2* const hits = reinterpret_cast<const uint2*>(slot + wire::kMgpEventHeaderBytes);
  const std::uint32_t count = min(std::uint32_t{wire::event_from_word(*reinterpret_cast<const std::uint64_t*>(slot)).hit_count},
                                  static_cast<std::uint32_t>(wire::kMgpHitsMax));
  PackedSums sums;
  for (std::uint32_t k = 4 * (threadIdx.x % kLanes); k < count; k += 4 * kLanes) {
    const uint2 four = hits[k / 4];
    sums.add(points[four.x & 1023u], k + 1 < count ? points[four.x >> 16 & 1023u] : 0u, k + 2 < count ? points[four.y & 1023u] : 0u,
             k + 3 < count ? points[four.y >> 16 & 1023u] : 0u);
  }
  const rich::RingSums all = Team<kLanes>::sum(sums.sums());
  const std::int32_t hit_count = rich::hit_count(all);
  FittedCircle circle;
  fast_solve(all, hit_count, inverse_count(hit_count), circle);
  if (threadIdx.x % kLanes == 0) {
    reinterpret_cast<float4*>(batch.circles)[first * static_cast<std::uint32_t>(wire::kMgpEventsMax) + event] = make_float4(
        circle.x_mm, circle.y_mm, circle.radius_mm, circle.rms_mm);
  }
}

__global__ void idle_kernel(std::uint64_t work_ns, std::uint64_t* done, std::uint64_t number) {
  do_nothing_for(work_ns);
  if (done != nullptr) store_relaxed_sys(done, number);
}

__global__ void resident_kernel(const ResidentCommand* commands, ResidentAnswer* answers, std::uint64_t work_ns,
                                std::uint64_t idle_limit_ns) {
  const ResidentCommand* const command = commands + blockIdx.x;
  std::uint64_t done = 0;
  std::uint64_t last_ns = global_timer_ns();
  for (std::uint32_t turn = 1;; ++turn) {
    const uint4 seen = load_relaxed_sys16(command);
    const std::uint64_t number = seen.x | std::uint64_t{seen.y} << 32;
    if ((seen.z | seen.w) != 0) return;
    if (number != done) {
      if (work_ns != 0) do_nothing_for(work_ns);
      store_relaxed_sys(&answers[blockIdx.x].number, number);
      done = number;
      last_ns = global_timer_ns();
    } else if (turn % 256 == 0 && global_timer_ns() - last_ns > idle_limit_ns) {
      return;
    }
  }
}

}  // namespace

cudaError_t fit_packets(const PacketBatch& batch, const DeviceTables& tables, cudaStream_t stream) {
  fit_packets_kernel<<<(batch.packet_count + kBlockPackets - 1) / kBlockPackets, kThreads, 0, stream>>>(batch, tables.packed);
  return cudaGetLastError();
}

cudaError_t idle_for(std::uint64_t work_ns, std::uint64_t* done, std::uint64_t number, cudaStream_t stream) {
  idle_kernel<<<1, 1, 0, stream>>>(work_ns, done, number);
  return cudaGetLastError();
}

cudaError_t start_residents(const ResidentCommand* commands, ResidentAnswer* answers, std::uint32_t count, std::uint64_t work_ns,
                            std::uint64_t idle_limit_ns, cudaStream_t stream) {
  resident_kernel<<<count, 1, 0, stream>>>(commands, answers, work_ns, idle_limit_ns);
  return cudaGetLastError();
}

}  // namespace nanet::gpu
