// SPDX-License-Identifier: Apache-2.0
#include "l0tp/config.hpp"

#include <set>

#include "nanet/setup_error.hpp"

namespace nanet::l0tp {
namespace {

void check_inputs(const Config& config) {
  const std::size_t count = config.inputs.size();
  if (count < 1 || count > kInputsMax)
    throw SetupError(std::to_string(count) + " inputs", "the trigger processor has 1 to 7", "name 1 to 7 detectors");
  if (config.reference_index >= count) {
    throw SetupError("no input " + std::to_string(config.reference_index), "there are " + std::to_string(count),
                     "choose the reference among the inputs");
  }
  std::set<std::uint8_t> seen;
  for (const InputConfig& input : config.inputs) {
    if (!seen.insert(input.source_id).second) {
      throw SetupError("source ID " + std::to_string(input.source_id) + " twice", "an input is known by its source ID",
                       "give each input its own");
    }
    if (input.time_cut_ticks > kTimeCutTicksMax) {
      throw SetupError("time cut of " + std::to_string(input.time_cut_ticks) + " ticks", "three cells hold at most 511",
                       "choose 0 to 511");
    }
  }
}

void check_masks(const Config& config) {
  if (config.masks.size() > kMasksMax)
    throw SetupError(std::to_string(config.masks.size()) + " masks", "a trigger word has 16 bits", "keep 16 or fewer");
  for (const MaskConfig& mask : config.masks) {
    if (mask.downscaling == 0) throw SetupError("mask " + mask.name + " has downscaling 0", "it counts to it", "1 fires always");
    for (std::size_t i = 0; i < kInputsMax; ++i) {
      if ((mask.value[i] & ~mask.care[i]) != 0)
        throw SetupError("mask " + mask.name + " has a value where it does not care", "it could mean either", "clear that bit");
      if (i >= config.inputs.size() && mask.care[i] != 0)
        throw SetupError("mask " + mask.name + " cares for input " + std::to_string(i), "there is no such input", "clear it");
    }
  }
}

}  // namespace

void check(const Config& config) {
  check_inputs(config);
  if (config.fine_time_bits > kFineTimeBitsMax) {
    throw SetupError(std::to_string(config.fine_time_bits) + " fine time bits", "the address has 0 to 3", "choose 0 to 3");
  }
  if (config.read_lag_ticks > config.memory_ticks() / 2) {
    throw SetupError("read lag of " + std::to_string(config.read_lag_ticks) + " ticks",
                     "the memory holds " + std::to_string(config.memory_ticks()) + " and half of it is for what comes early",
                     "lower the lag or use fewer fine time bits");
  }
  check_masks(config);
}

}  // namespace nanet::l0tp
