// SPDX-License-Identifier: Apache-2.0
// Event building on a GPU: the same events, answers and books as the CPU's event building, buffer by buffer, however parts come.
#include <algorithm>
#include <string>

#include "merge_pair.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::gpu {
namespace {

using namespace rig;
using namespace rig::merging;

TEST(Merge, events_of_four_sources_are_whole) {
  for (const Way& way : ways()) {
    const std::string name = way.name;
    expect_merged(way, Format::packed, 16, 4, 0, 8, name + ", an event in a buffer");
    expect_merged(way, Format::packed, 16, 3, 0, 9, name + ", an event in two buffers");
    expect_merged(way, Format::packed, 16, 1, 0, 12, name + ", a packet a buffer");
    expect_merged(way, Format::packed, 40, 24, 0, 8, name + ", large packets");
    expect_merged(way, Format::padded, 16, 24, 0, 8, name + ", padded");
    expect_merged(way, Format::merged, 20, 12, 0, 6, name + ", M2EGP");
    expect_merged(way, Format::packed, 5, 32, 6, 6, name + ", packets anywhere");
  }
}

// Hits in the order in which the CPU sees them, since some finders' choices depend on it.
TEST(Merge, every_finder_judges_merged_events) {
  for (const Way& way :
       {Way{"persistent", {.runtime = Runtime::persistent, .blocks = 16}}, Way{"launch", {.runtime = Runtime::launch}}}) {
    for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) {
      EventProcessorConfig config = config_of(way);
      config.finder.kind = static_cast<rich::FinderKind>(k);
      Pair pair(config);
      Boards boards(20 + k, Boards::Hits::in_one_part);
      for (std::uint32_t b = 0; b < (check::under_sanitizer() ? 1u : 6u); ++b) {
        BadNetwork network({}, 0, b);
        for (std::uint32_t p = 0; p < (check::under_sanitizer() ? 1u : 5u); ++p) network.send(boards.next(Format::padded, 16));
        pair.feed(network.arrive(20), kStartNs + b * 1000);
      }
      pair.end(std::string(way.name) + ", " + rich::finder_name(config.finder.kind));
    }
  }
}

TEST(Merge, a_bad_network_gives_the_events_of_the_cpu) {
  for (const Way& way : ways()) {
    const std::string name = way.name;
    run_bad_network(way, IncompletePolicy::process, 4, check::under_sanitizer() ? 20 : 300,
                    name + ", few packets, incomplete answered");
    run_bad_network(way, IncompletePolicy::drop, 4, check::under_sanitizer() ? 20 : 300, name + ", few packets, incomplete dropped");
    run_bad_network(way, IncompletePolicy::process, 32, check::under_sanitizer() ? 15 : 60,
                    name + ", many packets, incomplete answered");
    run_bad_network(way, IncompletePolicy::drop, 32, check::under_sanitizer() ? 15 : 60,
                    name + ", many packets, incomplete dropped");
  }
}

