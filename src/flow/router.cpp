// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/router.hpp"

#include <string>
#include <unordered_set>
#include <utility>

#include "nanet/contract.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::flow {

Router::Router(std::vector<Route> routes) : routes_(std::move(routes)), pages_(256, kNone) {
  std::unordered_set<std::uint16_t> sources;
  for (std::uint32_t k = 0; k < routes_.size(); ++k) {
    const Route& route = routes_[k];
    const std::string ids = std::to_string(route.source_id) + "/" + std::to_string(route.source_sub_id);
    std::uint16_t& page = page_of_[route.source_id];
    if (page == 0) {
      page = static_cast<std::uint16_t>(pages_.size() / 256);
      pages_.resize(pages_.size() + 256, kNone);
    }
    std::uint32_t& entry = pages_[std::size_t{page} * 256 + route.source_sub_id];
    if (entry != kNone) {
      throw SetupError("routes cannot be set up", "source " + ids + " has two routes", "give every source one");
    }
    if (route.source > PacketRef::source_mask) {
      throw SetupError("routes cannot be set up",
                       "source " + ids + " has index " + std::to_string(route.source) + ", which a packet index cannot hold",
                       "use indices up to " + std::to_string(PacketRef::source_mask));
    }
    if (!sources.insert(route.source).second) {
      throw SetupError("routes cannot be set up",
                       "source " + ids + " has index " + std::to_string(route.source) + ", which another source has",
                       "give every source an index of its own: sequence numbers are tracked by it");
    }
    entry = k;
  }
}

}  // namespace nanet::flow
