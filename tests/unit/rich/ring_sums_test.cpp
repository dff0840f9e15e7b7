// SPDX-License-Identifier: Apache-2.0
#include "rich/ring_sums.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "nanet/rich/pm_map.hpp"

namespace nanet::rich {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kExactInDouble = std::int64_t{1} << 53;

TEST(RingSums, EveryChannelHasItsRow) {
  for (std::uint32_t hit = 0; hit < 65536; hit += 37) {  // any hit word, so any time bits
    const Pm& pm = kPmMap[hit & kChannelMask];
    const RingSums& row = kRingSumTable[ring_sums_row_index(static_cast<std::uint16_t>(hit))];
    if (!pm.mapped) {
      EXPECT_EQ(row, RingSums{});
      continue;
    }
    const int i = pm.i;
    const int j = pm.j;
    const int z = i * i + 3 * j * j;
    EXPECT_EQ(row.hits_and_i, 1 + 256 * i);
    EXPECT_EQ(row.j, j);
    EXPECT_EQ(row.ii, i * i);
    EXPECT_EQ(row.ij, i * j);
    EXPECT_EQ(row.jj, j * j);
    EXPECT_EQ(row.zi, z * i);
    EXPECT_EQ(row.zj, z * j);
    EXPECT_EQ(row.zz, z * z);
  }
}

TEST(RingSums, LiteralRow) {
  // Channel 4: i = -26, j = 7, z = 676 + 147 = 823.
  const RingSums expected{1 - 256 * 26, 7, 676, -182, 49, -21398, 5761, 677329};
  EXPECT_EQ(kRingSumTable[4], expected);
}

TEST(RingSums, TableIsAlignedForVectors) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(kRingSumTable.data()) % 64, 0u);
  EXPECT_EQ(sizeof(kRingSumTable), 32768u);
}

TEST(RingSums, SumsOf128HitsFit) {
  std::int64_t max_i = 0, max_j = 0, max_z = 0, max_zi = 0, max_zj = 0;
  for (const RingSums& row : kRingSumTable) {
    if (row == RingSums{}) continue;
    const std::int64_t z = row.ii + 3 * row.jj;
    max_i = std::max<std::int64_t>(max_i, std::abs(row.hits_and_i >> 8));
    max_j = std::max<std::int64_t>(max_j, std::abs(row.j));
    max_z = std::max(max_z, z);
    max_zi = std::max<std::int64_t>(max_zi, std::abs(row.zi));
    max_zj = std::max<std::int64_t>(max_zj, std::abs(row.zj));
  }
  EXPECT_EQ(max_i, 33);
  EXPECT_EQ(max_j, 19);
  EXPECT_EQ(max_z, 1213);
  const std::int64_t n = kMaxHits;
  EXPECT_LT(n * (1 + 256 * max_i), kInt32Max);
  EXPECT_LT(n * max_z * max_z, kInt32Max / 10);
  // Each half of a centred product N sum(z i) - sum(z) sum(i), and the difference: twice a half at most.
  EXPECT_LT(n * n * max_zi, kInt32Max / 2);
  EXPECT_LT((n * max_z) * (n * max_i), kInt32Max / 2);
  // In the fit, with |cov(a, b)| <= (range a / 2)(range b / 2): every product and difference of two is an exact double.
  const std::int64_t a = n * n * max_i * max_i;
  const std::int64_t b = n * n * max_i * max_j;
  const std::int64_t c = n * n * max_j * max_j;
  const std::int64_t p = n * n * (max_z / 2 + 1) * max_i;
  const std::int64_t q = n * n * (max_z / 2 + 1) * max_j;
  EXPECT_LT(a * c + b * b, kExactInDouble);
  EXPECT_LT(p * c + q * b, kExactInDouble);
  EXPECT_LT(a * q + b * p, kExactInDouble);
}

TEST(RingSums, HitsAndSumOfIComeApart) {
  for (const int i : {-33, -1, 0, 1, 33}) {
    RingSums sums;
    for (std::int32_t hits = 1; hits <= 128; ++hits) {
      add(sums, make_ring_sums_row(i, 0));
      EXPECT_EQ(hit_count(sums), hits);
      EXPECT_EQ(sum_i(sums), hits * i);
    }
  }
}

TEST(RingSums, AddAddsEveryField) {
  RingSums sums{1, 2, 3, 4, 5, 6, 7, 8};
  add(sums, RingSums{10, 20, 30, 40, 50, 60, 70, 80});
  EXPECT_EQ(sums, (RingSums{11, 22, 33, 44, 55, 66, 77, 88}));
}

}  // namespace
}  // namespace nanet::rich
