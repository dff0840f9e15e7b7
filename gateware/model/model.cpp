// SPDX-License-Identifier: Apache-2.0
#include "model/model.hpp"

#include <stdexcept>

#include "Vnic.h"
#include "Vnic_1g.h"
#include "model/simulated.hpp"

namespace nanet::gateware {
namespace {

constexpr std::size_t kNodePorts = 4;

struct XgmiiPort {
  static void in(Vnic& top, std::span<WireSource> sources, std::uint64_t cycle) {
    const XgmiiWord word = sources[0].next_word(cycle);
    top.xgmii_rxd = word.data;
    top.xgmii_rxc = word.control;
  }
  static void out(const Vnic& top, std::span<WireSink> sinks, std::uint64_t cycle) {
    sinks[0].take(XgmiiWord{top.xgmii_txd, top.xgmii_txc}, cycle);
  }
};

struct GmiiPort {
  static void in(Vnic_1g& top, std::span<WireSource> sources, std::uint64_t cycle) {
    const GmiiByte byte = sources[0].next_byte(cycle);
    top.gmii_rxd = byte.data;
    top.gmii_rx_dv = byte.valid;
    top.gmii_rx_er = 0;
  }
  static void out(const Vnic_1g& top, std::span<WireSink> sinks, std::uint64_t cycle) {
    sinks[0].take(GmiiByte{top.gmii_txd, top.gmii_tx_en != 0}, cycle);
  }
};

std::unique_ptr<Simulated> simulate(Design design, Line line, const Surroundings& around, std::uint64_t seed) {
  if (design == Design::node) {
    if (line != Line::gbps_10) throw std::invalid_argument("a node has 10 Gb/s");
    return simulate_node(around, seed);
  }
  if (line == Line::gbps_1) return std::make_unique<SimulatedAs<Vnic_1g, GmiiPort>>(around, seed);
  return std::make_unique<SimulatedAs<Vnic, XgmiiPort>>(around, seed);
}

}  // namespace

Model::Model(const HostTiming& timing, Line line, Design design)
    : line_(line),
      bus_(timing),
      in_(design == Design::node ? kNodePorts : 1),
      out_(in_.size()),
      top_(simulate(design, line, {bus_, in_, out_, cycle_}, timing.seed)) {
  top_->reset();
}

Model::~Model() = default;

std::uint64_t Model::read(std::uint32_t offset) { return top_->read(offset); }

void Model::write(std::uint32_t offset, std::uint64_t value) { top_->write(offset, value); }

void Model::step(std::uint64_t cycles) { top_->step(cycles); }

void Model::reset() {
  bus_.forget();
  top_->reset();
}

}  // namespace nanet::gateware
