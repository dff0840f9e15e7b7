// SPDX-License-Identifier: Apache-2.0
#include "ndp.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "frame.hpp"

namespace nanet::link::dpdk {
namespace {

constexpr std::size_t kIpAt = kEthernetHeaderBytes;
constexpr std::size_t kSourceAt = kIpAt + 8, kDestinationAt = kIpAt + 24;
constexpr std::size_t kIcmpAt = kIpAt + 40;
constexpr std::size_t kChecksumAt = kIcmpAt + 2, kFlagsAt = kIcmpAt + 4, kTargetAt = kIcmpAt + 8, kOptionsAt = kIcmpAt + 24;
constexpr std::uint32_t kIcmpv6 = 58, kEchoRequest = 128, kEchoReply = 129;
constexpr std::byte kSolicited{0x40}, kOverride{0x20};
constexpr std::uint32_t kSourceMac = 1, kTargetMac = 2;  // options
constexpr std::byte kHopLimit{255};                      // no router has let it through
constexpr IpAddress kAny = IpAddress::ipv6({});
constexpr IpAddress kAllNodes = IpAddress::ipv6({0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});

void put16(std::byte* out, std::uint32_t value) {
  out[0] = static_cast<std::byte>(value >> 8);
  out[1] = static_cast<std::byte>(value);
}

IpAddress address_at(std::span<const std::byte> frame, std::size_t offset) {
  IpAddress::Bytes bytes;
  std::memcpy(bytes.data(), frame.data() + offset, bytes.size());
  return IpAddress::ipv6(bytes);
}

// The IPv6 packet, if it is ICMPv6 of at least so many bytes right behind the header, with a right checksum, of no group (RFC 4443, 2.2: what answers
// one would be told to many); else empty.
std::span<const std::byte> icmpv6_in(std::span<const std::byte> frame, std::size_t icmp_bytes_min) {
  if (frame.size() < kIcmpAt + icmp_bytes_min || number_at(frame, 12, 2) != 0x86DD || number_at(frame, kIpAt, 1) >> 4 != 6)
    return {};
  const std::size_t icmp_bytes = number_at(frame, kIpAt + 4, 2);
  if (icmp_bytes < icmp_bytes_min || icmp_bytes > frame.size() - kIcmpAt || number_at(frame, kIpAt + 6, 1) != kIcmpv6) return {};
  if (address_at(frame, kSourceAt).is_multicast()) return {};
  const std::span<const std::byte> packet = frame.subspan(kIpAt, 40 + icmp_bytes);
  return ipv6_checksum(packet) == 0 ? packet : std::span<const std::byte>{};
}

// False: an option that says no length, or one longer than the rest. mac: the last of that type.
bool read_options(std::span<const std::byte> options, std::uint32_t type, std::optional<MacAddress>& mac) {
  while (!options.empty()) {
    if (options.size() < 8) return false;
    const std::size_t bytes = 8 * std::size_t{number_at(options, 1, 1)};
    if (bytes == 0 || bytes > options.size()) return false;
    if (number_at(options, 0, 1) == type && bytes == 8) std::memcpy(mac.emplace().data(), options.data() + 2, 6);
    options = options.subspan(bytes);
  }
  return true;
}

void write_ndp(std::byte* out, NdpKind kind, const MacAddress& own_mac, const IpAddress& own, const IpAddress& to,
               const MacAddress& to_mac, const IpAddress& target) {
  std::fill_n(out, kNdpFrameBytes, std::byte{0});
  write_ethernet_header(out, own_mac, to_mac, true);
  out[kIpAt] = std::byte{0x60};
  put16(out + kIpAt + 4, kNdpFrameBytes - kIcmpAt);
  out[kIpAt + 6] = std::byte{kIcmpv6};
  out[kIpAt + 7] = kHopLimit;
  std::memcpy(out + kSourceAt, own.bytes().data(), 16);
  std::memcpy(out + kDestinationAt, to.bytes().data(), 16);
  out[kIcmpAt] = static_cast<std::byte>(kind);
  if (kind == NdpKind::advertisement) out[kFlagsAt] = to == kAllNodes ? kOverride : kSolicited | kOverride;
  std::memcpy(out + kTargetAt, target.bytes().data(), 16);
  out[kOptionsAt] = static_cast<std::byte>(kind == NdpKind::solicitation ? kSourceMac : kTargetMac);
  out[kOptionsAt + 1] = std::byte{1};
  std::memcpy(out + kOptionsAt + 2, own_mac.data(), own_mac.size());
  put16(out + kChecksumAt, ipv6_checksum({out + kIpAt, kNdpFrameBytes - kIpAt}));
}

}  // namespace

bool read_ndp(std::span<const std::byte> frame, Ndp& ndp) {
  const std::span<const std::byte> packet = icmpv6_in(frame, 24);
  if (packet.empty() || frame[kIpAt + 7] != kHopLimit || frame[kIcmpAt + 1] != std::byte{0}) return false;
  Ndp found{.kind = static_cast<NdpKind>(frame[kIcmpAt]),
            .from_address = address_at(frame, kSourceAt),
            .target = address_at(frame, kTargetAt),
            .mac = std::nullopt,
            .frame_mac = {}};
  std::memcpy(found.frame_mac.data(), frame.data() + 6, found.frame_mac.size());
  const bool asks = found.kind == NdpKind::solicitation;
  if ((!asks && found.kind != NdpKind::advertisement) || found.target.is_multicast()) return false;
  const std::span<const std::byte> options = packet.subspan(kOptionsAt - kIpAt);
  if (!read_options(options, asks ? kSourceMac : kTargetMac, found.mac)) return false;
  const IpAddress to = address_at(frame, kDestinationAt);
  const bool is_nobody = found.from_address == kAny;
  if (asks && is_nobody && (found.mac || to != solicited_node(found.target))) return false;
  if (!asks && to.is_multicast() && (frame[kFlagsAt] & kSolicited) != std::byte{0}) return false;
  ndp = found;
  return true;
}

void write_solicitation(std::byte* out, const MacAddress& own_mac, const IpAddress& own, const IpAddress& target) {
  const IpAddress group = solicited_node(target);
  write_ndp(out, NdpKind::solicitation, own_mac, own, group, multicast_mac(group), target);
}

void write_advertisement(std::byte* out, const MacAddress& own_mac, const IpAddress& own, const IpAddress& to,
                         const MacAddress& to_mac) {
  const bool to_all = to == kAny;
  write_ndp(out, NdpKind::advertisement, own_mac, own, to_all ? kAllNodes : to, to_all ? multicast_mac(kAllNodes) : to_mac, own);
}

IpAddress solicited_node(const IpAddress& address) {
  IpAddress::Bytes group{0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, 0, 0, 0};  // RFC 4291, 2.7.1
  std::copy(address.bytes().begin() + 13, address.bytes().end(), group.begin() + 13);
  return IpAddress::ipv6(group);
}

bool is_echo_request(std::span<const std::byte> frame, const IpAddress& address) {
  return !icmpv6_in(frame, 8).empty() && number_at(frame, kIcmpAt, 2) == kEchoRequest << 8 &&
         address_at(frame, kDestinationAt) == address;
}

void answer_ipv6_echo(std::span<std::byte> frame) {
  std::swap_ranges(frame.begin(), frame.begin() + 6, frame.begin() + 6);
  std::swap_ranges(frame.begin() + kSourceAt, frame.begin() + kSourceAt + 16, frame.begin() + kDestinationAt);
  frame[kIcmpAt] = std::byte{kEchoReply};
  put16(frame.data() + kChecksumAt, 0);
  put16(frame.data() + kChecksumAt, ipv6_checksum(frame.subspan(kIpAt)));
}

}  // namespace nanet::link::dpdk
