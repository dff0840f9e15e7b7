// SPDX-License-Identifier: Apache-2.0
// The runtimes, and a check that each gives the CPU's answers to the packets of a run.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "check.hpp"
#include "contract_rig.hpp"

namespace nanet::gpu::rig {

struct Way {
  const char* name;
  GpuConfig gpu;
};

inline const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"persistent, serialised", {.runtime = Runtime::persistent, .buffers_in_flight = 1}},
      {"persistent, overlapped", {.runtime = Runtime::persistent, .buffers_in_flight = 4}},
      {"launch, mapped", {.runtime = Runtime::launch, .buffers_in_flight = 3}},
      {"launch, copied", {.runtime = Runtime::launch, .path = BufferPath::copied, .buffers_in_flight = 2}},
      {"graph, mapped", {.runtime = Runtime::graph, .buffers_in_flight = 4}},
      {"graph, copied", {.runtime = Runtime::graph, .path = BufferPath::copied, .buffers_in_flight = 1}},
  };
  return all;
}

inline EventProcessorConfig config_of(const Way& way, rich::FinderKind finder = rich::FinderKind::math) {
  EventProcessorConfig config{.gpu = way.gpu};
  config.finder.kind = finder;
  if (check::under_sanitizer()) config.gpu.watchdog_ms = 60'000;  // a buffer takes a hundred times as long
  config.answer_source_sub_id = 3;
  return config;
}

inline void append(Primitives& to, const Primitives& from) { to.insert(to.end(), from.begin(), from.end()); }

inline void expect_same(const Primitives& found, const Primitives& expected, const std::string& what) {
  EXPECT_EQ(found.size(), expected.size()) << what;
  std::size_t differ = 0;
  for (std::size_t k = 0; k < std::min(found.size(), expected.size()); ++k) {
    if (found[k] == expected[k]) continue;
    if (++differ > 3) continue;
    EXPECT_EQ(found[k].timestamp, expected[k].timestamp) << what << ", answer " << k;
    EXPECT_EQ(found[k].id, expected[k].id) << what << ", answer " << k;
    EXPECT_EQ(found[k].fine_time, expected[k].fine_time) << what << ", answer " << k;
  }
  EXPECT_EQ(differ, 0u) << what << ", answers that differ";
}

// Buffers of `packets` packets each, fed one after the other.
inline void expect_answers(const Way& way, rich::FinderKind finder, Format format, std::uint32_t events, std::uint32_t packets,
                           std::uint32_t hole, std::uint32_t buffers, const std::string& what, Placing placing = Placing::ordinary) {
  const EventProcessorConfig config = config_of(way, finder);
  PacketSource source(events * 100 + packets);
  Rig rig({.placing = {placing}});
  rig.start(config);
  Primitives expected;
  for (std::uint32_t b = 0; b < buffers; ++b) {
    std::vector<Payload> payloads;
    for (std::uint32_t p = 0; p < packets; ++p) payloads.push_back(source.next(format, events));
    for (const Payload& payload : payloads) append(expected, answers_to(payload, config));
    rig.feed_waiting(payloads, hole);
  }
  EXPECT_TRUE(rig.settle()) << what;
  rig.processor().finish();
  EXPECT_EQ(rig.processor().fault(), "") << what;
  EXPECT_EQ(rig.bad_answers(), 0u) << what;
  EXPECT_EQ(rig.clop().in_use(), 0u) << what;
  expect_same(rig.answers(), expected, what);
  EXPECT_EQ(rig.processor().totals().events, expected.size()) << what;
  EXPECT_EQ(rig.processor().totals().packets_bad_body, 0u) << what;
  EXPECT_EQ(rig.empty_answers(), 0u) << what;
  std::uint64_t counted = 0;
  for (const std::uint64_t n : rig.processor().spectra().ring_count) counted += n;
  EXPECT_EQ(counted, expected.size()) << what;
  EXPECT_EQ(rig.processor().samples().size(), std::min<std::size_t>(expected.size(), rich::kSamples)) << what;
}

// Two buffers, a queue of four entries and a ring of 32: everything wraps many times. Each buffer is written again as soon as it is free, and each
// event is another: a part of a buffer that was read too early or too late gives a wrong answer.
inline void expect_nothing_torn(const Way& way, std::uint32_t buffers, Placing placing, const std::string& what) {
  const EventProcessorConfig config = config_of(way);
  PacketSource source(7);
  Rig rig({.buffer_count = 2, .buffer_bytes = 65536, .tx_capacity = 32, .placing = {placing}});
  rig.start(config);
  std::vector<std::vector<Payload>> different;
  std::vector<Primitives> answers;
  for (std::uint32_t d = 0; d < 97; ++d) {
    std::vector<Payload> payloads;
    for (std::uint32_t p = 0; p < 1 + d % 23; ++p)
      payloads.push_back(source.next(d % 5 == 4 ? Format::packed : Format::padded, 16));
    Primitives primitives;
    for (const Payload& payload : payloads) append(primitives, answers_to(payload, config));
    different.push_back(std::move(payloads));
    answers.push_back(std::move(primitives));
  }
  Primitives expected;
  for (std::uint32_t b = 0; b < buffers; ++b) {
    rig.feed_waiting(different[b % different.size()]);
    append(expected, answers[b % answers.size()]);
  }
  EXPECT_TRUE(rig.settle()) << what;
  expect_same(rig.answers(), expected, what);
  EXPECT_EQ(rig.buffers_fed(), buffers) << what;
  EXPECT_TRUE(std::is_sorted(rig.tags().begin(), rig.tags().end())) << what << ": answers of buffers out of order";
}

}  // namespace nanet::gpu::rig
