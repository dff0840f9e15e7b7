// SPDX-License-Identifier: Apache-2.0
// Any sequence of packets and calls: the trigger processor's books balance after each, decisions come in order of time and
// each once, and what becomes of them as L0 decision packets reads the same.
//
// Input: 4 bytes of configuration, then one byte an operation with its arguments after it.
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fuzz_common.hpp"
#include "l0tp/trigger_processor.hpp"
#include "nanet/wire/timestamp.hpp"
#include "wire/l0_decision.hpp"

namespace {

using namespace nanet;
using nanet::fuzz::Bytes;
using nanet::fuzz::require;

constexpr std::size_t kInputBytesMax = 512;

l0tp::Config config_from(Bytes& bytes) {
  l0tp::Config config;
  config.inputs.resize(bytes.take() % 7 + 1);
  config.reference = config.inputs[bytes.take() % config.inputs.size()].name;
  const std::uint8_t shape = bytes.take();
  config.fine_time_bits = shape & 3;
  config.read_lag_us = (shape >> 2) * 4096 * wire::kTickNs / 1000;
  for (auto& input : config.inputs) input.time_cut_ns = bytes.take() * config.cell_ns() / 256;
  config.silence_us = 1;
  for (std::uint32_t i = 0; i < 16; ++i) {
    std::string pattern(16, 'x');
    pattern[15 - i] = i % 2 == 0 ? '1' : '0';
    config.masks.push_back({std::to_string(i), {{config.inputs[0].name, pattern}}, i / 4 + 1});
  }
  return config;
}

void require_books(const l0tp::TriggerProcessor& processor) {
  for (std::uint32_t i = 0; i < processor.input_count(); ++i) {
    const l0tp::InputStats s = processor.input_stats(i);
    require(s.primitives == s.stored + s.calibrations + s.late + s.out_of_range + s.duplicates + s.calibrations_no_room,
            "books of an input");
  }
  const l0tp::Stats& s = processor.stats();
  require(s.packets == s.packets_good + s.packets_bad_length + s.packets_bad_format + s.packets_unknown_source, "books of packets");
  require(processor.pending_count() <= l0tp::kCellCount, "no more waits than there are cells");
}

// What is handed out: numbered without a gap, physics in order of time, and the same after a packet.
class Judge {
 public:
  void look_at(std::span<const l0tp::Decision> decisions, std::uint32_t reference) {
    for (const l0tp::Decision& d : decisions) {
      require(d.trigger_number == triggers_, "trigger numbers have no gap");
      triggers_ += d.is_trigger() ? 1 : 0;
      if (d.kind == l0tp::DecisionKind::physics) {
        ++physics_;
        require((d.matched_inputs >> reference & 1) == 1, "the reference is in its decision");
        const std::uint64_t time = wire::ticks(d.timestamp, d.fine_time);
        require(!has_last_ || wire::tick_difference(time, last_) > 0, "decisions in order of time");
        last_ = time;
        has_last_ = true;
      }
      check_packet(d);
    }
  }
  void new_times() { has_last_ = false; }
  void require_all_handed_out(const l0tp::Stats& stats) const {
    require(physics_ == stats.decided, "each decision is handed out once");
  }

 private:
  void check_packet(const l0tp::Decision& d) {
    std::array<std::byte, 16> room;
    wire::L0DecisionWriter writer(room);
    writer.begin(0, d.trigger_number);
    const auto kind = static_cast<std::uint8_t>(d.kind == l0tp::DecisionKind::calibration ? wire::kL0CalibrationBit : 0);
    const wire::L0DecisionEntry entry{d.timestamp, d.fine_time, static_cast<std::uint8_t>(d.matched_inputs | kind), d.trigger_word};
    require(writer.add(entry), "room for one");
    wire::L0DecisionView view;
    require(wire::L0DecisionView::parse(writer.finish(), view) == wire::ParseError::none && view.entry(0) == entry,
            "reads the same");
  }

