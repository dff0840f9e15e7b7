// SPDX-License-Identifier: Apache-2.0
// Messages of the set-up channel, little-endian, each in a frame of its own: its length in 4 bytes, then the message. The first two that the
// target reads are of an unknown sender: whatever comes is checked here, once.
//
//   greeting "NRDG" u32 | version u16 | 0 u16 | challenge 32                                                  target ->       40 bytes
//   hello    "NRDH" u32 | version u16 | name bytes u16 | challenge 32 | proof 32 | name, zeros to 64          -> target      136
//   welcome  "NRDW" u32 | version u16 | refusal u16 | proof 32                                                target ->       40
//   open     "NRDO" u32 | version u16 | 0 u16 | UCX's address of the connection's worker                      -> target        8 + address
//   answer   "NRDA" u32 | version u16 | refusal u16 | address u64 | bytes u64 | permissions u16 | memory u16
//            | key bytes u32 | UCX's address of the target's worker | key                                     target ->       32 + both
//   fetch    "NRDF" u32 | version u16 | operation u16 | offset u64 | value u64                                -> target       24
//   before   "NRDB" u32 | version u16 | refusal u16 | before u64                                              target ->       16
#pragma once

#include <array>
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
inline constexpr std::size_t WORKER_ADDRESS_BYTES_MAX = 16384;
inline constexpr std::uint16_t MESSAGE_VERSION = 2;
inline constexpr std::uint16_t PERMISSION_READ = 1, PERMISSION_WRITE = 2;

constexpr std::uint32_t magic_of(char last) { return 0x0044524eu | static_cast<std::uint32_t>(last) << 24; }

using Challenge = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

// What a region is made of; unknown numbers are treated as device: no CPU touches it.
enum class Memory : std::uint16_t { host, device };

enum class Refusal : std::uint16_t {
  none,
  not_exposed,   // no such name, or another token: which of the two is not revealed
  not_allowed,   // of an atomic: permissions, bounds, alignment or operation
  taken,         // it has as many connections as it takes
  full,          // the target has
  unreachable,   // UCX finds no transport from there to here
  other_version  // of these messages
};

struct GreetingMessage {
  std::uint32_t magic = magic_of('G');
  std::uint16_t version = MESSAGE_VERSION;
  std::uint16_t zero = 0;
  Challenge challenge{};
};
static_assert(sizeof(GreetingMessage) == 40);

struct HelloMessage {
  std::uint32_t magic = magic_of('H');
  std::uint16_t version = MESSAGE_VERSION;
  std::uint16_t name_bytes = 0;
  Challenge challenge{};
  Proof proof{};
  char name[NAME_BYTES_MAX] = {};

  std::string_view region() const { return {name, name_bytes}; }
};
static_assert(sizeof(HelloMessage) == 136);

struct WelcomeMessage {
  std::uint32_t magic = magic_of('W');
  std::uint16_t version = MESSAGE_VERSION;
  Refusal refusal = Refusal::none;
  Proof proof{};
};
static_assert(sizeof(WelcomeMessage) == 40);

struct OpenMessage {
  std::uint32_t magic = magic_of('O');
  std::uint16_t version = MESSAGE_VERSION;
  std::uint16_t zero = 0;
};
static_assert(sizeof(OpenMessage) == 8);

struct AnswerMessage {
  std::uint32_t magic = magic_of('A');
  std::uint16_t version = MESSAGE_VERSION;
  Refusal refusal = Refusal::none;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint16_t permissions = 0;
  Memory memory = Memory::host;
  std::uint32_t key_bytes = 0;
};
static_assert(sizeof(AnswerMessage) == 32);

enum class FetchOperation : std::uint16_t { add, swap };

struct FetchMessage {
  std::uint32_t magic = magic_of('F');
  std::uint16_t version = MESSAGE_VERSION;
  FetchOperation operation = FetchOperation::add;
  std::uint64_t offset = 0;
  std::uint64_t value = 0;
};
static_assert(sizeof(FetchMessage) == 24);

