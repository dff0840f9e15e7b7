// SPDX-License-Identifier: Apache-2.0
// Single cases of the sequence tracker, each with its numbers written out. The random model is in sequence_model_test.cpp.
#include "nanet/flow/sequence_tracker.hpp"

#include <gtest/gtest.h>

namespace nanet::flow {
namespace {

constexpr std::uint32_t kEvents = 16;

// Packet k of a run carries the events 16 k .. 16 k + 15.
Verdict send(SequenceTracker& tracker, std::uint32_t sequence, DropHint hint = DropHint::none) {
  return tracker.on_packet(sequence, static_cast<std::uint16_t>(sequence * kEvents), kEvents, hint);
}

void send_range(SequenceTracker& tracker, std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t k = first; k != end; ++k) ASSERT_EQ(send(tracker, k), Verdict::accept) << k;
}

struct Books {
  std::uint64_t expected, accepted, kernel, network;
  bool operator==(const Books&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Books& books) {
  return out << books.expected << " = " << books.accepted << " + " << books.kernel << " + " << books.network;
}

Books packets(const SequenceTracker& tracker) {
  return {tracker.packets_expected(), tracker.packets_accepted(), tracker.packets_lost_kernel(), tracker.packets_lost_network()};
}

// expected = accepted + lost, in events of which every packet has 16.
void expect_events(const SequenceTracker& tracker, std::uint64_t accepted, std::uint64_t lost) {
  EXPECT_EQ(tracker.events_accepted(), accepted);
  EXPECT_EQ(tracker.events_lost(), lost);
  EXPECT_EQ(tracker.events_expected(), accepted + lost);
}

TEST(SequenceTracker, InOrder) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 10'000);
  EXPECT_EQ(packets(tracker), (Books{10'000, 10'000, 0, 0}));
  expect_events(tracker, 160'000, 0);
  EXPECT_EQ(tracker.next_sequence(), 10'000u);
  EXPECT_EQ(tracker.restarts(), 0u);
  EXPECT_EQ(tracker.packets_newly_lost(), 0u);
}

TEST(SequenceTracker, GapGoesToTheSideOfTheHint) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 10);
  EXPECT_EQ(send(tracker, 13), Verdict::accept);
  EXPECT_EQ(send(tracker, 15, DropHint::kernel), Verdict::accept);
  EXPECT_EQ(packets(tracker), (Books{16, 12, 1, 3}));
  expect_events(tracker, 12 * 16, 4 * 16);
  EXPECT_EQ(tracker.packets_newly_lost(), 4u);
  EXPECT_EQ(tracker.packets_newly_lost(), 0u);
}

TEST(SequenceTracker, HintWithoutGapChangesNothing) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  EXPECT_EQ(send(tracker, 0, DropHint::kernel), Verdict::accept);
  EXPECT_EQ(packets(tracker), (Books{1, 1, 0, 0}));
}

TEST(SequenceTracker, ReorderedPacketTakesItsLossBackFromItsSide) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 10);
  EXPECT_EQ(send(tracker, 12, DropHint::kernel), Verdict::accept);
  EXPECT_EQ(send(tracker, 15), Verdict::accept);
  EXPECT_EQ(packets(tracker), (Books{16, 12, 2, 2}));
  EXPECT_EQ(send(tracker, 13, DropHint::kernel), Verdict::accept_reordered);
  EXPECT_EQ(packets(tracker), (Books{16, 13, 2, 1}));
  EXPECT_EQ(send(tracker, 10), Verdict::accept_reordered);
  EXPECT_EQ(packets(tracker), (Books{16, 14, 1, 1}));
  expect_events(tracker, 14 * 16, 2 * 16);
  EXPECT_EQ(tracker.packets_newly_lost(), 2u);
  EXPECT_EQ(send(tracker, 14), Verdict::accept_reordered);
  EXPECT_EQ(tracker.packets_newly_lost(), 0u) << "what was reported stays reported";
}

TEST(SequenceTracker, DuplicatesAreRefused) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 2000);
  EXPECT_EQ(send(tracker, 1999), Verdict::duplicate);
  EXPECT_EQ(send(tracker, 976), Verdict::duplicate) << "the oldest of the window";
  EXPECT_EQ(send(tracker, 975), Verdict::late) << "just outside";
  EXPECT_EQ(send(tracker, 2001), Verdict::accept);
  EXPECT_EQ(send(tracker, 2000), Verdict::accept_reordered);
  EXPECT_EQ(send(tracker, 2000), Verdict::duplicate);
  EXPECT_EQ(packets(tracker), (Books{2002, 2002, 0, 0}));
}

