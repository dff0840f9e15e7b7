// SPDX-License-Identifier: Apache-2.0
// ChannelMonitor: counts the hits of every channel and leaves out those of masked ones, before any finder sees them. Channels are masked by the
// configuration, or when they turn out to be hot (rich/channels.hpp).
//
// It looks for hot channels when a period ends: the first has 32 events, each further one twice as many as the one before, at most 65,536. Only what came
// in the period counts, so a channel that becomes hot late is found as soon. What was masked stays so until the end of the run.
//
// Thread rules: one thread calls admit and take; any thread may read. Nothing is allocated after the constructor.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "nanet/na62/config.hpp"
#include "nanet/rich/channels.hpp"
#include "nanet/rich/ring.hpp"

namespace nanet::na62 {

// A channel that was masked during the run.
struct MaskedChannel {
  std::uint16_t channel = 0;
  std::uint64_t at_ns = 0;   // as now_ns of admit
  std::uint64_t events = 0;  // that had come by then
};

class ChannelMonitor {
 public:
  static constexpr std::size_t kBatchMax = 256;                    // events of an admit
  static constexpr std::uint32_t kFoundMax = rich::kPmCount / 20;  // more than these: not hot channels but something else
  static constexpr std::uint64_t kFirstPeriod = 32;
  static constexpr std::uint64_t kLongestPeriod = 65'536;

  explicit ChannelMonitor(const rich::ChannelSet& mask = {}, HotChannels hot = HotChannels::keep);

  // The events without hits of masked channels; valid until the next call. At most kBatchMax.
  std::span<const event::Event> admit(std::span<const event::Event> events, std::uint64_t now_ns);

  // Adds what someone else has counted.
  void take(std::span<const std::uint64_t, rich::kChannelCount> hits);

  // Hits left out by the last admit.
  std::uint64_t masked_hits() const { return masked_hits_; }

  // A snapshot: hits of every channel, of masked ones too.
  std::array<std::uint64_t, rich::kChannelCount> hits() const;
  // Channels masked by the configuration.
  const rich::ChannelSet& configured() const { return configured_; }
  // Channels masked since, in order of time.
  std::span<const MaskedChannel> found() const { return std::span(found_).first(found_count_.load(std::memory_order_acquire)); }

 private:
  void count(std::span<const event::Event> events);
  void look(std::uint64_t now_ns);
  std::span<const event::Event> leave_out(std::span<const event::Event> events);

  const rich::ChannelSet configured_;
  const HotChannels hot_;
  rich::ChannelSet mask_;
  bool masks_ = false;  // mask_ is not empty
  std::uint64_t masked_hits_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t period_ = kFirstPeriod;
  std::uint64_t period_end_ = kFirstPeriod;
  mutable std::array<std::uint64_t, rich::kChannelCount> hits_{};  // touched through relaxed atomics, which take no const
  std::array<std::uint64_t, rich::kChannelCount> hits_before_{};   // the period
  std::array<MaskedChannel, kFoundMax> found_{};
  std::atomic<std::uint32_t> found_count_{0};
  std::array<event::Event, kBatchMax> batch_{};
  std::vector<std::uint16_t> room_;  // for kBatchMax events of kMaxHits
};

}  // namespace nanet::na62
