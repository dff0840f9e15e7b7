// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/assembling_receiver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "assembling_rig.hpp"

namespace nanet::test {
inline std::atomic<std::uint64_t> allocation_count{0};  // counted in engine_test.cpp
}

namespace nanet::engine {
namespace {

using flow::Counter;
using test::Piece;

TEST_F(AssemblingReceiverTest, HandsOverAUnitWithItsHead) {
  make();
  give_unit(7, 42);
  poll(1234);
  const auto got = take();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->completion.kind, CompletionKind::buffer_filled);
  EXPECT_EQ(got->completion.status, status::unit);
  EXPECT_EQ(got->completion.bytes, 3500u);
  EXPECT_EQ(got->completion.packet_count, 0u) << "there is no packet index";
  EXPECT_EQ(got->completion.event_count, 1u);
  EXPECT_EQ(got->completion.clop, 5u);
  EXPECT_EQ(got->completion.tag, 0u);
  EXPECT_EQ(got->head.stream, 7u);
  EXPECT_EQ(got->head.unit, 42u);
  EXPECT_EQ(got->head.time, 9u);
  EXPECT_EQ(got->head.bytes, 3500u);
  EXPECT_EQ(got->head.bytes_missing, 0u);
  EXPECT_EQ(got->head.packet_count, 4u);
  EXPECT_EQ(got->head.piece_bytes, 1000u);
  EXPECT_EQ(got->head.first_packet_ns, 1234u);
  ASSERT_EQ(got->present.size(), 1u);
  EXPECT_TRUE(is_right(*got));
  EXPECT_EQ(count(Counter::packets_accepted), 4u);
  EXPECT_EQ(count(Counter::bytes_accepted), 3500u);
  EXPECT_EQ(count(Counter::units_complete), 1u);
  EXPECT_FALSE(receiver->holds_packets());
}

TEST_F(AssemblingReceiverTest, UnitsEndInAnyOrderAndBuffersComeBackInThatOfTheirEnd) {
  make();
  for (std::uint64_t round = 0; round < 40; ++round) {  // many laps of the CLOP
    give({.stream = 1, .unit = round, .place = 0, .bytes = 100, .unit_bytes = 200});
    give_unit(2, round);
    give({.stream = 1, .unit = round, .place = 100, .bytes = 100, .unit_bytes = 200});
    poll();
    const auto first = take(), second = take();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->head.stream, 2u);
    EXPECT_EQ(second->head.stream, 1u);
    EXPECT_TRUE(is_right(*first));
    EXPECT_TRUE(is_right(*second));
  }
  EXPECT_EQ(count(Counter::units_complete), 80u);
}

TEST_F(AssemblingReceiverTest, PiecesOfIpv6StrangersAreRefused) {
  make({.streams_max = 4, .units_open = 2, .timeout_us = 1000}, 8, sender_networks({"fd00::/64"}));
  link.ipv6_peers = {link::parse_endpoint("udp://[2001:db8::1]:0").address, link::parse_endpoint("udp://[fd00::7]:0").address};
  for (std::uint32_t p = 0; p < 4; ++p) {
    const Piece piece{.stream = 1, .unit = 1, .place = 1000u * p, .bytes = p < 3 ? 1000u : 500u, .unit_bytes = 3500, .time = 9};
    for (const std::uint32_t from : {0u, 1u}) link.incoming.push_back({test::make_piece(piece), 0, from});
  }
  poll();
  const auto got = take();
  ASSERT_TRUE(got);
  EXPECT_TRUE(is_right(*got));
  EXPECT_EQ(count(Counter::packets_unknown_sender), 4u);
}

