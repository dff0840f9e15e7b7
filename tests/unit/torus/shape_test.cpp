// SPDX-License-Identifier: Apache-2.0
// Places, neighbours and distances of a torus, and where patterns send packets, against the definitions counted out by hand and by search.
#include <gtest/gtest.h>

#include <queue>
#include <stdexcept>

#include "model/torus/shape.hpp"

namespace nanet::torus {
namespace {

// Links from a node to each other, by search.
std::vector<std::uint32_t> distances(const Shape& shape, std::uint32_t from) {
  std::vector<std::uint32_t> found(shape.nodes(), ~0u);
  found[from] = 0;
  std::queue<std::uint32_t> next;
  next.push(from);
  while (!next.empty()) {
    const std::uint32_t node = next.front();
    next.pop();
    for (std::size_t port = 0; port < kLinks; ++port) {
      const std::uint32_t there = shape.neighbour(node, port);
      if (!shape.has_link(port) || found[there] != ~0u) continue;
      found[there] = found[node] + 1;
      next.push(there);
    }
  }
  return found;
}

TEST(Shape, DistancesAreThoseOfASearch) {
  for (const Shape& shape : {Shape({2, 1, 1}), Shape({5, 3, 2}), Shape({4, 4, 4}), Shape({1, 6, 1})}) {
    for (std::uint32_t from = 0; from < shape.nodes(); ++from) {
      const std::vector<std::uint32_t> found = distances(shape, from);
      for (std::uint32_t to = 0; to < shape.nodes(); ++to) EXPECT_EQ(shape.distance(from, to), found[to]) << shape.text();
      EXPECT_EQ(shape.node(shape.place(from)), from);
    }
  }
}

TEST(Shape, ACableHasTwoEnds) {
  const Shape shape({4, 3, 2});
  for (std::uint32_t node = 0; node < shape.nodes(); ++node) {
    for (std::size_t port = 0; port < kLinks; ++port) EXPECT_EQ(shape.neighbour(shape.neighbour(node, port), port ^ 1), node);
  }
}

TEST(Shape, IsReadAndRefused) {
  EXPECT_EQ(Shape::read("4x3x2").text(), "4x3x2");
  EXPECT_EQ(Shape::read("8").text(), "8x1x1");
  EXPECT_EQ(Shape::read("64x32x32").nodes(), 65536u);
  for (const char* text : {"", "x", "4x", "4x4x4x4", "0x4", "65", "4x33", "1", "4x4x4 ", "-4"}) {
    EXPECT_THROW(Shape::read(text), std::invalid_argument) << text;
  }
}

TEST(Shape, WhatIsRefusedIsToldTheLimitThatHolds) {
  const auto refusal_of = [](const char* text, const std::array<std::uint32_t, 3>& most) -> std::string {
    try {
      Shape::read(text, most);
    } catch (const std::invalid_argument& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_EQ(refusal_of("65", kNodesMax), "65x1x1 is no torus (at most 64x32x32 nodes, at least 2) write 4x4x4");
  for (const char* text : {"0x1x1", "5x1x1"})
    EXPECT_EQ(refusal_of(text, {4, 4, 4}), std::string(text) + " is no torus (at most 4x4x4 nodes, at least 2) write 4x4x4");
  EXPECT_EQ(refusal_of("4x4x4", {4, 4, 4}), "");
}

std::uint32_t to(Pattern pattern, const Shape& shape, Place from) { return destination(pattern, shape, shape.node(from), 0); }

TEST(Pattern, DestinationsAreThoseOfTheirDefinitions) {
  const Shape cube({4, 4, 4}), long_one({8, 8, 8});
  EXPECT_EQ(cube.place(to(Pattern::neighbour, cube, {{3, 0, 2}})), (Place{{0, 1, 3}}));
  EXPECT_EQ(cube.place(to(Pattern::tornado, cube, {{3, 0, 2}})), (Place{{0, 1, 3}}));          // ceil(4 / 2) - 1 = 1
  EXPECT_EQ(long_one.place(to(Pattern::tornado, long_one, {{7, 0, 2}})), (Place{{2, 3, 5}}));  // 3
  EXPECT_EQ(cube.place(to(Pattern::complement, cube, {{3, 0, 2}})), (Place{{0, 3, 1}}));
  EXPECT_EQ(cube.place(to(Pattern::rotate, cube, {{3, 0, 2}})), (Place{{0, 2, 3}}));
  EXPECT_EQ(destination(Pattern::transpose, cube, 0b110'001, 0), 0b001'110u);
  EXPECT_EQ(Shape({4, 4, 1}).place(to(Pattern::transpose, Shape({4, 4, 1}), {{1, 3, 0}})), (Place{{3, 1, 0}}));
  EXPECT_FALSE(refusal(Pattern::transpose, cube).has_value());
  EXPECT_TRUE(refusal(Pattern::transpose, long_one).has_value());
  EXPECT_TRUE(refusal(Pattern::transpose, Shape({6, 6, 1})).has_value());
  EXPECT_TRUE(refusal(Pattern::rotate, Shape({4, 4, 2})).has_value());
}

TEST(Pattern, UniformGoesToAllAndAHotSpotToOneMore) {
  const Shape shape({5, 3, 2});
  std::vector<int> uniform(shape.nodes()), hot(shape.nodes());
  std::uint64_t state = 1;
  constexpr int kPackets = 60'000;
  for (int k = 0; k < kPackets; ++k) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t random = state ^ (state >> 29);
    ++uniform[destination(Pattern::uniform, shape, 3, random)];
    ++hot[destination(Pattern::hot_spot, shape, 3, random)];
  }
  const int mean = kPackets / static_cast<int>(shape.nodes());
  for (const int count : uniform) EXPECT_NEAR(count, mean, mean / 5);
  EXPECT_NEAR(hot[0], kPackets / 8 + mean * 7 / 8, kPackets / 80);
  for (std::size_t n = 1; n < hot.size(); ++n) EXPECT_NEAR(hot[n], mean * 7 / 8, mean / 5);
}

}  // namespace
}  // namespace nanet::torus
