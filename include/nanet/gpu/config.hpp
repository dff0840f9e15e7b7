// SPDX-License-Identifier: Apache-2.0
// How a processor runs on a GPU. Known to every build; what runs it is there with CUDA only.
#pragma once

#include <cstdint>

namespace nanet::gpu {

enum class Runtime : std::uint8_t {
  cpu,         // not on a GPU
  launch,      // a kernel a buffer, launched by the host
  graph,       // the same as a captured graph
  persistent,  // one resident kernel that polls the completion queue and rings the doorbell itself
};

enum class BufferPath : std::uint8_t {
  mapped,  // the GPU reads the buffer in the host's memory
  copied,  // the buffer is copied to the GPU first; launch and graph only
};

struct GpuConfig {
  Runtime runtime = Runtime::cpu;
  int device = 0;
  BufferPath path = BufferPath::mapped;
  // Buffers that the GPU works on at a time, 1..kBuffersInFlightMax. 1: one after the other, the worst case; more: latency hidden at high rates.
  std::uint32_t buffers_in_flight = 4;
  // Blocks of threads for one buffer; 0: chosen from the GPU's size. Too few: large buffers take long; too many: none left for others.
  std::uint32_t blocks = 0;
  // Resident kernels on this GPU, this one included: the blocks of all of them must fit together, or one would wait for ever.
  std::uint32_t kernels = 1;
  // Without progress for so long, although there is work, the GPU is given up. Too small: a long buffer is taken for a fault.
  std::uint64_t watchdog_ns = 1'000'000'000;
};
inline constexpr std::uint32_t kBuffersInFlightMax = 16;

}  // namespace nanet::gpu
