// SPDX-License-Identifier: Apache-2.0
#include "model/node_model.hpp"

#include <stdexcept>
#include <string>

#include "Vnanet_node.h"
#include "verilated.h"

namespace nanet::gateware {
namespace {

constexpr int kResetCycles = 8;
constexpr int kRegisterCyclesMax = 64;

std::string register_problem(const char* what, std::uint32_t offset) {
  return std::string("register ") + std::to_string(offset) + " cannot be " + what +
         " (the node refuses it) see registers/nic.rdl and node.rdl";
}

}  // namespace

struct NodeModel::Node {
  VerilatedContext context;
  Vnanet_node top{&context};
};

NodeModel::NodeModel(const HostTiming& timing) : node_(std::make_unique<Node>()), bus_(timing) {
  node_->context.randReset(2);  // what reset does not clear begins with anything
  node_->context.randSeed(static_cast<int>(timing.seed & 0x7FFF'FFFF) + 1);
  reset();
}

NodeModel::~NodeModel() { node_->top.final(); }

void NodeModel::reset() {
  bus_.forget();
  node_->top.rst = 1;
  node_->top.s_axil_awvalid = node_->top.s_axil_wvalid = node_->top.s_axil_arvalid = 0;
  node_->top.s_axil_bready = node_->top.s_axil_rready = 1;
  node_->top.s_axil_wstrb = 0xFF;
  step(kResetCycles);
  node_->top.rst = 0;
  step();
}

void NodeModel::step(std::uint64_t cycles) {
  for (std::uint64_t k = 0; k < cycles; ++k) step_one();
}

void NodeModel::step_one() {
  Vnanet_node& top = node_->top;
  std::uint32_t controls = 0;
  for (std::size_t port = 0; port < kPorts; ++port) {
    const XgmiiWord word = in_[port].next_word(cycle_);
    top.xgmii_rxd[2 * port] = static_cast<std::uint32_t>(word.data);
    top.xgmii_rxd[2 * port + 1] = static_cast<std::uint32_t>(word.data >> 32);
    controls |= std::uint32_t{word.control} << (8 * port);
  }
  top.xgmii_rxc = controls;
  const AnswerWord answer = bus_.answer(cycle_);
  top.mem_write_ready = bus_.write_ready();
  top.mem_read_ready = bus_.read_ready();
  top.mem_answer_valid = answer.valid;
  top.mem_answer_last = answer.last;
  top.mem_answer_error = answer.error;
  top.mem_answer_tag = static_cast<CData>(answer.tag);
  for (std::size_t k = 0; k < answer.data.size(); ++k) top.mem_answer_data[k] = answer.data[k];
  top.clk = 0;
  top.eval();

  if (!top.rst) {
    if (top.mem_write_valid && top.mem_write_ready) {
      bus_.take_write({top.mem_write_first != 0,
                       top.mem_write_last != 0,
                       top.mem_write_gpu != 0,
                       top.mem_write_address,
                       top.mem_write_bytes,
                       {top.mem_write_data[0], top.mem_write_data[1], top.mem_write_data[2], top.mem_write_data[3]},
                       top.mem_write_keep},
                      cycle_);
    }
    if (top.mem_read_valid && top.mem_read_ready) {
      bus_.take_read({top.mem_read_address, top.mem_read_bytes, top.mem_read_tag, top.mem_read_gpu != 0}, cycle_);
    }
    bus_.take_interrupt(top.irq != 0);
    for (std::size_t port = 0; port < kPorts; ++port) {
      const std::uint64_t data = top.xgmii_txd[2 * port] | std::uint64_t{top.xgmii_txd[2 * port + 1]} << 32;
      out_[port].take(XgmiiWord{data, static_cast<std::uint8_t>(top.xgmii_txc >> (8 * port))}, cycle_);
    }
  }
  bus_.land(cycle_);

  top.clk = 1;
  top.eval();
  ++cycle_;
}

std::uint64_t NodeModel::read(std::uint32_t offset) {
  Vnanet_node& top = node_->top;
  top.s_axil_araddr = static_cast<SData>(offset);
  top.s_axil_arvalid = 1;
  for (int k = 0; k < kRegisterCyclesMax; ++k) {
    // Outputs stand as after the last clock edge, so what is seen here is what the coming edge takes.
    const bool taken = top.s_axil_arvalid && top.s_axil_arready;
    const bool answered = top.s_axil_rvalid;
    const std::uint64_t value = top.s_axil_rdata;
    const bool good = top.s_axil_rresp == 0;
    step();
    if (taken) top.s_axil_arvalid = 0;
    if (answered) {
      if (!good) throw std::out_of_range(register_problem("read", offset));
      return value;
    }
  }
  throw std::logic_error("the register bus does not answer");
}

void NodeModel::write(std::uint32_t offset, std::uint64_t value) {
  Vnanet_node& top = node_->top;
  top.s_axil_awaddr = static_cast<SData>(offset);
  top.s_axil_wdata = value;
  top.s_axil_awvalid = top.s_axil_wvalid = 1;
  for (int k = 0; k < kRegisterCyclesMax; ++k) {
    const bool address_taken = top.s_axil_awvalid && top.s_axil_awready;
    const bool data_taken = top.s_axil_wvalid && top.s_axil_wready;
    const bool answered = top.s_axil_bvalid;
    const bool good = top.s_axil_bresp == 0;
    step();
    if (address_taken) top.s_axil_awvalid = 0;
    if (data_taken) top.s_axil_wvalid = 0;
    if (answered) {
      if (!good) throw std::out_of_range(register_problem("written", offset));
      return;
    }
  }
  throw std::logic_error("the register bus does not answer");
}

}  // namespace nanet::gateware
