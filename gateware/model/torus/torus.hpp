// SPDX-License-Identifier: Apache-2.0
// A torus of verilated nodes, simulated on several cores. docs/design/torus.md
//
// A word is on a wire for wire_cycles, the last of them in a register of the node, so nothing that a node does is seen by another before: each node is taken
// so many cycles further by itself, and only then do the threads wait for each other. What comes out does not depend on how many threads there are.
// Thread rules: one thread calls; the others work within run().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/torus/node.hpp"
#include "model/torus/team.hpp"

namespace nanet::torus {

struct Settings {
  Shape shape{{2, 2, 1}};
  std::uint32_t wire_cycles = 16;  // 2 to 4096, each way: cable and lanes
  unsigned threads = 1;
};

// Of all nodes, once nothing is on its way any more: what was sent in, and what became of it.
struct Books {
  std::uint64_t injected = 0, good = 0, flagged = 0, wrong = 0, skipped = 0;
  RouterCounts router;
  LinkCounts links;
  std::uint64_t in_wires = 0;  // left one end of a link that then went down, and did not come to the other

  std::uint64_t losses() const { return router.drops() + links.drop_down + links.drop_header + links.drop_lost + in_wires; }
  bool balance() const { return injected == good + flagged + wrong + losses(); }
};

class Torus {
 public:
  explicit Torus(const Settings& settings);  // throws std::invalid_argument

  const Shape& shape() const { return settings_.shape; }
  std::uint32_t wire_cycles() const { return settings_.wire_cycles; }
  std::uint64_t cycle() const { return cycle_; }
  std::size_t size() const { return nodes_.size(); }
  Node& node(std::size_t number) { return nodes_[number]; }
  const Node& node(std::size_t number) const { return nodes_[number]; }

  void set_window(const Window& window) { window_ = window; }
  void set_load(const Load& load);                                   // of every node
  void set_link(std::uint32_t node, std::size_t port, bool up);      // both its ends
  void set_cable(std::uint32_t node, std::size_t port, bool whole);  // both directions; its ends are not told
  void run(std::uint64_t cycles);
  // Sources stop, and it runs until all that was sent in has its fate. False: after `cycles` something has not.
  bool drain(std::uint64_t cycles);

  Books books() const;
  // What each node's own counters, and both ends of each link, must say of each other; empty: they do. After drain().
  std::string problem() const;

 private:
  bool is_empty() const;

  Settings settings_;
  std::uint32_t ahead_cycles_ = 1;  // that a node can be taken further than its neighbours
  std::uint64_t cycle_ = 0;
  Window window_;
  std::vector<Wire> wires_;  // kLinks a node: its outputs
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> links_up_;
  std::vector<bool> was_cut_;  // by wire; or its link was down
  std::unique_ptr<Team> team_;
};

}  // namespace nanet::torus
