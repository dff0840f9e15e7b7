// SPDX-License-Identifier: Apache-2.0
// Any bytes as an M2EGP packet: first as they are, then with a checksum that fits, so that the fuzzer gets past it. What is
// accepted is walked by both methods, built again from what was read, and must read the same; and no MGP reader may accept it.
#include <algorithm>
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

std::vector<Event> events_of(const M2egpView& view) {
  std::vector<Event> events;
  for_each_event(view, [&](MgpEvent event, const std::uint16_t* hits) {
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
  while (walk.next(place)) {
    events.push_back({place.event, {}});
    for (std::uint32_t k = 0; k < place.event.hit_count; ++k)
      events.back().hits.push_back(load_hit(payload, head, place.offset, k));
  }
  return events;
}

void check(std::span<const std::byte> payload) {
  M2egpView view;
  M2egpView head_view;
  const std::vector<std::byte> head(payload.begin(),
                                    payload.begin() + static_cast<std::ptrdiff_t>(std::min(payload.size(), kPacketHeadBytes)));
  const ParseError head_error = M2egpView::parse_head(head, payload.size(), head_view);
  if (M2egpView::parse(payload, view) != ParseError::none) return;
  require(head_error == ParseError::none, "the head of an accepted packet is accepted");
  MgpView mgp;
  require(MgpView::parse(payload, mgp) != ParseError::none, "no packet is of both formats");
  const std::vector<Event> events = events_of(view);
  require(std::ranges::equal(events_of(M2egpView::from_checked(payload)), events, same),
          "so does the view of a packet that was checked");
  require(events.size() == view.header().event_count, "the walk finds as many events as the header says");
  require(std::ranges::equal(walked_events(payload.data()), events, same), "a GPU lane's walk finds the same events");
  std::vector<std::byte> room(kM2egpBytesMax);
  if (view.is_marker()) {
    require(std::ranges::equal(make_m2egp_marker(room, view.header(), view.next_event_number()), payload),
            "a marker is built again");
    return;
  }
  require(events.front().event.event_number == view.first_event_number(), "the first event number is the first event's");
  M2egpBuilder builder(room);
  for (const Event& event : events) require(builder.add_event(event.event, event.hits), "an accepted event fits");
  const auto built = builder.finish(view.header(), payload.size());
  require(built.size() == payload.size(), "the same length is built");
  M2egpView again;
  require(M2egpView::parse(built, again) == ParseError::none, "what is built is accepted");
  require(std::ranges::equal(events_of(again), events, same), "and reads the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nanet::fuzz::Input input(data, size);
  if (size < kMgpMarkerBytes) {
    nanet::fuzz::Input room(data, size);
    require(is_refused([&] { M2egpBuilder builder(room.bytes()); }), "no room for a packet");
  }
  check(input.bytes());
  if (size >= kMgpHeaderBytes) {
    seal(input.bytes());
    check(input.bytes());
  }
  return 0;
}
