// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/answer_writer.hpp"

#include <span>

#include "nanet/engine/transmitter.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/flow/wait.hpp"

namespace nanet::engine {

void AnswerWriter::add(std::span<const wire::Primitive> primitives, std::uint64_t arrival_ns) {
  while (!primitives.empty()) {
    if (!writer_) begin(primitives.front().timestamp, arrival_ns);
    primitives = primitives.subspan(writer_->add(primitives));
    if (!primitives.empty()) post();
  }
}

void AnswerWriter::begin(std::uint32_t timestamp, std::uint64_t arrival_ns) {
  collect_sent();
  std::span<std::byte> slot = ring_.slot();
  if (slot.empty()) [[unlikely]] {
    counters_.add(flow::Counter::answers_waited);
    ring_.ring_doorbell();
    while ((slot = ring_.slot()).empty()) {
      collect_sent();
      if (inline_transmitter_ != nullptr) {
        inline_transmitter_->poll(flow::clock_now_ns());
      } else {
        flow::cpu_relax();
      }
    }
  }
  writer_.emplace(slot.first(std::min(slot.size(), packet_bytes_max_)));
  writer_->begin(config_.source_id, config_.source_sub_id, timestamp);
  oldest_arrival_ns_ = arrival_ns;
}

void AnswerWriter::collect_sent() {
  std::uint64_t sent = 0;
  for (; sent_queue_.peek() != nullptr; sent_queue_.pop()) ++sent;
  if (sent > 0) counters_.add(flow::Counter::answers_sent, sent);
}

void AnswerWriter::post() {
  ring_.post(static_cast<std::uint32_t>(writer_->finish().size()), 0, oldest_arrival_ns_);
  writer_.reset();
}

}  // namespace nanet::engine
