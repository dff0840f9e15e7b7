// SPDX-License-Identifier: Apache-2.0
// The runtimes: however a buffer is worked on, the answers are those of the CPU, in the order of the events.
#include <string>

#include "nanet/setup_error.hpp"
#include "runtime_rig.hpp"

namespace nanet::gpu {
namespace {

using namespace rig;

TEST(Runtime, answers_are_those_of_the_cpu) {
  for (const Way& way : ways()) {
    const std::string name = way.name;
    expect_answers(way, rich::FinderKind::math, Format::padded, 16, 1, 0, 5, name + ", one padded packet");
    expect_answers(way, rich::FinderKind::math, Format::padded, 16, 40, 0, 20, name + ", 40 padded packets");
    expect_answers(way, rich::FinderKind::math, Format::padded, 5, 9, 0, 12, name + ", padded packets with few events");
    expect_answers(way, rich::FinderKind::math, Format::packed, 40, 12, 0, 12, name + ", packed packets of different lengths");
    expect_answers(way, rich::FinderKind::math, Format::merged, 30, 12, 0, 12, name + ", merged packets");
  }
}

TEST(Runtime, packets_may_lie_anywhere) {
  for (const Way& way : ways()) {
    for (const std::uint32_t hole : {2u, 4u, 6u, 8u, 22u}) {
      const std::string name = std::string(way.name) + ", holes of " + std::to_string(hole);
      expect_answers(way, rich::FinderKind::math, Format::padded, 16, 7, hole, 3, name + ", padded");
      expect_answers(way, rich::FinderKind::math, Format::packed, 33, 7, hole, 3, name + ", packed");
      expect_answers(way, rich::FinderKind::math, Format::merged, 20, 7, hole, 3, name + ", merged");
    }
  }
}

TEST(Runtime, every_finder_runs_in_the_resident_kernel) {
  const Way way{"persistent", {.runtime = Runtime::persistent, .buffers_in_flight = 2, .blocks = 16}};
  for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) {
    const auto finder = static_cast<rich::FinderKind>(k);
    expect_answers(way, finder, Format::padded, 16, check::under_sanitizer() ? 2 : 12, 0, check::under_sanitizer() ? 1 : 6,
                   rich::finder_name(finder));
  }
}

TEST(Runtime, every_finder_runs_in_a_launched_kernel) {
  const Way way{"launch", {.runtime = Runtime::launch, .buffers_in_flight = 2}};
  for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) {
    const auto finder = static_cast<rich::FinderKind>(k);
    expect_answers(way, finder, Format::packed, 30, check::under_sanitizer() ? 2 : 12, 0, 2, rich::finder_name(finder));
  }
}

TEST(Runtime, nothing_is_torn_when_everything_wraps) {
  for (const Way& way : ways()) expect_nothing_torn(way, check::under_sanitizer() ? 50 : 6000, Placing::ordinary, way.name);
}

TEST(Runtime, waits_for_room_in_the_tx_ring_and_overwrites_nothing) {
  for (const Way& way : ways()) {
    const EventProcessorConfig config = config_of(way);
    PacketSource source(8);
    Rig rig({.buffer_count = 4, .buffer_bytes = 65536, .tx_capacity = 4});
    rig.start(config);
    Primitives expected;
    std::uint32_t fed = 0;
    const std::uint64_t begin_ns = now_ns();
    // Two descriptors a buffer: two buffers fill the ring, four more the CLOP; no one takes the answers.
    while (now_ns() - begin_ns < 50'000'000) {
      const std::vector<Payload> payloads{source.next(Format::padded, 16), source.next(Format::padded, 16),
                                          source.next(Format::padded, 16), source.next(Format::padded, 16),
                                          source.next(Format::padded, 16)};
      if (!rig.feed(payloads)) {
        rig.processor().poll(now_ns());
        continue;
      }
      ++fed;
      for (const Payload& payload : payloads) append(expected, answers_to(payload, config));
    }
    EXPECT_EQ(fed, 6u) << way.name;
    EXPECT_EQ(rig.clop().in_use(), 4u) << way.name;
    EXPECT_TRUE(rig.settle()) << way.name;
    expect_same(rig.answers(), expected, way.name);
  }
}

