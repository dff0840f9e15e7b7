// SPDX-License-Identifier: Apache-2.0
// Stamps by a NIC: control messages, readings of clocks and their arithmetic made by hand, and what is refused on interfaces without a clock. The way
// from a real NIC is not run here.
#include "link/udp/nic_clock.hpp"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/udp.h>

#include <array>

#include "dpdk_network.hpp"
#include "link/udp/receive_times.hpp"
#include "nanet/setup_error.hpp"
#include "sockets.hpp"

namespace nanet::link::test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

timespec time_of(std::uint64_t ns) { return {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)}; }
ptp_clock_time clock_time(std::uint64_t ns) {
  ptp_clock_time time{};
  time.sec = static_cast<std::int64_t>(ns / kSecond);
  time.nsec = static_cast<std::uint32_t>(ns % kSecond);
  return time;
}

// A message header with the control data of a coalesced datagram: segment size, then stamps.
class Control {
 public:
  Control(std::uint64_t kernel_ns, std::uint64_t nic_ns, std::size_t stamps = 3) {
    header_.msg_control = bytes_.data();
    header_.msg_controllen = bytes_.size();
    const int segment_bytes = 1168;
    cmsghdr* c = CMSG_FIRSTHDR(&header_);
    put(c, SOL_UDP, UDP_GRO, &segment_bytes, sizeof segment_bytes);
    const timespec three[3] = {time_of(kernel_ns), time_of(77), time_of(nic_ns)};
    c = CMSG_NXTHDR(&header_, c);
    put(c, SOL_SOCKET, SCM_TIMESTAMPING, three, stamps * sizeof(timespec));
    header_.msg_controllen = static_cast<std::size_t>(reinterpret_cast<std::byte*>(c) - bytes_.data()) +
                             CMSG_SPACE(stamps * sizeof(timespec));
  }
  const msghdr& header() const { return header_; }

 private:
  static void put(cmsghdr* c, int level, int type, const void* data, std::size_t bytes) {
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(c), data, bytes);
  }

  alignas(cmsghdr) std::array<std::byte, 256> bytes_{};
  msghdr header_{};
};

TEST(NicStamps, AreTheKernelsAndTheNics) {
  const std::uint64_t kernel_ns = 1'800'000'000 * kSecond + 123'456'789;
  const std::uint64_t nic_ns = 1'800'000'037 * kSecond + 5;  // TAI, as ptp4l sets it
  const Stamps both = stamps_of(Control(kernel_ns, nic_ns).header());
  EXPECT_EQ(both.kernel_ns, kernel_ns);
  EXPECT_EQ(both.nic_ns, nic_ns);
  EXPECT_EQ(stamps_of(Control(kernel_ns, 0).header()).nic_ns, 0u);
  EXPECT_EQ(stamps_of(Control(kernel_ns, nic_ns, 1).header()).kernel_ns, 0u);  // cut
  const msghdr nothing{};
  EXPECT_EQ(stamps_of(nothing).kernel_ns, 0u);
}

const NicStageTimes& stage(const NicTimes& times, const std::string& name) {
  for (const NicStageTimes& one : times.stages) {
    if (one.name == name) return one;
  }
  static const NicStageTimes none{};
  ADD_FAILURE() << "no stage " << name;
  return none;
}

