// SPDX-License-Identifier: Apache-2.0
#include "model/torus/rdma_halos.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::torus {
namespace {

using ranks::Side;
using ranks::TransferError;

constexpr int kOfDimension = 4, kRanksMax = kOfDimension * kOfDimension * kOfDimension;
constexpr std::size_t kHaloAlign = 64;
constexpr std::uint32_t kPutBytes = kMessageBytesMax / 16 * 16;  // of an edge that is longer
constexpr std::uint64_t kCyclesMax = 10'000'000;                 // of an exchange: a tenth of it is more than the longest can take

// The smallest torus of lines of up to 4 that has so many nodes.
Shape shape_for(int ranks) {
  if (ranks < 1 || ranks > kRanksMax)
    throw SetupError(std::to_string(ranks) + " ranks cannot be nodes of the torus",
                     "there are 1 to " + std::to_string(kRanksMax) + " of 4x4x4", "give fewer ranks");
  const int x = std::clamp(ranks, 2, kOfDimension), lines = (ranks + x - 1) / x, y = std::min(lines, kOfDimension);
  const int z = (lines + y - 1) / y;
  return Shape({static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(z)});
}

// Every second line, and every second plane of lines, is gone through backwards.
std::uint32_t node_in_line(const Shape& shape, std::uint32_t rank) {
  const std::uint32_t line = rank / shape.of(0), z = line / shape.of(1);
  std::uint32_t x = rank % shape.of(0), y = line % shape.of(1);
  if (line % 2 != 0) x = shape.of(0) - 1 - x;
  if (z % 2 != 0) y = shape.of(1) - 1 - y;
  return shape.node({{x, y, z}});
}

TorusHalosConfig with_room(TorusHalosConfig config) {
  config.halo_bytes = (config.halo_bytes + kHaloAlign - 1) / kHaloAlign * kHaloAlign;
  if (4 * config.halo_bytes > kHostBytes)
    throw SetupError("halos of " + std::to_string(config.halo_bytes) + " B cannot be had over the torus",
                     "a node has " + std::to_string(kHostBytes) + " B, for two edges and two halos",
                     "give thinner halos, or fewer columns");
  return config;
}

}  // namespace

TorusHalos::TorusHalos(const TorusHalosConfig& config)
    : config_(with_room(config)),
      torus_(shape_for(config.rank_count), config.wire_cycles),
      sent_bytes_(static_cast<std::size_t>(config.rank_count)) {
  for (std::uint32_t rank = 0; rank < sent_bytes_.size(); ++rank) {
    nodes_.push_back(node_in_line(shape(), rank));
    regions_.push_back(torus_.share(nodes_.back(), static_cast<std::uint32_t>(inbox_at(Side::up)),
                                    static_cast<std::uint32_t>(2 * config_.halo_bytes), false, true));
  }
}

// Touches nothing but this rank's node: nothing is simulated before all ranks wait.
void TorusHalos::send(int rank, Side side, std::span<const std::byte> edge) {
  const std::size_t to = static_cast<std::size_t>(side == Side::up ? rank - 1 : rank + 1);
  const std::uint32_t node = node_of(rank);
  const std::size_t from_at = outbox_at(side), to_at = inbox_at(opposite(side)) - inbox_at(Side::up);
  std::memcpy(&torus_.memory(node)[from_at], edge.data(), edge.size());
  for (std::size_t done = 0; done < edge.size();) {
    const std::size_t bytes = std::min<std::size_t>(edge.size() - done, kPutBytes);
    torus_.put(node, static_cast<std::uint32_t>(from_at + done), static_cast<std::uint32_t>(bytes), regions_[to], to_at + done);
    done += bytes;
  }
  sent_bytes_[static_cast<std::size_t>(rank)] += edge.size();
}

void TorusHalos::await(int rank, Side side, std::uint64_t number) {
  std::unique_lock lock(mutex_);
  if (exchanges_ >= number) return;
  if (broken_.empty() && ++waiting_ == config_.rank_count) {
    simulate();
    ended_.notify_all();
  }
  const auto is_over = [&] { return exchanges_ >= number || !broken_.empty(); };
  if (!ended_.wait_for(lock, std::chrono::milliseconds(config_.timeout_ms), is_over)) {
    broken_ = "no edge of the rank " + std::string(side == Side::up ? "before" : "after") + " rank " + std::to_string(rank) +
              " came within " + std::to_string(config_.timeout_ms) +
              " ms (it stands still, or is far slower) look at that rank, or give a longer timeout";
    ended_.notify_all();
  }
  if (exchanges_ < number) throw TransferError(broken_);
}

void TorusHalos::end() {
  const std::lock_guard lock(mutex_);
  if (broken_.empty()) broken_ = "a rank has left (it ended, or the run was stopped) look at why";
  ended_.notify_all();
}

// Under the lock, while all ranks wait.
void TorusHalos::simulate() {
  std::size_t wanted = 0;
  for (std::size_t& bytes : sent_bytes_) wanted += std::exchange(bytes, 0);
  const std::uint64_t begin = torus_.cycle();
  for (std::size_t landed = 0; landed < wanted && broken_.empty();) {
    torus_.run(config_.wire_cycles - 1);  // as far as nodes are taken one by one
    landed += take_all();
    if (torus_.cycle() - begin > kCyclesMax)
      broken_ = "edges did not land in the torus (a packet was refused or lost) this is a fault of the gateware";
  }
  if (!broken_.empty()) return;
  std::uint64_t end = begin;
  for (const std::uint32_t node : nodes_) end = std::max(end, torus_.node(node).completion_cycle());
  cycles_ += end - begin;
  waiting_ = 0;
  ++exchanges_;
}

std::size_t TorusHalos::take_all() {
  std::size_t bytes = 0;
  for (const std::uint32_t node : nodes_) {
    for (const Completion& one : torus_.take(node)) {
      if (one.kind != CompletionKind::message)
        broken_ = "an edge was lost in the torus (a part of it did not come) this is a fault of the gateware";
      bytes += one.bytes;
    }
  }
  return bytes;
}

TorusExchange::TorusExchange(std::shared_ptr<TorusHalos> halos, int rank) : halos_(std::move(halos)), rank_(rank) {
  if (rank < 0 || rank >= halos_->config_.rank_count)
    throw SetupError("rank " + std::to_string(rank) + " has no node", "there are " + std::to_string(halos_->config_.rank_count),
                     "give 0 to the number of ranks - 1");
}
TorusExchange::~TorusExchange() { halos_->end(); }

bool TorusExchange::has(Side side) const { return side == Side::up ? rank_ > 0 : rank_ + 1 < halos_->config_.rank_count; }

void TorusExchange::send(Side side, std::uint64_t /*number*/, std::span<const std::byte> edge) { halos_->send(rank_, side, edge); }

void TorusExchange::await(Side side, std::uint64_t number) { halos_->await(rank_, side, number); }

std::span<const std::byte> TorusExchange::halo(Side side, std::uint64_t /*number*/, std::size_t bytes) const {
  return std::as_bytes(halos_->torus_.memory(halos_->node_of(rank_)).subspan(halos_->inbox_at(side), bytes));
}

}  // namespace nanet::torus
