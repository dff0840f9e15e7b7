// SPDX-License-Identifier: Apache-2.0
// How edges go from a rank to its neighbours: what a Rank needs of it. Over remote memory: tiles/mailbox.hpp; over a simulated torus:
// gateware/model/torus/rdma_halos.hpp.
//
// Thread rules: one thread, which is that of the rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace nanet::ranks {

// A neighbour or an owner is gone, or did not answer in time: the run is over.
class TransferError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Side : std::uint8_t { up = 0, down = 1 };  // the neighbour with the rows before, and after
inline constexpr std::array<Side, 2> kSides{Side::up, Side::down};

constexpr Side opposite(Side side) { return side == Side::up ? Side::down : Side::up; }

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual bool has(Side side) const = 0;  // a neighbour there

  // All ranks make the same exchanges, numbered from 1. In each of them a rank sends its edges, then awaits those of its neighbours, and takes them before it
  // sends again. Both throw TransferError.
  virtual void send(Side side, std::uint64_t number, std::span<const std::byte> edge) = 0;
  virtual void await(Side side, std::uint64_t number) = 0;
  // What has come, once it was awaited.
  virtual std::span<const std::byte> halo(Side side, std::uint64_t number, std::size_t bytes) const = 0;

  // This CPU takes part in what neighbours put here: then it is to be served while there is nothing else to do.
  virtual bool needs_serving() const { return false; }
  // Sleeps at most that long if neighbours want nothing.
  virtual void serve(std::uint32_t /*sleep_ms*/) {}
};

}  // namespace nanet::ranks
