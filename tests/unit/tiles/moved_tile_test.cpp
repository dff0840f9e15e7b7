// SPDX-License-Identifier: Apache-2.0
// A tile that is moved to be swept, whole and in chunks, against the formula, bit for bit. The owner is another thread.
#include "tiles/moved_tile.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "../fields.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::tiles {
namespace {

template <class T>
class OwnerThread {
 public:
  OwnerThread(std::size_t rows, std::size_t columns, const std::string& transports) {
    thread_ = std::thread([=, this] {
      Owner<T> owner({.rows = rows, .columns = columns, .transports = transports, .trust_network = transports == "tcp", .token = 5});
      field_ = test::made_up_field<T>(rows, columns);
      owner.load(field_.data(), 0, rows);
      port_ = owner.port();
      while (!stop_) owner.serve(1);
      owner.store(field_.data(), 0, rows);
    });
    while (port_ == 0) std::this_thread::yield();
  }
  ~OwnerThread() { ended(); }

  std::uint16_t port() const { return port_; }
  std::vector<T> ended() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return field_;
  }

 private:
  std::vector<T> field_;
  std::atomic<std::uint16_t> port_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

template <class T>
class MovedTileTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(MovedTileTest, Types);

MoverConfig config_of(std::size_t rows, std::size_t columns, std::uint16_t port) {
  return {.rows = rows,
          .columns = columns,
          .owner = {"127.0.0.1", port},
          .token = 5,
          .chunk_bytes = 8192,
          .tile_bytes = 0,
          .streaming_from_bytes = 4096,
          .team = {.thread_count = 2}};
}

TYPED_TEST(MovedTileTest, MovedWholeOrStreamedItHasTheBitsOfTheFormula) {
  for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{3, 3}, {100, 60}, {64, 1000}, {33, 9}, {257, 129}}) {
    for (const std::uint32_t sweeps : {1u, 2u, 7u, 32u}) {
      OwnerThread<TypeParam> owner(rows, columns, "");
      {
        Mover<TypeParam> mover(config_of(rows, columns, owner.port()));
        mover.stream(sweeps);
        const MoveTimes times = mover.move(sweeps);
        EXPECT_GE(times.total_s, times.in_s + times.compute_s + times.out_s);
        mover.stream_transfer_alone(sweeps);
        mover.stream(3);
      }
      const auto wanted = test::reference(test::made_up_field<TypeParam>(rows, columns), rows, columns, 2 * sweeps + 3);
      EXPECT_TRUE(test::same_bits(owner.ended(), wanted)) << rows << " x " << columns << ", " << sweeps << " sweeps";
    }
  }
}

TYPED_TEST(MovedTileTest, OverTcpItIsTheSame) {
  OwnerThread<TypeParam> owner(150, 300, "tcp");
  {
    MoverConfig config = config_of(150, 300, owner.port());
    config.transports = "tcp";
    config.trust_network = true;
    Mover<TypeParam> mover(config);
    mover.stream(4);
    mover.move(9);
  }
  EXPECT_TRUE(test::same_bits(owner.ended(), test::reference(test::made_up_field<TypeParam>(150, 300), 150, 300, 13)));
}

TEST(MovedTile, AnotherShapeThanTheOwnersIsRefused) {
  OwnerThread<float> owner(20, 30, "");
  EXPECT_THROW(Mover<float>(config_of(20, 300, owner.port())), SetupError);
  Mover<float> mover(config_of(20, 30, owner.port()));
  EXPECT_THROW(mover.stream(33), SetupError);
}

TEST(MovedTile, AnOwnerThatGoesEndsTheMove) {
  OwnerThread<float> owner(20, 30, "");
  MoverConfig config = config_of(20, 30, owner.port());
  config.timeout_ms = 3000;
  Mover<float> mover(config);
  mover.move(1);
  owner.ended();
  EXPECT_THROW(
      {
        for (;;) mover.stream(1);
      },
      TransferError);
}

}  // namespace
}  // namespace nanet::tiles
