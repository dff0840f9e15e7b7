// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/km3_link.hpp"

#include <algorithm>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

using nanet::gateware::Design;
using nanet::gateware::FrameTime;

constexpr std::size_t kFloorPacketsAtOnce = 64, kFloorRoomBytes = 1 << 20;
constexpr std::size_t kFloorBytesMax = 64 << 20;   // of packets that wait for their slice; the socket keeps the next ones
constexpr std::uint64_t kFrameQuietCycles = 8000;  // after a frame's end until all of it is with the host
constexpr std::uint64_t kLinkCyclesMax = 200'000;  // until every link is aligned
constexpr std::uint32_t kFrameUs = 100;
constexpr std::uint32_t kLookCycles = 32;  // cycles between two looks
constexpr std::uint32_t kControlClop = 3, kControlSlot = 9;
constexpr std::uint32_t kControlFrames = 3;          // go by for a request: the one that leaves, the one that has it, and one more
constexpr std::uint32_t kControlMost = 16;           // requests that are with the NIC
constexpr std::uint64_t kControlWaitNs = 1'000'000;  // between two looks for requests, while nothing else is to be done

NicConfig four_clops() {
  const ClopConfig clop{.timeout_ns = 20'000};
  return {.clops = std::vector<ClopConfig>(kKm3Classes, clop)};
}

}  // namespace

Km3Link::Nic::Nic(const GatewareConfig& config)
    : model({.write_cycles = 30, .read_cycles_min = 60, .read_cycles_max = 160, .busy_per_1024 = 16, .seed = config.seed},
            nanet::gateware::Line::gbps_10, config.floors->mbps == 2500 ? Design::km3_2500 : Design::km3_800),
      driver(device, four_clops()),
      node(device),
      receiver(driver, config) {}

Km3Link::Km3Link(std::unique_ptr<Link> wire, const GatewareConfig& config)
    : config_(config),
      wire_(std::move(wire)),
      slice_frames_(config.floors->slice_us / kFrameUs),
      nic_(std::make_unique<Nic>(config)),
      slots_({.tower = static_cast<std::uint8_t>(config.floors->tower),
              .first = static_cast<std::uint8_t>(config.floors->first),
              .count = config.floors->floors,
              .slice_frames = slice_frames_},
             nic_->model.floors().geometry()),
      room_(std::max(kFloorRoomBytes, wire_->min_room_bytes())),
      arrived_(kFloorPacketsAtOnce) {
  set_up_ports();
  if (config.floors->control.empty()) return;
  control_ = std::make_unique<Km3Control>(*config.floors);
  set_time(0);  // the links send frames once there is a time, and floors are asked before there is a run
}

void Km3Link::set_up_ports() {
  const GatewareFloors& floors = *config_.floors;
  const auto& words = this->floors().geometry().slot_words;
  const std::uint32_t together = floors.mbps == 2500 ? 2 : 6;  // modules in a packet
  const std::uint32_t longest = 32 + 2 * together * words.front();
  if (config_.packet_bytes_max < longest) {
    throw SetupError("link " + config_.name + " cannot receive packets of " + std::to_string(longest) + " bytes",
                     "so long may those of a frame be", "raise packet_bytes_max");
  }
  Km3Node& node = nic_->node;
  for (std::uint32_t port = 0; port < floors.floors; ++port) {
    Km3Port to{.tower = static_cast<std::uint8_t>(floors.tower), .floor = static_cast<std::uint8_t>(floors.first + port)};
    for (std::uint8_t k = 0; k < kKm3Classes; ++k) to.clops[k] = k;
    to.sources.fill(static_cast<std::uint16_t>(port));
    node.set_port(port, to);
  }
  for (std::uint64_t cycles = 0; cycles < kLinkCyclesMax; cycles += 2000) {
    bool all = true;
    for (std::uint32_t port = 0; port < floors.floors; ++port) all = all && node.state(port).aligned && node.state(port).sends;
    if (all) return;
    pass(2000);
  }
  throw SetupError("link " + config_.name + " has fibres that are not aligned", "a fault of the gateware", "report it");
}

void Km3Link::give_none() {
  for (auto& end : floors().ends()) {
    if (end.due()) end.give(std::nullopt);
  }
}

// Frames that are due meanwhile are left out, as are the answers in them: those wait.
void Km3Link::pass(std::uint64_t cycles) {
  for (std::uint64_t k = 0; k < cycles; k += kLookCycles) {
    if (floors().stand()) give_none();
    nic_->model.step(kLookCycles);
  }
}

void Km3Link::set_time(std::uint32_t second) {
  nic_->node.set_time(second);
  pass(400);
  floors().pulse();
}

// The GPS says another second, and all ports begin the run with it. Frames until then have no run.
void Km3Link::begin_run() {
  run_ = *slots_.next_run();
  slots_.begin_run();
  place_ = 0;
  for (std::uint32_t port = 0; control_ && port < config_.floors->floors; ++port) {
    if (control_->awaits_express(port)) control_->express_refused(port);  // the time that is set now is none to measure with
  }
  set_time(run_->second);
  for (std::uint32_t port = 0; port < config_.floors->floors; ++port) nic_->node.begin_run(port, *run_);
  const FrameTime first{run_->second, 0};
  constexpr std::uint64_t kCyclesMax = 4 * 16'000;  // frames
  for (std::uint64_t cycles = 0; cycles < kCyclesMax; cycles += kLookCycles) {
    if (floors().due() == first) return;
    pass(kLookCycles);
  }
  ++lost_runs_;
}