// The NIC's clock is 37 s ahead, the packet says when it was sent, 1 ms before it came to the NIC, and 20 us later it was with the kernel.
TEST(NicStamps, TimesAreThoseBetweenThem) {
  const std::uint64_t sent_ns = 1'800'000'000 * kSecond;
  const std::uint64_t at_nic_ns = sent_ns + 1'000'000;
  const std::uint64_t ahead_ns = 37 * kSecond;
  ReceiveTimes times(SentConfig{.at = 0, .bytes = 8}, ClockReading{sent_ns + ahead_ns, sent_ns, 100});
  times.read_clocks();
  Bytes data(16);
  std::memcpy(data.data(), &sent_ns, sizeof sent_ns);
  times.record(Control(at_nic_ns + 20'000, at_nic_ns + ahead_ns).header(), data);
  times.record(Control(at_nic_ns + 30'000, 0).header(), data);                 // not stamped by the NIC: in the kernel's stage only
  times.record(Control(at_nic_ns - 10, at_nic_ns + ahead_ns).header(), data);  // within the clock's error
  const NicTimes all = times.times();
  EXPECT_NE(all.clock.find("NIC"), std::string::npos);
  EXPECT_EQ(stage(all, "nic_to_kernel").count, 2u);
  EXPECT_EQ(stage(all, "nic_to_kernel").max_cycles, 20'000u);
  EXPECT_EQ(stage(all, "nic_to_kernel").min_cycles, 0u);
  EXPECT_EQ(stage(all, "sender_to_nic").count, 2u);
  EXPECT_EQ(stage(all, "sender_to_nic").max_cycles, 1'000'000u);
  EXPECT_EQ(stage(all, "nic_before_sender").count, 0u);
  EXPECT_EQ(stage(all, "kernel_to_user").count, 3u);
}

TEST(NicClockReadings, TheShortestCounts) {
  ptp_sys_offset_extended close{};
  close.n_samples = 3;
  const std::uint64_t starts[] = {1000, 9000, 20'000}, lengths[] = {900, 101, 400};
  for (unsigned i = 0; i < 3; ++i) {
    close.ts[i][0] = clock_time(5 * kSecond + starts[i]);
    close.ts[i][1] = clock_time(7 * kSecond + i);
    close.ts[i][2] = clock_time(5 * kSecond + starts[i] + lengths[i]);
  }
  auto reading = best_of(close);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->nic_ns, 7 * kSecond + 1);
  EXPECT_EQ(reading->realtime_ns, 5 * kSecond + 9050);
  EXPECT_EQ(reading->error_ns, 51u);
  close.ts[1][2] = clock_time(5 * kSecond + 8000);  // the clock was set back
  reading = best_of(close);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->nic_ns, 7 * kSecond + 2);
  close.n_samples = 0;
  EXPECT_FALSE(best_of(close));

  ptp_sys_offset wide{};
  wide.n_samples = 2;
  const std::uint64_t turns[] = {1000, 70, 1600, 71, 1800};  // system, NIC, system, NIC, system
  for (unsigned i = 0; i < 5; ++i) wide.ts[i] = clock_time(turns[i]);
  reading = best_of(wide);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->nic_ns, 71u);
  EXPECT_EQ(reading->realtime_ns, 1700u);
  EXPECT_EQ(reading->error_ns, 100u);
}

// A clock that runs 50 ppm too fast, and one that was set: after that only its last reading counts.
TEST(NicClockReadings, TheRateBetweenTwoIsTakenOn) {
  const std::uint64_t begin_ns = 1'800'000'000 * kSecond;
  NicToRealtime time;
  time.add({100 * kSecond, begin_ns, 0});
  EXPECT_EQ(time.realtime_ns(100 * kSecond + 500), begin_ns + 500);
  EXPECT_EQ(time.realtime_ns(100 * kSecond - 500), begin_ns - 500);
  time.add({101 * kSecond + 50'000, begin_ns + kSecond, 0});
  const std::uint64_t later = time.realtime_ns(102 * kSecond + 100'000);
  EXPECT_NEAR(static_cast<double>(static_cast<std::int64_t>(later - (begin_ns + 2 * kSecond))), 0.0, 10.0);
  time.add({500 * kSecond, begin_ns + 2 * kSecond, 0});
  EXPECT_EQ(time.realtime_ns(501 * kSecond), begin_ns + 3 * kSecond);
}

std::string problem_of(std::uint32_t address, const std::string& interface) {
  UdpConfig config = listening();
  config.listen->address = address;
  config.interface = interface;
  config.timestamps = Timestamps::hardware;
  try {
    const UdpLink link(config);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

void expect_refused(const std::string& problem, const std::string& why) {
  EXPECT_NE(problem.find("cannot have stamps by the NIC (" + why), std::string::npos) << problem;
  EXPECT_NE(problem.find(") "), std::string::npos) << problem;
}

TEST(NicClockSetUp, AnInterfaceWithoutAClockIsRefused) {
  expect_refused(problem_of(0x7F000001, ""), "interface lo has no clock that stamps packets");
  expect_refused(problem_of(0x7F000001, "lo"), "interface lo has no clock that stamps packets");
  expect_refused(problem_of(0, ""), "no interface has the address of udp://0.0.0.0:0");
  expect_refused(problem_of(0, "nanet-none"), "interface nanet-none: No such device");
  in_own_network([] { expect_refused(problem_of(kFar, ""), "interface far has no clock that stamps packets"); });
}

}  // namespace
}  // namespace nanet::link::test