  std::uint64_t triggers_ = 0;
  std::uint64_t physics_ = 0;
  std::uint64_t last_ = 0;
  bool has_last_ = false;
};

// Few sources and anchors, so that primitives meet; anchors far apart, so that the circle of times is used.
std::span<const std::byte> packet_from(Bytes& bytes, const l0tp::Config& config, std::span<std::byte> room) {
  static constexpr std::uint64_t anchors[] = {0, wire::kTickMask - 70'000, std::uint64_t{1} << 39, 1u << 22};
  const std::uint8_t which = bytes.take();
  const std::uint64_t anchor = anchors[which >> 6] + (std::uint64_t{bytes.take()} << 13);
  wire::MtpWriter writer(room);
  writer.begin(config.inputs[which % config.inputs.size()].source_id, 0, wire::timestamp_of(anchor));
  for (std::uint32_t left = which >> 2 & 15; left > 0; --left) {
    const std::uint64_t time = anchor + (std::uint64_t{bytes.take()} << 2);
    const auto id = static_cast<std::uint16_t>(bytes.take() << 8 | 0x0100);
    writer.add({wire::timestamp_of(time), wire::fine_time_of(time), id});
  }
  return writer.finish();
}

void check_decision_packet(std::span<std::byte> payload) {
  if (payload.size() < wire::kL0DecisionHeaderBytes)
    require(nanet::fuzz::is_refused([&] { wire::L0DecisionWriter writer(payload); }), "no room for a packet");
  wire::L0DecisionView view;
  if (wire::L0DecisionView::parse(payload, view) != wire::ParseError::none) return;
  std::vector<std::byte> room(payload.size());
  wire::L0DecisionWriter writer(room);
  writer.begin(view.source_sub_id(), view.first_trigger_number());
  for (std::uint32_t i = 0; i < view.entry_count(); ++i) require(writer.add(view.entry(i)), "no more room is needed than was used");
  const auto written = writer.finish();
  require(std::equal(written.begin(), written.end(), payload.begin(), payload.end()), "every accepted packet is what is written");
}

// A processor has 1.2 MiB of memory, and most of the time would go into making it. So it serves all inputs of its configuration: each ends with a
// flush(), after which times, memory and downscaling are as after construction. Counters and trigger numbers go on, and with them the judge.
struct Bench {
  explicit Bench(const l0tp::Config& given) : config(given), processor(given) {}

  static Bench& of(std::span<const std::byte> key, const l0tp::Config& config) {
    constexpr std::size_t kKept = 32;
    static std::deque<std::pair<std::vector<std::byte>, std::unique_ptr<Bench>>> kept;
    for (auto& [name, bench] : kept) {
      if (std::ranges::equal(name, key)) return *bench;
    }
    if (kept.size() == kKept) kept.pop_front();
    kept.emplace_back(std::vector(key.begin(), key.end()), std::make_unique<Bench>(config));
    return *kept.back().second;
  }

  template <class Call>
  void finish(Call call) {
    for (std::size_t count = decisions.size(); count == decisions.size();) {
      const std::uint64_t jumps = processor.stats().time_jumps;
      count = call();
      judge.look_at(std::span(decisions).first(count), processor.reference_index());
      if (processor.stats().time_jumps != jumps) judge.new_times();
    }
  }
  void flush() {
    finish([&] { return processor.flush(decisions); });
    judge.new_times();
  }
  // As the aligner does it.
  void take_in_parts(std::span<const std::byte> datagram) {
    l0tp::TriggerProcessor::Packet packet;
    if (!processor.open(datagram, packet)) return;
    processor.hear(wire::ticks(packet.view.first_timestamp(), 0));
    std::vector<l0tp::TriggerProcessor::Found> found;
    wire::for_each_primitive(packet.view, [&](const wire::Primitive& primitive) {
      found.push_back({wire::ticks(primitive.timestamp, primitive.fine_time), primitive.id});
    });
    processor.store(packet.input, found, now_ns);
  }
  void do_next(Bytes& bytes);

  l0tp::Config config;
  l0tp::TriggerProcessor processor;
  Judge judge;
  std::array<l0tp::Decision, 5> decisions;
  std::uint64_t now_ns = 0;
  std::uint32_t flushes = 0;  // in this input
};

void Bench::do_next(Bytes& bytes) {
  std::array<std::byte, wire::kMtpBytesMax> room;
  const std::uint8_t operation = bytes.take();
  switch (operation & 7) {
    case 0: {
      nanet::fuzz::Input exact(bytes.take(operation >> 3));
      processor.take(exact.bytes(), now_ns);
      break;
    }
    case 1: finish([&] { return processor.decide(now_ns, decisions); }); break;
    case 2:
      now_ns += std::uint64_t{operation} * 8;
      if (operation >> 3 == 31) take_in_parts(packet_from(bytes, config, room));
      break;
    case 3: {  // the same packet often: a jump in time
      const auto packet = packet_from(bytes, config, room);
      for (int i = 0; i < 40; ++i) processor.take(packet, now_ns);
      break;
    }
    case 4:
      if (operation >> 3 == 7 && flushes++ < 2) flush();  // clears all of the memory: a few are enough
      break;
    default: processor.take(packet_from(bytes, config, room), now_ns); break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kInputBytesMax) return 0;
  nanet::fuzz::Input whole(data, size);
  check_decision_packet(whole.bytes());
  Bytes bytes(data, size);
  const l0tp::Config config = config_from(bytes);
  const std::size_t config_bytes = std::min(size, 3 + config.inputs.size());
  Bench& bench = Bench::of(whole.bytes().first(config_bytes), config);
  bench.flushes = 0;
  while (!bytes.empty()) {
    bench.do_next(bytes);
    require_books(bench.processor);
  }
  bench.flush();
  require_books(bench.processor);
  require(bench.processor.pending_count() == 0 && bench.processor.pending_calibrations() == 0, "after flush nothing waits");
  bench.judge.require_all_handed_out(bench.processor.stats());
  return 0;
}
