// SPDX-License-Identifier: Apache-2.0
// Packets of 20-hit events with what a CPU says of them, and the contract's memory filled with such packets: a program plays the link and the sender.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "common.hpp"
#include "emulate/monte_carlo.hpp"
#include "gpu/device_layout.hpp"
#include "gpu/record_fit.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "nanet/flow/region.hpp"
#include "nanet/flow/tx_ring.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/wire/mgp.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::bench {

// Padded packets with 16 events of 20 hits, of the Monte Carlo, and what a CPU says of them.
struct PacketPool {
  std::uint32_t packet_count = 0;
  std::vector<std::byte> bytes;            // kPacketBytes a packet
  std::vector<wire::Primitive> answers;    // kPacketEvents a packet, by the finder
  std::vector<gpu::FittedCircle> circles;  // the same, by MATH

  std::span<const std::byte> packet(std::uint32_t index) const {
    return std::span(bytes).subspan(std::size_t{index % packet_count} * kPacketBytes, kPacketBytes);
  }
};

inline PacketPool make_pool(const rich::FinderConfig& finder, const rich::Decision& decision, std::uint32_t packet_count = 509) {
  emulate::MonteCarloConfig config;
  config.flat_radius = true;
  config.mean_hits = 22;
  config.hits_max = kEventHits;
  emulate::MonteCarlo monte_carlo(config);
  PacketPool pool{packet_count, std::vector<std::byte>(std::size_t{packet_count} * kPacketBytes), {}, {}};
  emulate::McEvent event;
  for (std::uint32_t number = 0, p = 0; p < packet_count; ++p) {
    wire::MgpBuilder builder(std::span(pool.bytes).subspan(std::size_t{p} * kPacketBytes, kPacketBytes));
    builder.begin(wire::MgpLayout::padded);
    for (std::uint32_t e = 0; e < kPacketEvents; ++e, ++number) {
      do monte_carlo.next(event);
      while (event.hit_count != kEventHits);
      const wire::MgpEvent header{4 * number, static_cast<std::uint8_t>(37 * number), 0, static_cast<std::uint16_t>(number)};
      builder.add_event(header, std::span(event.hits).first(kEventHits));
      const event::Event hits{event.hits.data(), kEventHits};
      rich::EventRings rings;
      rich::find_rings(finder, {&hits, 1}, {&rings, 1});
      pool.answers.push_back({header.timestamp, header.fine_time, rich::primitive_id(rings, decision)});
      rich::find_rings({.kind = rich::FinderKind::math}, {&hits, 1}, {&rings, 1});
      const rich::Ring& ring = rings.rings[0];
      pool.circles.push_back({ring.x_mm, ring.y_mm, ring.radius_mm, ring.rms_mm});
    }
    builder.finish({.source_id = 0x1C, .sequence = p});
  }
  return pool;
}

enum class Placing { in_buffers, host, device };  // where payloads are: in the CLOP's buffers, or in place (contract.hpp)

// Payloads as a NIC leaves them: each in a frame of its own, after the headers of its network or, in the GPU's memory, split from them.
class PlacedPayloads {
 public:
  PlacedPayloads(Placing placing, std::size_t packet_count) : placing_(placing), bytes_(packet_count * kFrameBytes) {
    if (placing == Placing::host)
      host_.emplace(flow::RegionConfig{.name = "payloads", .bytes = bytes_, .huge_pages = true, .locked = false});
    if (placing == Placing::device) device_ = gpu::DeviceArray<std::byte>(bytes_);
  }

  flow::PayloadMemory memory() const {
    if (placing_ == Placing::in_buffers) return {};
    return {{address(), bytes_}, placing_ == Placing::host ? MemoryKind::host : MemoryKind::device};
  }

