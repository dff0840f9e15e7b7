// SPDX-License-Identifier: Apache-2.0
#include "format/event_reader.hpp"

namespace nanet::format {

namespace {

// Of the one field that is bounded, if there is one: a compare an event, no branch.
bool bounds_hold(const EventsProgram& events, const std::byte* event, std::uint64_t count) {
  if (events.gate.limits.empty()) return true;
  const Limit& limit = events.gate.limits.front();
  const Direct bounded = events.direct_bounded;
  const std::size_t stride_bytes = events.stride_bytes;
  std::uint64_t signs = 0;  // a difference below 0 sets the highest bit: the field has at most 63
  for (; count > 0; --count, event += stride_bytes) {
    const std::uint64_t value = bounded.from(event);
    signs |= (limit.most - value) | (value - limit.least);
  }
  return signs >> 63 == 0;
}

}  // namespace

Refusal check_events(const EventsProgram& events, std::span<const std::byte> payload, std::uint64_t count) {
  if (count > events.count_most) return Refusal::event_refused;
  if (events.stride_bytes != 0) {
    if (count * events.stride_bytes > payload.size()) return Refusal::events_cut;
    if (events.is_direct) {
      return bounds_hold(events, payload.data(), count) ? Refusal::none : Refusal::event_refused;
    }
  }
  const Load* const loads = events.loads.data();
  std::span<const std::byte> left = payload;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (left.size() < events.header_bytes) return Refusal::events_cut;
    const Readable event(left);
    if (pass(events.gate, loads, event.data) != Refusal::none) return Refusal::event_refused;
    const std::size_t bytes = events.event_bytes(events.hit_count == kNoField ? 0 : loads[events.hit_count].from(event.data));
    if (bytes > left.size()) return Refusal::events_cut;
    left = left.subspan(bytes);
  }
  return Refusal::none;
}

void unpack_hits(const EventsProgram& events, std::span<const std::byte> packed, std::size_t count, std::uint16_t plus,
                 std::uint16_t* to) {
  const unsigned bits = events.hit_bits;
  const std::uint32_t mask = (1u << bits) - 1;
  std::uint32_t waiting = 0;  // lsb_first: the next bits are its lowest; else its highest of waiting_bits
  unsigned waiting_bits = 0;
  const std::byte* from = packed.data();
  for (std::size_t i = 0; i < count; ++i) {
    for (; waiting_bits < bits; waiting_bits += 8) {
      const auto byte = static_cast<std::uint32_t>(*from++);
      waiting = events.hits_msb_first ? waiting << 8 | byte : waiting | byte << waiting_bits;
    }
    waiting_bits -= bits;
    to[i] = static_cast<std::uint16_t>(((events.hits_msb_first ? waiting >> waiting_bits : waiting) & mask) + plus);
    if (!events.hits_msb_first) waiting >>= bits;
  }
}

EventReader::Opened EventReader::open_slowly(const Body& body, std::span<const std::byte> packet, const std::byte* header) {
  const Load* const loads = body.loads.data();
  std::uint64_t header_bytes = 0;
  std::uint64_t plus = 0;
  std::uint64_t payload_bytes = 0;
  evaluate(body.header_bytes, loads, header, header_bytes);
  evaluate(body.events->plus, loads, header, plus);
  const std::size_t rest = packet.size() - header_bytes;
  if (!body.payload_bytes || !evaluate(*body.payload_bytes, loads, header, payload_bytes)) payload_bytes = rest;
  return {.events = &*body.events,
          .payload = packet.subspan(header_bytes, payload_bytes),
          .count = static_cast<std::uint32_t>(loads[body.events->count_field].from(header)),
          .plus = static_cast<std::uint16_t>(plus)};
}

}  // namespace nanet::format
