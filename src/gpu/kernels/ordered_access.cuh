// SPDX-License-Identifier: Apache-2.0
// Loads and stores that host and GPU, or blocks of one GPU, use to speak to one another.
//
// relaxed, acquire and release are those of the PTX memory model; `sys` reaches the host, `gpu` the other blocks. Loads of 16 bytes are one
// access: what a writer stored in order is never seen with the last part new and the first part old (tests/gpu/ordering_test.cpp looks for it).
#pragma once

#include <cstdint>

namespace nanet::gpu {

__device__ inline uint4 load_relaxed_sys16(const void* from) {
  uint4 v;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

// Of the host's memory. It bypasses the first-level cache, and the second one keeps nothing of the host's memory: what it gives is not older than
// the load. Many blocks that read the same line of the host's memory wait for one another, about 1 us each: tell them through the GPU's memory.
__device__ inline uint4 load_host16(const void* from) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

__device__ inline std::uint64_t load_relaxed_sys(const std::uint64_t* from) {
  std::uint64_t v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  return v;
}

__device__ inline void store_relaxed_sys(std::uint64_t* to, std::uint64_t v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(v) : "memory");
}

__device__ inline uint4 load_relaxed_gpu16(const void* from) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

__device__ inline void store_relaxed_gpu16(void* to, uint4 v) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

__device__ inline std::uint64_t load_acquire_gpu(const std::uint64_t* from) {
  std::uint64_t v;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  return v;
}

__device__ inline std::uint32_t load_relaxed_gpu(const std::uint32_t* from) {
  std::uint32_t v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}

__device__ inline std::uint64_t load_relaxed_gpu(const std::uint64_t* from) {
  std::uint64_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  return v;
}

__device__ inline void store_release_gpu(std::uint64_t* to, std::uint64_t v) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(v) : "memory");
}

__device__ inline std::uint32_t add_relaxed_gpu(std::uint32_t* to, std::uint32_t v) {
  std::uint32_t before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(to), "r"(v) : "memory");
  return before;
}

__device__ inline void fence_sys() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
__device__ inline void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

}  // namespace nanet::gpu
