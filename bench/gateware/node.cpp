// SPDX-License-Identifier: Apache-2.0
#include "node.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>

#include "link/gateware/nic_driver.hpp"
#include "link/udp_frame.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"
#include "node_rig.hpp"

namespace nanet::bench {
namespace {

using link::gateware::NicDriver;

constexpr std::size_t kPorts = kNodePorts;
constexpr std::size_t kFrameOnWireBytes = wire::kMgpPaddedBytes + link::kFrameHeaderBytes + gateware::kFcsBytes + 20;  // preamble, gap
constexpr std::uint64_t kTurnCycles = 32;
constexpr std::uint64_t kTailCycles = 20'000;  // after the last frame, at most
constexpr std::uint32_t kStep = 100;           // from one event's time to the next
constexpr double kNsPerCycle = 6.4;

void need(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("the node does not do what it must: ") + what);
}

std::uint16_t hit_of(std::uint64_t event, std::size_t port, std::size_t place) {
  return static_cast<std::uint16_t>(port * 512 + (event * 37 + place * 11) % 512);
}

class Run {
 public:
  Run(const NodeLoad& load, std::uint64_t packets) : load_(load), packets_(packets), driver_(rig_, node_host()) {
    set_up(rig_, {.flush_cycles = load.flush_cycles});
    for (std::size_t port = 0; port < kPorts; ++port) rig_.model.wire_in(port).keep_sent(true);
    rig_.model.bus().keep_writes(true);
  }

