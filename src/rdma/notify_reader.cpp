// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <string>

#include "nanet/setup_error.hpp"
#include "rdma/notify_layout.hpp"

namespace nanet::rdma {
namespace {

std::atomic_ref<std::uint64_t> word_at(std::span<std::byte> memory, std::size_t at) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(memory.data() + at));
}

}  // namespace

std::size_t notify_ring_bytes(const NotifyRingConfig& config) {
  if (!is_right(config))
    throw SetupError(
        "no ring of " + std::to_string(config.slot_count) + " slots for " + std::to_string(config.payload_bytes_max) + " bytes",
        "it has 1..1048576 slots for 1..65535 bytes", "choose numbers in these ranges");
  return slots_at(config.slot_count) + config.slot_count * rounded(config.payload_bytes_max);
}

NotifyReader::NotifyReader(std::span<std::byte> memory, const NotifyRingConfig& config)
    : memory_(memory),
      slot_count_(config.slot_count),
      slot_bytes_(rounded(config.payload_bytes_max)),
      payload_bytes_max_(config.payload_bytes_max),
      slots_at_(slots_at(config.slot_count)),
      is_given_back_(config.slot_count) {
  const std::size_t wanted = notify_ring_bytes(config);
  if (memory.size() < wanted || reinterpret_cast<std::uintptr_t>(memory.data()) % 64 != 0)
    throw SetupError("a ring does not fit into " + std::to_string(memory.size()) + " bytes",
                     "it needs " + std::to_string(wanted) + ", from a multiple of 64 on", "give it a region of notify_ring_bytes()");
  std::memset(memory.data(), 0, slots_at_);
  const RingHead head{.slot_count = config.slot_count,
                      .payload_bytes_max = config.payload_bytes_max,
                      .slot_bytes = static_cast<std::uint32_t>(slot_bytes_)};
  std::memcpy(memory.data(), &head, sizeof head);
}

std::optional<std::span<std::byte>> NotifyReader::take() {
  while (taken_ - consumed_ < slot_count_) {
    const std::uint64_t slot = taken_ % slot_count_;
    const std::uint64_t word = word_at(memory_, NOTICES_AT + 8 * slot).load(std::memory_order_acquire);
    if (!is_of(word, taken_)) return std::nullopt;
    ++taken_;
    const std::size_t bytes = word & 0xffff;
    if (bytes <= payload_bytes_max_) return memory_.subspan(slots_at_ + slot * slot_bytes_, bytes);
    ++malformed_;
    pass_back(slot);
  }
  return std::nullopt;
}

void NotifyReader::give_back(std::span<const std::byte> payload) {
  pass_back(static_cast<std::uint64_t>(payload.data() - memory_.data() - static_cast<std::ptrdiff_t>(slots_at_)) / slot_bytes_);
}

void NotifyReader::pass_back(std::uint64_t slot) {
  is_given_back_[slot] = 1;
  const std::uint64_t before = consumed_;
  while (consumed_ < taken_ && is_given_back_[consumed_ % slot_count_]) is_given_back_[consumed_++ % slot_count_] = 0;
  if (consumed_ != before) word_at(memory_, CONSUMED_AT).store(consumed_, std::memory_order_release);
}

}  // namespace nanet::rdma
