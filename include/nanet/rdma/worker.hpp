// SPDX-License-Identifier: Apache-2.0
// One thread's access to remote memory: UCX's context and worker, which every region, target and connection of that thread shares.
//
// Thread rules: a worker, and all that was made with it, is used by one thread at a time. It may carry a target and any number of connections; while
// one of them waits, the others are served. What was made with a worker keeps it alive.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace nanet::rdma {

namespace detail {
class WorkerState;
}

struct WorkerConfig {
  // As UCX_TLS, such as "tcp", "posix,sysv,cma,tcp" or "rc"; empty: what the environment says, else UCX chooses. Shared memory needs tcp
  // beside it, to begin with. Over RDMA hardware a get is one-sided only if nothing else is named (docs/design/rdma.md).
  std::string transports;
  // How often a silent peer is asked for, ms. Shorter: a dead one is noticed sooner where the transport does not tell. More than 0.
  std::uint32_t keepalive_ms = 1000;
};

class Worker {
 public:
  explicit Worker(const WorkerConfig& config = {});  // throws SetupError
  ~Worker();
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;

  // Serves whatever came for this worker. Returns whether there was anything. Never blocks.
  bool progress();
  // As progress, but sleeps until something comes, at most that long.
  void wait(std::uint32_t timeout_ms);

  const std::shared_ptr<detail::WorkerState>& state() const { return state_; }

 private:
  std::shared_ptr<detail::WorkerState> state_;
};

std::string ucx_version();  // of the library that is loaded, such as "1.22.0"

}  // namespace nanet::rdma
