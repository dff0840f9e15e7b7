// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/torus.hpp"

#include "engine/links/link_kinds.hpp"

namespace nanet::engine {
namespace {

std::unique_ptr<link::Link> open_torus(const LinkConfig& config, LinkParts parts) {
  return link::open_torus(complete(section_of<link::TorusConfig>(config), config, std::move(parts)));
}

std::optional<config::Problem> torus_rules(const LinkConfig& config) {
  auto torus = section_of<link::TorusConfig>(config);
  torus.name = config.name;
  torus.listen = link::parse_endpoint(config.endpoint);
  if (auto broken = torus.check()) return broken;
  if (auto broken = refuse_useless(config, {{"interface", !config.interface.empty(), "its network is simulated"}})) return broken;
  if (auto broken = refuse_socket_keys(config)) return broken;
  return refuse_useless(config, {{"senders", !config.senders.empty(), "nodes of a torus have no addresses",
                                  "remove senders; torus.senders names the nodes that may send"},
                                 {"busy_poll_us", config.busy_poll_us != 0, "there is no socket or NIC to poll"}});
}

}  // namespace

LinkKind torus_kind() {
  return {.name = "torus",
          .open = open_torus,
          .names_senders = false,
          .sends_to = "torus",
          .endpoint_help = "torus://NODE, the memory of a node of a simulated torus of RTL, which other nodes write",
          .section = section_for<link::TorusConfig>("What only a torus:// link needs"),
          .broken_rule = torus_rules};
}

}  // namespace nanet::engine
