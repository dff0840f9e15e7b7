// SPDX-License-Identifier: Apache-2.0
#include "nanet/gpu/ring_finder.hpp"

#include <cuda_runtime.h>

#include <algorithm>

#include "gpu/cuda_types.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/tables.hpp"

namespace nanet::gpu {
namespace {

std::vector<std::uint64_t> first_hits(std::span<const event::Event> events) {
  std::vector<std::uint64_t> first{0};
  for (const event::Event& event : events) first.push_back(first.back() + event.count);
  return first;
}

std::vector<std::uint16_t> all_hits(std::span<const event::Event> events) {
  std::vector<std::uint16_t> hits;
  for (const event::Event& event : events) hits.insert(hits.end(), event.hits, event.hits + event.count);
  if (hits.empty()) hits.push_back(0);
  return hits;
}

}  // namespace

struct RingFinder::Memory {
  Memory(std::span<const event::Event> events, const std::vector<std::uint16_t>& host_hits,
         const std::vector<std::uint64_t>& host_first)
      : event_count(static_cast<std::uint32_t>(events.size())),
        hits(host_hits.data(), host_hits.size()),
        first_hit(host_first.data(), host_first.size()),
        rings(events.size()) {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  }

  // Runs the kernel for the first `count` events, and waits.
  double seconds(const rich::FinderConfig& config, std::uint32_t count, std::uint32_t rounds) {
    if (count == 0) return 0;
    begin.record();
    rich::with_finder(config.kind, [&](auto kind) {
      const EventTable events{count, hits.get(), first_hit.get(), rings.get(), rounds};
      check(FinderKernels<decltype(kind)::value>::find(config, tables.device(), events, nullptr), "a kernel launch");
    });
    end.record();
    end.wait();
    return end.seconds_since(begin);
  }

  std::uint32_t event_count;
  Tables tables;
  DeviceArray<std::uint16_t> hits;
  DeviceArray<std::uint64_t> first_hit;
  DeviceArray<rich::EventRings> rings;
  Event begin;
  Event end;
  cudaDeviceProp properties{};
};

RingFinder::RingFinder(std::span<const event::Event> events)
    : memory_(std::make_unique<Memory>(events, all_hits(events), first_hits(events))) {}

RingFinder::~RingFinder() = default;

double RingFinder::find(const rich::FinderConfig& config) { return memory_->seconds(config, memory_->event_count, 1); }

double RingFinder::latency_seconds(const rich::FinderConfig& config, std::uint32_t event_count) {
  constexpr std::uint32_t kRounds = 20;
  const std::uint32_t events = std::min(event_count, memory_->event_count);
  memory_->seconds(config, events, 1);
  const double once = memory_->seconds(config, events, 1);
  return (memory_->seconds(config, events, 1 + kRounds) - once) / kRounds;
}

std::vector<rich::EventRings> RingFinder::rings() const {
  std::vector<rich::EventRings> found(memory_->event_count);
  check(cudaMemcpy(found.data(), memory_->rings.get(), found.size() * sizeof(rich::EventRings), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  return found;
}

const char* RingFinder::device_name() const { return memory_->properties.name; }

}  // namespace nanet::gpu
