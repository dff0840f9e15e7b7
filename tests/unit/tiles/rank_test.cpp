// SPDX-License-Identifier: Apache-2.0
// Ranks, each in a thread of its own, against the formula, bit for bit: over shared memory and over TCP.
#include "ranks/rank.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <thread>

#include "../fields.hpp"
#include "nanet/setup_error.hpp"
#include "stencil/passes.hpp"
#include "tiles/mailbox.hpp"

namespace nanet::tiles {
namespace {

constexpr std::uint64_t kToken = 17;

using ranks::Rank;
using ranks::RankConfig;

struct Over {
  std::string transports = "";
  std::uint32_t timeout_ms = 30000;
};

template <class T>
using Body = std::function<void(Rank<T>&, int)>;

// Connects `count` ranks and calls `body` in the thread of each. A rank serves the others until all are done.
template <class T>
void run_ranks(const RankConfig& base, const Over& over, const Body<T>& body) {
  const int count = base.rank_count;
  std::vector<std::uint16_t> ports(static_cast<std::size_t>(count));
  std::barrier all_listen(count);
  std::atomic<int> connected{0}, done{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      RankConfig config = base;
      config.rank = rank;
      Mailbox mailbox({.halo_bytes = ranks::halo_bytes<T>(config),
                       .address = "127.0.0.1",
                       .transports = over.transports,
                       .trust_network = over.transports == "tcp",
                       .token = kToken,
                       .timeout_ms = over.timeout_ms});
      Rank<T> one(config, mailbox);
      const auto at = static_cast<std::size_t>(rank);
      ports[at] = mailbox.port();
      all_listen.arrive_and_wait();
      const auto serve_until_all = [&](std::atomic<int>& counter) {
        ++counter;
        while (counter.load() < count) mailbox.serve(1);
      };
      if (rank > 0) mailbox.connect(Side::up, {"127.0.0.1", ports[at - 1]});
      if (rank + 1 < count) mailbox.connect(Side::down, {"127.0.0.1", ports[at + 1]});
      serve_until_all(connected);
      body(one, rank);
      serve_until_all(done);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <class T>
class RankTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(RankTest, Types);

struct Case {
  std::size_t rows, columns;
  int ranks;
  std::uint32_t halo_rows;
  std::uint64_t sweeps;
};

template <class T>
std::vector<T> swept_by_ranks(const Case& that, const std::vector<T>& field, const std::string& transports) {
  std::vector<T> result(field.size());
  const RankConfig base{.rows = that.rows,
                        .columns = that.columns,
                        .rank_count = that.ranks,
                        .halo_rows_max = that.halo_rows,
                        .tile_bytes = 0,
                        .streaming_from_bytes = 4096,
                        .team = {.thread_count = 1 + that.ranks % 2}};
  run_ranks<T>(base, {transports}, [&](Rank<T>& rank, int) {
    rank.load(field.data() + rank.held().begin * that.columns);
    rank.run(that.sweeps / 2);
    rank.run(that.sweeps - that.sweeps / 2);
    rank.store(result.data() + rank.own().begin * that.columns);
  });
  return result;
}

TYPED_TEST(RankTest, AnyNumberOfRanksGivesTheBitsOfTheFormula) {
  for (const Case& that : {Case{16, 40, 1, 3, 10}, Case{3, 9, 1, 1, 4}, Case{17, 300, 2, 1, 9}, Case{31, 65, 3, 4, 21},
                           Case{24, 700, 4, 6, 13}, Case{10, 33, 5, 2, 8}, Case{7, 20, 7, 1, 6}, Case{80, 50, 2, 32, 70}}) {
    const auto field = test::made_up_field<TypeParam>(that.rows, that.columns);
    const auto wanted = test::reference(field, that.rows, that.columns, that.sweeps);
    EXPECT_TRUE(test::same_bits(swept_by_ranks(that, field, ""), wanted))
        << that.rows << " x " << that.columns << ", " << that.ranks << " ranks, halos of " << that.halo_rows;
  }
}

TYPED_TEST(RankTest, OverTcpTheyAreTheSame) {
  const Case that{37, 500, 3, 5, 33};
  const auto field = test::made_up_field<TypeParam>(that.rows, that.columns);
  EXPECT_TRUE(test::same_bits(swept_by_ranks(that, field, "tcp"), test::reference(field, that.rows, that.columns, that.sweeps)));
}

TYPED_TEST(RankTest, ChangesOfAllRowsMakeTheNormOfOneProcess) {
  constexpr std::size_t kRows = 29, kColumns = 75;
  const auto field = test::made_up_field<TypeParam>(kRows, kColumns);
  stencil::Jacobi<TypeParam> jacobi({.rows = kRows, .columns = kColumns, .norm_every = 6});
  jacobi.load(field.data());
  std::vector<stencil::ChangeNorm> wanted(2);
  jacobi.run(12, wanted);
  std::vector<double> changes(2 * 2 * (kRows - 2));
  run_ranks<TypeParam>({.rows = kRows, .columns = kColumns, .rank_count = 3, .halo_rows_max = 4}, {}, [&](Rank<TypeParam>& rank, int) {
    rank.load(field.data() + rank.held().begin * kColumns);
    for (std::size_t norm = 0; norm < 2; ++norm) {
      rank.run(5);
      const std::span<const double> found = rank.run_with_changes();
      std::copy(found.begin(), found.end(),
                changes.begin() + static_cast<std::ptrdiff_t>(2 * (norm * (kRows - 2) + rank.inner().begin - 1)));
    }
  });
  for (std::size_t norm = 0; norm < 2; ++norm) {
    const auto found = stencil::norm_of_rows(std::span(changes).subspan(norm * 2 * (kRows - 2), 2 * (kRows - 2)));
    EXPECT_EQ(found.max, wanted[norm].max);
    EXPECT_EQ(found.l2, wanted[norm].l2);
  }
}

TYPED_TEST(RankTest, MeasuringChangesNothing) {
  constexpr std::size_t kRows = 40, kColumns = 60;
  const auto field = test::made_up_field<TypeParam>(kRows, kColumns);
  std::vector<TypeParam> result(field.size());
  run_ranks<TypeParam>({.rows = kRows, .columns = kColumns, .rank_count = 2, .halo_rows_max = 8}, {}, [&](Rank<TypeParam>& rank, int) {
    rank.load(field.data() + rank.held().begin * kColumns);
    for (std::uint32_t depth : {1u, 4u, 8u}) {
      EXPECT_GT(rank.seconds_per_row(depth), 0.0);
      EXPECT_GT(rank.seconds_of_exchange(depth), 0.0);
    }
    rank.set_halo_rows(3);
    rank.run(20);
    rank.store(result.data() + rank.own().begin * kColumns);
  });
  EXPECT_TRUE(test::same_bits(result, test::reference(field, kRows, kColumns, 20)));
}

TEST(Rank, ANeighbourThatLeavesEndsTheOthers) {
  std::atomic<int> ended{0};
  std::vector<std::string> texts(3);
  run_ranks<float>({.rows = 30, .columns = 50, .rank_count = 3, .halo_rows_max = 2}, {.timeout_ms = 1500},
                   [&](Rank<float>& rank, int which) {
                     const std::vector<float> rows(30 * 50, 1.0f);
                     rank.load(rows.data());
                     if (which == 2) return;  // sweeps nothing, but serves
                     try {
                       rank.run(1'000'000);
                     } catch (const ranks::TransferError& error) {
                       texts[static_cast<std::size_t>(which)] = error.what();
                       ++ended;
                     }
                   });
  EXPECT_EQ(ended.load(), 2);
  EXPECT_NE(texts[1].find("no edge of the rank after came within 1500 ms"), std::string::npos) << texts[1];
}

struct NoNeighbours final : ranks::Exchange {
  bool has(Side /*side*/) const override { return false; }
  void send(Side /*side*/, std::uint64_t /*number*/, std::span<const std::byte> /*edge*/) override {}
  void await(Side /*side*/, std::uint64_t /*number*/) override {}
  std::span<const std::byte> halo(Side /*side*/, std::uint64_t /*number*/, std::size_t /*bytes*/) const override { return {}; }
};

std::string refusal(const RankConfig& config) {
  try {
    NoNeighbours exchange;
    Rank<float> rank(config, exchange);
    rank.load(nullptr);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(Rank, WhatCannotBeIsRefused) {
  EXPECT_EQ(refusal({.rows = 8, .columns = 8, .rank = 2, .rank_count = 2}),
            "rank 2 of 2 is none (ranks are counted from 0) give 0 to the number of ranks - 1");
  EXPECT_EQ(refusal({.rows = 2, .columns = 8}),
            "a field of 2 x 8 has no inner cell (its outermost rows and columns are boundary) give 3 x 3 cells or more");
  EXPECT_EQ(refusal({.rows = 8, .columns = 8, .rank_count = 3, .halo_rows_max = 3}),
            "halos of 3 rows cannot be had (1 to 32, and a rank has 2 rows or one more) give fewer ranks, or thinner halos");
  EXPECT_EQ(refusal({.rows = 16, .columns = 8, .rank_count = 2}),
            "rank 0 cannot begin (its neighbours are not those that it has) connect it to the rank before and the rank after, "
            "where there is one");
}

}  // namespace
}  // namespace nanet::tiles
