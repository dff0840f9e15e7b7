// SPDX-License-Identifier: Apache-2.0
#include "link/udp/receive_times.hpp"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <sys/timex.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

std::uint64_t to_ns(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t now_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return to_ns(time);
}

clockid_t clock_of(SenderClock clock) {
  switch (clock) {
    case SenderClock::tai: return CLOCK_TAI;
    case SenderClock::monotonic: return CLOCK_MONOTONIC;
    default: return CLOCK_REALTIME;
  }
}

// What is known of the clocks that are compared.
std::string clock_note(const std::string& link, Timestamps by, SenderClock clock) {
  const std::string of = "link " + link + (by == Timestamps::hardware ? ": sender_to_nic " : ": sender_to_kernel ");
  if (clock == SenderClock::monotonic) {
    return of + "is right for senders on this machine only (their clock counts from its start) use realtime or tai for others";
  }
  timex state{};
  const int status = ::adjtimex(&state);
  const bool synchronised = status >= 0 && status != TIME_ERROR;
  return of + "is off by the errors of two clocks (this one's: at most " + std::to_string(state.maxerror) + " us, " +
         (synchronised ? "" : "not ") + "synchronised) run chronyd, or ptp4l with phc2sys, here and at the senders";
}

// Eight bins for each power of two, so a bin's width is at most an eighth of its lowest value.
std::uint64_t end_of_bin(std::uint64_t value_ns) {
  const int shift = std::max(static_cast<int>(std::bit_width(value_ns)) - 4, 0);
  return (((value_ns >> shift) + 1) << shift) - 1;
}

NicStageTimes stage_of(const std::string& name, const flow::LatencyHistogram& live) {
  const flow::LatencyHistogram all(live);  // a snapshot
  NicStageTimes stage{.name = name, .sample = "message", .bins = {}};
  stage.count = all.count();
  stage.min_cycles = all.min();
  stage.max_cycles = all.max();
  stage.sum_cycles = static_cast<std::uint64_t>(all.mean() * static_cast<double>(all.count()));
  const std::span<const std::uint64_t> counts = all.counts();
  for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
    if (counts[bucket] == 0) continue;
    const std::uint64_t from = flow::LatencyHistogram::value_of_bucket(bucket);
    if (stage.bins.empty() || stage.bins.back().to_cycles < from) stage.bins.push_back({from, end_of_bin(from), 0});
    stage.bins.back().count += counts[bucket];
  }
  return stage;
}

}  // namespace

// The kernel had no stamp yet, or the NIC none for this message: it is 0.
Stamps stamps_of(const msghdr& header) {
  for (const cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr;
       c = CMSG_NXTHDR(const_cast<msghdr*>(&header), const_cast<cmsghdr*>(c))) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING) continue;
    scm_timestamping stamps{};  // software, one that is not used any more, raw hardware
    if (c->cmsg_len < CMSG_LEN(sizeof stamps)) continue;
    std::memcpy(&stamps, CMSG_DATA(c), sizeof stamps);
    return {to_ns(stamps.ts[0]), to_ns(stamps.ts[2])};
  }
  return {};
}

ReceiveTimes::ReceiveTimes(const Socket& socket, const UdpConfig& config, std::vector<std::string>& notes)
    : sent_(config.sent), has_nic_(config.timestamps == Timestamps::hardware) {
  int wanted = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
  if (has_nic_) {
    nic_clock_ = std::make_unique<NicClock>(config, notes);
    read_nic();
    wanted |= SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
  }
  if (!socket.set(SOL_SOCKET, SO_TIMESTAMPING, wanted)) {
    throw SetupError("link " + config.name + " cannot have stamps by the kernel", std::strerror(errno), "set timestamps: off");
  }
  if (sent_) notes.push_back(clock_note(config.name, config.timestamps, sent_->clock));
}

ReceiveTimes::ReceiveTimes(const std::optional<SentConfig>& sent, const std::optional<ClockReading>& nic)
    : sent_(sent), has_nic_(nic.has_value()) {
  if (nic) nic_time_.add(*nic);
}

void ReceiveTimes::read_clocks() {
  constexpr std::uint64_t kNicEveryNs = 1'000'000'000;
  realtime_ns_ = now_ns(CLOCK_REALTIME);
  if (sent_ && sent_->clock != SenderClock::realtime) sender_ahead_ns_ = now_ns(clock_of(sent_->clock)) - realtime_ns_;
  if (nic_clock_ && realtime_ns_ - nic_read_ns_ >= kNicEveryNs) read_nic();
}

void ReceiveTimes::read_nic() {
  nic_read_ns_ = now_ns(CLOCK_REALTIME);
  if (const std::optional<ClockReading> reading = nic_clock_->read()) nic_time_.add(*reading);
}

void ReceiveTimes::record(const msghdr& header, std::span<const std::byte> payload) {
  const auto passed = [](std::uint64_t from_ns, std::uint64_t to_ns) { return to_ns > from_ns ? to_ns - from_ns : 0; };
  const Stamps stamps = stamps_of(header);
  if (stamps.kernel_ns != 0)
    kernel_to_user_ns_.record(passed(stamps.kernel_ns, realtime_ns_));  // 0: a clock was set back in between
  if (!has_nic_) {
    if (sent_ && stamps.kernel_ns != 0) record_sent(stamps.kernel_ns, payload);
    return;
  }
  if (stamps.nic_ns == 0) return;
  const std::uint64_t nic_ns = nic_time_.realtime_ns(stamps.nic_ns);
  if (stamps.kernel_ns != 0)
    nic_to_kernel_ns_.record(passed(nic_ns, stamps.kernel_ns));  // 0: less than the error of the NIC's clock
  if (sent_) record_sent(nic_ns, payload);
}

void ReceiveTimes::record_sent(std::uint64_t stamp_ns, std::span<const std::byte> payload) {
  if (payload.size() < std::size_t{sent_->at} + sent_->bytes) return;
  std::uint64_t sent_ns = 0;
  for (std::uint32_t i = 0; i < sent_->bytes; ++i) {
    const std::uint32_t place = sent_->byte_order == ByteOrder::big ? sent_->bytes - 1 - i : i;
    sent_ns |= std::to_integer<std::uint64_t>(payload[sent_->at + i]) << (8 * place);
  }
  const std::uint64_t passed = stamp_ns + sender_ahead_ns_ - sent_ns;
  const std::int64_t ns = sent_->bytes == 4 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(passed))
                                            : static_cast<std::int64_t>(passed);
  if (ns >= 0) {
    sender_to_stamp_ns_.record(static_cast<std::uint64_t>(ns));
  } else {
    stamp_before_sender_ns_.record(0 - static_cast<std::uint64_t>(ns));
  }
}

NicTimes ReceiveTimes::times() const {
  const std::string clock = has_nic_ ? "CLOCK_REALTIME, to which the NIC's stamps are converted"
                                     : "CLOCK_REALTIME of the kernel's stamps";
  NicTimes times{.clock = clock, .cycle_ns = 1.0, .stages = {}};
  if (sent_) {
    times.stages.push_back(stage_of(has_nic_ ? "sender_to_nic" : "sender_to_kernel", sender_to_stamp_ns_));
    times.stages.push_back(stage_of(has_nic_ ? "nic_before_sender" : "kernel_before_sender", stamp_before_sender_ns_));
  }
  if (has_nic_) times.stages.push_back(stage_of("nic_to_kernel", nic_to_kernel_ns_));
  times.stages.push_back(stage_of("kernel_to_user", kernel_to_user_ns_));
  return times;
}

}  // namespace nanet::link
