// SPDX-License-Identifier: Apache-2.0
#include "rdma/messages.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "rdma/proof.hpp"

namespace nanet::rdma {
namespace {

std::vector<std::byte> bytes_from(std::initializer_list<int> head, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::ranges::transform(head, bytes.begin(), [](int value) { return static_cast<std::byte>(value); });
  return bytes;
}

TEST(Messages, hello_is_read_from_its_bytes) {
  std::vector<std::byte> bytes = bytes_from({'N', 'R', 'D', 'H', 2, 0, 2, 0, 7}, 136);
  bytes[40] = std::byte{9};
  bytes[72] = std::byte{'a'};
  bytes[73] = std::byte{'b'};
  const auto hello = parse_hello(bytes);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->challenge[0], std::byte{7});
  EXPECT_EQ(hello->proof[0], std::byte{9});
  EXPECT_EQ(hello->region(), "ab");
}

TEST(Messages, hello_of_any_other_shape_is_none) {
  HelloMessage good{.name_bytes = 64};
  EXPECT_TRUE(parse_hello(to_bytes(good)));
  EXPECT_FALSE(parse_hello(to_bytes(good, std::vector<std::byte>(1))));
  EXPECT_FALSE(parse_hello(std::span<const std::byte>(to_bytes(good)).first(135)));
  EXPECT_FALSE(parse_hello({}));
  HelloMessage bad = good;
  bad.name_bytes = 65;
  EXPECT_FALSE(parse_hello(to_bytes(bad)));
  bad.name_bytes = 0;
  EXPECT_FALSE(parse_hello(to_bytes(bad)));
  bad = good;
  bad.magic = magic_of('O');
  EXPECT_FALSE(parse_hello(to_bytes(bad)));
  bad = good;
  bad.version = 3;  // said to the other end, so it is read
  EXPECT_TRUE(parse_hello(to_bytes(bad)));
}

TEST(Messages, open_is_an_address_of_bounded_length) {
  const std::vector<std::byte> address(3, std::byte{5});
  EXPECT_EQ(parse_open(to_bytes(OpenMessage{}, address)).size(), 3u);
  EXPECT_TRUE(parse_open(to_bytes(OpenMessage{})).empty());
  EXPECT_TRUE(parse_open(to_bytes(OpenMessage{.version = 1}, address)).empty());
  EXPECT_TRUE(parse_open(to_bytes(OpenMessage{}, std::vector<std::byte>(WORKER_ADDRESS_BYTES_MAX + 1))).empty());
}

TEST(Messages, answer_is_read_from_its_bytes) {
  std::vector<std::byte> bytes = bytes_from({'N', 'R', 'D', 'A', 2, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0,    0x70, 8,   0,
                                             0,   0,   0,   0,   0, 0, 3, 0, 1, 0,    1, 0, 0, 0, 0xaa, 0xbb, 0xee},
                                            35);
  const auto answer = parse_answer(bytes);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->message.address, 0x7000000000001000u);
  EXPECT_EQ(answer->message.bytes, 8u);
  EXPECT_EQ(answer->message.permissions, PERMISSION_READ | PERMISSION_WRITE);
  EXPECT_EQ(answer->message.memory, Memory::device);
  ASSERT_EQ(answer->worker_address.size(), 2u);
  EXPECT_EQ(answer->worker_address[1], std::byte{0xbb});
  ASSERT_EQ(answer->key.size(), 1u);
  EXPECT_EQ(answer->key[0], std::byte{0xee});
}

