// SPDX-License-Identifier: Apache-2.0
// BufferPool: the producer's side of a CLOP whose buffers are filled side by side and handed over in the order in which they are done, such as
// units put together from packets. It takes the place of Clop::acquire(); for the consumer nothing changes.
//
// Thread rules: the producer's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nanet/flow/clop.hpp"

namespace nanet::flow {

class BufferPool {
 public:
  explicit BufferPool(Clop& clop) : clop_(clop), handed_(clop.buffer_count()) {
    free_.reserve(clop.buffer_count());
    for (std::uint32_t i = clop.buffer_count(); i > 0; --i) free_.push_back(i - 1);
  }

  // How many can be taken now.
  std::size_t available() {
    collect();
    return free_.size();
  }

  // A buffer to fill, or false when none is free. The one that was used last, which the caches may still have.
  bool take(std::uint32_t& buffer_index) {
    collect();
    if (free_.empty()) return false;
    buffer_index = free_.back();
    free_.pop_back();
    return true;
  }

  // Takes back a buffer that will not be handed over.
  void put_back(std::uint32_t buffer_index) { free_.push_back(buffer_index); }

  // Gives a taken buffer to the consumer, and returns its hand-over number. Before the completion is pushed.
  std::uint64_t hand_over(std::uint32_t buffer_index) {
    const std::uint64_t number = clop_.hand_over();
    handed_[number & (handed_.size() - 1)] = buffer_index;
    return number;
  }

 private:
  void collect() {
    for (const std::uint64_t returned = clop_.returned(); collected_ != returned; ++collected_) {
      free_.push_back(handed_[collected_ & (handed_.size() - 1)]);
    }
  }

  Clop& clop_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> handed_;  // index of the buffer that was handed over as number k, at k modulo their count
  std::uint64_t collected_ = 0;        // hand-over numbers of which the buffers came back
};

}  // namespace nanet::flow
