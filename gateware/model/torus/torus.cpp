// SPDX-License-Identifier: Apache-2.0
#include "model/torus/torus.hpp"

#include <algorithm>
#include <stdexcept>

namespace nanet::torus {
namespace {

constexpr std::uint32_t kWireCyclesMax = 4096;
constexpr std::size_t other_end(std::size_t port) { return port ^ 1; }

}  // namespace

Torus::Torus(const Settings& settings) : settings_(settings) {
  if (settings.wire_cycles < 2 || settings.wire_cycles > kWireCyclesMax) {
    throw std::invalid_argument("a wire of " + std::to_string(settings.wire_cycles) +
                                " cycles (the nodes could not be simulated apart) choose 2 to " + std::to_string(kWireCyclesMax));
  }
  const Shape& shape = settings_.shape;
  ahead_cycles_ = settings.wire_cycles - 1;
  wires_.assign(kLinks * shape.nodes(), Wire(ahead_cycles_));
  was_cut_.assign(wires_.size(), false);
  nodes_.reserve(shape.nodes());
  for (std::uint32_t n = 0; n < shape.nodes(); ++n) {
    std::array<const Wire*, kLinks> in{};
    std::array<Wire*, kLinks> out{};
    std::uint32_t up = 0;
    for (std::size_t port = 0; port < kLinks; ++port) {
      if (!shape.has_link(port)) continue;
      in[port] = &wires_[kLinks * shape.neighbour(n, port) + other_end(port)];
      out[port] = &wires_[kLinks * n + port];
      up |= 1u << port;
    }
    nodes_.emplace_back(shape, n, in, out);
    links_up_.push_back(up);
  }
  team_ = std::make_unique<Team>(settings.threads, nodes_.size());
}

void Torus::set_load(const Load& load) {
  for (Node& node : nodes_) node.source().set_load(load);
}

void Torus::set_link(std::uint32_t node, std::size_t port, bool up) {
  const auto set = [this, up](std::uint32_t end, std::size_t at) {
    links_up_[end] = up ? links_up_[end] | 1u << at : links_up_[end] & ~(1u << at);
    nodes_[end].set_links(links_up_[end]);
  };
  const std::uint32_t there = shape().neighbour(node, port);
  set(node, port);
  set(there, other_end(port));
  was_cut_[kLinks * node + port] = was_cut_[kLinks * there + other_end(port)] = true;
}

void Torus::set_cable(std::uint32_t node, std::size_t port, bool whole) {
  for (const std::size_t wire : {kLinks * node + port, kLinks * shape().neighbour(node, port) + other_end(port)}) {
    wires_[wire].set_whole(whole);
    was_cut_[wire] = true;
  }
}

void Torus::run(std::uint64_t cycles) {
  const std::uint64_t end = cycle_ + cycles;
  team_->run(cycle_, end, ahead_cycles_, [this](std::size_t n, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t cycle = from; cycle < to; ++cycle) nodes_[n].step(cycle, window_);
  });
  cycle_ = end;
}

bool Torus::drain(std::uint64_t cycles) {
  for (Node& node : nodes_) node.source().stop();
  const std::uint64_t step = 4ull * settings_.wire_cycles + 64;  // longer than a credit needs to say that something was lost
  for (std::uint64_t k = 0; k < cycles; k += step) {
    run(step);
    if (!is_empty()) continue;
    run(step);  // what was on the way over a link that was cut counts as lost until it comes
    return is_empty();
  }
  return is_empty();
}

bool Torus::is_empty() const {
  const bool all_in = std::ranges::all_of(nodes_, [](const Node& node) { return node.source().waiting() == 0; });
  return all_in && books().balance();
}

Books Torus::books() const {
  Books all;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    all.injected += node.source().injected();
    all.good += node.sink().good();
    all.flagged += node.sink().flagged();
    all.wrong += node.sink().wrong();
    all.skipped += node.sink().skipped();
    all.router += node.router();
    for (std::size_t port = 0; port < kLinks; ++port) {
      const LinkCounts& link = node.link(port);
      all.links += link;
      if (was_cut_[kLinks * n + port]) {
        const LinkCounts& there = nodes_[shape().neighbour(static_cast<std::uint32_t>(n), port)].link(other_end(port));
        all.in_wires += link.sent - there.came() - there.drop_header - there.drop_lost;
      }
    }
  }
  return all;
}

std::string Torus::problem() const {
  std::vector<std::uint64_t> from(nodes_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = nodes_[n];
    const std::string name = "node " + std::to_string(n) + ": ";
    std::uint64_t in = node.source().injected(), out = node.sink().good() + node.sink().flagged() + node.sink().wrong();
    for (std::size_t port = 0; port < kLinks; ++port) {
      in += node.link(port).came();
      out += node.link(port).sent + node.link(port).drop_down;
    }
    const RouterCounts& router = node.router();
    if (in != router.good + router.drops())
      return name + std::to_string(in) + " packets came in, " + std::to_string(router.good) + " left";
    if (out != router.good)
      return name + std::to_string(router.good) + " packets left the router, " + std::to_string(out) + " were taken";
    for (std::size_t sender = 0; sender < nodes_.size(); ++sender)
      from[sender] += node.sink().from(static_cast<std::uint32_t>(sender));
  }
  const Books all = books();
  if (!all.balance()) return "injected is not delivered and lost";
  for (std::size_t n = 0; all.losses() == 0 && all.wrong == 0 && n < nodes_.size(); ++n) {
    if (from[n] != nodes_[n].source().injected())
      return "node " + std::to_string(n) + ": not all of its packets came, and none was lost";
  }
  return {};
}

}  // namespace nanet::torus
