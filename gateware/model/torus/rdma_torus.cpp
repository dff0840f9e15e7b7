// SPDX-License-Identifier: Apache-2.0
#include "model/torus/rdma_torus.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace nanet::torus {
namespace {

constexpr std::uint32_t kStartAlign = 16;  // of a region

}  // namespace

const Shape& RdmaTorus::checked(const Shape& shape, std::uint32_t wire_cycles) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (shape.of(d) > kShapeMax[d])
      throw std::invalid_argument("a torus of " + shape.text() +
                                  " (the table of messages has 4x4x4 nodes) choose at most 4 a dimension");
  }
  if (wire_cycles < 2) throw std::invalid_argument("a wire of less than 2 cycles (its last is in the node) choose 2 or more");
  return shape;
}

RdmaTorus::RdmaTorus(const Shape& shape, std::uint32_t wire_cycles, std::span<std::uint8_t> memory, unsigned threads)
    : shape_(checked(shape, wire_cycles)), wire_cycles_(wire_cycles) {
  wires_.assign(kLinks * shape.nodes(), Wire(wire_cycles - 1));
  keys_.assign(shape.nodes(), 0);
  withdrawn_.assign(shape.nodes(), 0);
  nodes_.reserve(shape.nodes());
  for (std::uint32_t n = 0; n < shape.nodes(); ++n) {
    std::array<const Wire*, kLinks> in{};
    std::array<Wire*, kLinks> out{};
    for (std::size_t port = 0; port < kLinks; ++port) {
      if (!shape.has_link(port)) continue;
      in[port] = &wires_[kLinks * shape.neighbour(n, port) + (port ^ 1)];
      out[port] = &wires_[kLinks * n + port];
    }
    nodes_.emplace_back(shape, n, in, out, memory.empty() ? memory : memory.subspan(std::size_t{n} * kHostBytes, kHostBytes));
  }
  team_ = std::make_unique<Team>(threads, nodes_.size());
}

void RdmaTorus::check_node(std::uint32_t node) const {
  if (node >= nodes_.size())
    throw std::invalid_argument("node " + std::to_string(node) + " is none (a torus of " + shape_.text() +
                                " counts them from 0) give 0 to " + std::to_string(nodes_.size() - 1));
}

void RdmaTorus::check_message(std::uint32_t from, std::uint32_t to, std::uint32_t bytes, std::uint64_t offset) const {
  check_node(from);
  check_node(to);
  if (bytes < 1 || bytes > kMessageBytesMax)
    throw std::invalid_argument("a message of " + std::to_string(bytes) + " B cannot be sent (1 to " +
                                std::to_string(kMessageBytesMax) + ") make several");
  if (offset >= kOffsetsMax)
    throw std::invalid_argument("byte " + std::to_string(offset) + " of a region cannot be named (an offset has 40 bits) give less");
}

Region RdmaTorus::share(std::uint32_t node, std::uint32_t offset, std::uint32_t bytes, bool is_readable, bool is_writable) {
  check_node(node);
  if (offset % kStartAlign != 0 || offset > kHostBytes || bytes > kHostBytes - offset)
    throw std::invalid_argument("a region of " + std::to_string(bytes) + " B from " + std::to_string(offset) +
                                " (no memory of the node) begin at a multiple of 16 and stay within " + std::to_string(kHostBytes) +
                                " B");
  if (keys_.at(node) == kKeys) throw std::invalid_argument("no more regions (a node has 16) share fewer");
  const Region region{.node = node, .index = keys_[node]++, .nonce = nonce_};
  nonce_ = nonce_ * 1'664'525 + 1'013'904'223;
  nodes_[node].set_key({.index = region.index,
                        .is_readable = is_readable,
                        .is_writable = is_writable,
                        .nonce = region.nonce,
                        .offset = offset,
                        .bytes = bytes});
  return region;
}

void RdmaTorus::withdraw(const Region& region) {
  check_node(region.node);
  if (region.index >= keys_[region.node])
    throw std::invalid_argument("region " + std::to_string(region.index) + " of node " + std::to_string(region.node) +
                                " cannot be withdrawn (it was not shared) give what share returned");
  if ((withdrawn_[region.node] >> region.index & 1) != 0)
    throw std::invalid_argument("region " + std::to_string(region.index) + " of node " + std::to_string(region.node) +
                                " cannot be withdrawn (it was before) withdraw it once");
  withdrawn_[region.node] = static_cast<std::uint16_t>(withdrawn_[region.node] | 1u << region.index);
  nodes_[region.node].set_key({.index = region.index, .is_valid = false});
}