TEST(SequenceTracker, LatePacketStaysLost) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 5);
  EXPECT_EQ(send(tracker, 6), Verdict::accept);
  send_range(tracker, 7, 5 + 1024);
  EXPECT_EQ(tracker.next_sequence(), 5u + 1024);
  send_range(tracker, 5 + 1024, 5 + 1025);
  EXPECT_EQ(send(tracker, 5), Verdict::late);
  EXPECT_EQ(packets(tracker), (Books{1030, 1029, 0, 1}));
}

TEST(SequenceTracker, GapLargerThanTheWindow) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 3);
  EXPECT_EQ(send(tracker, 100'003), Verdict::accept);
  EXPECT_EQ(packets(tracker), (Books{100'004, 4, 0, 100'000}));
  expect_events(tracker, 64, 1'600'000);  // 1600000 events are 24 turns of the event number
  EXPECT_EQ(send(tracker, 100'002), Verdict::accept_reordered);
  EXPECT_EQ(send(tracker, 100'004 - 1024), Verdict::accept_reordered);
  EXPECT_EQ(send(tracker, 100'003 - 1024), Verdict::late);
  EXPECT_EQ(packets(tracker), (Books{100'004, 6, 0, 99'998}));
}

TEST(SequenceTracker, SequenceWraps) {
  SequenceTracker tracker;
  const std::uint32_t first = 0xffffff00;
  tracker.on_start_marker(first, std::uint64_t{first} * kEvents);
  send_range(tracker, first, 0xffffffff);
  EXPECT_EQ(send(tracker, 1), Verdict::accept) << "0xffffffff and 0 are missing";
  EXPECT_EQ(packets(tracker), (Books{258, 256, 0, 2}));
  EXPECT_EQ(send(tracker, 0xffffffff), Verdict::accept_reordered);
  EXPECT_EQ(send(tracker, 0), Verdict::accept_reordered);
  EXPECT_EQ(send(tracker, 0xfffffff0), Verdict::duplicate);
  send_range(tracker, 2, 5000);
  EXPECT_EQ(packets(tracker), (Books{5256, 5256, 0, 0}));
  expect_events(tracker, 5256 * 16, 0);
}

TEST(SequenceTracker, StartUnderTrafficCountsFromTheFirstPacket) {
  SequenceTracker tracker;
  EXPECT_EQ(send(tracker, 70'000), Verdict::accept);
  EXPECT_EQ(send(tracker, 70'002), Verdict::accept);
  EXPECT_EQ(packets(tracker), (Books{3, 2, 0, 1}));
  expect_events(tracker, 32, 16);
}

TEST(SequenceTracker, PacketBeforeAnAssumedStartMovesTheStart) {
  SequenceTracker tracker;
  EXPECT_EQ(send(tracker, 100), Verdict::accept);
  EXPECT_EQ(send(tracker, 97), Verdict::accept_reordered);
  EXPECT_EQ(packets(tracker), (Books{4, 2, 0, 2}));
  expect_events(tracker, 32, 32);
  EXPECT_EQ(send(tracker, 98), Verdict::accept_reordered);
  EXPECT_EQ(send(tracker, 97), Verdict::duplicate);
  EXPECT_EQ(packets(tracker), (Books{4, 3, 0, 1}));
}

TEST(SequenceTracker, StartMarkerOvertakenByPackets) {
  SequenceTracker tracker;
  EXPECT_EQ(send(tracker, 2), Verdict::accept);
  tracker.on_start_marker(0, 0);
  EXPECT_EQ(packets(tracker), (Books{3, 1, 0, 2})) << "the marker tells of packets 0 and 1";
  expect_events(tracker, 16, 32);
  EXPECT_EQ(send(tracker, 0), Verdict::accept_reordered);
  EXPECT_EQ(send(tracker, 3), Verdict::accept);
  tracker.on_start_marker(0, 0);
  EXPECT_EQ(packets(tracker), (Books{4, 3, 0, 1}));
  EXPECT_EQ(tracker.restarts(), 0u);
}

TEST(SequenceTracker, RepeatedMarkersChangeNothing) {
  SequenceTracker tracker;
  for (int k = 0; k < 3; ++k) tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 500);
  tracker.on_start_marker(0, 0);  // late, inside the window
  send_range(tracker, 500, 700);
  for (int k = 0; k < 3; ++k) tracker.on_end_marker(702, 702 * kEvents);
  EXPECT_EQ(packets(tracker), (Books{702, 700, 0, 2}));
  expect_events(tracker, 700 * 16, 2 * 16);
  EXPECT_EQ(tracker.restarts(), 0u);
}

TEST(SequenceTracker, EndMarkerCountsWhatIsMissingAndStillLetsItCome) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 10);
  tracker.on_end_marker(14, 14 * kEvents, DropHint::kernel);
  EXPECT_EQ(packets(tracker), (Books{14, 10, 4, 0}));
  EXPECT_EQ(send(tracker, 13), Verdict::accept_reordered);
  EXPECT_EQ(packets(tracker), (Books{14, 11, 3, 0}));
  expect_events(tracker, 11 * 16, 3 * 16);
  tracker.on_end_marker(14, 14 * kEvents);
  EXPECT_EQ(packets(tracker), (Books{14, 11, 3, 0}));
}

TEST(SequenceTracker, EveryPacketOfTheWindowBeforeTheEndCanStillCome) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 2000);
  tracker.on_end_marker(4000, 4000 * kEvents);
  for (std::uint32_t k = 4000 - 1024; k < 4000; ++k) ASSERT_EQ(send(tracker, k), Verdict::accept_reordered) << k;
  EXPECT_EQ(send(tracker, 4000 - 1025), Verdict::late);
  EXPECT_EQ(packets(tracker), (Books{4000, 3024, 0, 976}));
}

TEST(SequenceTracker, RunOfWhichNothingCame) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  tracker.on_end_marker(50'000, 50'000 * kEvents);
  EXPECT_EQ(packets(tracker), (Books{50'000, 0, 0, 50'000}));
  expect_events(tracker, 0, 800'000);  // whole numbers in the markers: no unwrapping needed
}

TEST(SequenceTracker, EndMarkerMendsAWrongGuessOfTheEventNumber) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  // Packets of 1 event teach the tracker 1 event a packet; then 70000 packets of 2 events are lost.
  for (std::uint32_t k = 0; k < 300; ++k) tracker.on_packet(k, static_cast<std::uint16_t>(k), 1);
  const std::uint64_t event = 300 + 140'000;
  tracker.on_packet(70'300, static_cast<std::uint16_t>(event), 1);
  EXPECT_NE(tracker.events_lost(), 140'000u) << "16 bits cannot tell";
  tracker.on_end_marker(70'301, event + 1);
  EXPECT_EQ(tracker.events_lost(), 140'000u);
  EXPECT_EQ(tracker.events_expected(), 140'301u);
}

TEST(SequenceTracker, AbsurdEndMarkerIsBelievedInItsLowBitsOnly) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 10);
  tracker.on_end_marker(11, 0xffff'ffff'ffff'0000 + 11 * kEvents);
  EXPECT_EQ(packets(tracker), (Books{11, 10, 0, 1}));
  expect_events(tracker, 160, 16);
}

TEST(SequenceTracker, EndMarkerBeforeAnythingElseIsNothing) {
  SequenceTracker tracker;
  tracker.on_end_marker(1000, 16'000);
  EXPECT_EQ(packets(tracker), (Books{0, 0, 0, 0}));
  EXPECT_EQ(send(tracker, 0), Verdict::accept);
}

TEST(SequenceTracker, NextRunAfterAnEndMarkerAddsUp) {
  SequenceTracker tracker;
  for (std::uint32_t run = 0; run < 3; ++run) {
    tracker.on_start_marker(0, 0);
    tracker.on_start_marker(0, 0);
    send_range(tracker, 0, 300);  // shorter than the window: only the end marker tells that 0 is new
    tracker.on_end_marker(301, 301 * kEvents);
    EXPECT_EQ(tracker.restarts(), run);
  }
  EXPECT_EQ(packets(tracker), (Books{903, 900, 0, 3}));
  expect_events(tracker, 900 * 16, 3 * 16);
}

TEST(SequenceTracker, StartMarkerWithoutEndMarkerBeginsARunWithItsFirstPacket) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 5000);
  tracker.on_start_marker(0, 0);
  EXPECT_EQ(tracker.restarts(), 0u) << "it may be a belated repetition";
  EXPECT_EQ(send(tracker, 1), Verdict::accept);
  EXPECT_EQ(tracker.restarts(), 1u);
  EXPECT_EQ(packets(tracker), (Books{5002, 5001, 0, 1}));
  EXPECT_EQ(send(tracker, 0), Verdict::accept_reordered);
  expect_events(tracker, 5002 * 16, 0);
}

TEST(SequenceTracker, BelatedStartMarkerDoesNotRestartARunningRun) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 5000);
  tracker.on_start_marker(0, 0);
  send_range(tracker, 5000, 10'000);
  EXPECT_EQ(send(tracker, 1), Verdict::late) << "the run went on: the marker is forgotten";
  EXPECT_EQ(tracker.restarts(), 0u);
  EXPECT_EQ(packets(tracker), (Books{10'000, 10'000, 0, 0}));
}

TEST(SequenceTracker, PendingRunCanEndWithoutAnyPacket) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 5000);
  tracker.on_start_marker(0, 0);
  tracker.on_end_marker(3000, 3000 * kEvents);
  EXPECT_EQ(packets(tracker), (Books{8000, 5000, 0, 3000}));
  EXPECT_EQ(tracker.restarts(), 1u);
}

TEST(SequenceTracker, StartMarkerAheadBeginsARun) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 10);
  tracker.on_start_marker(100'000, 100'000 * kEvents);
  send_range(tracker, 100'000, 100'010);
  EXPECT_EQ(packets(tracker), (Books{20, 20, 0, 0})) << "no gap between runs";
  expect_events(tracker, 320, 0);
  EXPECT_EQ(tracker.restarts(), 1u);
}

TEST(SequenceTracker, StrayOfThePreviousRunMakesNoGap) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 5000);
  tracker.on_end_marker(5001, 5001 * kEvents);
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 3);
  EXPECT_EQ(send(tracker, 5000), Verdict::late);
  tracker.on_end_marker(5001, 5001 * kEvents);
  send_range(tracker, 3, 10);
  EXPECT_EQ(packets(tracker), (Books{5011, 5010, 0, 1}));
}

