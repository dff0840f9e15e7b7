// SPDX-License-Identifier: Apache-2.0
#include "rich/ring_sums.hpp"

#include "nanet/rich/pm_map.hpp"

namespace nanet::rich {
namespace {

constexpr std::array<RingSums, kRingSumRows> make_table() {
  std::array<RingSums, kRingSumRows> table{};
  for (std::size_t channel = 0; channel < kRingSumRows; ++channel) {
    const Pm& pm = kPmMap[channel];
    if (pm.mapped) table[channel] = make_ring_sums_row(pm.i, pm.j);
  }
  return table;
}

}  // namespace

alignas(64) constinit const std::array<RingSums, kRingSumRows> kRingSumTable = make_table();

}  // namespace nanet::rich
