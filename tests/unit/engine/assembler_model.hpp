// SPDX-License-Identifier: Apache-2.0
// The assembler beside a model of it: sets of bytes by stream and unit. Used with random packets and by the fuzz target.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "nanet/engine/assembler.hpp"
#include "pieces.hpp"

namespace nanet::engine::test {

class AssemblerModel {
 public:
  using Counter = flow::Counter;
  static constexpr std::uint64_t kBufferBytes = 4096;

  struct Unit {
    std::uint64_t stream, unit;
    std::uint64_t first_ns;
    std::uint64_t length = 0;  // 0: not known
    std::set<std::uint64_t> bytes = {};
    std::uint64_t packets = 0, longest = 0;
    std::uint16_t status = 0;
    bool is_empty = false;  // a packet said so

    std::uint64_t end() const { return bytes.empty() ? 0 : *bytes.rbegin() + 1; }
    std::uint64_t extent() const { return length != 0 ? length : end(); }
    std::uint64_t ranges() const {
      return static_cast<std::uint64_t>(
          std::count_if(bytes.begin(), bytes.end(), [&](std::uint64_t b) { return !bytes.contains(b + 1); }));
    }
    std::uint64_t packets_missing() const {
      std::uint64_t missing = 0, hole = 0;
      if (longest == 0) return 0;
      for (std::uint64_t b = 0; b <= extent(); ++b) {
        if (b < extent() && !bytes.contains(b)) {
          ++hole;
        } else {
          missing += (std::exchange(hole, 0) + longest - 1) / longest;
        }
      }
      return missing;
    }
  };

  AssemblerModel(const AssembleConfig& config, std::uint32_t buffer_count) : config_(config), free_(buffer_count) {}

  void take(const UnitFacts& facts, std::uint64_t bytes, std::uint64_t now_ns) {
    now_ns_ = now_ns;
    const Counter as = judge(facts, bytes);
    ++counters[as];
    if (as == Counter::packets_accepted) counters[Counter::bytes_accepted] += bytes;
    for (std::size_t k = 0; k < open.size(); ++k) {
      if (open[k].is_empty || (open[k].length != 0 && open[k].bytes.size() == open[k].length))
        return close(k, Counter::units_complete, 0);
    }
  }

  void expire(std::uint64_t now_ns, std::uint64_t age_ns) {
    now_ns_ = now_ns;
    while (!open.empty() && now_ns - open.front().first_ns >= age_ns) close(0, Counter::units_timed_out, status::timeout);
  }

  void flush() {
    while (!open.empty()) close(0, Counter::units_flushed, status::flush);
  }

  void give_back() { ++free_; }

  std::map<Counter, std::uint64_t> counters;
  std::vector<Unit> open;  // in the order in which they began
  std::deque<Unit> handed_over;

 private:
  struct Closed {
    std::uint64_t unit, until_ns;
    Counter packets_are;
  };

  struct Stream {
    std::deque<Closed> closed = {};
    std::uint64_t last_ns = 0;
    bool is_proven = false;  // a unit of it was complete
  };

  Counter judge(const UnitFacts& facts, std::uint64_t bytes) {
    const std::uint64_t limit = facts.unit_bytes != 0 ? facts.unit_bytes : kBufferBytes;
    if (facts.unit_bytes > kBufferBytes) return Counter::packets_unit_too_long;
    if (facts.place > limit || facts.place + bytes > limit) return Counter::packets_bad_place;
    if (facts.ends_unit && facts.place + bytes == 0 && facts.unit_bytes != 0) return Counter::packets_bad_place;
    if (!streams_.contains(facts.stream) && !add_stream(facts.stream)) return Counter::packets_no_stream;
    if (bytes == 0 && facts.unit_bytes == 0 && !facts.ends_unit) return Counter::packets_marker;
    Unit* unit = find(facts);
    const bool says_empty = facts.ends_unit && facts.place + bytes == 0;
    if (says_empty && unit != nullptr) return Counter::packets_bad_unit;
    if (unit == nullptr) {
      if (bytes == 0 && closed(facts)) return Counter::packets_marker;
      if (const auto refused = begin(facts)) return *refused;
      unit = &open.back();
    }
    const std::uint64_t end = facts.place + bytes;
    const std::uint64_t said = facts.unit_bytes != 0 ? facts.unit_bytes : facts.ends_unit ? end : 0;
    if (said == 0 && unit->length != 0 && end > unit->length) return Counter::packets_bad_place;
    if (said != 0 && unit->length != 0 && said != unit->length) return Counter::packets_bad_unit;
    if (said != 0 && unit->length == 0 && said < unit->end()) return Counter::packets_bad_unit;
    if (said != 0) unit->length = said;
    if (bytes == 0 && !says_empty) return Counter::packets_marker;
    unit->is_empty = says_empty;
    std::uint64_t there = 0;
    for (std::uint64_t b = facts.place; b < end; ++b) there += unit->bytes.contains(b) ? 1 : 0;
    if (there == bytes && !says_empty) return Counter::packets_duplicate;
    if (there > 0) return Counter::packets_overlap;
    for (std::uint64_t b = facts.place; b < end; ++b) unit->bytes.insert(b);
    ++unit->packets;
    unit->longest = std::max(unit->longest, bytes);
    streams_[facts.stream].last_ns = now_ns_;
    std::erase(idlest_first_, facts.stream);
    idlest_first_.push_back(facts.stream);
    return Counter::packets_accepted;
  }

