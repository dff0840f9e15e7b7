// SPDX-License-Identifier: Apache-2.0
#include "nanet/gpu/device_memory.hpp"

#include "gpu/cuda_types.hpp"

namespace nanet::gpu {
namespace {

constexpr std::size_t kPageBytes = 64u << 10;  // of a GPU's memory, as registered with a NIC

void check_device(int device, const std::string& name) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && device >= 0 && device < count) return;
  throw SetupError("GPU " + std::to_string(device) + ", whose memory " + name + " is to be, is not there",
                   error != cudaSuccess ? cudaGetErrorString(error) : "there are " + std::to_string(count),
                   "keep payloads in the host's memory, or see nanet doctor");
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

void check_order(int device, const std::string& name) {
  const std::string problem = "GPU " + std::to_string(device) + ": no NIC can be told to write " + name;
  if (attribute(cudaDevAttrGPUDirectRDMASupported, device) == 0) {
    throw SetupError(problem, "the driver offers no GPUDirect RDMA for this GPU", "keep payloads in the host's memory");
  }
  if (attribute(cudaDevAttrGPUDirectRDMAWritesOrdering, device) < cudaGPUDirectRDMAWritesOrderingOwner) {
    throw SetupError(problem, "a resident kernel could read older bytes than the NIC has written, and nothing would order them",
                     "keep payloads in the host's memory");
  }
}

class AllocatedMemory final : public DeviceMemory {
 public:
  AllocatedMemory(int device, std::size_t bytes)
      : device_(device), bytes_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes), memory_(bytes_ + kPageBytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    first_ = memory_.get() + (kPageBytes - address % kPageBytes) % kPageBytes;
  }
  // Freed on the GPU that it belongs to. An error is not this memory's: whoever gave the GPU its work gets it.
  ~AllocatedMemory() override {
    int before = 0;
    if (cudaGetDevice(&before) != cudaSuccess) return;
    cudaSetDevice(device_);
    memory_ = {};
    cudaSetDevice(before);
  }

  std::span<std::byte> span() const override { return {first_, bytes_}; }

 private:
  const int device_;
  const std::size_t bytes_;
  DeviceArray<std::byte> memory_;
  std::byte* first_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceMemory> DeviceMemory::make(int device, std::size_t bytes, const std::string& name) {
  if (bytes == 0) throw SetupError("GPU: " + name + " of 0 bytes", "there would be no room for a packet", "ask for some");
  check_device(device, name);
  check_order(device, name);
  const CurrentDevice current(device);
  return std::make_unique<AllocatedMemory>(device, bytes);
}

}  // namespace nanet::gpu