// Two buffers, a queue of four entries, a ring of four descriptors, a table of 256 slots: everything wraps many times.
TEST(Merge, nothing_is_torn_when_everything_wraps) {
  const std::uint32_t buffers = check::under_sanitizer() ? 40 : 2000;
  for (const Way& way : ways()) {
    EventProcessorConfig config = config_of(way);
    config.merge->merger.open_events_max = 64;
    Pair pair(config, {.buffer_count = 2, .buffer_bytes = 65536, .tx_capacity = 4});
    Boards boards(3);
    for (std::uint32_t b = 0; b < buffers; ++b) {
      BadNetwork network({}, 0, b);
      for (std::uint32_t p = 0; p < 1 + b % 4; ++p) network.send(boards.next(Format::packed, 8));
      pair.feed(network.arrive(16), kStartNs + b * 10'000);
    }
    pair.end(way.name);
  }
}

// Waits until the processor has been asked so often that a round would have been seen; what must not happen has not happened then.
void poll_a_while(Pair& pair, std::uint64_t caught_up_ns) {
  for (std::uint32_t k = 0; k < 2000; ++k) {
    pair.rig.processor().poll(rig::now_ns(), caught_up_ns);
    pair.rig.take_answers();
  }
}

TEST(Merge, windows_end_while_no_buffer_comes) {
  for (const Way& way : ways()) {
    for (const IncompletePolicy incomplete : {IncompletePolicy::process, IncompletePolicy::drop}) {
      Pair pair(config_of(way, incomplete));
      Boards boards(4);
      std::uint64_t now_ns = kStartNs;
      for (std::uint32_t turn = 0; turn < 12; ++turn) {
        std::vector<PartPacket> packets = boards.next(Format::packed, 20);
        packets.erase(packets.begin() + turn % Boards::kCount);
        std::vector<PartPacket> whole = boards.next(Format::packed, 7);
        packets.insert(packets.end(), whole.begin(), whole.end());
        pair.feed(packets, now_ns);
        EXPECT_TRUE(pair.settle(now_ns)) << way.name;
        poll_a_while(pair, now_ns + kWindowNs - 1);
        EXPECT_EQ(pair.rig.answers().size(), pair.reference.answers().size()) << way.name << ": closed too early";
        EXPECT_EQ(pair.reference.open_count(), 20u) << way.name;
        now_ns += kWindowNs;
        pair.reference.tick(now_ns);
        EXPECT_TRUE(pair.settle(now_ns)) << way.name;
        const std::uint64_t begin_ns = rig::now_ns();
        const auto closed = [&] {
          const Totals totals = pair.rig.processor().totals();
          return totals.merger.events_missing_parts == pair.reference.totals().stats.events_missing_parts;
        };
        while (!closed() && rig::now_ns() - begin_ns < kLongestWaitNs) pair.rig.processor().poll(rig::now_ns(), now_ns);
        EXPECT_TRUE(closed()) << way.name;
        now_ns += 10'000;
      }
      pair.end(way.name);
    }
  }
}

TEST(Merge, finish_answers_what_is_open) {
  for (const Way& way : ways()) {
    Pair pair(config_of(way), {.tx_capacity = 64});
    Boards boards(5);
    for (std::uint32_t b = 0; b < 20; ++b) {
      std::vector<PartPacket> packets = boards.next(Format::packed, 40);
      packets.pop_back();
      pair.feed(packets, kStartNs + b);
    }
    EXPECT_EQ(pair.reference.open_count(), 800u);
    pair.end(way.name);
    EXPECT_EQ(pair.rig.processor().totals().events, 800u) << way.name;
  }
}

// More answers in a round than the ring has descriptors: the doorbell is rung in between.
TEST(Merge, a_round_may_have_more_answers_than_the_ring) {
  for (const Way& way : ways()) {
    Pair pair(config_of(way), {.tx_capacity = 2});
    Boards boards(6);
    std::uint64_t now_ns = kStartNs;
    for (std::uint32_t turn = 0; turn < 3; ++turn, now_ns += 2 * kWindowNs) {
      for (std::uint32_t b = 0; b < 15; ++b) {
        std::vector<PartPacket> packets = boards.next(Format::packed, 40);
        packets.pop_back();
        pair.feed(packets, now_ns);
      }
      EXPECT_TRUE(pair.settle()) << way.name;
      pair.reference.tick(now_ns + kWindowNs);
      EXPECT_TRUE(pair.settle(now_ns + kWindowNs)) << way.name;
    }
    pair.end(way.name);
    EXPECT_EQ(pair.rig.processor().totals().events, 1800u) << way.name;
  }
}

// The same timestamps again: nothing of the run before is remembered, and its open events are answered. Boards restart one after the other, in the
// middle of buffers.
TEST(Merge, a_new_run_forgets_the_one_before) {
  for (const Way& way : ways()) {
    for (const std::uint32_t packets : {3u, 13u, 40u}) {
      Pair pair(config_of(way), {.tx_capacity = 16});
      Boards boards(7);
      BadNetwork network({.lost = 0.05}, 0, 7);
      std::uint64_t now_ns = kStartNs;
      for (std::uint32_t run = 0; run < 6; ++run) {
        for (std::uint32_t k = 0; k < 10 + run; ++k) network.send(boards.next(Format::packed, 16));
        boards.restart();
      }
      for (; !network.is_empty(); now_ns += 1000) pair.feed(network.arrive(packets), now_ns);
      pair.end(std::string(way.name) + ", " + std::to_string(packets) + " packets a buffer");
    }
  }
}

// Two links, one of which is handed over later: an event waits for what the slower one may still hold. Times of buffers go back in between.
TEST(Merge, a_window_ends_when_all_links_have_been_looked_at) {
  for (const Way& way : ways()) {
    EventProcessorConfig config = config_of(way, IncompletePolicy::drop);
    config.merge->first_source = {0, 2};
    Pair pair(config, {.tx_capacity = 64, .clop_count = 2});
    Boards boards(8);
    std::uint64_t now_ns = kStartNs;
    std::vector<PartPacket> held;
    for (std::uint32_t turn = 0; turn < 40; ++turn, now_ns += kWindowNs / 4) {
      const std::vector<PartPacket> packets = boards.next(Format::packed, 12);
      pair.feed({packets[0], packets[1]}, now_ns);
      for (PartPacket packet : {packets[2], packets[3]}) {
        packet.source = static_cast<std::uint16_t>(packet.source - 2);
        if (turn % 7 != 3) held.push_back(packet);
      }
      if (turn % 8 != 7) continue;
      pair.feed(held, now_ns - kWindowNs / 4, 0, 1);  // handed over two windows after its first packet
      held.clear();
    }
    pair.end(way.name);
    EXPECT_EQ(pair.rig.processor().totals().merger.parts_late, 0u) << way.name;
    EXPECT_EQ(pair.rig.processor().totals().merger.events_complete, 34u * 12) << way.name;
  }
}

TEST(Merge, too_many_open_events_are_closed_and_counted) {
  for (const Way& way : ways()) {
    EventProcessorConfig config = config_of(way);
    config.merge->merger.open_events_max = 64;
    Rig rig({});
    rig.start(config);
    Boards boards(9);
    std::uint64_t parts = 0;
    for (std::uint32_t b = 0; b < 60; ++b) {
      const std::vector<PartPacket> packets = boards.next(Format::packed, 40);
      const std::vector<std::uint16_t> sources{0};
      rig.feed_waiting(std::vector<Payload>{packets[0].payload}, 0, {.last_packet_ns = kStartNs, .sources = sources});
      parts += 40;
    }
    EXPECT_TRUE(rig.settle()) << way.name;
    rig.processor().finish();
    while (rig.take_answers() > 0) {
    }
    const Totals totals = rig.processor().totals();
    EXPECT_EQ(totals.merger.parts_merged + totals.merger.parts_no_room, parts) << way.name;
    EXPECT_GE(totals.merger.events_overflow, 2000u) << way.name;
    EXPECT_EQ(totals.merger.events_opened, totals.events) << way.name;
    EXPECT_EQ(rig.answers().size(), totals.events) << way.name;
  }
}

// No one takes answers: a round waits for a descriptor until the watchdog gives the GPU up; then kernels end and the host gives the buffers back.
TEST(Merge, a_stall_is_noticed_and_ended) {
  for (const Way& way : ways()) {
    EventProcessorConfig config = config_of(way);
    config.gpu.watchdog_ms = 200;
    Rig rig({.buffer_count = 4, .buffer_bytes = 65536, .tx_capacity = 2});
    rig.start(config);
    Boards boards(10);
    const std::uint64_t begin_ns = rig::now_ns();
    const std::vector<std::uint16_t> sources{0, 1, 2, 3};
    for (std::uint32_t turn = 0; rig.processor().fault().empty() && rig::now_ns() - begin_ns < kLongestWaitNs; ++turn) {
      std::vector<Payload> payloads;
      for (const PartPacket& packet : boards.next(Format::packed, 16)) payloads.push_back(packet.payload);
      rig.feed(payloads, 0, {.last_packet_ns = kStartNs + turn, .sources = sources});
      rig.processor().poll(rig::now_ns());
    }
    EXPECT_NE(rig.processor().fault(), "") << way.name;
    while (rig.clop().in_use() > 0 && rig::now_ns() - begin_ns < kLongestWaitNs) rig.processor().poll(rig::now_ns());
    EXPECT_EQ(rig.clop().in_use(), 0u) << way.name;
    rig.end();
  }
}

TEST(Merge, refuses_what_it_cannot_do) {
  Rig rig({});
  EventProcessorConfig config = config_of(ways()[0]);
  config.merge->merger.source_count = 9;
  EXPECT_THROW(rig.start(config), SetupError);
  config.merge->merger.source_count = 4;
  config.merge->first_source = {0, 2};
  EXPECT_THROW(rig.start(config), SetupError);
  config.merge->first_source = {4};
  EXPECT_THROW(rig.start(config), SetupError);
  config.merge->first_source = {0};
  config.gpu.blocks = 1u << 20;
  EXPECT_THROW(rig.start(config), SetupError);
  config.gpu.runtime = Runtime::launch;
  EXPECT_THROW(rig.start(config), SetupError);
}

}  // namespace
}  // namespace nanet::gpu
