// SPDX-License-Identifier: Apache-2.0
// Ranks that are nodes of a simulated torus, each in a thread, against the formula, bit for bit.
#include "model/torus/rdma_halos.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "../fields.hpp"
#include "nanet/setup_error.hpp"
#include "ranks/rank.hpp"

namespace nanet::torus {
namespace {

struct Case {
  std::size_t rows, columns;
  int ranks;
  std::uint32_t halo_rows;
  std::uint64_t sweeps;
};

template <class T>
std::vector<T> swept(const Case& that, const std::vector<T>& field) {
  std::vector<T> result(field.size());
  const ranks::RankConfig base{.rows = that.rows,
                               .columns = that.columns,
                               .rank_count = that.ranks,
                               .halo_rows_max = that.halo_rows,
                               .team = {.thread_count = 1}};
  const auto halos = std::make_shared<TorusHalos>(
      TorusHalosConfig{.rank_count = that.ranks, .halo_bytes = ranks::halo_bytes<T>(base), .wire_cycles = 5});
  std::vector<std::thread> threads;
  for (int rank = 0; rank < that.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ranks::RankConfig config = base;
      config.rank = rank;
      TorusExchange exchange(halos, rank);
      ranks::Rank<T> one(config, exchange);
      one.load(field.data() + one.held().begin * that.columns);
      one.run(that.sweeps);
      one.store(result.data() + one.own().begin * that.columns);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::uint64_t passes = that.ranks == 1 ? 0 : (that.sweeps + that.halo_rows - 1) / that.halo_rows;
  EXPECT_EQ(halos->exchanges(), passes);
  EXPECT_GE(halos->cycles(), 60 * passes);  // what a small PUT takes to a neighbour
  return result;
}

template <class T>
void compare(const Case& that) {
  SCOPED_TRACE(that.ranks);
  const auto field = test::made_up_field<T>(that.rows, that.columns);
  EXPECT_TRUE(test::same_bits(swept(that, field), test::reference(field, that.rows, that.columns, that.sweeps)));
}

TEST(TorusHalos, RanksGiveTheBitsOfTheFormula) {
  compare<float>({16, 40, 1, 3, 4});
  compare<double>({17, 300, 2, 1, 5});
  compare<float>({31, 65, 3, 4, 21});
  compare<double>({12, 33, 6, 2, 7});
}

TEST(TorusHalos, AnEdgeMayBeLongerThanAMessage) { compare<double>({16, 9000, 2, 4, 8}); }

TEST(TorusHalos, RanksThatFollowEachOtherAreNeighbours) {
  for (const int count : {2, 4, 5, 16, 17, 39, 64}) {
    const TorusHalos halos({.rank_count = count, .halo_bytes = 64});
    std::vector<bool> is_taken(halos.shape().nodes());
    for (int rank = 0; rank < count; ++rank) {
      EXPECT_FALSE(is_taken[halos.node_of(rank)]);
      is_taken[halos.node_of(rank)] = true;
      if (rank == 0) continue;
      EXPECT_EQ(halos.shape().distance(halos.node_of(rank - 1), halos.node_of(rank)), 1u) << rank << " of " << count;
    }
  }
}

TEST(TorusHalos, ARankThatDoesNotComeOrLeavesEndsTheOthers) {
  const auto halos = std::make_shared<TorusHalos>(TorusHalosConfig{.rank_count = 2, .halo_bytes = 64, .timeout_ms = 50});
  TorusExchange one(halos, 0);
  auto other = std::make_unique<TorusExchange>(halos, 1);
  EXPECT_THROW(one.await(ranks::Side::down, 1), ranks::TransferError);
  EXPECT_THROW(other->await(ranks::Side::up, 1), ranks::TransferError);  // the run is over

  const auto more = std::make_shared<TorusHalos>(TorusHalosConfig{.rank_count = 2, .halo_bytes = 64});
  TorusExchange stays(more, 0);
  std::thread leaves([&] { TorusExchange(more, 1); });
  EXPECT_THROW(stays.await(ranks::Side::down, 1), ranks::TransferError);
  leaves.join();
}

TEST(TorusHalos, RefusesWhatCannotBe) {
  EXPECT_THROW(TorusHalos({.rank_count = 65, .halo_bytes = 64}), SetupError);
  EXPECT_THROW(TorusHalos({.rank_count = 2, .halo_bytes = kHostBytes / 4 + 1}), SetupError);
  EXPECT_THROW(TorusExchange(std::make_shared<TorusHalos>(TorusHalosConfig{.rank_count = 2, .halo_bytes = 64}), 2), SetupError);
}

}  // namespace
}  // namespace nanet::torus
