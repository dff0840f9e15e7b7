// SPDX-License-Identifier: Apache-2.0
// Pinned memory: host memory that a GPU reads and writes in place, over PCIe; and the reverse, from a GPU's addresses to the host's bytes.
//
// The GPU is the one that is current in the calling thread when the object is made: number 0, unless the program chose another.
// Exists with CUDA only: code that includes this in a build without CUDA may hold a null pointer to it, and calls nothing.
// Errors: SetupError, problem (why) suggestion.
// Thread rules: any thread; make and destroy from one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nanet::gpu {

// Makes existing memory visible to the GPU for as long as this lives; it does not own the memory, which must live longer.
class PinnedMemory {
 public:
  // name: what an error calls it. Throws where there is no GPU, and where the memory cannot be registered.
  static std::unique_ptr<PinnedMemory> make(std::span<std::byte> memory, const std::string& name);

  // Waits for the GPU: whatever it was given before has ended when the memory is no longer visible to it.
  virtual ~PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Where the GPU sees what the host has at `host`, an address in this memory.
  virtual std::uintptr_t device_address(const void* host) const = 0;

  // Number of the GPU, as CUDA counts them.
  virtual int device() const = 0;

  // Returns when the GPU has done all that this process gave it so far, in any stream. Throws when the GPU has failed meanwhile.
  virtual void wait_for_gpu() const = 0;

 protected:
  PinnedMemory() = default;
};

// What a GPU sees at `address`, for the host to read: in place where it lies in memory of the host, otherwise copied into `copy`, which is made
// as large as needed. First waits for `stream` (a cudaStream_t as a number; 1: the default stream), or with 0 for all work of the GPU.
// Throws when a GPU does not know the address, or has failed.
std::span<const std::byte> host_bytes(std::uintptr_t address, std::size_t bytes, std::uintptr_t stream, std::vector<std::byte>& copy);

}  // namespace nanet::gpu
