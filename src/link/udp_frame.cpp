// SPDX-License-Identifier: Apache-2.0
// RFC 791 (IPv4), RFC 8200 (IPv6), RFC 768 (UDP), RFC 1071 (checksum), IEEE 802.1Q (tags).
#include "link/udp_frame.hpp"

#include <cstring>

namespace nanet::link {
namespace {

constexpr std::uint32_t kTypeIp = 0x0800;
constexpr std::uint32_t kTypeIpv6 = 0x86DD;
constexpr bool is_vlan(std::uint32_t type) { return type == 0x8100 || type == 0x88A8 || type == 0x9100; }
constexpr std::uint32_t kUdp = 17;

std::uint32_t be16(std::span<const std::byte> from, std::size_t offset) {
  return std::to_integer<std::uint32_t>(from[offset]) << 8 | std::to_integer<std::uint32_t>(from[offset + 1]);
}
std::uint32_t be32(std::span<const std::byte> from, std::size_t offset) {
  return be16(from, offset) << 16 | be16(from, offset + 2);
}

void put_be(std::byte* out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<std::byte>(value >> (8 * (bytes - 1 - i)));
  }
}

// Ones' complement sum of big-endian 16-bit words, not yet folded. Plain: what has to be fast uses UdpTemplate, which is tested against this.
std::uint64_t add_words(std::uint64_t sum, const std::byte* data, std::size_t bytes) {
  for (std::size_t i = 0; i + 1 < bytes; i += 2) {
    sum += (std::to_integer<std::uint64_t>(data[i]) << 8) | std::to_integer<std::uint64_t>(data[i + 1]);
  }
  return bytes % 2 == 0 ? sum : sum + (std::to_integer<std::uint64_t>(data[bytes - 1]) << 8);
}

// What follows the header and its tags; `type` is its type.
std::span<const std::byte> after_tags(std::span<const std::byte> frame, std::size_t type_offset, std::size_t header_bytes,
                                      std::uint32_t& type) {
  if (frame.size() < header_bytes) return {};
  type = be16(frame, type_offset);
  while (is_vlan(type)) {  // a tag: two bytes of its own, then the next type
    if (frame.size() < header_bytes + 4) return {};
    type = be16(frame, header_bytes + 2);
    header_bytes += 4;
  }
  return frame.subspan(header_bytes);
}

constexpr std::uint32_t version_of(std::span<const std::byte> packet) { return std::to_integer<std::uint32_t>(packet[0]) >> 4; }

IpAddress ipv6_at(std::span<const std::byte> from, std::size_t offset) {
  IpAddress::Bytes bytes;
  std::memcpy(bytes.data(), from.data() + offset, bytes.size());
  return IpAddress::ipv6(bytes);
}

}  // namespace

std::span<const std::byte> find_ipv4(std::span<const std::byte> frame, std::size_t type_offset, std::size_t header_bytes) {
  std::uint32_t type = 0;
  const std::span<const std::byte> packet = after_tags(frame, type_offset, header_bytes, type);
  return type == kTypeIp ? packet : std::span<const std::byte>{};
}

std::span<const std::byte> find_ip(std::span<const std::byte> frame, std::size_t type_offset, std::size_t header_bytes) {
  std::uint32_t type = 0;
  const std::span<const std::byte> packet = after_tags(frame, type_offset, header_bytes, type);
  if (packet.empty()) return {};
  const bool is_ip = (type == kTypeIp && version_of(packet) != 6) || (type == kTypeIpv6 && version_of(packet) == 6);
  return is_ip ? packet : std::span<const std::byte>{};
}

FrameError read_ip_udp(std::span<const std::byte> packet, IpUdpView& view) {
  if (packet.empty() || version_of(packet) != 6) {
    UdpView ipv4;
    const FrameError error = read_ipv4_udp(packet, ipv4);
    if (error == FrameError::none) {
      view = {{ipv4.flow.from_address, ipv4.flow.to_address, ipv4.flow.from_port, ipv4.flow.to_port}, ipv4.payload};
    }
    return error;
  }
  IpUdpPlace place;
  const FrameError error = locate_ipv6_udp(packet, packet.size(), place);
  if (error == FrameError::none) view = {place.flow, packet.subspan(place.payload_offset, place.payload_bytes)};
  return error;
}

