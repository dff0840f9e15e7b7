// SPDX-License-Identifier: Apache-2.0
#include "model/torus/rdma_registers.hpp"

#include <numeric>

namespace nanet::torus {
namespace {

constexpr std::uint32_t kNeighbours = 0x028, kChanges = 0x030, kControl = 0x0E0, kArm = 0x0F0, kState = 0x0F8;

// The RTL's adder comes to a counter once in a round. Who reads the next but so many finds it just ahead, and need not wait for a round each time.
constexpr std::size_t kStride = 12;
static_assert(std::gcd(kStride, link::kTorusCounters) == 1);

}  // namespace

std::size_t RdmaRegisters::index() const { return turn_ * kStride % link::kTorusCounters; }

std::optional<RdmaRegisters::Access> RdmaRegisters::next(bool irq) {
  if (is_busy_) return std::nullopt;
  if (step_ == Step::counter && irq) step_ = Step::state;
  is_busy_ = true;
  reading_ = index();
  return access();
}

RdmaRegisters::Access RdmaRegisters::access() const {
  switch (step_) {
    case Step::enable: return {.is_write = true, .address = kControl, .data = 1};
    case Step::arm: return {.is_write = true, .address = kArm, .data = seen_};
    case Step::counter: return {.address = link::kTorusCounterTable[reading_].address};
    case Step::state: return {.address = kState};
    case Step::changes: return {.address = kChanges};
    case Step::clear: return {.is_write = true, .address = kChanges, .data = bits_};
    case Step::neighbours: break;
  }
  return {.address = kNeighbours};
}

void RdmaRegisters::done(std::uint64_t data) {
  is_busy_ = false;
  switch (step_) {
    case Step::enable: step_ = Step::arm; return;
    case Step::arm: step_ = Step::counter; return;
    case Step::counter:
      if (reading_ != index()) return;  // all are read anew
      counters_[reading_] = data;
      turn_ = turn_ + 1 == link::kTorusCounters ? 0 : turn_ + 1;
      has_read_ = has_read_ || turn_ == 0;
      return;
    case Step::state:
      seen_ = static_cast<std::uint32_t>(data);
      step_ = Step::changes;
      return;
    case Step::changes:
      take_changes(data);
      step_ = Step::clear;
      return;
    case Step::clear: step_ = Step::neighbours; return;
    case Step::neighbours:
      changes_.neighbours = data;
      step_ = Step::arm;
      return;
  }
}

void RdmaRegisters::take_changes(std::uint64_t bits) {
  bits_ = bits;
  ++changes_.interrupts;
  for (std::size_t k = 0; k < changes_.seen.size(); ++k) changes_.seen[k] += bits >> k & 1;
}

}  // namespace nanet::torus
