// SPDX-License-Identifier: Apache-2.0
// The answer checker in virtual time, without sockets.
#include "emulate/answer_checker.hpp"

#include <gtest/gtest.h>

#include "emulate/schedule.hpp"
#include "fake_link.hpp"

namespace nanet::emulate {
namespace {

constexpr std::uint64_t kSentNs = 1'000'000;

// 10 packets of 16 events, all sent: packet p at kSentNs + 1000 p. Right answer of pool event e: one ring and e % 64 hits.
class AnswerCheckerTest : public testing::Test {
 protected:
  AnswerCheckerTest() : AnswerCheckerTest(EmulatorConfig{}) {}
  explicit AnswerCheckerTest(const EmulatorConfig& config)
      : arrivals_(poisson_arrivals(160, 1e7, 1)),
        book_(arrivals_.keys, 16, 64, 0),
        stalls_(50'000),
        checker_(config, book_, make_expected(), link_, stalls_, course_) {
    for (std::uint32_t p = 0; p < 10; ++p) book_.sent(p, p, 0, kSentNs + 1000 * p);
  }

  std::span<const std::uint16_t> make_expected() {
    for (std::uint32_t e = 0; e < 160; ++e) expected_.push_back(right_id(e));
    return expected_;
  }
  static std::uint16_t right_id(std::uint32_t event) {
    return static_cast<std::uint16_t>(1u << 14 | 11u << 10 | 1u << 8 | 1u << 6 | event % 64);
  }

  wire::Primitive primitive(std::uint32_t event) const {
    return {static_cast<std::uint32_t>(arrivals_.keys[event] >> 8), static_cast<std::uint8_t>(arrivals_.keys[event]),
            right_id(event)};
  }
  std::vector<std::byte> packet(const std::vector<wire::Primitive>& primitives, std::uint8_t source = 0x1C, std::uint8_t sub = 0) {
    std::vector<std::byte> room(1472);
    wire::MtpWriter writer(room);
    writer.begin(source, sub, primitives.empty() ? 0 : primitives[0].timestamp);
    for (const wire::Primitive& p : primitives) EXPECT_TRUE(writer.add(p));
    const auto bytes = writer.finish();
    return {bytes.begin(), bytes.end()};
  }
  void come(std::vector<std::byte> payload) { link_.to_receive.push_back(std::move(payload)); }
  AnswerCounts check(std::uint64_t received_ns) {
    while (checker_.receive(received_ns) > 0) checker_.check(received_ns);
    return checker_.counts();
  }

  std::vector<std::uint16_t> expected_;
  Arrivals arrivals_;
  AnswerBook book_;
  FakeLink link_;
  StallWatch stalls_;
  Course course_;
  AnswerChecker checker_;
};

TEST_F(AnswerCheckerTest, CountsAndTimesRightAnswers) {
  std::vector<wire::Primitive> primitives;
  for (std::uint32_t e = 0; e < 40; ++e) primitives.push_back(primitive(e));
  come(packet(primitives));
  const AnswerCounts counts = check(kSentNs + 12'000);
  EXPECT_EQ(counts.packets, 1u);
  EXPECT_EQ(counts.primitives, 40u);
  EXPECT_EQ(counts.answered, 40u);
  EXPECT_EQ(counts.wrong + counts.unknown + counts.duplicate + counts.stale + counts.bad_primitives, 0u);
  // 16 events sent at 0, 16 at 1 us, 8 at 2 us, received at 12 us.
  EXPECT_EQ(checker_.latency().count(), 40u);
  EXPECT_EQ(checker_.latency().max(), 12'000u);
  EXPECT_EQ(checker_.latency().min(), 10'000u);
  EXPECT_EQ(checker_.latency().value_at_percentile(20),
            flow::LatencyHistogram::last_value_of_bucket(flow::LatencyHistogram::bucket_of_value(10'000)));
  EXPECT_EQ(checker_.latency().value_at_percentile(60),
            flow::LatencyHistogram::last_value_of_bucket(flow::LatencyHistogram::bucket_of_value(11'000)));
  EXPECT_EQ(checker_.latency_clean().count(), 40u);
}

TEST_F(AnswerCheckerTest, DuplicatesUnknownAndWrongHaveTheirOwnCounts) {
  wire::Primitive unknown = primitive(3);
  unknown.timestamp += 40'000'000;
  wire::Primitive wrong = primitive(5);
  wrong.id = static_cast<std::uint16_t>(wrong.id ^ 1u);
  come(packet({primitive(3), primitive(4), primitive(3), unknown, wrong}));
  come(packet({primitive(4)}));
  const AnswerCounts counts = check(kSentNs + 1);
  EXPECT_EQ(counts.packets, 2u);
  EXPECT_EQ(counts.primitives, 6u);
  EXPECT_EQ(counts.answered, 3u);
  EXPECT_EQ(counts.duplicate, 2u);
  EXPECT_EQ(counts.unknown, 1u);
  EXPECT_EQ(counts.wrong, 1u);
  EXPECT_EQ(counts.stale, 0u);
  EXPECT_EQ(checker_.latency().count(), 3u);
}

TEST_F(AnswerCheckerTest, ForgottenEventsAreStale) {
  for (std::uint32_t p = 10; p < 80; ++p) book_.sent(p, p % 10, p / 10 * 1000, kSentNs);
  come(packet({primitive(0)}));
  EXPECT_EQ(check(kSentNs + 1).stale, 1u);
}

TEST_F(AnswerCheckerTest, PrimitivesThatContradictThemselvesAreBad) {
  const std::uint16_t good = right_id(0);
  const std::uint16_t bad[] = {
      static_cast<std::uint16_t>(good | 0x8000),              // calibration
      static_cast<std::uint16_t>((good & ~0x4000) | 0x8000),  // bit 14 clear
      static_cast<std::uint16_t>(good & ~0x4000),
      static_cast<std::uint16_t>(good & ~0x0100),  // a ring, but "not found"
      static_cast<std::uint16_t>(good & ~0x00C0),  // found, but no ring
      0x4000 | 0x0200,                             // electron without ring
      0x4000 | 0x0400,                             // class without ring
  };
  std::vector<wire::Primitive> primitives;
  for (const std::uint16_t id : bad) {
    primitives.push_back(primitive(0));
    primitives.back().id = id;
  }
  come(packet(primitives));
  AnswerCounts counts = check(kSentNs + 1);
  EXPECT_EQ(counts.bad_primitives, std::size(bad));
  EXPECT_EQ(counts.answered, 0u);
  come(packet({primitive(0)}));  // none of them answered the event
  counts = check(kSentNs + 1);
  EXPECT_EQ(counts.answered, 1u);
  EXPECT_EQ(counts.duplicate, 0u);
}

TEST_F(AnswerCheckerTest, AnswerWithoutRingIsGood) {
  expected_[7] = 0x4000 | 3;
  wire::Primitive none = primitive(7);
  none.id = 0x4000 | 3;
  come(packet({none}));
  const AnswerCounts counts = check(kSentNs + 1);
  EXPECT_EQ(counts.answered, 1u);
  EXPECT_EQ(counts.wrong, 0u);
}

TEST_F(AnswerCheckerTest, BadPacketsAreRefusedByReason) {
  const std::vector<std::byte> good = packet({primitive(0), primitive(1)});
  auto longer = good;
  longer.resize(longer.size() + 4);
  auto odd = good;
  odd.resize(good.size() - 1);
  auto miscounted = good;
  miscounted[6] = std::byte{3};
  come(longer);
  come(odd);
  come({});
  come(miscounted);
  come(packet({primitive(0)}, 0x18));
  come(packet({primitive(0)}, 0x1C, 1));
  AnswerCounts counts = check(kSentNs + 1);
  EXPECT_EQ(counts.packets, 6u);
  EXPECT_EQ(counts.packets_bad_length, 3u);
  EXPECT_EQ(counts.packets_bad_format, 1u);
  EXPECT_EQ(counts.packets_bad_source, 2u);
  EXPECT_EQ(counts.primitives, 0u);
  EXPECT_EQ(counts.answered, 0u);
  link_.next_flags = link::RxPacket::truncated;
  come(good);
  EXPECT_EQ(check(kSentNs + 1).packets_bad_length, 4u);
  link_.next_flags = 0;
  come(packet({}));  // an empty MTP is good
  counts = check(kSentNs + 1);
  EXPECT_EQ(counts.packets, 8u);
  EXPECT_EQ(counts.packets_bad_length + counts.packets_bad_format + counts.packets_bad_source, 7u);
}

TEST_F(AnswerCheckerTest, AnswersAcrossAnOwnStallAreNotClean) {
  stalls_.look(kSentNs);
  stalls_.look(kSentNs + 4'500);    // not a stall
  stalls_.look(kSentNs + 104'500);  // one, from before packet 9 was sent to after it
  book_.sent(10, 0, 1'000'000, kSentNs + 104'500);
  come(packet({primitive(15), primitive(16), primitive(159)}));
  come(packet({{static_cast<std::uint32_t>(1'000'000 + (arrivals_.keys[0] >> 8)), static_cast<std::uint8_t>(arrivals_.keys[0]),
                right_id(0)}}));
  EXPECT_EQ(check(kSentNs + 110'000).answered, 4u);
  EXPECT_EQ(checker_.latency().count(), 4u);
  EXPECT_EQ(checker_.latency_clean().count(), 1u);
  EXPECT_EQ(checker_.latency_clean().max(), 5'500u);
  EXPECT_EQ(stalls_.snapshot().count, 1u);
  EXPECT_EQ(stalls_.snapshot().longest_ns, 100'000u);
}

class AnswerCheckerTimeOnlyTest : public AnswerCheckerTest {
 protected:
  AnswerCheckerTimeOnlyTest() : unchecked_(EmulatorConfig{}, book_, {}, link_, stalls_, course_) {}
  AnswerChecker unchecked_;
};

TEST_F(AnswerCheckerTimeOnlyTest, DoesNotJudgeTheRing) {
  wire::Primitive other = primitive(0);
  other.id = static_cast<std::uint16_t>(other.id ^ 3u);
  come(packet({other}));
  ASSERT_EQ(unchecked_.receive(0), 1u);
  unchecked_.check(kSentNs + 1);
  EXPECT_EQ(unchecked_.counts().answered, 1u);
  EXPECT_EQ(unchecked_.counts().wrong, 0u);
}

EmulatorConfig with_conditions() {
  EmulatorConfig config;
  config.decision.conditions.count = 2;
  return config;
}

// Bits 13..10 are answers to conditions then, which may hold without a ring.
class AnswerCheckerConditionsTest : public AnswerCheckerTest {
 protected:
  AnswerCheckerConditionsTest() : conditional_(with_conditions(), book_, {}, link_, stalls_, course_) {}
  AnswerChecker conditional_;
};

TEST_F(AnswerCheckerConditionsTest, ConditionsMayHoldWithoutARing) {
  wire::Primitive other = primitive(0);
  other.id = 0x4000 | 0x0400 | 2;
  wire::Primitive bad = primitive(1);
  bad.id = 0x4000 | 0x0200;  // an electron still needs a ring
  come(packet({other, bad}));
  ASSERT_EQ(conditional_.receive(0), 1u);
  conditional_.check(kSentNs + 1);
  EXPECT_EQ(conditional_.counts().answered, 1u);
  EXPECT_EQ(conditional_.counts().bad_primitives, 1u);
}

}  // namespace
}  // namespace nanet::emulate
