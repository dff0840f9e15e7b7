// SPDX-License-Identifier: Apache-2.0
// The measuring loops of `nanet rdma bench`: how many transfers a second a connection does, and how long one takes.
//
// What is compared with ucx_perftest is done as there: `stream` is its ucp_put_bw and ucp_get with many outstanding, `one_by_one` its ucp_get
// with one, `ping` and `pong` its ucp_put_lat: both sides put to each other and poll their own memory for the last byte.
// All transfers of a run use the same local bytes and the same place in the remote region. The bytes are checked only afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nanet/flow/latency_histogram.hpp"
#include "nanet/rdma/connection.hpp"
#include "nanet/rdma/status.hpp"

namespace nanet::rdma {

enum class BenchOperation : std::uint8_t { put, get };

struct BenchRun {
  BenchOperation operation = BenchOperation::put;
  std::uint64_t count = 1;  // of transfers, or of round trips
  std::uint32_t depth = 1;  // of stream: transfers in flight at once, at most; not more than the connection has slots
  std::uint32_t batch = 0;  // of stream: a flush is begun after so many transfers; 0: only after the last
  std::uint64_t time_limit_ns = 60'000'000'000;  // of ping and pong: for one message of the peer
};

struct BenchResult {
  Status status = Status::ok;  // of the first transfer that failed; then the figures are meaningless
  std::uint64_t count = 0;
  std::uint64_t elapsed_ns = 0;  // from before the first to after the last, for puts until they are in the target's memory
  flow::LatencyHistogram latency;  // one_by_one: of each transfer; ping: of each round trip; stream: empty, the clock would cost too much
};

// As many transfers in flight as the depth allows. The part may be of any memory.
BenchResult stream(Connection& connection, std::span<std::byte> local, const BenchRun& run);
BenchResult stream(Connection& connection, const Connection::Part& local, const BenchRun& run);

// The next transfer begins when the one before is done; for a put, that is when a flush after it is.
BenchResult one_by_one(Connection& connection, std::span<std::byte> local, const BenchRun& run);
BenchResult one_by_one(Connection& connection, const Connection::Part& local, const BenchRun& run);

// Round trips. own: this side's exposed memory, into whose first source.size() bytes the peer puts; its last byte of these must be 0 before
// either side begins. The peer calls pong with the same count and as many bytes. The last byte of source is overwritten.
BenchResult ping(Connection& connection, std::span<const std::byte> own, std::span<std::byte> source, const BenchRun& run);
Status pong(Connection& connection, std::span<const std::byte> own, std::span<std::byte> source, const BenchRun& run);

// A pattern in which no two seeds, and no two places near each other, are alike for long. offset_bytes: where in it the data lies, a multiple of
// 8, so that it can be written and checked piece by piece.
void fill_pattern(std::span<std::byte> data, std::uint64_t seed, std::size_t offset_bytes = 0);
// The first place that differs from it; data.size() if there is none.
std::size_t first_difference(std::span<const std::byte> data, std::uint64_t seed, std::size_t offset_bytes = 0);

}  // namespace nanet::rdma
