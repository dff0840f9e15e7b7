// SPDX-License-Identifier: Apache-2.0
// A GPU that builds events, and the CPU beside it, which is told the same: what each of them answers and counts is compared.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "check.hpp"
#include "merge_rig.hpp"

namespace nanet::gpu::rig::merging {

inline constexpr std::uint64_t kWindowNs = 200'000;
inline constexpr std::uint64_t kStartNs = 5'000'000'000;  // of the tests' own time
inline constexpr std::uint64_t kLongestWaitNs = 10'000'000'000;

struct Way {
  const char* name;
  GpuConfig gpu;
};

inline const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"persistent", {.runtime = Runtime::persistent}},
      {"persistent, 3 blocks", {.runtime = Runtime::persistent, .blocks = 3}},
      {"launch, mapped", {.runtime = Runtime::launch}},
      {"launch, copied", {.runtime = Runtime::launch, .path = BufferPath::copied}},
      {"graph, mapped", {.runtime = Runtime::graph}},
      {"graph, copied", {.runtime = Runtime::graph, .path = BufferPath::copied}},
  };
  return all;
}

inline EventProcessorConfig config_of(const Way& way, IncompletePolicy incomplete = IncompletePolicy::process) {
  EventProcessorConfig config{.gpu = way.gpu};
  if (check::under_sanitizer()) config.gpu.watchdog_ms = 60'000;  // a round takes a hundred times as long
  config.answer_source_sub_id = 3;
  config.merge = EventMerge{.merger = {.source_count = Boards::kCount, .window_ns = kWindowNs, .open_events_max = 1024},
                            .incomplete = incomplete,
                            .first_source = {0}};
  return config;
}

inline Primitives sorted(Primitives primitives) {
  std::ranges::sort(primitives, {}, [](const wire::Primitive& p) { return std::tuple(p.timestamp, p.fine_time, p.id); });
  return primitives;
}

inline void expect_same_set(const Primitives& found, const Primitives& expected, const std::string& what) {
  EXPECT_EQ(found.size(), expected.size()) << what;
  const Primitives a = sorted(found);
  const Primitives b = sorted(expected);
  std::size_t differ = 0;
  for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k) differ += a[k] == b[k] ? 0 : 1;
  EXPECT_EQ(differ, 0u) << what << ", answers that differ";
}

inline void expect_same_totals(const Totals& found, const MergeReference& reference, const std::string& what) {
  const rig::MergeTotals expected = reference.totals();
  EXPECT_EQ(found.events, expected.events) << what;
  EXPECT_EQ(found.events_discarded, expected.discarded) << what;
  EXPECT_EQ(found.merger.parts_merged, expected.stats.parts_merged) << what;
  EXPECT_EQ(found.merger.parts_late, expected.stats.parts_late) << what;
  EXPECT_EQ(found.merger.parts_duplicate, expected.stats.parts_duplicate) << what;
  EXPECT_EQ(found.merger.parts_no_room, expected.stats.parts_no_room) << what;
  EXPECT_EQ(found.merger.parts_overflow_hits, expected.stats.parts_overflow_hits) << what;
  EXPECT_EQ(found.merger.events_opened, expected.stats.events_opened) << what;
  EXPECT_EQ(found.merger.events_complete, expected.stats.events_complete) << what;
  EXPECT_EQ(found.merger.events_missing_parts, expected.stats.events_missing_parts) << what;
  EXPECT_EQ(found.merger.events_overflow, expected.stats.events_overflow) << what;
}

// The GPU, and the CPU beside it. One link unless told otherwise.
class Pair {
 public:
  explicit Pair(const EventProcessorConfig& config, const rig::RigConfig& rig_config = {})
      : rig(rig_config), reference(config), seen_ns_(rig_config.clop_count) {
    rig.start(config);
  }

  void feed(const std::vector<PartPacket>& packets, std::uint64_t now_ns, std::uint32_t hole = 0, std::uint32_t clop = 0) {
    std::vector<Payload> payloads;
    std::vector<std::uint16_t> sources;
    for (const PartPacket& packet : packets) {
      payloads.push_back(packet.payload);
      sources.push_back(packet.source);
    }
    rig.feed_waiting(payloads, hole, {.clop = clop, .last_packet_ns = now_ns, .sources = sources});
    clock_ns_ = std::max(clock_ns_, now_ns);
    seen_ns_[clop] = now_ns;
    reference.add(packets, clop, clock_ns_, *std::ranges::min_element(seen_ns_));
  }

