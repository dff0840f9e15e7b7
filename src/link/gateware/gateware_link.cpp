// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/gateware_link.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "link/gateware/card_link.hpp"
#include "link/gateware/km3_link.hpp"
#include "nanet/base/build_info.hpp"
#include "nanet/link/back_end.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

constexpr std::uint32_t kOwnAddress = 0x0A00'0001;  // 10.0.0.1, where the first wire has none
constexpr std::uint16_t kOwnPort = 6200;
constexpr std::uint64_t kOwnMac = 0x02'00'00'00'00'01,
                        kPeerMac = 0x02'00'00'00'01'00;    // of the first port; the next are the next ones
constexpr std::uint16_t kUnknownPeer = kMatchEntries - 1;  // the last entry fits every sender
constexpr std::size_t kFramesAhead = 64;                   // in flight to the NIC on each wire
constexpr std::size_t kRoomBytes = 1 << 18;
constexpr std::uint64_t kQuietCycles = 2000;       // longer than a packet is in flight, time-out included
constexpr std::uint64_t kSendBytes = 800'000;      // of the line's time, after which a packet that has not left is given up
constexpr std::uint64_t kLapseNs = 1'100'000'000;  // without a frame: then any time is good, as for the merger in software

MacAddress bytes_of(std::uint64_t mac) {
  MacAddress bytes;
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::uint8_t>(mac >> (8 * (bytes.size() - 1 - k)));
  return bytes;
}

std::size_t room_for(const std::vector<std::unique_ptr<Link>>& wires) {
  std::size_t bytes = kRoomBytes;
  for (const auto& wire : wires) bytes = std::max(bytes, wire->min_room_bytes());
  return bytes;
}

}  // namespace

GatewareLink::GatewareLink(std::vector<std::unique_ptr<Link>> wires, const GatewareConfig& config)
    : config_(config),
      wires_(std::move(wires)),
      rounds_(wires_.size()),
      quiet_cycles_(kQuietCycles),
      room_(room_for(wires_)),
      arrived_(kFramesAhead) {
  const nanet::gateware::HostTiming timing{
      .write_cycles = 30, .read_cycles_min = 60, .read_cycles_max = 160, .busy_per_1024 = 16, .seed = config_.seed};
  const Endpoint own = local();
  refuse_ipv6(config.name, own);
  nic_ = std::make_unique<Nic>(
      timing, NicConfig{.mac = kOwnMac, .address = own.address.ipv4(), .clops = {{.buffer_bytes = 128 << 10}}}, config_);
  set_destinations(nic_->driver, config_, kPeerMac, own.port);
  if (config_.merge) {
    set_up_merging();
  } else {
    nic_->driver.set_match({.index = kUnknownPeer, .port = own.port, .source = kUnknownPeer});
  }
}

void GatewareLink::set_up_merging() {
  const GatewareMerge& merge = *config_.merge;
  Node& node = node_.emplace(nic_->device);
  if (wires_.size() != merge.ports || merge.ports > node.ports()) {
    throw SetupError("link " + config_.name + " cannot merge what comes over " + std::to_string(merge.ports) + " ports",
                     "the node has " + std::to_string(node.ports()), "lower merge.ports");
  }
  if (config_.packet_bytes_max < node.packet_bytes_max()) {
    throw SetupError("link " + config_.name + " cannot receive packets of " + std::to_string(node.packet_bytes_max()) + " bytes",
                     "so long may those of merged events be", "raise packet_bytes_max");
  }
  for (std::size_t port = 0; port < wires_.size(); ++port) {
    const Endpoint own = local(port);
    node.set_station(port, kOwnMac + port, own.address.ipv4());
    node.set_match(port, {.index = 0, .port = own.port, .from_address = 0, .from_mask = 0, .source = 0, .counts_events = false},
                   Route::events);
  }
  const auto window = static_cast<std::uint64_t>(merge.window_us * 1000.0 / nanet::gateware::ns_per_cycle(nic_->model.line()));
  quiet_cycles_ += window;
  node.set_merging({.links = (1u << merge.ports) - 1,
                    .window_cycles = static_cast<std::uint32_t>(window),
                    .complete_only = merge.complete_only,
                    .source_id = merge.source_id,
                    .source_sub_id = merge.source_sub_id,
                    .source = kUnknownPeer});
}

