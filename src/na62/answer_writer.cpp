// SPDX-License-Identifier: Apache-2.0
#include "na62/answer_writer.hpp"

#include <span>

namespace nanet::na62 {

void AnswerWriter::add(std::span<const wire::Primitive> primitives, std::uint64_t arrival_ns) {
  while (!primitives.empty()) {
    if (!writer_) begin(primitives.front().timestamp, arrival_ns);
    primitives = primitives.subspan(writer_->add(primitives));
    if (!primitives.empty()) post();
  }
}

void AnswerWriter::begin(std::uint32_t timestamp, std::uint64_t arrival_ns) {
  const std::span<std::byte> slot = slots_.acquire();
  writer_.emplace(slot.first(std::min(slot.size(), packet_bytes_max_)));
  writer_->begin(config_.source_id, config_.source_sub_id, timestamp);
  oldest_arrival_ns_ = arrival_ns;
}

void AnswerWriter::post() {
  slots_.post(writer_->finish().size(), oldest_arrival_ns_);
  writer_.reset();
}

}  // namespace nanet::na62
