// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "Vkm3_node.h"
#include "Vkm3_node_2500.h"
#include "model/simulated.hpp"

namespace nanet::gateware {
namespace {

// The clocks of the links, which are faster than the core's steps or slower, and their words. The recovered clocks come half a word after the reference, and
// so do the dividers'. CorePs: a cycle of the core; WordPs: a word of a link.
template <std::uint64_t CorePs, std::uint64_t WordPs>
class Km3Links {
 public:
  static constexpr std::uint64_t reset_cycles = 200;

  template <class Top>
  void in(Top& top, const Surroundings& around) {
    FloorLinks& links = *around.floors;
    for (std::uint64_t left_ps = CorePs; !links.stand();) {
      const std::uint64_t wait_ps = std::min(to_word_ps_, to_help_ps_);
      const std::uint64_t step_ps = std::min(left_ps, wait_ps);
      left_ps -= step_ps;
      to_word_ps_ -= step_ps;
      to_help_ps_ -= step_ps;
      if (wait_ps != step_ps) return;
      if (to_help_ps_ == 0) help(top);
      if (to_word_ps_ == 0) half_word(top, links);
    }
  }
  template <class Top>
  static void out(const Top&, const Surroundings&) {}

 private:
  static constexpr std::uint64_t kHalfWordPs = WordPs / 2, kHalfHelpPs = WordPs * 41 / 80;
  static constexpr unsigned kPortBits = 20, kAllPorts = 0xF;

  template <class Top>
  void help(Top& top) {
    to_help_ps_ = kHalfHelpPs;
    top.help_clk = !top.help_clk;
    top.eval();
  }

  template <class Top>
  void half_word(Top& top, FloorLinks& links) {
    to_word_ps_ = kHalfWordPs;
    top.ref_clk = !top.ref_clk;
    top.rx_clk = top.div_clk = top.ref_clk ? 0 : kAllPorts;
    if (top.ref_clk) {
      top.pps = links.next_pps();
    } else {
      std::array<std::uint32_t, 3> bits{};
      for (std::size_t port = 0; port < links.ends().size(); ++port) put(bits, port, links.ends()[port].next_bits());
      for (std::size_t k = 0; k < bits.size(); ++k) top.rx_bits[k] = bits[k];
    }
    top.eval();
    if (top.ref_clk) return;
    for (std::size_t port = 0; port < links.ends().size(); ++port) {
      const std::uint32_t bits = (top.tx_on >> port & 1U) != 0 ? get(top.tx_codes, port) : 0;
      links.ends()[port].take(bits);
    }
  }

  static void put(std::array<std::uint32_t, 3>& words, std::size_t port, std::uint32_t bits) {
    const std::size_t at = port * kPortBits;
    const std::uint64_t wide = std::uint64_t{bits} << at % 32;
    words[at / 32] |= static_cast<std::uint32_t>(wide);
    if (wide >> 32 != 0) words[at / 32 + 1] |= static_cast<std::uint32_t>(wide >> 32);
  }
  template <class Words>
  static std::uint32_t get(const Words& words, std::size_t port) {
    const std::size_t at = port * kPortBits;
    std::uint64_t wide = words[at / 32];
    if (at / 32 + 1 < 3) wide |= std::uint64_t{words[at / 32 + 1]} << 32;
    return static_cast<std::uint32_t>(wide >> at % 32) & ((1U << kPortBits) - 1);
  }

  std::uint64_t to_word_ps_ = kHalfWordPs, to_help_ps_ = kHalfHelpPs;
};

}  // namespace

std::unique_ptr<Simulated> simulate_km3_node(const Surroundings& around, std::uint64_t seed) {
  if (around.floors->geometry().mbps == 2500) {
    return std::make_unique<SimulatedAs<Vkm3_node_2500, Km3Links<6400, 8000>>>(around, seed);
  }
  return std::make_unique<SimulatedAs<Vkm3_node, Km3Links<12400, 25000>>>(around, seed);
}

}  // namespace nanet::gateware
