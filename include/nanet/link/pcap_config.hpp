// SPDX-License-Identifier: Apache-2.0
// What can be configured of a link that plays a recording, and at which pace one is played.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "nanet/config/setting.hpp"

namespace nanet::link {

enum class ReplayPace : std::uint8_t {
  original,  // the gaps of the recording
  packets,   // rate packets a second
  events,    // rate events a second
  maximum,   // no gaps
};

// Those that a link can play at.
constexpr auto choices(ReplayPace) {
  return std::array{config::Choice{"original", ReplayPace::original}, config::Choice{"packets", ReplayPace::packets},
                    config::Choice{"maximum", ReplayPace::maximum}};
}

struct PcapLinkConfig {
  static constexpr config::Component component{"Pcap", "How a recording is played."};

  // Name of the link in messages and reports.
  std::string name = "pcap";

  // Of the file. See pcap_reader.hpp for what it may be.
  std::string path;

  // Play packets to this UDP port only, the others are counted as skipped_port; 0: all.
  std::uint16_t port = 0;

  // Not events: a link does not know what is in its packets. packets_per_s: with pace packets, and only then.
  ReplayPace pace = ReplayPace::original;
  double packets_per_s = 0;

  // Bytes, 1..65507: longest UDP payload expected. Longer ones are cut to it and flagged as truncated.
  std::uint32_t packet_bytes_max = 1472;

  template <class Visit>
  void visit(Visit&& v) {
    v("port", port, {.help = "Play packets to this UDP port only; null: all", .least = 1, .most = 65535, .nullable = true});
    v("pace",
      pace, {.help = "original: the gaps of the recording; packets: packets_per_s; maximum: as fast as the engine takes them, with no loss"});
    v("packets_per_s", packets_per_s,
      {.help = "Rate, with pace packets", .unit = "packets/s", .most = 1e9, .above = 0, .nullable = true});
  }

  // A rate with pace packets, and only then.
  std::optional<config::Problem> check() const;
};

}  // namespace nanet::link
