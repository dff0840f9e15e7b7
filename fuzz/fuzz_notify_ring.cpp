// SPDX-License-Identifier: Apache-2.0
// A ring whose memory a hostile writer changes as it likes between any two calls of the reader: payloads lie in slots of their own, no slot is lent
// twice, what is given back is said, and each call does what a second reader, written plainly, does. Then any bytes as the head of a ring.
//
// Input: 2 bytes of configuration, then one byte an operation with its arguments after it.
#include <map>
#include <new>
#include <set>
#include <vector>

#include "fuzz_common.hpp"
#include "rdma/notify_layout.hpp"

namespace {

using namespace nanet::rdma;
using nanet::fuzz::Bytes;
using nanet::fuzz::require;

// Exactly as large as the ring, at a multiple of 64.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(static_cast<std::byte*>(::operator new(bytes, kAlignment))), size_(bytes) {}
  ~Memory() { ::operator delete(bytes_, kAlignment); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::span<std::byte> span() { return {bytes_, size_}; }
  std::uint64_t word(std::size_t at) const {
    std::uint64_t value;
    std::memcpy(&value, bytes_ + at, sizeof value);
    return value;
  }
  void set_word(std::size_t at, std::uint64_t value) { std::memcpy(bytes_ + at, &value, sizeof value); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  std::byte* bytes_;
  std::size_t size_;
};

// The reader and what it must do: the numbers of payloads that are lent, by slot.
class Watched {
 public:
  Watched(Memory& memory, const NotifyRingConfig& config) : memory_(memory), config_(config), reader_(memory.span(), config) {}

  void take() {
    const auto payload = reader_.take();
    bool expected = false;
    std::uint64_t bytes = 0;
    const std::uint64_t before = given_back_;
    while (next_ - given_back_ < config_.slot_count) {
      const std::uint64_t word = memory_.word(128 + 8 * (next_ % config_.slot_count));
      if (word >> 16 != next_ + 1) break;  // no test runs for 2^48 payloads
      bytes = word & 0xffff;
      ++next_;
      expected = bytes <= config_.payload_bytes_max;
      if (expected) break;
      ++malformed_;
      end(next_ - 1);
    }
    require_told(before);
    require(payload.has_value() == expected, "a payload comes exactly when there is a right notice");
    require(reader_.taken_count() == next_ && reader_.malformed_count() == malformed_, "the counts");
    if (!payload) return;
    const std::size_t slots = (128 + 8 * std::size_t{config_.slot_count} + 63) / 64 * 64;
    const std::size_t slot_bytes = (std::size_t{config_.payload_bytes_max} + 63) / 64 * 64;
    const std::uint64_t slot = (next_ - 1) % config_.slot_count;
    require(payload->data() == memory_.span().data() + slots + slot * slot_bytes && payload->size() == bytes,
            "it lies in its slot");
    if (!payload->empty()) payload->back() = payload->front();
    require(lent_.emplace(next_ - 1, *payload).second, "lent once");
    require(lent_.size() <= config_.slot_count, "no more are lent than there are slots");
  }

  void give_back(std::size_t which) {
    if (lent_.empty()) return;
    auto chosen = lent_.begin();
    std::advance(chosen, which % lent_.size());
    const std::uint64_t before = given_back_;
    reader_.give_back(chosen->second);
    end(chosen->first);
    require_told(before);
    lent_.erase(chosen);
  }

  std::uint64_t next() const { return next_; }

 private:
  void end(std::uint64_t number) {
    ended_.insert(number);
    while (ended_.erase(given_back_) != 0) ++given_back_;
  }
  void require_told(std::uint64_t before) {
    if (given_back_ != before) require(memory_.word(64) == given_back_, "the writer is told");
  }

  Memory& memory_;
  NotifyRingConfig config_;
  NotifyReader reader_;
  std::uint64_t next_ = 0;
  std::uint64_t given_back_ = 0;
  std::uint64_t malformed_ = 0;
  std::map<std::uint64_t, std::span<std::byte>> lent_;
  std::set<std::uint64_t> ended_;
};

void check_head(Bytes& bytes) {
  const auto region_bytes = bytes.take_as<std::uint64_t>();
  const auto head = bytes.take_as<RingHead>();
  const auto config = ring_of(head, region_bytes);
  if (!config) return;
  const std::uint64_t notices_end = (128 + 8 * std::uint64_t{head.slot_count} + 63) / 64 * 64;
  require(head.slot_count >= 1 && head.slot_count <= 1u << 20 && head.slot_bytes >= head.payload_bytes_max, "a ring's numbers");
  require(notices_end + std::uint64_t{head.slot_count} * head.slot_bytes <= region_bytes, "a ring lies in its region");
}

bool is_refused(const NotifyRingConfig& config, std::span<std::byte> memory) {
  return nanet::fuzz::is_refused([&] { NotifyReader(memory, config); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 1024) return 0;
  Bytes head(data, size);
  check_head(head);
  Bytes bytes(data, size);
  const NotifyRingConfig config{.slot_count = bytes.take() % 17u, .payload_bytes_max = bytes.take()};
  if (config.slot_count == 0 || config.payload_bytes_max == 0) {
    require(is_refused(config, {}), "a ring of nothing is refused");
    return 0;
  }
  Memory memory(notify_ring_bytes(config));
  require(is_refused(config, memory.span().first(memory.span().size() - 1)), "memory that is too small is refused");
  Watched ring(memory, config);
  std::uint64_t honest = 0;  // the number of the next right notice
  while (!bytes.empty()) {
    const std::uint8_t operation = bytes.take();
    const std::uint8_t more = operation >> 3;
    switch (operation & 7) {
      case 0: ring.give_back(more); break;
      case 1: ring.take(); break;
      case 2: memory.set_word(memory.span().size() / 8 * more / 32 * 8, bytes.take_as<std::uint64_t>()); break;  // anywhere
      case 3: memory.set_word(128 + 8 * (more % config.slot_count), bytes.take_as<std::uint64_t>()); break;      // any notice
      case 4: honest = ring.next() + more; break;                          // ahead, or from the start
      case 5: memory.set_word(64, bytes.take_as<std::uint64_t>()); break;  // the reader's own counter
      default:  // a right notice, of up to 255 bytes: more than some slots have
        memory.set_word(128 + 8 * (honest % config.slot_count), notice(honest, bytes.take()));
        ++honest;
        break;
    }
  }
  return 0;
}
