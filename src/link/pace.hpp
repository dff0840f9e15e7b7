// SPDX-License-Identifier: Apache-2.0
// When the packets of a recording are due: at the pace they were recorded with, at a fixed rate of packets or events, or at once.
//
// Time is an argument, on any clock that does not run backwards. It never asks for a packet earlier than for the one before, even if the
// recording's times run backwards.
// Thread rules: one thread.
#pragma once

#include <cstdint>

#include "nanet/link/pcap_config.hpp"

namespace nanet::link {

class Pace {
 public:
  // rate: with packets or events, above 0 and up to 1e9 (SetupError); else it does not matter.
  Pace(ReplayPace pace, double rate);

  // The first packet of the first lap is due now.
  void start(std::uint64_t now_ns);

  // When the next packet is due, which was recorded at time_ns on any clock and holds event_count events. maximum: 0.
  std::uint64_t due_ns(std::uint64_t time_ns, std::uint32_t event_count);

  // The recording begins again: with the original pace, a mean gap after its last packet.
  void next_lap();

  std::uint64_t lap_packets() const { return lap_packets_; }  // asked for in this lap

 private:
  std::uint64_t after(std::uint64_t count) const;

  ReplayPace pace_;
  double rate_;
  std::uint64_t start_ns_ = 0;
  std::uint64_t lap_start_ns_ = 0;  // when this lap's first packet is due
  std::uint64_t lap_first_ns_ = 0;  // and when that was recorded
  std::uint64_t last_due_ns_ = 0;
  std::uint64_t lap_packets_ = 0;
  std::uint64_t packets_due_ = 0;  // in all laps
  std::uint64_t events_due_ = 0;
};

}  // namespace nanet::link
