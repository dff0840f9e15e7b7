// SPDX-License-Identifier: Apache-2.0
#include "km3_emulate/config.hpp"

#include <algorithm>

#include "nanet/config/read.hpp"

namespace nanet::km3_emulate {

std::optional<config::Problem> MuonConfig::check() const {
  return config::first_broken(
      {{cos_zenith_min > cos_zenith_max,
        {"cos_zenith_min",
         "cos_zenith_min " + config::text_of(cos_zenith_min) + " is above cos_zenith_max " + config::text_of(cos_zenith_max),
         "no zenith is between them", "swap them"}}});
}

std::optional<config::Problem> FaultsConfig::check() const {
  const double sum = loss + duplicate + reorder + damage;
  return config::first_broken({{sum > 1,
                                {"loss", "loss, duplicate, reorder and damage add up to " + config::text_of(sum),
                                 "a packet meets one fault at most", "lower them to 1 together"}}});
}

std::optional<config::Problem> TowerConfig::check() const {
  const auto absent = [&](const auto& list) {
    return std::ranges::any_of(list, [&](const auto& one) { return one.floor > floors; });
  };
  return config::first_broken({
      {destinations.size() != 1 && destinations.size() != floors,
       {"destinations", std::to_string(destinations.size()) + " destinations for " + std::to_string(floors) + " floors",
        "there is one for all floors, or one for each", "give 1 or " + std::to_string(floors)}},
      {!hits && samples == 0 && !hydrophones && !instruments,
       {"hits", "no floor sends anything", "there would be nothing to do", "set hits, or another kind of data"}},
      {waits_for_start && !control,
       {"waits_for_start", "waits_for_start without control", "slow control starts the run", "give control"}},
      {absent(faults.silent),
       {"faults", "faults.silent names a floor that is not there", "floors are 1 to " + std::to_string(floors), "name one of them"}},
      {absent(faults.jumps),
       {"faults", "faults.jumps names a floor that is not there", "floors are 1 to " + std::to_string(floors), "name one of them"}},
      {absent(loud),
       {"loud", "loud names a floor that is not there", "floors are 1 to " + std::to_string(floors), "name one of them"}},
  });
}

}  // namespace nanet::km3_emulate
