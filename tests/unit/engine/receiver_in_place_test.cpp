// SPDX-License-Identifier: Apache-2.0
// The receiver with a link that lends payloads instead of copying them: the same books and completions, each payload given back once.
#include <gtest/gtest.h>

#include <random>

#include "na62/protocols.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "placed_link.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;
using test::Bytes;

constexpr std::uint32_t kBuffers = 4;
constexpr std::uint32_t kBufferBytes = 4096;
constexpr std::uint32_t kPacketsABuffer = kBufferBytes / sizeof(PlacedPacket);
constexpr std::uint32_t kBatch = 32;
constexpr std::uint32_t kSlots = kBuffers * kPacketsABuffer + kBatch;

// A CLOP, its queue and a receiver on any link.
struct Rig {
  explicit Rig(link::Link& link, std::uint32_t buffer_bytes = kBufferBytes, ReceiverConfig config = {.batch_size = kBatch})
      : clop({.name = "test",
              .id = 0,
              .buffer_count = kBuffers,
              .buffer_bytes = buffer_bytes,
              .index_capacity = 1024,
              .huge_pages = false,
              .locked = false}),
        receiver(na62::kMgp.make_receiver(config, {link, clop, queue,
                                                   flow::Router({{.source_id = 0x1C, .source_sub_id = 0, .source = 0, .clop = 0},
                                                                 {.source_id = 0x1C, .source_sub_id = 1, .source = 1, .clop = 0}}),
                                                   2})) {}

  void poll_all() {
    while (receiver->poll(1000) > 0) {
    }
  }
  void release() {
    queue.pop();
    clop.release();
  }
  std::uint64_t source(Counter counter) const {
    return receiver->source_counters(0).value(counter) + receiver->source_counters(1).value(counter);
  }
  std::uint64_t refused(Counter counter) const { return receiver->link_counters().value(counter); }

  flow::Clop clop;
  flow::CompletionQueue queue{64};
  std::unique_ptr<Receiver> receiver;
};

Bytes bad_checksum(Bytes packet) {
  packet[100] ^= std::byte{4};
  return packet;
}

Bytes bad_format(Bytes packet) {
  packet[2] = std::byte{0x0F};
  return packet;
}

class InPlace : public ::testing::TestWithParam<MemoryKind> {
 protected:
  bool on_device() const { return GetParam() == MemoryKind::device; }
  Bytes packet(std::uint32_t number) const { return test::make_packet(std::span(events).subspan(number % 4 * 16, 16), number); }
  void give(Bytes payload, std::uint16_t flags = 0) { link.incoming.push_back({std::move(payload), flags}); }

