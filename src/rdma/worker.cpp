// SPDX-License-Identifier: Apache-2.0
#include "nanet/rdma/worker.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include "rdma/worker_state.hpp"

namespace nanet::rdma {
namespace detail {

void check(ucs_status_t status, const std::string& problem, const std::string& suggestion) {
  if (status != UCS_OK) throw SetupError(problem, "UCX: " + std::string(ucs_status_string(status)), suggestion);
}

namespace {

struct ConfigRelease {
  void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};

void modify(ucp_config_t* config, const char* key, const std::string& value) {
  check(ucp_config_modify(config, key, value.c_str()), "cannot set UCX_" + std::string(key) + "=" + value,
        "use UCX 1.18 or newer: the one that is loaded is " + ucx_version());
}

// Whether a list as UCX_TLS names RDMA hardware and nothing else.
bool is_rdma_only(std::string_view transports) {
  while (true) {
    const std::size_t comma = transports.find(',');
    const std::string_view name = transports.substr(0, comma);
    if (!is_rdma(name) && !name.ends_with(":aux")) return false;  // auxiliary: to make connections with
    if (comma == std::string_view::npos) return true;
    transports.remove_prefix(comma + 1);
  }
}

// UCX's memory of a request, as ucp_context_query says: it lies before the place that UCX gives out. One size in a process.
std::atomic<std::size_t> request_bytes{0};

// A target's answers to puts and gets are requests, of which UCX (1.22) does not set the datatype. When an endpoint is closed by force, or fails,
// while answers wait for room in the peer's queue, UCX gives back what their datatype says that they have registered: with memory that the heap
// has had before, it may follow a pointer that was never one. Zero is the contiguous datatype, with nothing to give back.
// Nothing that a target's worker does writes there, so it is enough that this is called when UCX takes new memory.
void clear_request(void* request) {
  const std::size_t bytes = request_bytes.load(std::memory_order_relaxed);
  std::memset(static_cast<std::byte*>(request) - bytes, 0, bytes);
}

constexpr std::uint64_t kLookNs = 20'000;   // between two looks at the sockets while progress() is called without end
constexpr std::uint32_t kSleepMsMax = 500;  // strangers' time limits are checked that often

}  // namespace

ContextState::ContextState(const WorkerConfig& config)
    : reach_(reach_of(config)), has_one_sided_get_(is_rdma_only(reach_.transports)) {
  if (config.keepalive_ms == 0) throw SetupError("keepalive_ms is 0", "a dead peer would not be noticed", "give 1 or more");
  ucp_config_t* read = nullptr;
  check(ucp_config_read(nullptr, nullptr, &read), "cannot read UCX's settings", "look at the UCX_ variables of the environment");
  const std::unique_ptr<ucp_config_t, ConfigRelease> owned(read);
  modify(read, "TLS", reach_.transports);
  if (!reach_.net_devices.empty()) modify(read, "NET_DEVICES", reach_.net_devices);
  modify(read, "KEEPALIVE_INTERVAL", std::to_string(config.keepalive_ms) + "ms");
  if (has_one_sided_get_) {
    // As soon as a lost peer is to be reported, UCX's newer choice of protocols (1.18, 1.22) leaves every get to the target's CPU. Its older
    // one has the NIC do it, but can do nothing over TCP.
    modify(read, "PROTO_ENABLE", "n");
  } else {
    // Without it UCX gives up shared memory, without a word, as soon as a lost peer is to be reported.
    modify(read, "POSIX_ERROR_HANDLING", "y");
    // Places for messages are made that many at once. The queue of a worker has 256: UCX's 512 would be half in vain, for every peer.
    modify(read, "POSIX_RX_BUFS_GROW", "264");
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME | UCP_PARAM_FIELD_REQUEST_INIT;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
  params.name = "nanet";
  params.request_init = clear_request;
  check(ucp_init(&params, read, &context_), "cannot start UCX with transports '" + reach_.transports + "'",
        "name transports that `ucx_info -d` lists");
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
  if (ucp_context_query(context_, &attributes) == UCS_OK) request_bytes = attributes.request_size;
}

// UCX 1.18 reads through a null pointer when it is asked (ucp_request_query), and so does the older choice of protocols; 1.22 answers.
bool ContextState::tells_ways() const {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return !has_one_sided_get_ && (major > 1 || minor >= 22);
}

bool ContextState::has_cuda() const {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  return ucp_context_query(context_, &attributes) == UCS_OK && (attributes.memory_types >> UCS_MEMORY_TYPE_CUDA & 1) != 0;
}

WorkerState::WorkerState(const WorkerConfig& config)
    : context_(std::make_shared<ContextState>(config)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) throw SetupError("cannot watch sockets", std::strerror(errno), "raise the limit of open files (ulimit -n)");
}

WorkerState::~WorkerState() {
  run_until([this] { return closing_.empty(); }, deadline_ns(1000));
  ::close(epoll_);
}

UcxWorker::UcxWorker(WorkerState& state) : state_(state) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // what was set up by one thread may be used by another
  check(ucp_worker_create(state.context()->get(), &params, &worker_), "cannot make a UCX worker",
        "look at the transports, and at the limits of shared and locked memory and of open files");
  const ucs_status_t status = ucp_worker_get_efd(worker_, &event_descriptor_);
  if (status != UCS_OK) ucp_worker_destroy(worker_);
  check(status, "the UCX worker cannot sleep", "use transports that `ucx_info -d` lists");
  state_.workers_.push_back(this);
}

UcxWorker::~UcxWorker() {
  std::erase(state_.workers_, this);
  ucp_worker_destroy(worker_);
}

std::vector<std::byte> UcxWorker::address() const {
  ucp_address_t* packed = nullptr;
  std::size_t bytes = 0;
  check(ucp_worker_get_address(worker_, &packed, &bytes), "cannot ask for the worker's address", "use UCX 1.18 or newer");
  const auto* first = reinterpret_cast<const std::byte*>(packed);
  std::vector<std::byte> address(first, first + bytes);
  ucp_worker_release_address(worker_, packed);
  return address;
}

std::shared_ptr<UcxWorker> WorkerState::for_peer(std::shared_ptr<UcxWorker>& shared) {
  if (context_->reach().has_shared_memory()) return std::make_shared<UcxWorker>(*this);
  if (!shared) shared = std::make_shared<UcxWorker>(*this);
  return shared;
}

void WorkerState::watch(int descriptor, Watcher* watcher) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0)
    throw SetupError("a socket cannot be watched", std::strerror(errno), "see fs.epoll.max_user_watches");
  watched_[descriptor] = watcher;
}

