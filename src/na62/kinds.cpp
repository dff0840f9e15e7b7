// SPDX-License-Identifier: Apache-2.0
#include "nanet/na62/kinds.hpp"

#include <memory>
#include <utility>

#include "na62/forward_processor.hpp"
#include "na62/protocols.hpp"
#include "na62/rich_processor.hpp"

namespace nanet::na62 {

void add_kinds(engine::Kinds& kinds, ProcessorConfigs configs) {
  using engine::ProcessorKind;
  using engine::ProcessorSettings;
  kinds.add(kMgp);
  kinds.add(kM2egp);
  kinds.add(ProcessorKind{.name = "rich",
                          .make =
                              [rich = std::move(configs.rich)](const ProcessorSettings& settings) {
                                RichConfig config = rich();
                                config.merge = settings.merge;
                                return std::make_shared<RichProcessor>(config);
                              },
                          .merges = true,
                          .sends = true,
                          .on_gpu = true,
                          .help = "find the rings of each event"});
  kinds.add(ProcessorKind{.name = "forward",
                          .make =
                              [forward = std::move(configs.forward)](const ProcessorSettings& settings) {
                                ForwardConfig config = forward();
                                config.merge = settings.merge;
                                return std::make_shared<ForwardProcessor>(config);
                              },
                          .merges = true,
                          .done = flow::Counter::events_forwarded,
                          .help = "send whole events on"});
}

}  // namespace nanet::na62
