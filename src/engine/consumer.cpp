// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/consumer.hpp"

namespace nanet::engine {

std::uint32_t CountConsumer::poll(std::uint64_t, std::uint64_t) {
  std::uint32_t done = 0;
  for (; done < kCompletionsATurn; ++done) {
    const Completion* completion = completions_.peek();
    if (completion == nullptr) break;
    clops_[completion->clop]->release();
    completions_.pop();
  }
  return done;
}

}  // namespace nanet::engine
