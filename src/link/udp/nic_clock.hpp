// SPDX-License-Identifier: Apache-2.0
// The clock of a NIC (PTP hardware clock), in which it stamps what it receives, and CLOCK_REALTIME: what a stamp of the one is in the other, and how
// far off that is at most. docs/design/receive-times.md.
//
// Thread rules: one thread.
#pragma once

#include <linux/ptp_clock.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nanet/link/udp.hpp"

namespace nanet::link {

// Both clocks at one moment. They are not read at once: realtime_ns is in the middle of the two readings around, at most error_ns off.
struct ClockReading {
  std::uint64_t nic_ns = 0;
  std::uint64_t realtime_ns = 0;
  std::uint64_t error_ns = 0;
};

// The reading that took the shortest; none: there is none.
std::optional<ClockReading> best_of(const ptp_sys_offset_extended& readings);
std::optional<ClockReading> best_of(const ptp_sys_offset& readings);

// From the NIC's time to CLOCK_REALTIME: by the last reading, and by the rate between the last two, as no one may have set that clock right.
class NicToRealtime {
 public:
  void add(const ClockReading& reading);
  std::uint64_t realtime_ns(std::uint64_t nic_ns) const;

 private:
  ClockReading last_;
  double ns_per_ns_ = 0.0;  // that realtime gains on the NIC's clock
  bool has_one_ = false;
};

class NicClock {
 public:
  // Has the NIC that the endpoint's packets come from stamp all of them, and reads its clock. Throws SetupError.
  NicClock(const UdpConfig& config, std::vector<std::string>& notes);
  ~NicClock();
  NicClock(const NicClock&) = delete;
  NicClock& operator=(const NicClock&) = delete;

  // Some microseconds: the clock is on the other side of PCIe. Nothing: this time it could not be read.
  std::optional<ClockReading> read() const;

 private:
  int fd_ = -1;
};

}  // namespace nanet::link