// The frames of all floors that are due, once their slice has come. For slow control time goes on without data: before a run, and where nothing has come for long.
bool Km3Link::give_frames(std::uint64_t now_ns) {
  if (!run_ && (!has_control() || slots_.next_run())) return false;
  if (run_ && place_ == 0) {
    if (!slots_.ready(now_ns, wire_->finished()) && !(has_control() && slots_.is_quiet(now_ns))) return false;
    slots_.open_slice();
  }
  auto& ends = floors().ends();
  for (std::size_t port = 0; port < ends.size(); ++port) ends[port].give(frame(port));
  if (control_frames_ != 0) --control_frames_;
  if (run_) place_ = (place_ + 1) % slice_frames_;
  return true;
}

// That a floor sends now, with answers where there are any.
std::optional<nanet::gateware::FloorFrame> Km3Link::frame(std::size_t port) const {
  std::optional<nanet::gateware::FloorFrame> frame = run_ ? slots_.frame(port, place_) : std::nullopt;
  if (!control_ || port >= config_.floors->floors || !(frame || !run_ || slots_.may_answer(port, place_))) return frame;
  std::vector<std::uint16_t> words = control_->words(port, floors().geometry().slot_words[kControlSlot]);
  if (words.empty()) return frame;
  if (!frame) frame = {.floor = static_cast<std::uint8_t>(config_.floors->first + port), .slots = {}, .spoiled = {}};
  frame->slots[kControlSlot] = std::move(words);
  return frame;
}

void Km3Link::give_down() {
  NicDriver& driver = nic_->driver;
  while (driver.poll_sent() != nullptr) {
  }
  while (driver.under_way() < kControlMost) {
    const auto request = control_->next_request();
    if (!request) return;
    if (!request->express) {
      driver.send(request->message, request->port, 0);
    } else {
      send_express(request->port, *request->express);
    }
    control_frames_ = kControlFrames;
    busy_until_ = nic_->model.cycle() + kFrameQuietCycles;
  }
}

void Km3Link::give_heard() {
  for (std::size_t port = 0; port < config_.floors->floors; ++port) {
    auto& bytes = floors().ends()[port].slow_control();
    if (!bytes.empty() && control_->heard(port, bytes)) control_frames_ = kControlFrames;
  }
  control_->take_answers();
}

