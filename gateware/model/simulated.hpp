// SPDX-License-Identifier: Apache-2.0
// A design of gateware/rtl that Verilator made a class of, with what is around it in every cycle: the clock, the bus to the host and that of the registers.
// For the sources of this folder.
//
// Thread rules: those of Model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "model/floor_links.hpp"
#include "model/host_bus.hpp"
#include "model/wire.hpp"
#include "verilated.h"

namespace nanet::gateware {

// In and out: a wire a port. cycle: the number of the one that comes next. floors: of a node with links of floors, which has no wires.
struct Surroundings {
  HostBus& bus;
  std::span<WireSource> in;
  std::span<WireSink> out;
  std::uint64_t& cycle;
  FloorLinks* floors;
};

class Simulated {
 public:
  virtual ~Simulated() = default;
  virtual void step(std::uint64_t cycles) = 0;
  virtual void reset() = 0;
  virtual std::uint64_t read(std::uint32_t offset) = 0;
  virtual void write(std::uint32_t offset, std::uint64_t value) = 0;
};

// Of the nodes, whose classes take long to compile.
std::unique_ptr<Simulated> simulate_node(const Surroundings& around, std::uint64_t seed);
std::unique_ptr<Simulated> simulate_km3_node(const Surroundings& around, std::uint64_t seed);

// Top: the class that Verilator made. Wires: in(top, around) and out(top, around) are the pins of its ports, and clocks that only they have.
template <class Top, class Wires>
class SimulatedAs final : public Simulated {
 public:
  SimulatedAs(const Surroundings& around, std::uint64_t seed) : around_(around) {
    context_.randReset(2);  // what reset does not clear begins with anything
    context_.randSeed(static_cast<int>(seed & 0x7FFF'FFFE) + 1);
    top_ = std::make_unique<Top>(&context_);
  }
  ~SimulatedAs() override { top_->final(); }

  void reset() override {
    top_->rst = 1;
    top_->s_axil_awvalid = top_->s_axil_wvalid = top_->s_axil_arvalid = 0;
    top_->s_axil_bready = top_->s_axil_rready = 1;
    top_->s_axil_wstrb = 0xFF;
    step(Wires::reset_cycles);
    top_->rst = 0;
    step(1);
  }

  void step(std::uint64_t cycles) override {
    for (std::uint64_t k = 0; k < cycles; ++k) step_one();
  }

  std::uint64_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint64_t value) override;

 private:
  static constexpr int kRegisterCyclesMax = 100;
  static void check(bool good, const char* what, std::uint32_t offset);
  void step_one();
  void host_in();
  void host_out();

  Surroundings around_;
  Wires wires_;
  VerilatedContext context_;
  std::unique_ptr<Top> top_;
};

template <class Top, class Wires>
void SimulatedAs<Top, Wires>::host_in() {
  Top& top = *top_;
  const AnswerWord answer = around_.bus.answer(around_.cycle);
  top.mem_write_ready = around_.bus.write_ready();
  top.mem_read_ready = around_.bus.read_ready();
  top.mem_answer_valid = answer.valid;
  top.mem_answer_last = answer.last;
  top.mem_answer_error = answer.error;
  top.mem_answer_tag = static_cast<CData>(answer.tag);
  for (std::size_t k = 0; k < answer.data.size(); ++k) top.mem_answer_data[k] = answer.data[k];
}

template <class Top, class Wires>
void SimulatedAs<Top, Wires>::host_out() {
  const Top& top = *top_;
  if (top.mem_write_valid && top.mem_write_ready) {
    around_.bus.take_write({top.mem_write_first != 0,
                            top.mem_write_last != 0,
                            top.mem_write_gpu != 0,
                            top.mem_write_address,
                            top.mem_write_bytes,
                            {top.mem_write_data[0], top.mem_write_data[1], top.mem_write_data[2], top.mem_write_data[3]},
                            top.mem_write_keep},
                           around_.cycle);
  }
  if (top.mem_read_valid && top.mem_read_ready) {
    around_.bus.take_read({top.mem_read_address, top.mem_read_bytes, top.mem_read_tag, top.mem_read_gpu != 0}, around_.cycle);
  }
  around_.bus.take_interrupt(top.irq != 0);
}

template <class Top, class Wires>
void SimulatedAs<Top, Wires>::step_one() {
  Top& top = *top_;
  wires_.in(top, around_);
  host_in();
  top.clk = 0;
  top.eval();
  if (!top.rst) {
    host_out();
    wires_.out(top, around_);
  }
  around_.bus.land(around_.cycle);
  context_.time(around_.cycle);  // of messages
  top.clk = 1;
  top.eval();
  ++around_.cycle;
}

template <class Top, class Wires>
void SimulatedAs<Top, Wires>::check(bool good, const char* what, std::uint32_t offset) {
  if (good) return;
  throw std::out_of_range(std::string("register ") + std::to_string(offset) + " cannot be " + what +
                          " (the NIC refuses it) see docs/gateware-registers.md");
}

// Outputs stand as after the last clock edge, so what is seen before a step is what the coming edge takes.
template <class Top, class Wires>
std::uint64_t SimulatedAs<Top, Wires>::read(std::uint32_t offset) {
  Top& top = *top_;
  top.s_axil_araddr = static_cast<SData>(offset);
  top.s_axil_arvalid = 1;
  for (int k = 0; k < kRegisterCyclesMax; ++k) {
    const bool taken = top.s_axil_arvalid && top.s_axil_arready;
    const bool answered = top.s_axil_rvalid;
    const std::uint64_t value = top.s_axil_rdata;
    const bool good = top.s_axil_rresp == 0;
    step(1);
    if (taken) top.s_axil_arvalid = 0;
    if (answered) {
      check(good, "read", offset);
      return value;
    }
  }
  throw std::logic_error("the register bus does not answer");
}

template <class Top, class Wires>
void SimulatedAs<Top, Wires>::write(std::uint32_t offset, std::uint64_t value) {
  Top& top = *top_;
  top.s_axil_awaddr = static_cast<SData>(offset);
  top.s_axil_wdata = value;
  top.s_axil_awvalid = top.s_axil_wvalid = 1;
  for (int k = 0; k < kRegisterCyclesMax; ++k) {
    const bool address_taken = top.s_axil_awvalid && top.s_axil_awready;
    const bool data_taken = top.s_axil_wvalid && top.s_axil_wready;
    const bool answered = top.s_axil_bvalid;
    const bool good = top.s_axil_bresp == 0;
    step(1);
    if (address_taken) top.s_axil_awvalid = 0;
    if (data_taken) top.s_axil_wvalid = 0;
    if (answered) return check(good, "written", offset);
  }
  throw std::logic_error("the register bus does not answer");
}

}  // namespace nanet::gateware
