// SPDX-License-Identifier: Apache-2.0
#include "merge_rig.hpp"

#include <algorithm>
#include <array>

#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::gpu::rig {
namespace {

emulate::MonteCarloConfig monte_carlo_config(std::uint64_t seed) {
  emulate::MonteCarloConfig config;
  config.seed = seed;
  config.flat_radius = true;
  config.mean_hits = 12;
  config.noise_hits = 1.2;
  config.hits_max = 32;
  config.ring_count_shares = {0.1, 0.7, 0.2};
  return config;
}

Payload make_packet(Format format, std::uint32_t board, std::span<const emulate::McEvent> events,
                    std::span<const wire::MgpEvent> headers, Boards::Hits which) {
  Payload room(1472);
  wire::MgpBuilder builder(room);
  wire::M2egpBuilder merged(room);
  merged.begin();
  if (format != Format::merged) builder.begin(format == Format::padded ? wire::MgpLayout::padded : wire::MgpLayout::packed);
  for (std::size_t e = 0; e < events.size(); ++e) {
    std::vector<std::uint16_t> hits;
    for (std::uint32_t k = 0; k < events[e].hit_count; ++k) {
      const std::uint16_t hit = events[e].hits[k];
      const std::size_t of = which == Boards::Hits::in_one_part ? headers[e].event_number % Boards::kCount
                                                                : wire::hit_channel(hit) / wire::kChannelsPerBoard;
      if (of == board) hits.push_back(hit);
    }
    if (format == Format::merged) {
      merged.add_event(headers[e], hits);
    } else {
      builder.add_event(headers[e], hits);
    }
  }
  const std::span<std::byte> packet = format == Format::merged ? merged.finish({})
                                                               : builder.finish({.source_sub_id = static_cast<std::uint8_t>(board)});
  return {packet.begin(), packet.end()};
}

}  // namespace

Boards::Boards(std::uint64_t seed, Hits hits) : monte_carlo_(monte_carlo_config(seed)), hits_(hits) {}

std::vector<PartPacket> Boards::next(Format format, std::uint32_t event_count) {
  std::vector<emulate::McEvent> events;
  std::vector<wire::MgpEvent> headers;
  for (std::uint32_t e = 0; e < event_count; ++e, ++number_) {
    events.push_back(monte_carlo_.next());
    timestamp_ += 1 + number_ * 2654435761u % 90;
    headers.push_back({timestamp_, static_cast<std::uint8_t>(number_ * 37), 0, static_cast<std::uint16_t>(number_)});
  }
  std::vector<PartPacket> packets;
  for (std::uint32_t board = 0; board < kCount; ++board) {
    const auto source = static_cast<std::uint16_t>(board | (restarted_ ? PacketRef::run_start : 0));
    packets.push_back({make_packet(format, board, events, headers, hits_), source, false});
  }
  restarted_ = false;
  return packets;
}

void Boards::restart() {
  timestamp_ = 0;
  restarted_ = true;
}

// As engine::EventBuilder does it, and then what is due.
void MergeReference::add(std::span<const PartPacket> packets, std::uint32_t clop, std::uint64_t now_ns, std::uint64_t expire_ns) {
  for (const PartPacket& packet : packets) {
    const std::uint32_t source = config_.merge->first_source[clop] + (packet.source & PacketRef::source_mask);
    if ((packet.source & PacketRef::run_start) != 0 && (sources_ >> source & 1) != 0) {
      merger_.flush();
      take_ready();
      sources_ = 0;
    }
    sources_ |= 1u << source;
    if (packet.bad_body) {
      ++packets_bad_;
      parts_bad_ += static_cast<std::uint64_t>(packet.payload[3]);
      continue;
    }
    const auto add = [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
      merger_.add_part(source, event::event_key(event.timestamp, event.fine_time), hits, event.hit_count, now_ns);
    };
    if (wire::is_m2egp(packet.payload)) {
      wire::for_each_event(wire::M2egpView::from_checked(packet.payload), add);
    } else {
      std::array<std::uint16_t, wire::kMgpScratchHits> scratch;
      wire::for_each_event(wire::MgpView::from_checked(packet.payload), scratch.data(), add);
    }
    take_ready();
  }
  tick(expire_ns);
}

void MergeReference::tick(std::uint64_t caught_up_ns) {
  merger_.expire(caught_up_ns);
  take_ready();
}

void MergeReference::drain(std::uint64_t now_ns) {
  merger_.drain(now_ns);
  take_ready();
}

void MergeReference::take_ready() {
  for (const event::MergedEvent* event : merger_.ready()) {
    if (event->closed_by != event::CloseReason::complete && config_.merge->incomplete == IncompletePolicy::drop) {
      ++discarded_;
      continue;
    }
    const event::Event hits{event->hits, event->hit_count};
    rich::EventRings rings;
    rich::find_rings(config_.finder, {&hits, 1}, {&rings, 1});
    answers_.push_back(
        {event::key_timestamp(event->key), event::key_fine_time(event->key), rich::primitive_id(rings, config_.decision)});
  }
  merger_.clear_ready();
}

void BadNetwork::send(std::vector<PartPacket> packets) {
  std::ranges::shuffle(packets, random_);
  for (PartPacket& packet : packets) {
    if (chance(shares_.lost)) continue;
    if (chance(shares_.repeated)) delayed_.emplace_back(arrived_ + random_() % (delay_ + 1), packet);
    if (chance(shares_.delayed)) {
      delayed_.emplace_back(arrived_ + delay_, std::move(packet));
    } else {
      on_the_way_.push_back(std::move(packet));
    }
  }
}

std::vector<PartPacket> BadNetwork::arrive(std::size_t count) {
  std::vector<PartPacket> packets;
  while (packets.size() < count && !is_empty()) {
    const auto due = std::ranges::find_if(delayed_, [&](const auto& one) { return one.first <= arrived_; });
    if (due != delayed_.end()) {
      packets.push_back(std::move(due->second));
      delayed_.erase(due);
    } else if (!on_the_way_.empty()) {
      packets.push_back(std::move(on_the_way_.front()));
      on_the_way_.pop_front();
    } else if (packets.empty()) {
      arrived_ = delayed_.front().first;
      continue;
    } else {
      break;
    }
    ++arrived_;
  }
  return packets;
}

}  // namespace nanet::gpu::rig
