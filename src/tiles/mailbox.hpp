// SPDX-License-Identifier: Apache-2.0
// Halo rows between two ranks: what a rank's memory for them looks like, and how the neighbour fills it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "nanet/rdma/connection.hpp"
#include "nanet/rdma/target.hpp"
#include "ranks/exchange.hpp"
#include "tiles/neighbour.hpp"

namespace nanet::tiles {

using ranks::opposite;
using ranks::Side;

// A line for each side's number of the last exchange that came, then for each side two halos, used in turn. A neighbour that fills one for
// exchange n + 2 has had this rank's edge of exchange n + 1, and that was sent after the halo of n was taken out: no more room is needed.
struct MailboxLayout {
  static constexpr std::size_t kLineBytes = 64;
  std::size_t halo_bytes;

  std::size_t number_at(Side side) const { return static_cast<std::size_t>(side) * kLineBytes; }
  std::size_t halo_at(Side side, std::uint64_t number) const {
    return 2 * kLineBytes + (2 * static_cast<std::size_t>(side) + number % 2) * halo_bytes;
  }
  std::size_t bytes() const { return 2 * kLineBytes + 4 * halo_bytes; }
};

struct MailboxConfig {
  std::size_t halo_bytes = 0;  // of the largest halo
  std::string address;
  std::string transports;
  bool trust_network = false;
  std::uint64_t token = 0;
  std::uint32_t timeout_ms = 0;
};

class Mailbox final : public ranks::Exchange {
 public:
  explicit Mailbox(const MailboxConfig& config);  // throws SetupError

  std::uint16_t port() const { return target_.port(); }
  // To a rank that listens already; all ranks at the same time. Throws SetupError.
  void connect(Side side, const Neighbour& to);
  bool has(Side side) const override { return neighbour(side).has_value(); }
  // How data goes to a neighbour, such as "posix/memory (one-sided)"; empty without one.
  std::string path() const;

  // Into the neighbour's memory, with the number of the exchange after it. Throws TransferError.
  void send(Side side, std::uint64_t number, std::span<const std::byte> edge) override;
  bool has_come(Side side, std::uint64_t number) const;
  std::span<const std::byte> halo(Side side, std::uint64_t number, std::size_t bytes) const override;

  // Serves the neighbours once, and sleeps at most that long if they want nothing.
  void serve(std::uint32_t sleep_ms) override;
  bool needs_serving() const override { return needs_serving_; }  // this CPU takes part in what neighbours put here
  // Throws TransferError if it does not come in time, or a neighbour is gone meanwhile.
  void await(Side side, std::uint64_t number) override;

 private:
  std::optional<rdma::Connection>& neighbour(Side side) { return neighbours_[static_cast<std::size_t>(side)]; }
  const std::optional<rdma::Connection>& neighbour(Side side) const { return neighbours_[static_cast<std::size_t>(side)]; }
  void look_at_neighbours();
  void check(Side side, rdma::Status status, const char* what);

  MailboxConfig config_;
  MailboxLayout layout_;
  rdma::Worker worker_;
  rdma::Region region_;
  rdma::Target target_;
  std::array<std::optional<rdma::Connection>, 2> neighbours_;
  std::uint64_t looked_ns_ = 0;
  bool needs_serving_ = false;
};

}  // namespace nanet::tiles
