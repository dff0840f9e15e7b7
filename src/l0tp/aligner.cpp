// SPDX-License-Identifier: Apache-2.0
#include "l0tp/aligner.hpp"

#include <algorithm>

#include "nanet/wire/timestamp.hpp"

namespace nanet::l0tp {
namespace {

constexpr std::uint64_t kFullFrom = Aligner::kHeldMax / 8 * 7;
constexpr std::uint64_t kMovesMax = 256;  // a packet holds 255 primitives

std::uint64_t time_of(std::uint64_t word) { return word >> 16; }

}  // namespace

Aligner::Aligner(TriggerProcessor& processor, const Config& config, std::uint64_t patience_ns)
    : processor_(processor), patience_ns_(patience_ns), step_ticks_(config.memory_ticks() / 4), input_count_(processor.input_count()) {
  for (std::uint32_t i = 0; i < input_count_; ++i) queues_[i].entries = std::make_unique_for_overwrite<Held[]>(kHeldMax);
}

void Aligner::take(std::span<const std::byte> datagram, std::uint64_t now_ns) {
  TriggerProcessor::Packet packet;
  if (!processor_.open(datagram, packet)) return;
  const std::uint64_t header_time = wire::ticks(packet.view.first_timestamp(), 0);
  if (!started_) start(header_time, now_ns);
  heard_ns_[packet.input] = now_ns;
  waited_ |= 1u << packet.input;
  hear(packet.input, header_time);
  wire::for_each_primitive(packet.view, [&](const wire::Primitive& primitive) {
    keep(packet.input, {wire::ticks(primitive.timestamp, primitive.fine_time), primitive.id}, now_ns);
  });
}

std::size_t Aligner::decide(std::uint64_t now_ns, std::span<Decision> room) {
  std::size_t count = processor_.decide(now_ns, room);
  if (count < room.size() && processor_jumped()) {
    hand_over_all();
    started_ = false;
  }
  while (count < room.size() && release_step()) count += processor_.decide(now_ns, room.subspan(count));
  return count;
}

void Aligner::give_up_on_silent(std::uint64_t now_ns) {
  for (std::uint32_t i = 0; i < input_count_; ++i) {
    if (now_ns > heard_ns_[i] && now_ns - heard_ns_[i] >= patience_ns_) waited_ &= ~(1u << i);
  }
}

std::size_t Aligner::flush(std::uint64_t now_ns, std::span<Decision> room) {
  waited_ = 0;
  const std::size_t count = decide(now_ns, room);
  if (count == room.size()) return count;
  started_ = false;
  return count + processor_.flush(room.subspan(count));
}

// All are waited for. An input that is a step after the first packet is not late yet.
void Aligner::start(std::uint64_t wire_time, std::uint64_t now_ns) {
  started_ = true;
  waited_ = (1u << input_count_) - 1;
  released_ = kFirstTurn + wire_time - step_ticks_;
  forced_ = 0;
  heard_.fill(0);
  heard_ns_.fill(now_ns);
  processor_.hear(released_ & wire::kTickMask);
  time_jumps_ = processor_.stats().time_jumps;
}

void Aligner::hear(std::uint32_t input, std::uint64_t wire_time) {
  const std::uint64_t time = unwrapped(wire_time);
  if (waits_for_its_turn(time)) {
    heard_[input] = std::max(heard_[input], time);
  } else {
    processor_.hear(wire_time);
  }
}

void Aligner::keep(std::uint32_t input, const TriggerProcessor::Found& primitive, std::uint64_t now_ns) {
  const std::uint64_t time = unwrapped(primitive.time);
  Queue& queue = queues_[input];
  if (!waits_for_its_turn(time) || queue.count() == kHeldMax) {
    processor_.store(input, {&primitive, 1}, now_ns);
    return;
  }
  heard_[input] = std::max(heard_[input], time);
  queue.insert({time << 16 | primitive.id, now_ns});
  if (queue.count() > kFullFrom) forced_ = std::max(forced_, time_of(queue.at(queue.first).word) + step_ticks_);
}

// From the end, which is near its place.
void Aligner::Queue::insert(const Held& held) {
  if (first == end) first = end = 0;  // what is small stays in the caches
  std::uint64_t place = end++;
  const std::uint64_t lowest = place - std::min(place - first, kMovesMax);
  for (; place > lowest && at(place - 1).word > held.word; --place) at(place) = at(place - 1);
  at(place) = held;
}

std::uint64_t Aligner::unwrapped(std::uint64_t wire_time) const {
  return released_ + static_cast<std::uint64_t>(wire::tick_difference(wire_time, released_));
}

std::uint64_t Aligner::reached() const {
  std::uint64_t slowest = ~std::uint64_t{0};
  std::uint64_t newest = 0;
  for (std::uint32_t i = 0; i < input_count_; ++i) {
    newest = std::max(newest, heard_[i]);
    if ((waited_ >> i & 1) != 0) slowest = std::min(slowest, heard_[i]);
  }
  return waited_ == 0 ? newest : std::max(slowest, forced_);
}

bool Aligner::release_step() {
  const std::uint64_t end = reached();
  if (!started_ || released_ >= end) return false;
  // Over a stretch without anything in it at once, or a wild clock would cost a walk through seconds of cells.
  const std::uint64_t next = std::min(end, oldest_held());
  if (processor_.pending_count() == 0 && next - released_ > 8 * step_ticks_) {
    released_ = next - step_ticks_;
    processor_.skip_to(released_ & wire::kTickMask);
  }
  released_ = std::min(end, released_ + step_ticks_);
  processor_.hear(released_ & wire::kTickMask);
  for (std::uint32_t i = 0; i < input_count_; ++i) release(i, released_);
  return true;
}

std::uint64_t Aligner::oldest_held() const {
  std::uint64_t oldest = ~std::uint64_t{0};
  for (std::uint32_t i = 0; i < input_count_; ++i) {
    if (queues_[i].count() > 0) oldest = std::min(oldest, time_of(queues_[i].at(queues_[i].first).word));
  }
  return oldest;
}

// Those of one arrival are stored together.
void Aligner::release(std::uint32_t input, std::uint64_t last_time) {
  Queue& queue = queues_[input];
  std::array<TriggerProcessor::Found, wire::kMtpPrimitivesMax> group;
  while (queue.first != queue.end) {
    const std::uint64_t arrived_ns = queue.at(queue.first).arrived_ns;
    std::size_t count = 0;
    for (; queue.first != queue.end && count < group.size(); ++queue.first) {
      const Held& held = queue.at(queue.first);
      if (time_of(held.word) > last_time || held.arrived_ns != arrived_ns) break;
      group[count++] = {time_of(held.word) & wire::kTickMask, static_cast<std::uint16_t>(held.word)};
    }
    if (count == 0) return;
    processor_.store(input, std::span(group).first(count), arrived_ns);
  }
}

bool Aligner::processor_jumped() { return started_ && processor_.stats().time_jumps != time_jumps_; }

void Aligner::hand_over_all() {
  for (std::uint32_t i = 0; i < input_count_; ++i) release(i, ~std::uint64_t{0});
}

}  // namespace nanet::l0tp
