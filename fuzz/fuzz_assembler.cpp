// SPDX-License-Identifier: Apache-2.0
// Any packets, time-outs and pauses: the assembler must do what its model does, call by call, and write into its own units only. With packets that
// count in packets, or are of a declared format, there is no model: then every packet and every unit is counted once, and what the consumer holds stays
// as it is.
//
// Input: 4 bytes of configuration, then one byte an operation; a packet takes as many more as it asks for. With a declared format, what
// declaration_tree.hpp says.
#include <array>
#include <deque>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "../tests/unit/engine/assembler_model.hpp"
#include "declaration_tree.hpp"
#include "engine/declared_units.hpp"
#include "fuzz_common.hpp"
#include "nanet/engine/resend.hpp"
#include "nanet/engine/stream_merge.hpp"
#include "nanet/format/decoder.hpp"

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

// Requests are for what fits into a unit.
class Asked final : public Requester {
 public:
  explicit Asked(std::uint32_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}

  void ask(const MissingPart& part) override {
    require(part.begin <= part.end && part.end <= buffer_bytes_ && part.piece_bytes > 0, "what is asked for lies in the unit");
    require(part.begin < part.end || part.open_end, "something is asked for");
    std::array<std::byte, kGvcpResendBytesMax> command{};
    require(write_gvcp_resend(command, part, 1) <= command.size(), "a command is as long as it says");
    ++requests;
  }
  void flush() override {}

  std::uint64_t requests = 0;

 private:
  const std::uint32_t buffer_bytes_;
};

// An assembler without a model, and its consumer.
class Booked {
 public:
  Booked(const AssembleConfig& config, std::uint32_t buffers, std::uint32_t buffer_bytes)
      : clop_({.name = "units",
               .buffer_count = buffers,
               .buffer_bytes = buffer_bytes,
               .index_capacity = Assembler::index_capacity(buffer_bytes),
               .huge_pages = false,
               .locked = false}),
        queue_(2 * buffers),
        assembler_(config, clop_, queue_),
        asked_(buffer_bytes),
        asks_(config.resend.has_value()) {}

  void take(const UnitFacts& facts, std::span<const std::byte> payload, std::uint64_t now_ns) {
    ++packets_;
    require(assembler_.packets_to_take(16) <= 16, "no more is taken than is wanted");
    assembler_.take(facts, payload, now_ns);
  }

  void expire(std::uint64_t now_ns) {
    assembler_.expire(now_ns, Assembler::Rest::none);
    if (asks_) assembler_.ask_for_missing(asked_, now_ns, Assembler::Rest::none);
  }

  // The consumer takes what is done, and perhaps gives back the oldest of it.
  void consume(bool gives_back) {
    while (const Completion* completion = queue_.peek()) {
      held_.emplace_back(completion->buffer_index, copy_of(completion->buffer_index));
      queue_.pop();
    }
    for (const auto& [buffer, content] : held_) require(copy_of(buffer) == content, "a buffer of the consumer changed");
    if (!held_.empty() && gives_back) {
      held_.pop_front();
      clop_.release();
    }
  }

  void end() {
    assembler_.flush();
    using flow::Counter;
    require(packets_ ==
                sum({Counter::packets_accepted, Counter::packets_duplicate, Counter::packets_overlap, Counter::packets_bad_place,
                     Counter::packets_bad_unit, Counter::packets_unit_too_long, Counter::packets_no_stream,
                     Counter::packets_scattered, Counter::packets_late, Counter::packets_clop_full, Counter::packets_marker}),
            "every packet has one name");
    require(sum({Counter::units_begun}) == sum({Counter::units_handed_over, Counter::units_discarded}), "every unit has one name");
    require(sum({Counter::resends_asked}) == sum({Counter::resends_came, Counter::resends_not_came}),
            "every packet that was asked for came or did not");
    require(sum({Counter::resend_requests}) == asked_.requests, "every request is counted");
    std::uint64_t accepted = 0;
    for (const StreamBooks& books : assembler_.streams()) accepted += books.packets_accepted;
    require(accepted == sum({Counter::packets_accepted}) || sum({Counter::streams_evicted}) > 0, "the streams have all packets");
  }

 private:
  std::vector<std::byte> copy_of(std::uint32_t buffer) const {
    return std::vector<std::byte>(clop_.buffer(buffer).begin(), clop_.buffer(buffer).end());
  }
  std::uint64_t sum(std::initializer_list<flow::Counter> counters) const {
    std::uint64_t sum = 0;
    for (const flow::Counter one : counters) sum += assembler_.counters().value(one);
    return sum;
  }