TEST(Messages, answer_whose_lengths_or_range_are_wrong_is_none) {
  const std::vector<std::byte> address(2), key(4);
  AnswerMessage good{.address = 16, .bytes = UINT64_MAX - 16, .key_bytes = 4};
  EXPECT_TRUE(parse_answer(to_bytes(good, address, key)));
  EXPECT_FALSE(parse_answer(to_bytes(good, {}, key)));  // no address of a worker
  AnswerMessage bad = good;
  bad.bytes = UINT64_MAX - 15;  // an offset inside would wrap round
  EXPECT_FALSE(parse_answer(to_bytes(bad, address, key)));
  bad = good;
  bad.key_bytes = 7;
  EXPECT_FALSE(parse_answer(to_bytes(bad, address, key)));
  bad.key_bytes = UINT32_MAX;
  EXPECT_FALSE(parse_answer(to_bytes(bad, address, key)));
  bad = good;
  bad.version = 1;
  EXPECT_FALSE(parse_answer(to_bytes(bad, address, key)));
  EXPECT_TRUE(parse_answer(to_bytes(AnswerMessage{.refusal = Refusal::taken})));
  EXPECT_FALSE(parse_answer(std::vector<std::byte>(31)));
  EXPECT_FALSE(parse_answer(to_bytes(good, std::vector<std::byte>(ANSWER_BYTES_MAX), key)));
}

TEST(Messages, fetch_and_before_are_read_from_their_bytes) {
  const auto fetch = parse_fetch(bytes_from({'N', 'R', 'D', 'F', 2, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5}, 24));
  ASSERT_TRUE(fetch);
  EXPECT_EQ(fetch->operation, FetchOperation::swap);
  EXPECT_EQ(fetch->offset, 8u);
  EXPECT_EQ(fetch->value, 5u);
  EXPECT_FALSE(parse_fetch(bytes_from({'N', 'R', 'D', 'F', 1}, 24)));
  EXPECT_FALSE(parse_fetch(bytes_from({'N', 'R', 'D', 'F', 2}, 25)));
  const auto before = parse_before(bytes_from({'N', 'R', 'D', 'B', 2, 0, 2, 0, 6}, 16));
  ASSERT_TRUE(before);
  EXPECT_EQ(before->refusal, Refusal::not_allowed);
  EXPECT_EQ(before->before, 6u);
}

// Computed with Python's hmac and hashlib from the layout alone.
TEST(Proof, is_hmac_sha256_of_role_challenges_and_name) {
  detail::Conversation said{.region = "ring-0"};
  for (std::size_t at = 0; at < 32; ++at) {
    said.of_target[at] = static_cast<std::byte>(at);
    said.of_connection[at] = static_cast<std::byte>(255 - at);
  }
  const auto hex = [](const Proof& proof) {
    std::string text;
    for (const std::byte byte : proof)
      text += "0123456789abcdef"[static_cast<int>(byte) >> 4], text += "0123456789abcdef"[static_cast<int>(byte) & 15];
    return text;
  };
  EXPECT_EQ(hex(detail::prove(detail::Role::connects, 0x5eed, said)),
            "0eebab2ae250a087a026e1b33cbd08b2b71c328f419722ce30e2a6a4f7ed340d");
  EXPECT_EQ(hex(detail::prove(detail::Role::listens, 0x5eed, said)),
            "ad46098f7578de331d46b2701ef1edb0f10ffc591931edfacf9adbcb26743fe0");
}

TEST(Proof, differs_with_each_thing_that_is_signed) {
  const detail::Conversation said{.region = "r"};
  const Proof proof = detail::prove(detail::Role::connects, 1, said);
  EXPECT_TRUE(detail::is_same(proof, detail::prove(detail::Role::connects, 1, said)));
  EXPECT_FALSE(detail::is_same(proof, detail::prove(detail::Role::listens, 1, said)));
  EXPECT_FALSE(detail::is_same(proof, detail::prove(detail::Role::connects, 2, said)));
  detail::Conversation other = said;
  other.region = "s";
  EXPECT_FALSE(detail::is_same(proof, detail::prove(detail::Role::connects, 1, other)));
  other = said;
  other.of_target[31] ^= std::byte{1};
  EXPECT_FALSE(detail::is_same(proof, detail::prove(detail::Role::connects, 1, other)));
  other = said;
  other.of_connection[0] ^= std::byte{1};
  EXPECT_FALSE(detail::is_same(proof, detail::prove(detail::Role::connects, 1, other)));
  EXPECT_NE(detail::new_challenge(), detail::new_challenge());
}

}  // namespace
}  // namespace nanet::rdma