  PlacedPacket write(std::size_t frame, std::span<const std::byte> packet) {
    const std::size_t head = placing_ == Placing::device ? PlacedPacket::head_bytes_max : 0;
    std::byte* const to = address() + frame * kFrameBytes +
                          (placing_ == Placing::device ? kHeadroomBytes : kHeadroomBytes + kHeaderBytes);
    const auto rest = packet.subspan(head);
    if (placing_ == Placing::host) std::memcpy(to, rest.data(), rest.size());
    if (placing_ == Placing::device) gpu::check(cudaMemcpy(to, rest.data(), rest.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    PlacedPacket placed{};
    std::copy_n(packet.begin(), head, placed.head);
    placed.address = reinterpret_cast<std::uintptr_t>(to);
    placed.bytes = static_cast<std::uint16_t>(packet.size());
    placed.head_bytes = static_cast<std::uint16_t>(head);
    return placed;
  }

 private:
  static constexpr std::size_t kFrameBytes = 2048;
  static constexpr std::size_t kHeadroomBytes = 256;
  static constexpr std::size_t kHeaderBytes = 42;  // Ethernet, IPv4, UDP

  std::byte* address() const { return placing_ == Placing::host ? host_->data() : device_.get(); }

  const Placing placing_;
  const std::size_t bytes_;
  std::optional<flow::Region> host_;
  gpu::DeviceArray<std::byte> device_;
};

// Filled for good: the buffers are handed over again and again.
class Rig {
 public:
  // Each buffer holds events_a_buffer events; together they are clop_bytes or somewhat less, so that no cache has them all.
  Rig(const PacketPool& pool, std::uint32_t events_a_buffer, std::size_t clop_bytes, Placing placing = Placing::in_buffers)
      : events(events_a_buffer),
        packets((events + kPacketEvents - 1) / kPacketEvents),
        chunks(gpu::plan_chunks(word()).chunks),
        clop(clop_config(packets, clop_bytes)),
        queue(64),
        ring({.capacity = std::bit_ceil(std::max(64u, 8 * chunks)), .slot_bytes = gpu::kPacketBytesMax, .locked = false}),
        payloads(placing, placing == Placing::in_buffers ? 0 : std::size_t{clop.buffer_count()} * packets),
        pool_(pool),
        descriptors_(chunks),
        placing_(placing) {
    if (events % kPacketEvents != 0)
      throw SetupError(std::to_string(events) + " events", "packets have 16", "take a multiple of 16");
    for (std::uint32_t b = 0; b < clop.buffer_count(); ++b) {
      for (std::uint32_t p = 0; p < packets; ++p) {
        const auto packet = pool_.packet(first_packet(b) + p);
        if (placing != Placing::in_buffers) {
          const PlacedPacket placed = payloads.write(std::size_t{b} * packets + p, packet);
          std::memcpy(clop.buffer(b).data() + p * sizeof placed, &placed, sizeof placed);
          clop.packet_index(b)[p] = {.offset = static_cast<std::uint32_t>(p * sizeof placed), .bytes = kPacketBytes, .source = 0};
          continue;
        }
        std::memcpy(clop.buffer(b).data() + std::size_t{p} * kPacketBytes, packet.data(), packet.size());
        clop.packet_index(b)[p] = {.offset = p * kPacketBytes, .bytes = kPacketBytes, .source = 0};
      }
    }
  }

  // As a receiver does: takes the next free buffer and writes its completion. Returns when.
  std::uint64_t push() {
    std::uint32_t buffer_index = 0;
    for (Wait wait("a free buffer"); !clop.acquire(buffer_index);) wait.turn();
    Completion completion{};
    const bool in_place = placing_ != Placing::in_buffers;
    completion.bytes = packets * (in_place ? static_cast<std::uint32_t>(sizeof(PlacedPacket)) : kPacketBytes);
    completion.event_count = events;
    completion.status = in_place ? status::full | status::in_place : status::full;
    completion.kind = CompletionKind::buffer_filled;
    completion.buffer_index = static_cast<std::uint16_t>(buffer_index);
    completion.packet_count = static_cast<std::uint16_t>(packets);
    completion.stride_bytes = in_place ? std::uint16_t{0} : static_cast<std::uint16_t>(kPacketBytes);
    completion.packet_events_max = kPacketEvents;
    const std::uint64_t time_ns = now_ns();
    completion.first_packet_ns = completion.last_packet_ns = time_ns;
    completion.tag = clop.hand_over();
    queue.push(completion);
    return time_ns;
  }

  // Takes descriptors that are there; true when they are all of one buffer's.
  bool poll_answers() {
    polled_ += ring.poll(std::span(descriptors_).subspan(polled_));
    return polled_ == chunks;
  }

  // Looks at the polled answers, which are those to buffer `number`: their count, and with `values` each of them. Gives the descriptors back. Returns the
  // number of wrong ones.
  std::uint32_t check_answers(std::uint64_t number, bool values) {
    const std::uint32_t first = first_packet(static_cast<std::uint32_t>(number % clop.buffer_count())) * kPacketEvents;
    std::uint32_t answered = 0;
    std::uint32_t wrong = 0;
    for (const TxDescriptor* descriptor : descriptors_) {
      const std::span payload(reinterpret_cast<const std::byte*>(descriptor->address), descriptor->bytes);
      if (!values) {
        answered += static_cast<std::uint32_t>(payload[6]);
        continue;
      }
      wire::MtpView view;
      if (wire::MtpView::parse(payload, view) != wire::ParseError::none) continue;
      wire::for_each_primitive(view, [&](const wire::Primitive& answer) {
        wrong += !(answer == pool_.answers[(first + answered) % pool_.answers.size()]);
        ++answered;
      });
    }
    ring.complete(polled_);
    polled_ = 0;
    return wrong + (answered < events ? events - answered : answered - events);
  }

  std::uint32_t first_packet(std::uint32_t buffer_index) const {
    return static_cast<std::uint32_t>(std::uint64_t{buffer_index} * packets % pool_.packet_count);
  }
  const PacketPool& pool() const { return pool_; }

  const std::uint32_t events;
  const std::uint32_t packets;
  const std::uint32_t chunks;  // answer packets to a buffer
  flow::Clop clop;
  flow::CompletionQueue queue;
  flow::TxRing ring;
  PlacedPayloads payloads;

 private:
  gpu::BufferWord word() const {
    return {0, static_cast<std::uint16_t>(packets), static_cast<std::uint16_t>(kPacketBytes), 0,
            static_cast<std::uint8_t>(kPacketEvents)};
  }
  static flow::ClopConfig clop_config(std::uint32_t packets, std::size_t clop_bytes) {
    flow::ClopConfig config;
    config.buffer_bytes = (packets * kPacketBytes + 4095) / 4096 * 4096;
    const std::size_t count = std::clamp<std::size_t>(clop_bytes / config.buffer_bytes, 16, 32768);
    config.buffer_count = std::bit_floor(static_cast<std::uint32_t>(count));
    config.index_capacity = packets;
    config.locked = false;  // registering it with the GPU locks it
    return config;
  }

  const PacketPool& pool_;
  std::vector<const TxDescriptor*> descriptors_;
  std::uint32_t polled_ = 0;
  const Placing placing_;
};

}  // namespace nanet::bench
