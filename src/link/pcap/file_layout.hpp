// SPDX-License-Identifier: Apache-2.0
// A capture file: a header, then a header before each packet. https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap/
#pragma once

#include <cstddef>
#include <cstdint>

namespace nanet::link {

inline constexpr std::uint32_t kPcapMagicNs = 0xA1B23C4D;  // times in nanoseconds
inline constexpr std::size_t kPcapFileHeaderBytes = 24;
inline constexpr std::size_t kPcapRecordHeaderBytes = 16;

}  // namespace nanet::link
