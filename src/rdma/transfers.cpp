// SPDX-License-Identifier: Apache-2.0
// Transfers of a connection. Each is one slot and one operation of UCX, whether the caller waits for it or not.
#include <algorithm>
#include <cstring>

#include "flow/fence.hpp"
#include "rdma/connection_state.hpp"

namespace nanet::rdma {

using detail::Slot;
using detail::Use;

namespace {

Status status_of(ucs_status_t status) {
  switch (status) {
    case UCS_OK: return Status::ok;
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_REJECTED:
    case UCS_ERR_CANCELED: return Status::peer_lost;
    default: return Status::failed;
  }
}

}  // namespace

Status Connection::State::check_range(std::uint64_t offset_bytes, std::size_t size, bool is_permitted) const {
  if (!endpoint) return Status::closed;
  if (!is_permitted) return Status::not_permitted;
  if (offset_bytes > bytes || size > bytes - offset_bytes) return Status::out_of_bounds;
  return Status::ok;
}

void Connection::State::completed(void* request, ucs_status_t status, void* user_data) {
  Slot& slot = *static_cast<Slot*>(user_data);
  State& state = *static_cast<State*>(slot.owner);
  if (state.posting == &slot) {  // UCX has not returned the request yet
    state.ended_at_once = status;
    return;
  }
  if (status != UCS_OK && state.first_error == UCS_OK) state.first_error = status;
  ucp_request_free(request);
  state.slots.end(slot, status);
}

// Hands one operation to UCX, or does it here: post takes UCX's parameters and returns what UCX returns.
template <typename Post>
Status Connection::State::post_to(Slot& slot, const Post& post) {
  ucp_request_param_t param;  // fields that the mask does not name are not read
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &State::completed;
  param.user_data = &slot;
  posting = &slot;
  ended_at_once.reset();
  const ucs_status_ptr_t request = post(param);
  posting = nullptr;
  if (request && !UCS_PTR_IS_ERR(request) && ended_at_once) {  // of one that was asked for its path
    ucp_request_free(request);
    const ucs_status_t status = *ended_at_once;
    if (status != UCS_OK && first_error == UCS_OK) first_error = status;
    slots.end(slot, status);
    return Status::ok;
  }
  if (request == nullptr) {
    slots.end(slot, UCS_OK);
    return Status::ok;
  }
  if (!UCS_PTR_IS_ERR(request)) {
    slots.is_posted(slot, slot.use == Use::waits ? deadline : detail::deadline_ns(config.timeout_ms));
    return Status::ok;
  }
  slots.give_back(slot);
  const ucs_status_t status = UCS_PTR_STATUS(request);
  return end(status_of(status), status);
}

template <typename Post>
Status Connection::State::start(std::uint64_t tag, const Post& post) {
  if (is_over()) return end_over();
  Slot* slot = slots.take(Use::later);
  if (!slot) return Status::would_block;
  slot->tag = tag;
  return post_to(*slot, post);
}

Status Connection::State::check_part(const Part& part, Local& local) const {
  const detail::RegionState& region = *part.region.state();
  const std::span<std::byte> span = region.span();
  if (part.offset_bytes > span.size() || part.bytes > span.size() - part.offset_bytes) return Status::out_of_bounds;
  const bool is_ours = region.context() == worker->context();
  local = {.data = span.data() + part.offset_bytes,
           .bytes = part.bytes,
           .handle = is_ours ? region.handle() : nullptr,
           .is_device = region.kind() == RegionKind::cuda_device};
  return Status::ok;
}

// A transfer by UCX. Of the first of its class UCX is asked how it does it.
ucs_status_ptr_t Connection::State::post_move(Way::Operation operation, std::uint64_t offset_bytes, const Local& local,
                                              ucp_request_param_t& param) {
  if (local.handle) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    param.memh = local.handle;
  }
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = local.is_device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
  FirstOfClass& first = first_of(operation, local);
  const bool is_asked = !first.is_known && worker->context()->tells_ways();
  if (is_asked) param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;  // what is done at once cannot be asked
  has_posted_moves = true;
  const ucs_status_ptr_t request = operation == Way::Operation::put
                                       ? ucp_put_nbx(endpoint, local.data, local.bytes, address + offset_bytes, key, &param)
                                       : ucp_get_nbx(endpoint, local.data, local.bytes, address + offset_bytes, key, &param);
  if (is_asked && request && !UCS_PTR_IS_ERR(request)) {
    ucp_request_attr_t attributes{};
    attributes.field_mask = UCP_REQUEST_ATTR_FIELD_INFO_STRING | UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE;
    attributes.debug_string = first.said;
    attributes.debug_string_size = sizeof first.said;
    first.is_known = ucp_request_query(request, &attributes) == UCS_OK;
    first.bytes = local.bytes;
  }
  return request;
}

