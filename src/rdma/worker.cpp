// SPDX-License-Identifier: Apache-2.0
#include "nanet/rdma/worker.hpp"

#include <poll.h>
#include <sched.h>

#include <array>
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
    if (!is_rdma(transports)) return false;
    const std::size_t comma = transports.find(',');
    if (comma == std::string_view::npos) return true;
    transports.remove_prefix(comma + 1);
  }
}

}  // namespace

bool is_rdma(std::string_view transport) { return transport.starts_with("rc") || transport.starts_with("dc"); }

ContextState::ContextState(const WorkerConfig& config) : has_one_sided_get_(is_rdma_only(config.transports)) {
  if (config.keepalive_ms == 0) throw SetupError("keepalive_ms is 0", "a dead peer would not be noticed", "give 1 or more");
  ucp_config_t* read = nullptr;
  check(ucp_config_read(nullptr, nullptr, &read), "cannot read UCX's settings", "look at the UCX_ variables of the environment");
  const std::unique_ptr<ucp_config_t, ConfigRelease> owned(read);
  if (!config.transports.empty()) modify(read, "TLS", config.transports);
  modify(read, "KEEPALIVE_INTERVAL", std::to_string(config.keepalive_ms) + "ms");
  modify(read, "TCP_CM_REUSEADDR", "y");  // a target that is started again would wait a minute for the port of its last connections
  if (has_one_sided_get_) {
    // As soon as a lost peer shall be reported, UCX's newer choice of protocols (1.18, 1.22) leaves every get to the target's CPU. Its older
    // one has the NIC do it, but can do nothing over TCP.
    modify(read, "PROTO_ENABLE", "n");
  } else {
    // Without these two UCX gives up shared memory, without a word, as soon as a lost peer shall be reported.
    modify(read, "POSIX_ERROR_HANDLING", "y");
    modify(read, "SYSV_ERROR_HANDLING", "y");
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "nanet";
  check(ucp_init(&params, read, &context_), "cannot start UCX with transports '" + config.transports + "'",
        "name transports that `ucx_info -d` lists");
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

WorkerState::WorkerState(const WorkerConfig& config) : context_(std::make_shared<ContextState>(config)) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // what was set up by one thread may be used by another
  check(ucp_worker_create(context_->get(), &params, &worker_), "cannot make a UCX worker",
        "look at the transports, and at the limits of locked memory and of open files");
  try {
    check(ucp_worker_get_efd(worker_, &event_descriptor_), "the UCX worker cannot sleep", "use transports that `ucx_info -d` lists");
    set_handler(QUESTION_ID, &WorkerState::question_came);
    set_handler(ANSWER_ID, &WorkerState::answer_came);
  } catch (...) {
    ucp_worker_destroy(worker_);
    throw;
  }
}

WorkerState::~WorkerState() {
  run_until([this] { return closing_.empty() && sent_.empty(); }, deadline_ns(1000));
  ucp_worker_destroy(worker_);
}

void WorkerState::set_handler(unsigned id, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t param{};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB |
                     UCP_AM_HANDLER_PARAM_FIELD_ARG;
  param.id = id;
  param.flags = UCP_AM_FLAG_WHOLE_MSG;
  param.cb = callback;
  param.arg = this;
  check(ucp_worker_set_am_recv_handler(worker_, &param), "cannot receive messages", "use UCX 1.18 or newer");
}

bool WorkerState::progress() {
  const bool any = ucp_worker_progress(worker_) != 0;
  if (!asked.empty() || !failed.empty() || !closing_.empty() || !sent_.empty()) reap();
  return any;
}

// What UCX's callbacks left to be done outside of them.
void WorkerState::reap() {
  while (!asked.empty()) {
    ucp_conn_request_h request = asked.back();
    asked.pop_back();
    if (opener) opener->connection_asked(request);
  }
  while (!failed.empty()) {
    ucp_ep_h endpoint = failed.back();
    failed.pop_back();
    if (opener) opener->endpoint_failed(endpoint);
  }
  const auto is_done = [](void* request) {
    if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
    ucp_request_free(request);
    return true;
  };
  std::erase_if(closing_, is_done);
  std::erase_if(sent_, [&](const Sent& sent) { return is_done(sent.request); });
}

void WorkerState::wait(std::uint32_t timeout_ms) {
  if (progress()) return;
  if (ucp_worker_arm(worker_) != UCS_OK) return;  // something came meanwhile
  pollfd descriptor{event_descriptor_, POLLIN, 0};
  poll(&descriptor, 1, static_cast<int>(timeout_ms));
  while (progress()) {
  }
}

// Spinning is bounded: then others may have the core.
void WorkerState::pause(unsigned turn) {
  if (turn > 1000) sched_yield();
}

void WorkerState::send(ucp_ep_h endpoint, unsigned id, std::vector<std::byte> message, std::uint32_t flags) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER | flags;
  void* request = ucp_am_send_nbx(endpoint, id, nullptr, 0, message.data(), message.size(), &param);
  // An error is of an endpoint that failed: its error handler says so.
  if (request && !UCS_PTR_IS_ERR(request)) sent_.push_back({request, std::move(message)});
}

void WorkerState::close(ucp_ep_h endpoint, std::uint32_t flags) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = flags;
  void* request = ucp_ep_close_nbx(endpoint, &param);
  if (request && !UCS_PTR_IS_ERR(request)) closing_.push_back(request);
}

ucs_status_t WorkerState::question_came(void* self, const void*, std::size_t, void* data, std::size_t bytes,
                                        const ucp_am_recv_param_t* param) {
  WorkerState& worker = *static_cast<WorkerState*>(self);
  if (!(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) return UCS_OK;  // nobody to answer
  // A message by rendezvous is longer than any of ours: seen as empty, and so refused.
  if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) bytes = 0;
  if (!worker.opener) return UCS_OK;
  std::vector<std::byte> answer = worker.opener->answer(param->reply_ep, {static_cast<const std::byte*>(data), bytes});
  if (!answer.empty()) worker.send(param->reply_ep, ANSWER_ID, std::move(answer), 0);
  return UCS_OK;
}

ucs_status_t WorkerState::answer_came(void* self, const void*, std::size_t, void* data, std::size_t bytes,
                                      const ucp_am_recv_param_t* param) {
  WorkerState& worker = *static_cast<WorkerState*>(self);
  if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) return UCS_OK;
  const std::span<const std::byte> message(static_cast<const std::byte*>(data), bytes);
  const auto answer = parse_answer(message);
  const auto before = parse_before(message);
  if (!answer && !before) return UCS_OK;
  const auto waiting = worker.answers.find(answer ? answer->id : before->id);
  if (waiting != worker.answers.end()) waiting->second->assign(message.begin(), message.end());
  return UCS_OK;
}

}  // namespace detail

Worker::Worker(const WorkerConfig& config) : state_(std::make_shared<detail::WorkerState>(config)) {}
Worker::~Worker() = default;
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
bool Worker::progress() { return state_->progress(); }
void Worker::wait(std::uint32_t timeout_ms) { state_->wait(timeout_ms); }

std::string ucx_version() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

}  // namespace nanet::rdma
