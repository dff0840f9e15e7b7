// SPDX-License-Identifier: Apache-2.0
// GPU memory that a NIC can be made to write into (GPUDirect): allocated once, zeroed, at a multiple of 64 KiB.
//
// Exists with CUDA only: code that includes this in a build without CUDA may hold a null pointer to it, and calls nothing.
// Errors: SetupError, problem (why) suggestion.
// Thread rules: any thread; make and destroy from one.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace nanet::gpu {

class DeviceMemory {
 public:
  // On GPU number `device`; bytes are rounded up to whole 64 KiB. name: what an error calls it. Refused where the driver offers no
  // GPUDirect RDMA, and where a resident kernel could read older bytes than the NIC has written (cudaDevAttrGPUDirectRDMAWritesOrdering), since
  // nothing could then order them.
  static std::unique_ptr<DeviceMemory> make(int device, std::size_t bytes, const std::string& name);

  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Addresses of the GPU: the host can name these bytes but not read them.
  virtual std::span<std::byte> span() const = 0;

 protected:
  DeviceMemory() = default;
};

}  // namespace nanet::gpu
