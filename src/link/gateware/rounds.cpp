// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/rounds.hpp"

#include <algorithm>
#include <utility>

namespace nanet::link::gateware {
namespace {

constexpr std::size_t kAroundBytes = 8 + 12;  // preamble and gap

}  // namespace

void Rounds::add(std::size_t wire, std::vector<std::byte> frame) {
  wires_[wire].frames.push_back(std::move(frame));
  wires_[wire].is_silent = false;
}

bool Rounds::empty() const {
  return std::all_of(wires_.begin(), wires_.end(), [](const Wire& wire) { return wire.frames.empty(); });
}

bool Rounds::ready(std::uint64_t now_ns) {
  if (empty()) return false;
  const bool whole = std::none_of(wires_.begin(), wires_.end(), [](const Wire& w) { return w.frames.empty() && !w.is_silent; });
  if (whole) return true;
  if (!std::exchange(waits_, true)) waits_since_ns_ = now_ns;
  return now_ns - waits_since_ns_ >= kPatienceNs;
}

bool Rounds::give(nanet::gateware::Model& model, std::uint64_t now_ns) {
  bool any = false;
  while (ready(now_ns)) {
    waits_ = false;
    any = true;
    const std::uint64_t begin = wires_.size() == 1 ? 0 : std::max(model.cycle(), next_cycle_);  // one wire: back to back
    std::size_t longest_bytes = 0;
    for (std::size_t k = 0; k < wires_.size(); ++k) {
      Wire& wire = wires_[k];
      wire.is_silent = wire.frames.empty();
      if (wire.is_silent) continue;
      longest_bytes = std::max(longest_bytes, wire.frames.front().size());
      model.wire_in(k).push(std::move(wire.frames.front()), begin);
      wire.frames.pop_front();
    }
    next_cycle_ = begin + (longest_bytes + kAroundBytes) / nanet::gateware::bytes_per_cycle(model.line()) + 1;
  }
  return any;
}

}  // namespace nanet::link::gateware
