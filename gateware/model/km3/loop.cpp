// SPDX-License-Identifier: Apache-2.0
#include "model/km3/loop.hpp"

#include <memory>
#include <numeric>

#include "Vkm3_fcm_2500.h"
#include "Vkm3_fcm_800.h"
#include "Vkm3_fcm_any_comma.h"
#include "Vkm3_fcm_short.h"
#include "Vkm3_shore_2500.h"
#include "Vkm3_shore_800.h"
#include "Vkm3_shore_short.h"
#include "model/km3/loop_of.hpp"

namespace nanet::gateware::km3 {
namespace {

constexpr std::uint32_t kShortWords = 800, kWords800 = 4000, kWords2500 = 12500;
constexpr std::size_t kPulses = static_cast<std::size_t>(Count::lost);

}  // namespace

void Counts::add(std::uint64_t pulses) {
  of_[kPulses] += pulses & 0xFFFF;
  for (std::size_t k = 0; k < kPulses; ++k) of_[k] += pulses >> (16 + k) & 1;
}

std::uint64_t Counts::fates() const {
  const auto begin = of_.begin();
  return std::accumulate(begin + static_cast<int>(Count::drop_crc), begin + static_cast<int>(Count::good) + 1, std::uint64_t{0});
}

std::uint64_t Counts::errors() const {
  const auto begin = of_.begin();
  return std::accumulate(begin, begin + static_cast<int>(Count::good), of_[kPulses]);
}

std::unique_ptr<Loop> make_loop(const Settings& settings) {
  switch (settings.size) {
    case Size::mbps_800: return std::make_unique<LoopOf<Vkm3_shore_800, Vkm3_fcm_800>>(settings, kWords800);
    case Size::mbps_2500: return std::make_unique<LoopOf<Vkm3_shore_2500, Vkm3_fcm_2500>>(settings, kWords2500);
    case Size::any_comma: return std::make_unique<LoopOf<Vkm3_shore_short, Vkm3_fcm_any_comma>>(settings, kShortWords);
    case Size::short_frames: break;
  }
  return std::make_unique<LoopOf<Vkm3_shore_short, Vkm3_fcm_short>>(settings, kShortWords);
}

bool bring_up(Loop& loop, std::uint32_t frames_max) {
  constexpr std::uint64_t kAtOnce = 50;  // words
  const HalfBits limit = loop.now() + HalfBits{frames_max} * loop.frame_words() * kWord;
  while (!loop.up() && loop.now() < limit) loop.run(kAtOnce);
  return loop.up();
}

}  // namespace nanet::gateware::km3
