// SPDX-License-Identifier: Apache-2.0
// The measuring loops, between two workers of this process, each in a thread of its own.
#include "rdma/bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nanet/rdma/target.hpp"
#include "target_process.hpp"

namespace nanet::rdma {
namespace {

constexpr std::size_t BYTES = 64 << 10;

// One side: an exposed region, a source, and a connection to the other side's region.
struct Side {
  explicit Side(const std::string& transports)
      : worker(test::worker_config(transports)),
        region(worker, {.bytes = BYTES}),
        source(worker, {.bytes = BYTES}),
        target(worker, {.address = "127.0.0.1"}) {
    target.expose(region, {.name = "bench", .permissions = {.read = true, .write = true}, .token = 7});
  }
  void connect(std::uint16_t port, std::uint32_t depth) {
    connection = std::make_unique<Connection>(
        worker, ConnectionConfig{.address = "127.0.0.1", .port = port, .region = "bench", .token = 7, .depth = depth});
  }

  Worker worker;
  Region region, source;
  Target target;
  std::unique_ptr<Connection> connection;
};

// The other side in its thread: serves, and does what it is asked for there, since its memory is that thread's.
class OtherSide {
 public:
  explicit OtherSide(const std::string& transports) : thread_([this, transports] { run(transports); }) {
    while (port == 0) std::this_thread::yield();
  }
  ~OtherSide() {
    stop_ = true;
    thread_.join();
  }
  void begin(const std::function<void(Side&)>& work) { work_ = &work; }
  void finish(Side& own) {  // the other side may need this one's help
    while (work_ != nullptr) own.worker.progress();
  }
  void ask(Side& own, const std::function<void(Side&)>& work) {
    begin(work);
    finish(own);
  }

  std::atomic<std::uint16_t> port{0};

 private:
  void run(const std::string& transports) {
    Side side(transports);
    port = side.target.port();
    while (!stop_) {
      side.worker.progress();
      if (const auto* work = work_.load()) {
        (*work)(side);
        work_ = nullptr;
      }
    }
  }