TEST_F(AssemblingReceiverTest, BytesAreNotCounted) {
  make();
  give_unit(1, 1, 2);
  give({.stream = 1, .unit = 1, .place = 1000, .bytes = 1000, .unit_bytes = 3500});  // as many bytes as the lost one
  poll();
  EXPECT_FALSE(take()) << "one lost and one doubled are not complete";
  EXPECT_EQ(count(Counter::packets_duplicate), 1u);
  poll(1000 + kTimeoutNs - 1);
  EXPECT_FALSE(take());
  poll(1000 + kTimeoutNs);
  const auto got = take();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->completion.status, status::unit | status::incomplete | status::timeout | status::gap);
  EXPECT_EQ(got->completion.packets_lost, 1u);
  EXPECT_EQ(got->head.bytes_missing, 1000u);
  EXPECT_EQ(got->head.packets_missing, 1u);
  ASSERT_EQ(got->present.size(), 2u);
  EXPECT_EQ(got->present[0].end, 2000u);
  EXPECT_EQ(got->present[1].begin, 3000u);
  EXPECT_TRUE(is_right(*got));
  EXPECT_EQ(count(Counter::units_timed_out), 1u);
  EXPECT_EQ(count(Counter::packets_lost_network), 1u);
  EXPECT_EQ(count(Counter::packets_lost_kernel), 0u);
}

TEST_F(AssemblingReceiverTest, WhatTheKernelDroppedIsLostThere) {
  make();
  give_unit(1, 1);
  give({.stream = 1, .unit = 2, .place = 0, .bytes = 1000, .unit_bytes = 3500});
  give({.stream = 1, .unit = 2, .place = 3000, .bytes = 500, .unit_bytes = 3500}, link::RxPacket::after_drop);
  give({.stream = 1, .unit = 3, .place = 1000, .bytes = 1000, .unit_bytes = 2000}, link::RxPacket::after_drop);
  poll();
  receiver->flush();
  EXPECT_EQ(count(Counter::packets_lost_kernel), 3u);
  EXPECT_EQ(count(Counter::packets_lost_network), 0u);
  EXPECT_EQ(count(Counter::units_flushed), 2u);
}

TEST_F(AssemblingReceiverTest, ANewerUnitClosesTheOldest) {
  make();
  give_unit(1, 1, 0);
  give_unit(2, 1, 0);  // another stream's is not touched
  give_unit(1, 2, 3);
  give_unit(1, 3, 1);
  poll();
  const auto got = take();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->head.stream, 1u);
  EXPECT_EQ(got->head.unit, 1u);
  EXPECT_EQ(got->completion.status, status::unit | status::incomplete | status::gap);
  EXPECT_FALSE(take());
  EXPECT_EQ(count(Counter::units_overflow), 1u);
  give({.stream = 1, .unit = 1, .place = 0, .bytes = 1000, .unit_bytes = 3500});
  poll();
  EXPECT_EQ(count(Counter::packets_late), 1u);
  poll(1000 + 3 * kTimeoutNs);
  while (take()) {
  }
  give_unit(1, 1);  // its number is free again
  poll(1000 + 9 * kTimeoutNs);
  EXPECT_TRUE(take());
}

TEST_F(AssemblingReceiverTest, IncompleteUnitsCanBeDropped) {
  make({.streams_max = 4, .units_open = 2, .timeout_us = 1000, .incomplete = IncompletePolicy::drop}, 2);
  for (std::uint64_t unit = 0; unit < 20; ++unit) give_unit(1, unit, 1);
  give_unit(1, 99);
  poll();
  const auto got = take();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->head.unit, 99u);
  EXPECT_FALSE(take());
  receiver->flush();
  EXPECT_FALSE(take());
  EXPECT_EQ(count(Counter::units_discarded), 20u);
  EXPECT_EQ(count(Counter::packets_lost_network), 20u);
  EXPECT_EQ(count(Counter::units_begun), 21u);
}

TEST_F(AssemblingReceiverTest, WithoutABufferTheNewUnitIsDroppedWhole) {
  make({.streams_max = 4, .units_open = 2, .timeout_us = 1000}, 2);
  give_unit(1, 1);
  give_unit(1, 2);
  give({.stream = 1, .unit = 3, .place = 0, .bytes = 1000, .unit_bytes = 3500});
  poll();
  EXPECT_EQ(take()->head.unit, 1u);
  give({.stream = 1, .unit = 3, .place = 1000, .bytes = 1000, .unit_bytes = 3500});  // there is a buffer now, but half of it is gone
  give_unit(1, 4);
  poll();
  EXPECT_EQ(count(Counter::packets_clop_full), 2u);
  EXPECT_EQ(count(Counter::units_no_buffer), 1u);
  EXPECT_EQ(take()->head.unit, 2u);
  EXPECT_EQ(take()->head.unit, 4u);
  EXPECT_EQ(count(Counter::units_begun), 3u);
}

