// SPDX-License-Identifier: Apache-2.0
// UCX's handles, each owned by one type, and what a worker does for the target and the connections that share it.
#pragma once

#include <poll.h>
#include <ucp/api/ucp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nanet/flow/clock.hpp"
#include "nanet/rdma/region.hpp"
#include "nanet/rdma/worker.hpp"
#include "nanet/setup_error.hpp"
#include "rdma/reach.hpp"

namespace nanet::rdma::detail {

inline std::uint64_t deadline_ns(std::uint32_t timeout_ms) { return flow::clock_now_ns() + timeout_ms * std::uint64_t{1'000'000}; }

// Throws SetupError unless ok.
void check(ucs_status_t status, const std::string& problem, const std::string& suggestion);

class ContextState {
 public:
  explicit ContextState(const WorkerConfig& config);
  ~ContextState() { ucp_cleanup(context_); }
  ContextState(const ContextState&) = delete;
  ContextState& operator=(const ContextState&) = delete;
  ucp_context_h get() const { return context_; }
  bool has_cuda() const;                                         // whether this UCX, on this machine, can use a GPU's memory
  bool tells_ways() const;                                       // whether UCX can be asked for the path of a transfer
  bool has_one_sided_get() const { return has_one_sided_get_; }  // over RDMA hardware
  const Reach& reach() const { return reach_; }

 private:
  Reach reach_;
  ucp_context_h context_ = nullptr;
  bool has_one_sided_get_;
};

// A registration of memory, or memory that UCX allocated. Keeps the context alive.
class Mapping {
 public:
  Mapping(std::shared_ptr<ContextState> context, const ucp_mem_map_params_t& params, const std::string& name);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ucp_mem_h get() const { return memory_; }
  std::span<std::byte> span() const;
  ucs_memory_type_t type() const;
  std::vector<std::byte> remote_key() const;  // throws SetupError

 private:
  std::shared_ptr<ContextState> context_;
  ucp_mem_h memory_ = nullptr;
  std::span<std::byte> registered_;  // empty if UCX allocated it
};

// Has sockets of its own that are to be served. Called in progress() and wait(), outside of UCX's callbacks.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void ready(int descriptor) = 0;
  virtual void tick(std::uint64_t /*now_ns*/) {}  // each time that the sockets were looked at: of WorkerState::ticked
};

// The owner of UCX endpoints that fail by themselves: the target.
class EndpointOwner {
 public:
  virtual ~EndpointOwner() = default;
  virtual void endpoint_failed(ucp_ep_h endpoint) = 0;
};

class WorkerState;

// A worker of UCX. The state that it was made for serves it as long as anyone has it, and lives longer.
class UcxWorker {
 public:
  explicit UcxWorker(WorkerState& state);  // throws SetupError
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  ucp_worker_h get() const { return worker_; }
  int event_descriptor() const { return event_descriptor_; }
  std::vector<std::byte> address() const;  // throws SetupError

  // State of connections that UCX still writes to (it did not give a transfer back in time): freed after the worker.
  std::vector<std::shared_ptr<void>> kept;

 private:
  WorkerState& state_;
  ucp_worker_h worker_ = nullptr;
  int event_descriptor_ = -1;
};

class WorkerState {
 public:
  explicit WorkerState(const WorkerConfig& config);
  ~WorkerState();
  WorkerState(const WorkerState&) = delete;
  WorkerState& operator=(const WorkerState&) = delete;

  bool progress();
  void wait(std::uint32_t timeout_ms);
  // Serves the worker until done() or the deadline. Returns done().
  template <typename Done>
  bool run_until(const Done& done, std::uint64_t deadline);
  static void pause(unsigned idle_turns);

  // A worker of UCX for one connection more, and for one guest more. Throw SetupError.
  // All peers of a worker put their messages into one queue in shared memory, where one that is killed within a message leaves a gap through
  // which nothing comes any more: so where there is shared memory, each peer has a worker of its own. Elsewhere the connections share one, and
  // the guests another: UCX pairs endpoints of two workers by the order in which they were made, and two ranks that connect to each other at
  // the same time would else have their own connections paired.
  std::shared_ptr<UcxWorker> calling() { return for_peer(calling_); }
  std::shared_ptr<UcxWorker> serving() { return for_peer(serving_); }
  const std::shared_ptr<ContextState>& context() const { return context_; }

  void close(ucp_ep_h endpoint, std::uint32_t flags, std::shared_ptr<UcxWorker> of);  // goes on in progress()
  bool is_closing() const { return !closing_.empty(); }

  void watch(int descriptor, Watcher* watcher);  // throws SetupError
  void unwatch(int descriptor);                  // before it is closed

  // Set by the target, called in progress() outside of UCX's own callbacks.
  EndpointOwner* owner = nullptr;
  Watcher* ticked = nullptr;
  std::vector<ucp_ep_h> failed;

 private:
  friend UcxWorker;
  struct Closing {
    void* request;
    std::shared_ptr<UcxWorker> worker;
  };
  std::shared_ptr<UcxWorker> for_peer(std::shared_ptr<UcxWorker>& shared);
  bool look(std::uint64_t now_ns);
  void reap();

  std::shared_ptr<ContextState> context_;
  std::vector<const UcxWorker*> workers_;  // all that there are
  std::shared_ptr<UcxWorker> calling_, serving_;
  std::vector<Closing> closing_;
  std::vector<pollfd> sources_;  // of wait()
  int epoll_;
  std::map<int, Watcher*> watched_;
  std::uint64_t looked_ns_ = 0;
};

template <typename Done>
bool WorkerState::run_until(const Done& done, std::uint64_t deadline) {
  for (unsigned turn = 1, idle = 0; !done(); ++turn) {
    if (progress()) {
      idle = 0;
    } else {
      pause(++idle);
    }
    if (turn % 64 == 0 && flow::clock_now_ns() >= deadline) return done();
  }
  return true;
}

class RegionState {
 public:
  RegionState(const Worker& worker, const RegionConfig& config);
  RegionState(const Worker& worker, const RegionConfig& config, std::span<std::byte> memory);
  RegionKind kind() const { return kind_; }
  const std::shared_ptr<ContextState>& context() const { return context_; }
  // A registration for this side's own transfers; null: UCX's cache does it.
  ucp_mem_h handle() const { return local_ ? local_->get() : nullptr; }
  std::span<std::byte> span() const { return span_; }
  const std::string& name() const { return name_; }
  // A registration with these rights, to be exposed.
  std::shared_ptr<Mapping> map(unsigned protection) const;

 private:
  void check_kind() const;
  void check_room(std::size_t bytes) const;

  std::string name_;
  RegionKind kind_;
  std::shared_ptr<ContextState> context_;
  std::shared_ptr<Mapping> local_;
  std::shared_ptr<Mapping> allocated_;  // host_shared
  std::shared_ptr<void> memory_;        // host: a flow::Region
  std::span<std::byte> span_;
};

}  // namespace nanet::rdma::detail
