// SPDX-License-Identifier: Apache-2.0
// Reads the UDP payloads of a pcap file that lies in memory, one after the other, without a copy.
//
// Files: classic pcap (draft-ietf-opsawg-pcap), micro- or nanoseconds, either byte order. Not pcapng.
// Link types: Ethernet (1), raw IP (101, 12, 14, 228), Linux cooked (113) and cooked v2 (276); any number of VLAN tags.
// Packets: UDP over IPv4 or IPv6, options allowed. Everything else is passed over and counted: other protocols, fragments, packets that the
// capture cut short. Checksums are not looked at.
//
// Thread rules: one thread. No allocation, no exception, no I/O, whatever the bytes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "link/udp_frame.hpp"

namespace nanet::link {

enum class PcapError : std::uint8_t { none, not_pcap, pcapng, link_type };

struct PcapPacket : IpUdpView {
  std::uint64_t time_ns;  // since 1970
};

// Totals since open() or rewind(). records = packets + the skipped ones.
struct PcapStats {
  std::uint64_t records = 0;
  std::uint64_t packets = 0;           // given by next()
  std::uint64_t skipped_not_udp = 0;   // not UDP over IP
  std::uint64_t skipped_fragment = 0;  // a part of a larger IP packet
  std::uint64_t skipped_cut = 0;       // captured in part only, or a length in it is wrong: UDP's is more than IP's leaves
  std::uint64_t bytes_damaged = 0;     // at the end of the file, where no whole record is
};

class PcapReader {
 public:
  // The bytes must outlive the reader. On any error `reader` is unchanged.
  static PcapError open(std::span<const std::byte> file, PcapReader& reader);

  // False at the end of the file.
  bool next(PcapPacket& packet);

  void rewind();

  const PcapStats& stats() const { return stats_; }

 private:
  std::uint32_t load(std::size_t offset) const;
  // The IP packet in a captured frame; empty when there is none.
  std::span<const std::byte> find_packet(std::span<const std::byte> frame) const;

  std::span<const std::byte> file_;
  std::size_t next_ = 0;
  std::uint32_t link_type_ = 0;
  std::uint32_t fraction_ns_ = 1;  // unit of a record's second time word
  bool swapped_ = false;           // the file's byte order is not this machine's
  PcapStats stats_;
};

}  // namespace nanet::link