TEST(SequenceTracker, RestartWithoutMarkerRecoversAfter64Packets) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 5000);
  for (std::uint32_t k = 0; k < 63; ++k) ASSERT_EQ(send(tracker, k), Verdict::late) << k;
  EXPECT_EQ(tracker.restarts(), 0u);
  EXPECT_EQ(send(tracker, 63), Verdict::accept);
  EXPECT_EQ(tracker.restarts(), 1u);
  EXPECT_EQ(packets(tracker), (Books{5064, 5001, 0, 63})) << "those refused are lost: they were sent and not used";
  expect_events(tracker, 5001 * 16, 63 * 16);
  send_range(tracker, 64, 200);
  EXPECT_EQ(packets(tracker), (Books{5200, 5137, 0, 63}));
}

TEST(SequenceTracker, RestartInsideTheWindowRecoversToo) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 200);
  for (std::uint32_t k = 0; k < 63; ++k) ASSERT_EQ(send(tracker, k), Verdict::duplicate) << k;
  EXPECT_EQ(send(tracker, 63), Verdict::accept);
  EXPECT_EQ(tracker.restarts(), 1u);
}

TEST(SequenceTracker, RestartFromHighNumbersIsNotAGiganticGap) {
  SequenceTracker tracker;
  tracker.on_start_marker(3'000'000'000, 0);
  EXPECT_EQ(tracker.on_packet(3'000'000'000, 0, kEvents), Verdict::accept);
  for (std::uint32_t k = 0; k < 63; ++k) ASSERT_EQ(send(tracker, k), Verdict::late) << k;
  EXPECT_EQ(send(tracker, 63), Verdict::accept);
  EXPECT_EQ(packets(tracker), (Books{65, 2, 0, 63}));
}

TEST(SequenceTracker, ScatteredOldPacketsAreNoRestart) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  send_range(tracker, 0, 5000);
  for (std::uint32_t k = 0; k < 500; ++k) {
    ASSERT_EQ(send(tracker, k), Verdict::late);
    if (k % 50 == 49) {
      ASSERT_EQ(send(tracker, 5000 + k / 50), Verdict::accept) << "the run goes on between them";
    }
  }
  for (int k = 0; k < 500; ++k) ASSERT_EQ(send(tracker, 7), Verdict::late) << "one packet again and again is no run";
  for (std::uint32_t k = 500; k > 0; --k) ASSERT_EQ(send(tracker, k), Verdict::late) << "nor are descending ones";
  EXPECT_EQ(tracker.restarts(), 0u);
}

TEST(SequenceTracker, EventsThatTheSourceLeftOutAreLost) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  tracker.on_packet(0, 0, 16);
  EXPECT_EQ(tracker.on_packet(1, 20, 16), Verdict::accept);
  EXPECT_EQ(packets(tracker), (Books{2, 2, 0, 0}));
  expect_events(tracker, 32, 4);
}

TEST(SequenceTracker, InconsistentEventNumbersKeepTheBooksBalanced) {
  SequenceTracker tracker;
  tracker.on_start_marker(0, 0);
  for (std::uint32_t k = 0; k < 5000; ++k) {
    tracker.on_packet(k + k / 7 - (k % 11 == 0 ? 3 : 0), static_cast<std::uint16_t>(k * 40'503u), k % 256);
    ASSERT_EQ(tracker.events_expected(), tracker.events_accepted() + tracker.events_lost());
    ASSERT_EQ(tracker.packets_expected(),
              tracker.packets_accepted() + tracker.packets_lost_kernel() + tracker.packets_lost_network());
  }
}

}  // namespace
}  // namespace nanet::flow
