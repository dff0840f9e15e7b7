// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/gateware.hpp"

#include <string>

#include "engine/links/link_kinds.hpp"

namespace nanet::engine {
namespace {

using Card = std::optional<link::GatewareCard>;

std::unique_ptr<link::Link> open_gateware(const LinkConfig& config, LinkParts parts) {
  link::GatewareConfig own = section_of<link::GatewareConfig>(config);
  if (own.merge) {
    own.merge->source_id = config.sources.front().source_id;
    own.merge->source_sub_id = config.sources.front().source_sub_id;
  }
  return link::open_gateware(complete(std::move(own), config, std::move(parts)));
}

std::any read_gateware(const config::Value& keys) {
  const auto own = config::read<link::GatewareKeys>(keys, "gateware");
  link::GatewareConfig config;
  if (own.nic.given()) config.card = own.nic;
  config.line_gbps = own.line_gbps;
  config.merge = own.merge;
  config.floors = own.floors;
  return config;
}

// What a node merges is one stream of packets, of one source, from no board alone.
std::optional<config::Problem> merge_rules(const LinkConfig& config, const link::GatewareMerge& merge) {
  const std::string link = "link '" + config.name + "'";
  if (!config.protocol->merged) {
    return config::Problem{"protocol", link + " merges in the node and has protocol " + std::string(config.protocol->name),
                           "what comes out of the node are packets of merged events",
                           "set protocol to that of merged events, or remove gateware.merge"};
  }
  if (config.sources.size() != 1) {
    return config::Problem{"sources", link + " merges in the node and has " + std::to_string(config.sources.size()) + " sources",
                           "merged events are those of one, whose source_id and source_sub_id the node writes into its packets",
                           "name one source"};
  }
  const link::Endpoint first = link::parse_endpoint(config.endpoint);
  if (first.port == 0 || first.port + merge.ports - 1 > 0xFFFF) {
    return config::Problem{"endpoint", link + " has no UDP ports for the " + std::to_string(merge.ports) + " ports of the node",
                           "the first listens on port " + std::to_string(first.port) + ", each further one on the next",
                           "choose a port of 1 to " + std::to_string(0x1'0000 - merge.ports)};
  }
  return refuse_useless(config, {{"senders", !config.senders.empty(), "an event of several boards has no one sender"}});
}

// What the node's ports make of floors' frames has one format, and no sender.
std::optional<config::Problem> floor_rules(const LinkConfig& config) {
  const std::string link = "link '" + config.name + "'";
  if (config.protocol->name != "km3-floor") {
    return config::Problem{"protocol", link + " has links of floors and protocol " + std::string(config.protocol->name),
                           "what comes out of the node are packets of floors",
                           "set protocol to km3-floor, or remove gateware.floors"};
  }
  return refuse_useless(config, {{"senders", !config.senders.empty(), "frames of a floor have no address"}});
}

std::optional<config::Problem> gateware_rules(const LinkConfig& config) {
  const link::GatewareConfig own = section_of<link::GatewareConfig>(config);
  const Card& card = own.card;
  const std::string why = card ? "the NIC is its interface" : "its wire is simulated";
  if (auto broken = refuse_useless(config, {{"interface", !config.interface.empty(), why}})) return broken;
  if (auto broken = refuse_socket_keys(config)) return broken;
  if (auto broken = refuse_groups(config)) return broken;
  if (own.merge) return merge_rules(config, *own.merge);
  if (own.floors) return floor_rules(config);
  if (!card) {
    constexpr std::uint32_t kMost = link::kSimulatedPayloadBytesMax;
    return refuse_longer(config, kMost, "the NIC takes 1 to " + std::to_string(kMost), "lower it");
  }
  if (config.endpoint.starts_with("gateware://0.0.0.0:")) {
    return config::Problem{"endpoint", "link '" + config.name + "' has no address of its own",
                           "a card answers to one, and the kernel does not assign it",
                           "write its endpoint as gateware://ADDRESS:PORT"};
  }
  return refuse_useless(
      config, {{"senders", !config.senders.empty(), "a card says which entry of its match table a packet matches, not who sent it"},
               {"busy_poll_us", config.busy_poll_us != 0, "there is no socket with a card"}});
}

std::optional<config::Problem> no_next_hop(const LinkConfig& config) {
  const link::GatewareConfig own = section_of<link::GatewareConfig>(config);
  const Card& card = own.card;
  if (own.floors) {
    return config::Problem{"via", "answers cannot leave by link '" + config.name + "'",
                           "only slow control goes over the links of floors", "remove via, so that they leave by a socket"};
  }
  if (!card || !card->next_hop.empty()) return std::nullopt;
  return config::Problem{"via", "answers cannot leave by link '" + config.name + "'",
                         "its card answers ARP but does not ask where they go",
                         "set gateware.next_hop to the Ethernet address of the receiver, or of the router to it"};
}

std::string card_of(const LinkConfig& config) {
  const Card card = section_of<link::GatewareConfig>(config).card;
  return card ? card->name() : "";
}

}  // namespace

LinkKind gateware_kind() {
  LinkSection section = section_for<link::GatewareKeys>("The NIC of a gateware:// link; null: a NIC, simulated at 10 Gb/s");
  section.read = read_gateware;
  return {.name = "gateware",
          .open = open_gateware,
          .endpoint_help =
              "gateware://ADDRESS:PORT, a socket whose packets go through the simulated NIC, or a card with that NIC, whose"
              " own address it is",
          .section = section,
          .back_end = link::gateware_back_end(),
          .broken_rule = gateware_rules,
          .cannot_send = no_next_hop,
          .device = card_of};
}

}  // namespace nanet::engine
