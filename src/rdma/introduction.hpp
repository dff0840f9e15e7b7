// SPDX-License-Identifier: Apache-2.0
// The connecting end of the set-up channel: proves the token, has the target prove it, and exchanges addresses of UCX's workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nanet/rdma/connection.hpp"
#include "rdma/frame_socket.hpp"
#include "rdma/worker_state.hpp"

namespace nanet::rdma::detail {

struct Introduced {
  FrameSocket socket;
  std::vector<std::byte> answer;  // as it came: parse_answer takes it, and its refusal is none
};

// Serves the worker meanwhile. own_address: of the connection's worker of UCX. Throws SetupError, at the deadline at the latest.
Introduced introduce(WorkerState& worker, std::span<const std::byte> own_address, const ConnectionConfig& config,
                     std::uint64_t deadline);

}  // namespace nanet::rdma::detail