// A region that is mapped here is written and read by this CPU: over shared memory UCX (1.22) would have the target's CPU do every get as soon
// as a lost peer is to be reported.
void Connection::State::copy(Way::Operation operation, std::uint64_t offset_bytes, const Local& local) {
  if (FirstOfClass& first = first_of(operation, local); !first.is_known)
    first = {.bytes = local.bytes, .is_known = true, .is_mapped = true};
  if (local.bytes == 0) return;
  if (operation == Way::Operation::put) {
    std::memcpy(mapped + offset_bytes, local.data, local.bytes);
  } else {
    std::memcpy(local.data, mapped + offset_bytes, local.bytes);
  }
}

Status Connection::State::start_move(Way::Operation operation, std::uint64_t offset_bytes, const Local& local, std::uint64_t tag) {
  const bool is_permitted = operation == Way::Operation::put ? permissions.write : permissions.read;
  if (const Status status = check_range(offset_bytes, local.bytes, is_permitted); status != Status::ok) return status;
  return start(tag, [&](ucp_request_param_t& param) -> ucs_status_ptr_t {
    if (!by_this_cpu(local)) return post_move(operation, offset_bytes, local, param);
    copy(operation, offset_bytes, local);
    return nullptr;
  });
}

Status Connection::State::start_flush(std::uint64_t tag) {
  if (!endpoint) return Status::closed;
  return start(tag, [&](ucp_request_param_t& param) -> ucs_status_ptr_t {
    if (!mapped || has_posted_moves) return ucp_ep_flush_nbx(endpoint, &param);
    flow::full_fence();
    return nullptr;
  });
}

Status Connection::State::progress() {
  const bool any = worker->progress();
  if (!endpoint) return Status::closed;
  if (is_over()) return end_over();
  if (slots.under_way_count() == 0 || (any && ++turn % 64 != 0)) return Status::ok;
  return slots.has_expired(flow::clock_now_ns()) ? end(Status::time_out, UCS_ERR_TIMED_OUT) : Status::ok;
}

std::optional<Connection::Completed> Connection::State::take_completed() {
  if (endpoint && is_over()) end_over();
  Slot* slot = slots.next_ended();
  if (!slot) return std::nullopt;
  const Status status = status_of(slot->status);
  const Completed told{slot->tag, status == Status::ok || ended == Status::ok ? status : ended};
  slots.give_back(*slot);
  return told;
}

// Waits until nothing that this call began is in flight.
Status Connection::State::settle() {
  if (!worker->run_until([this] { return slots.count(Use::waits) == 0 || is_over(); }, deadline))
    return end(Status::time_out, UCS_ERR_TIMED_OUT);
  return is_over() ? end_over() : Status::ok;
}

// Serving a worker costs a system call for each of its sockets, many times what a small copy does: so not at each. A peer that is lost is noticed
// all the same, and so is what came for a target of the same worker.
void Connection::State::look_round() {
  const std::uint64_t now_ns = flow::clock_now_ns();
  if (now_ns - looked_ns < LOOK_ROUND_NS) return;
  looked_ns = now_ns;
  worker->progress();
}

// A transfer in chunks.
Status Connection::State::move(Way::Operation operation, std::uint64_t offset_bytes, const Local& local) {
  const bool is_permitted = operation == Way::Operation::put ? permissions.write : permissions.read;
  if (const Status status = check_range(offset_bytes, local.bytes, is_permitted); status != Status::ok) return status;
  deadline = detail::deadline_ns(config.timeout_ms);
  for (std::size_t at = 0; at < local.bytes; at += config.chunk_bytes) {
    Local chunk = local;
    chunk.data += at;
    chunk.bytes = std::min(config.chunk_bytes, local.bytes - at);
    if (by_this_cpu(local)) {
      look_round();
    } else if (at != 0) {
      worker->progress();  // so that a lost peer is noticed where each chunk is done at once
    }
    if (is_over()) return end_over();
    if (by_this_cpu(local)) {
      copy(operation, offset_bytes + at, chunk);
      continue;
    }
    Slot* slot = nullptr;
    const auto has_room = [&] { return is_over() || (slot = slots.take(Use::waits)) != nullptr; };
    if (!worker->run_until(has_room, deadline)) return end(Status::time_out, UCS_ERR_TIMED_OUT);
    if (is_over()) return end_over();
    const auto post = [&](ucp_request_param_t& param) { return post_move(operation, offset_bytes + at, chunk, param); };
    if (const Status status = post_to(*slot, post); status != Status::ok) return status;
  }
  return by_this_cpu(local) ? Status::ok : settle();
}