TEST_F(AssemblingReceiverTest, ALinkThatKeepsPacketsIsLeftAloneWhileTheConsumerHasBuffers) {
  link.keeps = true;
  make({.streams_max = 4, .units_open = 2, .timeout_us = 1000}, 2);
  give_unit(1, 1);
  give_unit(1, 2);
  poll();
  give_unit(1, 3);
  EXPECT_EQ(receiver->poll(1000), 0u);
  EXPECT_EQ(link.incoming.size(), 7u) << "the second unit has a buffer, the third has none";
  EXPECT_EQ(take()->head.unit, 1u);
  poll();
  EXPECT_EQ(take()->head.unit, 2u);
  poll();
  EXPECT_EQ(take()->head.unit, 3u);
  EXPECT_EQ(count(Counter::units_no_buffer), 0u);
  // All buffers are open units': no one gives one back, so the packets are taken, and complete them.
  give({.stream = 1, .unit = 4, .place = 0, .bytes = 10, .unit_bytes = 20});
  give({.stream = 2, .unit = 4, .place = 0, .bytes = 10, .unit_bytes = 20});
  poll();
  give({.stream = 2, .unit = 4, .place = 10, .bytes = 10, .unit_bytes = 20});
  poll();
  EXPECT_EQ(count(Counter::units_complete), 4u);
}

TEST_F(AssemblingReceiverTest, ABatchOfALinkThatKeepsPacketsBeginsNoMoreUnitsThanThereAreBuffers) {
  link.keeps = true;
  make({.streams_max = 4, .units_open = 2, .timeout_us = 1000}, 4);
  for (std::uint64_t unit = 0; unit < 100; ++unit) give({.stream = 1, .unit = unit, .place = 0, .bytes = 10, .unit_bytes = 10});
  for (std::uint64_t unit = 0; unit < 100;) {
    receiver->poll(1000);
    for (auto taken = take(); taken; taken = take()) EXPECT_EQ(taken->head.unit, unit++);
  }
  EXPECT_EQ(count(Counter::units_no_buffer), 0u);
}

TEST_F(AssemblingReceiverTest, RefusesEachForgeryByName) {
  make();
  constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();
  give({.stream = 1, .unit = 1, .place = 0, .bytes = 1000, .unit_bytes = 3500});
  const struct {
    Piece piece;
    Counter counter;
  } forged[] = {
      {{.stream = 1, .unit = 1, .place = 3000, .bytes = 501, .unit_bytes = 3500}, Counter::packets_bad_place},
      {{.stream = 1, .unit = 1, .place = kHuge, .bytes = 1, .unit_bytes = 3500}, Counter::packets_bad_place},
      {{.stream = 1, .unit = 1, .place = kHuge - 999, .bytes = 1000, .unit_bytes = 0}, Counter::packets_bad_place},
      {{.stream = 1, .unit = 1, .place = 3000, .bytes = 1000, .unit_bytes = 0}, Counter::packets_bad_place},
      {{.stream = 9, .unit = 1, .place = 7193, .bytes = 1000, .unit_bytes = 0}, Counter::packets_bad_place},
      {{.stream = 9, .unit = 1, .place = 0, .bytes = 0, .unit_bytes = 9, .ends_unit = true}, Counter::packets_bad_place},
      {{.stream = 1, .unit = 1, .place = 0, .bytes = 0, .unit_bytes = 0, .ends_unit = true}, Counter::packets_bad_unit},
      {{.stream = 1, .unit = 1, .place = 1000, .bytes = 1000, .unit_bytes = 3501}, Counter::packets_bad_unit},
      {{.stream = 1, .unit = 1, .place = 1000, .bytes = 1000, .unit_bytes = 0, .ends_unit = true}, Counter::packets_bad_unit},
      {{.stream = 1, .unit = 1, .place = 1000, .bytes = 1000, .unit_bytes = 8193}, Counter::packets_unit_too_long},
      {{.stream = 1, .unit = 1, .place = 0, .bytes = 1000, .unit_bytes = kHuge}, Counter::packets_unit_too_long},
      {{.stream = 1, .unit = 1, .place = 500, .bytes = 1000, .unit_bytes = 3500}, Counter::packets_overlap},
      {{.stream = 1, .unit = 1, .place = 100, .bytes = 10, .unit_bytes = 3500}, Counter::packets_duplicate},
  };
  for (const auto& one : forged) {
    const std::uint64_t before = count(one.counter);
    give(one.piece);
    poll();
    EXPECT_EQ(count(one.counter), before + 1) << "place " << one.piece.place << ", unit_bytes " << one.piece.unit_bytes;
  }
  give({.stream = 1, .unit = 1, .place = 1000, .bytes = 2500, .unit_bytes = 3500});
  poll();
  const auto got = take();
  ASSERT_TRUE(got);
  EXPECT_TRUE(is_right(*got));
  EXPECT_EQ(got->head.bytes, 3500u);
  EXPECT_EQ(receiver->streams().size(), 1u) << "a refused packet makes no stream";
}