FrameError locate_ipv6_udp(std::span<const std::byte> head, std::size_t packet_bytes, IpUdpPlace& place) {
  constexpr std::uint32_t kHopByHop = 0, kRouting = 43, kFragment = 44, kDestination = 60;
  constexpr std::size_t kHeaderBytes = 40;
  if (head.empty() || version_of(head) != 6) return FrameError::not_udp;
  if (head.size() < kHeaderBytes || packet_bytes < kHeaderBytes) return FrameError::cut;
  const std::size_t said_bytes = be16(head, 4);
  const std::size_t end = said_bytes != 0 ? kHeaderBytes + said_bytes : packet_bytes;  // 0: as with IPv4, a captured offloaded packet
  if (end > packet_bytes) return FrameError::cut;
  std::size_t at = kHeaderBytes;
  const auto has = [&](std::size_t bytes) { return at + bytes <= end && at + bytes <= head.size(); };
  std::uint32_t type = std::to_integer<std::uint32_t>(head[6]);
  while (type == kHopByHop || type == kRouting || type == kDestination) {
    if (!has(8)) return FrameError::cut;
    const std::size_t header_bytes = 8 * (1 + std::to_integer<std::size_t>(head[at + 1]));
    if (!has(header_bytes)) return FrameError::cut;
    type = std::to_integer<std::uint32_t>(head[at]);
    at += header_bytes;
  }
  if (type == kFragment) return FrameError::fragment;
  if (type != kUdp) return FrameError::not_udp;
  if (!has(8)) return FrameError::cut;
  const std::size_t udp_bytes = be16(head, at + 4);
  if (udp_bytes < 8 || udp_bytes > end - at) return FrameError::cut;
  place = {{ipv6_at(head, 8), ipv6_at(head, 24), static_cast<std::uint16_t>(be16(head, at)),
            static_cast<std::uint16_t>(be16(head, at + 2))},
           at + 8,
           udp_bytes - 8};
  return FrameError::none;
}

FrameError read_ipv4_udp(std::span<const std::byte> packet, UdpView& view) {
  UdpPlace place;
  const FrameError error = locate_ipv4_udp(packet, packet.size(), place);
  if (error == FrameError::none) view = {place.flow, packet.subspan(place.payload_offset, place.payload_bytes)};
  return error;
}

FrameError locate_ipv4_udp(std::span<const std::byte> head, std::size_t packet_bytes, UdpPlace& place) {
  if (head.empty()) return FrameError::not_udp;
  const std::uint32_t first = std::to_integer<std::uint32_t>(head[0]);
  if (first >> 4 != 4) return FrameError::not_udp;
  const std::size_t header_bytes = 4 * (first & 0xFu);
  if (header_bytes < 20 || head.size() < header_bytes) return FrameError::cut;
  if (std::to_integer<std::uint32_t>(head[9]) != kUdp) return FrameError::not_udp;
  if ((be16(head, 6) & 0x3FFFu) != 0) return FrameError::fragment;
  const std::span<const std::byte> udp = head.subspan(header_bytes);
  if (udp.size() < 8) return FrameError::cut;
  // As a socket takes it: the UDP length says what there is, and must lie inside of what the IP length says. Captures of offloaded
  // packets leave the IP length 0: then what was captured stands for it.
  const std::size_t ip_bytes = be16(head, 2) != 0 ? be16(head, 2) : packet_bytes;
  const std::size_t udp_bytes = be16(udp, 4);
  if (udp_bytes < 8 || ip_bytes > packet_bytes || ip_bytes < header_bytes + udp_bytes) return FrameError::cut;
  place.payload_offset = header_bytes + 8;
  place.payload_bytes = udp_bytes - 8;
  place.flow = {be32(head, 12), be32(head, 16), static_cast<std::uint16_t>(be16(udp, 0)), static_cast<std::uint16_t>(be16(udp, 2))};
  return FrameError::none;
}

