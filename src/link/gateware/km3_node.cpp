// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/km3_node.hpp"

#include <span>
#include <string>
#include <string_view>

#include "link/gateware/nic_counts.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

namespace km3_reg {
// Offsets of registers/km3.rdl, behind the window of nic.rdl.
constexpr std::uint32_t window = 0x1000, gps_set = window + 0x08, gps = window + 0x10;
constexpr std::uint32_t port = window + 0x100, port_stride = 0x40;
constexpr std::uint32_t control = 0x00, run_second = 0x08, run = 0x10, clops = 0x18, sources = 0x20, state = 0x28, head = 0x30;
constexpr std::uint32_t express = window + 0x200, express_stride = 0x20, down = 0x00, sent = 0x08, up = 0x10, came = 0x18;
constexpr std::uint32_t port_count = window + 0x400, port_count_stride = 0x200, node_count = window + 0xC00;
constexpr std::uint32_t nic_geometry = 0x008, host_count = 0x800;
constexpr std::uint64_t enable = 1, sampled = 2, express_busy = 1 << 8, express_waits = 1 << 8, express_take = 1 << 16;
}  // namespace km3_reg

Km3Moment moment(std::uint64_t value) {
  return {.second = static_cast<std::uint32_t>(value >> 32),
          .frame = static_cast<std::uint16_t>(value >> 16),
          .word = static_cast<std::uint16_t>(value)};
}

}  // namespace

Km3Node::Km3Node(Device& device)
    : device_(device), geometry_(device.read(km3_reg::window)), clops_(device.read(km3_reg::nic_geometry) & 0xFF) {
  if (ports() >= 1 && ports() <= 4 && mbps() != 0 && frames_per_s() != 0) return;
  throw SetupError("the device is no node with links of floors", "its registers say " + std::to_string(geometry_) + " of them",
                   "use gateware and driver of one version");
}

void Km3Node::need_port(std::size_t port) const {
  if (port < ports()) return;
  throw SetupError("the node has no port " + std::to_string(port), "there are " + std::to_string(ports()) + ", a floor each",
                   "use fewer floors, or several nodes");
}

void Km3Node::write(std::size_t port, std::uint32_t offset, std::uint64_t value) {
  device_.write(km3_reg::port + km3_reg::port_stride * static_cast<std::uint32_t>(port) + offset, value);
}

void Km3Node::set_port(std::size_t port, const Km3Port& to) {
  need_port(port);
  std::uint64_t clops = 0, sources = 0;
  for (unsigned k = 0; k < kKm3Classes; ++k) {
    if (to.clops[k] >= clops_) {
      throw SetupError("port " + std::to_string(port) + " of the node cannot send to CLOP " + std::to_string(to.clops[k]),
                       "the NIC has " + std::to_string(clops_), "choose a lower one");
    }
    clops |= field(to.clops[k], 4 * k);
    sources |= field(to.sources[k], 16 * k);
  }
  write(port, km3_reg::clops, clops);
  write(port, km3_reg::sources, sources);
  write(port, km3_reg::control, km3_reg::enable | (to.sampled ? km3_reg::sampled : 0) | field(to.floor, 8) | field(to.tower, 16));
}

void Km3Node::begin_run(std::size_t port, const Km3Run& run) {
  need_port(port);
  if (run.run >> 31 != 0 || run.slice_frames == 0 || run.slice_frames > frames_per_s()) {
    throw SetupError("port " + std::to_string(port) + " of the node cannot begin run " + std::to_string(run.run) +
                         " of slices of " + std::to_string(run.slice_frames) + " frames",
                     "runs are below 2^31, and slices have 1 to " + std::to_string(frames_per_s()) + " frames",
                     "choose another number or another slice");
  }
  write(port, km3_reg::run_second, run.second);
  write(port, km3_reg::run, run.run | field(run.slice_frames, 32));
}

void Km3Node::disable(std::size_t port) {
  need_port(port);
  write(port, km3_reg::control, 0);
}

void Km3Node::set_time(std::uint32_t second) { device_.write(km3_reg::gps_set, second); }

std::optional<std::uint32_t> Km3Node::second() const {
  const std::uint64_t gps = device_.read(km3_reg::gps);
  if ((gps >> 32 & 1) == 0) return std::nullopt;
  return static_cast<std::uint32_t>(gps);
}

std::uint32_t Km3Node::express(std::size_t port) const {
  need_port(port);
  return km3_reg::express + km3_reg::express_stride * static_cast<std::uint32_t>(port);
}