TEST_F(AssemblingReceiverTest, MoreStreamsThanTheTableAreRefusedAndOthersGoOn) {
  make();
  for (std::uint64_t stream = 0; stream < 4; ++stream)
    give({.stream = stream << 40, .unit = 1, .place = 0, .bytes = 10, .unit_bytes = 20});
  for (std::uint64_t stream = 4; stream < 100; ++stream)
    give({.stream = stream << 40, .unit = 1, .place = 0, .bytes = 20, .unit_bytes = 20});
  for (std::uint64_t stream = 0; stream < 4; ++stream)
    give({.stream = stream << 40, .unit = 1, .place = 10, .bytes = 10, .unit_bytes = 20});
  poll();
  EXPECT_EQ(count(Counter::packets_no_stream), 96u);
  EXPECT_EQ(count(Counter::units_complete), 4u);
  const auto books = receiver->streams();
  ASSERT_EQ(books.size(), 4u);
  EXPECT_EQ(books[3].stream, std::uint64_t{3} << 40);
  EXPECT_EQ(books[3].packets_accepted, 2u);
  EXPECT_EQ(books[3].units_complete, 1u);
}

// Keys that no one has, as fast as they can be invented: streams that are in the table stay there, and a new one gets in as soon as invented ones are idle.
TEST_F(AssemblingReceiverTest, InventedStreamsKeepNoOneOut) {
  make({.streams_max = 4, .stream_idle_us = 1000, .units_open = 2, .timeout_us = 500, .incomplete = IncompletePolicy::drop}, 8);
  const auto half = [&](std::uint64_t stream, std::uint64_t unit, std::uint64_t place) {
    give({.stream = stream, .unit = unit, .place = place, .bytes = 10, .unit_bytes = 20});
  };
  std::uint64_t invented = 1000, now_ns = 1000;
  const auto invent = [&] {
    for (int k = 0; k < 20; ++k) half(++invented, 1, 0);
  };
  for (std::uint64_t unit = 0; unit < 100; ++unit) {
    for (const std::uint64_t stream : {1ul, 2ul}) half(stream, unit, 0);
    invent();
    for (const std::uint64_t stream : {1ul, 2ul}) half(stream, unit, 10);
    invent();
    poll(now_ns += 600'000);
    while (take()) {
    }
  }
  EXPECT_EQ(count(Counter::units_complete), 200u);
  EXPECT_GT(count(Counter::streams_evicted), 80u);
  EXPECT_EQ(count(Counter::packets_accepted) + count(Counter::packets_no_stream), 100u * 44);
  half(3, 1, 0);
  half(3, 1, 10);
  poll(now_ns += 1'000'000);
  EXPECT_EQ(count(Counter::units_complete), 201u);
  const auto books = receiver->streams();
  ASSERT_EQ(books.size(), 4u);
  const auto third = std::find_if(books.begin(), books.end(), [](const StreamBooks& one) { return one.stream == 3; });
  ASSERT_NE(third, books.end());
  EXPECT_EQ(third->packets_accepted, 2u) << "and nothing of who had its place";
  EXPECT_EQ(third->units_complete, 1u);
  EXPECT_EQ(third->packets_refused, 0u);
}

// Two of the streams are real, and the invented ones of the table take all buffers: the real ones have them as soon as they need them.
TEST_F(AssemblingReceiverTest, StreamsThatCompletedAUnitTakeTheBuffersOfThoseThatDidNot) {
  make({.streams_max = 64, .units_open = 2, .timeout_us = 1'000'000}, 8);
  const auto half = [&](std::uint64_t stream, std::uint64_t unit, std::uint64_t place) {
    give({.stream = stream, .unit = unit, .place = place, .bytes = 10, .unit_bytes = 20});
  };
  for (const std::uint64_t place : {0ul, 10ul}) half(1, 1, place);
  for (std::uint64_t stream = 100; stream < 150; ++stream) half(stream, 1, 0);
  half(2, 1, 0);  // not known yet: it has to wait
  half(1, 2, 0);
  for (std::uint64_t stream = 150; stream < 160; ++stream) half(stream, 1, 0);
  half(1, 2, 10);
  poll();
  std::uint64_t units = 0;
  while (const auto got = take()) {
    EXPECT_TRUE(is_right(*got));
    EXPECT_EQ(got->head.stream, 1u);
    ++units;
  }
  EXPECT_EQ(units, 2u);
  EXPECT_EQ(count(Counter::units_complete), 2u);
  EXPECT_EQ(count(Counter::units_overflow), 1u);
  EXPECT_EQ(count(Counter::units_discarded), 1u);
}

TEST_F(AssemblingReceiverTest, StreamsThatAreNotListedAreRefused) {
  make({.streams = {{.first = 7, .last = 7}, {.first = 100, .last = 102}}, .streams_max = 4, .units_open = 2, .timeout_us = 1000}, 8);
  for (std::uint64_t stream = 0; stream < 200; ++stream)
    give({.stream = stream, .unit = 1, .place = 0, .bytes = 20, .unit_bytes = 20});
  poll();
  EXPECT_EQ(receiver->link_counters().value(Counter::packets_unknown_stream), 196u);
  EXPECT_EQ(count(Counter::packets_accepted), 4u);
  EXPECT_EQ(count(Counter::packets_no_stream), 0u);
  const auto books = receiver->streams();
  ASSERT_EQ(books.size(), 4u);
  EXPECT_EQ(books[0].stream, 7u);
  EXPECT_EQ(books[3].stream, 102u);
}

TEST_F(AssemblingReceiverTest, TheLengthMayComeFromTheLastPacketOrAnEmptyOne) {
  make();
  give({.stream = 1, .unit = 1, .place = 100, .bytes = 50, .ends_unit = true});
  give({.stream = 1, .unit = 1, .place = 0, .bytes = 100});
  give({.stream = 1, .unit = 2, .place = 0, .bytes = 100});
  give({.stream = 1, .unit = 2, .place = 100, .bytes = 0, .ends_unit = true});  // a trailer
  give({.stream = 1, .unit = 3, .place = 0, .bytes = 0, .unit_bytes = 77});     // a leader
  give({.stream = 1, .unit = 3, .place = 0, .bytes = 77});
  give({.stream = 1, .unit = 4, .place = 0, .bytes = 0});  // says nothing
  poll();
  EXPECT_EQ(take()->head.bytes, 150u);
  EXPECT_EQ(take()->head.bytes, 100u);
  EXPECT_EQ(take()->head.bytes, 77u);
  EXPECT_FALSE(take());
  EXPECT_EQ(count(Counter::packets_marker), 3u);
}

// What a detector without a hit sends: it is not silent, and what it says is not lost.
TEST_F(AssemblingReceiverTest, AUnitOfNoBytesIsCompleteAtOnce) {
  make({.streams_max = 4, .units_open = 2, .timeout_us = 1000, .unit_step = 1}, 2);
  for (const std::uint64_t unit : {1u, 2u}) give({.stream = 1, .unit = unit, .bytes = 0, .time = 9, .ends_unit = true});
  give({.stream = 1, .unit = 2, .bytes = 0, .ends_unit = true});  // doubled: nothing is late
  give({.stream = 1, .unit = 2, .place = 0, .bytes = 100});       // it had said that there was nothing
  poll(1234);
  give({.stream = 1, .unit = 3, .bytes = 0, .ends_unit = true});  // no buffer: lost, by name
  poll(1240);
  for (const std::uint64_t unit : {1u, 2u}) {
    const auto got = take();
    ASSERT_TRUE(got) << unit;
    EXPECT_EQ(got->head.unit, unit);
    EXPECT_EQ(got->completion.status, status::unit);
    EXPECT_EQ(got->completion.bytes, 0u);
    EXPECT_EQ(got->head.bytes, 0u);
    EXPECT_EQ(got->head.time, 9u);
    EXPECT_EQ(got->head.packet_count, 1u);
    EXPECT_TRUE(got->present.empty());
  }
  EXPECT_FALSE(take());
  EXPECT_EQ(count(Counter::units_complete), 2u);
  EXPECT_EQ(count(Counter::units_handed_over), 2u);
  EXPECT_EQ(count(Counter::units_no_buffer), 1u);
  EXPECT_EQ(count(Counter::units_lost), 0u);
  EXPECT_EQ(count(Counter::packets_accepted), 2u);
  EXPECT_EQ(count(Counter::packets_marker), 1u);
  EXPECT_EQ(count(Counter::packets_late), 1u);
  EXPECT_EQ(count(Counter::packets_clop_full), 1u);
  EXPECT_FALSE(receiver->holds_packets());
}

TEST_F(AssemblingReceiverTest, AUnitOfUnknownLengthIsHandedOverUpToWhatCame) {
  make();
  give({.stream = 1, .unit = 1, .place = 200, .bytes = 100});
  poll();
  receiver->flush();
  const auto got = take();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->head.bytes, 300u);
  EXPECT_EQ(got->head.bytes_missing, 200u);
  EXPECT_EQ(got->head.packets_missing, 2u);
  EXPECT_TRUE(got->completion.status & status::incomplete);
}

