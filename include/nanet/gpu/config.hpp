// SPDX-License-Identifier: Apache-2.0
// How a processor runs on a GPU. Known to every build; what runs it exists with CUDA only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "nanet/config/setting.hpp"

namespace nanet::gpu {

enum class Runtime : std::uint8_t {
  cpu,         // not on a GPU
  launch,      // one kernel per buffer, launched by the host
  graph,       // the same as a captured graph
  persistent,  // one resident kernel that polls the completion queue and rings the doorbell itself
};

enum class BufferPath : std::uint8_t {
  mapped,  // the GPU reads the buffer in the host's memory
  copied,  // the buffer is copied to the GPU first; launch and graph only
};

constexpr auto choices(BufferPath) {
  return std::array{config::Choice{"mapped", BufferPath::mapped}, config::Choice{"copied", BufferPath::copied}};
}

struct GpuConfig {
  static constexpr config::Component component{"Gpu", "How events are judged on GPUs. docs/guide.md says what a GPU cannot do."};

  Runtime runtime = Runtime::cpu;
  std::vector<int> devices{0};  // the links go to these in turn, and each is a consumer of its own
  int device = 0;               // that of one consumer
  BufferPath path = BufferPath::mapped;
  // Buffers that the GPU works on at a time, 1..kBuffersInFlightMax. 1: one after the other, the worst case; more: latency hidden at high rates.
  std::uint32_t buffers_in_flight = 4;
  // Blocks of threads for one buffer; 0: chosen from the GPU's size.
  std::uint32_t blocks = 0;
  // Resident kernels on this GPU, this one included: the blocks of all of them must fit together, or one would wait for ever.
  std::uint32_t kernels = 1;
  // A GPU that has work but makes no progress for this long is given up.
  std::uint64_t watchdog_ms = 1000;

  std::uint64_t watchdog_ns() const { return watchdog_ms * 1'000'000; }

  template <class Visit>
  void visit(Visit&& v) {
    v("devices", devices,
      {.help = "GPUs by number, as CUDA counts them; the links go to them in turn",
       .least = 0,
       .most = 255,
       .length_least = 1,
       .length_most = 16});
    v("path", path,
      {.help = "mapped: the GPU reads a buffer in the host memory where the packets arrived; copied: it is copied to the GPU "
               "first, with launch"
               " and graph only"});
    v("buffers_in_flight", buffers_in_flight,
      {.help = "Buffers that a GPU works on at a time; 1: one after the other, the worst case; always 1 with merge",
       .unit = "buffers",
       .least = 1,
       .most = 16,
       .too_small = "the GPU idles between two buffers, which lowers the critical rate",
       .too_big = "fewer blocks of threads for each, so large buffers take longer"});
    v("blocks", blocks,
      {.help = "Blocks of threads for one buffer; null: chosen from the GPU's size",
       .unit = "blocks",
       .least = 1,
       .most = 1024,
       .too_small = "large buffers take longer",
       .too_big = "no part of the GPU is left for others; what does not fit is refused at start",
       .nullable = true});
    v("watchdog_ms", watchdog_ms,
      {.help = "A GPU that has work and finishes nothing for this long is given up: the run ends",
       .unit = "ms",
       .least = 20,
       .most = 60'000,
       .too_small = "a long buffer is mistaken for a fault",
       .too_big = "a GPU that hangs is noticed late, and packets are dropped meanwhile"});
  }
};
inline constexpr std::uint32_t kBuffersInFlightMax = 16;

}  // namespace nanet::gpu
