// SPDX-License-Identifier: Apache-2.0
#include "comparison.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nanet::bench {
namespace {

using gateware::Line;
using gateware::SentFrame;

constexpr std::size_t kWordBytes = 16, kFooterBytes = 32;
constexpr std::uint32_t kReleaseAtOnce = 8;  // buffers
constexpr int kPoison = 0xDB;

std::size_t whole_words(std::size_t bytes) { return (bytes + kWordBytes - 1) / kWordBytes * kWordBytes; }

template <class Value>
std::string is_not(const std::string& what, Value is, Value should_be) {
  return what + " " + std::to_string(is) + ", not " + std::to_string(should_be);
}

// The cycle of a time of the NIC's clock, which counts from reset: 6.4 ns each, rounded down, or 8. None: no cycle has that time.
std::optional<std::int64_t> cycle_of(std::uint64_t ns, Line line) {
  const std::uint64_t numerator = line == Line::gbps_10 ? 32 : 40;
  const std::uint64_t cycle = (ns * 5 + numerator - 1) / numerator;
  return cycle * numerator / 5 == ns ? std::optional(static_cast<std::int64_t>(cycle)) : std::nullopt;
}

}  // namespace

Comparison::Comparison(Rig& rig, link::gateware::NicDriver& driver, const Handing& handing)
    : rig_(rig), driver_(driver), handing_(handing), wire_(rig.model.line()) {
  rig.model.wire_in().keep_sent(true);
}

void Comparison::expect(std::uint64_t number, std::size_t payload_bytes) {
  expected_.push_back({number, payload_bytes, std::nullopt});
  on_wire_.push_back(number);
}

void Comparison::look() {
  rig_.look();
  take_sent();
  while (const Completion* completion = driver_.poll()) {
    take(*completion);
    if (++to_release_ < kReleaseAtOnce) continue;
    driver_.release(std::exchange(to_release_, 0));  // in which time goes on
    rig_.look();
    take_sent();
  }
}

void Comparison::end() {
  if (to_release_ != 0) driver_.release(std::exchange(to_release_, 0));
  for (const Expected& expected : expected_) skip(expected);
  expected_.clear();
}

void Comparison::take_sent() {
  auto& frames = rig_.model.wire_in().sent_frames();
  for (const SentFrame& frame : frames) {
    wire_.add(frame);
    const std::optional<std::uint64_t> number = on_wire_.front();
    on_wire_.pop_front();
    if (number && !expected_.empty() && *number >= expected_.front().number) {
      expected_[*number - expected_.front().number].sent = frame;
    }
  }
  frames.clear();
}

void Comparison::take(const Completion& completion) {
  const auto refs = driver_.packets(completion);
  Words of_buffer = difference(completion);
  end_ = 0;
  for (std::size_t k = 0; k < refs.size(); ++k) {
    const std::size_t place = std::size_t{completion.buffer_index} * handing_.clop.buffer_bytes + refs[k].offset;
    const Found found{completion, refs[k], place, k == 0, k + 1 == refs.size()};
    ++result_.packets;
    const std::optional<Expected> expected = next(found);
    Words what = std::exchange(of_buffer, std::nullopt);
    if (!what) what = expected ? difference(found, *expected) : Words("was not sent, or has come before");
    if (what) {
      if (result_.wrong++ == 0) {
        result_.first_wrong = "packet " + std::to_string(result_.packets - 1) + " of those handed over, in buffer " +
                              std::to_string(completion.tag) + ": " + *what;
      }
    } else {
      time(found, *expected);
    }
    end_ = refs[k].offset + whole_words(refs[k].bytes) + (handing_.clop.footer ? kFooterBytes : 0);
  }
  poison(completion, end_);
}

// The packet that this one should be.
std::optional<Comparison::Expected> Comparison::next(const Found& found) {
  std::size_t at = 0;
  if (handing_.gaps) {
    while (at != expected_.size() && !is(expected_[at], found)) ++at;
  }
  if (at == expected_.size()) return std::nullopt;
  for (; at != 0; --at) {
    skip(expected_.front());
    expected_.pop_front();
  }
  const Expected expected = expected_.front();
  expected_.pop_front();
  return expected;
}

bool Comparison::is(const Expected& expected, const Found& found) {
  return expected.sent && expected.payload_bytes == found.ref.bytes && !different_data(found, expected);
}

void Comparison::skip(const Expected& expected) {
  if (!expected.sent || expected.sent->first_byte_cycle >= must_come_from_) ++result_.missing;
}

Comparison::Words Comparison::difference(const Completion& completion) {
  const link::gateware::ClopConfig& clop = handing_.clop;
  const std::uint64_t number = buffers_++;
  if (completion.tag != number) return is_not<std::uint64_t>("its buffer is number", completion.tag, number);
  if (const auto index = number % clop.buffer_count; completion.buffer_index != index) {
    return is_not<std::uint64_t>("its buffer has index", completion.buffer_index, index);
  }
  const bool full = completion.packet_count == clop.packets_per_buffer;
  if (completion.packet_count == 0 || completion.packet_count > clop.packets_per_buffer || (handing_.by_count && !full && !ended_)) {
    return is_not<std::uint64_t>("packets in its buffer:", completion.packet_count, clop.packets_per_buffer);
  }
  if (!full && !ended_) ++result_.cut_buffers;
  if (((completion.status & status::full) != 0) != full) return "its buffer's status does not say whether it is full";
  if (!handing_.gaps && (completion.packets_lost != 0 || (completion.status & status::gap) != 0)) {
    return "its buffer says that packets were lost";
  }
  return std::nullopt;
}

