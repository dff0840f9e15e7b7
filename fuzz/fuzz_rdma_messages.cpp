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

bool begins_with(Data data, const char (&magic)[5]) {
  return data.size() >= 8 && std::memcmp(data.data(), magic, 4) == 0 && number(data, 4, 2) == 1;
}

bool has_name(Data data) { return number(data, 6, 2) >= 1 && number(data, 6, 2) <= 64; }
bool takes_open(Data data) { return data.size() == 88 && begins_with(data, "NRDO") && has_name(data); }
bool takes_fetch(Data data) { return data.size() == 112 && begins_with(data, "NRDF") && has_name(data); }
bool takes_before(Data data) { return data.size() == 24 && begins_with(data, "NRDB"); }
bool takes_answer(Data data) {
  if (data.size() < 40 || !begins_with(data, "NRDA")) return false;
  const std::uint64_t key_bytes = number(data, 36, 4);
  const std::uint64_t last = number(data, 16, 8) + number(data, 24, 8);  // wraps round where the region does
  return key_bytes <= 4000 && data.size() == 40 + key_bytes && last >= number(data, 16, 8);
}

template <typename Message>
void check(Data data, std::optional<Message> message, bool takes) {
  require(message.has_value() == takes, "the parser takes what the description has, and nothing else");
  if (!message) return;
  const auto written = to_bytes(*message, data.subspan(sizeof(Message)));
  require(std::ranges::equal(written, data), "what was read is written as it was");
  if constexpr (std::is_same_v<Message, OpenMessage>) {
    require(message->region().size() == number(data, 6, 2) && std::memcmp(message->region().data(), data.data() + 24, 1) == 0, "the name");
  }
}

void check_all(Data data) {
  check(data, parse_open(data), takes_open(data));
  check(data, parse_fetch(data), takes_fetch(data));
  check(data, parse_before(data), takes_before(data));
  check(data, parse_answer(data), takes_answer(data));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nanet::fuzz::Input input(data, size);
  check_all(input.bytes());
  if (size < 8) return 0;
  for (const std::uint32_t magic : {OPEN_MAGIC, FETCH_MAGIC, BEFORE_MAGIC, ANSWER_MAGIC}) {
    std::memcpy(input.bytes().data(), &magic, sizeof magic);
    std::memcpy(input.bytes().data() + 4, &MESSAGE_VERSION, sizeof MESSAGE_VERSION);
    check_all(input.bytes());
  }
  return 0;
}
