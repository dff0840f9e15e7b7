// SPDX-License-Identifier: Apache-2.0
// A link and a sender played by the test, around an EventProcessor: packets in, primitives out, and what the CPU says they should be.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "emulate/monte_carlo.hpp"
#include "nanet/gpu/event_processor.hpp"
#include "nanet/wire/mtp.hpp"
#include "payload_room.hpp"

namespace nanet::gpu::rig {

using Primitives = std::vector<wire::Primitive>;

enum class Format { padded, packed, merged };

struct RigConfig {
  std::uint32_t buffer_count = 8;
  std::uint32_t buffer_bytes = 65536;
  std::uint32_t tx_capacity = 256;
  std::uint32_t clop_count = 1;
  std::vector<Placing> placing = {};  // by CLOP; one that is not named is ordinary
};

// What event building needs to know of a buffer.
struct Handover {
  std::uint32_t clop = 0;
  std::uint64_t last_packet_ns = 0;
  std::span<const std::uint16_t> sources{};  // PacketRef::source of each packet; without them all are of source 0
};

// Packets of `event_count` events each, of the detector's Monte Carlo with some hits that no detector has; the timestamps go on from packet to packet.
class PacketSource {
 public:
  explicit PacketSource(std::uint64_t seed);
  Payload next(Format format, std::uint32_t event_count, std::uint32_t packet_bytes = 0);

 private:
  emulate::MonteCarlo monte_carlo_;
  std::uint32_t timestamp_ = 0xFFFFFE00u;  // wraps soon
  std::uint32_t number_ = 0;
};

// What the CPU answers to a packet.
Primitives answers_to(const Payload& packet, const EventProcessorConfig& config);

class Rig {
 public:
  explicit Rig(const RigConfig& config);

  void start(const EventProcessorConfig& config);
  EventProcessor& processor() { return *processor_; }
  void end() { processor_.reset(); }

  // Hands over one buffer with these packets, the first `hole` bytes from its start, each `hole` bytes after the one before. False: no buffer is free.
  bool feed(std::span<const Payload> packets, std::uint32_t hole = 0, const Handover& handover = {});
  // As feed, but takes answers while it waits for a buffer.
  void feed_waiting(std::span<const Payload> packets, std::uint32_t hole = 0, const Handover& handover = {});
  // Takes the answers that are there. Returns the number of descriptors.
  std::uint32_t take_answers();
  // Takes answers until every buffer is back; false after ten seconds.
  bool settle();

  const Primitives& answers() const { return answers_; }
  std::uint32_t bad_answers() const { return bad_answers_; }
  std::uint32_t empty_answers() const { return empty_answers_; }  // descriptors with nothing to send
  const std::vector<std::uint64_t>& tags() const { return tags_; }
  flow::Clop& clop() { return *clops_.front(); }
  flow::TxRing& ring() { return ring_; }
  std::uint64_t buffers_fed() const { return fed_; }

 private:
  // Returns whether all packets follow one another without a gap.
  bool fill(flow::Clop& clop, std::uint32_t buffer_index, std::span<const Payload> packets, std::uint32_t hole,
            const Handover& handover, Completion& completion);

  std::vector<std::unique_ptr<flow::Clop>> clops_;
  flow::CompletionQueue queue_;
  flow::TxRing ring_;
  std::vector<std::unique_ptr<PayloadRoom>> rooms_;  // by CLOP; null: ordinary
  std::unique_ptr<EventProcessor> processor_;
  Primitives answers_;
  std::vector<std::uint64_t> tags_;  // of the descriptors
  std::uint32_t bad_answers_ = 0;
  std::uint32_t empty_answers_ = 0;
  std::uint64_t fed_ = 0;
};

std::uint64_t now_ns();

}  // namespace nanet::gpu::rig
