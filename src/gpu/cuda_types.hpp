// SPDX-License-Identifier: Apache-2.0
// Owning types for what CUDA hands out, and the check of its return codes.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::gpu {

inline void check(cudaError_t error, const char* what, const char* suggestion = "see nvidia-smi, and nanet doctor") {
  if (error == cudaSuccess) return;
  throw SetupError(std::string("GPU: ") + what + " failed", cudaGetErrorString(error), suggestion);
}

// Device memory, zeroed.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t count) : count_(count) {
    check(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()), "cudaMalloc", "make buffers smaller, or free the GPU's memory");
    check(cudaMemset(data_, 0, bytes()), "cudaMemset");
    wait_until_done();
  }
  DeviceArray(const T* from, std::size_t count) : DeviceArray(count) {
    check(cudaMemcpy(data_, from, bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
    wait_until_done();
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray&& other) noexcept : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  T* get() const { return data_; }
  std::size_t count() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T) != 0 ? count_ * sizeof(T) : 1; }

 private:
  // cudaMemset and small copies may return before they are done, and a kernel on a stream of its own does not wait for them: it would take
  // what lies there for work. Not cudaDeviceSynchronize: a resident kernel never ends.
  static void wait_until_done() { check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize"); }

  T* data_ = nullptr;
  std::size_t count_ = 0;
};

// Memory of the host that the GPU reads and writes in place, zeroed.
template <class T>
class PinnedArray {
 public:
  explicit PinnedArray(std::size_t count) {
    check(cudaHostAlloc(reinterpret_cast<void**>(&host_), count * sizeof(T), cudaHostAllocMapped | cudaHostAllocPortable),
          "cudaHostAlloc");
    std::memset(static_cast<void*>(host_), 0, count * sizeof(T));
    check(cudaHostGetDevicePointer(reinterpret_cast<void**>(&device_), host_, 0), "cudaHostGetDevicePointer");
  }
  ~PinnedArray() { cudaFreeHost(host_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;

  T* host() const { return host_; }
  T* device() const { return device_; }

 private:
  T* host_ = nullptr;
  T* device_ = nullptr;
};

// Makes memory that the host has already (huge pages or not) visible to the GPU, for as long as this lives.
class Registration {
 public:
  Registration(std::span<std::byte> memory, const std::string& name) : host_(memory.data()), bytes_(memory.size()) {
    const cudaError_t error = cudaHostRegister(host_, memory.size(), cudaHostRegisterMapped | cudaHostRegisterPortable);
    if (error != cudaSuccess) {
      throw SetupError("GPU: " + name + " of " + std::to_string(memory.size()) + " bytes cannot be registered",
                       cudaGetErrorString(error), "raise the memlock limit (ulimit -l unlimited), or make it smaller");
    }
    check(cudaHostGetDevicePointer(reinterpret_cast<void**>(&device_), host_, 0), "cudaHostGetDevicePointer");
  }
  ~Registration() { cudaHostUnregister(host_); }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  bool is_of(std::span<const std::byte> memory) const { return memory.data() == host_ && memory.size() == bytes_; }

  // Where the GPU sees what the host has at `host`, which lies in this memory.
  template <class T>
  T* device(T* host) const {
    return reinterpret_cast<T*>(device_ + (reinterpret_cast<const std::byte*>(host) - host_));
  }

 private:
  std::byte* host_;
  std::size_t bytes_;
  std::byte* device_ = nullptr;
};

// A GPU is the current one of this thread for as long as this lives, then again the one before.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    check(cudaSetDevice(device), "cudaSetDevice");
  }
  ~CurrentDevice() { cudaSetDevice(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream = nullptr) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void wait() { check(cudaEventSynchronize(event_), "a kernel"); }
  double seconds_since(const Event& begin) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace nanet::gpu