  bool add_stream(std::uint64_t stream) {
    if (streams_.size() == config_.streams_max) {
      const std::uint64_t idlest = idlest_first_.front();
      if (now_ns_ - streams_[idlest].last_ns < 1000 * config_.stream_idle_us) return false;
      const auto is_its = [&](const Unit& unit) { return unit.stream == idlest; };
      for (auto one = std::find_if(open.begin(), open.end(), is_its); one != open.end();
           one = std::find_if(open.begin(), open.end(), is_its)) {
        close(static_cast<std::size_t>(one - open.begin()), Counter::units_overflow, 0);
      }
      streams_.erase(idlest);
      idlest_first_.erase(idlest_first_.begin());
      ++counters[Counter::streams_evicted];
    }
    streams_[stream].last_ns = now_ns_;
    idlest_first_.push_back(stream);
    return true;
  }

  Unit* find(const UnitFacts& facts) {
    for (Unit& unit : open) {
      if (unit.stream == facts.stream && unit.unit == facts.unit) return &unit;
    }
    return nullptr;
  }

  // What packets of a unit that is closed are.
  std::optional<Counter> closed(const UnitFacts& facts) {
    for (const Closed& closed : streams_[facts.stream].closed) {
      if (closed.unit == facts.unit && closed.until_ns > now_ns_) return closed.packets_are;
    }
    return std::nullopt;
  }

  std::optional<Counter> begin(const UnitFacts& facts) {
    if (const auto packets_are = closed(facts)) return packets_are;
    const auto of_stream = [&](const Unit& unit) { return unit.stream == facts.stream; };
    if (std::count_if(open.begin(), open.end(), of_stream) == config_.units_open) {
      close(static_cast<std::size_t>(std::find_if(open.begin(), open.end(), of_stream) - open.begin()), Counter::units_overflow, 0);
    }
    const auto is_unproven = [&](const Unit& unit) { return !streams_[unit.stream].is_proven; };
    const auto weakest = std::find_if(open.begin(), open.end(), is_unproven);
    if (free_ == 0 && streams_[facts.stream].is_proven && weakest != open.end()) {
      close(static_cast<std::size_t>(weakest - open.begin()), Counter::units_overflow, 0, true);
    }
    if (free_ == 0) {
      ++counters[Counter::units_no_buffer];
      remember(facts.stream, facts.unit, Counter::packets_clop_full);
      return Counter::packets_clop_full;
    }
    --free_;
    ++counters[Counter::units_begun];
    open.push_back({.stream = facts.stream, .unit = facts.unit, .first_ns = now_ns_});
    return std::nullopt;
  }

  void remember(std::uint64_t stream, std::uint64_t unit, Counter packets_are) {
    auto& closed = streams_[stream].closed;
    closed.push_front({unit, now_ns_ + 1000 * config_.timeout_us, packets_are});
    if (closed.size() > 64) closed.pop_back();
  }

  void close(std::size_t k, Counter why, std::uint16_t status, bool is_dropped = false) {
    Unit unit = open[k];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(k));
    remember(unit.stream, unit.unit, Counter::packets_late);
    ++counters[why];
    counters[Counter::packets_lost_network] += unit.packets_missing();
    const bool complete = why == Counter::units_complete;
    if (complete) streams_[unit.stream].is_proven = true;
    if (!complete && (is_dropped || config_.incomplete == IncompletePolicy::drop || unit.packets == 0)) {
      ++counters[Counter::units_discarded];
      ++free_;
      return;
    }
    ++counters[Counter::units_handed_over];
    unit.status = static_cast<std::uint16_t>(status | nanet::status::unit | (complete ? 0 : nanet::status::incomplete) |
                                             (unit.packets_missing() > 0 ? nanet::status::gap : 0));
    handed_over.push_back(unit);
  }

  const AssembleConfig config_;
  std::uint64_t free_;
  std::uint64_t now_ns_ = 0;
  std::map<std::uint64_t, Stream> streams_;
  std::vector<std::uint64_t> idlest_first_;
};

// Both, given the same, and what is different between them.
class AssemblerRig {
 public:
  AssemblerRig(const AssembleConfig& config, std::uint32_t buffer_count)
      : config_(config),
        clop_({.name = "units",
               .buffer_count = buffer_count,
               .buffer_bytes = AssemblerModel::kBufferBytes,
               .index_capacity = Assembler::index_capacity(AssemblerModel::kBufferBytes),
               .huge_pages = false,
               .locked = false}),
        queue_(2 * buffer_count),
        model_(config, buffer_count),
        assembler(config, clop_, queue_) {}

