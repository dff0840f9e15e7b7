// SPDX-License-Identifier: Apache-2.0
// A torus of nodes with network interfaces: PUT, GET and EVENT between any two of them, over links of real RTL. docs/design/apenet-rdma.md
//
// A node is taken ahead of the others as in Torus, so what comes out does not depend on how many threads there are.
// Thread rules: one thread calls; the others work within run() and settle().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/torus/rdma_node.hpp"
#include "model/torus/team.hpp"

namespace nanet::torus {

// What a node has to know to use memory of another one.
struct Region {
  std::uint32_t node = 0;
  std::uint8_t index = 0;
  std::uint32_t nonce = 0;
};

class RdmaTorus {
 public:
  static constexpr std::array<std::uint32_t, 3> kShapeMax{4, 4, 4};  // of the RTL's table of messages

  // At most kShapeMax; throws std::invalid_argument. memory: kHostBytes for each node, back to back, that outlive it; none: its own.
  explicit RdmaTorus(const Shape& shape, std::uint32_t wire_cycles = 16, std::span<std::uint8_t> memory = {}, unsigned threads = 1);
  static const Shape& checked(const Shape& shape, std::uint32_t wire_cycles);  // throws as the constructor
  // Longer than a full packet takes by the longest way.
  static std::uint64_t quiet_cycles(std::uint32_t wire_cycles) { return 700 + 16ull * wire_cycles; }

  // What settle must be given at least to find a torus quiet.
  std::uint64_t looks_cycles() const { return 3 * quiet_cycles(wire_cycles_); }

  const Shape& shape() const { return shape_; }
  std::size_t size() const { return nodes_.size(); }
  RdmaNode& node(std::size_t number) { return nodes_[number]; }
  std::span<std::uint8_t> memory(std::uint32_t node) { return nodes_.at(node).memory(); }
  std::uint64_t cycle() const { return cycle_; }
  unsigned threads() const { return team_->size(); }

  // All of these throw std::invalid_argument ("problem (why) suggestion") for what no node of this torus can do. What the other node refuses is no error here, but
  // counted there: keys, rights and bounds of a region are its own.

  // Also when none of a node's 16 keys is free: one that is withdrawn is not given out again.
  Region share(std::uint32_t node, std::uint32_t offset, std::uint32_t bytes, bool is_readable, bool is_writable);
  void withdraw(const Region& region);  // once

  // From the memory of `from`, at local, to a byte of the region.
  void put(std::uint32_t from, std::uint32_t local, std::uint32_t bytes, const Region& to, std::uint64_t offset,
           std::uint16_t process = 0);
  // Of a region of another node into one of the node that asks. Its completion has the tag.
  void get(const Region& into, std::uint64_t into_offset, std::uint32_t bytes, const Region& of, std::uint64_t offset,
           std::uint64_t tag);
  void event(std::uint32_t from, std::uint32_t to, std::uint16_t value, std::uint16_t process = 0);

  // A cable, both directions: what is put into one that is not whole is gone, and its ends are not told.
  void set_cable(std::uint32_t node, std::size_t port, bool whole);

  // Completions of a node since the last call.
  std::vector<Completion> take(std::uint32_t node) { return nodes_.at(node).take(); }
  void run(std::uint64_t cycles);
  // All nodes' registers are read anew, and simulated until they were: but those of nodes that stand still.
  void read_registers();
  void begin_reading();
  bool has_read() const;

  // Until nothing has happened anywhere for a while. False: after so many cycles something still does.
  bool settle(std::uint64_t cycles = 200'000);

 private:
  void check_message(std::uint32_t from, std::uint32_t to, std::uint32_t bytes, std::uint64_t offset) const;
  void check_node(std::uint32_t node) const;
  std::vector<std::uint64_t> activity() const;

  Shape shape_;
  std::uint32_t wire_cycles_;
  std::uint64_t cycle_ = 0;
  std::vector<Wire> wires_;
  std::vector<RdmaNode> nodes_;
  std::vector<std::uint8_t> keys_;        // given out, by node
  std::vector<std::uint16_t> withdrawn_;  // a bit a key, by node
  std::uint32_t nonce_ = 0x5EED'0001;
  std::unique_ptr<Team> team_;
};

}  // namespace nanet::torus
