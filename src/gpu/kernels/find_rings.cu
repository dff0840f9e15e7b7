// SPDX-License-Identifier: Apache-2.0
// One thread an event: maps threads to events and nothing else.
#include <cuda_runtime.h>

#include <string>

#include "nanet/gpu/ring_finder.hpp"
#include "nanet/rich/hit_plane.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::gpu {
namespace {

constexpr unsigned kThreads = 64;  // a block; finders of several rings need many registers and a stack

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw SetupError(std::string("GPU: ") + what + " failed", cudaGetErrorString(error), "see nvidia-smi and free the GPU's memory");
}

// Device memory that is freed with its owner.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) { check(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc"); }
  DeviceArray(const T* from, std::size_t count) : DeviceArray(count) {
    check(cudaMemcpy(data_, from, count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record() { check(cudaEventRecord(event_), "cudaEventRecord"); }
  void wait() { check(cudaEventSynchronize(event_), "a kernel"); }
  double seconds_since(const Event& begin) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

template <rich::FinderKind kind>
__global__ void find_rings(rich::FinderConfig config, const rich::PmPoint* points, const std::uint16_t* hits,
                           const std::uint64_t* first_hit, std::uint32_t event_count, rich::EventRings* rings) {
  const std::uint32_t e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= event_count) return;
  const std::uint64_t first = first_hit[e];
  rings[e] = rich::find_event<kind>(config, {hits + first, static_cast<std::uint32_t>(first_hit[e + 1] - first)}, points);
}

std::vector<std::uint64_t> first_hits(std::span<const rich::EventHits> events) {
  std::vector<std::uint64_t> first{0};
  for (const rich::EventHits& event : events) first.push_back(first.back() + event.count);
  return first;
}

std::vector<std::uint16_t> all_hits(std::span<const rich::EventHits> events) {
  std::vector<std::uint16_t> hits;
  for (const rich::EventHits& event : events) hits.insert(hits.end(), event.hits, event.hits + event.count);
  if (hits.empty()) hits.push_back(0);
  return hits;
}

}  // namespace

struct RingFinder::Memory {
  Memory(std::span<const rich::EventHits> events, const std::vector<std::uint16_t>& host_hits,
         const std::vector<std::uint64_t>& host_first)
      : event_count(static_cast<std::uint32_t>(events.size())),
        points(rich::kPmPoints.data(), rich::kPmPoints.size()),
        hits(host_hits.data(), host_hits.size()),
        first_hit(host_first.data(), host_first.size()),
        rings(events.size()) {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  }

  std::uint32_t event_count;
  DeviceArray<rich::PmPoint> points;
  DeviceArray<std::uint16_t> hits;
  DeviceArray<std::uint64_t> first_hit;
  DeviceArray<rich::EventRings> rings;
  Event begin;
  Event end;
  cudaDeviceProp properties{};
};

RingFinder::RingFinder(std::span<const rich::EventHits> events)
    : memory_(std::make_unique<Memory>(events, all_hits(events), first_hits(events))) {}

RingFinder::~RingFinder() = default;

double RingFinder::find(const rich::FinderConfig& config) {
  Memory& memory = *memory_;
  if (memory.event_count == 0) return 0;
  const unsigned blocks = (memory.event_count + kThreads - 1) / kThreads;
  memory.begin.record();
  rich::with_finder(config.kind, [&](auto kind) {
    find_rings<decltype(kind)::value><<<blocks, kThreads>>>(config, memory.points.get(), memory.hits.get(), memory.first_hit.get(),
                                                            memory.event_count, memory.rings.get());
  });
  check(cudaGetLastError(), "a kernel launch");
  memory.end.record();
  memory.end.wait();
  return memory.end.seconds_since(memory.begin);
}

std::vector<rich::EventRings> RingFinder::rings() const {
  std::vector<rich::EventRings> found(memory_->event_count);
  check(cudaMemcpy(found.data(), memory_->rings.get(), found.size() * sizeof(rich::EventRings), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  return found;
}

const char* RingFinder::device_name() const { return memory_->properties.name; }

}  // namespace nanet::gpu
