// SPDX-License-Identifier: Apache-2.0
// Payloads in place, in the host's memory or the GPU's: the answers are those to ordinary buffers, and what only the GPU can check it refuses and counts.
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include "nanet/gpu/device_memory.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"
#include "runtime_rig.hpp"
#include "wire/event_walk.hpp"

namespace nanet::gpu {
namespace {

using namespace rig;

constexpr Placing kPlacings[] = {Placing::host, Placing::device};

std::string say(const Way& way, Placing placing, const std::string& what) {
  return std::string(way.name) + ", " + name_of(placing) + ", " + what;
}

TEST(InPlace, answers_are_those_of_the_cpu) {
  for (const Way& way : ways()) {
    for (const Placing placing : kPlacings) {
      const auto expect = [&](Format format, std::uint32_t events, std::uint32_t packets, std::uint32_t buffers, const char* what) {
        expect_answers(way, rich::FinderKind::math, format, events, packets, 0, buffers, say(way, placing, what), placing);
      };
      expect(Format::padded, 16, 1, 5, "one padded packet");
      expect(Format::padded, 16, 40, 20, "40 padded packets");
      expect(Format::padded, 5, 9, 12, "padded packets with few events");
      expect(Format::packed, 40, 12, 12, "packed packets of different lengths");
      expect(Format::packed, 1, 30, 12, "packed packets of one event");
      expect(Format::merged, 30, 12, 12, "merged packets");
    }
  }
}

TEST(InPlace, payloads_may_lie_anywhere) {
  for (const Way& way : ways()) {
    for (const Placing placing : kPlacings) {
      for (const std::uint32_t hole : {1u, 2u, 3u, 5u, 7u, 8u, 9u, 10u, 13u, 16u, 29u}) {
        const std::string name = say(way, placing, "holes of " + std::to_string(hole));
        expect_answers(way, rich::FinderKind::math, Format::padded, 16, 7, hole, 2, name + ", padded", placing);
        expect_answers(way, rich::FinderKind::math, Format::packed, 33, 17, hole, 2, name + ", packed", placing);
        expect_answers(way, rich::FinderKind::math, Format::merged, 20, 17, hole, 2, name + ", merged", placing);
      }
    }
  }
}

// Blocks have 64 to 256 threads, so a packet's vectors are shared out differently.
TEST(InPlace, every_finder_reads_in_place) {
  for (const Way& way : {Way{"persistent", {.runtime = Runtime::persistent, .buffers_in_flight = 2, .blocks = 16}},
                         Way{"launch", {.runtime = Runtime::launch, .buffers_in_flight = 2}}}) {
    for (const Placing placing : kPlacings) {
      for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) {
        const auto finder = static_cast<rich::FinderKind>(k);
        expect_answers(way, finder, Format::packed, 12, check::under_sanitizer() ? 2 : 12, 5, check::under_sanitizer() ? 1 : 3,
                       say(way, placing, rich::finder_name(finder)), placing);
      }
    }
  }
}

TEST(InPlace, nothing_is_torn_when_everything_wraps) {
  for (const Way& way : ways()) {
    for (const Placing placing : kPlacings) {
      expect_nothing_torn(way, check::under_sanitizer() ? 50 : 3000, placing, say(way, placing, "two buffers"));
    }
  }
}

// Links of all three kinds share a GPU.
TEST(InPlace, each_clop_may_be_another_way) {
  for (const Way& way : ways()) {
    const EventProcessorConfig config = config_of(way);
    PacketSource source(31);
    Rig rig({.clop_count = 3, .placing = {Placing::ordinary, Placing::device, Placing::host}});
    rig.start(config);
    Primitives expected;
    for (std::uint32_t b = 0; b < 60; ++b) {
      std::vector<Payload> payloads;
      for (std::uint32_t p = 0; p < 1 + b % 9; ++p)
        payloads.push_back(source.next(b % 4 == 0 ? Format::packed : Format::padded, 16));
      for (const Payload& payload : payloads) append(expected, answers_to(payload, config));
      rig.feed_waiting(payloads, b % 4 * 2, {.clop = b % 3});
    }
    EXPECT_TRUE(rig.settle()) << way.name;
    rig.processor().finish();
    EXPECT_EQ(rig.processor().fault(), "") << way.name;
    expect_same(rig.answers(), expected, way.name);
    EXPECT_EQ(rig.processor().totals().packets_bad_body, 0u) << way.name;
  }
}

// ---- what no host could check

bool is_accepted(const Payload& packet) {
  wire::MgpView mgp;
  wire::M2egpView merged;
  return (wire::is_m2egp(packet) ? wire::M2egpView::parse(packet, merged) : wire::MgpView::parse(packet, mgp)) ==
         wire::ParseError::none;
}

// What must come of a run in which some packets are refused.
struct Expected {
  Primitives answers;
  std::uint64_t packets_bad = 0;
  std::uint64_t events_bad = 0;
  std::uint64_t events = 0;  // received

