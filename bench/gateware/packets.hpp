// SPDX-License-Identifier: Apache-2.0
// What the benchmark sends: packets each of which has data and a sender of its own, made from its number, and frames that a NIC must refuse.
//
// Thread rules: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "link/gateware/nic_driver.hpp"

namespace nanet::bench {

inline constexpr std::uint32_t kAddress = 0x0A00'0001, kPeer = 0x0A00'0002;  // of the NIC, and of the first sender
inline constexpr std::uint16_t kPort = 6200, kPeerPort = 4000;
inline constexpr std::uint32_t kSenders = 4;
inline constexpr std::size_t kHeadersAndFcs = 46;       // of a frame: Ethernet, IPv4, UDP, check sequence
inline constexpr std::size_t kBetweenFramesBytes = 20;  // preamble and gap
inline constexpr std::size_t kShortestFrameBytes = 64;

constexpr std::size_t frame_bytes(std::size_t payload_bytes) {
  return payload_bytes + kHeadersAndFcs < kShortestFrameBytes ? kShortestFrameBytes : payload_bytes + kHeadersAndFcs;
}

// The data of packet `number`, the same each time.
void fill_payload(std::uint64_t number, std::span<std::byte> payload);

std::uint32_t sender_of(std::uint64_t number);  // below kSenders
std::uint16_t source_of(std::uint64_t number);  // PacketRef::source that its sender's match entry gives

std::vector<std::byte> make_frame(std::uint64_t number, std::size_t payload_bytes);

// Frames that come among the good ones.
enum class Hostile : std::uint8_t {
  none,
  announces_much,  // 64 B, whose IPv4 and UDP headers announce a payload of 8,976 B
  bad_fcs,         // of the good ones' size
  unknown_port     // the same
};
std::vector<std::byte> make_hostile(Hostile kind, std::uint64_t number, std::size_t payload_bytes);

// An entry of the match table for each sender, all for kPort.
void set_matches(link::gateware::NicDriver& driver);
void clear_matches(link::gateware::Device& device);

}  // namespace nanet::bench
