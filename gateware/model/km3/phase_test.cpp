// SPDX-License-Identifier: Apache-2.0
#include "model/km3/phase_test.hpp"

#include <algorithm>
#include <memory>

namespace nanet::gateware::km3 {

std::size_t PhaseResult::latency_values() const {
  return std::max({seen.down.different(), seen.recovered.different(), seen.floor_tx.different(), seen.round_trip.different(),
                   seen.third.different(), seen.trip.different(), seen.phase.different()});
}

PhaseResult phase_test(const Settings& settings, std::uint64_t resets) {
  const std::unique_ptr<Loop> loop = make_loop(settings);
  PhaseResult result;
  result.resets = resets;
  for (std::uint64_t k = 0; k < resets; ++k) {
    loop->reset();
    if (!bring_up(*loop)) ++result.not_up;
  }
  result.words = loop->now() / kWord;
  result.seen = loop->seen();
  return result;
}

}  // namespace nanet::gateware::km3
