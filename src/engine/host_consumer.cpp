// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/consumer.hpp"

namespace nanet::engine {

std::uint32_t HostConsumer::poll(std::uint64_t caught_up_ns, std::uint64_t) {
  std::uint32_t done = 0;
  for (; done < kCompletionsATurn; ++done) {
    const Completion* completion = completions_.peek();
    if (completion == nullptr) break;
    flow::Clop& clop = *clops_[completion->clop];
    processor_->process(*completion, clop);
    clop.release();
    completions_.pop();
  }
  if (done < kCompletionsATurn) processor_->tick(caught_up_ns);
  return done;
}

}  // namespace nanet::engine
