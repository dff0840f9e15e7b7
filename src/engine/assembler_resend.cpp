// SPDX-License-Identifier: Apache-2.0
// What is missing of units that are open, for the protocol that asks for it: a walk over the open units once in ResendConfig::after_us.
#include <algorithm>

#include "nanet/engine/assembler.hpp"

namespace nanet::engine {

void Assembler::look_for_missing(Requester& requester, std::uint64_t now_ns, Rest rest) {
  now_ns_ = now_ns;
  next_look_ns_ = now_ns + 1000 * config_.resend->after_us;
  for (std::uint32_t i = oldest_; i != kNone; i = units_[i].newer) look_at(units_[i], chases_[i], requester, rest);
  requester.flush();
}

// A hole before what had come at the last look has been there for after_us. The end is missing when nothing came for again_us; where the unit's length
// is not said yet, that of the stream's last unit is assumed.
void Assembler::look_at(Unit& unit, Chase& chase, Requester& requester, Rest rest) {
  const ResendConfig& config = *config_.resend;
  const Stream& stream = streams_[unit.stream];
  const std::uint32_t came_end = unit.ranges.end();
  const bool is_quiet = rest == Rest::none && now_ns_ - unit.head->last_packet_ns >= 1000 * config.again_us;
  std::uint32_t piece_bytes = unit.piece_bytes != 0 ? unit.piece_bytes : unit.head->piece_bytes;
  if (piece_bytes == 0) piece_bytes = stream.piece_bytes;
  if (piece_bytes == 0) return;  // of a stream's first unit, nothing but a trailer
  const std::uint64_t counted = std::min(std::uint64_t{unit.packets} * piece_bytes, std::uint64_t{clop_.buffer_bytes()});
  const std::uint32_t whole = unit.bytes != 0     ? unit.bytes
                              : unit.packets != 0 ? static_cast<std::uint32_t>(counted)
                                                  : std::max(stream.unit_bytes, came_end);
  const std::uint32_t limit = std::max(is_quiet || chase.end_asked ? whole : chase.seen_end, chase.asked_end);
  chase.seen_end = came_end;
  const bool end_missing = unit.bytes == 0 && unit.packets == 0 && (is_quiet || chase.end_asked);
  const bool is_again = chase.tries > 0 && chase.tries < config.tries_max && now_ns_ >= chase.again_ns;
  const bool is_new = (limit > chase.asked_end && chase.asked_packets < config.packets_max) || (end_missing && !chase.end_asked);
  if (!is_again && !is_new) return;
  const std::uint32_t from = is_again ? 0 : chase.asked_end;
  const std::uint64_t requests = counters_.value(Counter::resend_requests);
  ask_for_holes(unit, chase, requester, from,
                {.stream = unit.head->stream,
                 .unit = unit.head->unit,
                 .begin = 0,
                 .end = limit,
                 .piece_bytes = piece_bytes,
                 .header_bytes = chase.header_bytes,
                 .open_end = end_missing});
  if (counters_.value(Counter::resend_requests) == requests || (!is_again && chase.tries > 0)) return;
  ++chase.tries;
  chase.again_ns = now_ns_ + 1000 * config.again_us;
}

// part.end is where what may be asked for ends: all holes from `from` to there, as far as packets_max allows.
void Assembler::ask_for_holes(const Unit& unit, Chase& chase, Requester& requester, std::uint32_t from, MissingPart part) {
  const std::uint32_t limit = part.end, packets_max = config_.resend->packets_max;
  const bool open_end = part.open_end;
  bool end_told = false;
  const auto ask = [&](std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t fresh = std::max(begin, chase.asked_end);  // what lies before it was counted
    if (end > fresh) {
      if (chase.asked_packets >= packets_max && begin >= chase.asked_end) return;
      const std::uint64_t room = std::uint64_t{packets_max - chase.asked_packets} * part.piece_bytes;
      end = static_cast<std::uint32_t>(std::min<std::uint64_t>(end, fresh + room));
      const std::uint32_t packets = (end - fresh + part.piece_bytes - 1) / part.piece_bytes;
      chase.asked_packets += packets;
      if (packets > 0) chase.asked_end = end;
      counters_.add(Counter::resends_asked, packets);
    }
    part.begin = begin;
    part.end = end;
    part.open_end = end_told = open_end && end == limit;
    if (begin == end && !part.open_end) return;
    counters_.add(Counter::resend_requests);
    requester.ask(part);
  };
  std::uint32_t at = from;
  for (const UnitRange& range : unit.ranges.all()) {
    if (range.begin >= limit) break;
    if (range.begin > at) ask(at, range.begin);
    at = std::max(at, range.end);
  }
  if (at < limit) ask(at, limit);
  if (chase.asked_packets < packets_max) chase.asked_end = std::max(chase.asked_end, limit);
  if (open_end && !end_told) ask(limit, limit);
  chase.end_asked |= open_end;
}

void Assembler::book_resends(const Unit& unit, const Chase& chase) {
  if (chase.asked_packets == 0) return;
  const std::uint32_t limit = unit.bytes != 0 ? std::min(chase.asked_end, unit.bytes) : chase.asked_end;
  const std::uint32_t piece_bytes = std::max({unit.piece_bytes, unit.head->piece_bytes, 1u});
  std::uint64_t missing = 0;
  std::uint32_t at = 0;
  const auto hole = [&](std::uint32_t end) {
    if (end > at) missing += (end - at + piece_bytes - 1) / piece_bytes;
  };
  for (const UnitRange& range : unit.ranges.all()) {
    hole(std::min(range.begin, limit));
    at = std::max(at, range.end);
  }
  hole(limit);
  missing = std::min<std::uint64_t>(missing, chase.asked_packets);
  counters_.add(Counter::resends_not_came, missing);
  counters_.add(Counter::resends_came, chase.asked_packets - missing);
}

}  // namespace nanet::engine
