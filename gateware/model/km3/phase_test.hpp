// SPDX-License-Identifier: Apache-2.0
// The papers' test of a link with one latency: reset it again and again, align it, and look whether clocks and data come at the same moment as before.
#pragma once

#include <cstdint>

#include "model/km3/loop.hpp"

namespace nanet::gateware::km3 {

struct PhaseResult {
  std::uint64_t resets = 0;
  std::uint64_t not_up = 0;  // of these, after which the loop did not come up
  std::uint64_t words = 0;   // of the reference, in all
  Seen seen;

  // The most of any: 1 if all came at the same moment each time.
  std::size_t latency_values() const;
  bool one_latency() const { return resets != 0 && not_up == 0 && latency_values() == 1; }
};

PhaseResult phase_test(const Settings& settings, std::uint64_t resets);

}  // namespace nanet::gateware::km3
