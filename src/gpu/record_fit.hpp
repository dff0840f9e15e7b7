// SPDX-License-Identifier: Apache-2.0
// RecordFit: the MATH fit of events that lie in device memory as records of one size, at the speed of that memory. The same bits as rich::fit_ring.
// Thread rules: one thread per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace nanet::gpu {

inline constexpr std::uint32_t kRecordHitsMax = 28;

// An event as in an MGP packet (wire/mgp.hpp), but of 64 bytes.
struct alignas(16) EventRecord {
  std::uint32_t timestamp = 0;
  std::uint8_t fine_time = 0;
  std::uint8_t hit_count = 0;  // more than kRecordHitsMax count as kRecordHitsMax
  std::uint16_t event_number = 0;
  std::uint16_t hits[kRecordHitsMax] = {};
};
static_assert(sizeof(EventRecord) == 64 && std::is_trivially_copyable_v<EventRecord>);

// Without a circle (fewer than three different PMs, or all on one line) all members are 0.
struct FittedCircle {
  float x_mm;
  float y_mm;
  float radius_mm;
  float rms_mm;
};
static_assert(sizeof(FittedCircle) == 16 && std::is_trivially_copyable_v<FittedCircle>);

class RecordFit {
 public:
  // Copies the records to the device, `repeats` times one after the other. Throws SetupError where there is no GPU, or not enough of its memory.
  explicit RecordFit(std::span<const EventRecord> records, std::size_t repeats = 1);
  ~RecordFit();
  RecordFit(const RecordFit&) = delete;
  RecordFit& operator=(const RecordFit&) = delete;

  // Fits all records and waits; returns the seconds that the kernel ran. Throws SetupError when it failed.
  double fit();

  // What the last fit() found, from the device: the circle of each record, in order.
  std::vector<FittedCircle> circles() const;

  // Seconds of a copy of `bytes` within device memory, by the driver: what the memory can do, to compare with.
  static double copy_seconds(std::size_t bytes);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace nanet::gpu