void WorkerState::unwatch(int descriptor) {
  if (watched_.erase(descriptor) != 0) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

bool WorkerState::progress() {
  bool any = false;
  for (const UcxWorker* one : workers_)
    if (ucp_worker_progress(one->get()) != 0) any = true;
  if (!failed.empty() || !closing_.empty()) reap();
  if (watched_.empty()) return any;
  const std::uint64_t now_ns = flow::clock_now_ns();
  return (now_ns - looked_ns_ >= kLookNs && look(now_ns)) || any;
}

// Whether any socket had something.
bool WorkerState::look(std::uint64_t now_ns) {
  looked_ns_ = now_ns;
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  for (int index = 0; index < count; ++index) {
    const int descriptor = events[static_cast<std::size_t>(index)].data.fd;
    const auto found = watched_.find(descriptor);  // one that was served before may have ended it
    if (found != watched_.end()) found->second->ready(descriptor);
  }
  if (ticked) ticked->tick(now_ns);
  return count > 0;
}

// What UCX's callbacks left to be done outside of them. A worker that no one else has ends with what was closing of it.
void WorkerState::reap() {
  while (!failed.empty()) {
    ucp_ep_h endpoint = failed.back();
    failed.pop_back();
    if (owner) owner->endpoint_failed(endpoint);
  }
  std::erase_if(closing_, [](const Closing& one) {
    if (ucp_request_check_status(one.request) == UCS_INPROGRESS) return false;
    ucp_request_free(one.request);
    return true;
  });
}

void WorkerState::wait(std::uint32_t timeout_ms) {
  bool any = progress();
  any = look(flow::clock_now_ns()) || any;
  if (any) return;
  sources_.assign(1, {epoll_, POLLIN, 0});
  for (const UcxWorker* one : workers_) {
    if (ucp_worker_arm(one->get()) != UCS_OK) return;  // something came meanwhile
    sources_.push_back({one->event_descriptor(), POLLIN, 0});
  }
  ::poll(sources_.data(), sources_.size(), static_cast<int>(ticked ? std::min(timeout_ms, kSleepMsMax) : timeout_ms));
  look(flow::clock_now_ns());
  while (progress()) {
  }
}

// Spinning is bounded: afterwards others may have the core, and who has waited for milliseconds sleeps between two looks.
void WorkerState::pause(unsigned idle_turns) {
  if (idle_turns > 4000) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  } else if (idle_turns > 1000) {
    std::this_thread::yield();
  }
}

void WorkerState::close(ucp_ep_h endpoint, std::uint32_t flags, std::shared_ptr<UcxWorker> of) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = flags;
  void* request = ucp_ep_close_nbx(endpoint, &param);
  if (request && !UCS_PTR_IS_ERR(request)) closing_.push_back({request, std::move(of)});
}

}  // namespace detail

Worker::Worker(const WorkerConfig& config) : state_(std::make_shared<detail::WorkerState>(config)) {}
Worker::~Worker() = default;
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
bool Worker::progress() { return state_->progress(); }
void Worker::wait(std::uint32_t timeout_ms) { state_->wait(timeout_ms); }
const std::string& Worker::reach() const { return state_->context()->reach().text; }

std::string ucx_version() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

}  // namespace nanet::rdma
