// SPDX-License-Identifier: Apache-2.0
// The counters in the registers of a node of a torus (gateware/registers/ape.rdl): of its messages, of each link, and of what came to its router by each port.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "link/gateware/nic_counts.hpp"

namespace nanet::link {

inline constexpr int kTorusLinks = 6, kTorusRouterPorts = kTorusLinks + 1;  // of the router the last is the node's own

struct TorusCounter {
  std::string_view group, name;
  int port = -1;              // -1: of the node
  std::uint32_t address = 0;  // in the torus' window
};

inline constexpr std::size_t kTorusCounters = gateware::ape::count + kTorusLinks * gateware::ape_link::count +
                                              kTorusRouterPorts * gateware::ape_router::count;

inline constexpr std::array<TorusCounter, kTorusCounters> kTorusCounterTable = [] {
  std::array<TorusCounter, kTorusCounters> table{};
  std::size_t at = 0;
  const auto add = [&](std::string_view group, int port, const auto& names, std::uint32_t address) {
    for (const std::string_view name : names) {
      table[at++] = {.group = group, .name = name, .port = port, .address = address};
      address += 8;
    }
  };
  add("messages", -1, gateware::ape::kNames, 0x200);
  for (int link = 0; link < kTorusLinks; ++link)
    add("link", link, gateware::ape_link::kNames, 0x400 + 0x80u * static_cast<unsigned>(link));
  for (int port = 0; port < kTorusRouterPorts; ++port)
    add("router", port, gateware::ape_router::kNames, 0x800 + 0x40u * static_cast<unsigned>(port));
  return table;
}();

// Its groups in their order: take(their first counter, its place in the table, the place after their last one).
template <class Take>
void for_each_torus_group(Take&& take) {
  const auto is_of = [](const TorusCounter& one, const TorusCounter& first) {
    return one.group == first.group && one.port == first.port;
  };
  for (std::size_t begin = 0, end = 0; begin < kTorusCounters; begin = end) {
    const TorusCounter& first = kTorusCounterTable[begin];
    while (end < kTorusCounters && is_of(kTorusCounterTable[end], first)) ++end;
    take(first, begin, end);
  }
}

}  // namespace nanet::link
