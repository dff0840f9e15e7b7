// SPDX-License-Identifier: Apache-2.0
// The headers around a UDP payload against literal bytes (made by another program), and frames that lie about their lengths.
#include "link/udp_frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace nanet::link {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes(std::initializer_list<unsigned> values) {
  Bytes result;
  for (const unsigned value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

Bytes text(std::string_view letters) {
  Bytes result(letters.size());
  std::memcpy(result.data(), letters.data(), letters.size());
  return result;
}

constexpr UdpFlow kFlow{.from_address = 0x0A000001, .to_address = 0x0A000002, .from_port = 1000, .to_port = 2000};

Bytes headers(const Bytes& payload) {
  Bytes out(kIpUdpHeaderBytes);
  write_ipv4_udp_headers(out.data(), kFlow, payload, 7);
  return out;
}

Bytes frame_of(const Bytes& payload) {
  Bytes frame(kFrameHeaderBytes);
  write_ethernet_header(frame.data(), {2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2});
  write_ipv4_udp_headers(frame.data() + kEthernetHeaderBytes, kFlow, payload, 7);
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

TEST(UdpFrame, HeadersAreThoseOfAnotherProgram) {
  EXPECT_EQ(headers(text("abcd")), bytes({0x45, 0x00, 0x00, 0x20, 0x00, 0x07, 0x40, 0x00, 0x40, 0x11, 0x26, 0xc4, 0x0a, 0x00,
                                          0x00, 0x01, 0x0a, 0x00, 0x00, 0x02, 0x03, 0xe8, 0x07, 0xd0, 0x00, 0x0c, 0x1b, 0x55}));
  EXPECT_EQ(headers(text("abc")),  // an odd number of bytes
            bytes({0x45, 0x00, 0x00, 0x1f, 0x00, 0x07, 0x40, 0x00, 0x40, 0x11, 0x26, 0xc5, 0x0a, 0x00,
                   0x00, 0x01, 0x0a, 0x00, 0x00, 0x02, 0x03, 0xe8, 0x07, 0xd0, 0x00, 0x0b, 0x1b, 0xbb}));
}

TEST(UdpFrame, AChecksumOfZeroIsWrittenAsAllOnes) {
  const Bytes out = headers(bytes({0xe0, 0x1f}));
  EXPECT_EQ(out[26], std::byte{0xff});
  EXPECT_EQ(out[27], std::byte{0xff});
}

TEST(UdpFrame, EthernetHeaderSaysToFromAndIpv4) {
  const Bytes frame = frame_of({});
  EXPECT_EQ(Bytes(frame.begin(), frame.begin() + 14), bytes({2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00}));
}

TEST(UdpFrame, ReadsWhatItWrote) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1472}, kUdpPayloadMax}) {
    const Bytes payload(size, std::byte{0x5A});
    const Bytes frame = frame_of(payload);
    UdpView view{};
    ASSERT_EQ(read_udp_frame(frame, view), FrameError::none);
    EXPECT_EQ(view.flow.from_address, kFlow.from_address);
    EXPECT_EQ(view.flow.to_address, kFlow.to_address);
    EXPECT_EQ(view.flow.from_port, kFlow.from_port);
    EXPECT_EQ(view.flow.to_port, kFlow.to_port);
    EXPECT_EQ(view.payload.size(), size);
  }
}

TEST(UdpFrame, PassesOverTagsAndPadding) {
  Bytes frame = frame_of(text("hello"));
  frame.resize(frame.size() + 13);  // Ethernet fills short frames up to 60 bytes
  const Bytes tags = bytes({0x88, 0xA8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x2A});
  frame.insert(frame.begin() + 12, tags.begin(), tags.end());
  UdpView view{};
  ASSERT_EQ(read_udp_frame(frame, view), FrameError::none);
  EXPECT_EQ(Bytes(view.payload.begin(), view.payload.end()), text("hello"));
}

TEST(UdpFrame, EveryCutIsSeenAndNothingBehindTheEndIsRead) {
  const Bytes whole = frame_of(text("0123456789"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));  // its own memory, for the sanitizer
    UdpView view{};
    EXPECT_NE(read_udp_frame(frame, view), FrameError::none) << size;
  }
}

