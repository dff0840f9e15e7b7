// SPDX-License-Identifier: Apache-2.0
#include "packets.hpp"

#include <cstring>

#include "link/udp_frame.hpp"

namespace nanet::bench {
namespace {

constexpr std::size_t kAnnouncedBytes = 8976;
constexpr std::uint16_t kFirstSource = 17;
constexpr std::uint32_t kMatchRegister = 0x048;  // `match` of registers/nic.rdl: without its enable bit an entry is off

static_assert(kHeadersAndFcs == link::kFrameHeaderBytes + gateware::kFcsBytes);

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58'476D'1CE4'E5B9;
  value = (value ^ value >> 27) * 0x94D0'49BB'1331'11EB;
  return value ^ value >> 31;
}

std::vector<std::byte> make_headers_and(std::span<const std::byte> payload, std::uint32_t sender, std::uint16_t port) {
  std::vector<std::byte> frame(link::kFrameHeaderBytes + payload.size());
  link::write_ethernet_header(frame.data(), {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 1});
  link::write_ipv4_udp_headers(frame.data() + link::kEthernetHeaderBytes, {kPeer + sender, kAddress, kPeerPort, port}, payload, 0);
  std::memcpy(frame.data() + link::kFrameHeaderBytes, payload.data(), payload.size());
  return frame;
}

}  // namespace

// The first word names the packet, those after it step away from it: one multiplication a word, and no two packets share a run of words.
void fill_payload(std::uint64_t number, std::span<std::byte> payload) {
  constexpr std::uint64_t kStep = 0x9E37'79B9'7F4A'7C15;
  std::uint64_t value = mixed(number * kStep + 1);
  const std::uint64_t step = mixed(value) | 1;
  std::size_t at = 0;
  for (; at + sizeof(value) <= payload.size(); at += sizeof(value)) {
    std::memcpy(payload.data() + at, &value, sizeof(value));
    value = (value ^ value >> 32) * kStep + step;
  }
  std::memcpy(payload.data() + at, &value, payload.size() - at);
}

std::uint32_t sender_of(std::uint64_t number) { return static_cast<std::uint32_t>(mixed(~number) % kSenders); }

std::uint16_t source_of(std::uint64_t number) { return static_cast<std::uint16_t>(kFirstSource + sender_of(number)); }

std::vector<std::byte> make_frame(std::uint64_t number, std::size_t payload_bytes) {
  std::vector<std::byte> payload(payload_bytes);
  fill_payload(number, payload);
  return gateware::with_fcs(make_headers_and(payload, sender_of(number), kPort));
}

std::vector<std::byte> make_hostile(Hostile kind, std::uint64_t number, std::size_t payload_bytes) {
  std::vector<std::byte> payload(kind == Hostile::announces_much ? kAnnouncedBytes : payload_bytes);
  fill_payload(~number, payload);
  const std::uint16_t port = kind == Hostile::unknown_port ? kPort + 1 : kPort;
  std::vector<std::byte> frame = make_headers_and(payload, sender_of(number), port);
  if (kind == Hostile::announces_much) frame.resize(kShortestFrameBytes - gateware::kFcsBytes);
  frame = gateware::with_fcs(frame);
  if (kind == Hostile::bad_fcs) frame.back() ^= std::byte{1};
  return frame;
}

void set_matches(link::gateware::NicDriver& driver) {
  for (std::uint32_t k = 0; k < kSenders; ++k) {
    driver.set_match({.index = k,
                      .port = kPort,
                      .from_address = kPeer + k,
                      .from_mask = 0xFFFF'FFFF,
                      .source = static_cast<std::uint16_t>(kFirstSource + k),
                      .counts_events = false});
  }
}

void clear_matches(link::gateware::Device& device) {
  for (std::uint32_t k = 0; k < kSenders; ++k) device.write(kMatchRegister, k);
}

}  // namespace nanet::bench
