// SPDX-License-Identifier: Apache-2.0
// Any bytes as an MGP packet: first as they are, then with a checksum that fits, so that the fuzzer gets past it. What is
// accepted is walked by both methods, built again from what was read, and must read the same.
#include <algorithm>
#include <array>
#include <vector>

#include "fuzz_common.hpp"
#include "wire/event_walk.hpp"

namespace {

using namespace nanet::wire;
using nanet::fuzz::is_refused;
using nanet::fuzz::require;

struct Event {
  MgpEvent event;
  std::vector<std::uint16_t> hits;
};

std::vector<Event> events_of(const MgpView& view) {
  std::vector<Event> events;
  std::array<std::uint16_t, kMgpScratchHits> scratch;
  for_each_event(view, scratch.data(), [&](MgpEvent event, const std::uint16_t* hits) {
    events.push_back({event, {hits, hits + event.hit_count}});
  });
  return events;
}

bool same(const Event& a, const Event& b) {
  return a.event.timestamp == b.event.timestamp && a.event.fine_time == b.event.fine_time &&
         a.event.event_number == b.event.event_number && a.hits == b.hits;
}

std::vector<Event> walked_events(const std::byte* payload) {
  const PacketHead head = load_packet_head(payload);
  std::vector<Event> events;
  EventWalk walk(payload, head);
  EventPlace place;
  std::uint32_t offset = kFirstEventOffset;
  while (walk.next(place)) {
    require(event_at(payload, offset).offset == place.offset, "each event begins where the one before ends");
    offset = next_event_offset(payload, head.format, offset);
    if (head.format == PacketFormat::padded) {
      require(padded_event(payload, static_cast<std::uint32_t>(events.size())).offset == place.offset, "or at its slot");
    }
    events.push_back({place.event, {}});
    for (std::uint32_t k = 0; k < place.event.hit_count; ++k)
      events.back().hits.push_back(load_hit(payload, head, place.offset, k));
  }
  return events;
}

// A packet built in too little room would be written after its end.
void check_room(std::span<std::byte> room) {
  if (room.size() < kMgpMarkerBytes) require(is_refused([&] { MgpBuilder builder(room); }), "no room for a packet");
  if (room.size() < kMgpMarkerBytes) require(is_refused([&] { make_marker(room, {.run_start = true}, 1); }), "nor for a marker");
  require(is_refused([&] { make_marker(room, {}, 1); }), "a marker of nothing");
  if (room.size() < kMgpMarkerBytes || room.size() >= kMgpPaddedBytes) return;
  require(is_refused([&] { MgpBuilder(room).begin(MgpLayout::padded); }), "no room for a padded packet");
}

void check(std::span<const std::byte> payload) {
  MgpView view;
  MgpView head_view;
  const std::vector<std::byte> head(payload.begin(),
                                    payload.begin() + static_cast<std::ptrdiff_t>(std::min(payload.size(), kPacketHeadBytes)));
  const ParseError head_error = MgpView::parse_head(head, payload.size(), head_view);
  if (MgpView::parse(payload, view) != ParseError::none) return;
  require(head_error == ParseError::none, "the head of an accepted packet is accepted");
  const std::vector<Event> events = events_of(view);
  require(std::ranges::equal(events_of(MgpView::from_checked(payload)), events, same),
          "so does the view of a packet that was checked");
  require(events.size() == view.header().event_count, "the walk finds as many events as the header says");
  require(std::ranges::equal(walked_events(payload.data()), events, same), "a GPU lane's walk finds the same events");
  std::vector<std::byte> room(kMgpPackedBytesMax);
  if (view.is_marker()) {
    require(std::ranges::equal(make_marker(room, view.header(), view.next_event_number()), payload), "a marker is built again");
    return;
  }
  require(events.front().event.event_number == view.first_event_number(), "the first event number is the first event's");
  MgpBuilder builder(room);
  builder.begin(view.header().layout);
  for (const Event& event : events) require(builder.add_event(event.event, event.hits), "an accepted event fits");
  const auto built = builder.finish(view.header(), payload.size());
  require(built.size() == payload.size(), "the same length is built");
  MgpView again;
  require(MgpView::parse(built, again) == ParseError::none, "what is built is accepted");
  require(std::ranges::equal(events_of(again), events, same), "and reads the same");
  require(again.header().sequence == view.header().sequence && again.header().send_time_ns == view.header().send_time_ns &&
              again.header().run_start == view.header().run_start && again.header().run_end == view.header().run_end,
          "header too");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nanet::fuzz::Input input(data, size);
  check_room(nanet::fuzz::Input(data, size).bytes());
  check(input.bytes());
  if (size >= kMgpHeaderBytes) {
    seal(input.bytes());
    check(input.bytes());
  }
  return 0;
}