  void add(const Payload& packet, const EventProcessorConfig& config) {
    events += static_cast<std::uint64_t>(packet[3]);
    if (is_accepted(packet)) {
      append(answers, answers_to(packet, config));
    } else {
      ++packets_bad;
      events_bad += static_cast<std::uint64_t>(packet[3]);
    }
  }
};

void expect_refused(Rig& rig, const Expected& expected, const std::string& what) {
  EXPECT_TRUE(rig.settle()) << what;
  rig.processor().finish();
  EXPECT_EQ(rig.processor().fault(), "") << what;
  EXPECT_EQ(rig.bad_answers(), 0u) << what;
  EXPECT_EQ(rig.clop().in_use(), 0u) << what;
  expect_same(rig.answers(), expected.answers, what);
  const Totals totals = rig.processor().totals();
  EXPECT_EQ(totals.packets_bad_body, expected.packets_bad) << what;
  EXPECT_EQ(totals.events_bad_body, expected.events_bad) << what;
  EXPECT_EQ(totals.events, expected.answers.size()) << what;
  EXPECT_EQ(totals.events + totals.events_bad_body, expected.events) << what << ", books";
  std::uint64_t counted = 0;
  for (const std::uint64_t n : rig.processor().spectra().ring_count) counted += n;
  EXPECT_EQ(counted, totals.events) << what;
}

// No length changes by this, or hardly ever: the checksum has to tell.
void spoil(Payload& packet, std::size_t at) { packet[at] ^= std::byte{1}; }

// A packet in four, all of a chunk, all of a buffer; each at another place of the buffer.
TEST(InPlace, a_bad_checksum_is_refused_and_counted) {
  for (const Way& way : ways()) {
    const EventProcessorConfig config = config_of(way);
    PacketSource source(32);
    Rig rig({.placing = {Placing::device}});
    rig.start(config);
    Expected expected;
    std::uint32_t empty = 0;
    for (std::uint32_t b = 0; b < 48; ++b) {
      std::vector<Payload> payloads;
      for (std::uint32_t p = 0; p < 12; ++p) {
        payloads.push_back(source.next(b % 3 == 0 ? Format::padded : b % 3 == 1 ? Format::packed : Format::merged, 16));
        const bool spoiled = b % 4 == 0 ? (b / 4 + p) % 4 == 0 : b % 4 == 1 ? p / 4 == 1 : b % 4 == 2;
        if (spoiled) spoil(payloads.back(), 24 + (p * 37 + b * 101) % (payloads.back().size() - 24));
      }
      empty += b % 4 == 1 ? 1u : b % 4 == 2 ? 3u : 0u;  // chunks are of four packets
      for (const Payload& payload : payloads) expected.add(payload, config);
      rig.feed_waiting(payloads, b % 11);
    }
    expect_refused(rig, expected, way.name);
    EXPECT_EQ(expected.packets_bad, 12u * 3 + 12 * 4 + 12 * 12) << "the test itself";
    EXPECT_EQ(rig.empty_answers(), empty) << way.name;
  }
}

// Bytes after the head are changed at random, half of the packets get the checksum of the result: the GPU refuses what a view refuses.
TEST(InPlace, what_a_view_refuses_is_refused) {
  for (const Way& way : ways()) {
    const EventProcessorConfig config = config_of(way);
    PacketSource source(33);
    std::mt19937 random(33);
    Rig rig({.placing = {Placing::device}});
    rig.start(config);
    Expected expected;
    for (std::uint32_t b = 0; b < (check::under_sanitizer() ? 8u : 250u); ++b) {
      std::vector<Payload> payloads;
      for (std::uint32_t p = 0; p < 1 + random() % 24; ++p) {
        const auto format = static_cast<Format>(random() % 3);
        Payload packet = source.next(format, 1 + static_cast<std::uint32_t>(random() % 20));
        if (random() % 2 == 0 && packet.size() > 40) {
          const std::size_t slot = format == Format::padded ? 16 + random() % 16 * 72 : 24 + random() % (packet.size() - 24);
          const std::size_t at = format == Format::padded && slot >= 24 ? slot + 5 : 24 + random() % (packet.size() - 24);
          packet[at] = static_cast<std::byte>(random());
          if (random() % 2 == 0) wire::seal(packet);
        }
        expected.add(packet, config);
        payloads.push_back(std::move(packet));
      }
      rig.feed_waiting(payloads, static_cast<std::uint32_t>(random() % 17));
    }
    EXPECT_GT(expected.packets_bad, 0u) << "the test itself";
    expect_refused(rig, expected, way.name);
  }
}

// Lengths of events that do not add up, with a good checksum, in each format: the last event ends after the packet.
TEST(InPlace, lengths_that_do_not_add_up_are_refused) {
  for (const Way& way : ways()) {
    const EventProcessorConfig config = config_of(way);
    PacketSource source(34);
    Rig rig({.placing = {Placing::device}});
    rig.start(config);
    Expected expected;
    for (const Format format : {Format::padded, Format::packed, Format::merged}) {
      for (std::uint32_t changed = 0; changed < 4; ++changed) {
        std::vector<Payload> payloads;
        for (std::uint32_t p = 0; p < 4; ++p) payloads.push_back(source.next(format, 10));
        Payload& packet = payloads[changed];
        wire::EventWalk walk(packet.data(), wire::load_packet_head(packet.data()));
        wire::EventPlace last;
        for (wire::EventPlace place; walk.next(place);) last = place;
        packet[last.offset + 5] = std::byte{255};
        wire::seal(packet);
        for (const Payload& payload : payloads) expected.add(payload, config);
        rig.feed_waiting(payloads);
      }
    }
    EXPECT_EQ(expected.packets_bad, 12u) << "the test itself";
    expect_refused(rig, expected, way.name);
  }
}

// The control: the same spoiled bytes are answered where the host has checked the packet, and refused where it could not. So it is the
// check that refuses them.
TEST(InPlace, a_body_is_checked_where_the_host_could_not) {
  for (const Way& way : ways()) {
    for (const Placing placing : kPlacings) {
      const EventProcessorConfig config = config_of(way);
      PacketSource source(35);
      Rig rig({.placing = {placing}});
      rig.start(config);
      std::vector<Payload> payloads{source.next(Format::padded, 16), source.next(Format::padded, 16)};
      spoil(payloads[1], 24);
      EXPECT_FALSE(is_accepted(payloads[1])) << "the test itself";
      Primitives expected = answers_to(payloads[0], config);
      if (placing == Placing::host) append(expected, answers_to(payloads[1], config));
      rig.feed(payloads);
      const std::string what = say(way, placing, "a spoiled hit");
      EXPECT_TRUE(rig.settle()) << what;
      rig.processor().finish();
      expect_same(rig.answers(), expected, what);
      EXPECT_EQ(rig.processor().totals().packets_bad_body, placing == Placing::host ? 0u : 1u) << what;
      EXPECT_EQ(rig.processor().totals().events_bad_body, placing == Placing::host ? 0u : 16u) << what;
    }
  }
}

// During the run the totals lag by a buffer or two, and no more.
TEST(InPlace, refusals_are_seen_while_the_run_goes_on) {
  for (const Way& way : ways()) {
    const EventProcessorConfig config = config_of(way);
    PacketSource source(36);
    Rig rig({.placing = {Placing::device}});
    rig.start(config);
    const std::uint64_t begin_ns = now_ns();
    while (rig.processor().totals().packets_bad_body == 0 && now_ns() - begin_ns < 5'000'000'000) {
      std::vector<Payload> payloads{source.next(Format::padded, 16), source.next(Format::padded, 16)};
      spoil(payloads[0], 700);
      rig.feed_waiting(payloads);
      EXPECT_TRUE(rig.settle()) << way.name;
    }
    EXPECT_GT(rig.processor().totals().packets_bad_body, 0u) << way.name;
    EXPECT_LE(rig.buffers_fed(), 2u + config.gpu.buffers_in_flight) << way.name;
  }
}

// ---- memory

TEST(InPlace, refuses_memory_that_is_not_what_it_is_called) {
  flow::CompletionQueue queue(16);
  flow::Clop clop({.buffer_count = 2, .buffer_bytes = 4096, .huge_pages = false, .locked = false});
  flow::Region host({.name = "payloads", .bytes = 65536, .locked = false});
  const EventProcessorConfig config = config_of(ways()[0]);
  const auto start = [&](const std::vector<flow::PayloadMemory>& payloads) {
    EventProcessor::make(config, {.completions = queue, .clops = {&clop}, .payloads = payloads});
  };
  EXPECT_THROW(start({{host.span(), MemoryKind::device}}), SetupError);
  EXPECT_THROW(start({{host.span(), MemoryKind::host}, {host.span(), MemoryKind::host}}), SetupError);
  start({{host.span(), MemoryKind::host}});
  start({});
}

TEST(InPlace, links_may_share_the_memory_of_their_payloads) {
  flow::CompletionQueue queue(16);
  flow::Clop first({.id = 0, .buffer_count = 2, .buffer_bytes = 4096, .huge_pages = false, .locked = false});
  flow::Clop second({.id = 1, .buffer_count = 2, .buffer_bytes = 4096, .huge_pages = false, .locked = false});
  flow::Region host({.name = "payloads", .bytes = 65536, .locked = false});
  const flow::PayloadMemory payloads{host.span(), MemoryKind::host};
  const auto processor = EventProcessor::make(config_of(ways()[0]),
                                              {.completions = queue, .clops = {&first, &second}, .payloads = {payloads, payloads}});
  EXPECT_FALSE(processor->busy());
}

// Refused exactly where the driver says that a NIC cannot write there, or not in order.
TEST(DeviceMemory, is_whole_pages_of_zeros_or_refused) {
  int supported = 0;
  int ordering = 0;
  check(cudaDeviceGetAttribute(&supported, cudaDevAttrGPUDirectRDMASupported, 0), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, 0), "cudaDeviceGetAttribute");
  if (supported == 0 || ordering < cudaGPUDirectRDMAWritesOrderingOwner) {
    std::printf("GPUDirect RDMA %d, order of writes %d: device memory is refused here\n", supported, ordering);
    EXPECT_THROW(DeviceMemory::make(0, 65536, "payloads"), SetupError);
    return;
  }
  const auto memory = DeviceMemory::make(0, 100'000, "payloads");
  EXPECT_EQ(memory->span().size(), 131'072u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->span().data()) % 65536, 0u);
  std::vector<std::byte> bytes(memory->span().size(), std::byte{1});
  check(cudaMemcpy(bytes.data(), memory->span().data(), bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  EXPECT_EQ(std::ranges::count(bytes, std::byte{0}), bytes.size());
}

TEST(DeviceMemory, refuses_what_is_not_there) {
  EXPECT_THROW(DeviceMemory::make(999, 65536, "payloads"), SetupError);
  EXPECT_THROW(DeviceMemory::make(-1, 65536, "payloads"), SetupError);
  EXPECT_THROW(DeviceMemory::make(0, 0, "payloads"), SetupError);
}

}  // namespace
}  // namespace nanet::gpu
