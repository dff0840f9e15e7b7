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

// Transports and network devices follow from the address: UCX opens no port that was not asked for. Whatever UCX_TLS and UCX_NET_DEVICES of the
// environment say, these are set here.
struct WorkerConfig {
  // Empty: on one machine shared memory (posix), elsewhere RDMA hardware (rc, dc) on the device that owns the address. Else some of these,
  // as UCX_TLS has them. Over RDMA hardware a get is one-sided only if nothing else is named (docs/design/rdma.md).
  std::string transports;
  // How often a silent peer is probed, ms. Shorter: a dead one is noticed sooner where the transport does not tell. More than 0.
  std::uint32_t keepalive_ms = 1000;
  // Where its target listens, or its connections go: IPv4, IPv6, a host name, or the path of a Unix socket. Loopback or a path is one machine.
  std::string address = "127.0.0.1";
  // UCX's TCP may be used: where it is named, and between machines where there is no RDMA hardware. It checks no keys: whoever
  // reaches the interface has full control over this process.
  bool trust_network = false;
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

  const std::string& reach() const;  // who can do what through its transports: one sentence

  const std::shared_ptr<detail::WorkerState>& state() const { return state_; }

 private:
  std::shared_ptr<detail::WorkerState> state_;
};

std::string ucx_version();  // of the library that is loaded, such as "1.22.0"

}  // namespace nanet::rdma
