// SPDX-License-Identifier: Apache-2.0
// Transfers of a connection. Each is one slot and one operation of UCX, whether the caller waits for it or not.
#include <algorithm>
#include <cstring>

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
  const ucs_status_ptr_t request = post(param);
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

Status Connection::State::start_put(std::uint64_t offset_bytes, std::span<const std::byte> data, std::uint64_t tag) {
  if (const Status status = check_range(offset_bytes, data.size(), permissions.write); status != Status::ok) return status;
  return start(tag, [&](const ucp_request_param_t& param) -> ucs_status_ptr_t {
    if (!mapped) return ucp_put_nbx(endpoint, data.data(), data.size(), address + offset_bytes, key, &param);
    std::memcpy(mapped + offset_bytes, data.data(), data.size());
    return nullptr;
  });
}

Status Connection::State::start_get(std::uint64_t offset_bytes, std::span<std::byte> data, std::uint64_t tag) {
  if (const Status status = check_range(offset_bytes, data.size(), permissions.read); status != Status::ok) return status;
  return start(tag, [&](const ucp_request_param_t& param) -> ucs_status_ptr_t {
    if (!mapped) return ucp_get_nbx(endpoint, data.data(), data.size(), address + offset_bytes, key, &param);
    std::memcpy(data.data(), mapped + offset_bytes, data.size());
    return nullptr;
  });
}

Status Connection::State::start_flush(std::uint64_t tag) {
  if (!endpoint) return Status::closed;
  return start(tag, [&](const ucp_request_param_t& param) -> ucs_status_ptr_t {
    if (!mapped) return ucp_ep_flush_nbx(endpoint, &param);
    __sync_synchronize();  // as std::atomic_thread_fence, which GCC refuses under ThreadSanitizer
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

// Waits until nothing is under way that this call began.
Status Connection::State::settle() {
  if (!worker->run_until([this] { return slots.count(Use::waits) == 0 || is_over(); }, deadline))
    return end(Status::time_out, UCS_ERR_TIMED_OUT);
  return is_over() ? end_over() : Status::ok;
}

// A transfer in chunks: post takes where a chunk begins, its size, and UCX's parameters.
template <typename Post>
Status Connection::State::transfer(std::size_t size, const Post& post) {
  deadline = detail::deadline_ns(config.timeout_ms);
  for (std::size_t at = 0; at < size; at += config.chunk_bytes) {
    if (at != 0) worker->progress();  // so that a lost peer is noticed where each chunk is done at once
    Slot* slot = nullptr;
    const auto has_room = [&] { return is_over() || (slot = slots.take(Use::waits)) != nullptr; };
    if (!worker->run_until(has_room, deadline)) return end(Status::time_out, UCS_ERR_TIMED_OUT);
    if (is_over()) return end_over();
    const std::size_t chunk = std::min(config.chunk_bytes, size - at);
    const Status status = post_to(*slot, [&](const ucp_request_param_t& param) { return post(at, chunk, param); });
    if (status != Status::ok) return status;
  }
  return settle();
}

// A region that is mapped here is written and read by this CPU: over shared memory UCX (1.22) would have the target's CPU do every get as soon
// as a lost peer shall be reported.
template <typename Copy>
Status Connection::State::copy_mapped(std::size_t size, const Copy& copy) {
  for (std::size_t at = 0; at < size; at += config.chunk_bytes) {
    worker->progress();  // a lost peer is noticed here
    if (is_over()) return end_over();
    copy(at, std::min(config.chunk_bytes, size - at));
  }
  return Status::ok;
}

Status Connection::State::put(std::uint64_t offset_bytes, std::span<const std::byte> data) {
  if (const Status status = check_range(offset_bytes, data.size(), permissions.write); status != Status::ok) return status;
  if (mapped)
    return copy_mapped(data.size(),
                       [&](std::size_t at, std::size_t size) { std::memcpy(mapped + offset_bytes + at, data.data() + at, size); });
  return transfer(data.size(), [&](std::size_t at, std::size_t size, const ucp_request_param_t& param) {
    return ucp_put_nbx(endpoint, data.data() + at, size, address + offset_bytes + at, key, &param);
  });
}

Status Connection::State::get(std::uint64_t offset_bytes, std::span<std::byte> data) {
  if (const Status status = check_range(offset_bytes, data.size(), permissions.read); status != Status::ok) return status;
  if (mapped)
    return copy_mapped(data.size(),
                       [&](std::size_t at, std::size_t size) { std::memcpy(data.data() + at, mapped + offset_bytes + at, size); });
  return transfer(data.size(), [&](std::size_t at, std::size_t size, const ucp_request_param_t& param) {
    return ucp_get_nbx(endpoint, data.data() + at, size, address + offset_bytes + at, key, &param);
  });
}

Status Connection::State::put_words(std::uint64_t offset_bytes, std::span<const std::uint64_t> words) {
  if ((address + offset_bytes) % 8 != 0) return endpoint ? Status::misaligned : Status::closed;
  const auto data = std::as_bytes(words);
  if (!mapped) return put(offset_bytes, data);
  if (const Status status = check_range(offset_bytes, data.size(), permissions.write); status != Status::ok) return status;
  worker->progress();
  if (is_over()) return end_over();
  for (std::size_t index = 0; index < words.size(); ++index)
    mapped_word(offset_bytes + 8 * index).store(words[index], std::memory_order_release);
  return Status::ok;
}

Status Connection::State::get_words(std::uint64_t offset_bytes, std::span<std::uint64_t> words) {
  if ((address + offset_bytes) % 8 != 0) return endpoint ? Status::misaligned : Status::closed;
  const auto data = std::as_writable_bytes(words);
  if (!mapped) return get(offset_bytes, data);
  if (const Status status = check_range(offset_bytes, data.size(), permissions.read); status != Status::ok) return status;
  worker->progress();
  if (is_over()) return end_over();
  for (std::size_t index = 0; index < words.size(); ++index)
    words[index] = mapped_word(offset_bytes + 8 * index).load(std::memory_order_acquire);
  return Status::ok;
}

Status Connection::State::flush() {
  if (!endpoint) return Status::closed;
  if (mapped) {
    __sync_synchronize();  // as in start_flush
    worker->progress();
    return is_over() ? end_over() : Status::ok;
  }
  return flush_lanes();
}

// All that UCX has under way to the target; opens lanes that are not yet.
Status Connection::State::flush_lanes() {
  deadline = detail::deadline_ns(config.timeout_ms);
  const auto post = [&](const ucp_request_param_t& param) { return ucp_ep_flush_nbx(endpoint, &param); };
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

void Connection::State::drop_endpoint(std::uint32_t flags, std::uint32_t timeout_ms) {
  if (!endpoint) return;
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
  if (key && is_done) {
    ucp_rkey_destroy(key);
    key = nullptr;
  }
}

// The owner goes: what is under way may still end by itself, then it is taken back.
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
