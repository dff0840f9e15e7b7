// SPDX-License-Identifier: Apache-2.0
// A receiver that puts packets together to units, over a link made of memory.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nanet/engine/assembling_receiver.hpp"
#include "pieces.hpp"
#include "support.hpp"

namespace nanet::engine {

class AssemblingReceiverTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kTimeoutNs = 1'000'000;

  void make(AssembleConfig config = {.streams_max = 4, .units_open = 2, .timeout_us = 1000}, std::uint32_t buffer_count = 8,
            std::vector<SenderNetwork> senders = {}) {
    clop = std::make_unique<flow::Clop>(flow::ClopConfig{.name = "units",
                                                         .id = 5,
                                                         .buffer_count = buffer_count,
                                                         .buffer_bytes = 8192,
                                                         .index_capacity = Assembler::index_capacity(8192),
                                                         .huge_pages = false,
                                                         .locked = false});
    queue = std::make_unique<flow::CompletionQueue>(2 * buffer_count);
    receiver = test::kPieces.make_receiver(
        {.batch_size = 16, .senders = std::move(senders), .assemble = config},
        {.link = link, .clop = *clop, .queue = *queue, .router = flow::Router({}), .source_count = 1});
  }
  void give(const test::Piece& piece, std::uint16_t flags = 0) { link.incoming.push_back({test::make_piece(piece), flags}); }
  // All pieces of 1000 B of a unit of 3500 B, but one.
  void give_unit(std::uint64_t stream, std::uint64_t unit, std::optional<std::uint32_t> but = {}) {
    for (std::uint32_t p = 0; p < 4; ++p) {
      if (p != but)
        give({.stream = stream, .unit = unit, .place = 1000 * p, .bytes = p < 3 ? 1000u : 500u, .unit_bytes = 3500, .time = 9});
    }
  }
  void poll(std::uint64_t now_ns = 1000) {
    while (receiver->poll(now_ns) > 0) {
    }
  }
  std::uint64_t count(flow::Counter counter) const {
    return receiver->source_counters(0).value(counter) + receiver->link_counters().value(counter);
  }

  struct Got {
    Completion completion;
    UnitHead head;
    std::vector<UnitRange> present;
    std::vector<std::byte> bytes;
  };
  // The oldest unit that was handed over, given back.
  std::optional<Got> take() {
    const Completion* completion = queue->peek();
    if (completion == nullptr) return std::nullopt;
    const auto index = clop->packet_index(completion->buffer_index);
    const auto& head = *reinterpret_cast<const UnitHead*>(index.data());
    const auto* ranges = reinterpret_cast<const UnitRange*>(&head + 1);
    const auto bytes = clop->buffer(completion->buffer_index).first(completion->bytes);
    Got got{*completion, head, {ranges, ranges + head.range_count}, {bytes.begin(), bytes.end()}};
    queue->pop();
    clop->release();
    return got;
  }
  static bool is_right(const Got& got) {
    for (const UnitRange& range : got.present) {
      for (std::uint32_t b = range.begin; b < range.end; ++b) {
        if (got.bytes[b] != test::byte_of(got.head.stream, got.head.unit, b)) return false;
      }
    }
    return true;
  }

  test::MemoryLink link;
  std::unique_ptr<flow::Clop> clop;
  std::unique_ptr<flow::CompletionQueue> queue;
  std::unique_ptr<Receiver> receiver;
};

}  // namespace nanet::engine
