// SPDX-License-Identifier: Apache-2.0
// Sample: a pool of Monte Carlo events, laid out once as ready packets, so that sending costs only what changes from lap to lap.
//
// Terms
//   pool packet  packet p of a board holds (the board's parts of) the pool events p * events_per_packet ... All packets of all boards
//                have the same size and those of a board lie back to back: any run of them can leave as one message.
//   patching     writes timestamps, event numbers, sequence, send time and checksum into a pool packet; hits and fine times stay.
//
// Two steps, so that the send time is true: prepare() does the work with send time 0, stamp() adds the time to header and checksum
// (Fletcher-32 is linear) in about 2 ns per packet.
//
// Thread rules: prepare and stamp by one thread; the rest is constant and may be read by any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "emulate/config.hpp"
#include "nanet/wire/mtp.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {

// What is known about a pool event.
struct PoolEvent {
  McTruth truth;
  std::uint16_t hit_count = 0;     // in the packets, of all boards
  std::uint16_t hits_unsent = 0;   // no room in the layout, or of another board
  std::uint16_t mapped_hits = 0;   // of hit_count: on a PM. Channels of an event are all different
  std::uint16_t primitive_id = 0;  // the right answer, by the scalar finder on the hits in the packets and the configured decision
};

class Sample {
 public:
  // pool_keys: see schedule.hpp, a multiple of events_per_packet of them. Throws SetupError when a packet cannot hold its events.
  Sample(const EmulatorConfig& config, std::span<const std::uint64_t> pool_keys);

  // Packet `number` of the run becomes pool packet `pool_packet` of `board`, whole but for the send time.
  void prepare(std::uint32_t board, std::uint32_t pool_packet, std::uint64_t number, std::uint64_t shift_units);

  // Writes the send time into `count` prepared pool packets; once after each prepare().
  void stamp(std::uint32_t board, std::uint32_t pool_packet, std::uint32_t count, std::uint32_t send_time_ns);

  std::span<const std::byte> packet(std::uint32_t board, std::uint32_t pool_packet) const {
    return {packet_data(board, pool_packet), packet_bytes_};
  }

  std::uint32_t boards() const { return boards_; }
  std::uint32_t packet_bytes() const { return packet_bytes_; }
  std::uint32_t pool_packets() const { return pool_packets_; }
  std::uint32_t events_per_packet() const { return events_per_packet_; }
  std::span<const PoolEvent> events() const { return events_; }
  std::span<const std::uint16_t> primitive_ids() const { return primitive_ids_; }

  // Time on the wire of a pool event in the first lap before any pause.
  wire::Primitive event_time(std::uint32_t pool_event) const {
    const std::uint64_t key = pool_keys_[pool_event];
    return {.timestamp = static_cast<std::uint32_t>(first_timestamp_ + wire::timestamp_of(key)),
            .fine_time = wire::fine_time_of(key)};
  }

 private:
  const std::byte* packet_data(std::uint32_t board, std::uint32_t pool_packet) const {
    return packets_.data() + (std::size_t{board} * pool_packets_ + pool_packet) * packet_bytes_;
  }
  std::span<std::byte> room(std::uint32_t board, std::uint32_t pool_packet) {
    return {const_cast<std::byte*>(packet_data(board, pool_packet)), packet_bytes_};
  }
  void lay_out(const EmulatorConfig& config, std::span<const std::uint16_t> hits, std::span<const std::uint32_t> hits_end);

  std::span<const std::uint64_t> pool_keys_;
  std::uint32_t first_timestamp_;
  std::uint32_t boards_;
  std::uint32_t events_per_packet_;
  std::uint32_t pool_packets_;
  std::uint32_t packet_bytes_ = 0;
  std::vector<std::byte> packets_;           // [board][pool packet][byte]
  std::vector<std::uint16_t> event_offset_;  // [board][pool event], from the start of its packet
  std::vector<PoolEvent> events_;
  std::vector<std::uint16_t> primitive_ids_;
};

}  // namespace nanet::emulate
