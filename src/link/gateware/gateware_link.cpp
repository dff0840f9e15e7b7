// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/gateware_link.hpp"

#include <algorithm>
#include <cstring>

#include "link/gateware/card_link.hpp"
#include "nanet/base/build_info.hpp"
#include "nanet/link/back_end.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

constexpr std::uint32_t kOwnAddress = 0x0A00'0001;  // 10.0.0.1, where the wire has none
constexpr std::uint16_t kOwnPort = 6200;
constexpr MacAddress kOwnMac{2, 0, 0, 0, 0, 1}, kPeerMac{2, 0, 0, 0, 0, 2};
constexpr std::uint64_t kOwnMacValue = 0x02'00'00'00'00'01, kPeerMacValue = 0x02'00'00'00'00'02;
constexpr std::uint16_t kUnknownPeer = kMatchEntries - 1;  // the last entry fits every sender
constexpr std::size_t kFramesAhead = 64;                   // in flight to the NIC
constexpr std::size_t kRoomBytes = 1 << 18;
constexpr std::uint64_t kQuietCycles = 2000;   // longer than a packet is in flight, time-out included
constexpr std::uint64_t kSendBytes = 800'000;  // of the line's time, after which a packet that has not left is given up

}  // namespace

GatewareLink::GatewareLink(std::unique_ptr<Link> wire, const GatewareConfig& config)
    : config_(config), wire_(std::move(wire)), room_(std::max(kRoomBytes, wire_->min_room_bytes())), arrived_(kFramesAhead) {
  const nanet::gateware::HostTiming timing{
      .write_cycles = 30, .read_cycles_min = 60, .read_cycles_max = 160, .busy_per_1024 = 16, .seed = config_.seed};
  const Endpoint own = local();
  nic_ = std::make_unique<Nic>(
      timing, NicConfig{.mac = kOwnMacValue, .address = own.address, .clops = {{.buffer_bytes = 128 << 10}}}, config_);
  nic_->driver.set_match({.index = kUnknownPeer, .port = own.port, .source = kUnknownPeer});
  set_destinations(nic_->driver, config_, kPeerMacValue, own.port);
}

nanet::gateware::Line GatewareLink::line_of(const GatewareConfig& config) {
  using nanet::gateware::Line;
  if (config.line_gbps == 1) return Line::gbps_1;
  if (config.line_gbps == 10) return Line::gbps_10;
  throw SetupError("link " + config.name + " cannot simulate a line of " + std::to_string(config.line_gbps) + " Gb/s",
                   "the NIC has XGMII or GMII", "set line_gbps to 10 or 1");
}

Endpoint GatewareLink::local() const {
  Endpoint own = wire_->local();
  own.scheme = "gateware";
  if (own.address == 0) own.address = kOwnAddress;
  if (own.port == 0) own.port = kOwnPort;
  return own;
}

bool GatewareLink::is_busy() const {
  return nic_->receiver.has_buffer() || nic_->model.wire_in().waiting() != 0 || nic_->model.cycle() < busy_until_ ||
         nic_->driver.under_way() != 0;
}

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

void GatewareLink::push_frame(const UdpFlow& flow, std::span<const std::byte> payload) {
  frame_.resize(kFrameHeaderBytes + payload.size());
  write_ethernet_header(frame_.data(), kPeerMac, kOwnMac);
  write_ipv4_udp_headers(frame_.data() + kEthernetHeaderBytes, flow, payload, 0);
  std::copy(payload.begin(), payload.end(), frame_.begin() + kFrameHeaderBytes);
  nic_->model.wire_in().push(nanet::gateware::with_fcs(frame_));
}

void GatewareLink::take_from_wire(std::uint64_t now_ns) {
  const std::size_t ahead = nic_->model.wire_in().waiting();
  if (ahead >= kFramesAhead) return;
  const RxBatch batch = wire_->receive(room_, std::span(arrived_).first(kFramesAhead - ahead), now_ns);
  const Endpoint own = local();
  for (std::uint32_t k = 0; k < batch.packet_count; ++k) {
    const RxPacket& packet = arrived_[k];
    if (packet.bytes > nic_->driver.payload_bytes_max() || packet.bytes == 0) {  // no frame that the NIC would take
      ++(packet.bytes == 0 ? own_.rx_malformed : own_.rx_truncated);
      continue;
    }
    learn(packet.peer_address, packet.peer_port);
    push_frame({packet.peer_address, own.address, packet.peer_port, own.port}, std::span(room_).subspan(packet.offset, packet.bytes));
  }
}

RxBatch GatewareLink::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  RxBatch batch;
  NicReceiver& receiver = nic_->receiver;
  if (!receiver.take_buffer()) take_from_wire(now_ns);  // so all that is in flight fits into the buffers
  constexpr std::uint32_t kStep = 32;                   // cycles between two looks at the completion queue
  for (std::uint32_t cycles = 0;; cycles += kStep) {
    if (nic_->model.wire_in().waiting() != 0) busy_until_ = nic_->model.cycle() + kQuietCycles;
    if (receiver.take_buffer()) receiver.hand_on(batch, room, packets, peers_);
    if (batch.packet_count != 0 || receiver.has_buffer() || !is_busy() || cycles >= config_.cycles_per_call) break;
    nic_->model.step(kStep);
  }
  receiver.end_call(batch);
  give_to_wire(now_ns);
  return batch;
}

