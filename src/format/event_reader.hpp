// SPDX-License-Identifier: Apache-2.0
// EventReader: the events of a packet that a decoder has accepted.
//
// Thread rules: any number of threads may read with one reader. It points into the decoder's program, which outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/program.hpp"

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
  Opened open(std::span<const std::byte> packet) const;

  // visit(ReadEvent) for each; room() is where the next one's hits may be written, up to 255.
  template <class Room, class Visit>
  static void for_each_event(const Opened& packet, Room room, Visit visit) {
    const EventsProgram* const events = packet.events;
    std::span<const std::byte> left = packet.payload;
    for (std::uint32_t i = 0; i < packet.count; ++i) {
      const Readable event(left);
      const auto value = [&](std::uint8_t field) { return field == kNoField ? 0 : events->loads[field].from(event.data); };
      const auto hit_count = static_cast<std::uint32_t>(value(events->hit_count));
      const std::size_t bytes = events->event_bytes(hit_count);
      const std::byte* const hits = left.data() + events->hits_at;
      const std::uint16_t* words = reinterpret_cast<const std::uint16_t*>(hits);
      if (!events->hits_in_place || (reinterpret_cast<std::uintptr_t>(hits) & 1u) != 0) {
        std::uint16_t* const unpacked = room();
        unpack_hits(*events, left.first(bytes).subspan(events->hits_at), hit_count, packet.plus, unpacked);
        words = unpacked;
      }
      visit(ReadEvent{words, hit_count, static_cast<std::uint32_t>(value(events->timestamp)),
                      static_cast<std::uint8_t>(value(events->fine_time))});
      left = left.subspan(bytes);
    }
  }

 private:
  const Program* program_;
};

}  // namespace nanet::format
