// SPDX-License-Identifier: Apache-2.0
#include "nanet/wire/checksum.hpp"

#include <gtest/gtest.h>

#include <hwy/targets.h>

#include <random>
#include <string_view>

#include "exact_copy.hpp"
#include "packet_check_reference.hpp"
#include "vector_file.hpp"

namespace nanet::wire {
namespace {

using test::slow_fletcher32;
using test::slow_mgp_checksum;

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::byte> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(generator());
  return bytes;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Runs the same checks on every vector unit that this machine has, then goes back to the best one.
class EveryTarget : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(EveryTarget, PublishedValues) {
  EXPECT_EQ(fletcher32({}), 0u);
  EXPECT_EQ(fletcher32(bytes_of("abcde")), 0xF04FC729u);
  EXPECT_EQ(fletcher32(bytes_of("abcdef")), 0x56502D2Au);
  EXPECT_EQ(fletcher32(bytes_of("abcdefgh")), 0xEBE19591u);
}

TEST_P(EveryTarget, EveryLengthEqualsTheDefinition) {
  for (std::size_t length = 0; length <= 1500; ++length) {
    const test::ExactCopy copy(random_bytes(length, static_cast<unsigned>(length)));
    ASSERT_EQ(fletcher32(copy.span()), slow_fletcher32(copy.span())) << length;
    ASSERT_EQ(fletcher32_scalar(copy.span().data(), length), slow_fletcher32(copy.span())) << length;
    if (length < 16) continue;
    ASSERT_EQ(mgp_checksum(copy.span()), slow_mgp_checksum(copy.span())) << length;
    ASSERT_EQ(mgp_checksum_scalar(copy.span().data(), length), slow_mgp_checksum(copy.span())) << length;
  }
}

TEST_P(EveryTarget, NoSumOverflows) {
  for (const int fill : {0xFF, 0xFE, 0x80, 0x00}) {
    for (const std::size_t length : {1472u, 16384u, 16386u, 1000003u}) {
      std::vector<std::byte> bytes(length, static_cast<std::byte>(fill));
      ASSERT_EQ(fletcher32(bytes), slow_fletcher32(bytes)) << fill << " x " << length;
      for (std::size_t i = 0; i < length; i += 2) bytes[i] = std::byte{0xFE};  // 0x..FE words
      ASSERT_EQ(fletcher32(bytes), slow_fletcher32(bytes)) << fill << " x " << length;
    }
  }
}

TEST_P(EveryTarget, EveryAddress) {
  const auto bytes = random_bytes(1168 + 64, 5);
  for (std::size_t shift = 0; shift < 64; ++shift) {
    const auto part = std::span(bytes).subspan(shift, 1168);
    ASSERT_EQ(mgp_checksum(part), slow_mgp_checksum(part)) << shift;
  }
}

TEST_P(EveryTarget, DoesNotSeeItsOwnFourBytes) {
  auto bytes = random_bytes(1168, 6);
  const std::uint32_t before = mgp_checksum(bytes);
  for (std::size_t i = 12; i < 16; ++i) bytes[i] = ~bytes[i];
  EXPECT_EQ(mgp_checksum(bytes), before);
  bytes[16] ^= std::byte{1};
  EXPECT_NE(mgp_checksum(bytes), before);
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryTarget, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

TEST(Checksum, Vectors) {
  for (const auto& vector : test::read_vectors("wire_fletcher32.txt")) {
    EXPECT_EQ(fletcher32(vector.payload), vector.number("fletcher32")) << vector.name;
    EXPECT_EQ(slow_fletcher32(vector.payload), vector.number("fletcher32")) << vector.name;
  }
}

// What the header says it cannot find.
TEST(Checksum, ZeroAndAllOnesWordsAreTheSame) {
  std::vector<std::byte> bytes(64, std::byte{0x21});
  bytes[20] = bytes[21] = std::byte{0x00};
  const std::uint32_t zero = fletcher32(bytes);
  bytes[20] = bytes[21] = std::byte{0xFF};
  EXPECT_EQ(fletcher32(bytes), zero);
}

}  // namespace
}  // namespace nanet::wire
