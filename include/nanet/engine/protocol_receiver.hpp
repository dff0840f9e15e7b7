// SPDX-License-Identifier: Apache-2.0
// ProtocolReceiver: the receiver of one protocol, whose checks it inlines. Used by protocol_of() alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nanet/engine/protocol.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "nanet/flow/region.hpp"
#include "nanet/flow/sequence_tracker.hpp"

namespace nanet::engine {

// The books of one source. Its own cache lines: another thread reads the counters.
struct SourceBooks {
  flow::SequenceTracker tracker;
  flow::Counters counters;
  std::uint64_t events_clop_full = 0;
  std::uint64_t restarts_seen = 0;
  std::uint32_t drop_epoch = 0;  // of the link when this source's last packet came
};

// What the buffer being filled holds so far.
struct Filling {
  std::uint32_t used_bytes = 0;
  std::uint32_t packet_count = 0;
  std::uint32_t event_count = 0;
  std::uint32_t stride_bytes = 0;
  std::uint32_t packet_events_max = 0;
  std::uint16_t status = 0;
  std::uint64_t first_packet_ns = 0;
  std::uint64_t last_packet_ns = 0;
};

template <class Protocol>
class ProtocolReceiver final : public Receiver {
  using Counter = flow::Counter;

 public:
  ProtocolReceiver(Protocol protocol, const ReceiverConfig& config, ReceiverParts parts)
      : protocol_(std::move(protocol)),
        config_(config),
        link_(parts.link),
        clop_(parts.clop),
        queue_(parts.queue),
        router_(std::move(parts.router)),
        senders_(config.senders),
        sources_(parts.source_count),
        packets_(config.batch_size),
        in_place_(link_.payload_memory().in_place()),
        lent_(in_place_ ? clop_.buffer_count() : 0),
        discard_room_({.name = clop_.config().name + " discard room",
                       .bytes = in_place_ ? config.batch_size * sizeof(PlacedPacket) : link_.min_room_bytes()}) {}

  // No consumer still reads anything that the link has lent.
  ~ProtocolReceiver() override {
    if (!in_place_) return;
    for (std::uint32_t buffer_index = 0; buffer_index < clop_.buffer_count(); ++buffer_index) take_back(buffer_index);
    std::uint32_t filled = 0;
    if (filling_.used_bytes > 0 && clop_.acquire(filled)) give_back(clop_.buffer(filled).first(filling_.used_bytes));
  }

  std::uint32_t poll(std::uint64_t now_ns) override {
    std::uint32_t buffer_index = 0;
    if (!clop_.acquire(buffer_index)) return link_.keeps_packets() ? 0 : discard(now_ns);
    if (in_place_) take_back(buffer_index);
    const std::span<std::byte> room = clop_.buffer(buffer_index).subspan(filling_.used_bytes);
    const link::RxBatch batch = link_.receive(room, packets_, now_ns);
    if (batch.packet_count > 0) {
      senders_.next_batch(link_);
      if (filling_.packet_count == 0) filling_.first_packet_ns = now_ns;
      filling_.last_packet_ns = now_ns;
      index_ = clop_.packet_index(buffer_index);
      for (const link::RxPacket& packet : std::span(packets_).first(batch.packet_count)) {
        take(packet, room);
      }
      if (filling_.packet_count > 0) {
        filling_.used_bytes += batch.bytes_used;
      } else if (in_place_) {
        give_back(room.first(batch.bytes_used));  // all refused: their place is used again
      }
      publish();
    }
    hand_over_if_due(buffer_index, now_ns);
    return batch.packet_count;
  }

  void flush() override {
    std::uint32_t buffer_index = 0;
    if (filling_.packet_count > 0 && clop_.acquire(buffer_index)) hand_over(buffer_index, status::flush);
  }

  bool holds_packets() const override { return filling_.packet_count > 0; }

  const flow::Counters& link_counters() const override { return link_counters_; }
  const flow::Counters& source_counters(std::size_t source) const override { return sources_[source].counters; }

 private:
  // No free buffer: the packets are still read, so that each is dropped under its own name and its source's books balance.
  std::uint32_t discard(std::uint64_t now_ns) {
    const std::span<std::byte> room(discard_room_.data(), discard_room_.bytes());
    const link::RxBatch batch = link_.receive(room, packets_, now_ns);
    if (batch.packet_count == 0) return 0;
    discarding_ = true;
    senders_.next_batch(link_);
    for (const link::RxPacket& packet : std::span(packets_).first(batch.packet_count)) {
      take(packet, room);
    }
    discarding_ = false;
    if (in_place_) give_back(room.first(batch.bytes_used));
    publish();
    return batch.packet_count;
  }

