// SPDX-License-Identifier: Apache-2.0
// Messages: a connection asks for a region by name and token, the target answers with its address, size, permissions and remote key. Where
// nothing but the target's CPU can do an atomic, it is asked for by a message too. Little-endian, of bounded size; what comes is from an
// unknown sender and is checked here, once.
//
//   open   "NRDO" u32 | version u16 | name bytes u16 | id u64 | token u64 | name, padded with zeros to 64          88 bytes
//   answer "NRDA" u32 | version u16 | refusal u16 | id u64 | address u64 | bytes u64 | permissions u16 | memory u16 | key bytes u32 | key    40 + key
//   fetch  "NRDF" u32 | version u16 | name bytes u16 | id u64 | token u64 | name, 64 | operation u64 | offset u64 | value u64  112 bytes
//   before "NRDB" u32 | version u16 | refusal u16 | id u64 | before u64                                            24 bytes
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nanet::rdma {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::size_t NAME_BYTES_MAX = 64;
inline constexpr std::size_t KEY_BYTES_MAX = 4000;
inline constexpr std::uint16_t MESSAGE_VERSION = 1;
inline constexpr std::uint32_t OPEN_MAGIC = 0x4f44524e, ANSWER_MAGIC = 0x4144524e;
inline constexpr std::uint32_t FETCH_MAGIC = 0x4644524e, BEFORE_MAGIC = 0x4244524e;
inline constexpr std::uint16_t PERMISSION_READ = 1, PERMISSION_WRITE = 2;

// What a region is made of; unknown numbers are treated as device: no CPU touches it.
enum class Memory : std::uint16_t { host, device };

enum class Refusal : std::uint16_t {
  none,
  not_exposed,  // no such name, or another token: which of the two is not told
  not_allowed,  // of an atomic: permissions, bounds, alignment or operation
  taken,        // it has as many connections as it takes
};

struct OpenMessage {
  std::uint32_t magic = OPEN_MAGIC;
  std::uint16_t version = MESSAGE_VERSION;
  std::uint16_t name_bytes = 0;
  std::uint64_t id = 0;
  std::uint64_t token = 0;
  char name[NAME_BYTES_MAX] = {};

  std::string_view region() const { return {name, name_bytes}; }
};
static_assert(sizeof(OpenMessage) == 88);

struct AnswerMessage {
  std::uint32_t magic = ANSWER_MAGIC;
  std::uint16_t version = MESSAGE_VERSION;
  Refusal refusal = Refusal::none;
  std::uint64_t id = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint16_t permissions = 0;
  Memory memory = Memory::host;
  std::uint32_t key_bytes = 0;
};
static_assert(sizeof(AnswerMessage) == 40);

enum class FetchOperation : std::uint64_t { add, swap };

struct FetchMessage {
  OpenMessage region{.magic = FETCH_MAGIC};
  FetchOperation operation = FetchOperation::add;
  std::uint64_t offset = 0;
  std::uint64_t value = 0;
};
static_assert(sizeof(FetchMessage) == 112);

struct BeforeMessage {
  std::uint32_t magic = BEFORE_MAGIC;
  std::uint16_t version = MESSAGE_VERSION;
  Refusal refusal = Refusal::none;
  std::uint64_t id = 0;
  std::uint64_t before = 0;
};
static_assert(sizeof(BeforeMessage) == 24);

inline bool is_right(const OpenMessage& message, std::uint32_t magic) {
  return message.magic == magic && message.version == MESSAGE_VERSION && message.name_bytes >= 1 &&
         message.name_bytes <= NAME_BYTES_MAX;
}

inline std::optional<OpenMessage> parse_open(std::span<const std::byte> data) {
  OpenMessage message;
  if (data.size() != sizeof message) return std::nullopt;
  std::memcpy(&message, data.data(), sizeof message);
  return is_right(message, OPEN_MAGIC) ? std::optional(message) : std::nullopt;
}

inline std::optional<FetchMessage> parse_fetch(std::span<const std::byte> data) {
  FetchMessage message;
  if (data.size() != sizeof message) return std::nullopt;
  std::memcpy(&message, data.data(), sizeof message);
  return is_right(message.region, FETCH_MAGIC) ? std::optional(message) : std::nullopt;
}

inline std::optional<BeforeMessage> parse_before(std::span<const std::byte> data) {
  BeforeMessage message;
  if (data.size() != sizeof message) return std::nullopt;
  std::memcpy(&message, data.data(), sizeof message);
  return message.magic == BEFORE_MAGIC && message.version == MESSAGE_VERSION ? std::optional(message) : std::nullopt;
}

// The key is what follows the message.
inline std::optional<AnswerMessage> parse_answer(std::span<const std::byte> data) {
  AnswerMessage message;
  if (data.size() < sizeof message) return std::nullopt;
  std::memcpy(&message, data.data(), sizeof message);
  const bool is_whole = message.magic == ANSWER_MAGIC && message.version == MESSAGE_VERSION && message.key_bytes <= KEY_BYTES_MAX &&
                        data.size() == sizeof message + message.key_bytes &&
                        message.bytes <= UINT64_MAX - message.address;  // no offset inside may wrap round
  return is_whole ? std::optional(message) : std::nullopt;
}

// The bytes of a message, and what follows it.
template <typename Message>
std::vector<std::byte> to_bytes(const Message& message, std::span<const std::byte> more = {}) {
  std::vector<std::byte> bytes(sizeof message + more.size());
  std::memcpy(bytes.data(), &message, sizeof message);
  if (!more.empty()) std::memcpy(bytes.data() + sizeof message, more.data(), more.size());
  return bytes;
}

}  // namespace nanet::rdma
