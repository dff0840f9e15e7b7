// SPDX-License-Identifier: Apache-2.0
// EventReader: the events of a packet that a decoder has accepted.
//
// Thread rules: any number of threads may read with one reader. It points into the decoder's program, which outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/program.hpp"
#include "nanet/wire/little_endian.hpp"

namespace nanet::format {

struct ReadEvent {
  const std::uint16_t* hits;
  std::uint32_t hit_count;
  std::uint32_t timestamp;
  std::uint8_t fine_time;
};

// Hits of up to 16 bits to words, each with `plus` added. `packed` holds all of their bits.
void unpack_hits(const EventsProgram& events, std::span<const std::byte> packed, std::size_t count, std::uint16_t plus,
                 std::uint16_t* to);

class EventReader {
 public:
  explicit EventReader(const Decoder& decoder) : program_(&decoder.program()) {}

  // An accepted packet, opened.
  struct Opened {
    const EventsProgram* events = nullptr;  // null: it has none
    std::span<const std::byte> payload;
    std::uint32_t count = 0;
    std::uint16_t plus = 0;
  };
  Opened open(std::span<const std::byte> whole) const {
    const std::span<const std::byte> packet = whole.subspan(before_bytes(*program_, whole));
    const Readable readable(packet);
    const Body& body = *body_of(*program_, readable.data);
    if (!body.events) return {};
    if (!body.flat || !body.events->hits_in_place) return open_slowly(body, packet, readable.data);
    const std::size_t rest = packet.size() - body.flat->header_bytes;
    return {.events = &*body.events,
            .payload = {packet.data() + body.flat->header_bytes, body.flat->payload_to_end ? rest : body.flat->payload_bytes},
            .count = static_cast<std::uint32_t>(body.loads[body.events->count_field].from(readable.data))};
  }

  // visit(ReadEvent) for each; room() is where the next one's hits may be written, up to 255.
  template <class Room, class Visit>
  static void for_each_event(const Opened& packet, Room room, Visit visit) {
    if (packet.events == nullptr) return;
    const EventsProgram& events = *packet.events;
    if (events.is_direct) return for_each_direct(packet, room, visit);
    const auto field = [&](std::uint8_t index) { return index == kNoField ? Load{} : events.loads[index]; };
    const Load timestamp = field(events.timestamp);
    const Load fine_time = field(events.fine_time);
    const Load hit_count = field(events.hit_count);
    if (events.is_one_word && packet.payload.size() >= 8) {
      walk(packet, room, visit, [=](const std::byte* event) {
        const std::uint64_t word = timestamp.word(event);
        return ReadEvent{nullptr, static_cast<std::uint32_t>(hit_count.of(word)), static_cast<std::uint32_t>(timestamp.of(word)),
                         static_cast<std::uint8_t>(fine_time.of(word))};
      });
    } else {
      walk(packet, room, visit, [=](const std::byte* event) {
        return ReadEvent{nullptr, static_cast<std::uint32_t>(hit_count.from(event)),
                         static_cast<std::uint32_t>(timestamp.from(event)), static_cast<std::uint8_t>(fine_time.from(event))};
      });
    }
  }

 private:
  static Opened open_slowly(const Body& body, std::span<const std::byte> packet, const std::byte* header);

  static bool hits_are_aligned(const Opened& packet) {
    return ((reinterpret_cast<std::uintptr_t>(packet.payload.data()) + packet.events->hits_at) & 1u) == 0;
  }

  template <class Room, class Visit>
  static void for_each_direct(const Opened& packet, Room& room, Visit& visit) {
    const EventsProgram& events = *packet.events;
    const Direct ticks = events.direct_timestamp;
    const Direct fine = events.direct_fine_time;
    const Direct hits = events.direct_hit_count;
    if (!events.hits_in_place || events.stride_bytes % 2 != 0 || !hits_are_aligned(packet)) {
      return walk(packet, room, visit, [=](const std::byte* event) {
        return ReadEvent{nullptr, static_cast<std::uint32_t>(hits.from(event)), static_cast<std::uint32_t>(ticks.from(event)),
                         static_cast<std::uint8_t>(fine.from(event))};
      });
    }
    const std::uint32_t hits_at = events.hits_at;
    const std::size_t stride_bytes = events.stride_bytes;
    const auto hits_of = [&](const std::byte* event) { return reinterpret_cast<const std::uint16_t*>(event + hits_at); };
    const std::byte* event = packet.payload.data();
    const std::byte* const end = event + packet.count * stride_bytes;
    if (events.is_whole) {
      for (; event != end; event += stride_bytes) {
        visit(ReadEvent{hits_of(event), static_cast<std::uint32_t>(event[hits.offset]),
                        wire::load_le<std::uint32_t>(event + ticks.offset), static_cast<std::uint8_t>(event[fine.offset])});
      }
      return;
    }
    for (; event != end; event += stride_bytes) {
      visit(ReadEvent{hits_of(event), static_cast<std::uint32_t>(hits.from(event)), static_cast<std::uint32_t>(ticks.from(event)),
                      static_cast<std::uint8_t>(fine.from(event))});
    }
  }

  // head(bytes of an event's header): what it says of it.
  template <class Room, class Visit, class Head>
  static void walk(const Opened& packet, Room& room, Visit& visit, Head head) {
    const EventsProgram& events = *packet.events;
    const std::uint32_t hits_at = events.hits_at;
    const std::uint32_t stride_bytes = events.stride_bytes;
    const bool in_place = events.hits_in_place;
    const std::byte* next = packet.payload.data();
    const std::byte* const end = next + packet.payload.size();
    for (std::uint32_t i = 0; i < packet.count; ++i) {
      const auto left = static_cast<std::size_t>(end - next);
      ReadEvent event = left >= 8 ? head(next) : head(Readable({next, left}).data);
      const std::size_t bytes = stride_bytes != 0 ? stride_bytes : events.event_bytes(event.hit_count);
      event.hits = reinterpret_cast<const std::uint16_t*>(next + hits_at);
      if (!in_place || (reinterpret_cast<std::uintptr_t>(event.hits) & 1u) != 0) {
        std::uint16_t* const unpacked = room();
        unpack_hits(events, {next + hits_at, bytes - hits_at}, event.hit_count, packet.plus, unpacked);
        event.hits = unpacked;
      }
      visit(event);
      next += bytes;
    }
  }

  const Program* program_;
};

}  // namespace nanet::format
