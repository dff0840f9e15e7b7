// SPDX-License-Identifier: Apache-2.0
// Any frame in any buffers, as a device of DPDK may lay it down: what is found in the pieces is what a second reader finds in the whole. And what a
// station of the network must understand besides: ARP or neighbour discovery, and echo requests.
//
// Input: how the frame is cut (number of pieces, and their sizes), whether it begins with Ethernet, then the frame.
#include <algorithm>
#include <vector>

#include "link/dpdk/arp.hpp"
#include "link/dpdk/frame.hpp"
#include "link/dpdk/ndp.hpp"
#include "udp_reference.hpp"

namespace {

using namespace nanet::link;
using namespace nanet::link::dpdk;
using namespace nanet::fuzz;
using nanet::MemoryKind;
using nanet::PlacedPacket;
using nanet::flow::PayloadMemory;

// As rte_mbuf.
struct Buffer {
  void* buf_addr;
  std::uint16_t data_off;
  std::uint16_t data_len;
  std::uint32_t pkt_len;
  Buffer* next;
};

std::vector<Buffer> buffers_of(Pieces& pieces, std::size_t frame_bytes) {
  std::vector<Buffer> buffers(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    buffers[i] = {pieces[i].data(), 0, static_cast<std::uint16_t>(pieces[i].size()), static_cast<std::uint32_t>(frame_bytes),
                  i + 1 < pieces.size() ? &buffers[i + 1] : nullptr};
  }
  return buffers;
}

template <typename Part>
void check_places(const Buffer& frame, const Part& part, Pieces& pieces, std::span<const std::byte> payload) {
  PlacedPacket placed{};
  if (place_payload(frame, part, PayloadMemory{pieces[0], MemoryKind::host}, placed)) {
    const auto* const lies = reinterpret_cast<const std::byte*>(placed.address);
    require(placed.head_bytes == 0 && std::ranges::equal(std::span(lies, placed.bytes), payload), "a payload is lent where it is");
  } else {
    require(part.offset + part.bytes > pieces[0].size(), "and not lent only where it is not in one piece");
  }
  if (pieces.size() < 2) return;
  placed = {};
  if (!place_payload(frame, part, PayloadMemory{pieces[1], MemoryKind::device}, placed)) return;
  const std::size_t in_head = std::min<std::size_t>(payload.size(), PlacedPacket::head_bytes_max);
  require(placed.bytes == payload.size() && std::ranges::equal(std::span(placed.head).first(in_head), payload.first(in_head)),
          "its head");
  const auto* const rest = reinterpret_cast<const std::byte*>(placed.address);
  require(std::ranges::equal(std::span(rest, payload.size() - in_head), payload.subspan(in_head)), "what follows its head");
}

void check_udp(std::span<const std::byte> frame, Pieces& pieces, FirstHeader first) {
  std::vector<Buffer> buffers = buffers_of(pieces, frame.size());
  const std::size_t before = first == FirstHeader::ethernet ? 0 : kEthernetHeaderBytes;
  std::vector<std::byte> whole(before);  // as the second reader takes it
  if (before != 0) write_ethernet_header(whole.data(), {}, {});
  whole.insert(whole.end(), frame.begin(), frame.end());
  const auto expected = datagram_in(whole);
  UdpPart part;
  const FrameError error = find_udp(buffers[0], first, part);
  if (error != FrameError::none) {
    // What is cut in the middle of its headers, or has more headers than anyone sends, may be refused.
    const bool has_headers = pieces.size() == 1 || pieces[0].size() >= kHeadersBytesMax;
    require(!has_headers || !expected || expected->offset - before > kHeadersBytesMax, "a datagram is found");
    return;
  }
  require(expected.has_value(), "what is found is a datagram");
  require(flow_of(part.flow) == expected->flow && part.offset + before == expected->offset && part.bytes == expected->bytes,
          "the same one");
  std::vector<std::byte> copy(part.bytes);
  copy_part(copy.data(), buffers[0], part.offset, part.bytes);
  const auto payload = frame.subspan(part.offset, part.bytes);
  require(std::ranges::equal(copy, payload), "its payload is copied from all pieces");
  check_places(buffers[0], part, pieces, payload);
  require(is_for_port(frame, first, part.flow.to_address, part.flow.to_port), "it is for its port");
  require(!is_for_port(frame, first, part.flow.to_address, static_cast<std::uint16_t>(part.flow.to_port + 1)), "and for no other");
  require(!is_for_port(frame, first, ~part.flow.to_address, part.flow.to_port), "nor another address");
}

// Over IPv6: what is found in the pieces is what the reader of recordings finds in the whole.
void check_ipv6_udp(std::span<const std::byte> frame, Pieces& pieces, FirstHeader first) {
  std::vector<Buffer> buffers = buffers_of(pieces, frame.size());
  IpUdpView view;
  const std::span<const std::byte> ip = first == FirstHeader::ethernet ? find_ip(frame) : frame;
  const bool is_datagram = !ip.empty() && std::to_integer<unsigned>(ip[0]) >> 4 == 6 && read_ip_udp(ip, view) == FrameError::none;
  IpUdpPart part;
  if (find_udp(buffers[0], first, part) != FrameError::none) {
    const auto before = static_cast<std::size_t>(is_datagram ? view.payload.data() - frame.data() : 0);
    const bool has_headers = pieces.size() == 1 || pieces[0].size() >= kHeadersBytesMax;
    require(!has_headers || !is_datagram || before > kHeadersBytesMax, "a datagram over IPv6 is found");
    return;
  }
  require(is_datagram, "what is found over IPv6 is a datagram");
  require(part.flow.from_address == view.flow.from_address && part.flow.to_address == view.flow.to_address &&
              part.flow.from_port == view.flow.from_port && part.flow.to_port == view.flow.to_port,
          "from and to the same");
  require(frame.data() + part.offset == view.payload.data() && part.bytes == view.payload.size(), "and the same one");
  std::vector<std::byte> copy(part.bytes);
  copy_part(copy.data(), buffers[0], part.offset, part.bytes);
  require(std::ranges::equal(copy, view.payload), "its payload over IPv6 is copied from all pieces");
  check_places(buffers[0], part, pieces, view.payload);
  require(is_for_port(frame, first, part.flow.to_address, part.flow.to_port), "over IPv6 it is for its port");
  const auto other_port = static_cast<std::uint16_t>(part.flow.to_port + 1);
  require(!is_for_port(frame, first, part.flow.to_address, other_port), "and for no other over IPv6");
  IpAddress::Bytes other = part.flow.to_address.bytes();
  other[15] ^= 1;
  require(!is_for_port(frame, first, IpAddress::ipv6(other), part.flow.to_port), "nor another address over IPv6");
}

// Any frame may be asked about, also one without a datagram.
void check_any_for_port(std::span<const std::byte> frame, FirstHeader first) {
  const IpAddress address = IpAddress::ipv6({0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
  (void)is_for_port(frame, first, address, 400);
}

void check_ndp(std::span<const std::byte> frame) {
  Ndp ndp;
  if (!read_ndp(frame, ndp)) return;
  const std::size_t icmp_bytes = big_endian(frame, 18, 2);
  require(big_endian(frame, 12, 2) == 0x86DD && big_endian(frame, 20, 2) == 0x3AFF && icmp_bytes >= 24 &&
              frame.size() >= 54 + icmp_bytes,
          "ICMPv6 that no router let through");
  require(ones_complement({frame.subspan(22, 32), frame.subspan(54, icmp_bytes)}, icmp_bytes + 58) == 0, "with a right checksum");
  require(big_endian(frame, 54, 2) == static_cast<std::uint64_t>(ndp.kind) << 8 && !ndp.target.is_multicast(), "of its kind");
  require(!ndp.from_address.is_multicast(), "of no group");
  const bool asks = ndp.kind == NdpKind::solicitation;
  std::vector<std::byte> written(kNdpFrameBytes);
  const MacAddress mac{2, 0, 0, 0, 0, 9};
  if (asks) {
    write_solicitation(written.data(), mac, ndp.from_address, ndp.target);
    if (ndp.from_address.is_any()) return;  // who has no address does not say where it is
  } else {
    write_advertisement(written.data(), mac, ndp.target, ndp.from_address, mac);
  }
  Ndp again;
  require(read_ndp(written, again), "neighbour discovery that is written is read");
  require(again.kind == ndp.kind && again.target == ndp.target && again.mac == mac && again.frame_mac == mac,
          "and says the same of it");
}

void check_ipv6_echo(std::span<const std::byte> frame) {
  if (frame.size() < 54) return;
  IpAddress::Bytes bytes;
  std::memcpy(bytes.data(), frame.data() + 38, bytes.size());
  const IpAddress address = IpAddress::ipv6(bytes);
  if (!is_echo_request(frame, address)) return;
  Input answer(frame);
  answer_ipv6_echo(answer.bytes());
  const std::span<const std::byte> told = answer.bytes();
  const std::size_t icmp_bytes = big_endian(frame, 18, 2);
  require(ones_complement({told.subspan(22, 32), told.subspan(54, icmp_bytes)}, icmp_bytes + 58) == 0,
          "an answer has a right checksum");
  require(!is_echo_request(told, address) && std::ranges::equal(told.subspan(58), frame.subspan(58)),
          "and carries what it was asked");
  require(std::ranges::equal(told.subspan(22, 16), frame.subspan(38, 16)), "back to who asked");
}

void check_arp(std::span<const std::byte> frame) {
  Arp arp;
  if (!read_arp(frame, arp)) return;
  require(frame.size() >= 42 && big_endian(frame, 12, 4) == 0x0806'0001 && big_endian(frame, 16, 4) == 0x0800'0604,
          "ARP for IPv4 over Ethernet");
  require(big_endian(frame, 20, 2) == static_cast<std::uint64_t>(arp.kind) && big_endian(frame, 28, 4) == arp.from_address,
          "its fields");
  std::vector<std::byte> written(kArpFrameBytes);
  write_arp(written.data(), arp, {9, 8, 7, 6, 5, 4});
  Arp again;
  require(read_arp(written, again), "what is written is read");
  require(again.kind == arp.kind && again.from_mac == arp.from_mac && again.from_address == arp.from_address &&
              again.to_address == arp.to_address,
          "and says the same");
  require((arp.kind == ArpKind::request) == (written[0] == std::byte{0xFF}), "a request goes to everybody");
}

void check_echo(std::span<const std::byte> frame) {
  if (frame.size() < 34) return;
  const auto address = static_cast<std::uint32_t>(big_endian(frame, 30, 4));
  if (!is_echo_request(frame, address)) return;
  require(!is_echo_request(frame, address + 1), "only for that address");
  Input answer(frame);
  answer_echo(answer.bytes());
  const std::span<const std::byte> bytes = answer.bytes();
  require(ones_complement({bytes.subspan(14, 20)}) == ones_complement({frame.subspan(14, 20)}),
          "the IPv4 checksum is as right as before");
  require(ones_complement({bytes.subspan(34)}) == ones_complement({frame.subspan(34)}), "the ICMP checksum too");
  require(!is_echo_request(bytes, static_cast<std::uint32_t>(big_endian(bytes, 30, 4))), "an answer is no request");
  require(std::ranges::equal(bytes.subspan(38), frame.subspan(38)), "and carries what it was asked with");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  Bytes bytes(data, size);
  Bytes sizes = bytes;
  bytes.take(5);
  const auto first = bytes.take() % 4 == 0 ? FirstHeader::ip : FirstHeader::ethernet;
  Input frame(bytes.rest());
  Pieces pieces(frame.bytes(), sizes, 5);
  check_udp(frame.bytes(), pieces, first);
  check_ipv6_udp(frame.bytes(), pieces, first);
  check_any_for_port(frame.bytes(), first);
  check_arp(frame.bytes());
  check_ndp(frame.bytes());
  check_echo(frame.bytes());
  check_ipv6_echo(frame.bytes());
  return 0;
}