// Packets are counted, as cameras do: 3 of 1000 B and one of 400 B, between a leader and a trailer.
TEST_F(AssemblingReceiverTest, PlacesMayBeNumbersOfPackets) {
  make({.streams_max = 4, .units_open = 4, .timeout_us = 1000});
  const auto data = [&](std::uint64_t unit, std::uint32_t index, std::uint32_t packets = 0) {
    give({.stream = 1,
          .unit = unit,
          .place = index,
          .bytes = index < 3 ? 1000u : 400u,
          .unit_packets = packets,
          .at = 1000u * index,
          .is_index = true});
  };
  const auto trailer = [&](std::uint64_t unit) {
    give({.stream = 1, .unit = unit, .place = 4, .ends_unit = true, .is_index = true});
  };
  for (const std::uint32_t index : {0u, 1u, 2u, 3u}) data(1, index);  // the short one is the last
  trailer(1);                                                         // after it: nothing is late
  for (const std::uint32_t index : {3u, 0u, 2u, 1u}) data(2, index, 4);
  trailer(3);  // first: says how many come
  for (const std::uint32_t index : {1u, 0u, 3u, 2u}) data(3, index);
  for (const std::uint32_t index : {0u, 1u, 2u})
    give({.stream = 1, .unit = 4, .place = index, .bytes = 1000, .at = 1000u * index, .is_index = true});
  give({.stream = 1, .unit = 4, .place = 3, .ends_unit = true, .is_index = true});  // last: three were all
  for (const std::uint32_t packet : {0u, 1u, 2u})
    give({.stream = 1, .unit = 5, .place = 1000 * packet, .bytes = 1000, .unit_packets = 3});
  poll();
  for (const std::uint64_t unit : {1ul, 2ul, 3ul, 4ul, 5ul}) {
    const auto got = take();
    ASSERT_TRUE(got) << unit;
    EXPECT_EQ(got->head.unit, unit);
    EXPECT_EQ(got->head.bytes, unit < 4 ? 3400u : 3000u);
    EXPECT_EQ(got->completion.status, status::unit);
    EXPECT_TRUE(is_right(*got)) << unit;
  }
  EXPECT_EQ(count(Counter::packets_late), 0u);
  EXPECT_EQ(count(Counter::packets_marker), 3u);
}

