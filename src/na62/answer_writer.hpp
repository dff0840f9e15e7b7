// SPDX-License-Identifier: Apache-2.0
// AnswerWriter: primitives in, descriptors of MTP packets out. Never drops: with no free descriptor it waits for one.
//
// Full packets all have the same length (primitives_max words, timestamp words included; now and then one word less), so that a
// link with segmentation offload sends a batch of them as one message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nanet/engine/tx_slots.hpp"
#include "nanet/na62/config.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::na62 {

class AnswerWriter {
 public:
  // `inline_transmitter`: who empties the ring when it is full; null when another thread does.
  AnswerWriter(flow::TxRing& ring, flow::CompletionQueue& sent_queue, const AnswerConfig& config, flow::Counters& counters,
               engine::Transmitter* inline_transmitter)
      : slots_(ring, sent_queue, counters, inline_transmitter),
        config_(config),
        packet_bytes_max_(wire::kMtpHeaderBytes + wire::kMtpWordBytes * std::max(config.primitives_max, 1u)) {}

  // IDs must be what MTP can carry (wire::kPrimitiveIdMin or more). arrival_ns: when the packets that these answer came.
  void add(std::span<const wire::Primitive> primitives, std::uint64_t arrival_ns);

  // Sends what is there: posts the open packet and rings the doorbell.
  void flush() {
    if (writer_) post();
    slots_.ring_doorbell();
  }

  // Takes the sent completions that have come back.
  void collect_sent() { slots_.collect_sent(); }

 private:
  void begin(std::uint32_t timestamp, std::uint64_t arrival_ns);
  void post();

  engine::TxSlots slots_;
  const AnswerConfig config_;
  const std::size_t packet_bytes_max_;
  std::optional<wire::MtpWriter> writer_;  // on the slot being written, if one is
  std::uint64_t oldest_arrival_ns_ = 0;
};

}  // namespace nanet::na62
