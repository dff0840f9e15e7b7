// SPDX-License-Identifier: Apache-2.0
#include "model/torus/shape.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <stdexcept>

namespace nanet::torus {
namespace {

constexpr std::uint64_t kHotSpotOneOf = 8;

using Nodes = std::array<std::uint32_t, 3>;

std::string text_of(const Nodes& nodes) {
  return std::to_string(nodes[0]) + "x" + std::to_string(nodes[1]) + "x" + std::to_string(nodes[2]);
}

[[noreturn]] void refuse(const std::string& text, const Nodes& most) {
  throw std::invalid_argument(text + " is no torus (at most " + text_of(most) + " nodes, at least 2) write 4x4x4");
}

// 0 to below, with the high bits of 32.
std::uint32_t scaled(std::uint64_t random, std::uint32_t below) {
  return static_cast<std::uint32_t>(((random & 0xFFFF'FFFF) * below) >> 32);
}

// Both halves of the node's number change places; as many bits as make an even number of them.
std::uint32_t transposed(std::uint32_t node, std::uint32_t nodes) {
  const auto half = static_cast<unsigned>(std::countr_zero(nodes)) / 2;
  return (node >> half) | ((node & ((1u << half) - 1)) << half);
}

}  // namespace

Shape::Shape(Nodes nodes, const Nodes& most) : nodes_(nodes) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (nodes[d] < 1 || nodes[d] > most[d]) refuse(text(), most);
  }
  if (this->nodes() < 2) refuse(text(), most);
}

Shape Shape::read(std::string_view text, const Nodes& most) {
  std::array<std::uint32_t, 3> nodes{1, 1, 1};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t d = 0; d < 3; ++d) {
    const auto [next, error] = std::from_chars(at, end, nodes[d]);
    if (error != std::errc()) refuse(std::string("'").append(text).append("'"), most);
    at = next;
    if (at == end) return Shape(nodes, most);
    if (*at++ != 'x') break;
  }
  refuse(std::string("'").append(text).append("'"), most);
}

std::string Shape::text() const { return text_of(nodes_); }

Place Shape::place(std::uint32_t node) const {
  return {{node % nodes_[0], node / nodes_[0] % nodes_[1], node / nodes_[0] / nodes_[1]}};
}

std::uint32_t Shape::neighbour(std::uint32_t node, std::size_t port) const {
  Place there = place(node);
  const std::uint32_t k = nodes_[port / 2];
  std::uint32_t& x = there.at[port / 2];
  x = (x + (port % 2 == 0 ? 1 : k - 1)) % k;
  return this->node(there);
}

std::uint32_t Shape::distance(std::uint32_t from, std::uint32_t to) const {
  const Place a = place(from), b = place(to);
  std::uint32_t links = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::uint32_t ahead = (b.at[d] + nodes_[d] - a.at[d]) % nodes_[d];
    links += std::min(ahead, nodes_[d] - ahead);
  }
  return links;
}

std::optional<std::string> refusal(Pattern pattern, const Shape& shape) {
  const std::uint32_t nodes = shape.nodes();
  if (pattern == Pattern::transpose && (!std::has_single_bit(nodes) || std::countr_zero(nodes) % 2 != 0)) {
    return "transpose is not for " + shape.text() + " (it changes the halves of a node's number) take 4, 16, 64 or 256 nodes";
  }
  if (pattern == Pattern::rotate && (shape.of(0) != shape.of(1) || shape.of(1) != shape.of(2))) {
    return "rotate is not for " + shape.text() + " (x, y and z change places) take as many nodes in each dimension";
  }
  return std::nullopt;
}

std::uint32_t destination(Pattern pattern, const Shape& shape, std::uint32_t from, std::uint64_t random) {
  if (pattern == Pattern::hot_spot && (random >> 32) % kHotSpotOneOf == 0) return 0;
  if (pattern == Pattern::uniform || pattern == Pattern::hot_spot) return scaled(random, shape.nodes());
  if (pattern == Pattern::transpose) return transposed(from, shape.nodes());
  const Place here = shape.place(from);
  Place there = here;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::uint32_t k = shape.of(d), x = here.at[d];
    if (pattern == Pattern::neighbour) there.at[d] = (x + 1) % k;
    if (pattern == Pattern::tornado) there.at[d] = (x + (k + 1) / 2 - 1) % k;
    if (pattern == Pattern::complement) there.at[d] = k - 1 - x;
    if (pattern == Pattern::rotate) there.at[d] = here.at[(d + 1) % 3];
  }
  return shape.node(there);
}

}  // namespace nanet::torus
