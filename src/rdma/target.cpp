// SPDX-License-Identifier: Apache-2.0
#include "nanet/rdma/target.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <vector>

#include "rdma/socket_address.hpp"
#include "rdma/worker_state.hpp"

namespace nanet::rdma {

struct Target::State final : detail::Opener {
  struct Exposed {
    std::shared_ptr<detail::RegionState> region;
    std::shared_ptr<detail::Mapping> mapping;
    std::vector<std::byte> key;
    std::uint64_t token;
    std::uint16_t permissions;
    std::uint32_t connection_count_max;
    std::vector<ucp_ep_h> opened_by;
  };

  State(std::shared_ptr<detail::WorkerState> shared, const TargetConfig& config);
  ~State() override;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  void connection_asked(ucp_conn_request_h request) override;
  std::vector<std::byte> answer(ucp_ep_h from, std::span<const std::byte> message) override;
  AnswerMessage answer_open(ucp_ep_h from, const OpenMessage& open, std::span<const std::byte>& key);
  BeforeMessage answer_fetch(const FetchMessage& fetch);
  Exposed* find(const OpenMessage& open);
  void endpoint_failed(ucp_ep_h endpoint) override;

  std::shared_ptr<detail::WorkerState> worker;
  std::uint32_t connection_count_max;
  ucp_listener_h listener = nullptr;
  std::uint16_t port = 0;
  std::map<std::string, Exposed, std::less<>> exposed;
  std::vector<ucp_ep_h> endpoints;
  std::uint64_t refused_count = 0;
};

Target::State::State(std::shared_ptr<detail::WorkerState> shared, const TargetConfig& config)
    : worker(std::move(shared)), connection_count_max(config.connection_count_max) {
  if (worker->opener) throw SetupError("a second target on one worker", "it has one already", "expose both regions on one target");
  const detail::SocketAddress address = detail::resolve(config.address, config.port, AI_PASSIVE | AI_NUMERICHOST);
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr = {reinterpret_cast<const sockaddr*>(&address.storage), address.bytes};
  params.conn_handler.arg = worker.get();
  params.conn_handler.cb = [](ucp_conn_request_h request, void* self) {
    static_cast<detail::WorkerState*>(self)->asked.push_back(request);
  };
  detail::check(ucp_listener_create(worker->get(), &params, &listener),
                "cannot listen on " + config.address + " port " + std::to_string(config.port),
                "choose an address of this machine and a free port");
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  const ucs_status_t status = ucp_listener_query(listener, &attributes);
  if (status != UCS_OK) ucp_listener_destroy(listener);
  detail::check(status, "cannot ask for the port", "use UCX 1.18 or newer");
  port = detail::port_of(attributes.sockaddr);
  worker->opener = this;
}

Target::State::~State() {
  for (ucp_conn_request_h request : worker->asked) ucp_listener_reject(listener, request);
  worker->asked.clear();
  ucp_listener_destroy(listener);
  worker->opener = nullptr;
  worker->failed.clear();
  for (ucp_ep_h endpoint : endpoints) worker->close(endpoint, UCP_EP_CLOSE_FLAG_FORCE);
  worker->run_until([this] { return !worker->is_closing(); }, detail::deadline_ns(1000));
}

void Target::State::connection_asked(ucp_conn_request_h request) {
  if (endpoints.size() >= connection_count_max) {
    ++refused_count;
    ucp_listener_reject(listener, request);
    return;
  }
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.conn_request = request;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.arg = worker.get();
  params.err_handler.cb = [](void* self, ucp_ep_h endpoint, ucs_status_t) {
    static_cast<detail::WorkerState*>(self)->failed.push_back(endpoint);
  };
  ucp_ep_h endpoint = nullptr;
  if (ucp_ep_create(worker->get(), &params, &endpoint) == UCS_OK) {
    endpoints.push_back(endpoint);
  } else {
    ++refused_count;  // the peer is told by UCX
  }
}

std::vector<std::byte> Target::State::answer(ucp_ep_h from, std::span<const std::byte> message) {
  if (const auto open = parse_open(message)) {
    std::span<const std::byte> key;
    const AnswerMessage answer = answer_open(from, *open, key);
    if (answer.refusal != Refusal::none) ++refused_count;
    return to_bytes(answer, key);
  }
  if (const auto fetch = parse_fetch(message)) {
    const BeforeMessage answer = answer_fetch(*fetch);
    if (answer.refusal != Refusal::none) ++refused_count;
    return to_bytes(answer);
  }
  ++refused_count;
  return {};
}

Target::State::Exposed* Target::State::find(const OpenMessage& open) {
  const auto found = exposed.find(open.region());
  return found != exposed.end() && found->second.token == open.token ? &found->second : nullptr;
}

AnswerMessage Target::State::answer_open(ucp_ep_h from, const OpenMessage& open, std::span<const std::byte>& key) {
  Exposed* region = find(open);
  if (!region) return {.refusal = Refusal::not_exposed, .id = open.id};
  if (region->connection_count_max != 0) {
    if (region->opened_by.size() >= region->connection_count_max) return {.refusal = Refusal::taken, .id = open.id};
    region->opened_by.push_back(from);
  }
  key = region->key;
  return {.id = open.id,
          .address = reinterpret_cast<std::uint64_t>(region->region->span().data()),
          .bytes = region->region->span().size(),
          .permissions = region->permissions,
          .memory = region->region->kind() == RegionKind::cuda_device ? Memory::device : Memory::host,
          .key_bytes = static_cast<std::uint32_t>(key.size())};
}

// An atomic done by this CPU: everything is checked here.
BeforeMessage Target::State::answer_fetch(const FetchMessage& fetch) {
  BeforeMessage answer{.id = fetch.region.id};
  const Exposed* region = find(fetch.region);
  if (!region) {
    answer.refusal = Refusal::not_exposed;
    return answer;
  }
  const std::span<std::byte> data = region->region->span();
  const bool is_inside = data.size() >= 8 && fetch.offset <= data.size() - 8 && fetch.offset % 8 == 0;  // a region begins at a page
  const bool is_host = region->region->kind() != RegionKind::cuda_device;
  if (!is_inside || !is_host || region->permissions != (PERMISSION_READ | PERMISSION_WRITE) ||
      fetch.operation > FetchOperation::swap) {
    answer.refusal = Refusal::not_allowed;
    return answer;
  }
  const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(data.data() + fetch.offset));
  answer.before = fetch.operation == FetchOperation::add ? word.fetch_add(fetch.value) : word.exchange(fetch.value);
  return answer;
}

