// SPDX-License-Identifier: Apache-2.0
#include "rdma/bench.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "nanet/flow/clock.hpp"

namespace nanet::rdma {
namespace {

constexpr unsigned LOOKS = 16;  // at a byte of memory, for each time that the worker is served

// Serves the connection and takes back what has ended. under_way decreases by as many.
Status settle(Connection& connection, std::uint64_t& under_way) {
  Status status = connection.progress();
  while (const auto done = connection.take_completed()) {
    --under_way;
    if (status == Status::ok) status = done->status;
  }
  return status;
}

// Starts one when there is room for it. Where every transfer is done at once, completions are collected a depth at a time.
template <typename Start>
Status begin(Connection& connection, std::uint64_t& under_way, std::uint32_t depth, const Start& start) {
  for (;;) {
    Status status = under_way < depth ? start() : Status::would_block;
    if (status == Status::ok) ++under_way;
    if (status != Status::would_block) return status;
    status = settle(connection, under_way);
    if (status != Status::ok) return status;
  }
}

// Values 1 to 255, so that two messages in a row differ, and the first from a fresh 0.
std::byte sequence_byte(std::uint64_t index) { return static_cast<std::byte>(index % 255 + 1); }

// Until the last byte of a message is there. Most of the turns only look: serving the worker costs a system call where there are sockets.
Status await(Connection& connection, const std::byte& place, std::byte wanted, std::uint64_t limit_ns) {
  // Written by the peer's CPU, by its NIC, or by this worker's progress.
  const std::atomic_ref<std::byte> byte(const_cast<std::byte&>(place));
  std::uint64_t deadline = 0;
  for (unsigned turn = 1; byte.load(std::memory_order_acquire) != wanted; ++turn) {
    if (turn % LOOKS == 0) {
      if (const Status status = connection.progress(); status != Status::ok) return status;
    }
    if (turn % (1024 * LOOKS) != 0) continue;
    const std::uint64_t now = flow::clock_now_ns();
    if (deadline == 0) deadline = now + limit_ns;
    if (now >= deadline) return Status::time_out;
  }
  return Status::ok;
}

// Returns when the source may be changed again.
Status put_next(Connection& connection, std::span<std::byte> source, std::uint64_t index) {
  source.back() = sequence_byte(index);
  if (const Status status = connection.start_put(0, source, 0); status != Status::ok) return status;
  for (;;) {
    if (const auto done = connection.take_completed()) return done->status;
    if (const Status status = connection.progress(); status != Status::ok) return status;
  }
}

template <typename Memory>
BenchResult stream_of(Connection& connection, const Memory& local, const BenchRun& run) {
  BenchResult result;
  std::uint64_t under_way = 0;
  const std::uint64_t start_ns = flow::clock_now_ns();
  const auto transfer = [&] {
    return run.operation == BenchOperation::put ? connection.start_put(0, local, 0) : connection.start_get(0, local, 0);
  };
  while (result.count < run.count && result.status == Status::ok) {
    result.status = begin(connection, under_way, run.depth, transfer);
    if (result.status != Status::ok) break;
    ++result.count;
    if (run.batch != 0 && result.count % run.batch == 0)
      result.status = begin(connection, under_way, run.depth, [&] { return connection.start_flush(0); });
  }
  while (under_way > 0 && result.status == Status::ok) result.status = settle(connection, under_way);
  if (result.status == Status::ok) result.status = connection.flush();
  result.elapsed_ns = flow::clock_now_ns() - start_ns;
  while (connection.take_completed()) {  // after an error: the slots are free again
  }
  return result;
}

template <typename Memory>
BenchResult one_by_one_of(Connection& connection, const Memory& local, const BenchRun& run) {
  BenchResult result;
  const std::uint64_t begin = flow::clock_now_ns();
  std::uint64_t before = begin;
  for (; result.count < run.count; ++result.count) {
    if (run.operation == BenchOperation::put) {
      result.status = connection.put(0, local);
      if (result.status == Status::ok) result.status = connection.flush();
    } else {
      result.status = connection.get(0, local);
    }
    if (result.status != Status::ok) break;
    const std::uint64_t now = flow::clock_now_ns();
    result.latency.record(now - before);
    before = now;
  }
  result.elapsed_ns = before - begin;
  return result;
}

std::uint64_t pattern_word(std::uint64_t index, std::uint64_t seed) {
  const std::uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15 ^ (seed + 1) * 0xc2b2ae3d27d4eb4f;
  return (mixed ^ mixed >> 29) * 0xff51afd7ed558ccd;
}

}  // namespace

BenchResult stream(Connection& connection, std::span<std::byte> local, const BenchRun& run) {
  return stream_of(connection, local, run);
}

BenchResult stream(Connection& connection, const Connection::Part& local, const BenchRun& run) {
  return stream_of(connection, local, run);
}

BenchResult one_by_one(Connection& connection, std::span<std::byte> local, const BenchRun& run) {
  return one_by_one_of(connection, local, run);
}

BenchResult one_by_one(Connection& connection, const Connection::Part& local, const BenchRun& run) {
  return one_by_one_of(connection, local, run);
}

BenchResult ping(Connection& connection, std::span<const std::byte> own, std::span<std::byte> source, const BenchRun& run) {
  BenchResult result;
  const std::uint64_t begin = flow::clock_now_ns();
  std::uint64_t before = begin;
  for (; result.count < run.count; ++result.count) {
    result.status = put_next(connection, source, result.count);
    if (result.status == Status::ok)
      result.status = await(connection, own[source.size() - 1], sequence_byte(result.count), run.time_limit_ns);
    if (result.status != Status::ok) break;
    const std::uint64_t now = flow::clock_now_ns();
    result.latency.record(now - before);
    before = now;
  }
  result.elapsed_ns = before - begin;
  return result;
}

Status pong(Connection& connection, std::span<const std::byte> own, std::span<std::byte> source, const BenchRun& run) {
  for (std::uint64_t index = 0; index < run.count; ++index) {
    Status status = await(connection, own[source.size() - 1], sequence_byte(index), run.time_limit_ns);
    if (status == Status::ok) status = put_next(connection, source, index);
    if (status != Status::ok) return status;
  }
  return connection.flush();
}

void fill_pattern(std::span<std::byte> data, std::uint64_t seed, std::size_t offset_bytes) {
  for (std::size_t at = 0; at < data.size(); at += 8) {
    const std::uint64_t word = pattern_word((offset_bytes + at) / 8, seed);
    std::memcpy(data.data() + at, &word, std::min<std::size_t>(8, data.size() - at));
  }
}

std::size_t first_difference(std::span<const std::byte> data, std::uint64_t seed, std::size_t offset_bytes) {
  for (std::size_t at = 0; at < data.size(); at += 8) {
    const std::uint64_t word = pattern_word((offset_bytes + at) / 8, seed);
    const std::size_t bytes = std::min<std::size_t>(8, data.size() - at);
    if (std::memcmp(data.data() + at, &word, bytes) == 0) continue;
    const auto* expected = reinterpret_cast<const std::byte*>(&word);
    for (std::size_t inside = 0; inside < bytes; ++inside)
      if (data[at + inside] != expected[inside]) return at + inside;
  }
  return data.size();
}

}  // namespace nanet::rdma