  // The consumer has released the buffer: what it held when last handed over belongs to the link again.
  void take_back(std::uint32_t buffer_index) {
    const std::uint32_t bytes = std::exchange(lent_[buffer_index], 0);
    if (bytes > 0) give_back(clop_.buffer(buffer_index).first(bytes));
  }

  void give_back(std::span<const std::byte> records) {
    link_.give_back({reinterpret_cast<const PlacedPacket*>(records.data()), records.size() / sizeof(PlacedPacket)});
  }

  Inspection inspect(const link::RxPacket& packet, std::span<const std::byte> room, PacketFacts& facts) {
    if (!in_place_) return protocol_.inspect(room.subspan(packet.offset, packet.bytes), facts);
    const PlacedPacket& placed = flow::placed_packet(room, {.offset = packet.offset, .bytes = packet.bytes, .source = 0});
    if (placed.head_bytes == 0) {
      return protocol_.inspect({reinterpret_cast<const std::byte*>(placed.address), packet.bytes}, facts);
    }
    return protocol_.inspect_head(placed.head, packet.bytes, facts);
  }

  void take(const link::RxPacket& packet, std::span<const std::byte> room) {
    if (packet.flags & link::RxPacket::after_drop) ++drop_epoch_;
    if (senders_.refuses(packet.peer_address)) return refuse(Counter::packets_unknown_sender);
    if (packet.flags & link::RxPacket::wrong_queue) return refuse(Counter::packets_wrong_queue);
    if ((packet.flags & link::RxPacket::truncated) != 0 || packet.bytes > config_.packet_bytes_max) {
      filling_.status |= status::truncated;
      return refuse(Counter::packets_truncated);
    }
    PacketFacts facts;
    const Inspection inspection = inspect(packet, room, facts);
    if (!inspection.accepted) return refuse(inspection.refused_as);
    if constexpr (Protocol::has_sequence) {
      const flow::Route* route = router_.find(facts.source_id, facts.source_sub_id);
      if (route == nullptr) return refuse(Counter::packets_unknown_source);
      SourceBooks& source = sources_[route->source];
      if (facts.kind != PacketKind::data) return mark(facts, source);
      if (track(facts, source)) store(packet, facts, source, route->source);
    } else {
      store(packet, facts, sources_.front(), 0);
    }
  }

  void refuse(Counter reason) {
    link_counters_.add(reason);
    filling_.status |= status::error;
  }

  void mark(const PacketFacts& facts, SourceBooks& source) {
    source.counters.add(Counter::packets_marker);
    if (facts.kind == PacketKind::end_marker) {
      source.tracker.on_end_marker(facts.sequence, facts.next_event_number, drop_hint(source));
    } else {
      source.tracker.on_start_marker(facts.sequence, facts.next_event_number);
    }
  }

  // Whether the socket overflowed since the last packet of this source.
  flow::DropHint drop_hint(SourceBooks& source) const {
    return std::exchange(source.drop_epoch, drop_epoch_) != drop_epoch_ ? flow::DropHint::kernel : flow::DropHint::none;
  }

  // Whether the packet is to be handed on.
  bool track(const PacketFacts& facts, SourceBooks& source) {
    switch (source.tracker.on_packet(facts.sequence, facts.first_event_number, facts.event_count, drop_hint(source))) {
      case flow::Verdict::accept: return true;
      case flow::Verdict::accept_reordered: source.counters.add(Counter::packets_reordered); return true;
      case flow::Verdict::duplicate: source.counters.add(Counter::packets_duplicate); return false;
      case flow::Verdict::late: source.counters.add(Counter::packets_late); return false;
    }
    return false;
  }

