// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/transmitter.hpp"

#include <span>

#include "nanet/flow/clock.hpp"

namespace nanet::engine {

std::uint32_t Transmitter::poll(std::uint64_t now_ns) {
  const std::uint32_t count = ring_.poll(descriptors_);
  if (count == 0) return 0;
  std::uint32_t packet_count = 0;
  dropped_.fill(false);
  for (std::uint32_t destination = 0; destination < destination_count_; ++destination) {  // packets for one place lie together
    for (std::uint32_t i = 0; i < count; ++i) {
      if (descriptors_[i]->bytes == 0) continue;
      packets_[packet_count++] = {.data = reinterpret_cast<const std::byte*>(descriptors_[i]->address),
                                  .bytes = descriptors_[i]->bytes,
                                  .destination = destination,
                                  .dropped = &dropped_[i]};
    }
  }
  if (packet_count != 0) link_.send(std::span(packets_).first(packet_count), now_ns);
  const std::uint64_t sent_ns = flow::clock_now_ns();
  for (std::uint32_t i = 0; i < count; ++i) {
    const TxDescriptor& descriptor = *descriptors_[i];
    if (descriptor.bytes == 0) continue;
    if (descriptor.tag != 0) residence_ns_.record(sent_ns - descriptor.tag);
    Completion completion{};
    completion.kind = CompletionKind::packet_sent;
    completion.tag = descriptor.tag;
    completion.bytes = descriptor.bytes;
    completion.packet_count = 1;
    completion.event_count = ring_.event_count(descriptor);
    if (dropped_[i]) completion.status = status::error;
    completion.last_packet_ns = sent_ns;
    sent_queue_.push(completion);
  }
  ring_.complete(count);
  return count;
}

}  // namespace nanet::engine