TEST(UdpFrame, SaysWhatIsNotUdp) {
  UdpView view{};
  const auto changed = [](std::size_t at, unsigned value) {
    Bytes frame = frame_of(text("abcd"));
    frame[at] = static_cast<std::byte>(value);
    return frame;
  };
  EXPECT_EQ(read_udp_frame(changed(12, 0x86), view), FrameError::not_udp);   // another type
  EXPECT_EQ(read_udp_frame(changed(14, 0x65), view), FrameError::not_udp);   // IPv6 in an IPv4 frame
  EXPECT_EQ(read_udp_frame(changed(23, 6), view), FrameError::not_udp);      // TCP
  EXPECT_EQ(read_udp_frame(changed(20, 0x20), view), FrameError::fragment);  // the first of several
  EXPECT_EQ(read_udp_frame(changed(21, 0x01), view), FrameError::fragment);  // a later one
  EXPECT_EQ(read_udp_frame(changed(14, 0x44), view), FrameError::cut);       // a header of 16 bytes
  EXPECT_EQ(read_udp_frame(changed(39, 7), view), FrameError::cut);          // a UDP length below its header's
  EXPECT_EQ(read_udp_frame(changed(39, 13), view), FrameError::cut);         // one byte more than there is
  EXPECT_EQ(read_udp_frame(changed(17, 31), view), FrameError::cut);  // an IP length that leaves a byte less than the UDP length
  EXPECT_EQ(read_udp_frame(changed(17, 33), view), FrameError::cut);  // an IP length above what there is
}

// What Linux takes too: an IP packet that is longer than its UDP datagram, and captures of offloaded packets without an IP length.
TEST(UdpFrame, TheUdpLengthSaysWhatIsPayload) {
  Bytes frame = frame_of(text("abcd"));
  frame[39] = std::byte{8 + 3};
  UdpView view{};
  ASSERT_EQ(read_udp_frame(frame, view), FrameError::none);
  EXPECT_EQ(Bytes(view.payload.begin(), view.payload.end()), text("abc"));
  frame[16] = frame[17] = std::byte{0};
  ASSERT_EQ(read_udp_frame(frame, view), FrameError::none);
  EXPECT_EQ(Bytes(view.payload.begin(), view.payload.end()), text("abc"));
}

TEST(UdpFrame, OverIpv6IsFoundByItsHeadAlone) {
  const Bytes data(500, std::byte{7});
  const IpAddress from = parse_endpoint("udp://[2001:db8::1]:0").address, to = parse_endpoint("udp://[2001:db8::2]:0").address;
  Bytes packet(kIpv6UdpHeaderBytes);
  write_ipv6_udp_headers(packet.data(), {from, to, 5000, 6200}, data);
  IpUdpPlace place;
  ASSERT_EQ(locate_ipv6_udp(packet, packet.size() + data.size(), place), FrameError::none);
  EXPECT_EQ(place.flow.from_address, from);
  EXPECT_EQ(place.flow.to_address, to);
  EXPECT_EQ(place.flow.to_port, 6200);
  EXPECT_EQ(place.payload_offset, kIpv6UdpHeaderBytes);
  EXPECT_EQ(place.payload_bytes, data.size());
  for (std::size_t head = 1; head < packet.size(); ++head) {
    EXPECT_EQ(locate_ipv6_udp(std::span(packet).first(head), packet.size() + data.size(), place), FrameError::cut) << head;
  }
  EXPECT_EQ(locate_ipv6_udp({}, 548, place), FrameError::not_udp);
  EXPECT_EQ(locate_ipv6_udp(packet, packet.size() + data.size() - 1, place), FrameError::cut);  // less came than its length says
  // A header of destination options between, whose length lies in each way.
  Bytes with_options = packet;
  with_options[6] = std::byte{60};
  const Bytes options = {std::byte{17}, std::byte{0}, std::byte{1}, std::byte{4},
                         std::byte{0},  std::byte{0}, std::byte{0}, std::byte{0}};
  with_options.insert(with_options.begin() + 40, options.begin(), options.end());
  with_options[4] = std::byte{static_cast<unsigned char>((8 + 8 + data.size()) >> 8)};
  with_options[5] = std::byte{static_cast<unsigned char>(8 + 8 + data.size())};
  ASSERT_EQ(locate_ipv6_udp(with_options, with_options.size() + data.size(), place), FrameError::none);
  EXPECT_EQ(place.payload_offset, kIpv6UdpHeaderBytes + 8);
  with_options[41] = std::byte{255};
  EXPECT_EQ(locate_ipv6_udp(with_options, with_options.size() + data.size(), place), FrameError::cut);
  with_options[6] = std::byte{44};
  EXPECT_EQ(locate_ipv6_udp(with_options, with_options.size() + data.size(), place), FrameError::fragment);
  with_options[6] = std::byte{6};
  EXPECT_EQ(locate_ipv6_udp(with_options, with_options.size() + data.size(), place), FrameError::not_udp);
}

}  // namespace
}  // namespace nanet::link
