// SPDX-License-Identifier: Apache-2.0
// Where another process listens.
#pragma once

#include <cstdint>
#include <string>

namespace nanet::tiles {

struct Neighbour {
  std::string address;
  std::uint16_t port = 0;
};

}  // namespace nanet::tiles
