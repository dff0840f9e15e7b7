// SPDX-License-Identifier: Apache-2.0
#include "tiles/mailbox.hpp"

#include <atomic>
#include <thread>

#include "nanet/flow/clock.hpp"
#include "nanet/flow/wait.hpp"

namespace nanet::tiles {
namespace {

constexpr const char* kName = "halos";
constexpr std::uint32_t kSpins = 2000, kYields = 200;
constexpr std::uint32_t kSleepMs = 1;          // a put into shared memory wakes no one
constexpr std::uint64_t kLookNs = 50'000'000;  // at the neighbours, whether they live

const char* name(Side side) { return side == Side::up ? "before" : "after"; }

}  // namespace

Mailbox::Mailbox(const MailboxConfig& config)
    : config_(config),
      layout_{config.halo_bytes},
      worker_({.transports = config.transports, .address = config.address, .trust_network = config.trust_network}),
      region_(worker_, {.name = kName, .bytes = layout_.bytes()}),
      target_(worker_, {.address = config.address, .connection_count_max = 4}) {
  target_.expose(region_, {.name = kName, .permissions = {.read = true, .write = true}, .token = config.token});
}

void Mailbox::connect(Side side, const Neighbour& to) {
  neighbour(side).emplace(
      worker_,
      rdma::ConnectionConfig{
          .address = to.address, .port = to.port, .region = kName, .token = config_.token, .timeout_ms = config_.timeout_ms});
  needs_serving_ = needs_serving_ || neighbour(side)->path().sided != rdma::Path::Sided::one_sided;
}

std::string Mailbox::path() const {
  for (const auto& connection : neighbours_)
    if (connection) return connection->path().text();
  return {};
}

void Mailbox::send(Side side, std::uint64_t number, std::span<const std::byte> edge) {
  rdma::Connection& to = *neighbour(side);
  const Side there = opposite(side);  // for the neighbour below, this rank is above
  check(side, to.put(layout_.halo_at(there, number), edge), "take an edge");
  check(side, to.flush(), "take an edge");
  check(side, to.put(layout_.number_at(there), std::as_bytes(std::span(&number, 1))), "take the number of an exchange");
}

bool Mailbox::has_come(Side side, std::uint64_t number) const {
  auto& word = *reinterpret_cast<std::uint64_t*>(region_.data() + layout_.number_at(side));
  return std::atomic_ref(word).load(std::memory_order_acquire) >= number;
}

std::span<const std::byte> Mailbox::halo(Side side, std::uint64_t number, std::size_t bytes) const {
  return {region_.data() + layout_.halo_at(side, number), bytes};
}

void Mailbox::serve(std::uint32_t sleep_ms) {
  if (sleep_ms > 0) {
    worker_.wait(sleep_ms);
  } else {
    worker_.progress();
  }
}

void Mailbox::look_at_neighbours() {
  const std::uint64_t now_ns = flow::clock_now_ns();
  if (now_ns - looked_ns_ < kLookNs) return;
  for (const Side side : ranks::kSides)
    if (has(side)) check(side, neighbour(side)->flush(), "answer");
  looked_ns_ = flow::clock_now_ns();
}

void Mailbox::await(Side side, std::uint64_t number) {
  const std::uint64_t begin_ns = flow::clock_now_ns();
  for (std::uint32_t turn = 0; !has_come(side, number); ++turn) {
    if (turn < kSpins) {
      flow::cpu_relax();
      if (turn % 16 == 0) worker_.progress();
      continue;
    }
    const bool is_sleepy = turn >= kSpins + kYields;
    if (!is_sleepy) std::this_thread::yield();
    serve(is_sleepy ? kSleepMs : 0);
    look_at_neighbours();
    if (flow::clock_now_ns() - begin_ns > config_.timeout_ms * std::uint64_t{1'000'000}) {
      throw ranks::TransferError("no edge of the rank " + std::string(name(side)) + " came within " +
                                 std::to_string(config_.timeout_ms) +
                                 " ms (it stands still, or is far slower) look at that rank, or give a longer timeout");
    }
  }
}

void Mailbox::check(Side side, rdma::Status status, const char* what) {
  if (status == rdma::Status::ok) return;
  throw ranks::TransferError("the rank " + std::string(name(side)) + " does not " + what + " (" + std::string(rdma::name(status)) +
                             ": " + neighbour(side)->error() + ") look at why that rank ended");
}

}  // namespace nanet::tiles
