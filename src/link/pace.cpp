// SPDX-License-Identifier: Apache-2.0
#include "link/pace.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::link {

Pace::Pace(ReplayPace pace, double rate) : pace_(pace), rate_(rate) {
  const bool by_rate = pace == ReplayPace::packets || pace == ReplayPace::events;
  if (by_rate && !(rate > 0 && rate <= 1e9)) {
    throw SetupError("cannot replay at a rate of " + std::to_string(rate), "it must be above 0 and at most 1e9 a second",
                     "choose such a rate, or the original or the maximum pace");
  }
}

void Pace::start(std::uint64_t now_ns) {
  start_ns_ = now_ns;
  lap_start_ns_ = now_ns;
  last_due_ns_ = now_ns;
  lap_packets_ = 0;
  packets_due_ = 0;
  events_due_ = 0;
}

std::uint64_t Pace::due_ns(std::uint64_t time_ns, std::uint32_t event_count) {
  if (lap_packets_++ == 0) lap_first_ns_ = time_ns;
  switch (pace_) {
    case ReplayPace::original: {
      const std::uint64_t since_ns = time_ns > lap_first_ns_ ? time_ns - lap_first_ns_ : 0;
      last_due_ns_ = std::max(last_due_ns_, lap_start_ns_ + since_ns);
      return last_due_ns_;
    }
    case ReplayPace::packets: return after(packets_due_++);
    case ReplayPace::events: {
      const std::uint64_t due = after(events_due_);
      events_due_ += event_count;
      return due;
    }
    case ReplayPace::maximum: break;
  }
  return 0;
}

void Pace::next_lap() {
  if (lap_packets_ > 1) last_due_ns_ += (last_due_ns_ - lap_start_ns_) / (lap_packets_ - 1);
  lap_start_ns_ = last_due_ns_;
  lap_packets_ = 0;
}

std::uint64_t Pace::after(std::uint64_t count) const {
  return start_ns_ + static_cast<std::uint64_t>(std::llround(1e9 * static_cast<double>(count) / rate_));
}

}  // namespace nanet::link
