// SPDX-License-Identifier: Apache-2.0
// Why a packet was refused. The values match the packets_bad_* counters; order is the order of the checks.
#pragma once

#include <cstdint>

namespace nanet::wire {

enum class ParseError : std::uint8_t {
  none = 0,
  bad_length = 1,    // size or address does not fit the format
  bad_format = 2,    // unknown format, flag, count or source in the header
  bad_checksum = 3,  // everything else is right
};

}  // namespace nanet::wire
