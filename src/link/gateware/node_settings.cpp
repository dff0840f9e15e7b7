// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/node_settings.hpp"

namespace nanet::link::gateware {
namespace {

// Offsets of registers/node.rdl, behind the window of nic.rdl, and of what a port has in either.
constexpr std::uint32_t kNode = 0x1000;
constexpr std::uint32_t kFirstPort = 0x020, kPort = kNode + 0x100, kPortStride = 0x40;
constexpr std::uint32_t kAddress = 0x08, kMatchSender = 0x20, kMatch = 0x28;
constexpr std::uint32_t kControl = kNode + 0x300, kWaiting = kNode + 0x308, kJump = kNode + 0x310, kPackets = kNode + 0x318,
                        kSource = kNode + 0x320;

std::uint32_t base_of(std::size_t port) {
  return port == 0 ? kFirstPort : kPort + kPortStride * static_cast<std::uint32_t>(port - 1);
}

constexpr std::uint64_t field(std::uint64_t value, unsigned low) { return value << low; }

}  // namespace

void NodeSettings::set_station(std::size_t port, std::uint64_t mac, std::uint32_t address) {
  device_.write(base_of(port), mac);
  device_.write(base_of(port) + kAddress, address);
}

void NodeSettings::set_match(std::size_t port, const Match& match, Route route) {
  device_.write(base_of(port) + kMatchSender, match.from_address | field(match.from_mask, 32));
  device_.write(base_of(port) + kMatch, match.index | field(1, 8) | field(match.counts_events, 9) | field(match.clop, 12) |
                                            field(match.port, 16) | field(match.source, 32) |
                                            field(static_cast<std::uint64_t>(route), 48));
}

void NodeSettings::set_merging(const MergeSettings& merging) {
  device_.write(kWaiting, merging.window_cycles | field(merging.lapse_cycles, 32));
  device_.write(kJump, merging.jump);
  device_.write(kPackets,
                merging.flush_cycles | field(merging.source_id, 32) | field(merging.source_sub_id, 40) | field(merging.clop, 48));
  device_.write(kSource, merging.source);
  device_.write(kControl, merging.links | field(merging.complete_only, 8));
}

}  // namespace nanet::link::gateware