  NodeMeasured run() {
    const auto started = std::chrono::steady_clock::now();
    const std::uint64_t first_cycle = rig_.model.cycle();
    const std::uint64_t events = packets_ * load_.events_per_packet;
    std::uint64_t quiet_since = first_cycle;
    while (came_ < events && rig_.model.cycle() - quiet_since < kTailCycles) {
      feed();
      if (pushed_ < packets_ || rig_.model.wire_in(0).waiting() != 0) quiet_since = rig_.model.cycle();
      rig_.model.step(kTurnCycles);
      look();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    need(rig_.model.bus().stray_count() == 0, "it touches memory that was not registered");
    if (const auto bound = load_.bound_cycles()) {
      need(whole_ == events, "events are lost that it can carry");
      need(range_.max <= *bound, "an event takes longer than its bound");
    }
    return sum_up(first_cycle, took.count());
  }

 private:
  void feed() {
    for (; pushed_ < packets_ && rig_.model.wire_in(0).waiting() < 4; ++pushed_) {
      for (std::size_t port = 0; port < kPorts; ++port) rig_.model.wire_in(port).push(frame_of(pushed_, port));
    }
  }

  std::vector<std::byte> frame_of(std::uint64_t packet, std::size_t port) {
    wire::MgpBuilder builder(room_);
    builder.begin(wire::MgpLayout::padded);
    std::array<std::uint16_t, wire::kMgpHitsMax> hits{};
    for (std::size_t k = 0; k < load_.events_per_packet; ++k) {
      const std::uint64_t event = packet * load_.events_per_packet + k;
      for (std::size_t place = 0; place < load_.hits_per_part; ++place) hits[place] = hit_of(event, port, place);
      builder.add_event({.timestamp = static_cast<std::uint32_t>(event + 1) * kStep}, std::span(hits).first(load_.hits_per_part));
    }
    const std::span<const std::byte> payload = builder.finish(
        {.source_sub_id = static_cast<std::uint8_t>(port), .layout = wire::MgpLayout::padded});
    return node_frame(port, payload);
  }

  void look() {
    for (std::size_t port = 0; port < kPorts; ++port) {
      auto& sent = rig_.model.wire_in(port).sent_frames();
      for (const gateware::SentFrame& frame : sent) last_bytes_[port].push_back(frame.last_byte_cycle);
      sent.clear();
    }
    for (const gateware::WriteRequest& write : rig_.model.bus().writes()) {
      if (rig_.is_payload(write.address)) writes_.push_back({written_bytes_ += write.bytes, write.last_cycle});
    }
    rig_.model.bus().writes().clear();
    while (const Completion* buffer = driver_.poll()) {
      for (const PacketRef& packet : driver_.packets(*buffer)) take(driver_.payload(*buffer, packet));
      driver_.release();
    }
  }

  void take(std::span<const std::byte> payload) {
    wire::M2egpView view;
    need(wire::M2egpView::parse(payload, view) == wire::ParseError::none, "a packet is none of M2EGP");
    packet_bytes_ += payload.size();
    while (!writes_.empty() && writes_.front().bytes < packet_bytes_) writes_.pop_front();
    need(!writes_.empty(), "a completion came before what it tells of");
    last_write_ = writes_.front().cycle;
    wire::M2egpCursor cursor(view);
    wire::MgpEvent event;
    const std::uint16_t* hits = nullptr;
    while (cursor.next(event, hits)) take(event, hits);
  }

  void take(const wire::MgpEvent& event, const std::uint16_t* hits) {
    need(event.timestamp % kStep == 0 && event.timestamp > last_timestamp_, "events are not in the order of time");
    last_timestamp_ = event.timestamp;
    ++came_;
    const std::uint64_t number = event.timestamp / kStep - 1;
    if (event.hit_count != kPorts * load_.hits_per_part) return;
    for (std::size_t port = 0; port < kPorts; ++port) {
      for (std::size_t place = 0; place < load_.hits_per_part; ++place) {
        need(*hits++ == hit_of(number, port, place), "a hit is not what was sent");
      }
    }
    ++whole_;
    std::uint64_t last_part = 0;
    for (const auto& cycles : last_bytes_) last_part = std::max(last_part, cycles[number / load_.events_per_packet]);
    const std::uint64_t took = last_write_ - last_part;
    range_ = {std::min(range_.min, took), std::max(range_.max, took)};
    last_whole_ = last_write_;
  }

  NodeMeasured sum_up(std::uint64_t first_cycle, double wall_s) const {
    NodeMeasured result{.load = load_, .packets = packets_, .events = packets_ * load_.events_per_packet, .whole_events = whole_};
    const double wire_s = static_cast<double>(last_bytes_[0].back() - last_bytes_[0].front()) * kNsPerCycle * 1e-9;
    const double bits = static_cast<double>((packets_ - 1) * kPorts * kFrameOnWireBytes * 8);
    result.in_gbit_per_s = bits / wire_s * 1e-9;
    result.merged_gbit_per_s = result.in_gbit_per_s * static_cast<double>(whole_) / static_cast<double>(result.events);
    result.out_gbit_per_s = static_cast<double>(packet_bytes_) * 8 / (static_cast<double>(last_whole_ - first_cycle) * kNsPerCycle);
    if (whole_ == result.events) result.last_part_to_last_write = range_;
    result.cycles = rig_.model.cycle() - first_cycle;
    result.wall_s = wall_s;
    return result;
  }

  struct Written {
    std::uint64_t bytes, cycle;  // up to and with this request; when its last word was taken
  };

  const NodeLoad load_;
  const std::uint64_t packets_;
  NodeRig rig_;
  NicDriver driver_;
  std::array<std::byte, wire::kMgpPaddedBytes> room_{};
  std::array<std::vector<std::uint64_t>, kPorts> last_bytes_;  // cycle of each frame's
  std::deque<Written> writes_;
  std::uint64_t pushed_ = 0, written_bytes_ = 0, packet_bytes_ = 0, last_write_ = 0, last_whole_ = 0, came_ = 0, whole_ = 0;
  std::uint32_t last_timestamp_ = 0;
  CycleRange range_{~std::uint64_t{0}, 0};
};

}  // namespace

std::optional<std::uint64_t> NodeLoad::bound_cycles() const {
  constexpr std::uint64_t kOneEventCycles = 62;  // with nothing before it
  constexpr std::uint64_t kSlotCycles = 9,
                          kPartHits = 8;  // to unpack a slot of a padded packet; that go through the merger in a cycle
  constexpr std::uint64_t kWordBytes = 16, kPacketCycles = 6, kWireCycles = 154;  // of the bus; a packet's own; of a frame
  const std::uint64_t merge_cycles = 1 + kPorts * ((hits_per_part + kPartHits - 1) / kPartHits);
  const std::uint64_t pace_cycles = std::max(kSlotCycles, merge_cycles);
  const std::uint64_t event_bytes = wire::m2egp_event_bytes(kPorts * hits_per_part);
  const std::uint64_t fit = (wire::kM2egpBytesUsual - wire::kMgpHeaderBytes) / event_bytes;
  const std::uint64_t in_packet = std::min(fit, events_per_packet == 1 ? 1 : 1 + flush_cycles / pace_cycles);
  const std::uint64_t packet_words = (wire::kMgpHeaderBytes + in_packet * event_bytes + kWordBytes - 1) / kWordBytes;
  const bool too_much = (packet_words + kPacketCycles) * events_per_packet > kWireCycles * in_packet;
  if (too_much || pace_cycles * events_per_packet > kWireCycles) return std::nullopt;
  if (events_per_packet == 1) return kOneEventCycles;
  return kOneEventCycles + pace_cycles * (events_per_packet - 1) + flush_cycles + 2 * packet_words;
}

NodeMeasured measure_node(const NodeLoad& load, std::uint64_t packets) { return std::make_unique<Run>(load, packets)->run(); }

std::vector<NodeMeasured> measure_node(std::uint64_t packets) {
  std::vector<NodeMeasured> all;
  for (const NodeLoad& load : {NodeLoad{1, 5, 1}, NodeLoad{16, 5, 16}, NodeLoad{16, 5, 100}, NodeLoad{16, 12, 100},
                               NodeLoad{16, 16, 100}, NodeLoad{16, 32, 100}}) {
    all.push_back(measure_node(load, packets));
  }
  return all;
}

}  // namespace nanet::bench
