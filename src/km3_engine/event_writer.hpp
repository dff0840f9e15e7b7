// SPDX-License-Identifier: Apache-2.0
// Events as packets (docs/formats-km3.md), cut where one is longer than a packet.
//
// Thread rules: those of TxSlots.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nanet/engine/tx_slots.hpp"
#include "nanet/km3/trigger.hpp"

namespace nanet::km3_engine {

inline constexpr std::uint32_t kEventHeaderBytes = 32;  // of each packet
inline constexpr std::uint32_t kEventHeadBytes = 24;    // of the event, in its first packet
inline constexpr std::uint32_t kEventHitBytes = 12;
inline constexpr std::uint32_t kEventPmBits = 5;  // of a hit's third byte; above them the kinds of the triggered seed that the hit began

class EventWriter {
 public:
  EventWriter(const km3::Detector& detector, std::uint32_t packet_bytes, flow::TxRing& ring, flow::CompletionQueue& sent,
              flow::Counters& counters, engine::Transmitter* inline_transmitter);

  // slice_ns: GPS time at which the slice `slice` began, from which the event's times count.
  struct Slice {
    std::uint32_t run;
    std::uint32_t slice;
    std::uint64_t begin_ns;
  };
  // hits and seeds: those of the event, as Trigger gives them, in the order of their times.
  void write(const km3::Event& event, std::span<const km3::Hit> hits, std::span<const km3::Seed> seeds, const Slice& slice,
             std::uint64_t arrival_ns);

  // Sends what was written.
  void flush() { slots_.ring_doorbell(); }
  void collect_sent() { slots_.collect_sent(); }

 private:
  struct Name {
    std::uint8_t tower;
    std::uint8_t floor;
    std::uint8_t pm;
  };

  engine::TxSlots slots_;
  std::uint32_t packet_bytes_;
  double time_base_ns_;
  std::vector<Name> names_;  // by PM
};

}  // namespace nanet::km3_engine
