// SPDX-License-Identifier: Apache-2.0
// The kernel's stamps of what comes: how many, and that the times between them and other clocks are right.
#include <ctime>

#include "nanet/setup_error.hpp"
#include "sockets.hpp"

namespace nanet::link::test {
namespace {

std::uint64_t now_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

UdpConfig stamping(std::optional<SentConfig> sent = std::nullopt, Coalesce gro = Coalesce::on) {
  UdpConfig config = listening(gro);
  config.timestamps = Timestamps::software;
  config.sent = sent;
  return config;
}

Bytes sent_at(std::uint64_t time, const SentConfig& sent, std::size_t bytes = 100) {
  Bytes data(bytes, std::byte{0x5A});
  for (std::uint32_t i = 0; i < sent.bytes; ++i) {
    const std::uint32_t place = sent.byte_order == ByteOrder::big ? sent.bytes - 1 - i : i;
    data[sent.at + i] = static_cast<std::byte>(time >> (8 * place));
  }
  return data;
}

const NicStageTimes& stage(const NicTimes& times, const std::string& name) {
  for (const NicStageTimes& one : times.stages) {
    if (one.name == name) return one;
  }
  static const NicStageTimes none{};
  ADD_FAILURE() << "no stage " << name;
  return none;
}

// A kernel that stamped nothing before begins a moment after it was asked to: waits for the first stamp. Returns how many there are.
std::uint64_t until_stamped(UdpLink& link, PlainSocket& sender) {
  Collector collector;
  for (int tries = 0; tries < 1000; ++tries) {
    sender.send(link.local().port, Bytes(1));
    collector.collect(link, 1);
    if (const std::uint64_t count = stage(*link.nic_times(), "kernel_to_user").count; count > 0) return count;
    ::usleep(10'000);
  }
  ADD_FAILURE() << "the kernel stamps nothing";
  return 0;
}

class Stamps : public testing::TestWithParam<Coalesce> {};
INSTANTIATE_TEST_SUITE_P(Gro, Stamps, testing::Values(Coalesce::on, Coalesce::off),
                         [](const auto& which) { return which.param == Coalesce::on ? "on" : "off"; });

TEST_P(Stamps, EachMessageHasOne) {
  UdpLink link(stamping({}, GetParam()));
  PlainSocket sender;
  const std::uint64_t before = until_stamped(link, sender);
  const std::uint64_t start_ns = now_ns(CLOCK_MONOTONIC);
  for (std::uint32_t i = 0; i < 100; ++i) sender.send(link.local().port, payload(i, 300));
  EXPECT_EQ(Collector().collect(link, 100).size(), 100u);
  const std::uint64_t took_ns = now_ns(CLOCK_MONOTONIC) - start_ns;
  const NicTimes times = *link.nic_times();
  const NicStageTimes& user = stage(times, "kernel_to_user");
  EXPECT_EQ(user.count, before + 100);
  EXPECT_EQ(times.cycle_ns, 1.0);
  EXPECT_EQ(times.stages.size(), 1u);
  std::uint64_t counted = 0;
  std::uint64_t at_most = 0;
  std::uint64_t last = 0;
  for (const NicTimesBin& bin : user.bins) {
    EXPECT_GE(bin.from_cycles, last);
    EXPECT_GE(bin.to_cycles, bin.from_cycles);
    last = bin.to_cycles;
    counted += bin.count;
    if (bin.from_cycles <= took_ns) at_most += bin.count;
  }
  EXPECT_EQ(counted, user.count);
  EXPECT_GE(at_most, 100u);  // none of the hundred took longer than all of them
}

TEST(StampsOfSuperPackets, ACoalescedMessageHasOne) {
  UdpLink link(stamping());
  PlainSocket sender;
  const std::uint64_t before = until_stamped(link, sender);
  sender.send_super(link.local().port, payload(1, 20 * 500), 500);
  EXPECT_EQ(Collector().collect(link, 20).size(), 20u);
  EXPECT_EQ(stage(*link.nic_times(), "kernel_to_user").count, before + 1);
}

TEST(StampsOff, ThereAreNoTimes) {
  const UdpLink link(listening());
  EXPECT_FALSE(link.nic_times().has_value());
}

class Sent : public testing::TestWithParam<SentConfig> {};
INSTANTIATE_TEST_SUITE_P(Clocks, Sent,
                         testing::Values(SentConfig{.at = 8}, SentConfig{.at = 0, .byte_order = ByteOrder::big},
                                         SentConfig{.at = 3, .bytes = 4, .clock = SenderClock::monotonic},
                                         SentConfig{.at = 90, .bytes = 4, .byte_order = ByteOrder::big, .clock = SenderClock::tai}));

clockid_t clock_of(SenderClock clock) {
  return clock == SenderClock::tai ? CLOCK_TAI : clock == SenderClock::monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

TEST_P(Sent, TheTimeOnTheWayIsBetweenThoseAround) {
  const SentConfig sent = GetParam();
  UdpLink link(stamping(sent));
  PlainSocket sender;
  until_stamped(link, sender);
  constexpr std::uint64_t kEarlierNs = 300'000'000;
  const std::uint64_t start_ns = now_ns(CLOCK_MONOTONIC);
  sender.send(link.local().port, sent_at(now_ns(clock_of(sent.clock)) - kEarlierNs, sent));
  EXPECT_EQ(Collector().collect(link, 1).size(), 1u);
  const std::uint64_t took_ns = now_ns(CLOCK_MONOTONIC) - start_ns;
  const NicTimes times = *link.nic_times();
  const NicStageTimes& way = stage(times, "sender_to_kernel");
  ASSERT_EQ(way.count, 1u);
  constexpr std::uint64_t kReadingNs = 1'000'000;  // the clocks of a kind are read one after the other
  EXPECT_GE(way.max_cycles, kEarlierNs - kReadingNs);
  EXPECT_LE(way.max_cycles, kEarlierNs + took_ns + kReadingNs);
  EXPECT_EQ(stage(times, "kernel_before_sender").count, 0u);
}

TEST_P(Sent, AClockThatIsAheadShows) {
  const SentConfig sent = GetParam();
  UdpLink link(stamping(sent));
  PlainSocket sender;
  until_stamped(link, sender);
  sender.send(link.local().port, sent_at(now_ns(clock_of(sent.clock)) + 1'800'000'000, sent));
  EXPECT_EQ(Collector().collect(link, 1).size(), 1u);
  const NicTimes times = *link.nic_times();
  EXPECT_EQ(stage(times, "sender_to_kernel").count, 0u);
  ASSERT_EQ(stage(times, "kernel_before_sender").count, 1u);
  EXPECT_LE(stage(times, "kernel_before_sender").max_cycles, 1'801'000'000u);
}

TEST_P(Sent, APacketThatEndsBeforeItSaysNothing) {
  const SentConfig sent = GetParam();
  UdpLink link(stamping(sent));
  PlainSocket sender;
  const std::uint64_t before = until_stamped(link, sender);
  sender.send(link.local().port, Bytes(sent.at + sent.bytes - 1));
  EXPECT_EQ(Collector().collect(link, 1).size(), 1u);
  const NicTimes times = *link.nic_times();
  EXPECT_EQ(stage(times, "kernel_to_user").count, before + 1);
  EXPECT_EQ(stage(times, "sender_to_kernel").count + stage(times, "kernel_before_sender").count, 0u);
}

TEST(SentNotes, TheErrorOfTheClocksIsSaid) {
  const UdpLink link(stamping(SentConfig{}));
  const auto notes = link.notes();
  ASSERT_FALSE(notes.empty());
  EXPECT_NE(notes.back().find("is off by the errors of two clocks (this one's: at most "), std::string::npos) << notes.back();
}

TEST(SentSetUp, WithoutStampsIsRefused) {
  UdpConfig config = listening();
  config.sent = SentConfig{};
  try {
    const UdpLink link(config);
    ADD_FAILURE() << "accepted";
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("sent without timestamps"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nanet::link::test
