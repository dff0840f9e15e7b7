// SPDX-License-Identifier: Apache-2.0
// Kinds: what an engine can be built from, by the name that a configuration gives: protocols, processors and links. A kind is one declaration:
// how it is made, and what others have to know about it. built_in_kinds() are nanet's own; plug-ins (plugin.hpp) add theirs.
//
// Thread rules: for the thread that sets up an engine; what a kind has made no longer needs the Kinds.
#pragma once

#include <any>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nanet/config/describe.hpp"
#include "nanet/config/value.hpp"
#include "nanet/engine/config.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/flow/counters.hpp"
#include "nanet/link/back_end.hpp"
#include "nanet/link/link.hpp"
#include "nanet/link/multicast.hpp"

namespace nanet::engine {

// What a link is opened with besides its configuration.
struct LinkParts {
  std::vector<link::Endpoint> destinations;  // that it sends to; none: it only receives
  std::span<std::byte> gpu_memory;           // LinkKind::gpu_bytes() of it; outlives the link
  link::GroupSending group_sending = {};
};

// The keys that only links of one kind have, in a configuration under the kind's name.
struct LinkSection {
  std::string_view help;                             // of the section as a whole
  std::optional<config::Entry> keys = {};            // none: there is no such section
  std::any (*read)(const config::Value&) = nullptr;  // for LinkConfig::section; throws SetupError
};

// The bytes that one buffer needs for a link, and why.
struct LinkRoom {
  std::size_t bytes;
  std::string why;
};

struct LinkKind {
  std::string name;                                                                            // the scheme of its endpoints: "udp"
  std::function<std::unique_ptr<link::Link>(const LinkConfig& config, LinkParts parts)> open;  // throws SetupError
  bool sends = true;                                                                           // packets can leave through it
  bool names_senders = true;     // it knows which address a packet came from (LinkConfig::senders)
  std::string sends_to = "udp";  // the scheme of the endpoints that packets can leave for
  bool is_live = true;           // someone sends now, who can be asked for a packet again
  // How much GPU memory the payloads are to lie in; 0, or no function: none.
  std::function<std::size_t(const LinkConfig& config)> gpu_bytes = {};

  // The rest is for nanet's own: a plug-in's link has `settings` in place of a section, and checks them when it is opened.
  std::string endpoint_help = {};  // what its endpoints are, for a person: "udp://ADDRESS:PORT, a socket"
  LinkSection section = {};
  std::optional<link::BackEndPlace> back_end = {};  // this machine or build may lack it
  // The first rule that a link of this kind breaks, or, if packets are to leave by it, what is in the way.
  std::optional<config::Problem> (*broken_rule)(const LinkConfig& config) = nullptr;
  std::optional<config::Problem> (*cannot_send)(const LinkConfig& config) = nullptr;
  bool (*in_place)(const LinkConfig& config) = nullptr;  // payloads stay where they were received; no function: they are copied
  LinkRoom (*room)(const LinkConfig& config) = nullptr;  // no function: packet_bytes_max
  std::string (*device)(const LinkConfig& config) = nullptr;  // what only one link can have; empty, or no function: nothing
  // Queues that share its endpoint, each of which an engine opens as a link of its own (LinkConfig::queue); no function: one.
  std::uint32_t (*queue_count)(const LinkConfig& config) = nullptr;
  bool is_built_in = false;
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
  std::string help = {};  // what it does, for a person
};

class Kinds {
 public:
  // Throw SetupError for a name that is taken or not valid: letters, digits, '_', '-' and '.', a letter first.
  void add(const Protocol& protocol);  // only its address is kept: a constant of a namespace
  void add(const Protocol&&) = delete;
  void add(std::shared_ptr<const Protocol> protocol);  // declared_protocol()
  void add(ProcessorKind kind);
  void add(LinkKind kind);

  // By name. Throw SetupError, which gives the nearest name and all known ones.
  const Protocol& protocol(std::string_view name) const;
  std::shared_ptr<const void> owner_of(const Protocol& protocol) const;  // null: it is a constant
  const ProcessorKind& processor(std::string_view name) const;
  std::shared_ptr<const LinkKind> link(std::string_view scheme) const;

  // In the order in which they were added.
  const std::vector<const Protocol*>& protocols() const { return protocols_; }
  const std::vector<ProcessorKind>& processors() const { return processors_; }
  const std::vector<std::shared_ptr<const LinkKind>>& links() const { return links_; }

 private:
  std::vector<const Protocol*> protocols_;
  std::vector<std::shared_ptr<const Protocol>> owned_;
  std::vector<ProcessorKind> processors_;
  std::vector<std::shared_ptr<const LinkKind>> links_;
};

// The links of nanet, protocol raw, processor count.
Kinds built_in_kinds();

// The kind of a link: the configuration's own, or the built-in one that its endpoint's scheme names. Throws SetupError.
std::shared_ptr<const LinkKind> kind_of(const LinkConfig& config);

// The first rule that a link breaks, whatever its kind. With protocol and kind set, or the kind that its endpoint names. Throws SetupError for an
// endpoint of no kind.
std::optional<config::Problem> broken_rule(const LinkConfig& config);

// Why no packets can leave by a link; none: they can.
std::optional<config::Problem> cannot_send(const LinkConfig& config);

// Payloads stay where the NIC or the kernel wrote them, and the memory region only says where.
bool in_place(const LinkConfig& config);

LinkRoom room(const LinkConfig& config);

std::uint32_t queue_count(const LinkConfig& config);

// What only one link can have; empty: nothing.
std::string device(const LinkConfig& config);

}  // namespace nanet::engine
