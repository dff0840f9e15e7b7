// SPDX-License-Identifier: Apache-2.0
#include "link/pcap/pcap_reader.hpp"

#include <cstring>

#include "link/pcap/file_layout.hpp"

namespace nanet::link {
namespace {

constexpr std::uint32_t kMagicUs = 0xA1B2C3D4;
constexpr std::uint32_t kMagicNg = 0x0A0D0D0A;
constexpr std::uint32_t kRecordBytesMax = 1u << 28;  // more is no length but damage

// https://www.tcpdump.org/linktypes.html
constexpr std::uint32_t kEthernet = 1;
constexpr std::uint32_t kCooked = 113;
constexpr std::uint32_t kCooked2 = 276;
constexpr bool is_raw(std::uint32_t type) { return type == 101 || type == 12 || type == 14 || type == 228; }

}  // namespace

PcapError PcapReader::open(std::span<const std::byte> file, PcapReader& reader) {
  if (file.size() < kPcapFileHeaderBytes) return PcapError::not_pcap;
  PcapReader fresh;
  fresh.file_ = file;
  std::uint32_t magic = fresh.load(0);
  if (magic == kMagicNg) return PcapError::pcapng;
  if (magic != kMagicUs && magic != kPcapMagicNs) {
    fresh.swapped_ = true;
    magic = fresh.load(0);
  }
  if (magic != kMagicUs && magic != kPcapMagicNs) return PcapError::not_pcap;
  fresh.fraction_ns_ = magic == kMagicUs ? 1000 : 1;
  fresh.link_type_ = fresh.load(20) & 0xFFFFu;  // the upper bits tell of frame check sequences
  const std::uint32_t type = fresh.link_type_;
  if (type != kEthernet && type != kCooked && type != kCooked2 && !is_raw(type)) return PcapError::link_type;
  fresh.rewind();
  reader = fresh;
  return PcapError::none;
}

void PcapReader::rewind() {
  next_ = kPcapFileHeaderBytes;
  stats_ = {};
}

bool PcapReader::next(PcapPacket& packet) {
  for (;;) {
    const std::size_t left = file_.size() - next_;
    if (left < kPcapRecordHeaderBytes) {
      stats_.bytes_damaged = left;
      return false;
    }
    const std::uint32_t bytes = load(next_ + 8);
    if (bytes > kRecordBytesMax || bytes > left - kPcapRecordHeaderBytes) {
      stats_.bytes_damaged = left;
      return false;
    }
    packet.time_ns = std::uint64_t{load(next_)} * 1'000'000'000u + std::uint64_t{load(next_ + 4)} * fraction_ns_;
    const auto frame = file_.subspan(next_ + kPcapRecordHeaderBytes, bytes);
    next_ += kPcapRecordHeaderBytes + bytes;
    ++stats_.records;
    switch (read_ip_udp(find_packet(frame), packet)) {
      case FrameError::none: ++stats_.packets; return true;
      case FrameError::not_udp: ++stats_.skipped_not_udp; break;
      case FrameError::fragment: ++stats_.skipped_fragment; break;
      case FrameError::cut: ++stats_.skipped_cut; break;
    }
  }
}

std::uint32_t PcapReader::load(std::size_t offset) const {
  std::uint32_t word;
  std::memcpy(&word, file_.data() + offset, sizeof word);
  return swapped_ ? __builtin_bswap32(word) : word;
}

std::span<const std::byte> PcapReader::find_packet(std::span<const std::byte> frame) const {
  switch (link_type_) {
    case kEthernet: return link::find_ip(frame);
    case kCooked: return link::find_ip(frame, 14, 16);
    case kCooked2: return link::find_ip(frame, 0, 20);
    default: return frame;  // raw
  }
}

}  // namespace nanet::link