bool Km3Node::send_express(std::size_t port, std::uint8_t code) {
  const std::uint32_t registers = express(port);
  if ((device_.read(registers + km3_reg::down) & km3_reg::express_busy) != 0) return false;
  device_.write(registers + km3_reg::down, code);
  return true;
}

std::optional<Km3Moment> Km3Node::express_sent(std::size_t port) const {
  const std::uint32_t registers = express(port);
  if ((device_.read(registers + km3_reg::down) & km3_reg::express_busy) != 0) return std::nullopt;
  return moment(device_.read(registers + km3_reg::sent));
}

std::optional<Km3Express> Km3Node::take_express(std::size_t port) {
  const std::uint32_t registers = express(port);
  const std::uint64_t up = device_.read(registers + km3_reg::up);
  if ((up & km3_reg::express_waits) == 0) return std::nullopt;
  const Km3Express taken{.code = static_cast<std::uint8_t>(up), .at = moment(device_.read(registers + km3_reg::came))};
  device_.write(registers + km3_reg::up, km3_reg::express_take);
  return taken;
}

std::int64_t Km3Node::words(const Km3Moment& from, const Km3Moment& to) const {
  const std::int64_t frame_words = std::int64_t{mbps()} * 50'000 / frames_per_s();
  const auto since_epoch = [&](const Km3Moment& at) {
    return (std::int64_t{at.second} * frames_per_s() + at.frame) * frame_words + at.word;
  };
  return since_epoch(to) - since_epoch(from);
}

Km3LinkState Km3Node::state(std::size_t port) const {
  need_port(port);
  const std::uint32_t registers = km3_reg::port + km3_reg::port_stride * static_cast<std::uint32_t>(port);
  const std::uint64_t state = device_.read(registers + km3_reg::state), head = device_.read(registers + km3_reg::head);
  return {.aligned = (state & 1) != 0,
          .sends = (state >> 1 & 1) != 0,
          .slip = static_cast<std::uint8_t>(state >> 8 & 0x1F),
          .phase = static_cast<std::uint8_t>(state >> 16),
          .trip_words = static_cast<std::uint32_t>(state >> 32 & 0xFFFF),
          .trip_frames = static_cast<std::uint32_t>(state >> 48),
          .hears = (head >> 56 & 1) != 0,
          .timed = (head >> 57 & 1) != 0,
          .floor = static_cast<std::uint8_t>(head >> 48)};
}

NicCounts Km3Node::state_counts(std::uint32_t port) const {
  const Km3LinkState now = state(port);
  return {"link_state",
          port,
          {{"aligned", now.aligned ? 1u : 0u},
           {"sends", now.sends ? 1u : 0u},
           {"hears", now.hears ? 1u : 0u},
           {"timed", now.timed ? 1u : 0u},
           {"floor", now.floor},
           {"slip_bits", now.slip},
           {"phase_half_bits", now.phase},
           {"trip_frames", now.trip_frames},
           {"trip_words", now.trip_words}}};
}

std::uint64_t Km3Node::count(std::size_t port, unsigned counter) const {
  return device_.read(km3_reg::port_count + km3_reg::port_count_stride * static_cast<std::uint32_t>(port) + 8 * counter);
}

std::uint64_t Km3Node::node_count(unsigned counter) const { return device_.read(km3_reg::node_count + 8 * counter); }

std::vector<NicCounts> Km3Node::counts() const {
  std::vector<NicCounts> groups;
  for (std::uint32_t port = 0; port < ports(); ++port) {
    NicCounts& group = groups.emplace_back(NicCounts{"km3", port, {}});
    for (unsigned k = 0; k < km3::count; ++k) group.counts.emplace_back(km3::kNames[k], count(port, k));
  }
  NicCounts& node = groups.emplace_back(NicCounts{"km3_node", {}, {}});
  for (unsigned k = 0; k < km3_node::count; ++k) node.counts.emplace_back(km3_node::kNames[k], node_count(k));
  NicCounts& host = groups.emplace_back(NicCounts{"host", {}, {}});
  for (unsigned k = rx::stored; k < rx::bad; ++k)
    host.counts.emplace_back(rx::kNames[k], device_.read(km3_reg::host_count + 8 * k));
  return groups;
}

void Km3Node::add_stats(LinkStats& stats) const {
  for (std::uint32_t port = 0; port < ports(); ++port) {
    for (const unsigned counter : km3::kDropped) stats.rx_kernel_dropped += count(port, counter);
  }
}

}  // namespace nanet::link::gateware
