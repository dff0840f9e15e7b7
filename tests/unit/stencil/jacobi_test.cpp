// SPDX-License-Identifier: Apache-2.0
// Sweeps against a scalar loop, bit for bit: shapes, threads, sweeps a pass, strips, both kinds of stores, every instruction set.
#include "stencil/jacobi.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "../allocation_count.hpp"
#include "../fields.hpp"
#include "hwy/targets.h"
#include "nanet/setup_error.hpp"

namespace nanet::stencil {
namespace {

using test::made_up_field;
using test::reference;

template <class T>
std::vector<T> swept(const JacobiConfig& config, const std::vector<T>& field, std::uint64_t sweeps,
                     std::vector<ChangeNorm>* norms = nullptr) {
  Jacobi<T> jacobi(config);
  jacobi.load(field.data());
  std::vector<ChangeNorm> found(jacobi.norm_count(sweeps));
  jacobi.run(sweeps, found);
  if (norms != nullptr) *norms = found;
  std::vector<T> result(field.size());
  jacobi.store(result.data());
  return result;
}

template <class T>
void expect_same_bits(const std::vector<T>& found, const std::vector<T>& wanted, const std::string& what) {
  EXPECT_TRUE(test::same_bits(found, wanted)) << what;
}

std::string text_of(const JacobiConfig& config) {
  return std::to_string(config.rows) + " x " + std::to_string(config.columns) + ", " + std::to_string(config.sweeps_per_pass) +
         " sweeps a pass, " + std::to_string(config.team.thread_count) + " threads, streaming from " +
         std::to_string(config.streaming_from_bytes);
}

template <class T>
class JacobiTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(JacobiTest, Types);

TYPED_TEST(JacobiTest, EveryShapeAndScheduleHasTheBitsOfTheFormula) {
  constexpr std::uint64_t kSweeps = 11;
  for (auto [rows, columns] : {std::pair<std::size_t, std::size_t>{1, 1},
                               {1, 40},
                               {40, 1},
                               {2, 9},
                               {3, 3},
                               {3, 101},
                               {67, 3},
                               {4, 4},
                               {17, 23},
                               {31, 130},
                               {9, 700}}) {
    const auto field = made_up_field<TypeParam>(rows, columns);
    const auto wanted = reference(field, rows, columns, kSweeps);
    for (int threads : {1, 2, 3}) {
      for (std::uint32_t sweeps_per_pass : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 32u}) {
        for (std::size_t streaming_from : {std::size_t{0}, std::size_t{1} << 30}) {
          // A tile of no bytes has the narrowest strips, so that 700 columns are three of them.
          const JacobiConfig config{.rows = rows,
                                    .columns = columns,
                                    .sweeps_per_pass = sweeps_per_pass,
                                    .tile_bytes = 0,
                                    .streaming_from_bytes = streaming_from,
                                    .team = {.thread_count = threads}};
          expect_same_bits(swept(config, field, kSweeps), wanted, text_of(config));
        }
      }
    }
  }
}

TYPED_TEST(JacobiTest, EveryInstructionSetGivesTheSameBits) {
  const auto field = made_up_field<TypeParam>(19, 83);
  const auto wanted = reference(field, 19, 83, 6);
  std::vector<ChangeNorm> first_norms;
  int targets = 0;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (std::size_t streaming_from : {std::size_t{0}, std::size_t{1} << 30}) {
      std::vector<ChangeNorm> norms;
      const JacobiConfig config{.rows = 19, .columns = 83, .norm_every = 3, .streaming_from_bytes = streaming_from};
      expect_same_bits(swept(config, field, 6, &norms), wanted, hwy::TargetName(target));
      if (first_norms.empty()) first_norms = norms;
      ASSERT_EQ(norms.size(), 2u);
      for (std::size_t k = 0; k < 2; ++k) {
        EXPECT_EQ(std::bit_cast<std::uint64_t>(norms[k].max), std::bit_cast<std::uint64_t>(first_norms[k].max))
            << hwy::TargetName(target);
        EXPECT_EQ(std::bit_cast<std::uint64_t>(norms[k].l2), std::bit_cast<std::uint64_t>(first_norms[k].l2))
            << hwy::TargetName(target);
      }
    }
    ++targets;
  }
  hwy::SetSupportedTargetsForTest(0);
  EXPECT_GE(targets, 1);
}

TYPED_TEST(JacobiTest, NormsAreThoseOfTheChangeWhateverTheSchedule) {
  constexpr std::size_t kRows = 21, kColumns = 75;
  const auto field = made_up_field<TypeParam>(kRows, kColumns);
  std::vector<ChangeNorm> first;
  for (int threads : {1, 2, 3}) {
    for (std::uint32_t sweeps_per_pass : {1u, 4u}) {
      std::vector<ChangeNorm> norms;
      const JacobiConfig config{
          .rows = kRows, .columns = kColumns, .sweeps_per_pass = sweeps_per_pass, .norm_every = 5, .team = {.thread_count = threads}};
      expect_same_bits(swept(config, field, 17, &norms), reference(field, kRows, kColumns, 17), text_of(config));
      ASSERT_EQ(norms.size(), 3u);
      if (first.empty()) first = norms;
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(norms[k].sweep, 5 * (k + 1));
        EXPECT_EQ(norms[k].max, first[k].max);
        EXPECT_EQ(norms[k].l2, first[k].l2);
      }
    }
  }
  for (std::size_t k = 0; k < 3; ++k) {
    const auto before = reference(field, kRows, kColumns, 5 * k + 4);
    const auto after = reference(field, kRows, kColumns, 5 * k + 5);
    double max = 0.0;
    long double squares = 0.0;
    for (std::size_t c = 0; c < field.size(); ++c) {
      const double change = std::abs(static_cast<double>(after[c]) - static_cast<double>(before[c]));
      max = std::max(max, change);
      squares += static_cast<long double>(change) * change;
    }
    EXPECT_EQ(first[k].max, max);
    EXPECT_NEAR(first[k].l2, std::sqrt(static_cast<double>(squares)), 1e-13 * first[k].l2);
  }
}

