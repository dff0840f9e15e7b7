// SPDX-License-Identifier: Apache-2.0
#include "nanet/gpu/pinned_memory.hpp"

#include "gpu/cuda_types.hpp"

namespace nanet::gpu {
namespace {

int current_device(const std::string& name) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    throw SetupError("GPU: " + name + " cannot be made visible to a GPU",
                     error != cudaSuccess ? cudaGetErrorString(error) : "the driver shows none",
                     "use memory host, or see nanet doctor");
  }
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

class RegisteredMemory final : public PinnedMemory {
 public:
  RegisteredMemory(std::span<std::byte> memory, const std::string& name)
      : device_(current_device(name)), registration_(memory, name) {}

  // An error is not this memory's: whoever gave the GPU its work gets it.
  ~RegisteredMemory() override {
    int before = 0;
    if (cudaGetDevice(&before) != cudaSuccess) return;
    cudaSetDevice(device_);
    cudaDeviceSynchronize();
    cudaSetDevice(before);
  }

  std::uintptr_t device_address(const void* host) const override {
    return reinterpret_cast<std::uintptr_t>(registration_.device(static_cast<const std::byte*>(host)));
  }

  int device() const override { return device_; }

  void wait_for_gpu() const override {
    const CurrentDevice current(device_);
    check(cudaDeviceSynchronize(), "work of this program", "look at the kernels that it started");
  }

 private:
  const int device_;
  const Registration registration_;
};

}  // namespace

std::unique_ptr<PinnedMemory> PinnedMemory::make(std::span<std::byte> memory, const std::string& name) {
  return std::make_unique<RegisteredMemory>(memory, name);
}

std::span<const std::byte> host_bytes(std::uintptr_t address, std::size_t bytes, std::uintptr_t stream, std::vector<std::byte>& copy) {
  if (bytes == 0) return {};
  cudaPointerAttributes found{};
  check(cudaPointerGetAttributes(&found, reinterpret_cast<const void*>(address)), "cudaPointerGetAttributes");
  if (found.type == cudaMemoryTypeUnregistered) {
    throw SetupError("GPU: there is no array at that address", "no GPU knows it", "pass an array that is alive");
  }
  const CurrentDevice current(found.device);
  check(stream == 0 ? cudaDeviceSynchronize() : cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream)),
        "work of this program", "look at the kernels that it started");
  if (found.type == cudaMemoryTypeHost || found.type == cudaMemoryTypeManaged) {
    return {static_cast<const std::byte*>(found.hostPointer), bytes};
  }
  copy.resize(bytes);
  check(cudaMemcpy(copy.data(), reinterpret_cast<const void*>(address), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return copy;
}

}  // namespace nanet::gpu