  std::vector<test::TestEvent> events = test::make_events(64, 1);
  test::PlacedLink link{kSlots, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Kinds, InPlace, testing::Values(MemoryKind::host, MemoryKind::device),
                         [](const auto& kind) { return kind.param == MemoryKind::host ? "host" : "device"; });

TEST_P(InPlace, ABufferHoldsRecordsThatSayWhere) {
  Rig rig(link);
  give(packet(0));
  give(packet(1));
  EXPECT_EQ(rig.receiver->poll(1000), 2u);
  const Completion* completion = rig.queue.peek();
  ASSERT_NE(completion, nullptr);
  EXPECT_EQ(completion->status, status::timeout | status::in_place);
  EXPECT_EQ(completion->stride_bytes, 0u);
  EXPECT_EQ(completion->bytes, 2 * sizeof(PlacedPacket));
  EXPECT_EQ(completion->packet_count, 2u);
  EXPECT_EQ(completion->event_count, 32u);
  const auto index = rig.clop.packet_index(completion->buffer_index).first(2);
  const auto buffer = rig.clop.buffer(completion->buffer_index);
  for (std::uint32_t p = 0; p < 2; ++p) {
    EXPECT_EQ(index[p].offset, p * sizeof(PlacedPacket));
    EXPECT_EQ(index[p].bytes, 1168u);
    const PlacedPacket& placed = flow::placed_packet(buffer, index[p]);
    const Bytes expected = packet(p);
    EXPECT_EQ(placed.bytes, 1168u);
    if (on_device()) {
      ASSERT_EQ(placed.head_bytes, PlacedPacket::head_bytes_max);
      EXPECT_TRUE(std::equal(std::begin(placed.head), std::end(placed.head), expected.begin()));
    } else {
      ASSERT_EQ(placed.head_bytes, 0u);
      const auto payload = flow::payload_of(*completion, buffer, index[p]);
      EXPECT_TRUE(std::ranges::equal(payload, expected));
      EXPECT_FALSE(payload.data() >= rig.clop.memory().data() && payload.data() < rig.clop.memory().data() + rig.clop.memory().size());
    }
  }
  EXPECT_EQ(rig.source(Counter::bytes_accepted), 2u * 1168);
}

TEST_P(InPlace, RefusedPacketsStayLentWithTheirBufferAndAreNotInItsIndex) {
  Rig rig(link);
  give(packet(0));
  give(bad_format(packet(1)));
  give(bad_checksum(packet(1)));
  give(Bytes(100));
  give({});
  give(test::make_packet(std::span(events).first(16), 0, 9));  // no such board
  give(packet(1), link::RxPacket::truncated);
  give(test::make_end_marker(2, 32));
  rig.poll_all();
  EXPECT_EQ(rig.refused(Counter::packets_bad_format) + rig.refused(Counter::packets_bad_length), 3u);
  EXPECT_EQ(rig.refused(Counter::packets_unknown_source), 1u);
  EXPECT_EQ(rig.refused(Counter::packets_truncated), 1u);
  EXPECT_EQ(rig.source(Counter::packets_marker), 1u);
  // The host cannot see a wrong checksum where the rest of the packet is in the memory of a GPU.
  EXPECT_EQ(rig.refused(Counter::packets_bad_checksum), on_device() ? 0u : 1u);
  ASSERT_NE(rig.queue.peek(), nullptr);
  EXPECT_EQ(rig.queue.peek()->packet_count, on_device() ? 2u : 1u);
  EXPECT_EQ(rig.queue.peek()->status & status::error, status::error);
  EXPECT_EQ(link.lent(), 8u);
  rig.receiver.reset();
  EXPECT_EQ(link.lent(), 0u);
}

TEST_P(InPlace, ABufferOfRefusedPacketsIsUsedAgainAndTheyGoBackAtOnce) {
  Rig rig(link);
  for (int i = 0; i < 1000; ++i) give(bad_format(packet(0)));
  rig.poll_all();
  EXPECT_EQ(link.lent(), 0u);
  EXPECT_EQ(rig.queue.peek(), nullptr);
  EXPECT_EQ(rig.refused(Counter::packets_bad_format), 1000u);
}

TEST_P(InPlace, WithoutAFreeBufferPacketsAreDroppedByNameAndGoBackAtOnce) {
  Rig rig(link, kBufferBytes, {.batch_size = kBatch, .timeout_ns = 1'000'000});
  const std::uint32_t packets = 2 * kBuffers * kPacketsABuffer;
  for (std::uint32_t p = 0; p < packets; ++p) give(packet(p));
  rig.poll_all();
  EXPECT_EQ(rig.clop.in_use(), kBuffers);
  EXPECT_EQ(rig.source(Counter::packets_accepted), kBuffers * kPacketsABuffer) << "a buffer is used to its end";
  EXPECT_EQ(rig.source(Counter::packets_clop_full), kBuffers * kPacketsABuffer);
  EXPECT_EQ(link.lent(), kBuffers * kPacketsABuffer);
  EXPECT_LE(link.lent_most(), kSlots);
  rig.release();
  give(packet(packets));
  rig.poll_all();
  EXPECT_EQ(link.lent(), (kBuffers - 1) * kPacketsABuffer + 1);
  EXPECT_EQ(rig.source(Counter::packets_lost_network), 0u);
}

TEST_P(InPlace, NothingIsLostOrGivenBackTwiceInManyLaps) {
  std::mt19937_64 random(7);
  Rig rig(link);
  std::uint32_t sequence = 0;
  std::uint64_t bad = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    for (std::uint64_t n = random() % 40; n > 0; --n) {
      if (random() % 10 == 0) {
        give(bad_format(packet(0)));
        ++bad;
      } else {
        give(packet(sequence++));
      }
    }
    rig.receiver->poll(1000);
    if (random() % 50 == 0) rig.receiver->flush();
    if (turn / 100 % 2 == 1) continue;  // the consumer rests, and buffers run out
    for (std::uint64_t n = random() % 3; n > 0 && rig.queue.peek() != nullptr; --n) rig.release();
  }
  EXPECT_LE(link.lent_most(), kSlots);
  while (rig.queue.peek() != nullptr) rig.release();
  for (; !link.incoming.empty() || rig.receiver->holds_packets();) {
    rig.receiver->poll(1000);
    rig.receiver->flush();
    while (rig.queue.peek() != nullptr) rig.release();
  }
  EXPECT_EQ(rig.source(Counter::packets_accepted) + rig.source(Counter::packets_clop_full), sequence);
  EXPECT_GT(rig.source(Counter::packets_clop_full), 0u);
  EXPECT_EQ(rig.refused(Counter::packets_bad_format), bad);
  EXPECT_EQ(rig.source(Counter::packets_lost_network), 0u);
  rig.receiver.reset();
  EXPECT_EQ(link.lent(), 0u);
}