  void store(const link::RxPacket& packet, const PacketFacts& facts, SourceBooks& source, std::uint16_t source_index) {
    if (discarding_) {
      source.counters.add(Counter::packets_clop_full);
      source.events_clop_full += facts.event_count;
      return;
    }
    source.counters.add(Counter::packets_accepted);
    source.counters.add(Counter::bytes_accepted, packet.bytes);
    source.counters.add(Counter::events_received, facts.event_count);
    filling_.event_count += facts.event_count;
    filling_.packet_events_max = std::max(filling_.packet_events_max, facts.event_count);
    // Set on the run's first packet that the consumer sees: the very first may have been dropped.
    const std::uint64_t restarts = source.tracker.restarts();
    const bool run_start = std::exchange(source.restarts_seen, restarts) != restarts;
    if (run_start) filling_.status |= status::run_start;
    add_to_index(packet, static_cast<std::uint16_t>(source_index | (run_start ? PacketRef::run_start : 0)));
  }

  void add_to_index(const link::RxPacket& packet, std::uint16_t source_index) {
    const std::uint32_t offset = filling_.used_bytes + packet.offset;
    if (filling_.packet_count == 0) filling_.stride_bytes = packet.bytes;
    if (packet.bytes != filling_.stride_bytes || offset != filling_.packet_count * filling_.stride_bytes) {
      filling_.stride_bytes = 0;
    }
    index_[filling_.packet_count++] = {.offset = offset, .bytes = packet.bytes, .source = source_index};
  }

  void publish() {
    if constexpr (!Protocol::has_sequence) return;
    for (SourceBooks& source : sources_) {
      const flow::SequenceTracker& tracker = source.tracker;
      source.counters.set(Counter::packets_lost_kernel, tracker.packets_lost_kernel());
      source.counters.set(Counter::packets_lost_network, tracker.packets_lost_network());
      source.counters.set(Counter::events_lost, tracker.events_lost() + source.events_clop_full);
      source.counters.set(Counter::source_restarts, tracker.restarts());
    }
  }

  void hand_over_if_due(std::uint32_t buffer_index, std::uint64_t now_ns) {
    if (filling_.packet_count == 0) return;
    const std::uint32_t bytes_left = clop_.config().buffer_bytes - filling_.used_bytes;
    if (bytes_left < link_.min_room_bytes() || index_.size() - filling_.packet_count < config_.batch_size) {
      hand_over(buffer_index, status::full);
    } else if (now_ns - filling_.first_packet_ns >= config_.timeout_ns && clop_.in_use() < config_.backlog_max) {
      hand_over(buffer_index, status::timeout);
    }
  }

  void hand_over(std::uint32_t buffer_index, std::uint16_t why) {
    std::uint32_t newly_lost = 0;
    for (SourceBooks& source : sources_) newly_lost += source.tracker.packets_newly_lost();
    const auto gap = newly_lost > 0 ? status::gap : std::uint16_t{0};
    Completion completion{};
    completion.first_packet_ns = filling_.first_packet_ns;
    completion.last_packet_ns = filling_.last_packet_ns;
    completion.bytes = filling_.used_bytes;
    completion.packet_count = static_cast<std::uint16_t>(filling_.packet_count);
    completion.packet_events_max = static_cast<std::uint8_t>(std::min<std::uint32_t>(filling_.packet_events_max, 255));
    completion.event_count = filling_.event_count;
    completion.packets_lost = newly_lost;
    completion.buffer_index = static_cast<std::uint16_t>(buffer_index);
    completion.stride_bytes = static_cast<std::uint16_t>(in_place_ ? 0 : filling_.stride_bytes);
    completion.clop = clop_.config().id;
    completion.kind = CompletionKind::buffer_filled;
    completion.status = static_cast<std::uint16_t>(filling_.status | why | gap | (in_place_ ? status::in_place : 0));
    if (in_place_) lent_[buffer_index] = filling_.used_bytes;
    completion.tag = clop_.hand_over();
    filling_ = {};
    queue_.push(completion);
  }

  [[no_unique_address]] Protocol protocol_;
  const ReceiverConfig config_;
  link::Link& link_;
  flow::Clop& clop_;
  flow::CompletionQueue& queue_;
  const flow::Router router_;
  SenderFilter senders_;
  std::vector<SourceBooks> sources_;
  flow::Counters link_counters_;
  std::vector<link::RxPacket> packets_;
  const bool in_place_;
  std::vector<std::uint32_t> lent_;  // by buffer: bytes of records that it held when it was handed over, until they are given back
  flow::Region discard_room_;
  Filling filling_;
  std::span<PacketRef> index_;
  std::uint32_t drop_epoch_ = 0;
  bool discarding_ = false;
};

}  // namespace nanet::engine
