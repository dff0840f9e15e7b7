// SPDX-License-Identifier: Apache-2.0
#include "model/torus/node.hpp"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <utility>

#include "Vsimulated_node.h"
#include "Vsimulated_node___024root.h"
#include "verilated.h"

namespace nanet::torus {
namespace {

constexpr unsigned kLostBits = 10;

template <class Bits>
std::uint64_t ones(Bits bits) {
  return static_cast<std::uint64_t>(std::popcount(static_cast<std::uint64_t>(bits)));
}

template <class Counts>
Counts& add(Counts& all, const Counts& more, std::initializer_list<std::uint64_t Counts::*> fields) {
  for (const auto field : fields) all.*field += more.*field;
  return all;
}

}  // namespace

RouterCounts& RouterCounts::operator+=(const RouterCounts& more) {
  using Of = RouterCounts;
  return add(*this, more, {&Of::good, &Of::drop_length, &Of::drop_outside, &Of::drop_turn, &Of::drop_port, &Of::drop_hops});
}

LinkCounts& LinkCounts::operator+=(const LinkCounts& more) {
  using Of = LinkCounts;
  return add(*this, more,
             {&Of::sent, &Of::drop_down, &Of::good, &Of::flagged, &Of::error_crc, &Of::error_cut, &Of::drop_header, &Of::drop_lost,
              &Of::noise, &Of::header_corrected, &Of::silences, &Of::words});
}

class Verilated {
 public:
  explicit Verilated(std::uint32_t seed) {
    context.randReset(2);
    context.randSeed(static_cast<int>(seed & 0x7FFF'FFFE) + 1);
    top = std::make_unique<Vsimulated_node>(&context);
  }
  ~Verilated() { top->final(); }

  VerilatedContext context;
  std::unique_ptr<Vsimulated_node> top;
};

Node::Node(const Shape& shape, std::uint32_t number, std::array<const Wire*, kLinks> in, std::array<Wire*, kLinks> out)
    : in_(in), out_(out), source_(shape, number), sink_(shape, number), rtl_(std::make_unique<Verilated>(number)) {
  Vsimulated_node& top = *rtl_->top;
  const Place at = shape.place(number);
  top.at = static_cast<SData>(at.at[0] | at.at[1] << 6 | at.at[2] << 11);
  top.shape = shape.of(0) | shape.of(1) << 7 | shape.of(2) << 13;
  top.s_axis_tvalid = 0;
  top.link_up = 0;
  top.link_rx_valid = 0;
  top.rst = 1;
  for (int k = 0; k < kResetCycles; ++k) {
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
  }
  top.rst = 0;
  std::uint32_t up = 0;
  for (std::size_t port = 0; port < kLinks; ++port) up |= in_[port] != nullptr ? 1u << port : 0u;
  set_links(up);
}

Node::Node(Node&&) noexcept = default;
Node::~Node() = default;

bool Node::went(std::size_t from_stream, std::size_t to_stream) const {
  const std::size_t bit = kStreams * from_stream + to_stream;
  return (rtl_->top->ways[bit / 32] >> (bit % 32) & 1) != 0;
}

void Node::set_links(std::uint32_t up) { rtl_->top->link_up = static_cast<CData>(up); }

// What the outputs are, inputs of the coming edge, the edge. All outputs are registers, so they are read before the inputs are set, and the clock need not be
// seen low, which would be an evaluation more: Verilator's memory of it is told that it was.
void Node::step(std::uint64_t cycle, const Window& window) {
  Vsimulated_node& top = *rtl_->top;
  source_.be_born(cycle, window);
  take_outputs(cycle, window);
  const bool taken = source_.valid() && top.s_axis_tready != 0;
  top.s_axis_tvalid = source_.valid();
  if (source_.valid()) {
    for (unsigned k = 0; k < kWordParts; ++k) top.s_axis_tdata[k] = source_.word()[k];
    top.s_axis_tlast = source_.last();
  }
  std::uint32_t valid = 0;
  for (std::size_t port = 0; port < kLinks; ++port) {
    const Word* word = in_[port] != nullptr ? in_[port]->get(cycle) : nullptr;
    if (word == nullptr) continue;
    valid |= 1u << port;
    for (std::size_t k = 0; k < kWordParts; ++k) top.link_rx_data[kWordParts * port + k] = (*word)[k];
  }
  top.link_rx_valid = static_cast<CData>(valid);
  top.rootp->__Vtrigprevexpr___TOP__clk__0 = 0;
  top.clk = 1;
  top.eval();
  if (taken) source_.taken();
}

void Node::take_outputs(std::uint64_t cycle, const Window& window) {
  const Vsimulated_node& top = *rtl_->top;
  if (top.m_axis_tvalid) {
    sink_.take({top.m_axis_tdata[0], top.m_axis_tdata[1], top.m_axis_tdata[2], top.m_axis_tdata[3]}, top.m_axis_tlast != 0, cycle,
               window);
  }
  const bool counted = window.has(cycle);
  for (std::size_t port = 0; port < kLinks; ++port) {
    if (out_[port] == nullptr) continue;
    const bool sends = (top.link_tx_valid >> port & 1) != 0;
    out_[port]->put(cycle, sends, &top.link_tx_data[kWordParts * port]);
    links_[port].words += sends && counted ? 1 : 0;
  }
  count_router();
  count_links();
  if (top.silent != silent_) count_silences(cycle);
}

void Node::count_silences(std::uint64_t cycle) {
  const std::uint32_t now = rtl_->top->silent;
  for (std::size_t port = 0; port < kLinks; ++port) {
    if (in_[port] == nullptr || ((now & ~silent_) >> port & 1) == 0) continue;
    ++links_[port].silences;
    links_[port].silent_cycle = cycle;
  }
  silent_ = now;
}

void Node::count_router() {
  const Vsimulated_node& top = *rtl_->top;
  router_.good += ones(top.count_good);
  if ((top.drop_length | top.drop_outside | top.drop_turn | top.drop_port | top.drop_hops) == 0) return;
  router_.drop_length += ones(top.drop_length);
  router_.drop_outside += ones(top.drop_outside);
  router_.drop_turn += ones(top.drop_turn);
  router_.drop_port += ones(top.drop_port);
  router_.drop_hops += ones(top.drop_hops);
}

void Node::count_links() {
  const Vsimulated_node& top = *rtl_->top;
  const auto pulses = static_cast<unsigned>(top.link_sent | top.link_good);
  const auto rare = static_cast<unsigned>(top.drop_down | top.link_flagged | top.error_crc | top.error_cut | top.drop_header |
                                          top.noise | top.header_corrected);
  const std::uint64_t lost = top.drop_lost;
  if ((pulses | rare) == 0 && lost == 0) return;
  for (unsigned port = 0; port < kLinks; ++port) {
    const auto bit = [port](unsigned bits) { return std::uint64_t{bits >> port & 1}; };
    LinkCounts& link = links_[port];
    link.sent += bit(top.link_sent);
    link.good += bit(top.link_good);
    if (rare == 0 && lost == 0) continue;
    link.drop_down += bit(top.drop_down);
    link.flagged += bit(top.link_flagged);
    link.error_crc += bit(top.error_crc);
    link.error_cut += bit(top.error_cut);
    link.drop_header += bit(top.drop_header);
    link.drop_lost += lost >> (kLostBits * port) & ((1u << kLostBits) - 1);
    link.noise += bit(top.noise);
    link.header_corrected += bit(top.header_corrected);
  }
}

}  // namespace nanet::torus
