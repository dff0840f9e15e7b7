// SPDX-License-Identifier: Apache-2.0
#include "nanet/rdma/target.hpp"

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <vector>

#include "rdma/door.hpp"
#include "rdma/worker_state.hpp"

namespace nanet::rdma {
namespace {

constexpr std::uint64_t kDrainTcpNs = 1'000'000'000;  // UCX sees the end of a connection after all that came through it
constexpr std::uint64_t kDrainNs = 1'000'000;  // else it looks now and then only; what lies in shared memory is taken by the next turns

}  // namespace

// Past the door are guests: connections that have proved a token.
struct Target::State final : detail::EndpointOwner, detail::Watcher, detail::Door::Host {
  struct Exposed {
    std::shared_ptr<detail::RegionState> region;
    std::shared_ptr<detail::Mapping> mapping;
    std::vector<std::byte> key;
    std::uint64_t token;
    std::uint16_t permissions;
    std::uint32_t connection_count_max;
    std::uint64_t number;  // of this exposure: its name may be given to another later
  };
  struct Guest {
    detail::FrameSocket socket;
    std::string region;
    std::shared_ptr<detail::UcxWorker> ucx = nullptr;
    ucp_ep_h endpoint = nullptr;
    std::uint64_t exposure = 0;
    std::uint64_t leaves_ns = 0;  // its channel has ended: when its endpoint is closed at the latest; 0: it has not
  };

  State(std::shared_ptr<detail::WorkerState> shared, const TargetConfig& config);
  ~State() override;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  std::optional<std::uint64_t> token_of(std::string_view region) const override;
  void enter(detail::FrameSocket socket, const std::string& region, std::span<const std::byte> worker_address) override;
  void ready(int descriptor) override;
  void tick(std::uint64_t now_ns) override;
  void endpoint_failed(ucp_ep_h endpoint) override;
  AnswerMessage open(Guest& guest, std::span<const std::byte> worker_address);
  BeforeMessage answer_fetch(const Guest& guest, const FetchMessage& fetch);
  bool answer(Guest& guest, std::span<const std::byte> message);
  void leave(Guest& guest);
  void show_out(std::list<Guest>::iterator guest);

