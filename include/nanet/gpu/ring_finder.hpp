// SPDX-License-Identifier: Apache-2.0
// RingFinder: the ring finders on a GPU, on batches of events in device memory, one thread an event. The same bits as on a CPU.
//
// This is the finders' part only: buffers, streams and the ways to run beside a network come with the GPU back-end.
// Thread rules: one thread an object.
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
  explicit RingFinder(std::span<const rich::EventHits> events);
  ~RingFinder();
  RingFinder(const RingFinder&) = delete;
  RingFinder& operator=(const RingFinder&) = delete;

  // Finds the rings of all events and waits; the seconds that the kernel ran. Throws SetupError when it failed.
  double find(const rich::FinderConfig& config);

  // What the last find() found, from the device.
  std::vector<rich::EventRings> rings() const;

  const char* device_name() const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace nanet::gpu
