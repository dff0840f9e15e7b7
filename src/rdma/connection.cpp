// SPDX-License-Identifier: Apache-2.0
#include "nanet/rdma/connection.hpp"

#include <algorithm>
#include <atomic>

#include "rdma/connection_state.hpp"
#include "rdma/introduction.hpp"

namespace nanet::rdma {
Connection::State::State(std::shared_ptr<detail::WorkerState> shared, const ConnectionConfig& given)
    : worker(std::move(shared)), config(given), slots(this, given.depth) {
  if (config.region.empty() || config.region.size() > NAME_BYTES_MAX)
    throw SetupError("no region can be called '" + config.region + "'", "names have 1 to 64 bytes",
                     "give the name it is exposed under");
  if (config.timeout_ms == 0 || config.chunk_bytes == 0 || config.depth == 0)
    throw SetupError("timeout_ms, chunk_bytes or depth is 0", "nothing could be transferred", "give 1 or more");
  from_device = config.local && config.local->kind() == RegionKind::cuda_device;
  try {
    open();
    config.local = nullptr;  // it need not live longer
  } catch (...) {
    drop_endpoint(UCP_EP_CLOSE_FLAG_FORCE, DRAIN_MS);
    throw;
  }
}

void Connection::State::open() {
  deadline = detail::deadline_ns(config.timeout_ms);
  ucx = worker->calling();
  detail::Introduced introduced = detail::introduce(*worker, ucx->address(), config, deadline);
  channel = std::move(introduced.socket);
  worker->watch(channel.descriptor(), this);
  take_in(*parse_answer(introduced.answer));
  const std::string where = detail::place_text(config.address, config.port);
  // Lanes are opened when they are first used, with the target's help: all are, before a transfer counts on them.
  if (flush_lanes() != Status::ok)
    throw SetupError("cannot open all lanes to " + where, error, "see whether the transports work on both sides");
  probe();
  const Path way = path();
  if (const char* missing = not_given(way, config.require); *missing)
    throw SetupError("the way to " + where + " is not " + missing, way.text(), "name other transports, or do not require it");
}

void Connection::State::take_in(const Answer& answer) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(answer.worker_address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.arg = this;
  params.err_handler.cb = [](void* self, ucp_ep_h, ucs_status_t status) { static_cast<State*>(self)->lost = status; };
  detail::check(ucp_ep_create(ucx->get(), &params, &endpoint), "region '" + config.region + "' cannot be reached from here",
                "give both sides the same transports, and run both as the same account");
  const AnswerMessage& said = answer.message;
  address = said.address;
  bytes = said.bytes;
  permissions = {.read = (said.permissions & PERMISSION_READ) != 0, .write = (said.permissions & PERMISSION_WRITE) != 0};
  detail::check(ucp_ep_rkey_unpack(endpoint, answer.key.data(), &key), "cannot use the key of region '" + config.region + "'",
                "use the same transports on both sides");
  is_device = said.memory != Memory::host;
  void* place = nullptr;
  if (!is_device && ucp_rkey_ptr(key, address, &place) == UCS_OK) mapped = static_cast<std::byte*>(place);
}

// An answer to an atomic, or the end of the target.
void Connection::State::ready(int) {
  const auto got = channel.receive(sizeof(BeforeMessage), frame);
  if (got == detail::FrameSocket::Got::nothing) return;
  if (got == detail::FrameSocket::Got::frame && !has_frame) {
    has_frame = true;
    return;
  }
  hang_up();
  if (lost == UCS_OK) lost = UCS_ERR_CONNECTION_RESET;
}

void Connection::State::hang_up() {
  if (!channel.is_open()) return;
  worker->unwatch(channel.descriptor());
  channel.close();
}

// UCX has no atomics on a connection whose peer may be lost (1.22: "cannot find remote protocol"). So a region that is mapped here is changed
// by this CPU, any other by the target's when a message asks for it: these are atomic to each other, and to the target's own threads.
Connection::Fetched Connection::State::fetch(FetchOperation operation, std::uint64_t offset_bytes, std::uint64_t value) {
  if (const Status status = check_range(offset_bytes, 8, permissions.read && permissions.write); status != Status::ok)
    return {status};
  if (is_device) return {Status::not_permitted};
  if ((address + offset_bytes) % 8 != 0) return {Status::misaligned};
  deadline = detail::deadline_ns(config.timeout_ms);
  if (!mapped) return fetch_by_message(operation, offset_bytes, value);
  look_round();
  if (is_over()) return {end_over()};
  const std::atomic_ref<std::uint64_t> word = mapped_word(offset_bytes);
  return {Status::ok, operation == FetchOperation::add ? word.fetch_add(value) : word.exchange(value)};
}

Connection::Fetched Connection::State::fetch_by_message(FetchOperation operation, std::uint64_t offset_bytes, std::uint64_t value) {
  has_frame = false;
  if (is_over() || !channel.send(to_bytes(FetchMessage{.operation = operation, .offset = offset_bytes, .value = value})))
    return {end(Status::peer_lost, UCS_ERR_CONNECTION_RESET)};
  worker->run_until([&] { return has_frame || lost != UCS_OK; }, deadline);
  if (lost != UCS_OK) return {end(Status::peer_lost, lost)};
  if (!has_frame) return {end(Status::time_out, UCS_ERR_TIMED_OUT)};
  has_frame = false;
  const auto before_it = parse_before(frame);
  if (!before_it) return {end(Status::failed, UCS_ERR_INVALID_PARAM)};
  if (before_it->refusal != Refusal::none) return {Status::not_permitted};  // revoked meanwhile
  return {Status::ok, before_it->before};
}

Connection::Connection(const Worker& worker, const ConnectionConfig& config)
    : state_(std::make_unique<State>(worker.state(), config)) {}
Connection::Connection(Connection&&) noexcept = default;

Connection& Connection::operator=(Connection&& other) noexcept {
  Connection(std::move(other)).state_.swap(state_);
  return *this;
}

Connection::~Connection() {
  if (!state_) return;
  state_->leave();
  state_->hang_up();
  if (state_->slots.under_way_count() == 0) return;
  // UCX did not give back a transfer and will call into the state: it lives as long as UCX's worker, which ends here where no one else has it.
  const auto worker = std::move(state_->worker);
  const auto ucx = std::move(state_->ucx);
  ucx->kept.push_back(std::shared_ptr<State>(std::move(state_)));
}

namespace {

Local of_host(std::span<const std::byte> data) { return {const_cast<std::byte*>(data.data()), data.size()}; }

}  // namespace

Status Connection::put(std::uint64_t offset_bytes, std::span<const std::byte> data) {
  return state_->move(Way::Operation::put, offset_bytes, of_host(data));
}

Status Connection::get(std::uint64_t offset_bytes, std::span<std::byte> data) {
  return state_->move(Way::Operation::get, offset_bytes, of_host(data));
}

Status Connection::put(std::uint64_t offset_bytes, const Part& from) {
  Local local;
  const Status status = state_->check_part(from, local);
  return status == Status::ok ? state_->move(Way::Operation::put, offset_bytes, local) : status;
}

Status Connection::get(std::uint64_t offset_bytes, const Part& into) {
  Local local;
  const Status status = state_->check_part(into, local);
  return status == Status::ok ? state_->move(Way::Operation::get, offset_bytes, local) : status;
}

Status Connection::start_put(std::uint64_t offset_bytes, const Part& from, std::uint64_t tag) {
  Local local;
  const Status status = state_->check_part(from, local);
  return status == Status::ok ? state_->start_move(Way::Operation::put, offset_bytes, local, tag) : status;
}

Status Connection::start_get(std::uint64_t offset_bytes, const Part& into, std::uint64_t tag) {
  Local local;
  const Status status = state_->check_part(into, local);
  return status == Status::ok ? state_->start_move(Way::Operation::get, offset_bytes, local, tag) : status;
}

Status Connection::put_words(std::uint64_t offset_bytes, std::span<const std::uint64_t> words) {
  return state_->put_words(offset_bytes, words);
}

Status Connection::get_words(std::uint64_t offset_bytes, std::span<std::uint64_t> words) {
  return state_->get_words(offset_bytes, words);
}

Status Connection::flush() { return state_->flush(); }
std::vector<Way> Connection::ways() const { return state_->ways(); }

Status Connection::start_put(std::uint64_t offset_bytes, std::span<const std::byte> data, std::uint64_t tag) {
  return state_->start_move(Way::Operation::put, offset_bytes, of_host(data), tag);
}

Status Connection::start_get(std::uint64_t offset_bytes, std::span<std::byte> data, std::uint64_t tag) {
  return state_->start_move(Way::Operation::get, offset_bytes, of_host(data), tag);
}

Status Connection::start_flush(std::uint64_t tag) { return state_->start_flush(tag); }
Status Connection::progress() { return state_->progress(); }
std::optional<Connection::Completed> Connection::take_completed() { return state_->take_completed(); }
std::size_t Connection::in_flight() const { return state_->slots.count(detail::Use::later); }

Connection::Fetched Connection::atomic_add(std::uint64_t offset_bytes, std::uint64_t value) {
  return state_->fetch(FetchOperation::add, offset_bytes, value);
}

Connection::Fetched Connection::atomic_swap(std::uint64_t offset_bytes, std::uint64_t value) {
  return state_->fetch(FetchOperation::swap, offset_bytes, value);
}

Status Connection::close() {
  const Status status = flush();
  if (state_->endpoint) state_->drop_endpoint(0, state_->config.timeout_ms);
  return status;
}

std::uint64_t Connection::bytes() const { return state_->bytes; }
Permissions Connection::permissions() const { return state_->permissions; }
const std::string& Connection::error() const { return state_->error; }

Path Connection::path() const { return state_->path(); }

}  // namespace nanet::rdma