nanet::gateware::Line GatewareLink::line_of(const GatewareConfig& config) {
  using nanet::gateware::Line;
  if (config.line_gbps == 1 && !config.merge) return Line::gbps_1;
  if (config.line_gbps == 10) return Line::gbps_10;
  throw SetupError("link " + config.name + " cannot simulate a line of " + std::to_string(config.line_gbps) + " Gb/s",
                   "the NIC has XGMII or GMII, the node XGMII", config.merge ? "set line_gbps to 10" : "set line_gbps to 10 or 1");
}

Endpoint GatewareLink::local(std::size_t port) const {
  Endpoint own = wires_[port]->local();
  own.scheme = "gateware";
  if (own.address.is_any()) own.address = kOwnAddress + static_cast<std::uint32_t>(port);
  if (own.port == 0) own.port = kOwnPort;
  return own;
}

std::size_t GatewareLink::frames_ahead() const {
  std::size_t most = 0;
  for (std::size_t port = 0; port < wires_.size(); ++port) most = std::max(most, nic_->model.wire_in(port).waiting());
  return most;
}

bool GatewareLink::is_busy() const {
  return nic_->receiver.has_buffer() || is_unseen_ || frames_ahead() != 0 || nic_->model.cycle() < busy_until_ ||
         nic_->driver.under_way() != 0;
}