TEST_F(AssemblingReceiverTest, NumbersOfPacketsAreForgedToo) {
  make();
  const auto data = [&](std::uint64_t index, std::uint32_t bytes, std::uint32_t packets = 0, bool ends = false) {
    give({.stream = 1,
          .unit = 1,
          .place = index,
          .bytes = bytes,
          .ends_unit = ends,
          .unit_packets = packets,
          .at = 1000 * index,
          .is_index = true});
    poll();
  };
  data(0, 1000, 4);
  data(4, 1000, 4);
  EXPECT_EQ(count(Counter::packets_bad_place), 1u) << "it has four";
  data(std::numeric_limits<std::uint64_t>::max(), 1000);
  data(std::uint64_t{1} << 63, 1000);
  data(8192, 1000);
  EXPECT_EQ(count(Counter::packets_bad_place), 4u);
  data(1, 1001);
  data(1, 999);
  EXPECT_EQ(count(Counter::packets_bad_place), 6u) << "only the last may be shorter, none longer";
  data(1, 1000, 5);
  data(0, 0, 3, true);
  EXPECT_EQ(count(Counter::packets_bad_unit), 2u);
  data(1, 1000, 8193);
  EXPECT_EQ(count(Counter::packets_unit_too_long), 1u);
  for (const std::uint64_t index : {1ul, 2ul, 3ul}) data(index, index < 3 ? 1000 : 1, 4);
  const auto got = take();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->head.bytes, 3001u);
  EXPECT_TRUE(is_right(*got));
}

