// SPDX-License-Identifier: Apache-2.0
// Halos of ranks over a simulated torus: each rank is a node, and its edges go to the nodes of its neighbours by PUT. docs/design/stencil.md
//
// The ranks are threads of one process. In each exchange they write their edges into the memory of their node and post PUTs; the last to await simulates the torus
// until all edges have landed and completions say so, the others wait. So what is simulated, and how many cycles it takes, does not depend on how threads run.
// Thread rules: a TorusHalos is shared; each TorusExchange is used by the thread of its rank.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "model/torus/rdma_torus.hpp"
#include "ranks/exchange.hpp"

namespace nanet::torus {

struct TorusHalosConfig {
  int rank_count = 1;                // 1 to 64: one node each
  std::size_t halo_bytes = 0;        // of the largest halo; a node has room for four
  std::uint32_t wire_cycles = 16;    // of a cable
  std::uint32_t timeout_ms = 30000;  // for all other ranks to come to an exchange; too short: a slow one ends the run
};

class TorusHalos {
 public:
  explicit TorusHalos(const TorusHalosConfig& config);  // throws SetupError

  const Shape& shape() const { return torus_.shape(); }
  // Of rank n in a line that winds through the torus, so that ranks that follow each other are neighbours.
  std::uint32_t node_of(int rank) const { return nodes_[static_cast<std::size_t>(rank)]; }
  std::uint64_t exchanges() const { return exchanges_; }
  // Of all exchanges: from the first job to the last word of the last completion.
  std::uint64_t cycles() const { return cycles_; }
  // No exchange comes about any more: who awaits one has a TransferError. From any thread.
  void end();

 private:
  friend class TorusExchange;

  std::size_t outbox_at(ranks::Side side) const { return static_cast<std::size_t>(side) * config_.halo_bytes; }
  std::size_t inbox_at(ranks::Side side) const { return (2 + static_cast<std::size_t>(side)) * config_.halo_bytes; }
  void send(int rank, ranks::Side side, std::span<const std::byte> edge);
  void await(int rank, ranks::Side side, std::uint64_t number);
  void simulate();
  std::size_t take_all();

  TorusHalosConfig config_;
  RdmaTorus torus_;
  std::vector<std::uint32_t> nodes_;
  std::vector<Region> regions_;          // by rank: all of its inbox
  std::vector<std::size_t> sent_bytes_;  // by rank, in this exchange; each written by its own thread
  std::mutex mutex_;
  std::condition_variable ended_;
  std::uint64_t exchanges_ = 0, cycles_ = 0;
  int waiting_ = 0;
  std::string broken_;  // why no exchange can be had any more
};

class TorusExchange final : public ranks::Exchange {
 public:
  TorusExchange(std::shared_ptr<TorusHalos> halos, int rank);  // throws SetupError
  ~TorusExchange() override;

  bool has(ranks::Side side) const override;
  void send(ranks::Side side, std::uint64_t number, std::span<const std::byte> edge) override;
  void await(ranks::Side side, std::uint64_t number) override;
  std::span<const std::byte> halo(ranks::Side side, std::uint64_t number, std::size_t bytes) const override;

 private:
  std::shared_ptr<TorusHalos> halos_;
  int rank_;
};

}  // namespace nanet::torus