// Reading takes time of the NIC, longer than a packet is in flight. What has come to the host meanwhile is to be looked for, and a frame that went in
// may have ended at any moment of it. Nothing else makes the NIC busier, so one that is read without end comes to rest all the same.
class GatewareLink::Reading {
 public:
  explicit Reading(const GatewareLink& link) : link_(link), moved_(link.frames_ahead() != 0) { link.is_unseen_ = link.is_busy(); }
  ~Reading() {
    if (moved_) link_.busy_until_ = link_.nic_->model.cycle() + link_.quiet_cycles_;
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  const GatewareLink& link_;
  const bool moved_;
};

void GatewareLink::learn(std::uint32_t address, std::uint16_t port) {
  if (address == 0) return;
  for (Peer& peer : peers_) {
    if (peer.address != address) continue;
    if (peer.port != port) peer.port = 0;
    return;
  }
  if (peers_.size() == kUnknownPeer) return;
  const auto number = static_cast<std::uint16_t>(peers_.size());
  peers_.push_back({address, port});
  nic_->driver.set_match({.index = number, .port = local().port, .from_address = address, .from_mask = 0xFFFF'FFFF, .source = number});
}

void GatewareLink::add_frame(std::size_t port, const RxPacket& packet) {
  const Endpoint own = local(port);
  const auto payload = std::span(room_).subspan(packet.offset, packet.bytes);
  frame_.resize(kFrameHeaderBytes + payload.size());
  write_ethernet_header(frame_.data(), bytes_of(kPeerMac + port), bytes_of(kOwnMac + port));
  write_ipv4_udp_headers(frame_.data() + kEthernetHeaderBytes,
                         {packet.peer_address, own.address.ipv4(), packet.peer_port, own.port}, payload, 0);
  std::copy(payload.begin(), payload.end(), frame_.begin() + kFrameHeaderBytes);
  rounds_.add(port, nanet::gateware::with_fcs(frame_));
}

void GatewareLink::take_from_wire(std::size_t port, std::uint64_t now_ns) {
  const std::size_t ahead = nic_->model.wire_in(port).waiting() + rounds_.waiting(port);
  if (ahead >= kFramesAhead) return;
  const RxBatch batch = wires_[port]->receive(room_, std::span(arrived_).first(kFramesAhead - ahead), now_ns);
  for (std::uint32_t k = 0; k < batch.packet_count; ++k) {
    const RxPacket& packet = arrived_[k];
    if (packet.bytes > nic_->driver.payload_bytes_max() || packet.bytes == 0) {  // no frame that the NIC would take
      ++(packet.bytes == 0 ? own_.rx_malformed : own_.rx_truncated);
      continue;
    }
    if (!node_) learn(packet.peer_address, packet.peer_port);
    add_frame(port, packet);
  }
}

void GatewareLink::take_from_wires(std::uint64_t now_ns) {
  if (node_) forget_time_between_runs(now_ns);
  for (std::size_t port = 0; port < wires_.size(); ++port) take_from_wire(port, now_ns);
  if (rounds_.give(nic_->model, now_ns)) {
    arrived_ns_ = now_ns;
    may_be_marked_ = true;
  }
}

// Times begin again with a run: after a marker, or a long pause, a node must not take them for late ones.
void GatewareLink::forget_time_between_runs(std::uint64_t now_ns) {
  if (is_busy() || arrived_ns_ == 0) return;
  const std::uint64_t markers = std::exchange(may_be_marked_, false) ? node_->markers() : markers_;
  const bool marked = std::exchange(markers_, markers) != markers;
  const bool lapsed = now_ns - arrived_ns_ >= kLapseNs;
  if (lapsed) arrived_ns_ = 0;
  if (marked || lapsed) node_->forget_time();
}

RxBatch GatewareLink::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) {
  const auto lock = lock_in_turn();
  RxBatch batch;
  NicReceiver& receiver = nic_->receiver;
  if (!receiver.take_buffer()) take_from_wires(now_ns);  // so all that is in flight fits into the buffers
  constexpr std::uint32_t kStep = 32;                    // cycles between two looks at the completion queue
  for (std::uint32_t cycles = 0;; cycles += kStep) {
    if (frames_ahead() != 0) busy_until_ = nic_->model.cycle() + quiet_cycles_;
    if (receiver.take_buffer()) {
      receiver.hand_on(batch, room, packets, peers_);
    } else {
      is_unseen_ = false;
    }
    if (batch.packet_count != 0 || receiver.has_buffer() || !is_busy() || cycles >= config_.cycles_per_call) break;
    nic_->model.step(kStep);
  }
  receiver.end_call(batch);
  give_to_wires(now_ns);
  return batch;
}

void GatewareLink::give_to_wires(std::uint64_t now_ns) {
  while (const Completion* gone = nic_->driver.poll_sent()) {
    if (gone->kind == CompletionKind::packet_sent) {
      ++frames_awaited_;
    } else {
      ++own_.tx_dropped;
    }
  }
  for (std::size_t port = 0; port < wires_.size(); ++port) give_to_wire(port, now_ns);
}

// What the NIC has put on a wire goes out by the link that stands in for it.
void GatewareLink::give_to_wire(std::size_t port, std::uint64_t now_ns) {
  auto& frames = nic_->model.wire_out(port).frames();
  for (; !frames.empty(); frames.pop_front()) {
    --frames_awaited_;
    UdpView view;
    const FrameError error = read_udp_frame(frames.front().bytes, view);
    const auto to = std::find_if(config_.destinations.begin(), config_.destinations.end(), [&](const Endpoint& endpoint) {
      return endpoint.address.ipv4() == view.flow.to_address && endpoint.port == view.flow.to_port;
    });
    if (error != FrameError::none || to == config_.destinations.end()) {
      ++own_.tx_dropped;
      continue;
    }
    const TxPacket packet{view.payload.data(), static_cast<std::uint32_t>(view.payload.size()),
                          static_cast<std::uint32_t>(to - config_.destinations.begin())};
    wires_[port]->send({&packet, 1}, now_ns);
  }
}

void GatewareLink::send(std::span<const TxPacket> packets, std::uint64_t now_ns) {
  const auto lock = lock_in_turn();
  ++own_.tx_calls;
  const std::uint64_t dropped_before = dropped();
  std::size_t given = 0;
  std::uint64_t cycles = 0;
  // A completion says that a frame has left the engine; its last words are still in flight to the wire.
  while (given != packets.size() || nic_->driver.under_way() != 0 || frames_awaited_ > 0) {
    while (given != packets.size()) {
      const TxPacket& packet = packets[given];
      const bool possible = can_send(nic_->driver, config_, packet);
      if (possible && !nic_->driver.send({packet.data, packet.bytes}, packet.destination, 0)) break;  // the ring is full
      if (!possible) ++own_.tx_dropped;
      ++given;
    }
    constexpr std::uint64_t kStep = 64;
    nic_->model.step(kStep);
    give_to_wires(now_ns);
    if ((cycles += kStep) > kSendBytes / nanet::gateware::bytes_per_cycle(nic_->model.line())) break;
  }
  own_.tx_dropped += packets.size() - given;
  tell_dropped(packets, dropped() - dropped_before);
  if (frames_ahead() != 0) busy_until_ = nic_->model.cycle() + quiet_cycles_;
}

std::uint64_t GatewareLink::dropped() const {
  std::uint64_t total = own_.tx_dropped;
  for (const auto& wire : wires_) total += wire->stats().tx_dropped;
  return total;
}

void GatewareLink::wait(std::uint64_t timeout_ns) {
  {
    const auto lock = lock_in_turn();
    if (is_busy()) return;
  }
  for (const auto& wire : wires_) wire->wait(timeout_ns / wires_.size());
}

bool GatewareLink::finished() const {
  const auto lock = lock_in_turn();
  const bool at_end = std::all_of(wires_.begin(), wires_.end(), [](const auto& wire) { return wire->finished(); });
  return at_end && rounds_.empty() && !is_busy();
}

LinkStats GatewareLink::stats() const {
  const auto lock = lock_in_turn();
  LinkStats stats = own_;
  {
    const Reading reading(*this);
    nic_->receiver.add_stats(stats);
    if (node_) node_->add_stats(stats);
  }
  for (const auto& one : wires_) {
    const LinkStats wire = one->stats();
    stats.rx_kernel_dropped += wire.rx_kernel_dropped;
    stats.rx_errors += wire.rx_errors;
    stats.tx_packets += wire.tx_packets;
    stats.tx_bytes += wire.tx_bytes;
    stats.tx_refused += wire.tx_refused;
    stats.tx_dropped += wire.tx_dropped;
  }
  return stats;
}

std::optional<NicTimes> GatewareLink::nic_times() const {
  const auto lock = lock_in_turn();
  const Reading reading(*this);
  return nic_->receiver.times("RTL, simulated");
}

std::vector<NicCounts> GatewareLink::nic_counts() const {
  if (!node_) return {};
  const auto lock = lock_in_turn();
  const bool busy = is_busy();  // before the reading, which makes it so
  const Reading reading(*this);
  std::vector<NicCounts> groups = node_->counts();
  for (std::uint32_t port = 0; port < wires_.size(); ++port) {
    groups.push_back({"wire", port, {{"frames", nic_->model.wire_in(port).sent()}, {"held", rounds_.waiting(port)}}});
  }
  const NicReceiver& receiver = nic_->receiver;
  groups.push_back({"given", {}, {{"packets", receiver.packets()}, {"events", receiver.events()}, {"busy", busy ? 1U : 0U}}});
  return groups;
}

std::string GatewareLink::path() const {
  const std::string what = node_ ? "simulated node that merges " + std::to_string(wires_.size()) + " ports" : "simulated NIC";
  return what + " at " + std::to_string(config_.line_gbps) + " Gb/s, frames from: " + wires_.front()->path();
}

std::vector<std::string> GatewareLink::notes() const {
  std::vector<std::string> notes;
  for (const auto& wire : wires_) {
    for (std::string& note : wire->notes()) notes.push_back(std::move(note));
  }
  if (const std::uint64_t strays = stray_count(); strays != 0) {
    notes.push_back("link " + config_.name + ": the NIC touched memory that was not registered for it " + std::to_string(strays) +
                    " times (a fault of the gateware) report it");
  }
  return notes;
}

std::uint64_t GatewareLink::stray_count() const {
  const auto lock = lock_in_turn();
  return nic_->model.bus().stray_count();
}

namespace {

// The socket that stands in for the wire of a port.
std::unique_ptr<Link> open_wire(const GatewareConfig& own, std::uint32_t port) {
  UdpConfig udp;
  udp.name = port == 0 ? own.name : own.name + ", port " + std::to_string(port);
  udp.listen = own.listen;
  udp.packet_bytes_max = own.floors ? Km3Link::wire_bytes_max : own.packet_bytes_max;
  if (port == 0) udp.destinations = own.destinations;
  if (own.listen) udp.source_port = SourcePort::listen;  // as the NIC would
  if (udp.listen) {
    udp.listen->scheme = "udp";
    udp.listen->port = static_cast<std::uint16_t>(udp.listen->port + port);
  }
  for (Endpoint& to : udp.destinations) to.scheme = "udp";
  return std::make_unique<UdpLink>(udp);
}

std::unique_ptr<Link> open(const void* config) {
  const GatewareConfig& own = *static_cast<const GatewareConfig*>(config);
  if (own.card) return open_card(own);
  if (own.floors) return std::make_unique<Km3Link>(open_wire(own, 0), own);
  std::vector<std::unique_ptr<Link>> wires;
  const std::uint32_t ports = own.merge ? own.merge->ports : 1;
  for (std::uint32_t port = 0; port < ports; ++port) wires.push_back(open_wire(own, port));
  return std::make_unique<GatewareLink>(std::move(wires), own);
}

}  // namespace
}  // namespace nanet::link::gateware

extern "C" [[gnu::visibility("default")]] const nanet::link::BackEnd* nanet_link_gateware() {
  static const nanet::link::BackEnd kEntry{nanet::base::kBuildInfo.name, sizeof(nanet::link::GatewareConfig),
                                           nanet::link::gateware::open};
  return &kEntry;
}
