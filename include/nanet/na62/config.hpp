// SPDX-License-Identifier: Apache-2.0
// What NA62's processors are told. python/nanet/config describes every field with its unit, default and effect.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nanet/engine/config.hpp"
#include "nanet/gpu/config.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"

namespace nanet::na62 {

// Whether hot channels are masked when they are found.
enum class HotChannels : std::uint8_t { keep, mask };

// How answers are written.
struct AnswerConfig {
  std::uint8_t source_id = 0x1C;
  std::uint8_t source_sub_id = 0;
  std::uint32_t primitives_max = 255;
};

struct RichConfig {
  std::optional<engine::MergeConfig> merge;
  rich::FinderConfig finder;
  rich::Decision decision;
  HotChannels hot_channels = HotChannels::keep;
  std::optional<AnswerConfig> answers;  // none: rings are found and counted, and nothing is sent
  gpu::GpuConfig gpu;                   // its runtime cpu: no GPU. In place of its device:
  std::vector<int> gpu_devices{0};      // the links go to these in turn, and each is a consumer by itself
};

// Events that are built here and judged elsewhere, as M2EGP packets.
struct ForwardConfig {
  std::optional<engine::MergeConfig> merge;
  std::uint8_t source_id = 0x1C;
  std::uint8_t source_sub_id = 0;
  std::uint32_t packet_bytes_max = 1472;  // even, 280..8972: an event with the most hits has to fit
};

}  // namespace nanet::na62
