// SPDX-License-Identifier: Apache-2.0
#include "rdma/messages.hpp"

#include <gtest/gtest.h>

namespace nanet::rdma {
namespace {

template <typename Message>
std::vector<std::byte> bytes_of(const Message& message, std::size_t more = 0) {
  return to_bytes(message, std::vector<std::byte>(more));
}

TEST(Messages, open_is_read_from_its_bytes) {
  std::vector<std::byte> bytes(88);
  const unsigned char head[] = {'N', 'R', 'D', 'O', 1, 0, 2, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0xef, 0xbe, 0, 0, 0, 0, 0, 0x80, 'a', 'b'};
  std::memcpy(bytes.data(), head, sizeof head);
  const auto open = parse_open(bytes);
  ASSERT_TRUE(open);
  EXPECT_EQ(open->id, 9u);
  EXPECT_EQ(open->token, 0x800000000000beefu);
  EXPECT_EQ(open->region(), "ab");
}

TEST(Messages, open_of_any_other_shape_is_none) {
  OpenMessage good{.name_bytes = 64};
  EXPECT_TRUE(parse_open(bytes_of(good)));
  EXPECT_FALSE(parse_open(bytes_of(good, 1)));
  EXPECT_FALSE(parse_open(std::span<const std::byte>(bytes_of(good)).first(87)));
  EXPECT_FALSE(parse_open({}));
  OpenMessage bad = good;
  bad.name_bytes = 65;
  EXPECT_FALSE(parse_open(bytes_of(bad)));
  bad.name_bytes = 0;
  EXPECT_FALSE(parse_open(bytes_of(bad)));
  bad = good;
  bad.version = 2;
  EXPECT_FALSE(parse_open(bytes_of(bad)));
  bad = good;
  bad.magic = ANSWER_MAGIC;
  EXPECT_FALSE(parse_open(bytes_of(bad)));
}

TEST(Messages, answer_is_read_from_its_bytes) {
  const unsigned char bytes[41] = {'N', 'R', 'D', 'A', 1, 0, 3, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0,   0,
                                   0,   0,   0,   8,   0, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 1, 0, 0,    0, 0xee};
  const auto answer = parse_answer(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->refusal, Refusal::taken);
  EXPECT_EQ(answer->id, 9u);
  EXPECT_EQ(answer->address, 0x1000u);
  EXPECT_EQ(answer->bytes, 8u);
  EXPECT_EQ(answer->permissions, PERMISSION_READ | PERMISSION_WRITE);
  EXPECT_EQ(answer->memory, Memory::device);
}

TEST(Messages, answer_with_a_key_of_another_length_is_none) {
  const AnswerMessage good{.bytes = 8, .key_bytes = 5};
  EXPECT_TRUE(parse_answer(bytes_of(good, 5)));
  EXPECT_FALSE(parse_answer(bytes_of(good, 4)));
  EXPECT_FALSE(parse_answer(bytes_of(good, 6)));
  EXPECT_FALSE(parse_answer(std::span<const std::byte>(bytes_of(good)).first(39)));
  AnswerMessage bad{.key_bytes = KEY_BYTES_MAX + 1};
  EXPECT_FALSE(parse_answer(bytes_of(bad, bad.key_bytes)));
}

TEST(Messages, fetch_and_before_of_any_other_shape_are_none) {
  FetchMessage fetch{.operation = FetchOperation::swap, .offset = 16, .value = 5};
  fetch.region.name_bytes = 1;
  ASSERT_TRUE(parse_fetch(bytes_of(fetch)));
  EXPECT_EQ(parse_fetch(bytes_of(fetch))->offset, 16u);
  EXPECT_FALSE(parse_fetch(bytes_of(fetch, 1)));
  EXPECT_FALSE(parse_open(bytes_of(fetch)));
  EXPECT_FALSE(parse_open(bytes_of(fetch.region)));  // the beginning of a fetch is no open message
  fetch.region.name_bytes = 0;
  EXPECT_FALSE(parse_fetch(bytes_of(fetch)));
  BeforeMessage before{.id = 3, .before = 77};
  ASSERT_TRUE(parse_before(bytes_of(before)));
  EXPECT_EQ(parse_before(bytes_of(before))->before, 77u);
  EXPECT_FALSE(parse_before(bytes_of(before, 1)));
  before.version = 0;
  EXPECT_FALSE(parse_before(bytes_of(before)));
}

TEST(Messages, answer_whose_region_wraps_round_is_none) {
  EXPECT_FALSE(parse_answer(bytes_of(AnswerMessage{.address = UINT64_MAX - 7, .bytes = 8})));
  EXPECT_TRUE(parse_answer(bytes_of(AnswerMessage{.address = UINT64_MAX - 8, .bytes = 8})));
}

}  // namespace
}  // namespace nanet::rdma
