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
  static constexpr std::uint64_t reset_cycles = 8;

  static void in(Vnic& top, const Surroundings& around) {
    const XgmiiWord word = around.in[0].next_word(around.cycle);
    top.xgmii_rxd = word.data;
    top.xgmii_rxc = word.control;
  }
  static void out(const Vnic& top, const Surroundings& around) {
    around.out[0].take(XgmiiWord{top.xgmii_txd, top.xgmii_txc}, around.cycle);
  }
};

struct GmiiPort {
  static constexpr std::uint64_t reset_cycles = 8;

  static void in(Vnic_1g& top, const Surroundings& around) {
    const GmiiByte byte = around.in[0].next_byte(around.cycle);
    top.gmii_rxd = byte.data;
    top.gmii_rx_dv = byte.valid;
    top.gmii_rx_er = 0;
  }
  static void out(const Vnic_1g& top, const Surroundings& around) {
    around.out[0].take(GmiiByte{top.gmii_txd, top.gmii_tx_en != 0}, around.cycle);
  }
};

std::unique_ptr<FloorLinks> floors_of(Design design) {
  if (design != Design::km3_800 && design != Design::km3_2500) return nullptr;
  return std::make_unique<FloorLinks>(design == Design::km3_800 ? 800 : 2500, kNodePorts);
}

double cycle_ns_of(Design design, Line line) {
  if (design == Design::km3_800) return 12.4;
  return design == Design::km3_2500 ? 6.4 : ns_per_cycle(line);
}

std::unique_ptr<Simulated> simulate(Design design, Line line, const Surroundings& around, std::uint64_t seed) {
  if (around.floors != nullptr) return simulate_km3_node(around, seed);
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
      cycle_ns_(cycle_ns_of(design, line)),
      bus_(timing),
      floors_(floors_of(design)),
      in_(floors_                  ? 0
          : design == Design::node ? kNodePorts
                                   : 1),
      out_(in_.size()),
      top_(simulate(design, line, {bus_, in_, out_, cycle_, floors_.get()}, timing.seed)) {
  top_->reset();
}

Model::~Model() = default;

std::uint64_t Model::read(std::uint32_t offset) { return top_->read(offset); }

void Model::write(std::uint32_t offset, std::uint64_t value) { top_->write(offset, value); }

void Model::step(std::uint64_t cycles) { top_->step(cycles); }

void Model::reset() {
  bus_.forget();
  if (floors_) floors_->reset();
  top_->reset();
}

}  // namespace nanet::gateware
