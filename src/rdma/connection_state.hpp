// SPDX-License-Identifier: Apache-2.0
// What a connection is made of. Set-up and atomics are in connection.cpp, transfers in transfers.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/rdma/connection.hpp"
#include "rdma/frame_socket.hpp"
#include "rdma/messages.hpp"
#include "rdma/slots.hpp"
#include "rdma/worker_state.hpp"

namespace nanet::rdma {

inline constexpr std::uint32_t DRAIN_MS = 1000;  // for UCX to give back what a forced close took from it

// Memory of this side.
struct Local {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  ucp_mem_h handle = nullptr;  // null: UCX's cache registers it
  bool is_device = false;
};

// What UCX said of the first transfer of a class: kept as it is, made into words on request.
struct FirstOfClass {
  std::uint64_t bytes = 0;
  bool is_known = false;
  bool is_mapped = false;
  char said[160] = {};
};

inline constexpr std::uint64_t LOOK_ROUND_NS = 50'000;  // between two looks while a mapped region is used

inline constexpr std::size_t FIRST_COUNT = 4 * 65;  // put and get, from and into host and device, by the width of the size

const char* not_given(const Path& path, Require require);  // empty: it is
// What probe, or else mapping, memory and lanes say. has_one_sided_get: of the worker, over RDMA hardware.
Path::Sided sided_by(const Path& path, bool has_one_sided_get);

struct Connection::State final : detail::Watcher {
  State(std::shared_ptr<detail::WorkerState> shared, const ConnectionConfig& given);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() override { hang_up(); }

  // Set-up
  void open();
  void take_in(const Answer& answer);
  Path path() const;

  // Transfers
  Status check_range(std::uint64_t offset_bytes, std::size_t size, bool is_permitted) const;
  Status check_part(const Part& part, Local& local) const;
  bool by_this_cpu(const Local& local) const { return mapped && !local.is_device; }
  Status move(Way::Operation operation, std::uint64_t offset_bytes, const Local& local);
  Status start_move(Way::Operation operation, std::uint64_t offset_bytes, const Local& local, std::uint64_t tag);
  ucs_status_ptr_t post_move(Way::Operation operation, std::uint64_t offset_bytes, const Local& local, ucp_request_param_t& param);
  void look_round();
  void copy(Way::Operation operation, std::uint64_t offset_bytes, const Local& local);
  FirstOfClass& first_of(Way::Operation operation, const Local& local);
  Status put_words(std::uint64_t offset_bytes, std::span<const std::uint64_t> words);
  Status get_words(std::uint64_t offset_bytes, std::span<std::uint64_t> words);
  std::atomic_ref<std::uint64_t> mapped_word(std::uint64_t offset_bytes) const {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(mapped + offset_bytes));
  }
  Status flush();
  Status flush_lanes();
  Status start_flush(std::uint64_t tag);
  Status progress();
  std::optional<Completed> take_completed();
  template <typename Post>
  Status start(std::uint64_t tag, const Post& post);
  template <typename Post>
  Status post_to(detail::Slot& slot, const Post& post);
  void probe();
  std::vector<Way> ways() const;
  static void completed(void* request, ucs_status_t status, void* slot);

  // The end
  bool is_over() const { return lost != UCS_OK || first_error != UCS_OK; }
  Status end_over();  // of a connection that is_over
  Status settle();
  Status end(Status status, ucs_status_t why);
  void drop_endpoint(std::uint32_t flags, std::uint32_t timeout_ms);
  void leave();

  void ready(int descriptor) override;  // of the set-up channel
  void hang_up();
  Fetched fetch(FetchOperation operation, std::uint64_t offset_bytes, std::uint64_t value);
  Fetched fetch_by_message(FetchOperation operation, std::uint64_t offset_bytes, std::uint64_t value);

  std::shared_ptr<detail::WorkerState> worker;
  ConnectionConfig config;
  detail::Slots slots;
  detail::FrameSocket channel;   // its end is the end of the connection
  std::vector<std::byte> frame;  // what came last on it
  bool has_frame = false;
  ucp_ep_h endpoint = nullptr;
  ucp_rkey_h key = nullptr;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  Permissions permissions;
  std::byte* mapped = nullptr;  // where the region is in this process's address space, if it is
  std::uint64_t looked_ns = 0;
  std::uint64_t deadline = 0;  // of the call that waits
  unsigned turn = 0;
  const detail::Slot* posting = nullptr;      // UCX is being handed its operation
  std::optional<ucs_status_t> ended_at_once;  // UCX said so of that one before it returned the request
  bool is_device = false;                     // the region is memory of a GPU
  bool from_device = false;                   // so is this side's
  bool has_posted_moves = false;              // by UCX, beside a region that is mapped
  std::vector<FirstOfClass> firsts = std::vector<FirstOfClass>(FIRST_COUNT);
  std::optional<Way> probed;
  ucs_status_t first_error = UCS_OK;  // of what was in flight
  ucs_status_t lost = UCS_OK;         // said by UCX's error handler, or by the end of the channel
  Status ended = Status::ok;          // what the connection ended with
  std::string error;
  std::shared_ptr<detail::UcxWorker> ucx;  // goes before the others: until then UCX may write to them
};

}  // namespace nanet::rdma
