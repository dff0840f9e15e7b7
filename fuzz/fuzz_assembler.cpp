// SPDX-License-Identifier: Apache-2.0
// Any packets, time-outs and pauses: the assembler must do what its model does, call by call, and write into its own units only. With packets that
// count in packets there is no model: then every packet and every unit is counted once, and what the consumer holds stays as it is.
//
// Input: 4 bytes of configuration, then one byte an operation; a packet takes as many more as it asks for.
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "../tests/unit/engine/assembler_model.hpp"
#include "fuzz_common.hpp"

namespace {

using namespace nanet;
using namespace nanet::engine;
using fuzz::require;

void beside_the_model(fuzz::Bytes& bytes, const AssembleConfig& config, std::uint32_t buffers) {
  const auto next = [&](std::uint32_t below) { return bytes.take() % below; };
  test::AssemblerRig rig(config, buffers);
  while (!bytes.empty()) {
    switch (next(16)) {
      case 0: rig.wait(std::uint64_t{1} + 16 * next(256)); break;
      case 1: rig.expire(next(2) == 0); break;
      case 2: rig.flush(); break;
      case 3:
      case 4: rig.give_back(); break;
      default: rig.take(next);
    }
    const std::string difference = rig.difference();
    require(difference.empty(), difference.c_str());
  }
}

void with_counted_packets(fuzz::Bytes& bytes, const AssembleConfig& config, std::uint32_t buffers) {
  constexpr std::uint32_t kBytes = test::AssemblerModel::kBufferBytes;
  const auto next = [&](std::uint32_t below) { return bytes.take() % below; };
  flow::Clop clop({.name = "units",
                   .buffer_count = buffers,
                   .buffer_bytes = kBytes,
                   .index_capacity = Assembler::index_capacity(kBytes),
                   .huge_pages = false,
                   .locked = false});
  flow::CompletionQueue queue(2 * buffers);
  Assembler assembler(config, clop, queue);
  std::deque<std::pair<std::uint32_t, std::vector<std::byte>>> held;
  const auto copy_of = [&](std::uint32_t buffer) {
    return std::vector<std::byte>(clop.buffer(buffer).begin(), clop.buffer(buffer).end());
  };
  std::uint64_t now_ns = 1, packets = 0;
  const std::uint64_t extremes[] = {0, kBytes, UINT32_MAX, std::uint64_t{1} << 63, UINT64_MAX};
  while (!bytes.empty()) {
    UnitFacts facts{.stream = next(3), .unit = next(6), .place = next(32) == 0 ? extremes[next(5)] : next(6)};
    facts.place_is_index = next(4) != 0;
    facts.unit_packets = next(32) == 0 ? extremes[next(5)] : next(3) == 0 ? 4 : 0;
    facts.unit_bytes = next(32) == 0 ? extremes[next(5)] : 0;
    facts.ends_unit = next(8) == 0;
    facts.payload_bytes = next(6) == 0 ? next(40) : 16;
    const std::vector<std::byte> payload(facts.payload_bytes, static_cast<std::byte>(++packets));
    assembler.take(facts, payload, now_ns += next(8) == 0 ? 3000 : 1);
    if (next(8) == 0) assembler.expire(now_ns, Assembler::Rest::none);
    while (const Completion* completion = queue.peek()) {
      held.emplace_back(completion->buffer_index, copy_of(completion->buffer_index));
      queue.pop();
    }
    for (const auto& [buffer, content] : held) require(copy_of(buffer) == content, "a buffer of the consumer changed");
    if (!held.empty() && next(2) == 0) {
      held.pop_front();
      clop.release();
    }
  }
  assembler.flush();
  const auto count = [&](flow::Counter counter) { return assembler.counters().value(counter); };
  using flow::Counter;
  require(packets == count(Counter::packets_accepted) + count(Counter::packets_duplicate) + count(Counter::packets_overlap) +
                         count(Counter::packets_bad_place) + count(Counter::packets_bad_unit) + count(Counter::packets_unit_too_long) +
                         count(Counter::packets_no_stream) + count(Counter::packets_scattered) + count(Counter::packets_late) +
                         count(Counter::packets_clop_full) + count(Counter::packets_marker),
          "every packet has one name");
  require(count(Counter::units_begun) == count(Counter::units_handed_over) + count(Counter::units_discarded),
          "every unit has one name");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kInputBytesMax = 2048;
  if (size > kInputBytesMax) return 0;
  fuzz::Bytes bytes(data, size);
  const std::uint32_t units_open = 1 + bytes.take() % 3, buffers = 2u << bytes.take() % 4;
  const AssembleConfig config{.streams_max = 3,
                              .units_open = units_open,
                              .timeout_us = 5,
                              .incomplete = bytes.take() % 2 == 0 ? IncompletePolicy::drop : IncompletePolicy::process};
  if (bytes.take() % 2 == 0) {
    beside_the_model(bytes, config, buffers);
  } else {
    with_counted_packets(bytes, config, buffers);
  }
  return 0;
}