void Target::State::endpoint_failed(ucp_ep_h endpoint) {
  for (auto& [name, region] : exposed) std::erase(region.opened_by, endpoint);
  if (std::erase(endpoints, endpoint) != 0) worker->close(endpoint, UCP_EP_CLOSE_FLAG_FORCE);
}

Target::Target(const Worker& worker, const TargetConfig& config) : state_(std::make_unique<State>(worker.state(), config)) {}
Target::~Target() = default;
Target::Target(Target&&) noexcept = default;
Target& Target::operator=(Target&&) noexcept = default;

void Target::expose(const Region& region, const ExposureConfig& config) {
  if (config.name.empty() || config.name.size() > NAME_BYTES_MAX)
    throw SetupError("a region cannot be exposed as '" + config.name + "'", "names have 1 to 64 bytes", "choose another name");
  if (!config.permissions.read && !config.permissions.write)
    throw SetupError("region " + config.name + " may neither be read nor written", "no permission is given", "give at least one");
  if (state_->exposed.contains(config.name))
    throw SetupError("region " + config.name + " is exposed already", "a name stands for one region",
                     "revoke it first, or choose another name");
  unsigned protection = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE;
  unsigned permissions = 0;
  if (config.permissions.read) protection |= UCP_MEM_MAP_PROT_REMOTE_READ, permissions |= PERMISSION_READ;
  if (config.permissions.write) protection |= UCP_MEM_MAP_PROT_REMOTE_WRITE, permissions |= PERMISSION_WRITE;
  auto mapping = region.state()->map(protection);
  auto key = mapping->remote_key();
  state_->exposed.emplace(config.name, State::Exposed{region.state(),
                                                      std::move(mapping),
                                                      std::move(key),
                                                      config.token,
                                                      static_cast<std::uint16_t>(permissions),
                                                      config.connection_count_max,
                                                      {}});
}

bool Target::revoke(const std::string& name) { return state_->exposed.erase(name) != 0; }
std::uint16_t Target::port() const { return state_->port; }
std::size_t Target::connection_count() const { return state_->endpoints.size(); }
std::uint64_t Target::refused_count() const { return state_->refused_count; }

}  // namespace nanet::rdma
