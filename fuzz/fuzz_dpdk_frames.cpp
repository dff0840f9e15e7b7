// SPDX-License-Identifier: Apache-2.0
// Any frame in any buffers, as a device of DPDK may lay it down: what is found in the pieces is what a second reader finds in the whole. And what a
// station of the network must understand besides: ARP, and echo requests.
//
// Input: how the frame is cut (number of pieces, and their sizes), whether it begins with Ethernet, then the frame.
#include <algorithm>
#include <vector>

#include "link/dpdk/arp.hpp"
#include "link/dpdk/frame.hpp"
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

void check_places(const Buffer& frame, const UdpPart& part, Pieces& pieces, std::span<const std::byte> payload) {
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
  const auto first = bytes.take() % 4 == 0 ? FirstHeader::ipv4 : FirstHeader::ethernet;
  Input frame(bytes.rest());
  Pieces pieces(frame.bytes(), sizes, 5);
  check_udp(frame.bytes(), pieces, first);
  check_arp(frame.bytes());
  check_echo(frame.bytes());
  return 0;
}
