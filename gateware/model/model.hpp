// SPDX-License-Identifier: Apache-2.0
// The NIC of gateware/rtl, or a node, verilated, as an object of this process: registers, XGMII, GMII or links of floors, and a modelled host behind its bus, a
// cycle at a time.
//
// Its time is simulated: it goes on in step(), and in read() and write(), which take as many cycles as the register bus does. An assertion of the RTL
// that fails ends the process with a message: the NIC would do what is not allowed. What no reset sets begins at random, of the host's seed.
// Thread rules: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/floor_links.hpp"
#include "model/host_bus.hpp"
#include "model/wire.hpp"

namespace nanet::gateware {

class Simulated;  // what Verilator made

enum class Design : std::uint8_t {
  nic,       // one port
  node,      // four ports of 10 Gb/s, whose events are merged (NaNet-10)
  km3_800,   // km3_node: four links of KM3NeT's floors at 800 Mb/s,
  km3_2500,  // or at 2.5 Gb/s; a line does nothing
};

class Model {
 public:
  // In reset, then ready.
  explicit Model(const HostTiming& timing = {}, Line line = Line::gbps_10, Design design = Design::nic);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // offset: of registers/nic.rdl, of a node from 0x1000 on of node.rdl or km3.rdl [bytes]. Throws std::out_of_range where there is no register.
  std::uint64_t read(std::uint32_t offset);
  void write(std::uint32_t offset, std::uint64_t value);

  void step(std::uint64_t cycles = 1);
  void reset();  // what is in flight in it and on its bus is gone, and so are its settings

  Line line() const { return line_; }
  double cycle_ns() const { return cycle_ns_; }
  std::uint64_t cycle() const { return cycle_; }  // since this object was made
  std::size_t ports() const { return in_.size(); }
  WireSource& wire_in(std::size_t port = 0) { return in_[port]; }
  WireSink& wire_out(std::size_t port = 0) { return out_[port]; }
  FloorLinks& floors() { return *floors_; }  // of a node that has them; it has no wires
  HostBus& bus() { return bus_; }

 private:
  const Line line_;
  const double cycle_ns_;
  HostBus bus_;
  std::unique_ptr<FloorLinks> floors_;
  std::vector<WireSource> in_;
  std::vector<WireSink> out_;
  std::uint64_t cycle_ = 0;
  std::unique_ptr<Simulated> top_;
};

}  // namespace nanet::gateware
