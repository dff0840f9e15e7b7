// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "nanet/setup_error.hpp"
#include "rdma/notify_layout.hpp"

namespace nanet::rdma {

NotifyWriter::NotifyWriter(Connection connection) : connection_(std::move(connection)) {
  const auto refuse = [](const std::string& why) {
    throw SetupError("cannot write to a ring", why, "connect to the region of a ring, exposed for reading and writing");
  };
  if (!connection_.permissions().read || !connection_.permissions().write) refuse("its region may not be read and written");
  RingHead head{.magic = 0};
  if (connection_.bytes() < NOTICES_AT) refuse("its region is too small for one");
  if (const Status status = connection_.get(0, std::as_writable_bytes(std::span(&head, 1))); status != Status::ok)
    refuse("reading its head: " + std::string(name(status)));
  const std::optional<NotifyRingConfig> config = ring_of(head, connection_.bytes());
  if (!config) refuse("there is none in its region, or one of another version");
  slot_count_ = config->slot_count;
  payload_bytes_max_ = config->payload_bytes_max;
  slot_bytes_ = head.slot_bytes;
  slots_at_ = slots_at(slot_count_);
  notices_.resize(slot_count_);
  find_next();
}

// The first payload after those that an earlier writer has notified.
void NotifyWriter::find_next() {
  Status status = connection_.get_words(CONSUMED_AT, std::span(&consumed_, 1));
  if (status == Status::ok) status = connection_.get_words(NOTICES_AT, notices_);
  if (status != Status::ok)
    throw SetupError("cannot read the state of a ring", std::string(name(status)) + ", " + connection_.error(),
                     "see whether its owner runs");
  next_ = consumed_;
  while (next_ - consumed_ < slot_count_ && is_of(notices_[next_ % slot_count_], next_)) ++next_;
  first_ = next_;
}

std::uint64_t NotifyWriter::free_slots(Status& status, std::size_t wanted) {
  if (slot_count_ - (next_ - consumed_) >= wanted) return wanted;
  std::uint64_t consumed = 0;
  status = connection_.get_words(CONSUMED_AT, std::span(&consumed, 1));
  if (status != Status::ok) return 0;
  if (consumed - consumed_ > next_ - consumed_) {  // a counter that went back, or ran ahead of what was sent
    status = Status::failed;
    return 0;
  }
  consumed_ = consumed;
  return std::min<std::uint64_t>(wanted, slot_count_ - (next_ - consumed_));
}

NotifyWriter::Sent NotifyWriter::send(std::span<const std::span<const std::byte>> payloads) {
  for (const auto& payload : payloads)
    if (payload.size() > payload_bytes_max_) return {Status::out_of_bounds, 0};
  Status status = Status::ok;
  const auto going = payloads.first(free_slots(status, payloads.size()));
  if (status != Status::ok || going.empty()) return {status, 0};
  status = put_payloads(going);
  if (status == Status::ok) status = notify(going);
  if (status != Status::ok) return {status, 0};
  next_ += going.size();
  return {Status::ok, going.size()};
}

// They are in the target's memory when it returns ok; none of them is in use here when it returns at all.
Status NotifyWriter::put_payloads(std::span<const std::span<const std::byte>> payloads) {
  Status status = Status::ok;
  const auto take_ended = [&] {
    while (const auto completed = connection_.take_completed())
      if (status == Status::ok) status = completed->status;
  };
  for (std::size_t index = 0; index < payloads.size() && status == Status::ok; ++index) {
    const std::uint64_t slot = (next_ + index) % slot_count_;
    while ((status = connection_.start_put(slots_at_ + slot * slot_bytes_, payloads[index], index)) == Status::would_block) {
      status = connection_.progress();
      take_ended();
      if (status != Status::ok) break;
    }
  }
  if (status == Status::ok) status = connection_.flush();
  take_ended();
  return status;
}

Status NotifyWriter::notify(std::span<const std::span<const std::byte>> payloads) {
  const std::size_t first_slot = next_ % slot_count_;
  for (std::size_t index = 0; index < payloads.size(); ++index)
    notices_[(first_slot + index) % slot_count_] = notice(next_ + index, payloads[index].size());
  const std::size_t before_end = std::min<std::size_t>(payloads.size(), slot_count_ - first_slot);
  const std::span<const std::uint64_t> words(notices_);
  const Status status = connection_.put_words(NOTICES_AT + 8 * first_slot, words.subspan(first_slot, before_end));
  if (status != Status::ok || before_end == payloads.size()) return status;
  return connection_.put_words(NOTICES_AT, words.first(payloads.size() - before_end));
}

Status NotifyWriter::flush() { return connection_.flush(); }
Status NotifyWriter::close() { return connection_.close(); }

}  // namespace nanet::rdma
