// SPDX-License-Identifier: Apache-2.0
#include "model/model.hpp"

#include <stdexcept>
#include <string>

#include "Vnic.h"
#include "Vnic_1g.h"
#include "verilated.h"

namespace nanet::gateware {
namespace {

constexpr int kResetCycles = 8;
constexpr int kRegisterCyclesMax = 64;

std::string register_problem(const char* what, std::uint32_t offset) {
  return std::string("register ") + std::to_string(offset) + " cannot be " + what + " (the NIC refuses it) see registers/nic.rdl";
}

}  // namespace

// What is around the NIC in every cycle, and the number of that.
struct Surroundings {
  HostBus& bus;
  WireSource& in;
  WireSink& out;
  std::uint64_t& cycle;
};

class Nic {
 public:
  virtual ~Nic() = default;
  virtual void step(std::uint64_t cycles) = 0;
  virtual void reset() = 0;
  virtual std::uint64_t read(std::uint32_t offset) = 0;
  virtual void write(std::uint32_t offset, std::uint64_t value) = 0;
};

namespace {

// Top: the class that Verilator made of nic.sv with this line.
template <class Top, Line kLine>
class NicOf final : public Nic {
 public:
  NicOf(const Surroundings& around, std::uint64_t seed) : around_(around) {
    context_.randReset(2);  // what reset does not clear begins with anything
    context_.randSeed(static_cast<int>(seed & 0x7FFF'FFFE) + 1);
    top_ = std::make_unique<Top>(&context_);
  }
  ~NicOf() override { top_->final(); }

  void reset() override {
    top_->rst = 1;
    top_->s_axil_awvalid = top_->s_axil_wvalid = top_->s_axil_arvalid = 0;
    top_->s_axil_bready = top_->s_axil_rready = 1;
    top_->s_axil_wstrb = 0xFF;
    step(kResetCycles);
    top_->rst = 0;
    step(1);
  }

  void step(std::uint64_t cycles) override {
    for (std::uint64_t k = 0; k < cycles; ++k) step_one();
  }

  std::uint64_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint64_t value) override;

 private:
  void step_one();
  void wire_in(Top& top);
  void wire_out(const Top& top);

  Surroundings around_;
  VerilatedContext context_;
  std::unique_ptr<Top> top_;
};

template <class Top, Line kLine>
void NicOf<Top, kLine>::wire_in(Top& top) {
  if constexpr (kLine == Line::gbps_10) {
    const XgmiiWord word = around_.in.next_word(around_.cycle);
    top.xgmii_rxd = word.data;
    top.xgmii_rxc = word.control;
  } else {
    const GmiiByte byte = around_.in.next_byte(around_.cycle);
    top.gmii_rxd = byte.data;
    top.gmii_rx_dv = byte.valid;
    top.gmii_rx_er = 0;
  }
}

template <class Top, Line kLine>
void NicOf<Top, kLine>::wire_out(const Top& top) {
  if constexpr (kLine == Line::gbps_10) {
    around_.out.take(XgmiiWord{top.xgmii_txd, top.xgmii_txc}, around_.cycle);
  } else {
    around_.out.take(GmiiByte{top.gmii_txd, top.gmii_tx_en != 0}, around_.cycle);
  }
}

template <class Top, Line kLine>
void NicOf<Top, kLine>::step_one() {
  Top& top = *top_;
  HostBus& bus = around_.bus;
  std::uint64_t& cycle = around_.cycle;
  wire_in(top);
  const AnswerWord answer = bus.answer(cycle);
  top.mem_write_ready = bus.write_ready();
  top.mem_read_ready = bus.read_ready();
  top.mem_answer_valid = answer.valid;
  top.mem_answer_last = answer.last;
  top.mem_answer_error = answer.error;
  top.mem_answer_tag = static_cast<CData>(answer.tag);
  for (std::size_t k = 0; k < answer.data.size(); ++k) top.mem_answer_data[k] = answer.data[k];
  top.clk = 0;
  top.eval();

  if (!top.rst) {
    if (top.mem_write_valid && top.mem_write_ready) {
      bus.take_write({top.mem_write_first != 0,
                      top.mem_write_last != 0,
                      top.mem_write_gpu != 0,
                      top.mem_write_address,
                      top.mem_write_bytes,
                      {top.mem_write_data[0], top.mem_write_data[1], top.mem_write_data[2], top.mem_write_data[3]},
                      top.mem_write_keep},
                     cycle);
    }
    if (top.mem_read_valid && top.mem_read_ready) {
      bus.take_read({top.mem_read_address, top.mem_read_bytes, top.mem_read_tag, top.mem_read_gpu != 0}, cycle);
    }
    bus.take_interrupt(top.irq != 0);
    wire_out(top);
  }
  bus.land(cycle);

  context_.time(cycle);  // of messages
  top.clk = 1;
  top.eval();
  ++cycle;
}

template <class Top, Line kLine>
std::uint64_t NicOf<Top, kLine>::read(std::uint32_t offset) {
  Top& top = *top_;
  top.s_axil_araddr = static_cast<SData>(offset);
  top.s_axil_arvalid = 1;
  for (int k = 0; k < kRegisterCyclesMax; ++k) {
    // Outputs stand as after the last clock edge, so what is seen here is what the coming edge takes.
    const bool taken = top.s_axil_arvalid && top.s_axil_arready;
    const bool answered = top.s_axil_rvalid;
    const std::uint64_t value = top.s_axil_rdata;
    const bool good = top.s_axil_rresp == 0;
    step(1);
    if (taken) top.s_axil_arvalid = 0;
    if (answered) {
      if (!good) throw std::out_of_range(register_problem("read", offset));
      return value;
    }
  }
  throw std::logic_error("the register bus does not answer");
}

template <class Top, Line kLine>
void NicOf<Top, kLine>::write(std::uint32_t offset, std::uint64_t value) {
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
    if (answered) {
      if (!good) throw std::out_of_range(register_problem("written", offset));
      return;
    }
  }
  throw std::logic_error("the register bus does not answer");
}

std::unique_ptr<Nic> make_nic(Line line, const Surroundings& around, std::uint64_t seed) {
  if (line == Line::gbps_1) return std::make_unique<NicOf<Vnic_1g, Line::gbps_1>>(around, seed);
  return std::make_unique<NicOf<Vnic, Line::gbps_10>>(around, seed);
}

}  // namespace

Model::Model(const HostTiming& timing, Line line)
    : line_(line), bus_(timing), nic_(make_nic(line, {bus_, in_, out_, cycle_}, timing.seed)) {
  nic_->reset();
}

Model::~Model() = default;

std::uint64_t Model::read(std::uint32_t offset) { return nic_->read(offset); }

void Model::write(std::uint32_t offset, std::uint64_t value) { nic_->write(offset, value); }

void Model::step(std::uint64_t cycles) { nic_->step(cycles); }

void Model::reset() {
  bus_.forget();
  nic_->reset();
}

}  // namespace nanet::gateware