void RdmaTorus::put(std::uint32_t from, std::uint32_t local, std::uint32_t bytes, const Region& to, std::uint64_t offset,
                    std::uint16_t process) {
  check_message(from, to.node, bytes, offset);
  if (local > kHostBytes || bytes > kHostBytes - local)
    throw std::invalid_argument(std::to_string(bytes) + " B from " + std::to_string(local) + " cannot be sent (a node has " +
                                std::to_string(kHostBytes) + " B) stay within its memory");
  nodes_[from].post({.kind = RdmaKind::put,
                     .to = shape_.place(to.node),
                     .process = process,
                     .nonce = to.nonce,
                     .region = to.index,
                     .offset = offset,
                     .local = RdmaNode::device_address(local),
                     .bytes = bytes});
}

void RdmaTorus::get(const Region& into, std::uint64_t into_offset, std::uint32_t bytes, const Region& of, std::uint64_t offset,
                    std::uint64_t tag) {
  check_message(into.node, of.node, bytes, offset);
  check_message(into.node, of.node, bytes, into_offset);
  nodes_[into.node].post({.kind = RdmaKind::get,
                          .to = shape_.place(of.node),
                          .nonce = of.nonce,
                          .region = of.index,
                          .offset = offset,
                          .local = std::uint64_t{into.index} << 40 | into_offset,
                          .local_nonce = into.nonce,
                          .bytes = bytes,
                          .tag = tag});
}

void RdmaTorus::event(std::uint32_t from, std::uint32_t to, std::uint16_t value, std::uint16_t process) {
  check_node(from);
  check_node(to);
  nodes_[from].post({.kind = RdmaKind::event, .to = shape_.place(to), .process = process, .offset = value});
}

// "z+" of link 4.
static std::string direction_text(std::size_t port) { return {"xyz?"[std::min<std::size_t>(port / 2, 3)], "+-"[port % 2]}; }

void RdmaTorus::set_cable(std::uint32_t node, std::size_t port, bool whole) {
  check_node(node);
  if (port >= kLinks || !shape_.has_link(port))
    throw std::invalid_argument("node " + std::to_string(node) + " has no cable " + direction_text(port) + " (a torus of " +
                                shape_.text() + " has one node in that dimension) give one of a dimension of two nodes or more");
  wires_[kLinks * node + port].set_whole(whole);
  wires_[kLinks * shape_.neighbour(node, port) + (port ^ 1)].set_whole(whole);
}

void RdmaTorus::run(std::uint64_t cycles) {
  const std::uint64_t end = cycle_ + cycles;
  team_->run(cycle_, end, wire_cycles_ - 1, [this](std::size_t n, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t cycle = from; cycle < to; ++cycle) nodes_[n].step(cycle);
  });
  cycle_ = end;
}

void RdmaTorus::begin_reading() {
  for (RdmaNode& node : nodes_) node.begin_reading();
}

bool RdmaTorus::has_read() const {
  return std::ranges::all_of(nodes_, [](const RdmaNode& node) { return node.has_read(); });
}

void RdmaTorus::read_registers() {
  begin_reading();
  while (!has_read()) run(wire_cycles_ - 1);
}

std::vector<std::uint64_t> RdmaTorus::activity() const {
  std::vector<std::uint64_t> now;
  for (const RdmaNode& node : nodes_) {
    const RdmaCounts& counts = node.counts();
    now.insert(now.end(), counts.packets.begin(), counts.packets.end());
    for (const std::uint64_t one : {node.jobs(), counts.missed, counts.refused, counts.gone_good, counts.gone_bad})
      now.push_back(one);
    now.push_back(node.completion_cycle());
  }
  return now;
}

bool RdmaTorus::settle(std::uint64_t cycles) {
  const std::uint64_t step = quiet_cycles(wire_cycles_);
  std::vector<std::uint64_t> before;
  for (std::uint64_t k = 0; k < cycles; k += step) {
    run(step);
    std::vector<std::uint64_t> now = activity();
    const bool all_begun = std::ranges::all_of(nodes_, [](const RdmaNode& node) { return node.jobs() == 0; });
    if (all_begun && now == before) return true;
    before = std::move(now);
  }
  return false;
}

}  // namespace nanet::torus