  // Polls with this time until everything is answered that the CPU has answered; false after ten seconds.
  bool settle(std::uint64_t caught_up_ns = 0) {
    const std::uint64_t begin_ns = rig::now_ns();
    while (rig.processor().busy() || rig.answers().size() < reference.answers().size()) {
      rig.processor().poll(rig::now_ns(), caught_up_ns);
      rig.take_answers();
      if (rig::now_ns() - begin_ns > kLongestWaitNs) return false;
    }
    return true;
  }

  // The end of the run; everything must be as the CPU has it.
  void end(const std::string& what) {
    EXPECT_TRUE(settle()) << what;
    reference.drain(clock_ns_);
    rig.processor().finish();
    while (rig.take_answers() > 0) {
    }
    EXPECT_EQ(rig.processor().fault(), "") << what;
    EXPECT_EQ(rig.bad_answers(), 0u) << what;
    EXPECT_EQ(rig.clop().in_use(), 0u) << what;
    expect_same_set(rig.answers(), reference.answers(), what);
    const Totals totals = rig.processor().totals();
    expect_same_totals(totals, reference, what);
    EXPECT_EQ(totals.merger.events_opened, totals.events + totals.events_discarded) << what << ", books";
    EXPECT_EQ(totals.packets_bad_body, reference.packets_bad_body()) << what;
    EXPECT_EQ(totals.events_bad_body, reference.parts_bad_body()) << what;
    std::uint64_t counted = 0;
    for (const std::uint64_t n : rig.processor().spectra().ring_count) counted += n;
    EXPECT_EQ(counted, totals.events) << what;
  }

  Rig rig;
  MergeReference reference;

 private:
  std::uint64_t clock_ns_ = 0;
  std::vector<std::uint64_t> seen_ns_;
};

inline void expect_merged(const Way& way, Format format, std::uint32_t events, std::uint32_t packets, std::uint32_t hole,
                          std::uint32_t buffers, const std::string& what, Placing placing = Placing::ordinary) {
  Pair pair(config_of(way), {.placing = {placing}});
  Boards boards(events * 100 + packets);
  BadNetwork network({}, 0, 1);
  for (std::uint32_t b = 0; b < buffers; ++b) {
    for (std::uint32_t p = 0; p < packets; p += Boards::kCount) network.send(boards.next(format, events));
    pair.feed(network.arrive(packets), kStartNs + b * 1000, hole);
  }
  for (std::uint32_t b = buffers; !network.is_empty(); ++b) pair.feed(network.arrive(packets), kStartNs + b * 1000, hole);
  pair.end(what);
  EXPECT_EQ(pair.rig.processor().totals().merger.events_missing_parts, 0u) << what;
}

// Time goes 20 us a buffer, the window is 200 us: what was lost is closed ten buffers later, and delayed packets come before or after that.
inline void run_bad_network(const Way& way, IncompletePolicy incomplete, std::uint32_t packets, std::uint32_t buffers,
                            const std::string& what, Placing placing = Placing::ordinary) {
  Pair pair(config_of(way, incomplete), {.placing = {placing}});
  Boards boards(packets);
  BadNetwork network({.lost = 0.02, .repeated = 0.03, .delayed = 0.05}, 14 * packets, packets);
  std::uint64_t now_ns = kStartNs;
  for (std::uint32_t b = 0; b < buffers || !network.is_empty(); ++b, now_ns += 20'000) {
    for (std::uint32_t p = 0; b < buffers && p < packets; p += Boards::kCount)
      network.send(boards.next(b % 3 == 0 ? Format::padded : Format::packed, 8));
    pair.feed(network.arrive(packets), now_ns);
  }
  pair.end(what);
  const Totals totals = pair.rig.processor().totals();
  EXPECT_GT(totals.merger.parts_late, 0u) << what;
  EXPECT_GT(totals.merger.parts_duplicate, 0u) << what;
  EXPECT_GT(totals.merger.events_missing_parts, 0u) << what;
}

}  // namespace nanet::gpu::rig::merging
