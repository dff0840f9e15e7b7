// SPDX-License-Identifier: Apache-2.0
// A torus: how many nodes there are in each dimension, who is whose neighbour, and where traffic patterns send a packet. docs/design/torus.md
//
// Thread rules: values and functions without state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nanet::torus {

inline constexpr std::size_t kLinks = 6;  // to x+1, x-1, y+1, y-1, z+1, z-1
inline constexpr std::array<std::uint32_t, 3> kNodesMax{64, 32, 32};

struct Place {
  std::array<std::uint32_t, 3> at{};  // x, y, z

  bool operator==(const Place&) const = default;
};

class Shape {
 public:
  // Throws std::invalid_argument ("problem (why) suggestion") for what no torus of at most so many nodes can be.
  explicit Shape(std::array<std::uint32_t, 3> nodes, const std::array<std::uint32_t, 3>& most = kNodesMax);
  // "4x4x4"; what is left out is 1. Throws as above
  static Shape read(std::string_view text, const std::array<std::uint32_t, 3>& most = kNodesMax);

  std::uint32_t of(std::size_t dimension) const { return nodes_[dimension]; }
  std::uint32_t nodes() const { return nodes_[0] * nodes_[1] * nodes_[2]; }
  std::uint32_t diameter() const { return nodes_[0] / 2 + nodes_[1] / 2 + nodes_[2] / 2; }
  std::string text() const;

  Place place(std::uint32_t node) const;
  std::uint32_t node(const Place& place) const { return place.at[0] + nodes_[0] * (place.at[1] + nodes_[1] * place.at[2]); }
  bool has_link(std::size_t port) const { return nodes_[port / 2] > 1; }
  std::uint32_t neighbour(std::uint32_t node, std::size_t port) const;
  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const;  // links, the shorter way round in each dimension

 private:
  std::array<std::uint32_t, 3> nodes_;
};

// As BookSim defines them; hot_spot: one packet of eight to node 0, the others as uniform.
enum class Pattern : std::uint8_t { uniform, neighbour, tornado, complement, transpose, rotate, hot_spot };
inline constexpr std::array<std::string_view, 7> kPatternNames{"uniform",   "neighbour", "tornado", "complement",
                                                               "transpose", "rotate",    "hot_spot"};

// Why this pattern is not for this shape; nothing: it is.
std::optional<std::string> refusal(Pattern pattern, const Shape& shape);

// random: 64 random bits.
std::uint32_t destination(Pattern pattern, const Shape& shape, std::uint32_t from, std::uint64_t random);

}  // namespace nanet::torus
