// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/link_parts.hpp"

#include <algorithm>

#include "link/gateware/nic_counts.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {

void set_destinations(NicDriver& driver, const GatewareConfig& config, std::uint64_t mac, std::uint16_t from_port) {
  if (config.destinations.size() > kDestinations) {
    throw SetupError("link " + config.name + " cannot send to " + std::to_string(config.destinations.size()) + " destinations",
                     "the NIC has a table of 16", "use several links");
  }
  for (std::uint32_t k = 0; k < config.destinations.size(); ++k) {
    const Endpoint& to = config.destinations[k];
    refuse_ipv6(config.name, to);
    driver.set_destination({.index = k, .mac = mac, .address = to.address.ipv4(), .port = to.port, .from_port = from_port});
  }
}

bool can_send(const NicDriver& driver, const GatewareConfig& config, const TxPacket& packet) {
  return packet.bytes != 0 && packet.bytes <= driver.payload_bytes_max() && packet.destination < config.destinations.size();
}

NicReceiver::NicReceiver(NicDriver& driver, const GatewareConfig& config)
    : driver_(driver), packet_bytes_max_(config.packet_bytes_max), before_(counted()) {
  driver_.take_stage_stats();
  if (packet_bytes_max_ == 0 || packet_bytes_max_ > driver_.payload_bytes_max()) {
    throw SetupError("link " + config.name + " cannot receive packets of " + std::to_string(packet_bytes_max_) + " bytes",
                     "the NIC takes 1 to " + std::to_string(driver_.payload_bytes_max()), "lower packet_bytes_max");
  }
}

bool NicReceiver::take_buffer() {
  if (buffer_ == nullptr) buffer_ = driver_.poll();
  return buffer_ != nullptr;
}

bool NicReceiver::hand_on(RxBatch& batch, std::span<std::byte> room, std::span<RxPacket> packets, std::span<const Peer> peers) {
  const std::span<const PacketRef> refs = driver_.packets(*buffer_);
  for (; next_packet_ < refs.size(); ++next_packet_) {
    const std::span<const std::byte> whole = driver_.payload(*buffer_, refs[next_packet_]);
    const std::span<const std::byte> payload = whole.first(std::min<std::size_t>(whole.size(), packet_bytes_max_));
    if (batch.packet_count == packets.size() || room.size() - batch.bytes_used < payload.size()) return false;
    std::copy(payload.begin(), payload.end(), room.begin() + batch.bytes_used);
    RxPacket& packet = packets[batch.packet_count++];
    packet = {.offset = batch.bytes_used, .bytes = static_cast<std::uint16_t>(payload.size())};
    if (next_packet_ == 0 && buffer_->packets_lost != 0)
      packet.flags |= RxPacket::after_drop;  // no buffer was free for what came before
    if (payload.size() != whole.size()) {
      packet.flags |= RxPacket::truncated;
      cut_.add(1);
    }
    if (const std::uint16_t source = refs[next_packet_].source; source < peers.size()) {
      packet.peer_address = peers[source].address;
      packet.peer_port = peers[source].port;
    }
    batch.bytes_used = static_cast<std::uint32_t>(
        std::min<std::size_t>((batch.bytes_used + payload.size() + 7) & ~std::size_t{7}, room.size()));
    packets_.add(1);
    bytes_.add(payload.size());
  }
  events_.add(buffer_->event_count);
  driver_.release(1, buffer_->clop);
  buffer_ = nullptr;
  next_packet_ = 0;
  return true;
}

void NicReceiver::keep(const std::function<void(std::uint16_t, std::span<const std::byte>)>& take) {
  for (const PacketRef& packet : driver_.packets(*buffer_)) {
    take(packet.source, driver_.payload(*buffer_, packet));
    kept_.add(1);
  }
  driver_.release(1, buffer_->clop);
  buffer_ = nullptr;
}

void NicReceiver::end_call(const RxBatch& batch) {
  calls_.add(1);
  if (batch.packet_count != 0) batches_.add(1);
}

LinkStats NicReceiver::counted() const {
  const auto sum = [&](std::span<const unsigned> counters) {
    std::uint64_t total = 0;
    for (const unsigned counter : counters) total += driver_.rx_count(counter);
    return total;
  };
  LinkStats stats;
  stats.rx_foreign = sum(rx::kForeign);
  stats.rx_malformed = sum(rx::kMalformed);
  stats.rx_truncated = sum(rx::kOversized);
  stats.rx_kernel_dropped = sum(rx::kDropped);
  return stats;
}

void NicReceiver::add_stats(LinkStats& stats) const {
  const LinkStats now = counted();
  stats.rx_foreign += now.rx_foreign - before_.rx_foreign;
  stats.rx_malformed += now.rx_malformed - before_.rx_malformed;
  stats.rx_truncated += now.rx_truncated - before_.rx_truncated + cut_.value();
  stats.rx_kernel_dropped += now.rx_kernel_dropped - before_.rx_kernel_dropped;
  stats.rx_calls += calls_.value();
  stats.rx_batches += batches_.value();
  stats.rx_packets += packets_.value();
  stats.rx_bytes += bytes_.value();
  stats.rx_copied_bytes += bytes_.value();
}

NicTimes NicReceiver::times(std::string clock) {
  const auto taken = driver_.take_stage_stats();
  NicTimes times{.clock = std::move(clock), .cycle_ns = driver_.cycle_ns(), .stages = {}};
  for (unsigned k = 0; k < kStageCount; ++k) {
    StageStats& stage = stages_[k];
    stage.add(taken[k]);
    NicStageTimes& of = times.stages.emplace_back(
        NicStageTimes{kStages[k].name, kStages[k].sample, stage.count, stage.min, stage.max, stage.sum, {}});
    for (unsigned bin = 0; bin < StageStats::bin_count; ++bin) {
      const std::uint64_t to = bin + 1 < StageStats::bin_count ? StageStats::bin_floor(bin + 1) - 1 : NicTimesBin::no_end;
      if (stage.bins[bin] != 0) of.bins.push_back({StageStats::bin_floor(bin), to, stage.bins[bin]});
    }
  }
  return times;
}

}  // namespace nanet::link::gateware
