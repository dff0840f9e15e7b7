// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/node.hpp"

#include <span>
#include <string>
#include <string_view>

#include "link/gateware/nic_counts.hpp"

namespace nanet::link::gateware {
namespace {

// Offsets of registers/node.rdl, behind the window of nic.rdl, and of what a port has in either.
constexpr std::uint32_t kNode = 0x1000;
constexpr std::uint32_t kFirstPort = 0x020, kPort = kNode + 0x100, kPortStride = 0x40;
constexpr std::uint32_t kAddress = 0x08, kMatchSender = 0x20, kMatch = 0x28;
constexpr std::uint32_t kControl = kNode + 0x300, kWaiting = kNode + 0x308, kJump = kNode + 0x310, kPackets = kNode + 0x318,
                        kSource = kNode + 0x320;
constexpr std::uint32_t kFirstRx = 0x800, kRx = kNode + 0x400, kRxStride = 0x200;
constexpr std::uint32_t kFirstReply = 0x980, kReply = 0x100;  // of a later port: from its kRx
constexpr std::uint32_t kPortCount = kNode + 0xA00, kPortCountStride = 0x40;
constexpr std::uint32_t kMergeCount = kNode + 0xB00, kMergeStride = 0x80;
constexpr std::uint32_t kEventsCount = kNode + 0xD00, kNodeCount = kNode + 0xD40;
constexpr unsigned kForgetBit = 16;

constexpr std::uint32_t base_of(std::size_t port, std::uint32_t first, std::uint32_t later, std::uint32_t stride) {
  return port == 0 ? first : later + stride * static_cast<std::uint32_t>(port - 1);
}
constexpr std::uint32_t settings_of(std::size_t port) { return base_of(port, kFirstPort, kPort, kPortStride); }
constexpr std::uint32_t rx_of(std::size_t port) { return base_of(port, kFirstRx, kRx, kRxStride); }
constexpr std::uint32_t reply_of(std::size_t port) { return base_of(port, kFirstReply, kRx + kReply, kRxStride); }

}  // namespace

std::uint32_t Node::ports() const { return device_.read(kNode) & 0xFF; }

std::uint32_t Node::packet_bytes_max() const { return device_.read(kNode) >> 32 & 0xFFFF; }

void Node::set_station(std::size_t port, std::uint64_t mac, std::uint32_t address) {
  device_.write(settings_of(port), mac);
  device_.write(settings_of(port) + kAddress, address);
}

void Node::set_match(std::size_t port, const Match& match, Route route) {
  device_.write(settings_of(port) + kMatchSender, match.from_address | field(match.from_mask, 32));
  device_.write(settings_of(port) + kMatch, match.index | field(1, 8) | field(match.counts_events, 9) | field(match.clop, 12) |
                                                field(match.port, 16) | field(match.source, 32) |
                                                field(static_cast<std::uint64_t>(route), 48));
}

void Node::set_merging(const MergeSettings& merging) {
  merging_ = merging;
  device_.write(kWaiting, merging.window_cycles | field(merging.lapse_cycles, 32));
  device_.write(kJump, merging.jump);
  device_.write(kPackets,
                merging.flush_cycles | field(merging.source_id, 32) | field(merging.source_sub_id, 40) | field(merging.clop, 48));
  device_.write(kSource, merging.source);
  device_.write(kControl, merging.links | field(merging.complete_only, 8));
}

void Node::forget_time() { device_.write(kControl, merging_.links | field(merging_.complete_only, 8) | field(1, kForgetBit)); }

std::uint64_t Node::merge_count(std::uint32_t port, unsigned counter) const {
  return device_.read(kMergeCount + kMergeStride * port + 8 * counter);
}

std::uint64_t Node::markers() const {
  std::uint64_t sum = 0;
  for (std::uint32_t port = 0; port < ports(); ++port) sum += merge_count(port, merge::marker);
  return sum;
}

std::vector<NicCounts> Node::counts() const {
  std::vector<NicCounts> groups;
  const auto add = [&](const char* name, std::optional<std::uint32_t> port, std::uint32_t base,
                       std::span<const std::string_view> names) {
    NicCounts& group = groups.emplace_back(NicCounts{name, port, {}});
    for (const std::string_view counter : names) {
      group.counts.emplace_back(counter, device_.read(base));
      base += 8;
    }
  };
  const std::uint32_t port_count = ports();
  for (std::uint32_t port = 0; port < port_count; ++port) {
    add("rx", port, rx_of(port), std::span(rx::kNames).first(rx::stored));
    add("reply", port, reply_of(port), reply::kNames);
    add("port", port, kPortCount + kPortCountStride * port, port::kNames);
    add("merge", port, kMergeCount + kMergeStride * port, merge::kNames);
  }
  add("events", {}, kEventsCount, events::kNames);
  add("node", {}, kNodeCount, node::kNames);
  add("host", {}, kFirstRx + 8 * rx::stored, std::span(rx::kNames).subspan(rx::stored, rx::bad - rx::stored));
  return groups;
}

void Node::add_stats(LinkStats& stats) const {
  const auto sum = [&](std::uint32_t base, std::span<const unsigned> counters, unsigned end) {
    std::uint64_t total = 0;
    for (const unsigned counter : counters) {
      if (counter < end) total += device_.read(base + 8 * counter);
    }
    return total;
  };
  const std::uint32_t port_count = ports();
  for (std::uint32_t port = 0; port < port_count; ++port) {
    if (port != 0) {  // whose counters end where the host's begin
      stats.rx_foreign += sum(rx_of(port), rx::kForeign, rx::stored);
      stats.rx_malformed += sum(rx_of(port), rx::kMalformed, rx::stored);
      stats.rx_truncated += sum(rx_of(port), rx::kOversized, rx::stored);
      stats.rx_kernel_dropped += sum(rx_of(port), rx::kDropped, rx::stored);
    }
    const std::uint32_t payloads = kPortCount + kPortCountStride * port, packets = kMergeCount + kMergeStride * port;
    stats.rx_foreign += sum(payloads, port::kForeign, port::count);
    stats.rx_malformed += sum(packets, merge::kMalformed, merge::count);
    stats.rx_kernel_dropped += sum(payloads, port::kDropped, port::count) + sum(packets, merge::kDropped, merge::count);
  }
}

}  // namespace nanet::link::gateware
