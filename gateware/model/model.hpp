// SPDX-License-Identifier: Apache-2.0
// The NIC of gateware/rtl, verilated, as an object of this process: registers, XGMII or GMII and a modelled host behind its bus, a cycle at a time.
//
// Its time is simulated: it goes on in step(), and in read() and write(), which take as many cycles as the register bus does. An assertion of the RTL
// that fails ends the process with a message: the NIC would do what is not allowed. What no reset sets begins at random, of the host's seed.
// Thread rules: one thread for each object.
#pragma once

#include <cstdint>
#include <memory>

#include "model/host_bus.hpp"
#include "model/wire.hpp"

namespace nanet::gateware {

class Nic;  // what Verilator made, of one line or the other

class Model {
 public:
  // In reset, then ready.
  explicit Model(const HostTiming& timing = {}, Line line = Line::gbps_10);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // offset: of registers/nic.rdl [bytes]. Throws std::out_of_range where there is no register.
  std::uint64_t read(std::uint32_t offset);
  void write(std::uint32_t offset, std::uint64_t value);

  void step(std::uint64_t cycles = 1);
  void reset();  // of the NIC: what is in flight in it and on its bus is gone, and so are its settings

  Line line() const { return line_; }
  std::uint64_t cycle() const { return cycle_; }  // since this object was made
  WireSource& wire_in() { return in_; }
  WireSink& wire_out() { return out_; }
  HostBus& bus() { return bus_; }

 private:
  const Line line_;
  HostBus bus_;
  WireSource in_;
  WireSink out_;
  std::uint64_t cycle_ = 0;
  std::unique_ptr<Nic> nic_;
};

}  // namespace nanet::gateware
