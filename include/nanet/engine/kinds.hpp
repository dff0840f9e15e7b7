// SPDX-License-Identifier: Apache-2.0
// Kinds: what an engine can be built from, by the name that a configuration gives: protocols, processors and links. A kind is one declaration:
// how it is made, and what others have to know about it. built_in_kinds() are nanet's own; plug-ins (plugin.hpp) add theirs.
//
// Thread rules: for the thread that sets up an engine; what a kind has made no longer needs the Kinds.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nanet/config/value.hpp"
#include "nanet/engine/config.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/link/link.hpp"

namespace nanet::engine {

// What a link is opened with besides its configuration.
struct LinkParts {
  std::vector<link::Endpoint> destinations;  // that it sends to; none: it only receives
  std::span<std::byte> gpu_memory;           // LinkKind::gpu_bytes() of it; outlives the link
};

struct LinkKind {
  std::string name;                                                                            // the scheme of its endpoints: "udp"
  std::function<std::unique_ptr<link::Link>(const LinkConfig& config, LinkParts parts)> open;  // throws SetupError
  bool sends = true;                                                                           // packets can leave through it
  bool names_senders = true;  // it knows which address a packet came from (LinkConfig::senders)
  bool is_back_end = false;   // a back-end (link/back_end.hpp): this machine or build may lack it
  // How much GPU memory the payloads are to lie in; 0, or no function: none.
  std::function<std::size_t(const LinkConfig& config)> gpu_bytes = {};
};

// What a configuration tells a processor.
struct ProcessorSettings {
  config::Value settings;  // a map of its own keys; null: none are given
  std::optional<MergeConfig> merge;
  bool has_destination = false;  // for what it sends: there are `answers`; else it must not ask for TX slots
};

struct ProcessorKind {
  std::string name;
  std::function<std::shared_ptr<Processor>(const ProcessorSettings& settings)> make;  // throws SetupError
  bool merges = false;  // it puts together parts of events from several sources
  bool sends = false;   // packets, to the endpoints of `answers`
  bool on_gpu = false;  // it can run on one
  // Counts the events that it is done with, whatever became of them; none: it looks at no events.
  std::optional<flow::Counter> done = flow::Counter::events_answered;
};

class Kinds {
 public:
  // Throw SetupError for a name that is taken or not valid: letters, digits, '_', '-' and '.', a letter first.
  void add(const Protocol& protocol);  // only its address is kept: a constant of a namespace
  void add(const Protocol&&) = delete;
  void add(ProcessorKind kind);
  void add(LinkKind kind);

  // By name. Throw SetupError, which gives the nearest name and all known ones.
  const Protocol& protocol(std::string_view name) const;
  const ProcessorKind& processor(std::string_view name) const;
  std::shared_ptr<const LinkKind> link(std::string_view scheme) const;

  // In the order in which they were added.
  const std::vector<const Protocol*>& protocols() const { return protocols_; }
  const std::vector<ProcessorKind>& processors() const { return processors_; }
  const std::vector<std::shared_ptr<const LinkKind>>& links() const { return links_; }

 private:
  std::vector<const Protocol*> protocols_;
  std::vector<ProcessorKind> processors_;
  std::vector<std::shared_ptr<const LinkKind>> links_;
};

// The links of nanet, protocol raw, processor count.
Kinds built_in_kinds();

// The kind of a link: the configuration's own, or the built-in one that its endpoint's scheme names. Throws SetupError.
std::shared_ptr<const LinkKind> kind_of(const LinkConfig& config);

// "did you mean 'udp'?", or what is known.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace nanet::engine
