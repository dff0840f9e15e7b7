// SPDX-License-Identifier: Apache-2.0
#include "Vnanet_node.h"
#include "model/simulated.hpp"

namespace nanet::gateware {
namespace {

// Words of all ports side by side.
struct XgmiiPorts {
  static void in(Vnanet_node& top, std::span<WireSource> sources, std::uint64_t cycle) {
    std::uint32_t controls = 0;
    for (std::size_t port = 0; port < sources.size(); ++port) {
      const XgmiiWord word = sources[port].next_word(cycle);
      top.xgmii_rxd[2 * port] = static_cast<std::uint32_t>(word.data);
      top.xgmii_rxd[2 * port + 1] = static_cast<std::uint32_t>(word.data >> 32);
      controls |= std::uint32_t{word.control} << (8 * port);
    }
    top.xgmii_rxc = controls;
  }

  static void out(const Vnanet_node& top, std::span<WireSink> sinks, std::uint64_t cycle) {
    for (std::size_t port = 0; port < sinks.size(); ++port) {
      const std::uint64_t data = top.xgmii_txd[2 * port] | std::uint64_t{top.xgmii_txd[2 * port + 1]} << 32;
      sinks[port].take(XgmiiWord{data, static_cast<std::uint8_t>(top.xgmii_txc >> (8 * port))}, cycle);
    }
  }
};

}  // namespace

std::unique_ptr<Simulated> simulate_node(const Surroundings& around, std::uint64_t seed) {
  return std::make_unique<SimulatedAs<Vnanet_node, XgmiiPorts>>(around, seed);
}

}  // namespace nanet::gateware
