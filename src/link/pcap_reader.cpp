// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/pcap_reader.hpp"

#include <cstring>

namespace nanet::link {
namespace {

constexpr std::size_t kFileHeaderBytes = 24;
constexpr std::size_t kRecordHeaderBytes = 16;
constexpr std::uint32_t kMagicUs = 0xA1B2C3D4;
constexpr std::uint32_t kMagicNs = 0xA1B23C4D;
constexpr std::uint32_t kMagicNg = 0x0A0D0D0A;
constexpr std::uint32_t kRecordBytesMax = 1u << 28;  // more is no length but damage

// https://www.tcpdump.org/linktypes.html
constexpr std::uint32_t kEthernet = 1;
constexpr std::uint32_t kCooked = 113;
constexpr std::uint32_t kCooked2 = 276;
constexpr bool is_raw(std::uint32_t type) { return type == 101 || type == 12 || type == 14 || type == 228; }

constexpr std::uint32_t kTypeIp = 0x0800;
constexpr bool is_vlan(std::uint32_t type) { return type == 0x8100 || type == 0x88A8 || type == 0x9100; }
constexpr std::uint32_t kUdp = 17;

std::uint32_t be16(std::span<const std::byte> from, std::size_t offset) {
  return std::to_integer<std::uint32_t>(from[offset]) << 8 | std::to_integer<std::uint32_t>(from[offset + 1]);
}
std::uint32_t be32(std::span<const std::byte> from, std::size_t offset) {
  return be16(from, offset) << 16 | be16(from, offset + 2);
}

}  // namespace

PcapError PcapReader::open(std::span<const std::byte> file, PcapReader& reader) {
  if (file.size() < kFileHeaderBytes) return PcapError::not_pcap;
  PcapReader fresh;
  fresh.file_ = file;
  std::uint32_t magic = fresh.load(0);
  if (magic == kMagicNg) return PcapError::pcapng;
  if (magic != kMagicUs && magic != kMagicNs) {
    fresh.swapped_ = true;
    magic = fresh.load(0);
  }
  if (magic != kMagicUs && magic != kMagicNs) return PcapError::not_pcap;
  fresh.fraction_ns_ = magic == kMagicUs ? 1000 : 1;
  fresh.link_type_ = fresh.load(20) & 0xFFFFu;  // the upper bits tell of frame check sequences
  const std::uint32_t type = fresh.link_type_;
  if (type != kEthernet && type != kCooked && type != kCooked2 && !is_raw(type)) return PcapError::link_type;
  fresh.rewind();
  reader = fresh;
  return PcapError::none;
}

void PcapReader::rewind() {
  next_ = kFileHeaderBytes;
  stats_ = {};
}

bool PcapReader::next(PcapPacket& packet) {
  for (;;) {
    const std::size_t left = file_.size() - next_;
    if (left < kRecordHeaderBytes) {
      stats_.bytes_damaged = left;
      return false;
    }
    const std::uint32_t bytes = load(next_ + 8);
    if (bytes > kRecordBytesMax || bytes > left - kRecordHeaderBytes) {
      stats_.bytes_damaged = left;
      return false;
    }
    packet.time_ns = std::uint64_t{load(next_)} * 1'000'000'000u + std::uint64_t{load(next_ + 4)} * fraction_ns_;
    const auto frame = file_.subspan(next_ + kRecordHeaderBytes, bytes);
    next_ += kRecordHeaderBytes + bytes;
    ++stats_.records;
    const auto ip = find_ip(frame);
    if (ip.empty()) {
      ++stats_.skipped_not_udp;
    } else if (find_udp(ip, packet)) {
      ++stats_.packets;
      return true;
    }
  }
}

std::uint32_t PcapReader::load(std::size_t offset) const {
  std::uint32_t word;
  std::memcpy(&word, file_.data() + offset, sizeof word);
  return swapped_ ? __builtin_bswap32(word) : word;
}

std::span<const std::byte> PcapReader::find_ip(std::span<const std::byte> frame) const {
  if (is_raw(link_type_)) return frame;
  const std::size_t type_offset = link_type_ == kEthernet ? 12 : link_type_ == kCooked ? 14 : 0;
  std::size_t header_bytes = link_type_ == kEthernet ? 14 : link_type_ == kCooked ? 16 : 20;
  if (frame.size() < header_bytes) return {};
  std::uint32_t type = be16(frame, type_offset);
  while (is_vlan(type)) {  // a tag: two bytes of its own, then the next type
    if (frame.size() < header_bytes + 4) return {};
    type = be16(frame, header_bytes + 2);
    header_bytes += 4;
  }
  return type == kTypeIp ? frame.subspan(header_bytes) : std::span<const std::byte>{};
}

bool PcapReader::find_udp(std::span<const std::byte> ip, PcapPacket& packet) {
  const auto skip = [](std::uint64_t& reason) {
    ++reason;
    return false;
  };
  const std::uint32_t first = std::to_integer<std::uint32_t>(ip[0]);
  if (first >> 4 != 4) return skip(stats_.skipped_not_udp);
  const std::size_t ip_header_bytes = 4 * (first & 0xFu);
  if (ip_header_bytes < 20 || ip.size() < ip_header_bytes) return skip(stats_.skipped_cut);
  if (std::to_integer<std::uint32_t>(ip[9]) != kUdp) return skip(stats_.skipped_not_udp);
  if ((be16(ip, 6) & 0x3FFFu) != 0) return skip(stats_.skipped_fragment);
  const std::span<const std::byte> udp = ip.subspan(ip_header_bytes);
  if (udp.size() < 8) return skip(stats_.skipped_cut);
  // The IP length is not looked at: captures of offloaded packets leave it 0. The UDP length says what there is.
  const std::size_t udp_bytes = be16(udp, 4);
  if (udp_bytes < 8 || udp.size() < udp_bytes) return skip(stats_.skipped_cut);
  packet.payload = udp.subspan(8, udp_bytes - 8);
  packet.from_address = be32(ip, 12);
  packet.to_address = be32(ip, 16);
  packet.from_port = static_cast<std::uint16_t>(be16(udp, 0));
  packet.to_port = static_cast<std::uint16_t>(be16(udp, 2));
  return true;
}

}  // namespace nanet::link
