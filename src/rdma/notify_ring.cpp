// SPDX-License-Identifier: Apache-2.0
#include "nanet/rdma/notify_ring.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::rdma {
namespace {

constexpr std::uint64_t RING_MAGIC = 0x474e49524e41554eu;
constexpr std::uint32_t RING_VERSION = 1;
constexpr std::size_t CONSUMED_AT = 64, NOTICES_AT = 128;
constexpr std::uint64_t SEQUENCE_MASK = (std::uint64_t{1} << 48) - 1;

struct Head {
  std::uint64_t magic = RING_MAGIC;
  std::uint32_t version = RING_VERSION;
  std::uint32_t slot_count = 0;
  std::uint32_t payload_bytes_max = 0;
  std::uint32_t slot_bytes = 0;
};
static_assert(sizeof(Head) == 24 && std::endian::native == std::endian::little);

constexpr std::uint64_t rounded(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
constexpr std::uint64_t slots_at(std::uint64_t slot_count) { return rounded(NOTICES_AT + 8 * slot_count); }
constexpr std::uint64_t notice(std::uint64_t number, std::size_t bytes) { return ((number + 1) & SEQUENCE_MASK) << 16 | bytes; }
constexpr bool is_of(std::uint64_t word, std::uint64_t number) { return word >> 16 == ((number + 1) & SEQUENCE_MASK); }

bool is_right(const NotifyRingConfig& config) {
  return config.slot_count >= 1 && config.slot_count <= 1u << 20 && config.payload_bytes_max >= 1 &&
         config.payload_bytes_max <= 65535;
}

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
  const Head head{.slot_count = config.slot_count,
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

NotifyWriter::NotifyWriter(Connection connection) : connection_(std::move(connection)) {
  const auto refuse = [](const std::string& why) {
    throw SetupError("cannot write to a ring", why, "connect to the region of a ring, exposed for reading and writing");
  };
  if (!connection_.permissions().read || !connection_.permissions().write) refuse("its region may not be read and written");
  Head head{.magic = 0};
  if (connection_.bytes() < NOTICES_AT) refuse("its region is too small for one");
  if (const Status status = connection_.get(0, std::as_writable_bytes(std::span(&head, 1))); status != Status::ok)
    refuse("reading its head: " + std::string(name(status)));
  const NotifyRingConfig config{head.slot_count, head.payload_bytes_max};
  if (head.magic != RING_MAGIC || head.version != RING_VERSION || !is_right(config) ||
      head.slot_bytes != rounded(head.payload_bytes_max) || connection_.bytes() < notify_ring_bytes(config))
    refuse("there is none in its region, or one of another version");
  slot_count_ = head.slot_count;
  payload_bytes_max_ = head.payload_bytes_max;
  slot_bytes_ = head.slot_bytes;
  slots_at_ = slots_at(slot_count_);
  notices_.resize(slot_count_);
  find_next();
}

// Behind what a writer before this one has notified.
void NotifyWriter::find_next() {
  Status status = connection_.get_words(CONSUMED_AT, std::span(&consumed_, 1));
  if (status == Status::ok) status = connection_.get_words(NOTICES_AT, notices_);
  if (status != Status::ok)
    throw SetupError("cannot read the state of a ring", std::string(name(status)) + ", " + connection_.error(),
                     "see whether its owner runs");
  next_ = consumed_;
  while (next_ - consumed_ < slot_count_ && is_of(notices_[next_ % slot_count_], next_)) ++next_;
  first_ = next_;
}

std::uint64_t NotifyWriter::free_slots(Status& status, std::size_t wanted) {
  if (slot_count_ - (next_ - consumed_) >= wanted) return wanted;
  std::uint64_t consumed = 0;
  status = connection_.get_words(CONSUMED_AT, std::span(&consumed, 1));
  if (status != Status::ok) return 0;
  if (consumed - consumed_ > next_ - consumed_) {  // a counter that went back, or ran ahead of what was sent
    status = Status::failed;
    return 0;
  }
  consumed_ = consumed;
  return std::min<std::uint64_t>(wanted, slot_count_ - (next_ - consumed_));
}

NotifyWriter::Sent NotifyWriter::send(std::span<const std::span<const std::byte>> payloads) {
  for (const auto& payload : payloads)
    if (payload.size() > payload_bytes_max_) return {Status::out_of_bounds, 0};
  Status status = Status::ok;
  const auto going = payloads.first(free_slots(status, payloads.size()));
  if (status != Status::ok || going.empty()) return {status, 0};
  status = put_payloads(going);
  if (status == Status::ok) status = notify(going);
  if (status != Status::ok) return {status, 0};
  next_ += going.size();
  return {Status::ok, going.size()};
}

// They are in the target's memory when it returns ok; none of them is in use here when it returns at all.
Status NotifyWriter::put_payloads(std::span<const std::span<const std::byte>> payloads) {
  Status status = Status::ok;
  const auto take_ended = [&] {
    while (const auto completed = connection_.take_completed())
      if (status == Status::ok) status = completed->status;
  };
  for (std::size_t index = 0; index < payloads.size() && status == Status::ok; ++index) {
    const std::uint64_t slot = (next_ + index) % slot_count_;
    while ((status = connection_.start_put(slots_at_ + slot * slot_bytes_, payloads[index], index)) == Status::would_block) {
      status = connection_.progress();
      take_ended();
      if (status != Status::ok) break;
    }
  }
  if (status == Status::ok) status = connection_.flush();
  take_ended();
  return status;
}

Status NotifyWriter::notify(std::span<const std::span<const std::byte>> payloads) {
  const std::size_t first_slot = next_ % slot_count_;
  for (std::size_t index = 0; index < payloads.size(); ++index)
    notices_[(first_slot + index) % slot_count_] = notice(next_ + index, payloads[index].size());
  const std::size_t before_end = std::min<std::size_t>(payloads.size(), slot_count_ - first_slot);
  const std::span<const std::uint64_t> words(notices_);
  const Status status = connection_.put_words(NOTICES_AT + 8 * first_slot, words.subspan(first_slot, before_end));
  if (status != Status::ok || before_end == payloads.size()) return status;
  return connection_.put_words(NOTICES_AT, words.first(payloads.size() - before_end));
}

Status NotifyWriter::flush() { return connection_.flush(); }
Status NotifyWriter::close() { return connection_.close(); }

}  // namespace nanet::rdma
