// SPDX-License-Identifier: Apache-2.0
#include "model/km3/traffic_test.hpp"

#include <algorithm>
#include <memory>

namespace nanet::gateware::km3 {
namespace {

constexpr std::uint32_t kFillFrames = 4;  // until every slot of every frame is full

}  // namespace

std::size_t TrafficResult::latency_values() const {
  return std::max({seen.express_down.different(), seen.express_up.different(), seen.down.different(), seen.round_trip.different()});
}

std::uint64_t TrafficResult::wrong() const {
  return seen.wrong_words + seen.wrong_control + seen.wrong_express + seen.wrong_times + seen.error_cut + seen.shore.errors() +
         seen.floor.errors();
}

TrafficResult traffic_test(const Settings& settings, std::uint64_t frames) {
  const std::unique_ptr<Loop> loop = make_loop(settings);
  TrafficResult result;
  result.line_mbps = settings.size == Size::mbps_2500 ? 2500 : 800;
  result.frame_words = loop->frame_words();
  result.frames = frames;
  result.up = bring_up(*loop);
  loop->express_every = loop->frame_words() * 5 / 8 +
                        1;  // frames from the floor have room for two; at any place of a frame, sooner or later
  loop->run(frames * loop->frame_words());
  loop->busy_up = loop->busy_down = true;
  loop->run(kFillFrames * loop->frame_words());
  const std::uint64_t before = loop->seen().payload_words;
  loop->run(frames * loop->frame_words());
  result.seen = loop->seen();
  const std::uint64_t words = frames * loop->frame_words();
  result.payload_fraction = static_cast<double>(result.seen.payload_words - before) / static_cast<double>(words);
  return result;
}

}  // namespace nanet::gateware::km3