MacAddress multicast_mac(const IpAddress& group) {
  const IpAddress::Bytes& bytes = group.bytes();
  if (group.is_ipv6()) return {0x33, 0x33, bytes[12], bytes[13], bytes[14], bytes[15]};          // RFC 2464
  return {0x01, 0x00, 0x5E, static_cast<std::uint8_t>(bytes[13] & 0x7F), bytes[14], bytes[15]};  // RFC 1112
}

// RFC 8200, 8.1: a pseudo header of both addresses, the length and the protocol stands before what follows the header.
std::uint16_t ipv6_checksum(std::span<const std::byte> packet) {
  const std::size_t bytes = be16(packet, 4);
  const std::uint64_t pseudo_header = add_words(std::to_integer<std::uint64_t>(packet[6]) + bytes, packet.data() + 8, 32);
  return checksum_of(add_words(pseudo_header, packet.data() + 40, bytes));
}

void write_ethernet_header(std::byte* out, const MacAddress& from, const MacAddress& to, bool is_ipv6) {
  std::memcpy(out, to.data(), to.size());
  std::memcpy(out + 6, from.data(), from.size());
  put_be(out + 12, is_ipv6 ? kTypeIpv6 : kTypeIp, 2);
}

void write_ipv4_udp_headers(std::byte* out, const UdpFlow& flow, std::span<const std::byte> payload, std::uint16_t id) {
  const std::size_t udp_bytes = payload.size() + 8;
  put_be(out, 0x4500, 2);
  put_be(out + 2, payload.size() + kIpUdpHeaderBytes, 2);
  put_be(out + 4, id, 2);
  put_be(out + 6, 0x4000, 2);  // do not fragment
  put_be(out + 8, (std::uint32_t{kTtl} << 8) | kUdp, 2);
  put_be(out + 10, 0, 2);
  put_be(out + 12, flow.from_address, 4);
  put_be(out + 16, flow.to_address, 4);
  put_be(out + 10, checksum_of(add_words(0, out, 20)), 2);
  std::byte* udp = out + 20;
  put_be(udp, flow.from_port, 2);
  put_be(udp + 2, flow.to_port, 2);
  put_be(udp + 4, udp_bytes, 2);
  put_be(udp + 6, 0, 2);
  const std::uint64_t pseudo_header = add_words(kUdp + udp_bytes, out + 12, 8);
  const std::uint16_t checksum = checksum_of(add_words(add_words(pseudo_header, udp, 8), payload.data(), payload.size()));
  put_be(udp + 6, checksum == 0 ? 0xFFFF : checksum, 2);  // 0 would mean: no checksum
}

void write_ipv6_udp_headers(std::byte* out, const IpUdpFlow& flow, std::span<const std::byte> payload) {
  const std::size_t udp_bytes = payload.size() + 8;
  put_be(out, 0x60000000, 4);
  put_be(out + 4, udp_bytes, 2);
  put_be(out + 6, (kUdp << 8) | kTtl, 2);
  std::memcpy(out + 8, flow.from_address.bytes().data(), 16);
  std::memcpy(out + 24, flow.to_address.bytes().data(), 16);
  std::byte* udp = out + 40;
  put_be(udp, flow.from_port, 2);
  put_be(udp + 2, flow.to_port, 2);
  put_be(udp + 4, udp_bytes, 2);
  put_be(udp + 6, 0, 2);
  const std::uint64_t pseudo_header = add_words(kUdp + udp_bytes, out + 8, 32);
  const std::uint16_t checksum = checksum_of(add_words(add_words(pseudo_header, udp, 8), payload.data(), payload.size()));
  put_be(udp + 6, checksum == 0 ? 0xFFFF : checksum, 2);  // 0 is not allowed
}

}  // namespace nanet::link
