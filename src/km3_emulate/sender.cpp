// SPDX-License-Identifier: Apache-2.0
#include "km3_emulate/sender.hpp"

#include <algorithm>
#include <cstring>

#include "km3_emulate/purpose.hpp"
#include "km3_emulate/random.hpp"

namespace nanet::km3_emulate {
namespace {

constexpr std::uint32_t kScratchPackets = 16;

}  // namespace

Sender::Sender(const TowerConfig& config, std::uint32_t streams, link::Link& link, TowerCounters& counters)
    : config_(config),
      link_(link),
      counters_(counters),
      has_faults_(config.faults.loss + config.faults.duplicate + config.faults.reorder + config.faults.damage > 0),
      batch_{},
      scratch_(has_faults_ ? std::size_t{kScratchPackets} * config.packet_bytes_max : 0),
      waiting_(streams) {}

void Sender::send(std::span<const std::byte> packet, const PacketPlace& place, std::uint64_t now_ns) {
  counters_.add(TowerCounter::packets_made);
  link::TxPacket out{packet.data(), static_cast<std::uint32_t>(packet.size()), config_.destinations.size() == 1 ? 0 : place.floor};
  for (const SilenceConfig& one : config_.faults.silent) {
    if (one.floor == place.floor + 1 && place.slice >= one.slice && place.slice - one.slice < one.slices) {
      counters_.add(TowerCounter::packets_silent);
      return;
    }
  }
  if (!has_faults_) return put(out, now_ns);
  const FaultsConfig& faults = config_.faults;
  Random random({config_.seed, purpose::faults, place.slice, place.stream, place.index});
  double chance = random.uniform();
  const auto meets = [&](double share) {
    chance -= share;
    return chance < 0 && chance >= -share;
  };
  if (meets(faults.loss)) {
    counters_.add(TowerCounter::packets_lost);
    return;
  }
  const bool waits = meets(faults.reorder) && !waiting_[place.stream];
  if (waits) {
    counters_.add(TowerCounter::packets_reordered);
    waiting_[place.stream] = out;
    return;
  }
  const bool twice = meets(faults.duplicate);
  if (meets(faults.damage)) out = damaged(out, random);
  put(out, now_ns);
  if (twice) {
    counters_.add(TowerCounter::packets_duplicated);
    put(out, now_ns);
  }
  release(place.stream, now_ns);
}

void Sender::release(std::uint32_t stream, std::uint64_t now_ns) {
  if (!waiting_[stream]) return;
  put(*waiting_[stream], now_ns);
  waiting_[stream].reset();
}

link::TxPacket Sender::damaged(const link::TxPacket& packet, Random& random) {
  const std::uint32_t fields = static_cast<std::uint32_t>(std::size(kPacketFields)) - (packet.bytes > kHeaderBytes ? 0 : 1);
  const std::uint32_t which = random.below(fields);
  const PacketField& field = kPacketFields[which];
  const std::uint32_t bytes = field.bytes != 0 ? field.bytes : packet.bytes - field.at;
  std::byte* const copy = scratch_.data() + std::size_t{scratch_used_++} * config_.packet_bytes_max;
  std::memcpy(copy, packet.data, packet.bytes);
  copy[field.at + random.below(bytes)] ^= static_cast<std::byte>(1u << random.below(8));
  counters_.add(TowerCounter::packets_damaged);
  counters_.add_damaged(which);
  return {copy, packet.bytes, packet.destination};
}

void Sender::put(const link::TxPacket& packet, std::uint64_t now_ns) {
  batch_[batched_++] = packet;
  counters_.add(TowerCounter::bytes_sent, packet.bytes);
  if (batched_ == kBatchMax || scratch_used_ == kScratchPackets) send_batch(now_ns);
}

void Sender::send_batch(std::uint64_t now_ns) {
  if (batched_ == 0) return;
  link_.send({batch_.data(), batched_}, now_ns);
  counters_.add(TowerCounter::packets_sent, batched_);
  batched_ = 0;
  scratch_used_ = 0;
}

}  // namespace nanet::km3_emulate