struct BeforeMessage {
  std::uint32_t magic = magic_of('B');
  std::uint16_t version = MESSAGE_VERSION;
  Refusal refusal = Refusal::none;
  std::uint64_t before = 0;
};
static_assert(sizeof(BeforeMessage) == 16);

// The longest frame of each direction.
inline constexpr std::size_t OPEN_BYTES_MAX = sizeof(OpenMessage) + WORKER_ADDRESS_BYTES_MAX;
inline constexpr std::size_t ANSWER_BYTES_MAX = sizeof(AnswerMessage) + WORKER_ADDRESS_BYTES_MAX + KEY_BYTES_MAX;

// A message of one size with its magic; the version is the caller's to look at.
template <typename Message>
std::optional<Message> parse_message(std::span<const std::byte> data) {
  Message message;
  const std::uint32_t magic = message.magic;
  if (data.size() != sizeof message) return std::nullopt;
  std::memcpy(&message, data.data(), sizeof message);
  return message.magic == magic ? std::optional(message) : std::nullopt;
}

template <typename Message>
std::optional<Message> parse_of_this_version(std::span<const std::byte> data) {
  const auto message = parse_message<Message>(data);
  return message && message->version == MESSAGE_VERSION ? message : std::nullopt;
}

inline std::optional<GreetingMessage> parse_greeting(std::span<const std::byte> data) {
  return parse_message<GreetingMessage>(data);
}
inline std::optional<WelcomeMessage> parse_welcome(std::span<const std::byte> data) { return parse_message<WelcomeMessage>(data); }
inline std::optional<FetchMessage> parse_fetch(std::span<const std::byte> data) {
  return parse_of_this_version<FetchMessage>(data);
}
inline std::optional<BeforeMessage> parse_before(std::span<const std::byte> data) {
  return parse_of_this_version<BeforeMessage>(data);
}

inline std::optional<HelloMessage> parse_hello(std::span<const std::byte> data) {
  const auto hello = parse_message<HelloMessage>(data);
  return hello && hello->name_bytes >= 1 && hello->name_bytes <= NAME_BYTES_MAX ? hello : std::nullopt;
}

// The address of a worker of UCX; empty: it is none.
inline std::span<const std::byte> parse_open(std::span<const std::byte> data) {
  if (data.size() <= sizeof(OpenMessage) || data.size() > OPEN_BYTES_MAX) return {};
  if (!parse_of_this_version<OpenMessage>(data.first(sizeof(OpenMessage)))) return {};
  return data.subspan(sizeof(OpenMessage));
}

struct Answer {
  AnswerMessage message;
  std::span<const std::byte> worker_address, key;  // of what was parsed
};

inline std::optional<Answer> parse_answer(std::span<const std::byte> data) {
  if (data.size() < sizeof(AnswerMessage) || data.size() > ANSWER_BYTES_MAX) return std::nullopt;
  const auto message = parse_of_this_version<AnswerMessage>(data.first(sizeof(AnswerMessage)));
  const std::span<const std::byte> more = data.subspan(sizeof(AnswerMessage));
  if (!message || message->key_bytes > KEY_BYTES_MAX || message->key_bytes > more.size()) return std::nullopt;
  if (message->bytes > UINT64_MAX - message->address) return std::nullopt;  // no offset inside may wrap round
  const std::size_t address_bytes = more.size() - message->key_bytes;
  if (message->refusal == Refusal::none && address_bytes == 0) return std::nullopt;
  return Answer{*message, more.first(address_bytes), more.subspan(address_bytes)};
}

// The bytes of a message, and what follows it.
template <typename Message>
std::vector<std::byte> to_bytes(const Message& message, std::span<const std::byte> more = {}, std::span<const std::byte> last = {}) {
  std::vector<std::byte> bytes(sizeof message + more.size() + last.size());
  std::memcpy(bytes.data(), &message, sizeof message);
  if (!more.empty()) std::memcpy(bytes.data() + sizeof message, more.data(), more.size());
  if (!last.empty()) std::memcpy(bytes.data() + sizeof message + more.size(), last.data(), last.size());
  return bytes;
}

}  // namespace nanet::rdma
