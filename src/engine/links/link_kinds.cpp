// SPDX-License-Identifier: Apache-2.0
#include "engine/links/link_kinds.hpp"

#include <algorithm>
#include <string_view>

#include "nanet/engine/processor.hpp"
#include "nanet/engine/sender_filter.hpp"

namespace nanet::engine {
namespace {

using config::Problem;

constexpr std::uint32_t kFramePacketBytesMax = 9014;

std::string link_named(const LinkConfig& config) { return "link '" + config.name + "'"; }

std::string scheme_of(const LinkConfig& config) { return config.endpoint.substr(0, config.endpoint.find("://")); }

std::optional<Problem> check_sources(const LinkConfig& config) {
  if (config.protocol == nullptr) return std::nullopt;
  const std::string protocol(config.protocol->name);
  if (config.protocol->numbered && config.sources.empty()) {
    return Problem{"sources", link_named(config) + " has no sources",
                   "with protocol " + protocol + " every packet of an unknown source is refused",
                   "add sources: [{name: board0, source_id: 0x1C, source_sub_id: 0}]"};
  }
  if (!config.protocol->numbered && !config.sources.empty()) {
    return Problem{"sources", link_named(config) + " has sources but protocol " + protocol,
                   protocol + " datagrams carry no source ID",
                   "remove sources, or choose a protocol whose packets name their source"};
  }
  return std::nullopt;
}

// What only some formats and links can do for units.
std::optional<Problem> check_assemble(const LinkConfig& config, const AssembleConfig& assemble, const LinkKind& kind) {
  const UnitTraits traits = config.protocol->unit_traits();
  if (assemble.merge) {
    if (auto broken = assemble.merge->check(traits.time)) {
      broken->key = "assemble";
      broken->problem = link_named(config) + ": " + broken->problem;
      return broken;
    }
  }
  if (!assemble.resend) return std::nullopt;
  if (!kind.is_live) {
    return Problem{"assemble", link_named(config) + " asks for missing packets", "no one sends what " + kind.name + " plays",
                   "remove resend"};
  }
  if (assemble.resend->by == ResendBy::gvcp && !traits.counts_packets) {
    return Problem{"assemble", link_named(config) + " asks for missing packets by gvcp",
                   "packets of protocol " + std::string(config.protocol->name) + " have no numbers that a request could name",
                   "remove resend, or choose a format with packet_index:, as gvsp has"};
  }
  return std::nullopt;
}

// Units have a section of their own, which other packets have no use for.
std::optional<Problem> check_units(const LinkConfig& config, const LinkKind& kind) {
  if (config.protocol == nullptr) return std::nullopt;
  const std::string protocol(config.protocol->name);
  if (!config.protocol->has_units) {
    return refuse_useless(
        config, {{"assemble", config.assemble.has_value(), "packets of protocol " + protocol + " are no pieces of units"}});
  }
  if (auto broken = refuse_useless(
          config, {{"timeout_us", config.timeout_us != 0, "a buffer holds a unit, which assemble.timeout_us closes"}}))
    return broken;
  return config.assemble ? check_assemble(config, *config.assemble, kind) : std::nullopt;
}

std::optional<Problem> check_in_place(const LinkConfig& config) {
  if (!in_place(config)) return std::nullopt;
  const auto refuse = [&](const std::string& key, const std::string& why) {
    return Problem{key, link_named(config) + " has " + key + ", but its payloads stay in place", why,
                   "remove " + key + ", or set payloads: copied"};
  };
  if (config.faults) return refuse("faults", "they are put into copies");
  if (config.record) return refuse("record", "a recording is made of copies");
  return std::nullopt;
}

// Keys that only a plug-in's links have, or only nanet's own.
std::optional<Problem> check_origin(const LinkConfig& config, const LinkKind& kind) {
  const LinkConfig plain;
  const std::string scheme = scheme_of(config);
  if (kind.is_built_in) return refuse_useless(config, {{"settings", !config.settings.is_null(), scheme + " is of no plug-in"}});
  const auto useless = [&](const char* key, bool is_set) {
    return UselessKey{key, is_set, scheme + " is of a plug-in", std::string("remove ") + key + ", or see its settings"};
  };
  return refuse_useless(config, {useless("gro", config.gro != plain.gro),
                                 useless("socket_buffer_bytes", config.socket_buffer_bytes != plain.socket_buffer_bytes),
                                 useless("interface", !config.interface.empty()),
                                 useless("busy_poll_us", config.busy_poll_us != plain.busy_poll_us)});
}

}  // namespace

std::optional<Problem> refuse_useless(const LinkConfig& config, std::initializer_list<UselessKey> keys) {
  for (const UselessKey& one : keys) {
    if (!one.is_set) continue;
    const std::string remove = std::string("remove ") + one.key;
    return Problem{one.key, link_named(config) + " has " + one.key, one.why, one.suggestion.empty() ? remove : one.suggestion};
  }
  return std::nullopt;
}

std::optional<Problem> refuse_socket_keys(const LinkConfig& config) {
  const LinkConfig plain;
  const std::string why = scheme_of(config) + " has no socket buffer and no super-packets";
  return refuse_useless(config, {{"gro", config.gro != plain.gro, why},
                                 {"socket_buffer_bytes", config.socket_buffer_bytes != plain.socket_buffer_bytes, why}});
}

std::optional<Problem> refuse_groups(const LinkConfig& config) {
  return link::refuse_group(link_named(config), link::parse_endpoint(config.endpoint));
}

std::optional<Problem> check_group(const LinkConfig& config) {
  const link::Endpoint listen = link::parse_endpoint(config.endpoint);
  const link::GroupJoin join{group_senders(config, listen)};
  return listen.address.is_multicast() ? join.check(link_named(config), listen) : std::nullopt;
}

std::optional<Problem> refuse_longer(const LinkConfig& config, std::uint32_t bytes_most, std::string why, std::string suggestion) {
  if (config.packet_bytes_max <= bytes_most) return std::nullopt;
  return Problem{"packet_bytes_max", "packet_bytes_max " + std::to_string(config.packet_bytes_max) + " of " + link_named(config),
                 std::move(why), std::move(suggestion)};
}

std::optional<Problem> refuse_long_packets(const LinkConfig& config) {
  return refuse_longer(
      config, kFramePacketBytesMax,
      scheme_of(config) + " takes whole frames, whose payload has at most " + std::to_string(kFramePacketBytesMax) + " B",
      "lower it, or use udp://");
}

std::vector<link::IpAddress> group_senders(const LinkConfig& config, const link::Endpoint& listen) {
  std::vector<link::IpAddress> senders;
  if (!listen.address.is_multicast()) return senders;
  for (const SenderNetwork& network : sender_networks(config.senders)) {
    if (!network.is_single()) return {};
    senders.push_back(network.address);
  }
  return senders;
}

std::uint32_t records_bytes(const LinkConfig& config) {
  constexpr std::uint32_t kPageBytes = 4096;
  const std::uint32_t packets = std::max(config.memory_region.buffer_bytes / config.packet_bytes_max, config.batch_size);
  const auto bytes = static_cast<std::uint32_t>(packets * sizeof(PlacedPacket));
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::uint32_t lent_max(const LinkConfig& config) {
  const std::uint64_t records = records_bytes(config) / sizeof(PlacedPacket);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(config.memory_region.buffer_count * records + config.batch_size, UINT32_MAX));
}

Kinds built_in_kinds() {
  Kinds kinds;
  const auto add = [&](LinkKind kind) {
    kind.is_built_in = true;
    kinds.add(std::move(kind));
  };
#define NANET_ADD(name) add(name##_kind());
  NANET_LINKS(NANET_ADD)
#undef NANET_ADD
  kinds.add(kRaw);
  kinds.add(ProcessorKind{.name = "count",
                          .make = [](const ProcessorSettings&) { return std::make_shared<CountProcessor>(); },
                          .done = std::nullopt,
                          .help = "only count packets and bytes"});
  return kinds;
}

std::shared_ptr<const LinkKind> kind_of(const LinkConfig& config) {
  if (config.kind) return config.kind;
  static const Kinds built_in = built_in_kinds();
  const std::size_t scheme_end = config.endpoint.find("://");
  if (scheme_end == std::string::npos) link::parse_endpoint(config.endpoint);  // which says what is wrong
  return built_in.link(std::string_view(config.endpoint).substr(0, scheme_end));
}

bool in_place(const LinkConfig& config) {
  const std::shared_ptr<const LinkKind> kind = kind_of(config);
  return kind->in_place != nullptr && kind->in_place(config);
}

LinkRoom packet_room(const LinkConfig& config) {
  return {config.packet_bytes_max, "packet_bytes_max " + std::to_string(config.packet_bytes_max)};
}

LinkRoom room(const LinkConfig& config) {
  if (config.protocol != nullptr && config.protocol->has_units) return {0, "packets are received into a room of their own"};
  if (in_place(config)) return {0, "a buffer of records is as large as they need"};
  const std::shared_ptr<const LinkKind> kind = kind_of(config);
  return kind->room != nullptr ? kind->room(config) : packet_room(config);
}

std::uint32_t queue_count(const LinkConfig& config) {
  const std::shared_ptr<const LinkKind> kind = kind_of(config);
  return kind->queue_count != nullptr ? kind->queue_count(config) : 1;
}

std::string device(const LinkConfig& config) {
  const std::shared_ptr<const LinkKind> kind = kind_of(config);
  return kind->device != nullptr ? kind->device(config) : "";
}

std::optional<Problem> broken_rule(const LinkConfig& config) {
  const std::shared_ptr<const LinkKind> kind = kind_of(config);
  if (auto broken = check_sources(config)) return broken;
  if (auto broken = check_units(config, *kind)) return broken;
  if (auto broken = check_in_place(config)) return broken;
  if (auto broken = check_origin(config, *kind)) return broken;
  if (kind->broken_rule != nullptr) {
    if (auto broken = kind->broken_rule(config)) return broken;
  }
  const std::uint32_t queues = queue_count(config);
  const std::string why = "its " + std::to_string(queues) + " queues would write one file";
  if (auto broken = refuse_useless(config, {{"record", queues > 1 && config.record.has_value(), why}})) return broken;
  return refuse_useless(
      config, {{"senders", !kind->names_senders && !config.senders.empty(), scheme_of(config) + " does not say who sent a packet"}});
}

std::optional<Problem> cannot_send(const LinkConfig& config) {
  const std::shared_ptr<const LinkKind> kind = kind_of(config);
  if (!kind->sends) {
    return Problem{"via", "answers cannot leave by " + link_named(config), scheme_of(config) + " only receives",
                   "remove via, so that they get a socket of their own"};
  }
  return kind->cannot_send != nullptr ? kind->cannot_send(config) : std::nullopt;
}

}  // namespace nanet::engine
