// SPDX-License-Identifier: Apache-2.0
// RingFinder: the ring finders on a GPU, on batches of events in device memory. The same bits as on a CPU.
// For benchmarks and tests: with a network the finders run in an EventProcessor.
// Thread rules: one thread per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nanet/rich/finder.hpp"

namespace nanet::gpu {

class RingFinder {
 public:
  // Copies the events' hits to the device. Throws SetupError where there is no GPU, or not enough of its memory.
  explicit RingFinder(std::span<const event::Event> events);
  ~RingFinder();
  RingFinder(const RingFinder&) = delete;
  RingFinder& operator=(const RingFinder&) = delete;

  // Finds the rings of all events and waits; returns the seconds that the kernel ran. Throws SetupError when it failed.
  double find(const rich::FinderConfig& config);

  // Seconds that a running kernel takes for the first `event_count` events, side by side as far as they fit: the mean of repetitions, without the launch.
  double latency_seconds(const rich::FinderConfig& config, std::uint32_t event_count);

  // What the last find() found, from the device.
  std::vector<rich::EventRings> rings() const;

  const char* device_name() const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace nanet::gpu