TEST_P(InPlace, ALinkOutlivesAReceiverThatWasFullAndServesTheNext) {
  for (int run = 0; run < 3; ++run) {
    Rig rig(link);
    for (std::uint32_t p = 0; p < 2 * kSlots; ++p) give(packet(p));
    rig.poll_all();
    rig.release();
    give(packet(2 * kSlots));
    rig.receiver->poll(1000);
    EXPECT_GT(link.lent(), 0u);
    rig.receiver.reset();
    EXPECT_EQ(link.lent(), 0u);
  }
}

// What a consumer would find, in words that do not depend on where payloads lie.
struct Seen {
  std::vector<Bytes> payloads;
  std::vector<std::uint16_t> sources;
  std::uint64_t events = 0;
  std::uint64_t lost = 0;
};

void take(Rig& rig, Seen& seen) {
  while (const Completion* completion = rig.queue.peek()) {
    const auto buffer = rig.clop.buffer(completion->buffer_index);
    for (const PacketRef& ref : rig.clop.packet_index(completion->buffer_index).first(completion->packet_count)) {
      const auto payload = flow::payload_of(*completion, buffer, ref);
      seen.payloads.emplace_back(payload.begin(), payload.end());
      seen.sources.push_back(ref.source);
    }
    seen.events += completion->event_count;
    seen.lost += completion->packets_lost;
    rig.release();
  }
}

// Gaps, copies, disorder, two boards, new runs, every cause of refusal.
std::deque<test::MemoryLink::Incoming> troubled_stream() {
  std::mt19937_64 random(11);
  const auto events = test::make_events(64, 1);
  std::deque<test::MemoryLink::Incoming> stream;
  std::uint32_t sequence[2] = {0, 0};
  for (int i = 0; i < 5000; ++i) {
    const auto board = static_cast<std::uint8_t>(random() % 2);
    const Bytes packet = test::make_packet(std::span(events).subspan(random() % 4 * 16, 16), sequence[board], board);
    switch (random() % 24) {
      case 0: stream.push_back({bad_checksum(packet)}); break;
      case 1: stream.push_back({bad_format(packet)}); break;
      case 2: stream.push_back({Bytes(random() % 1400)}); break;
      case 3: stream.push_back({packet, link::RxPacket::truncated}); break;
      case 4: sequence[board] += static_cast<std::uint32_t>(1 + random() % 5); break;
      case 5: stream.insert(stream.end(), 2, {packet, 0}); break;
      case 6: stream.push_back({test::make_end_marker(sequence[board], 16 * sequence[board], board)}); break;
      case 7:
        if (random() % 10 != 0) break;
        sequence[board] = 0;
        stream.push_back({test::make_start_marker(0, 0, board)});
        break;
      case 8: sequence[board] -= std::min(sequence[board], static_cast<std::uint32_t>(random() % 3)); break;
      default: stream.push_back({packet, random() % 100 == 0 ? link::RxPacket::after_drop : std::uint16_t{0}}); break;
    }
    ++sequence[board];
  }
  return stream;
}

TEST(InPlaceAndCopied, TheBooksAndThePayloadsAreTheSame) {
  test::PlacedLink placed(kSlots, MemoryKind::host);
  test::MemoryLink copied;
  placed.incoming = copied.incoming = troubled_stream();
  Rig in_place(placed);
  Rig copying(copied, 1 << 20);
  Seen seen_in_place;
  Seen seen_copied;
  while (!placed.incoming.empty() || !copied.incoming.empty()) {
    in_place.receiver->poll(1000);
    copying.receiver->poll(1000);
    take(in_place, seen_in_place);
    take(copying, seen_copied);
  }
  for (std::size_t c = 0; c < flow::kCounterCount; ++c) {
    const auto counter = static_cast<Counter>(c);
    EXPECT_EQ(in_place.refused(counter), copying.refused(counter)) << flow::kCounterTable[c].name;
    for (std::size_t s = 0; s < 2; ++s) {
      EXPECT_EQ(in_place.receiver->source_counters(s).value(counter), copying.receiver->source_counters(s).value(counter))
          << flow::kCounterTable[c].name;
    }
  }
  EXPECT_EQ(seen_in_place.payloads, seen_copied.payloads);
  EXPECT_EQ(seen_in_place.sources, seen_copied.sources);
  EXPECT_EQ(seen_in_place.events, seen_copied.events);
  EXPECT_EQ(seen_in_place.lost, seen_copied.lost);
  EXPECT_GT(in_place.source(Counter::packets_duplicate), 0u);
  EXPECT_GT(in_place.source(Counter::source_restarts), 0u);
}

}  // namespace
}  // namespace nanet::engine