  // next(n): the next number below n.
  template <class Next>
  void take(Next&& next) {
    constexpr std::uint64_t places[] = {0, AssemblerModel::kBufferBytes - 8, UINT64_MAX - 4, UINT32_MAX, std::uint64_t{1} << 32};
    if (next(64) == 0) ++first_stream_;
    UnitFacts facts{.stream = first_stream_ + next(4), .unit = first_unit_ + next(5)};
    facts.place = next(24) == 0 ? places[next(5)] : 4 * next(5) + (next(8) == 0 ? next(4) : 0);
    facts.unit_bytes = next(3) == 0 ? 0 : next(30) == 0 ? places[next(5)] : 18 + (next(40) == 0 ? 4 : 0);
    facts.ends_unit = next(6) == 0;
    facts.payload_bytes = next(20) == 0 ? next(9) : facts.place == 16 ? 2 : 4;
    if (next(8) == 0) first_unit_ += next(20) == 0 ? std::uint64_t{0} - 30 : 1;
    std::vector<std::byte> payload(facts.payload_bytes);
    for (std::uint32_t b = 0; b < facts.payload_bytes; ++b) payload[b] = byte_of(facts.stream, facts.unit, facts.place + b);
    assembler.take(facts, payload, now_ns_);
    model_.take(facts, facts.payload_bytes, now_ns_);
  }

  void wait(std::uint64_t ns) { now_ns_ += ns; }

  void expire(bool at_hand) {
    assembler.expire(now_ns_, at_hand ? Assembler::Rest::at_hand : Assembler::Rest::none);
    model_.expire(now_ns_, 1000 * config_.timeout_us * (at_hand ? 2 : 1));
  }

  void flush() {
    assembler.flush();
    model_.flush();
  }

  // The consumer returns its oldest buffer, if it has one.
  void give_back() {
    if (held_.empty()) return;
    clop_.release();
    model_.give_back();
    held_.pop_front();
  }

  // Empty: there is none. Takes what was handed over; what the consumer holds is compared each time, since no one may write there.
  std::string difference() {
    std::ostringstream text;
    while (const Completion* completion = queue_.peek()) {
      if (model_.handed_over.empty()) return "a unit was handed over that the model does not have";
      held_.push_back({*completion, model_.handed_over.front()});
      queue_.pop();
      model_.handed_over.pop_front();
    }
    if (!model_.handed_over.empty()) return "a unit was not handed over";
    for (const Held& held : held_) compare(held, text);
    for (std::size_t k = 0; k < flow::kCounterCount; ++k) {
      const std::uint64_t is = assembler.counters().value(static_cast<flow::Counter>(k)),
                          expected = model_.counters[static_cast<flow::Counter>(k)];
      if (is != expected) text << flow::kCounterTable[k].name << " is " << is << ", not " << expected << '\n';
    }
    if (assembler.holds_units() == model_.open.empty()) text << "it holds units, or not\n";
    return text.str();
  }

 private:
  struct Held {
    Completion completion;
    AssemblerModel::Unit unit;
  };

  void compare(const Held& held, std::ostringstream& text) const {
    const Completion& completion = held.completion;
    const AssemblerModel::Unit& unit = held.unit;  // names of a structured binding do not reach a lambda with clang 14
    const auto index = clop_.packet_index(completion.buffer_index);
    const auto& head = *reinterpret_cast<const UnitHead*>(index.data());
    const auto* ranges = reinterpret_cast<const UnitRange*>(&head + 1);
    const auto bytes = clop_.buffer(completion.buffer_index);
    const auto same = [&](const char* what, std::uint64_t is, std::uint64_t expected) {
      if (is != expected) text << what << " of unit " << unit.unit << " is " << is << ", not " << expected << '\n';
    };
    same("stream", head.stream, unit.stream);
    same("unit", head.unit, unit.unit);
    same("status", completion.status, unit.status);
    same("bytes", completion.bytes, unit.extent());
    same("bytes", head.bytes, unit.extent());
    same("packets", head.packet_count, unit.packets);
    same("missing bytes", head.bytes_missing, unit.packets == 0 ? 0 : unit.extent() - unit.bytes.size());
    same("missing packets", head.packets_missing, unit.packets_missing());
    same("missing packets", completion.packets_lost, unit.packets_missing());
    same("longest piece", head.piece_bytes, unit.longest);
    same("first arrival", completion.first_packet_ns, unit.first_ns);
    same("ranges", head.range_count, unit.ranges());
    std::set<std::uint64_t> present;
    for (std::uint32_t r = 0; r < head.range_count; ++r) {
      for (std::uint64_t b = ranges[r].begin; b < ranges[r].end; ++b) {
        present.insert(b);
        if (bytes[b] != byte_of(unit.stream, unit.unit, b)) text << "byte " << b << " of unit " << unit.unit << " is wrong\n";
      }
    }
    if (present != unit.bytes) text << "other bytes of unit " << unit.unit << " are present\n";
  }

  const AssembleConfig config_;
  flow::Clop clop_;
  flow::CompletionQueue queue_;
  AssemblerModel model_;
  std::deque<Held> held_;
  std::uint64_t now_ns_ = 1;
  std::uint64_t first_unit_ = 0;
  std::uint64_t first_stream_ = 0;

 public:
  Assembler assembler;
};

}  // namespace nanet::engine::test