// Reading takes time of the node. What has come to the host meanwhile is to be looked for, and frames that went by may have ended at any
// moment of it. Nothing else makes the node busier, so one that is read without end comes to rest all the same.
class Km3Link::Reading {
 public:
  explicit Reading(const Km3Link& link) : link_(link), moved_(link.moves()) { link.is_unseen_ = link.is_busy(); }
  ~Reading() {
    if (moved_) link_.busy_until_ = link_.nic_->model.cycle() + kFrameQuietCycles;
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  const Km3Link& link_;
  const bool moved_;
};

// What came up before is no answer to it.
void Km3Link::send_express(std::uint32_t port, std::uint8_t code) {
  while (nic_->node.take_express(port)) {
  }
  if (!nic_->node.send_express(port, code)) control_->express_refused(port);
}

// Codes that came up: where one was asked for, it says how long it was on its way. One that has not come once all frames have gone by comes no more.
void Km3Link::take_express() {
  const bool is_over = control_frames_ == 0 && !is_busy();
  Km3Node& node = nic_->node;
  for (std::uint32_t port = 0; port < config_.floors->floors; ++port) {
    if (!control_->awaits_express(port)) continue;
    const Reading reading(*this);
    while (const auto came = node.take_express(port)) {
      const std::optional<Km3Moment> sent = node.express_sent(port);
      const std::uint64_t ns = came->at.frame * std::uint64_t{kFrameUs} * 1000 + came->at.word * std::uint64_t{20'000} / node.mbps();
      const auto tick = static_cast<std::uint32_t>(ns / 16);
      if (sent) control_->express_came(port, came->code, node.words(*sent, came->at), came->at.second, tick);
    }
    if (is_over && control_->awaits_express(port)) control_->express_refused(port);
  }
}

void Km3Link::take_control() {
  nic_->receiver.keep([&](std::uint16_t source, std::span<const std::byte> payload) {
    if (source < config_.floors->floors) control_->came_up(source, payload);
  });
}

bool Km3Link::is_busy() const {
  return nic_->receiver.has_buffer() || is_unseen_ || moves() || place_ != 0 || nic_->model.cycle() < busy_until_;
}

void Km3Link::take_from_wire(std::uint64_t now_ns) {
  while (slots_.held_bytes() < kFloorBytesMax) {
    const RxBatch batch = wire_->receive(room_, arrived_, now_ns);
    for (std::uint32_t k = 0; k < batch.packet_count; ++k) {
      slots_.take(std::span(room_).subspan(arrived_[k].offset, arrived_[k].bytes), now_ns);
    }
    if (batch.packet_count == 0) return;
  }
}

RxBatch Km3Link::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) {
  const auto lock = lock_in_turn();
  RxBatch batch;
  NicReceiver& receiver = nic_->receiver;
  take_from_wire(now_ns);
  if (slots_.next_run() && !is_busy()) begin_run();
  if (control_ && !slots_.next_run()) give_down();  // else they wait until it has begun, and it for none of them
  for (std::uint32_t cycles = 0;; cycles += kLookCycles) {
    if (control_) give_heard();
    if (moves() || (floors().stand() && give_frames(now_ns))) busy_until_ = nic_->model.cycle() + kFrameQuietCycles;
    if (receiver.take_buffer()) {
      if (control_ && receiver.clop() == kControlClop) {
        take_control();
      } else {
        receiver.hand_on(batch, room, packets, {});
      }
    } else {
      is_unseen_ = false;
    }
    if (batch.packet_count != 0 || receiver.has_buffer() || !is_busy() || cycles >= config_.cycles_per_call) break;
    nic_->model.step(kLookCycles);
  }
  if (control_) take_express();
  receiver.end_call(batch);
  return batch;
}

void Km3Link::send(std::span<const TxPacket> packets, std::uint64_t) {
  const auto lock = lock_in_turn();
  ++own_.tx_calls;
  own_.tx_dropped += packets.size();
  tell_dropped(packets);
}

void Km3Link::wait(std::uint64_t timeout_ns) {
  {
    const auto lock = lock_in_turn();
    if (is_busy()) return;
  }
  wire_->wait(control_ ? std::min(timeout_ns, kControlWaitNs) : timeout_ns);
}

bool Km3Link::finished() const {
  const auto lock = lock_in_turn();
  return wire_->finished() && slots_.held() == 0 && !is_busy();
}

LinkStats Km3Link::stats() const {
  const auto lock = lock_in_turn();
  LinkStats stats = own_;
  {
    const Reading reading(*this);
    nic_->receiver.add_stats(stats);
    nic_->node.add_stats(stats);
  }
  const LinkStats wire = wire_->stats();
  stats.rx_kernel_dropped += wire.rx_kernel_dropped;
  stats.rx_errors += wire.rx_errors;
  stats.rx_truncated += wire.rx_truncated;
  return stats;
}

std::optional<NicTimes> Km3Link::nic_times() const {
  const auto lock = lock_in_turn();
  const Reading reading(*this);
  return nic_->receiver.times("RTL, simulated");
}

std::vector<NicCounts> Km3Link::nic_counts() const {
  const auto lock = lock_in_turn();
  const std::uint64_t busy = is_busy() ? 1 : 0;  // before the reading, which makes it so
  const Reading reading(*this);
  NicCounts fibre{"fibre", {}, {{"received", slots_.received()}}};
  for (std::size_t k = 0; k < kKm3Fates; ++k) fibre.counts.emplace_back(kKm3FateNames[k], slots_.fate(static_cast<Km3Fate>(k)));
  fibre.counts.emplace_back("held", slots_.held());
  std::vector<NicCounts> groups{std::move(fibre)};
  for (std::uint32_t port = 0; port < config_.floors->floors; ++port) {
    groups.push_back({"floor", port, {{"frames", floors().ends()[port].frames()}}});
    groups.push_back(nic_->node.state_counts(port));
  }
  for (std::uint32_t port = 0; control_ && port < config_.floors->floors; ++port) groups.push_back(control_->counts(port));
  for (NicCounts& group : nic_->node.counts()) {
    if (!group.port || *group.port < config_.floors->floors) groups.push_back(std::move(group));
  }
  groups.push_back({"given", {}, {{"packets", nic_->receiver.packets()}, {"slow_control", nic_->receiver.kept()}, {"busy", busy}}});
  return groups;
}

Endpoint Km3Link::local() const {
  Endpoint own = wire_->local();
  own.scheme = "gateware";
  return own;
}

std::string Km3Link::path() const {
  return "simulated node with links of " + std::to_string(config_.floors->floors) + " floors at " +
         std::to_string(config_.floors->mbps) + " Mb/s, packets from: " + wire_->path();
}

std::vector<std::string> Km3Link::notes() const {
  std::vector<std::string> notes = wire_->notes();
  if (const std::uint64_t strays = stray_count(); strays != 0) {
    notes.push_back("link " + config_.name + ": the node touched memory that was not registered for it " + std::to_string(strays) +
                    " times (a fault of the gateware) report it");
  }
  const auto lock = lock_in_turn();
  if (lost_runs_ != 0) {
    notes.push_back("link " + config_.name + ": the node did not begin " + std::to_string(lost_runs_) +
                    " runs (it did not take the time of the GPS, a fault of the gateware) report it");
  }
  return notes;
}

std::uint64_t Km3Link::stray_count() const {
  const auto lock = lock_in_turn();
  return nic_->model.bus().stray_count();
}

}  // namespace nanet::link::gateware
