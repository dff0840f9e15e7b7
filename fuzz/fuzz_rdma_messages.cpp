// SPDX-License-Identifier: Apache-2.0
// Any bytes as each message of remote memory: as they are, and with the magic number and version that fit. What a parser takes is exactly what the
// picture at the head of messages.hpp describes, read here a second time by offsets; and it is written as it was read.
//
// A new message: a line in LLVMFuzzerTestOneInput, a function `takes_...`, and an input of it in make_corpus.py.
#include <algorithm>
#include <optional>

#include "fuzz_common.hpp"
#include "rdma/messages.hpp"

namespace {

using namespace nanet::rdma;
using nanet::fuzz::require;
using Data = std::span<const std::byte>;

std::uint64_t number(Data data, std::size_t offset, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(data[offset + i]);
  return value;
}

bool is_whole(Data data, const char (&magic)[5], std::size_t bytes) {
  return data.size() == bytes && std::memcmp(data.data(), magic, 4) == 0;
}
bool is_ours(Data data, const char (&magic)[5]) {
  return data.size() >= 8 && std::memcmp(data.data(), magic, 4) == 0 && number(data, 4, 2) == 2;
}

bool takes_greeting(Data data) { return is_whole(data, "NRDG", 40); }
bool takes_hello(Data data) { return is_whole(data, "NRDH", 136) && number(data, 6, 2) >= 1 && number(data, 6, 2) <= 64; }
bool takes_welcome(Data data) { return is_whole(data, "NRDW", 40); }
bool takes_open(Data data) { return is_ours(data, "NRDO") && data.size() > 8 && data.size() <= 8 + 16384; }
bool takes_fetch(Data data) { return is_ours(data, "NRDF") && data.size() == 24; }
bool takes_before(Data data) { return is_ours(data, "NRDB") && data.size() == 16; }
bool takes_answer(Data data) {
  if (data.size() < 32 || data.size() > 32 + 16384 + 4000 || !is_ours(data, "NRDA")) return false;
  const std::uint64_t key_bytes = number(data, 28, 4), more = data.size() - 32;
  const std::uint64_t last = number(data, 8, 8) + number(data, 16, 8);  // wraps round where the region does
  const bool has_address = more > key_bytes || number(data, 6, 2) != 0;
  return key_bytes <= 4000 && key_bytes <= more && has_address && last >= number(data, 8, 8);
}

template <typename Message>
void check(Data data, std::optional<Message> message, bool takes) {
  require(message.has_value() == takes, "the parser takes what the description has, and nothing else");
  if (message) require(std::ranges::equal(to_bytes(*message), data), "what was read is written as it was");
}

void check_hello(Data data) {
  const auto hello = parse_hello(data);
  check(data, hello, takes_hello(data));
  if (!hello) return;
  require(hello->region().size() == number(data, 6, 2), "the name's length");
  require(std::memcmp(hello->region().data(), data.data() + 72, hello->region().size()) == 0, "the name");
}

void check_open(Data data) {
  const Data address = parse_open(data);
  require(!address.empty() == takes_open(data), "an address of a worker, or none");
  if (!address.empty())
    require(address.data() == data.data() + 8 && address.size() == data.size() - 8, "all that follows is the address");
}

void check_answer(Data data) {
  const auto answer = parse_answer(data);
  require(answer.has_value() == takes_answer(data), "an answer, or none");
  if (!answer) return;
  require(answer->key.size() == number(data, 28, 4), "the key's length");
  require(std::ranges::equal(to_bytes(answer->message, answer->worker_address, answer->key), data),
          "what was read is written as it was");
}

void check_all(Data data) {
  check(data, parse_greeting(data), takes_greeting(data));
  check(data, parse_welcome(data), takes_welcome(data));
  check(data, parse_fetch(data), takes_fetch(data));
  check(data, parse_before(data), takes_before(data));
  check_hello(data);
  check_open(data);
  check_answer(data);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nanet::fuzz::Input input(data, size);
  check_all(input.bytes());
  if (size < 8) return 0;
  for (const char last : {'G', 'H', 'W', 'O', 'F', 'B', 'A'}) {
    const std::uint32_t magic = magic_of(last);
    std::memcpy(input.bytes().data(), &magic, sizeof magic);
    std::memcpy(input.bytes().data() + 4, &MESSAGE_VERSION, sizeof MESSAGE_VERSION);
    check_all(input.bytes());
  }
  return 0;
}
