// SPDX-License-Identifier: Apache-2.0
// What the engine's tests share: a link made of memory, and packets of known events.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <span>
#include <vector>

#include "nanet/link/link.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::engine::test {

using Bytes = std::vector<std::byte>;

// Gives what was put into it, and keeps what was sent.
class MemoryLink final : public link::Link {
 public:
  struct Incoming {
    Bytes payload;
    std::uint16_t flags = 0;
    std::uint32_t from = 0;  // IPv4 of the sender, or an index in ipv6_peers
  };
  std::vector<link::IpAddress> ipv6_peers;
  std::deque<Incoming> incoming;
  std::vector<Bytes> outgoing;
  std::size_t room_bytes = 4096;
  bool keeps = false;            // keeps_packets()
  bool ends = false;             // finished() once nothing is left
  std::size_t takes = SIZE_MAX;  // packets to be sent; those after them are dropped

  std::size_t min_room_bytes() const override { return room_bytes; }

  link::RxBatch receive(std::span<std::byte> room, std::span<link::RxPacket> packets, std::uint64_t) override {
    link::RxBatch batch;
    while (!incoming.empty() && batch.packet_count < packets.size()) {
      const Incoming& next = incoming.front();
      if (batch.bytes_used + next.payload.size() > room.size()) break;
      std::copy(next.payload.begin(), next.payload.end(), room.begin() + batch.bytes_used);
      packets[batch.packet_count++] = {.offset = batch.bytes_used,
                                       .bytes = static_cast<std::uint16_t>(next.payload.size()),
                                       .peer_address = next.from,
                                       .flags = next.flags};
      batch.bytes_used += static_cast<std::uint32_t>((next.payload.size() + 7) / 8 * 8);
      incoming.pop_front();
    }
    return batch;
  }

  std::span<const link::IpAddress> peers() const override { return ipv6_peers; }
  void send(std::span<const link::TxPacket> packets, std::uint64_t) override {
    for (const link::TxPacket& packet : packets) {
      if (outgoing.size() == takes) {
        link::tell_dropped({&packet, 1});
      } else {
        outgoing.emplace_back(packet.data, packet.data + packet.bytes);
      }
    }
  }
  bool finished() const override { return ends && incoming.empty(); }
  void wait(std::uint64_t) override {}
  bool keeps_packets() const override { return keeps; }
  link::Endpoint local() const override { return {}; }
  std::string path() const override { return "memory"; }
  std::vector<std::string> notes() const override { return {}; }
  link::LinkStats stats() const override { return {}; }
};

struct TestEvent {
  wire::MgpEvent time;
  std::vector<std::uint16_t> hits;
};

// Events with random hits, one every 100 timestamps.
inline std::vector<TestEvent> make_events(std::size_t count, std::uint64_t seed, std::uint32_t first_timestamp = 1000) {
  std::mt19937_64 random(seed);
  std::vector<TestEvent> events(count);
  for (std::size_t e = 0; e < count; ++e) {
    events[e].time = {.timestamp = first_timestamp + static_cast<std::uint32_t>(100 * e),
                      .fine_time = static_cast<std::uint8_t>(random()),
                      .event_number = static_cast<std::uint16_t>(e)};
    const std::size_t hits = random() % 21;
    for (std::size_t h = 0; h < hits; ++h) {
      events[e].hits.push_back(static_cast<std::uint16_t>(random() % 4 * 512 + random() % 488));
    }
  }
  return events;
}

// One padded packet of at most 16 events.
inline Bytes make_packet(std::span<const TestEvent> events, std::uint32_t sequence, std::uint8_t sub_id = 0) {
  Bytes room(wire::kMgpPaddedBytes);
  wire::MgpBuilder builder(room);
  builder.begin(wire::MgpLayout::padded);
  for (const TestEvent& event : events) builder.add_event(event.time, event.hits);
  const auto packet = builder.finish({.source_id = 0x1C, .source_sub_id = sub_id, .sequence = sequence});
  return {packet.begin(), packet.end()};
}

inline Bytes make_end_marker(std::uint32_t sequence, std::uint64_t next_event, std::uint8_t sub_id = 0) {
  Bytes room(wire::kMgpMarkerBytes);
  wire::make_marker(room, {.source_id = 0x1C, .source_sub_id = sub_id, .run_end = true, .sequence = sequence}, next_event);
  return room;
}

inline Bytes make_start_marker(std::uint32_t sequence, std::uint64_t next_event, std::uint8_t sub_id = 0) {
  Bytes room(wire::kMgpMarkerBytes);
  wire::make_marker(room, {.source_id = 0x1C, .source_sub_id = sub_id, .run_start = true, .sequence = sequence}, next_event);
  return room;
}

// The part of an event that one board sees.
inline TestEvent part_of(const TestEvent& event, unsigned board) {
  TestEvent part{.time = event.time};
  for (const std::uint16_t hit : event.hits) {
    if (wire::hit_channel(hit) / 512 == board) part.hits.push_back(hit);
  }
  return part;
}

}  // namespace nanet::engine::test
