// SPDX-License-Identifier: Apache-2.0
// The device's walk through a packet against the views' and cursors', on random packets and on every vector.
#include "wire/event_walk.hpp"

#include <gtest/gtest.h>

#include <random>

#include "exact_copy.hpp"
#include "vector_file.hpp"

namespace nanet::wire {
namespace {

struct Event {
  std::uint32_t offset;
  MgpEvent header;
  std::vector<std::uint16_t> hits;
  bool operator==(const Event& other) const {
    return offset == other.offset && header.timestamp == other.header.timestamp && header.fine_time == other.header.fine_time &&
           header.hit_count == other.header.hit_count && header.event_number == other.header.event_number && hits == other.hits;
  }
};

class Random {
 public:
  explicit Random(std::uint32_t seed) : generator_(seed) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(generator_()); }

 private:
  std::mt19937 generator_;
};

std::uint32_t offset_of(std::span<const std::byte> payload, const std::uint16_t* hits) {
  const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(hits) - payload.data());
  return static_cast<std::uint32_t>(offset - kMgpEventHeaderBytes);
}

std::vector<Event> by_cursor(const MgpView& view) {
  std::vector<Event> events;
  if (view.header().layout == MgpLayout::padded) {
    for (std::size_t i = 0; i < view.header().event_count; ++i) {
      const auto hits = view.hits(i);
      events.push_back({offset_of(view.payload(), hits.data()), view.event(i), {hits.begin(), hits.end()}});
    }
    return events;
  }
  if (view.is_marker()) return events;
  std::array<std::uint16_t, kMgpScratchHits> channels;
  MgpPackedCursor cursor(view);
  MgpEvent event;
  for (auto offset = cursor.offset(); cursor.next(event, channels.data()); offset = cursor.offset()) {
    events.push_back({static_cast<std::uint32_t>(offset), event, {channels.begin(), channels.begin() + event.hit_count}});
  }
  return events;
}

std::vector<Event> by_cursor(const M2egpView& view) {
  std::vector<Event> events;
  for_each_event(view, [&](MgpEvent event, const std::uint16_t* hits) {
    events.push_back({offset_of(view.payload(), hits), event, {hits, hits + event.hit_count}});
  });
  return events;
}

std::vector<Event> by_walk(const std::byte* payload) {
  const PacketHead head = load_packet_head(payload);
  std::vector<Event> events;
  EventWalk walk(payload, head);
  EventPlace place;
  while (walk.next(place)) {
    events.push_back({place.offset, place.event, {}});
    for (std::uint32_t k = 0; k < place.event.hit_count; ++k)
      events.back().hits.push_back(load_hit(payload, head, place.offset, k));
  }
  return events;
}

// As lanes do it: offsets first, one byte an event, then each event by itself and from whole words.
std::vector<Event> by_lanes(const std::byte* payload) {
  const PacketHead head = load_packet_head(payload);
  std::vector<Event> events(head.event_count);
  std::uint32_t offset = kFirstEventOffset;
  for (Event& event : events) {
    event.offset = offset;
    offset = next_event_offset(payload, head.format, offset);
  }
  for (std::uint32_t i = 0; i < head.event_count; ++i) {
    Event& event = events[i];
    event.header = event_from_word(load_le64_by_words(payload + event.offset));
    if (head.format == PacketFormat::padded) {
      EXPECT_EQ(padded_event(payload, i).offset, event.offset);
      event.header = padded_event(payload, i).event;
    }
    for (std::uint32_t k = event.header.hit_count; k > 0; --k) {
      event.hits.insert(event.hits.begin(), load_hit(payload, head, event.offset, k - 1));
    }
  }
  return events;
}

// Where a GPU keeps a packet: aligned, and readable up to the next multiple of 4 after it. The room is no larger than that, so that
// the address sanitizer sees a word too many.
class DeviceCopy {
 public:
  explicit DeviceCopy(std::span<const std::byte> payload) : room_(std::vector<std::byte>((payload.size() + 3) & ~std::size_t{3})) {
    std::ranges::copy(payload, room_.span().begin());
  }
  const std::byte* data() { return room_.span().data(); }

 private:
  test::ExactCopy room_;
};

