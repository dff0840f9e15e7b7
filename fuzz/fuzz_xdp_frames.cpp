// SPDX-License-Identifier: Apache-2.0
// Any packet in any frames, as the kernel may lay it down for AF_XDP: what is found and copied is what a second reader finds in the whole.
//
// Input: how the packet is cut (number of frames, and their sizes), then the packet.
#include <algorithm>
#include <vector>

#include "link/xdp/packet.hpp"
#include "udp_reference.hpp"

namespace {

using namespace nanet::link;
using namespace nanet::fuzz;

void check_copies(Pieces& frames, std::span<const std::byte> packet, const XdpPayload& payload) {
  const auto frame_at = [&](std::uint32_t index) -> std::span<const std::byte> { return frames[index]; };
  for (const std::size_t bytes :
       {std::size_t{payload.bytes}, std::size_t{payload.bytes} / 2}) {  // also what is cut to the room there is
    Input room(packet.first(bytes));
    copy_payload(frame_at, static_cast<std::uint32_t>(frames.size()), payload.offset, room.bytes().data(), bytes);
    require(std::ranges::equal(room.bytes(), packet.subspan(payload.offset, bytes)), "its payload is copied from all frames");
  }
}

// Over IPv6: what is found in the first frame is what the reader of recordings finds in the whole.
void check_ipv6(Pieces& frames, std::span<const std::byte> packet) {
  IpUdpView view;
  const std::span<const std::byte> ip = find_ip(packet);
  const bool is_datagram = !ip.empty() && std::to_integer<unsigned>(ip[0]) >> 4 == 6 && read_ip_udp(ip, view) == FrameError::none;
  const std::uint16_t port = is_datagram ? view.flow.to_port : std::uint16_t{1};
  const IpAddress any = IpAddress::ipv6({});
  XdpPayload payload;
  IpAddress from;
  if (find_ipv6_payload(frames[0], packet.size(), any, port, payload, from) != XdpVerdict::ours) return;
  require(is_datagram, "what is found over IPv6 is a datagram");
  require(from == view.flow.from_address && payload.flow.from_port == view.flow.from_port, "from its sender");
  require(packet.data() + payload.offset == view.payload.data() && payload.bytes == view.payload.size(), "and the same one");
  check_copies(frames, packet, payload);
  require(find_ipv6_payload(frames[0], packet.size(), any, static_cast<std::uint16_t>(port ^ 1), payload, from) == XdpVerdict::foreign,
          "for no other port");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  Bytes bytes(data, size);
  Bytes sizes = bytes;
  bytes.take(5);
  Input whole(bytes.rest());
  const std::span<const std::byte> packet = whole.bytes();
  Pieces frames(packet, sizes, 5);
  check_ipv6(frames, packet);
  const auto expected = datagram_in(packet);
  const auto address = static_cast<std::uint32_t>(expected ? expected->flow[1] : 0);
  const auto port = static_cast<std::uint16_t>(expected ? expected->flow[3] : 1);
  XdpPayload payload;
  const XdpVerdict verdict = find_payload(frames[0], packet.size(), 0, port, payload);
  if (verdict != XdpVerdict::ours) {
    // The kernel lays the headers, as many as anyone sends, into the first frame.
    const bool has_headers = expected && expected->offset <= std::min(frames[0].size(), kXdpHeadersBytesMax);
    require(!has_headers, "a datagram is found");
    return 0;
  }
  require(expected.has_value(), "what is found is a datagram");
  require(flow_of(payload.flow) == expected->flow && payload.offset == expected->offset && payload.bytes == expected->bytes,
          "the same one");
  check_copies(frames, packet, payload);
  XdpPayload other;
  require(find_payload(frames[0], packet.size(), address, port, other) == XdpVerdict::ours, "for its address");
  require(
      find_payload(frames[0], packet.size(), address ^ 1u, port, other) == (address == 1 ? XdpVerdict::ours : XdpVerdict::foreign),
      "and no other");
  require(find_payload(frames[0], packet.size(), 0, static_cast<std::uint16_t>(port ^ 1), other) == XdpVerdict::foreign,
          "nor for another port");
  return 0;
}
