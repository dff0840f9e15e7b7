// SPDX-License-Identifier: Apache-2.0
// How an operation on remote memory ended. Operations never throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nanet::rdma {

enum class Status : std::uint8_t {
  ok,
  time_out,       // not done within the time limit; the connection is closed, the remote bytes of a put are not known
  peer_lost,      // the target died or the path to it broke; the connection is closed, as above
  closed,         // the connection was closed before
  out_of_bounds,  // outside the region: nothing was sent
  not_permitted,  // the region is not exposed for that: nothing was sent
  misaligned,     // an atomic not at a multiple of 8 bytes: nothing was sent
  failed,         // anything else that UCX reports; the connection is closed
  would_block,    // every slot is taken: nothing was sent, the connection goes on
};

constexpr std::string_view name(Status status) {
  constexpr std::string_view NAMES[] = {"ok",         "time_out", "peer_lost",  "closed", "out_of_bounds", "not_permitted",
                                        "misaligned", "failed",   "would_block"};
  return NAMES[static_cast<std::size_t>(status)];
}

}  // namespace nanet::rdma
