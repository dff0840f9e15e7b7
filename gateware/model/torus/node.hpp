// SPDX-License-Identifier: Apache-2.0
// A node of the torus: apenet_node of gateware/rtl, verilated with a register before its inputs (simulated_node.sv), with a source and a sink at its local port, a cycle at a time.
//
// What no reset sets begins at random. The RTL's assertions are left out: its benches have them, and here they would cost a third of the time.
// Thread rules: one thread at a time for each object; wires between two nodes are read and written in different halves (Wire).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/torus/packet.hpp"
#include "model/torus/shape.hpp"
#include "model/torus/traffic.hpp"

namespace nanet::torus {

inline constexpr int kResetCycles = 8;  // of a node, under load or with a network interface

// One direction of a cable. What is put in one cycle comes out `cycles` later, so two nodes whose cycles are less than that apart touch different words.
class Wire {
 public:
  explicit Wire(std::uint32_t cycles) : cycles_(cycles), words_(2 * cycles), valid_(2 * cycles) {}

  void put(std::uint64_t cycle, bool valid, const std::uint32_t* words) {
    const std::size_t at = cycle % valid_.size();
    valid_[at] = valid && whole_;
    if (valid) words_[at] = {words[0], words[1], words[2], words[3]};
  }
  void set_whole(bool whole) { whole_ = whole; }  // else what is put into it is gone
  // nullptr: no word in this cycle.
  const Word* get(std::uint64_t cycle) const {
    const std::size_t at = (cycle + cycles_) % valid_.size();
    return valid_[at] != 0 ? &words_[at] : nullptr;
  }

 private:
  std::uint32_t cycles_;
  std::vector<Word> words_;
  std::vector<std::uint8_t> valid_;
  bool whole_ = true;
};

// What the RTL's counters told, by the names of docs/design/torus.md and apelink.md.
struct RouterCounts {
  std::uint64_t good = 0, drop_length = 0, drop_outside = 0, drop_turn = 0, drop_port = 0, drop_hops = 0;
  std::uint64_t drops() const { return drop_length + drop_outside + drop_turn + drop_port + drop_hops; }
  RouterCounts& operator+=(const RouterCounts& more);
};

struct LinkCounts {
  std::uint64_t sent = 0, drop_down = 0;  // of what it was given
  std::uint64_t good = 0, flagged = 0, error_crc = 0, error_cut = 0, drop_header = 0, drop_lost = 0, noise = 0, header_corrected = 0;
  std::uint64_t silences = 0, silent_cycle = 0;  // times that it said that the other end is silent, and the last of them
  std::uint64_t words = 0;                       // that it put on the wire in the window, control words among them
  std::uint64_t came() const { return good + flagged + error_crc + error_cut; }
  LinkCounts& operator+=(const LinkCounts& more);  // all but silent_cycle, which has no sum
};

inline constexpr std::size_t kStreams = 2 * (kLinks + 1);

class Verilated;

class Node {
 public:
  // The wires are the caller's; nullptr: no link there.
  Node(const Shape& shape, std::uint32_t number, std::array<const Wire*, kLinks> in, std::array<Wire*, kLinks> out);
  Node(Node&&) noexcept;
  ~Node();

  void step(std::uint64_t cycle, const Window& window);
  void set_links(std::uint32_t up);  // a bit a link; both ends in the same cycle

  Source& source() { return source_; }
  const Source& source() const { return source_; }
  const Sink& sink() const { return sink_; }
  const RouterCounts& router() const { return router_; }
  // Whether a packet that came in by this port and virtual channel (2 * port + vc) was let out by that one.
  bool went(std::size_t from_stream, std::size_t to_stream) const;
  const LinkCounts& link(std::size_t port) const { return links_[port]; }

 private:
  void take_outputs(std::uint64_t cycle, const Window& window);
  void count_router();
  void count_links();
  void count_silences(std::uint64_t cycle);

  std::array<const Wire*, kLinks> in_;
  std::array<Wire*, kLinks> out_;
  Source source_;
  Sink sink_;
  RouterCounts router_;
  std::array<LinkCounts, kLinks> links_;
  std::unique_ptr<Verilated> rtl_;
  std::uint32_t silent_ = 0;  // a bit a link
};

}  // namespace nanet::torus
