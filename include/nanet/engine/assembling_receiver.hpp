// SPDX-License-Identifier: Apache-2.0
// AssemblingReceiver: the receiver of a format whose packets are pieces of units. Packets are received into a small room, which stays in the cache, and
// each payload is copied once, to its place in its unit. A link that leaves payloads where they are has them copied from there.
//
// A Decoder is what engine/unit_facts.hpp says.
//
// Thread rules: those of Receiver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nanet/engine/assembler.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/engine/resend.hpp"
#include "nanet/engine/stream_merge.hpp"
#include "nanet/engine/unit_facts.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "nanet/flow/region.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {

template <class Decoder>
class AssemblingReceiver final : public Receiver {
  using Counter = flow::Counter;

 public:
  AssemblingReceiver(Decoder decoder, const ReceiverConfig& config, ReceiverParts parts)
      : decoder_(std::move(decoder)),
        packet_bytes_max_(config.packet_bytes_max),
        link_(parts.link),
        senders_(config.senders),
        in_place_(link_.payload_memory().in_place()),
        packets_(config.batch_size),
        room_({.name = parts.clop.config().name + " room",
               .bytes = in_place_ ? config.batch_size * sizeof(PlacedPacket) : std::max(link_.min_room_bytes(), kRoomBytes)}),
        streams_(config.assemble.value_or(AssembleConfig{}).streams),
        merge_(config.assemble.value_or(AssembleConfig{}).merge, unit_traits_of(decoder_).time),
        assembler_(config.assemble.value_or(AssembleConfig{}), parts.clop, parts.queue),
        requester_(config.assemble && config.assemble->resend
                       ? make_requester(*config.assemble->resend, "link of " + parts.clop.config().name)
                       : nullptr) {
    if (link_.payload_memory().kind == MemoryKind::device) {
      throw SetupError("units cannot be put together from payloads in the memory of a GPU", "this program cannot read them there",
                       "set payload_memory: host");
    }
  }

  std::uint32_t poll(std::uint64_t now_ns) override {
    const std::size_t wanted = link_.keeps_packets() ? assembler_.packets_to_take(packets_.size()) : packets_.size();
    const std::uint32_t packets = wanted > 0 ? receive(now_ns, wanted) : 0;
    const Assembler::Rest rest = packets > 0 ? Assembler::Rest::at_hand : Assembler::Rest::none;
    assembler_.expire(now_ns, rest);
    if (requester_) assembler_.ask_for_missing(*requester_, now_ns, rest);
    return packets;
  }

  void flush() override { assembler_.flush(); }
  bool holds_packets() const override { return assembler_.holds_units(); }
  const flow::Counters& link_counters() const override { return link_counters_; }
  const flow::Counters& source_counters(std::size_t) const override { return assembler_.counters(); }
  std::vector<StreamBooks> streams() const override { return assembler_.streams(); }

 private:
  static constexpr std::size_t kRoomBytes = 256 * 1024;  // a few super-packets, and in the second-level cache

  std::uint32_t receive(std::uint64_t now_ns, std::size_t packets_max) {
    const std::span<std::byte> room(room_.data(), room_.bytes());
    const link::RxBatch batch = link_.receive(room, std::span(packets_).first(packets_max), now_ns);
    senders_.next_batch(link_);
    for (const link::RxPacket& packet : std::span(packets_).first(batch.packet_count)) {
      take(packet, payload_of(packet, room), now_ns);
    }
    if (in_place_) {
      link_.give_back({reinterpret_cast<const PlacedPacket*>(room.data()), batch.bytes_used / sizeof(PlacedPacket)});
    }
    return batch.packet_count;
  }

  std::span<const std::byte> payload_of(const link::RxPacket& packet, std::span<const std::byte> room) const {
    if (!in_place_) return room.subspan(packet.offset, packet.bytes);
    const PlacedPacket& placed = flow::placed_packet(room, {.offset = packet.offset, .bytes = packet.bytes, .source = 0});
    return {reinterpret_cast<const std::byte*>(placed.address), packet.bytes};
  }

  void take(const link::RxPacket& packet, std::span<const std::byte> bytes, std::uint64_t now_ns) {
    if (packet.flags & link::RxPacket::after_drop) assembler_.note_drop();
    if (senders_.refuses(packet.peer_address)) return link_counters_.add(Counter::packets_unknown_sender);
    if (packet.flags & link::RxPacket::wrong_queue) return link_counters_.add(Counter::packets_wrong_queue);
    if ((packet.flags & link::RxPacket::truncated) != 0 || packet.bytes > packet_bytes_max_) {
      return link_counters_.add(Counter::packets_truncated);
    }
    UnitFacts facts;
    const Inspection inspection = decoder_.decode(bytes, facts);
    if (!inspection.accepted) return link_counters_.add(inspection.refused_as);
    if (facts.payload_offset > bytes.size() || facts.payload_bytes > bytes.size() - facts.payload_offset) {
      return link_counters_.add(Counter::packets_bad_length);
    }
    if (streams_.refuses(facts.stream)) return link_counters_.add(Counter::packets_unknown_stream);
    if (const auto reason = merge_.map(facts)) return link_counters_.add(*reason);
    assembler_.take(facts, bytes.subspan(facts.payload_offset, facts.payload_bytes), now_ns);
  }

  [[no_unique_address]] Decoder decoder_;
  const std::uint32_t packet_bytes_max_;
  link::Link& link_;
  SenderFilter senders_;
  const bool in_place_;
  std::vector<link::RxPacket> packets_;
  flow::Region room_;
  flow::Counters link_counters_;
  StreamFilter streams_;
  StreamMerge merge_;
  Assembler assembler_;
  std::unique_ptr<Requester> requester_;  // none: no one is asked for what is missing
};

}  // namespace nanet::engine
