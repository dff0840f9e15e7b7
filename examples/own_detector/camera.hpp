// SPDX-License-Identifier: Apache-2.0
// The format of a camera that nanet has never heard of: a header, then events of 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>

#include "nanet/engine/protocol_of.hpp"
#include "nanet/event/event.hpp"

namespace camera {

using namespace nanet;

struct Header {
  std::uint32_t magic;  // kMagic
  std::uint8_t camera;
  std::uint8_t event_count;
  std::uint16_t first_event;  // running number, modulo 65536
  std::uint32_t sequence;
};
struct CameraEvent {
  std::uint32_t timestamp;
  std::uint8_t fine_time;
  std::uint8_t pixel_count;
  std::uint16_t pixels[5];
};
static_assert(sizeof(Header) == 12 && sizeof(CameraEvent) == 16);
constexpr std::uint32_t kMagic = 0x314D4143;  // "CAM1"

struct CameraProtocol {
  static constexpr bool has_sequence = true;
  static constexpr bool has_events = true;
  static constexpr std::size_t kScratchHits = 0;  // pixels lie in the packet as a trigger wants them
  static constexpr bool kHitsPadded = false;

  struct Packet {
    Header header;
    const std::byte* events;
  };

  static engine::Inspection inspect(std::span<const std::byte> payload, engine::PacketFacts& facts) {
    using flow::Counter;
    if (payload.size() < sizeof(Header)) return {false, Counter::packets_bad_length};
    const Packet packet = open(payload);
    if (packet.header.magic != kMagic) return {false, Counter::packets_bad_format};
    if (payload.size() != sizeof(Header) + packet.header.event_count * sizeof(CameraEvent))
      return {false, Counter::packets_bad_length};
    for (std::size_t e = 0; e < packet.header.event_count; ++e) {
      if (event_of(packet, e).count > std::size(CameraEvent{}.pixels)) return {false, Counter::packets_bad_format};
    }
    facts.source_id = packet.header.camera;
    facts.sequence = packet.header.sequence;
    facts.event_count = packet.header.event_count;
    facts.first_event_number = packet.header.first_event;
    return {true, Counter::packets_accepted};
  }
  // Of a packet whose rest lies in the memory of a GPU: this protocol has none there.
  static engine::Inspection inspect_head(std::span<const std::byte>, std::size_t, engine::PacketFacts&) {
    return {false, flow::Counter::packets_bad_format};
  }

  static Packet open(std::span<const std::byte> payload) {
    Packet packet{};
    std::memcpy(&packet.header, payload.data(), sizeof(Header));
    packet.events = payload.data() + sizeof(Header);
    return packet;
  }
  static std::size_t event_count(const Packet& packet) { return packet.header.event_count; }
  template <class Room, class Visit>
  static void for_each_event(const Packet& packet, Room, Visit visit) {
    for (std::size_t e = 0; e < packet.header.event_count; ++e) visit(event_of(packet, e));
  }

 private:
  static event::Event event_of(const Packet& packet, std::size_t index) {
    const std::byte* const at = packet.events + index * sizeof(CameraEvent);
    CameraEvent event;
    std::memcpy(&event, at, sizeof event);
    return {.hits = reinterpret_cast<const std::uint16_t*>(at + offsetof(CameraEvent, pixels)),
            .count = event.pixel_count,
            .timestamp = event.timestamp,
            .fine_time = event.fine_time};
  }
};
inline constexpr engine::Protocol kCamera = engine::protocol_of<CameraProtocol>("camera");

// Packet number `sequence` of a made-up run: eight events with 0, 1, ... 5, 0, 1 pixels.
constexpr std::uint32_t kPacketEvents = 8;
constexpr std::size_t kPacketBytes = sizeof(Header) + kPacketEvents * sizeof(CameraEvent);

inline void write_packet(std::span<std::byte> packet, std::uint8_t camera, std::uint32_t sequence) {
  const Header header{kMagic, camera, kPacketEvents, static_cast<std::uint16_t>(sequence * kPacketEvents), sequence};
  std::memcpy(packet.data(), &header, sizeof header);
  for (std::uint32_t e = 0; e < kPacketEvents; ++e) {
    const CameraEvent event{sequence * kPacketEvents + e, 0, static_cast<std::uint8_t>(e % 6), {1, 2, 3, 4, 5}};
    std::memcpy(packet.data() + sizeof header + e * sizeof event, &event, sizeof event);
  }
}

}  // namespace camera
