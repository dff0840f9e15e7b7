// SPDX-License-Identifier: Apache-2.0
// What the tests of an engine with a (fake) GPU share: its configuration, answers as they should be, and answers as they come.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <span>

#include "../engine/sockets.hpp"
#include "../engine/support.hpp"
#include "nanet/event/parts.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::engine::test {

using Answers = std::multimap<std::uint64_t, std::uint16_t>;  // primitive ID by time

inline constexpr std::uint8_t kAnswerSubId = 7;

inline NodeConfig gpu_config(std::uint16_t port, std::uint16_t answer_port, Topology topology) {
  NodeConfig config = config_for(port, answer_port, topology);
  config.rich.gpu.runtime = gpu::Runtime::persistent;
  return config;
}

inline Answers expected_answers(std::span<const TestEvent> events) {
  Answers answers;
  for (const TestEvent& event : events) {
    const rich::EventRings rings = rich::find_rings_scalar({}, {event.hits.data(), static_cast<std::uint32_t>(event.hits.size())});
    answers.emplace(event::event_key(event.time.timestamp, event.time.fine_time), rich::primitive_id(rings, rich::Decision{}));
  }
  return answers;
}

// Takes answer packets until there are `packets` more, or none comes for so long.
inline std::size_t collect(PlainSocket& l0tp, Answers& answers, std::size_t packets, int timeout_ms) {
  Bytes room(2048);
  std::size_t count = 0;
  for (; count < packets; ++count) {
    const std::size_t bytes = l0tp.receive(room, timeout_ms);
    if (bytes == 0) break;
    wire::MtpView view;
    EXPECT_EQ(wire::MtpView::parse(std::span(room).first(bytes), view), wire::ParseError::none);
    EXPECT_EQ(view.source_sub_id(), kAnswerSubId);
    wire::for_each_primitive(view, [&](wire::Primitive p) { answers.emplace(event::event_key(p.timestamp, p.fine_time), p.id); });
  }
  return count;
}

}  // namespace nanet::engine::test