TYPED_TEST(JacobiTest, RunsGoOnWhereTheLastEnded) {
  const auto field = made_up_field<TypeParam>(12, 50);
  Jacobi<TypeParam> jacobi({.rows = 12, .columns = 50, .sweeps_per_pass = 3, .norm_every = 4});
  jacobi.load(field.data());
  std::vector<std::uint64_t> sweeps_with_norm;
  for (std::uint64_t sweeps : {1u, 2u, 3u, 0u, 7u}) {
    std::vector<ChangeNorm> norms(jacobi.norm_count(sweeps));
    jacobi.run(sweeps, norms);
    for (const ChangeNorm& norm : norms) sweeps_with_norm.push_back(norm.sweep);
    EXPECT_EQ(jacobi.copy(Stores::cached), jacobi.copy(Stores::streaming));  // is no sweep, and changes nothing
  }
  std::vector<TypeParam> result(field.size());
  jacobi.store(result.data());
  expect_same_bits(result, reference(field, 12, 50, 13), "13 sweeps");
  EXPECT_EQ(sweeps_with_norm, (std::vector<std::uint64_t>{4, 8, 12}));
  jacobi.load(field.data());
  EXPECT_EQ(jacobi.sweeps_done(), 0u);
}

TYPED_TEST(JacobiTest, ANumberThatIsNoneIsSeenInBothNorms) {
  auto field = made_up_field<TypeParam>(9, 40);
  field[4 * 40 + 7] = std::numeric_limits<TypeParam>::quiet_NaN();
  std::vector<ChangeNorm> norms;
  swept({.rows = 9, .columns = 40, .norm_every = 1}, field, 2, &norms);
  ASSERT_EQ(norms.size(), 2u);
  EXPECT_TRUE(std::isnan(norms[0].max));
  EXPECT_TRUE(std::isnan(norms[0].l2));
}

TYPED_TEST(JacobiTest, SweepingAllocatesNothing) {
  const auto field = made_up_field<TypeParam>(30, 60);
  Jacobi<TypeParam> jacobi({.rows = 30, .columns = 60, .norm_every = 7, .team = {.thread_count = 3}});
  jacobi.load(field.data());
  std::vector<ChangeNorm> norms(jacobi.norm_count(100));
  const std::uint64_t before = test::allocation_count.load();
  jacobi.run(100, norms);
  EXPECT_EQ(test::allocation_count.load(), before);
}

template <class F>
std::string refusal(F&& make) {
  try {
    make();
  } catch (const SetupError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(JacobiRefusals, SayProblemReasonAndSuggestion) {
  EXPECT_EQ(refusal([] { Jacobi<float>({.rows = 0, .columns = 4}); }),
            "a field of 0 x 4 cannot be swept (it has no cell, or more than there is memory for) give a field of 1 x 1 cells and "
            "more that "
            "fits twice into memory");
  EXPECT_EQ(refusal([] { Jacobi<float>({.rows = 4, .columns = 4, .sweeps_per_pass = 33}); }),
            "33 sweeps a pass cannot be had (the rows between have to stay in the cache: 1 to 32) give 1, 4 or 8");
  EXPECT_EQ(refusal([] { Team({.thread_count = 0}); }), "0 threads cannot be had (a team has 1 to 1024) give the number of cores");
  EXPECT_EQ(refusal([] { Team({.thread_count = 2, .cores = {0}}); }),
            "the team cannot be pinned (1 cores for 2 threads) name one core for each thread, or none");
  EXPECT_NE(refusal([] {
              Team({.thread_count = 2, .cores = {1 << 20, 1 << 20}});
            }).find("cannot be pinned to core 1048576"),
            std::string::npos);
}

TEST(Team, EveryWorkerSeesWhatTheOthersWroteBeforeTheyMet) {
  constexpr int kThreads = 3, kRounds = 2000;
  Team team({.thread_count = kThreads, .spins_max = 10});
  std::vector<int> values(kThreads * 16, 0);
  std::atomic<int> wrong{0};
  for (int repeat = 0; repeat < 3; ++repeat) {
    team.run([&](int worker) {
      for (int round = 1; round <= kRounds; ++round) {
        values[static_cast<std::size_t>(worker) * 16] = repeat * kRounds + round;
        team.meet();
        for (std::size_t other = 0; other < kThreads; ++other) wrong += values[other * 16] != repeat * kRounds + round;
        team.meet();
      }
    });
  }
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace nanet::stencil