Status Connection::State::put_words(std::uint64_t offset_bytes, std::span<const std::uint64_t> words) {
  if ((address + offset_bytes) % 8 != 0) return endpoint ? Status::misaligned : Status::closed;
  const std::span<const std::byte> data = std::as_bytes(words);
  if (!mapped) return move(Way::Operation::put, offset_bytes, {const_cast<std::byte*>(data.data()), data.size()});
  if (const Status status = check_range(offset_bytes, data.size(), permissions.write); status != Status::ok) return status;
  look_round();
  if (is_over()) return end_over();
  for (std::size_t index = 0; index < words.size(); ++index)
    mapped_word(offset_bytes + 8 * index).store(words[index], std::memory_order_release);
  return Status::ok;
}

Status Connection::State::get_words(std::uint64_t offset_bytes, std::span<std::uint64_t> words) {
  if ((address + offset_bytes) % 8 != 0) return endpoint ? Status::misaligned : Status::closed;
  const std::span<std::byte> data = std::as_writable_bytes(words);
  if (!mapped) return move(Way::Operation::get, offset_bytes, {data.data(), data.size()});
  if (const Status status = check_range(offset_bytes, data.size(), permissions.read); status != Status::ok) return status;
  look_round();
  if (is_over()) return end_over();
  for (std::size_t index = 0; index < words.size(); ++index)
    words[index] = mapped_word(offset_bytes + 8 * index).load(std::memory_order_acquire);
  return Status::ok;
}

Status Connection::State::flush() {
  if (!endpoint) return Status::closed;
  if (mapped && !has_posted_moves) {
    flow::full_fence();
    look_round();
    return is_over() ? end_over() : Status::ok;
  }
  return flush_lanes();
}

// All that UCX has in flight to the target; opens lanes that are not open yet.
Status Connection::State::flush_lanes() {
  deadline = detail::deadline_ns(config.timeout_ms);
  const auto post = [&](ucp_request_param_t& param) { return ucp_ep_flush_nbx(endpoint, &param); };
  if (const Status status = post_to(*slots.take(Use::waits), post); status != Status::ok) return status;
  return settle();
}

Status Connection::State::end_over() {
  return lost != UCS_OK ? end(Status::peer_lost, lost) : end(status_of(first_error), first_error);
}

// The connection ends with an error: UCX gives a transfer back only if its endpoint is closed by force.
Status Connection::State::end(Status status, ucs_status_t why) {
  error = ucs_status_string(why);
  ended = status;
  drop_endpoint(UCP_EP_CLOSE_FLAG_FORCE, DRAIN_MS);
  return status;
}

// The channel goes last: the target takes the connection for lost when it ends.
void Connection::State::drop_endpoint(std::uint32_t flags, std::uint32_t timeout_ms) {
  if (!endpoint) return hang_up();
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = flags;
  void* closing = ucp_ep_close_nbx(endpoint, &param);
  endpoint = nullptr;
  const bool has_request = closing && !UCS_PTR_IS_ERR(closing);
  const auto is_gone = [&] {
    return slots.under_way_count() == 0 && (!has_request || ucp_request_check_status(closing) != UCS_INPROGRESS);
  };
  const bool is_done = worker->run_until(is_gone, detail::deadline_ns(timeout_ms));
  if (has_request) ucp_request_free(closing);  // in progress or not: UCX frees it when it is done
  if (is_done) {
    if (key) ucp_rkey_destroy(key);
    key = nullptr;
    ucx.reset();
  }
  hang_up();
}

// The owner leaves: what is in flight may still end by itself, then it is taken back.
void Connection::State::leave() {
  if (!endpoint) return;
  const auto is_quiet = [this] { return slots.under_way_count() == 0 || is_over(); };
  if (worker->run_until(is_quiet, detail::deadline_ns(config.timeout_ms)) && !is_over()) {
    drop_endpoint(0, config.timeout_ms);
  } else {
    drop_endpoint(UCP_EP_CLOSE_FLAG_FORCE, DRAIN_MS);
  }
}

}  // namespace nanet::rdma
