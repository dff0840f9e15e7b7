// SPDX-License-Identifier: Apache-2.0
// Any bytes as an Ethernet frame: what is taken is what a second reader takes, and the headers that both writers put before the payload say the same,
// with right checksums.
#include <algorithm>
#include <vector>

#include "link/udp_template.hpp"
#include "udp_reference.hpp"

namespace {

using namespace nanet::link;
using namespace nanet::fuzz;

void require_checksums(std::span<const std::byte> frame, UdpChecksum checksum) {
  const auto ip = frame.subspan(kEthernetHeaderBytes, 20);
  const auto udp = frame.subspan(kEthernetHeaderBytes + 20);
  require(ones_complement({ip}) == 0, "the checksum of the IPv4 header");
  const std::uint64_t said = big_endian(udp, 6, 2);
  require((said == 0) == (checksum == UdpChecksum::absent), "a UDP checksum is there exactly where it shall be");
  if (checksum == UdpChecksum::present)
    require(ones_complement({ip.subspan(12, 8), udp}, 17 + udp.size()) == 0, "the UDP checksum");
}

void require_writes(const UdpFlow& flow, std::span<const std::byte> payload) {
  constexpr MacAddress from{2, 0, 0, 0, 0, 1}, to{2, 0, 0, 0, 0, 2};
  std::vector<std::byte> plain(kFrameHeaderBytes + payload.size());
  std::copy(payload.begin(), payload.end(), plain.begin() + kFrameHeaderBytes);
  std::vector<std::byte> quick = plain;
  write_ethernet_header(plain.data(), from, to);
  write_ipv4_udp_headers(plain.data() + kEthernetHeaderBytes, flow, payload, 0);
  require_checksums(plain, UdpChecksum::present);
  const IpUdpFlow either{flow.from_address, flow.to_address, flow.from_port, flow.to_port};
  UdpTemplate(either, from).write(quick.data(), to, payload);
  require(quick == plain, "the template writes the same");
  UdpTemplate(either, from, UdpChecksum::absent).write(quick.data(), to, payload);
  require_checksums(quick, UdpChecksum::absent);
  UdpView view;
  require(read_udp_frame(plain, view) == FrameError::none && flow_of(view.flow) == flow_of(flow), "what was written is read");
  require(std::ranges::equal(view.payload, payload), "and has the payload");
}

// As an IP packet of either family: what is taken lies inside, and IPv6 is written back as it was read.
void require_ip(std::span<const std::byte> packet) {
  IpUdpView view;
  if (read_ip_udp(packet, view) != FrameError::none) return;
  const std::byte* end = view.payload.data() + view.payload.size();
  require(view.payload.data() >= packet.data() && end <= packet.data() + packet.size(), "the payload lies in the packet");
  if (!view.flow.from_address.is_ipv6() || !view.flow.to_address.is_ipv6()) return;
  std::vector<std::byte> written(kIpv6UdpHeaderBytes + view.payload.size());
  std::copy(view.payload.begin(), view.payload.end(), written.begin() + kIpv6UdpHeaderBytes);
  write_ipv6_udp_headers(written.data(), view.flow, view.payload);
  std::vector<std::byte> quick(kIpv6FrameHeaderBytes + view.payload.size());
  std::copy(view.payload.begin(), view.payload.end(), quick.begin() + kIpv6FrameHeaderBytes);
  UdpTemplate(view.flow, {}).write(quick.data(), {}, view.payload);
  require(std::ranges::equal(std::span(quick).subspan(kEthernetHeaderBytes), written), "the template writes the same");
  IpUdpView again;
  require(read_ip_udp(written, again) == FrameError::none, "what was written is read");
  require(again.flow.from_address == view.flow.from_address && again.flow.to_address == view.flow.to_address, "the same addresses");
  require(again.flow.from_port == view.flow.from_port && again.flow.to_port == view.flow.to_port, "the same ports");
  require(std::ranges::equal(again.payload, view.payload), "the same payload");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  Input input(data, size);
  const std::span<const std::byte> frame = input.bytes();
  const auto expected = datagram_in(frame);
  require_ip(frame);
  UdpView view;
  const FrameError error = read_udp_frame(frame, view);
  require((error == FrameError::none) == expected.has_value(), "taken exactly where the second reader takes it");
  for (const auto& [type_offset, header_bytes] : {std::pair<std::size_t, std::size_t>{14, 16}, {0, 20}}) {  // of a cooked capture
    const auto ip = find_ipv4(frame, type_offset, header_bytes);
    require(ip.empty() || ip.data() + ip.size() == frame.data() + frame.size(), "an IPv4 packet is the end of its frame");
  }
  if (!expected) return 0;
  require(flow_of(view.flow) == expected->flow, "the same flow");
  require(view.payload.data() == frame.data() + expected->offset && view.payload.size() == expected->bytes, "the same payload");
  require_writes(view.flow, view.payload);
  return 0;
}