  std::atomic<const std::function<void(Side&)>*> work_{nullptr};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class BenchLoops : public testing::TestWithParam<const char*> {
 protected:
  BenchLoops() : side_(GetParam()), other_(GetParam()) {
    side_.connect(other_.port, 8);
    other_.ask(side_, [this](Side& there) { there.connect(side_.target.port(), 4); });
  }
  ~BenchLoops() override {  // each closes while the other serves
    other_.ask(side_, [](Side& there) { there.connection.reset(); });
    side_.connection.reset();
  }

  Side side_;
  OtherSide other_;
};

TEST_P(BenchLoops, StreamOfPutsWritesEveryByte) {
  fill_pattern(side_.source.span(), 1);
  for (const std::uint32_t batch : {0u, 1u, 3u}) {
    other_.ask(side_, [](Side& there) { fill_pattern(there.region.span(), 9); });
    const BenchResult result = stream(*side_.connection, side_.source.span(), {.count = 21, .depth = 5, .batch = batch});
    EXPECT_EQ(result.status, Status::ok);
    EXPECT_EQ(result.count, 21u);
    EXPECT_GT(result.elapsed_ns, 0u);
    EXPECT_EQ(side_.connection->in_flight(), 0u);
    other_.ask(side_, [](Side& there) { EXPECT_EQ(first_difference(there.region.span(), 1), BYTES); });
  }
}

TEST_P(BenchLoops, StreamOfGetsReadsEveryByte) {
  other_.ask(side_, [](Side& there) { fill_pattern(there.region.span(), 2); });
  const BenchResult result = stream(*side_.connection, side_.source.span(),
                                    {.operation = BenchOperation::get, .count = 21, .depth = 5});
  EXPECT_EQ(result.status, Status::ok);
  EXPECT_EQ(first_difference(side_.source.span(), 2), BYTES);
}

TEST_P(BenchLoops, DepthAboveTheConnectionsSlotsStillDoesAll) {
  const BenchResult result = stream(*side_.connection, side_.source.span().first(100), {.count = 100, .depth = 64, .batch = 7});
  EXPECT_EQ(result.status, Status::ok);
  EXPECT_EQ(result.count, 100u);
}

TEST_P(BenchLoops, OneByOneTimesEachTransfer) {
  for (const BenchOperation operation : {BenchOperation::put, BenchOperation::get}) {
    const BenchResult result = one_by_one(*side_.connection, side_.source.span().first(8), {.operation = operation, .count = 10});
    EXPECT_EQ(result.status, Status::ok);
    EXPECT_EQ(result.latency.count(), 10u);
    EXPECT_LE(result.latency.max(), result.elapsed_ns);
    EXPECT_GE(result.latency.min(), 1u);
  }
}

TEST_P(BenchLoops, PingPongCarriesBothPatterns) {
  constexpr std::size_t MESSAGE = 4096;
  fill_pattern(side_.source.span(), 3);
  side_.region.data()[MESSAGE - 1] = std::byte{0};
  Status there_status = Status::failed;
  const std::function<void(Side&)> answer = [&](Side& there) {
    fill_pattern(there.source.span(), 4);
    there_status = pong(*there.connection, there.region.span(), there.source.span().first(MESSAGE), {.count = 600});
    EXPECT_EQ(first_difference(there.region.span().first(MESSAGE - 1), 3), MESSAGE - 1);
  };
  other_.begin(answer);
  // 600: the sequence byte comes round twice.
  const BenchResult result = ping(*side_.connection, side_.region.span(), side_.source.span().first(MESSAGE), {.count = 600});
  other_.finish(side_);
  EXPECT_EQ(result.status, Status::ok);
  EXPECT_EQ(there_status, Status::ok);
  EXPECT_EQ(result.count, 600u);
  EXPECT_EQ(result.latency.count(), 600u);
  EXPECT_EQ(first_difference(side_.region.span().first(MESSAGE - 1), 4), MESSAGE - 1);
}

TEST_P(BenchLoops, PingWithoutAnAnswerEndsInTime) {
  side_.region.data()[7] = std::byte{0};
  const BenchResult result = ping(*side_.connection, side_.region.span(), side_.source.span().first(8),
                                  {.count = 1, .time_limit_ns = 50'000'000});
  EXPECT_EQ(result.status, Status::time_out);
  EXPECT_EQ(result.count, 0u);
}

TEST_P(BenchLoops, WhatCannotBeDoneIsSaid) {
  std::vector<std::byte> larger(BYTES + 1);
  EXPECT_EQ(stream(*side_.connection, larger, {.count = 3, .depth = 2}).status, Status::out_of_bounds);
  EXPECT_EQ(one_by_one(*side_.connection, larger, {.count = 3}).status, Status::out_of_bounds);
  EXPECT_EQ(ping(*side_.connection, side_.region.span(), larger, {.count = 3}).status, Status::out_of_bounds);
  side_.connection->close();
  EXPECT_EQ(stream(*side_.connection, side_.source.span(), {.count = 3, .depth = 2}).status, Status::closed);
}

INSTANTIATE_TEST_SUITE_P(Ways, BenchLoops, testing::Values("shm", "tcp"),
                         [](const auto& way) { return std::string(way.param) == "tcp" ? "tcp" : "shared"; });

TEST_P(BenchLoops, PartsOfARegionAreTransferredAsSpansAre) {
  fill_pattern(side_.source.span(), 6);
  const Connection::Part part{side_.source, 100, 4000};
  EXPECT_EQ(stream(*side_.connection, part, {.count = 21, .depth = 5}).status, Status::ok);
  other_.ask(side_, [this](Side& there) {
    EXPECT_TRUE(std::ranges::equal(there.region.span().first(4000), side_.source.span().subspan(100, 4000)));
    fill_pattern(there.region.span(), 8);
  });
  EXPECT_EQ(one_by_one(*side_.connection, part, {.operation = BenchOperation::get, .count = 3}).latency.count(), 3u);
  EXPECT_EQ(first_difference(side_.source.span().subspan(100, 4000), 8), 4000u);
  EXPECT_EQ(first_difference(side_.source.span().first(100), 6), 100u);
  EXPECT_EQ(stream(*side_.connection, Connection::Part{side_.source, 1, BYTES}, {.count = 3}).status, Status::out_of_bounds);
}

TEST(BenchPattern, GoesOnPieceByPiece) {
  std::vector<std::byte> whole(1003), pieces(1003);
  fill_pattern(whole, 5);
  fill_pattern(std::span(pieces).first(504), 5);
  fill_pattern(std::span(pieces).subspan(504), 5, 504);
  EXPECT_EQ(whole, pieces);
  EXPECT_EQ(first_difference(std::span(pieces).subspan(504), 5, 504), 499u);
  EXPECT_LT(first_difference(std::span(pieces).subspan(504), 5), 8u);
}

TEST(BenchPattern, FindsTheFirstByteThatDiffers) {
  std::vector<std::byte> data(1003);
  fill_pattern(data, 5);
  EXPECT_EQ(first_difference(data, 5), data.size());
  EXPECT_LT(first_difference(data, 6), 8u);
  for (const std::size_t at : {0u, 7u, 8u, 500u, 1000u, 1002u}) {
    data[at] ^= std::byte{1};
    EXPECT_EQ(first_difference(data, 5), at);
    data[at] ^= std::byte{1};
  }
}

}  // namespace
}  // namespace nanet::rdma