TEST(Runtime, another_run_goes_on_where_the_one_before_ended) {
  for (const Way& way : ways()) {
    PacketSource source(9);
    Rig rig({});
    Primitives expected;
    for (std::uint32_t run = 0; run < 4; ++run) {
      const EventProcessorConfig config = config_of(way, run % 2 == 0 ? rich::FinderKind::math : rich::FinderKind::almagest);
      rig.start(config);
      for (std::uint32_t b = 0; b < 11; ++b) {
        const std::vector<Payload> payloads{source.next(Format::padded, 16), source.next(Format::padded, 16)};
        for (const Payload& payload : payloads) append(expected, answers_to(payload, config));
        rig.feed_waiting(payloads);
      }
      EXPECT_TRUE(rig.settle()) << way.name;
      rig.end();
    }
    expect_same(rig.answers(), expected, way.name);
  }
}

TEST(Runtime, finish_judges_what_is_there) {
  for (const Way& way : ways()) {
    const EventProcessorConfig config = config_of(way);
    PacketSource source(10);
    Rig rig({});
    rig.start(config);
    Primitives expected;
    for (std::uint32_t b = 0; b < 8; ++b) {
      const std::vector<Payload> payloads{source.next(Format::padded, 16)};
      append(expected, answers_to(payloads[0], config));
      rig.feed(payloads);
    }
    rig.processor().finish();
    while (rig.take_answers() > 0) {
    }
    EXPECT_EQ(rig.processor().fault(), "") << way.name;
    EXPECT_EQ(rig.clop().in_use(), 0u) << way.name;
    expect_same(rig.answers(), expected, way.name);
  }
}

// No one takes answers, so no buffer comes back: the watchdog gives the GPU up within its time, the kernels end, and the host gives the buffers back.
TEST(Runtime, a_stall_is_noticed_and_ended) {
  for (const Way& way : ways()) {
    EventProcessorConfig config = config_of(way);
    config.gpu.watchdog_ms = 200;
    PacketSource source(11);
    Rig rig({.buffer_count = 4, .buffer_bytes = 65536, .tx_capacity = 2});
    rig.start(config);
    const std::vector<Payload> payloads{source.next(Format::padded, 16), source.next(Format::padded, 16)};
    std::uint32_t fed = 0;
    const std::uint64_t begin_ns = now_ns();
    while (rig.processor().fault().empty() && now_ns() - begin_ns < 5'000'000'000) {
      fed += rig.feed(payloads) ? 1 : 0;
      rig.processor().poll(now_ns());
    }
    EXPECT_NE(rig.processor().fault(), "") << way.name;
    while (rig.clop().in_use() > 0 && now_ns() - begin_ns < 8'000'000'000) rig.processor().poll(now_ns());
    EXPECT_EQ(rig.clop().in_use(), 0u) << way.name;
    rig.processor().finish();  // until then the totals may lack the last buffer's
    EXPECT_EQ(rig.processor().totals().events + rig.processor().events_unjudged(), std::uint64_t{32} * fed) << way.name;
    rig.end();
    EXPECT_LT(now_ns() - begin_ns, 9'000'000'000u) << way.name;
  }
}

TEST(Runtime, refuses_what_it_cannot_do) {
  Rig rig({});
  const Way& way = ways()[0];
  EventProcessorConfig config = config_of(way);
  config.gpu.buffers_in_flight = 17;
  EXPECT_THROW(rig.start(config), SetupError);
  config.gpu.buffers_in_flight = 1;
  config.gpu.path = BufferPath::copied;
  EXPECT_THROW(rig.start(config), SetupError);
  config.gpu.path = BufferPath::mapped;
  config.gpu.blocks = 1u << 20;
  EXPECT_THROW(rig.start(config), SetupError);
  config.gpu.blocks = 0;
  config.gpu.device = 999;
  EXPECT_THROW(rig.start(config), SetupError);
}

}  // namespace
}  // namespace nanet::gpu
