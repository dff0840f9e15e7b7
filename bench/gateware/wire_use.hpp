// SPDX-License-Identifier: Apache-2.0
// How much of a line frames take that follow each other, gaps and preambles included.
//
// Thread rules: one thread.
#pragma once

#include <cstdint>

#include "packets.hpp"

namespace nanet::bench {

class WireUse {
 public:
  explicit WireUse(gateware::Line line) : bytes_per_cycle_(gateware::bytes_per_cycle(line)) {}

  // The next frame; start_byte: time of its first byte, in bytes' times.
  void add(std::uint64_t start_byte, std::size_t frame_bytes) {
    if (bytes_ == 0) first_ = start_byte;
    last_ = start_byte;
    last_bytes_ = frame_bytes + kBetweenFramesBytes;
    bytes_ += last_bytes_;
  }
  void add(const gateware::SentFrame& frame) { add(bytes_per_cycle_ * frame.first_byte_cycle + frame.start_lane, frame.bytes); }

  double cycles() const { return static_cast<double>(took()) / bytes_per_cycle_; }  // from the first frame to the end of the last

  // Of the line; 1: back to back. Gaps of 12 bytes on average make any run of frames up to 7 bytes longer.
  double fraction() const {
    constexpr std::uint64_t kDeficitBytes = 7;
    if (bytes_ == 0) return 0;
    return took() <= bytes_ + kDeficitBytes ? 1 : static_cast<double>(bytes_) / static_cast<double>(took());
  }

 private:
  std::uint64_t took() const { return last_ - first_ + last_bytes_; }

  const std::uint32_t bytes_per_cycle_;
  std::uint64_t first_ = 0, last_ = 0, last_bytes_ = 0, bytes_ = 0;  // bytes' times
};

}  // namespace nanet::bench
