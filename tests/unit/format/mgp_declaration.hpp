// SPDX-License-Identifier: Apache-2.0
// MGP (docs/formats.md) as a declaration, for tests and benchmarks in C++; examples/formats/mgp.yaml is the same for configurations.
#pragma once

#include <string>
#include <utility>

#include "declarations.hpp"

namespace nanet::format::test {

inline EventsConfig mgp_events(bool is_padded) {
  EventsConfig events;
  events.count = "event_count";
  if (is_padded) events.count_most = 16;
  events.event_bytes = is_padded ? 72 : 0;
  events.header_bytes = 8;
  events.header = {field("timestamp", "0", kU32), field("fine_time", "4", kU8), field("hit_count", "5", kU8),
                   field("number", "6", kU16)};
  if (is_padded) events.header[2].below = "33";
  events.timestamp = "timestamp";
  events.fine_time = "fine_time";
  events.number = "number";
  events.hits = HitsConfig{.at = 8, .count = "hit_count"};
  if (!is_padded) {
    events.hits->bits = 9;
    events.hits->plus = "source_sub_id * 512";
  }
  return events;
}

inline VariantConfig mgp_variant(bool is_padded, const Conditions& more) {
  VariantConfig one;
  one.when = {{"layout", is_padded ? "1" : "2"}};
  one.when.insert(more.begin(), more.end());
  if (!is_padded) one.header.push_back(equal(bits(field("board_high", "1", kU8), 7, 2), "0"));
  if (more.empty()) {
    one.header.push_back(field("some_events", "3", kU8));
    one.header.back().least = "1";
    one.events = mgp_events(is_padded);
    if (is_padded) one.packet_bytes = "1168";
  } else {
    one.header.push_back(field("next_event", "16", kU64));
    one.header_bytes = one.packet_bytes = "24";
    one.next_event = "next_event";
  }
  return one;
}

inline Declaration mgp() {
  Declaration made;
  made.byte_order = ByteOrder::little;
  made.header = {
      field("source_id", "0", kU8),          field("source_sub_id", "1", kU8),     bits(field("layout", "2", kU8), 3, 0),
      bits(field("starts", "2", kU8), 4, 4), bits(field("stops", "2", kU8), 5, 5), bits(equal(field("zero", "2", kU8), "0"), 7, 6),
      field("event_count", "3", kU8),        field("sequence", "4", kU32),         field("send_time_ns", "8", kU32)};
  made.header_bytes = "16";
  made.packet_bytes_most = 1472;
  made.packet_bytes_multiple_of = 2;
  made.checksum = ChecksumConfig{.at = 12};
  made.stream = {"source_id", "source_sub_id"};
  made.sequence = SequenceConfig{.field = "sequence"};
  made.start_when = {{"starts", "1"}, {"event_count", "0"}};
  made.stop_when = {{"stops", "1"}, {"event_count", "0"}};
  for (const bool is_padded : {true, false}) {
    made.variants.push_back(mgp_variant(is_padded, {{"event_count", "0"}, {"starts", "1"}, {"stops", "0"}}));
    made.variants.push_back(mgp_variant(is_padded, {{"event_count", "0"}, {"starts", "0"}, {"stops", "1"}}));
    made.variants.push_back(mgp_variant(is_padded, {}));
  }
  return made;
}

}  // namespace nanet::format::test
