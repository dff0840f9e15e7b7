// SPDX-License-Identifier: Apache-2.0
// The router: which source and which CLOP a packet belongs to, by its source ID and sub-ID. Two small table look-ups.
//
// Thread rules: constant after the constructor, any thread may look.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace nanet::flow {

struct Route {
  std::uint8_t source_id;
  std::uint8_t source_sub_id;
  std::uint16_t source;  // index in the table of sources (PacketRef::source)
  std::uint16_t clop;    // index in the table of CLOPs
};

class Router {
 public:
  // Two routes with the same IDs, or with the same source index, throw SetupError.
  explicit Router(std::vector<Route> routes);

  // nullptr: not a source of ours.
  const Route* find(std::uint8_t source_id, std::uint8_t source_sub_id) const {
    const std::uint32_t route = pages_[std::size_t{page_of_[source_id]} * 256 + source_sub_id];
    return route == kNone ? nullptr : &routes_[route];
  }

  std::span<const Route> routes() const { return routes_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  std::vector<Route> routes_;
  std::array<std::uint16_t, 256> page_of_{};  // by source ID; page 0 is the empty one
  std::vector<std::uint32_t> pages_;          // 256 entries a page, by sub-ID
};

}  // namespace nanet::flow
