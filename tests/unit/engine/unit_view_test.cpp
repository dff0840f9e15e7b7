// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "nanet/engine/port.hpp"

namespace nanet::engine {
namespace {

struct UnitViewTest : ::testing::Test {
  UnitHead head{};
  std::vector<std::byte> bytes = std::vector<std::byte>(24);  // three rows of four 16-bit numbers
  std::array<UnitRange, 2> present{UnitRange{.begin = 0, .end = 9}, UnitRange{.begin = 16, .end = 24}};
  Unit unit{.head = head, .present = present, .bytes = bytes};

  void SetUp() override {
    for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::byte>(k);
  }
};

TEST_F(UnitViewTest, RowsAreSeenWhereTheyLie) {
  const auto view = UnitView<std::uint16_t>::of(unit, 4);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->rows(), 3u);
  EXPECT_EQ(static_cast<const void*>(view->row(1).data()), bytes.data() + 8);
  EXPECT_EQ(view->row(1)[3], view->at(1, 3));
}

TEST_F(UnitViewTest, NumbersHaveTheOrderThatIsSaid) {
  EXPECT_EQ((UnitView<std::uint16_t, std::endian::little>::of(unit, 4)->at(1, 1)), 0x0B0A);
  EXPECT_EQ((UnitView<std::uint16_t, std::endian::big>::of(unit, 4)->at(1, 1)), 0x0A0B);
  EXPECT_EQ((UnitView<std::uint32_t, std::endian::big>::of(unit, 2)->at(2, 1)), 0x14151617u);
}

TEST_F(UnitViewTest, WhatDidNotComeIsKnown) {
  const auto view = *UnitView<std::uint16_t>::of(unit, 4);
  for (const std::size_t c : {0ul, 1ul, 2ul, 3ul}) {
    EXPECT_TRUE(view.has(0, c));
    EXPECT_FALSE(view.has(1, c)) << "of the first only a half came";
    EXPECT_TRUE(view.has(2, c));
  }
  EXPECT_TRUE(view.has_row(0));
  EXPECT_FALSE(view.has_row(1));
  EXPECT_TRUE(view.has_row(2));
  present[0].begin = 2;
  EXPECT_FALSE(view.has(0, 0));
  EXPECT_FALSE(view.has_row(0));
}

TEST_F(UnitViewTest, AUnitOfAnotherLengthHasNoRows) {
  EXPECT_FALSE(UnitView<std::uint16_t>::of(unit, 5));
  EXPECT_FALSE(UnitView<std::uint16_t>::of(unit, 0));
}

}  // namespace
}  // namespace nanet::engine