TEST_F(AssemblingReceiverTest, CountsUnitsOfWhichNothingCame) {
  make({.streams_max = 4, .units_open = 4, .timeout_us = 1000, .unit_step = 10}, 32);
  const auto unit = [&](std::uint64_t number) { give({.stream = 1, .unit = number, .place = 0, .bytes = 8, .unit_bytes = 8}); };
  unit(100);
  unit(110);
  unit(140);  // 120 and 130 are missing
  poll();
  EXPECT_EQ(count(Counter::units_lost), 2u);
  unit(130);  // and comes after all
  poll();
  EXPECT_EQ(count(Counter::units_lost), 1u);
  unit(5);  // it began again
  poll();
  EXPECT_EQ(count(Counter::units_lost), 1u);
  EXPECT_EQ(count(Counter::source_restarts), 1u);
}

TEST_F(AssemblingReceiverTest, NothingIsAllocatedAfterStart) {
  make({.streams_max = 64, .units_open = 2, .timeout_us = 1000}, 16);
  std::vector<std::vector<std::byte>> packets;
  for (std::uint64_t unit = 0; unit < 300; ++unit) {
    for (std::uint32_t p = 0; p < 4; ++p) {
      if (unit % 7 == 0 && p == 2) continue;
      packets.push_back(test::make_piece(
          {.stream = unit % 80, .unit = unit, .place = 1000 * p, .bytes = p < 3 ? 1000u : 500u, .unit_bytes = 3500}));
    }
  }
  Assembler assembler({.streams_max = 64, .units_open = 2, .timeout_us = 1000}, *clop, *queue);
  test::PieceDecoder decoder;
  const std::uint64_t before = nanet::test::allocation_count;
  std::uint64_t now_ns = 1000;
  for (const auto& packet : packets) {
    UnitFacts facts;
    decoder.decode(packet, facts);
    assembler.take(facts, std::span(packet).subspan(facts.payload_offset), now_ns += 10'000);
    assembler.expire(now_ns, Assembler::Rest::none);
    while (queue->peek() != nullptr) {
      queue->pop();
      clop->release();
    }
  }
  assembler.flush();
  EXPECT_EQ(nanet::test::allocation_count - before, 0u);
  EXPECT_GT(assembler.counters().value(Counter::units_timed_out), 0u);
  EXPECT_GT(assembler.counters().value(Counter::packets_no_stream), 0u);
  EXPECT_GT(assembler.counters().value(Counter::units_complete), 100u);
}

TEST_F(AssemblingReceiverTest, TooManyPiecesApartAreRefused) {
  make();
  const std::uint32_t ranges = Assembler::index_capacity(8192) - 8;
  for (std::uint32_t k = 0; k < ranges + 5; ++k) give({.stream = 1, .unit = 1, .place = 4 * k, .bytes = 2, .unit_bytes = 8192});
  poll();
  EXPECT_EQ(count(Counter::packets_scattered), 5u);
  EXPECT_EQ(count(Counter::packets_accepted), ranges);
}

}  // namespace
}  // namespace nanet::engine