template <class View>
void expect_same_events(std::span<const std::byte> payload) {
  const test::ExactCopy copy(payload);
  View view;
  ASSERT_EQ(View::parse(copy.span(), view), ParseError::none);
  const PacketHead head = load_packet_head(copy.span().data());
  EXPECT_EQ(head.source_id, view.header().source_id);
  EXPECT_EQ(head.source_sub_id, view.header().source_sub_id);
  EXPECT_EQ(head.event_count, view.header().event_count);
  const std::vector<Event> events = by_cursor(view);
  ASSERT_EQ(by_walk(copy.span().data()), events);
  ASSERT_EQ(by_lanes(DeviceCopy(payload).data()), events);
}

TEST(EventWalk, EveryVector) {
  std::size_t packets = 0;
  for (const char* file : {"wire_mgp_padded.txt", "wire_mgp_packed.txt", "wire_mgp_marker.txt", "wire_m2egp.txt"}) {
    for (const auto& vector : test::read_vectors(file)) {
      if (vector.expect() != ParseError::none) continue;
      SCOPED_TRACE(vector.name);
      ++packets;
      if (is_m2egp(vector.payload)) {
        expect_same_events<M2egpView>(vector.payload);
      } else {
        expect_same_events<MgpView>(vector.payload);
      }
    }
  }
  EXPECT_GT(packets, 10u);
}

TEST(EventWalk, RandomMgpPackets) {
  Random generator(5);
  std::vector<std::byte> room(kMgpPackedBytesMax);
  for (int round = 0; round < 2000; ++round) {
    const auto layout = round % 2 == 0 ? MgpLayout::padded : MgpLayout::packed;
    const std::uint32_t hits_max = layout == MgpLayout::padded ? 32 : generator() % 3 == 0 ? 255 : 20;
    MgpBuilder builder(room);
    builder.begin(layout);
    for (std::uint32_t events = 1 + generator() % 182; events > 0; --events) {
      std::vector<std::uint16_t> hits(generator() % (hits_max + 1));
      for (auto& hit : hits) hit = static_cast<std::uint16_t>(generator());
      const MgpEvent event{generator(), static_cast<std::uint8_t>(generator()), 0, static_cast<std::uint16_t>(generator())};
      if (!builder.add_event(event, hits)) break;
    }
    const auto board = static_cast<std::uint8_t>(generator() % 4);
    expect_same_events<MgpView>(builder.finish({.source_id = 0x1C, .source_sub_id = board}));
  }
}

TEST(EventWalk, RandomM2egpPackets) {
  Random generator(6);
  std::vector<std::byte> room(kM2egpBytesMax);
  for (int round = 0; round < 500; ++round) {
    M2egpBuilder builder(room);
    for (std::uint32_t events = 1 + generator() % 255; events > 0; --events) {
      std::vector<std::uint16_t> hits(generator() % (kM2egpHitsMax + 1));
      for (auto& hit : hits) hit = static_cast<std::uint16_t>(generator());
      const MgpEvent event{generator(), static_cast<std::uint8_t>(generator()), 0, static_cast<std::uint16_t>(generator())};
      if (!builder.add_event(event, hits)) break;
    }
    expect_same_events<M2egpView>(builder.finish({.source_id = 1, .source_sub_id = 200}));
  }
}

// Each id alone against all of them by the CPU's unpacking, at the very end of its memory.
TEST(EventWalk, EachIdAlone) {
  std::mt19937 generator(7);
  for (std::uint32_t hit_count = 0; hit_count <= kMgpPackedHitsMax; ++hit_count) {
    std::vector<std::byte> bytes(mgp_packed_event_bytes(hit_count) - kMgpEventHeaderBytes);
    for (auto& byte : bytes) byte = static_cast<std::byte>(generator());
    const test::ExactCopy copy(bytes);
    for (unsigned board = 0; board < kBoardsMax; ++board) {
      std::array<std::uint16_t, kMgpScratchHits> channels;
      unpack_ids(copy.span().data(), copy.span().data() + copy.span().size(), hit_count, board, channels.data());
      for (std::uint32_t k = 0; k < hit_count; ++k) {
        ASSERT_EQ(unpack_id(copy.span().data(), k, board), channels[k]) << "id " << k << " of " << hit_count;
      }
    }
  }
}

TEST(EventWalk, EightBytesByWordsAtAnyAddress) {
  std::vector<std::byte> bytes(32);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(17 * i + 3);
  const test::ExactCopy copy(bytes);
  for (std::size_t at = 0; at + 8 <= bytes.size(); ++at) {
    EXPECT_EQ(load_le64_by_words(copy.span().data() + at), load_le<std::uint64_t>(copy.span().data() + at)) << at;
  }
}

}  // namespace
}  // namespace nanet::wire
