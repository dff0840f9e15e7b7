// SPDX-License-Identifier: Apache-2.0
// The node of gateware/rtl with four ports at 10 Gb/s that merges (NaNet-10), verilated, as an object of this process: as Model is for the NIC.
//
// Thread rules: one thread for each object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "model/host_bus.hpp"
#include "model/wire.hpp"

namespace nanet::gateware {

class NodeModel {
 public:
  static constexpr std::size_t kPorts = 4;

  // In reset, then ready.
  explicit NodeModel(const HostTiming& timing = {});
  ~NodeModel();
  NodeModel(const NodeModel&) = delete;
  NodeModel& operator=(const NodeModel&) = delete;

  // offset: of registers/nic.rdl, from 0x1000 on of node.rdl [bytes]. Throws std::out_of_range where there is no register.
  std::uint64_t read(std::uint32_t offset);
  void write(std::uint32_t offset, std::uint64_t value);

  void step(std::uint64_t cycles = 1);
  void reset();

  static constexpr Line line() { return Line::gbps_10; }
  std::uint64_t cycle() const { return cycle_; }  // since this object was made
  WireSource& wire_in(std::size_t port) { return in_[port]; }
  WireSink& wire_out(std::size_t port) { return out_[port]; }
  HostBus& bus() { return bus_; }

 private:
  struct Node;  // what Verilator made
  void step_one();

  std::unique_ptr<Node> node_;
  HostBus bus_;
  std::array<WireSource, kPorts> in_;
  std::array<WireSink, kPorts> out_;
  std::uint64_t cycle_ = 0;
};

}  // namespace nanet::gateware
