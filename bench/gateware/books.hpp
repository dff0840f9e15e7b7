// SPDX-License-Identifier: Apache-2.0
// What the NIC has counted of the frames that came.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "link/gateware/nic_driver.hpp"

namespace nanet::bench {

struct Books {
  std::uint64_t stored = 0;
  std::uint64_t all = 0;                                          // stored, or dropped under one name
  std::vector<std::pair<std::string_view, std::uint64_t>> drops;  // those that are not 0, by the name of counts.toml
};

Books read_books(const link::gateware::NicDriver& driver);

}  // namespace nanet::bench
