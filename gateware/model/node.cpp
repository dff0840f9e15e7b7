// SPDX-License-Identifier: Apache-2.0
#include "Vnanet_node.h"
#include "model/simulated.hpp"

namespace nanet::gateware {
namespace {

// Words of all ports side by side.
struct XgmiiPorts {
  static constexpr std::uint64_t reset_cycles = 8;

  static void in(Vnanet_node& top, const Surroundings& around) {
    std::uint32_t controls = 0;
    for (std::size_t port = 0; port < around.in.size(); ++port) {
      const XgmiiWord word = around.in[port].next_word(around.cycle);
      top.xgmii_rxd[2 * port] = static_cast<std::uint32_t>(word.data);
      top.xgmii_rxd[2 * port + 1] = static_cast<std::uint32_t>(word.data >> 32);
      controls |= std::uint32_t{word.control} << (8 * port);
    }
    top.xgmii_rxc = controls;
  }

  static void out(const Vnanet_node& top, const Surroundings& around) {
    for (std::size_t port = 0; port < around.out.size(); ++port) {
      const std::uint64_t data = top.xgmii_txd[2 * port] | std::uint64_t{top.xgmii_txd[2 * port + 1]} << 32;
      around.out[port].take(XgmiiWord{data, static_cast<std::uint8_t>(top.xgmii_txc >> (8 * port))}, around.cycle);
    }
  }
};

}  // namespace

std::unique_ptr<Simulated> simulate_node(const Surroundings& around, std::uint64_t seed) {
  return std::make_unique<SimulatedAs<Vnanet_node, XgmiiPorts>>(around, seed);
}

}  // namespace nanet::gateware