  std::shared_ptr<detail::WorkerState> worker;
  std::uint32_t connection_count_max;
  std::map<std::string, Exposed, std::less<>> exposed;
  std::uint64_t exposure_count = 0;
  std::list<Guest> guests;
  std::vector<std::byte> frame;
  std::uint64_t refused_count = 0;
  detail::Door door;
};

namespace {

std::shared_ptr<detail::WorkerState> checked(std::shared_ptr<detail::WorkerState> worker, const TargetConfig& config) {
  if (worker->owner) throw SetupError("a second target on one worker", "it has one already", "expose both regions on one target");
  const detail::SocketAddress address = detail::resolve(config.address, config.port, AI_PASSIVE | AI_NUMERICHOST);
  if (detail::is_one_machine(address) != worker->context()->reach().is_one_machine)
    throw SetupError("a target cannot listen on " + config.address, "its worker has the transports of another address",
                     "give both the same");
  return worker;
}

}  // namespace

Target::State::State(std::shared_ptr<detail::WorkerState> shared, const TargetConfig& config)
    : worker(checked(std::move(shared), config)),
      connection_count_max(config.connection_count_max),
      door(*worker, *this, config.address, config.port) {
  worker->serving();  // so that what it cannot have is said now
  worker->owner = this;
  worker->ticked = this;
}

Target::State::~State() {
  worker->owner = nullptr;
  worker->ticked = nullptr;
  worker->failed.clear();
  while (!guests.empty()) show_out(guests.begin());
  worker->run_until([this] { return !worker->is_closing(); }, detail::deadline_ns(1000));
}

std::optional<std::uint64_t> Target::State::token_of(std::string_view region) const {
  const auto found = exposed.find(region);
  return found != exposed.end() ? std::optional(found->second.token) : std::nullopt;
}

void Target::State::enter(detail::FrameSocket socket, const std::string& region, std::span<const std::byte> worker_address) {
  Guest guest{std::move(socket), region};
  const AnswerMessage answer = open(guest, worker_address);
  if (answer.refusal != Refusal::none) {
    ++refused_count;
    guest.socket.send(to_bytes(answer));
    return;
  }
  const auto place = guests.insert(guests.end(), std::move(guest));
  worker->watch(place->socket.descriptor(), this);
  if (!place->socket.send(to_bytes(answer, place->ucx->address(), exposed.find(region)->second.key))) show_out(place);
}

AnswerMessage Target::State::open(Guest& guest, std::span<const std::byte> worker_address) {
  const auto found = exposed.find(guest.region);
  if (found == exposed.end()) return {.refusal = Refusal::not_exposed};  // revoked meanwhile
  const Exposed& region = found->second;
  guest.exposure = region.number;
  const auto count = std::ranges::count(guests, region.number, &Guest::exposure);
  if (region.connection_count_max != 0 && count >= static_cast<std::ptrdiff_t>(region.connection_count_max))
    return {.refusal = Refusal::taken};
  if (guests.size() >= connection_count_max) return {.refusal = Refusal::full};
  try {
    guest.ucx = worker->serving();
  } catch (const SetupError&) {  // no descriptors, or no memory, for one more
    return {.refusal = Refusal::full};
  }
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(worker_address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.arg = worker.get();
  params.err_handler.cb = [](void* self, ucp_ep_h endpoint, ucs_status_t) {
    static_cast<detail::WorkerState*>(self)->failed.push_back(endpoint);
  };
  if (ucp_ep_create(guest.ucx->get(), &params, &guest.endpoint) != UCS_OK) return {.refusal = Refusal::unreachable};
  return {.address = reinterpret_cast<std::uint64_t>(region.region->span().data()),
          .bytes = region.region->span().size(),
          .permissions = region.permissions,
          .memory = region.region->kind() == RegionKind::cuda_device ? Memory::device : Memory::host,
          .key_bytes = static_cast<std::uint32_t>(region.key.size())};
}

// A guest asks for an atomic, or is gone.
void Target::State::ready(int descriptor) {
  const auto guest = std::ranges::find(guests, descriptor, [](const Guest& one) { return one.socket.descriptor(); });
  if (guest == guests.end()) return;
  for (;;) {
    const auto got = guest->socket.receive(sizeof(FetchMessage), frame);
    if (got == detail::FrameSocket::Got::nothing) return;
    if (got != detail::FrameSocket::Got::frame || !answer(*guest, frame)) {
      leave(*guest);
      return;
    }
  }
}

// Whether it stays.
bool Target::State::answer(Guest& guest, std::span<const std::byte> message) {
  const auto fetch = parse_fetch(message);
  if (!fetch) {
    ++refused_count;
    return false;
  }
  const BeforeMessage before = answer_fetch(guest, *fetch);
  if (before.refusal != Refusal::none) ++refused_count;
  return guest.socket.send(to_bytes(before));
}

// An atomic done by this CPU: everything is checked here.
BeforeMessage Target::State::answer_fetch(const Guest& guest, const FetchMessage& fetch) {
  const auto found = exposed.find(guest.region);
  if (found == exposed.end() || found->second.number != guest.exposure) return {.refusal = Refusal::not_exposed};
  const Exposed& region = found->second;
  const std::span<std::byte> data = region.region->span();
  const bool is_inside = data.size() >= 8 && fetch.offset <= data.size() - 8 && fetch.offset % 8 == 0;  // a region begins at a page
  const bool is_host = region.region->kind() != RegionKind::cuda_device;
  if (!is_inside || !is_host || region.permissions != (PERMISSION_READ | PERMISSION_WRITE) || fetch.operation > FetchOperation::swap)
    return {.refusal = Refusal::not_allowed};
  const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(data.data() + fetch.offset));
  return {.before = fetch.operation == FetchOperation::add ? word.fetch_add(fetch.value) : word.exchange(fetch.value)};
}

// What a guest has sent through UCX may still be in flight: over TCP, this CPU carries it out and answers, and UCX ends the process when it has to
// answer at an endpoint that was closed by force. So the endpoint stays, and with it the guest's place, until UCX has seen its end.
void Target::State::leave(Guest& guest) {
  worker->unwatch(guest.socket.descriptor());
  guest.socket = detail::FrameSocket();
  guest.leaves_ns = flow::clock_now_ns() + (worker->context()->reach().has_tcp() ? kDrainTcpNs : kDrainNs);
}

void Target::State::tick(std::uint64_t now_ns) {
  door.tick(now_ns);
  for (auto guest = guests.begin(); guest != guests.end();) {
    const auto next = std::next(guest);
    if (guest->leaves_ns != 0 && guest->leaves_ns <= now_ns) show_out(guest);
    guest = next;
  }
}

void Target::State::show_out(std::list<Guest>::iterator guest) {
  if (guest->leaves_ns == 0) worker->unwatch(guest->socket.descriptor());
  worker->close(guest->endpoint, UCP_EP_CLOSE_FLAG_FORCE, guest->ucx);
  guests.erase(guest);
}

void Target::State::endpoint_failed(ucp_ep_h endpoint) {
  const auto guest = std::ranges::find(guests, endpoint, &Guest::endpoint);
  if (guest != guests.end()) show_out(guest);
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
  state_->exposed.emplace(
      config.name, State::Exposed{region.state(), std::move(mapping), std::move(key), config.token,
                                  static_cast<std::uint16_t>(permissions), config.connection_count_max, ++state_->exposure_count});
}

bool Target::revoke(const std::string& name) { return state_->exposed.erase(name) != 0; }
std::uint16_t Target::port() const { return state_->door.port(); }
std::size_t Target::connection_count() const { return state_->guests.size(); }
std::uint64_t Target::refused_count() const { return state_->refused_count + state_->door.refused_count(); }

}  // namespace nanet::rdma