  flow::Clop clop_;
  flow::CompletionQueue queue_;
  Assembler assembler_;
  Asked asked_;
  const bool asks_;
  std::deque<std::pair<std::uint32_t, std::vector<std::byte>>> held_;
  std::uint64_t packets_ = 0;
};

void with_counted_packets(fuzz::Bytes& bytes, const AssembleConfig& config, std::uint32_t buffers) {
  constexpr std::uint32_t kBytes = test::AssemblerModel::kBufferBytes;
  const auto next = [&](std::uint32_t below) { return bytes.take() % below; };
  Booked booked(config, buffers, kBytes);
  StreamFilter none({}), ends({{.first = 0, .last = 0}, {.first = 2, .last = 2}});
  std::uint64_t now_ns = 1;
  unsigned packets = 0;
  const std::uint64_t extremes[] = {0, kBytes, UINT32_MAX, std::uint64_t{1} << 63, UINT64_MAX};
  while (!bytes.empty()) {
    UnitFacts facts{.stream = next(3), .unit = next(6), .place = next(32) == 0 ? extremes[next(5)] : next(6)};
    fuzz::require(!none.refuses(facts.stream), "without a list every stream is accepted");
    fuzz::require(ends.refuses(facts.stream) == (facts.stream == 1), "with one those of its ranges are");
    facts.place_is_index = next(4) != 0;
    facts.unit_packets = next(32) == 0 ? extremes[next(5)] : next(3) == 0 ? 4 : 0;
    facts.unit_bytes = next(32) == 0 ? extremes[next(5)] : 0;
    facts.ends_unit = next(8) == 0;
    facts.payload_bytes = next(6) == 0 ? next(40) : 16;
    const std::vector<std::byte> payload(facts.payload_bytes, static_cast<std::byte>(++packets));
    booked.take(facts, payload, now_ns += next(8) == 0 ? 3000 : 1);
    if (next(8) == 0) booked.expire(now_ns);
    booked.consume(next(2) == 0);
  }
  booked.end();
}

// Packets of a declared format, of which two streams may be parts of one unit.
void with_declared_packets(fuzz::Bytes& bytes, const AssembleConfig& config, std::uint32_t buffers) {
  const auto declared = fuzz::take_declaration(bytes);
  if (!declared) return;
  format::Decoder decoder(*declared);
  Booked booked(config, buffers, 4096);
  std::optional<StreamMergeConfig> parts;
  if (const unsigned kind = bytes.take(); kind % 3 != 0) {
    parts = {.streams = {bytes.take(), bytes.take()},
             .part_bytes = kind < 4 ? 2048u : 64u,
             .by = kind % 3 == 1 ? MergeBy::unit : MergeBy::time};
    parts->tolerance_ns = parts->by == MergeBy::time ? kind : 0;
  }
  StreamMerge merge(parts, {.tick_ns = 1});
  for (std::uint64_t now_ns = 1; !bytes.empty(); ++now_ns) {
    fuzz::Input input = fuzz::take_packet(bytes);
    format::Packet packet;
    if (decoder.decode(input.bytes(), packet) != format::Refusal::none) continue;
    UnitFacts facts = unit_facts_of(packet, decoder.facts());
    if (facts.time == 0) facts.time = facts.unit;
    if (merge.map(facts)) continue;
    booked.take(facts, std::span(input.bytes()).subspan(facts.payload_offset, facts.payload_bytes), now_ns);
    booked.consume(now_ns % 2 == 0);
  }
  booked.end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kInputBytesMax = 8192;
  if (size > kInputBytesMax) return 0;
  fuzz::Bytes bytes(data, size);
  const std::uint32_t units_open = 1 + bytes.take() % 3, buffers = 2u << bytes.take() % 4;
  const unsigned rules = bytes.take();
  AssembleConfig config{.streams_max = 3,
                        .stream_idle_us = 7,
                        .units_open = units_open,
                        .timeout_us = 5,
                        .incomplete = rules % 2 == 0 ? IncompletePolicy::drop : IncompletePolicy::process};
  const unsigned kind = bytes.take() % 3;
  if (kind == 0) {
    beside_the_model(bytes, config, buffers);
    return 0;
  }
  config.unit_step = rules / 2 % 3;
  if (rules / 6 % 2 == 1) config.resend = ResendConfig{.after_us = 1, .again_us = 2, .tries_max = 2, .packets_max = 5};
  if (kind == 1) {
    with_counted_packets(bytes, config, buffers);
  } else {
    with_declared_packets(bytes, config, buffers);
  }
  return 0;
}
