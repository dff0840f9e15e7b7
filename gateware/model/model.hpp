// SPDX-License-Identifier: Apache-2.0
// The NIC of gateware/rtl, verilated, as an object of this process: registers, XGMII and a modelled host behind its bus, a cycle at a time.
//
// Its time is simulated: it goes on in step(), and in read() and write(), which take as many cycles as the register bus does. An assertion of the RTL
// that fails ends the process with a message: the NIC would do what is not allowed.
// Thread rules: one thread for each object.
#pragma once

#include <cstdint>
#include <memory>

#include "model/host_bus.hpp"
#include "model/xgmii.hpp"

namespace nanet::gateware {

inline constexpr double kNsPerCycle = 6.4;  // 156.25 MHz

class Model {
 public:
  // In reset, then ready.
  explicit Model(const HostTiming& timing = {});
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // offset: of registers/nic.rdl [bytes]. Throws std::out_of_range where there is no register.
  std::uint64_t read(std::uint32_t offset);
  void write(std::uint32_t offset, std::uint64_t value);

  void step(std::uint64_t cycles = 1);
  void reset();  // of the NIC: what is in flight in it and on its bus is gone, and so are its settings

  std::uint64_t cycle() const { return cycle_; }  // since this object was made
  XgmiiSource& wire_in() { return in_; }
  XgmiiSink& wire_out() { return out_; }
  HostBus& bus() { return bus_; }

 private:
  struct Nic;  // what Verilator made
  void step_one();

  std::unique_ptr<Nic> nic_;
  HostBus bus_;
  XgmiiSource in_;
  XgmiiSink out_;
  std::uint64_t cycle_ = 0;
};

}  // namespace nanet::gateware
