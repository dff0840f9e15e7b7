// SPDX-License-Identifier: Apache-2.0
// For tests of what comes over the wire: frames layer by layer, so that each may be wrong, and the rig of the NIC with all of its counters.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nic_rig.hpp"

namespace nanet::link::gateware::wire {

using test::Bytes;
using test::HostTiming;
using test::kAddress;
using test::kMac;
using test::kPeer;
using test::kPeerMac;
using test::kPeerPort;
using test::kPort;
using test::Model;
using test::random_bytes;

inline constexpr MacAddress kEveryone{255, 255, 255, 255, 255, 255};
inline constexpr std::uint16_t kIpv4 = 0x0800, kArp = 0x0806, kVlan = 0x8100, kIpv6 = 0x86DD;
inline constexpr std::uint8_t kIcmpProtocol = 1, kTcpProtocol = 6, kUdpProtocol = 17;

inline void put(Bytes& bytes, std::uint64_t value, unsigned width) {
  for (unsigned k = width; k > 0; --k) bytes.push_back(static_cast<std::byte>(value >> (8 * (k - 1))));
}

inline void put(Bytes& bytes, std::span<const std::byte> more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

inline std::uint16_t checksum(std::span<const std::byte> bytes, std::uint32_t sum = 0) {
  for (std::size_t k = 0; k < bytes.size(); ++k) sum += std::to_integer<std::uint32_t>(bytes[k]) << (k % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

inline void patch(Bytes& bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::byte>(value >> 8);
  bytes[at + 1] = static_cast<std::byte>(value);
}

struct Ethernet {
  MacAddress to = kMac, from = kPeerMac;
  std::uint16_t type = kIpv4;
  std::vector<std::uint16_t> tags = {};  // VLANs, the outer first
};

inline Bytes ethernet(std::span<const std::byte> payload, const Ethernet& header = {}) {
  Bytes frame;
  for (const std::uint8_t byte : header.to) put(frame, byte, 1);
  for (const std::uint8_t byte : header.from) put(frame, byte, 1);
  for (const std::uint16_t tag : header.tags) put(frame, std::uint32_t{kVlan} << 16 | tag, 4);
  put(frame, header.type, 2);
  put(frame, payload);
  return frame;
}

struct Ipv4 {
  std::uint8_t protocol = kUdpProtocol;
  std::uint32_t to = kAddress;
  std::uint16_t fragment = 0x4000;  // flags and offset
  std::uint8_t version_and_words = 0x45;
  std::int32_t length_error = 0;  // of the length that it says
  std::uint16_t checksum_error = 0;
  std::uint8_t ttl = 63;
};

inline Bytes ipv4(std::span<const std::byte> payload, const Ipv4& header = {}) {
  Bytes packet;
  put(packet, std::uint32_t{header.version_and_words} << 8, 2);
  put(packet, static_cast<std::uint64_t>(static_cast<std::int64_t>(payload.size() + 20) + header.length_error), 2);
  put(packet, 0x1234, 2);
  put(packet, header.fragment, 2);
  put(packet, std::uint32_t{header.ttl} << 24 | std::uint32_t{header.protocol} << 16, 4);
  put(packet, kPeer, 4);
  put(packet, header.to, 4);
  packet.resize((header.version_and_words & 15u) * 4);  // options, if it says so
  patch(packet, 10, static_cast<std::uint16_t>(checksum(packet) ^ header.checksum_error));
  put(packet, payload);
  return packet;
}

struct Udp {
  std::uint16_t port = kPort;
  std::int32_t length_error = 0;
  std::uint16_t checksum_error = 0;
};

inline Bytes udp(std::span<const std::byte> payload, const Udp& header = {}) {
  Bytes packet;
  put(packet, std::uint32_t{kPeerPort} << 16 | header.port, 4);
  put(packet, static_cast<std::uint64_t>(static_cast<std::int64_t>(payload.size() + 8) + header.length_error), 2);
  put(packet, 0, 2);
  put(packet, payload);
  Bytes pseudo;
  put(pseudo, kPeer, 4);
  put(pseudo, kAddress, 4);
  put(pseudo, std::uint32_t{kUdpProtocol} << 16 | static_cast<std::uint32_t>(packet.size()), 4);
  const auto of_pseudo = static_cast<std::uint16_t>(~checksum(pseudo));
  patch(packet, 6, static_cast<std::uint16_t>(checksum(packet, of_pseudo) ^ header.checksum_error));
  return packet;
}

inline Bytes udp_frame(std::span<const std::byte> payload, const Udp& header = {}) { return ethernet(ipv4(udp(payload, header))); }

inline Bytes arp_packet(std::uint16_t operation, const MacAddress& from, std::uint32_t from_address, const MacAddress& to,
                        std::uint32_t to_address) {
  Bytes packet;
  put(packet, 0x0001'0800'0604, 6);
  put(packet, operation, 2);
  for (const std::uint8_t byte : from) put(packet, byte, 1);
  put(packet, from_address, 4);
  for (const std::uint8_t byte : to) put(packet, byte, 1);
  put(packet, to_address, 4);
  return packet;
}

inline Bytes arp_request(std::uint32_t wanted = kAddress) {
  return ethernet(arp_packet(1, kPeerMac, kPeer, {}, wanted), {.to = kEveryone, .type = kArp});
}

inline Bytes icmp(std::uint8_t type, std::span<const std::byte> data, std::uint16_t checksum_error = 0) {
  Bytes packet;
  put(packet, std::uint32_t{type} << 24, 4);
  put(packet, 0x0042'0007, 4);  // identifier and sequence
  put(packet, data);
  patch(packet, 2, static_cast<std::uint16_t>(checksum(packet) ^ checksum_error));
  return packet;
}

inline Bytes echo_request(std::span<const std::byte> data) { return ethernet(ipv4(icmp(8, data), {.protocol = kIcmpProtocol})); }

// What comes for kPort is received. The test fails if the NIC went astray.
class WireRig : public test::RigTest {
 protected:
  Match match() const override {
    return {.index = 0, .port = kPort, .from_address = 0, .from_mask = 0, .source = 1, .counts_events = false};
  }

  void push(std::span<const std::byte> frame) { push_raw(nanet::gateware::with_fcs(frame)); }
  void push_raw(Bytes frame) {  // with its check sequence
    model->wire_in().push(std::move(frame));
    ++pushed;
  }

  void take() {
    device->poll();
    const Completion* completion = driver->poll();
    if (completion == nullptr) return;
    for (const PacketRef& ref : driver->packets(*completion)) {
      const auto payload = driver->payload(*completion, ref);
      received.emplace_back(payload.begin(), payload.end());
    }
    driver->release();
  }

  // Until that many payloads were received, or a long time has gone by.
  void receive(std::size_t count) {
    for (int k = 0; k < 1'000'000 && received.size() < count; ++k) take();
  }

  // Everything that is in flight arrives.
  void run_dry() {
    while (model->wire_in().waiting() != 0) take();
    for (int k = 0; k < 3000; ++k) take();
  }

  std::uint64_t rx_count(unsigned k) { return model->read(0x800 + 8 * k); }
  std::uint64_t tx_count(unsigned k) { return model->read(0x900 + 8 * k); }
  std::uint64_t reply_count(unsigned k) { return model->read(0x980 + 8 * k); }

  std::vector<std::uint64_t> all_counts() {
    std::vector<std::uint64_t> counts;
    for (unsigned k = 0; k < rx::count; ++k) counts.push_back(rx_count(k));
    for (unsigned k = 0; k < reply::count; ++k) counts.push_back(reply_count(k));
    return counts;
  }

  // `pushed` counts frames since the NIC's counters began, `rung` descriptors.
  void expect_balanced(std::uint64_t rung) {
    std::uint64_t began = 0, judged = 0;
    for (unsigned k = rx::parsed; k < rx::stored; ++k) began += rx_count(k);
    for (unsigned k = reply::answered_arp; k < reply::replied; ++k) began += reply_count(k);
    for (unsigned k = rx::stored; k < rx::bad; ++k) judged += rx_count(k);
    EXPECT_EQ(began, pushed);
    EXPECT_EQ(judged, rx_count(rx::parsed));
    EXPECT_EQ(reply_count(reply::answered_arp) + reply_count(reply::answered_echo), reply_count(reply::replied));
    EXPECT_EQ(tx_count(tx::sent) + tx_count(tx::refused) + tx_count(tx::unreadable), rung);
    EXPECT_EQ(tx_count(tx::framed) + tx_count(tx::aborted) + tx_count(tx::destination),
              tx_count(tx::sent) + reply_count(reply::replied));
  }

  // The frames that have left, and none of them is bad.
  std::vector<Bytes> left() {
    std::vector<Bytes> frames;
    for (const auto& frame : model->wire_out().frames()) frames.push_back(frame.bytes);
    model->wire_out().frames().clear();
    EXPECT_EQ(model->wire_out().bad(), 0u);
    return frames;
  }

  std::vector<Bytes> received;
  std::uint64_t pushed = 0;
};

}  // namespace nanet::link::gateware::wire