// What the NIC has put on the wire goes out by the other link.
void GatewareLink::give_to_wire(std::uint64_t now_ns) {
  while (const Completion* gone = nic_->driver.poll_sent()) {
    if (gone->kind == CompletionKind::packet_sent) {
      ++frames_awaited_;
    } else {
      ++own_.tx_dropped;
    }
  }
  auto& frames = nic_->model.wire_out().frames();
  for (; !frames.empty(); frames.pop_front()) {
    --frames_awaited_;
    UdpView view;
    const FrameError error = read_udp_frame(frames.front().bytes, view);
    const auto to = std::find_if(config_.destinations.begin(), config_.destinations.end(), [&](const Endpoint& endpoint) {
      return endpoint.address == view.flow.to_address && endpoint.port == view.flow.to_port;
    });
    if (error != FrameError::none || to == config_.destinations.end()) {
      ++own_.tx_dropped;
      continue;
    }
    const TxPacket packet{view.payload.data(), static_cast<std::uint32_t>(view.payload.size()),
                          static_cast<std::uint32_t>(to - config_.destinations.begin())};
    wire_->send({&packet, 1}, now_ns);
  }
}

void GatewareLink::send(std::span<const TxPacket> packets, std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  ++own_.tx_calls;
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
    give_to_wire(now_ns);
    if ((cycles += kStep) > kSendBytes / nanet::gateware::bytes_per_cycle(nic_->model.line())) break;
  }
  own_.tx_dropped += packets.size() - given;
  if (nic_->model.wire_in().waiting() != 0) busy_until_ = nic_->model.cycle() + kQuietCycles;
}

void GatewareLink::wait(std::uint64_t timeout_ns) {
  {
    const std::lock_guard lock(mutex_);
    if (is_busy()) return;
  }
  wire_->wait(timeout_ns);
}

bool GatewareLink::finished() const {
  const std::lock_guard lock(mutex_);
  return wire_->finished() && !is_busy();
}

LinkStats GatewareLink::stats() const {
  const std::lock_guard lock(mutex_);
  const LinkStats wire = wire_->stats();
  LinkStats stats = own_;
  nic_->receiver.add_stats(stats);
  stats.rx_kernel_dropped += wire.rx_kernel_dropped;
  stats.rx_errors += wire.rx_errors;
  stats.tx_packets = wire.tx_packets;
  stats.tx_bytes = wire.tx_bytes;
  stats.tx_refused = wire.tx_refused;
  stats.tx_dropped += wire.tx_dropped;
  return stats;
}

std::optional<NicTimes> GatewareLink::nic_times() const {
  const std::lock_guard lock(mutex_);
  const bool busy = is_busy();
  NicTimes times = nic_->receiver.times("RTL, simulated");
  // Reading takes longer than a packet is in flight: one may have started meanwhile.
  if (busy) busy_until_ = nic_->model.cycle() + kQuietCycles;
  return times;
}

std::string GatewareLink::path() const {
  return "simulated NIC at " + std::to_string(config_.line_gbps) + " Gb/s, frames from: " + wire_->path();
}

std::vector<std::string> GatewareLink::notes() const {
  std::vector<std::string> notes = wire_->notes();
  if (const std::uint64_t strays = stray_count(); strays != 0) {
    notes.push_back("link " + config_.name + ": the NIC touched memory that was not registered for it " + std::to_string(strays) +
                    " times (a fault of the gateware) report it");
  }
  return notes;
}

std::uint64_t GatewareLink::stray_count() const {
  const std::lock_guard lock(mutex_);
  return nic_->model.bus().stray_count();
}

namespace {

std::unique_ptr<Link> open(const void* config) {
  const GatewareConfig& own = *static_cast<const GatewareConfig*>(config);
  if (own.card) return open_card(own);
  UdpConfig udp;
  udp.name = own.name;
  udp.listen = own.listen;
  udp.destinations = own.destinations;
  udp.packet_bytes_max = own.packet_bytes_max;
  if (own.listen) udp.source_port = SourcePort::listen;  // as the NIC would
  if (udp.listen) udp.listen->scheme = "udp";
  for (Endpoint& to : udp.destinations) to.scheme = "udp";
  return std::make_unique<GatewareLink>(std::make_unique<UdpLink>(udp), own);
}

}  // namespace
}  // namespace nanet::link::gateware

extern "C" [[gnu::visibility("default")]] const nanet::link::BackEnd* nanet_link_gateware() {
  static const nanet::link::BackEnd kEntry{nanet::base::kBuildInfo.name, sizeof(nanet::link::GatewareConfig),
                                           nanet::link::gateware::open};
  return &kEntry;
}