Comparison::Words Comparison::difference(const Found& found, const Expected& expected) {
  const PacketRef& ref = found.ref;
  if (ref.bytes != expected.payload_bytes) return is_not<std::uint64_t>("it has bytes:", ref.bytes, expected.payload_bytes);
  const std::size_t offset = ref.offset;
  if (handing_.gaps ? offset < end_ || offset % kWordBytes != 0 : offset != end_) return is_not("it begins at byte", offset, end_);
  if (const std::size_t stride = found.completion.stride_bytes; stride != 0 && offset % stride != 0) {
    return is_not("it begins at byte", offset, offset / stride * stride);
  }
  if (Words what = different_data(found, expected)) return what;
  if (ref.source != source_of(expected.number)) {
    return is_not<std::uint64_t>("its source is", ref.source, source_of(expected.number));
  }
  if (found.last && found.completion.bytes != offset + ref.bytes && found.completion.bytes != offset + whole_words(ref.bytes) &&
      !handing_.clop.footer) {
    return is_not<std::uint64_t>("its buffer has bytes in use:", found.completion.bytes, offset + ref.bytes);
  }
  return different_times(found, expected);
}

Comparison::Words Comparison::different_data(const Found& found, const Expected& expected) {
  const std::size_t bytes = expected.payload_bytes;
  if (found.ref.offset + std::size_t{found.ref.bytes} > handing_.clop.buffer_bytes) return "it lies beyond its buffer";
  if (data_.size() < bytes) data_.resize(bytes);
  fill_payload(expected.number, std::span(data_).first(bytes));
  const std::byte* stored = rig_.memory(Memory::buffers).data() + found.place;
  if (std::memcmp(stored, data_.data(), bytes) == 0) return std::nullopt;
  const auto at = static_cast<std::size_t>(std::mismatch(stored, stored + bytes, data_.data()).first - stored);
  return is_not("its byte " + std::to_string(at) + " of " + std::to_string(bytes) + " is", std::to_integer<unsigned>(stored[at]),
                std::to_integer<unsigned>(data_[at]));
}

// A packet arrives a number of cycles after its frame began that depends on lane and, where a payload is one word, on its length. The first one
// of each kind fixes it, and the NIC's cycle 0.
Comparison::Words Comparison::different_times(const Found& found, const Expected& expected) {
  if (!expected.sent) return "it came before its frame's end";
  const SentFrame& sent = *expected.sent;
  if (rig_.written_cycle(Memory::buffers, found.place + found.ref.bytes - 1) < sent.first_byte_cycle)
    return "it was not written anew";
  for (const auto& [is_there, ns] :
       {std::pair{found.first, found.completion.first_packet_ns}, std::pair{found.last, found.completion.last_packet_ns}}) {
    if (!is_there) continue;
    const std::optional<std::int64_t> cycle = cycle_of(ns, rig_.model.line());
    if (!cycle) return "it arrived at " + std::to_string(ns) + " ns, which no cycle is";
    const std::int64_t took = *cycle - static_cast<std::int64_t>(sent.first_byte_cycle);
    constexpr std::size_t kOneWordBytes = 8;
    const std::size_t kind = 2 * std::min(expected.payload_bytes, kOneWordBytes + 1) + sent.start_lane / 4;
    const auto [known, is_new] = arrivals_.try_emplace(kind, took);
    if (known->second != took) return is_not("cycles by which its time of arrival is off:", took - known->second, std::int64_t{0});
  }
  if (!handing_.clop.footer) return std::nullopt;
  const auto stamps = driver_.stamps(found.completion, found.ref);
  if (!std::ranges::is_sorted(stamps)) return "its stamps are out of order";
  const std::uint64_t start = sent.first_byte_cycle - stamps[0];
  if (start != clock_start_.value_or(start))
    return is_not("cycle of the start in its footer:", stamps[0], sent.first_byte_cycle - *clock_start_);
  clock_start_ = start;
  return std::nullopt;
}

void Comparison::time(const Found& found, const Expected& expected) {
  const SentFrame& sent = *expected.sent;
  const auto add = [&](std::uint64_t cycle, Histogram Latencies::*first, Histogram Latencies::*last) {
    const auto put = [&](Latencies& to) {
      (to.*first).add(cycle - sent.first_byte_cycle);
      (to.*last).add(cycle - sent.last_byte_cycle);
    };
    put(result_.latencies[sent.start_lane / 4]);
    if (handing_.sizes) put(result_.by_size[expected.payload_bytes][sent.start_lane / 4]);
  };
  add(rig_.written_cycle(Memory::buffers, found.place + found.ref.bytes - 1), &Latencies::first_to_write, &Latencies::last_to_write);
  if (!found.last || !handing_.by_count || (found.completion.status & status::full) == 0) return;
  const auto* entry = reinterpret_cast<const std::byte*>(&found.completion);
  const auto place = static_cast<std::size_t>(entry - rig_.memory(Memory::completions).data());
  add(rig_.written_cycle(Memory::completions, place + sizeof(Completion) - 1), &Latencies::first_to_completion,
      &Latencies::last_to_completion);
}

void Comparison::poison(const Completion& completion, std::size_t bytes) {
  const link::gateware::ClopConfig& clop = handing_.clop;
  std::memset(rig_.memory(Memory::buffers).data() + std::size_t{completion.buffer_index} * clop.buffer_bytes, kPoison,
              std::min<std::size_t>(bytes, clop.buffer_bytes));
  std::memset(rig_.memory(Memory::index).data() + std::size_t{completion.buffer_index} * clop.packets_per_buffer * sizeof(PacketRef),
              kPoison, completion.packet_count * sizeof(PacketRef));
}

}  // namespace nanet::bench
