// SPDX-License-Identifier: Apache-2.0
#include "emulate/sample.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "nanet/rich/finder.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

constexpr std::uint32_t kSendTimeOffset = 8;  // of the packet header
constexpr std::uint32_t kFletcherModulus = 65535;

// What one event has on one board.
struct Part {
  std::array<std::uint16_t, kMaxEventHits> hits;
  std::uint32_t hit_count = 0;

  std::span<const std::uint16_t> span() const { return {hits.data(), hit_count}; }
};

Part part_of(std::span<const std::uint16_t> hits, const EmulatorConfig& config, std::uint32_t board) {
  const bool packed = config.layout == wire::MgpLayout::packed;
  const bool whole_event = config.boards == 1 && !packed;
  const std::uint32_t channels_from = config.boards == 1 ? config.first_sub_id : board;
  const std::size_t hits_max = packed ? wire::kMgpPackedHitsMax : wire::kMgpHitsMax;
  Part part;
  for (const std::uint16_t hit : hits) {
    if (!whole_event && wire::hit_channel(hit) / wire::kChannelsPerBoard != channels_from) continue;
    if (part.hit_count == hits_max) break;
    part.hits[part.hit_count++] = hit;
  }
  return part;
}

std::size_t part_bytes(const EmulatorConfig& config, const Part& part) {
  return config.layout == wire::MgpLayout::packed ? wire::mgp_packed_event_bytes(part.hit_count) : wire::kMgpSlotBytes;
}

}  // namespace

Sample::Sample(const EmulatorConfig& config, std::span<const std::uint64_t> pool_keys)
    : pool_keys_(pool_keys),
      first_timestamp_(config.first_timestamp),
      boards_(config.boards),
      events_per_packet_(config.events_per_packet),
      pool_packets_(static_cast<std::uint32_t>(pool_keys.size() / config.events_per_packet)),
      event_offset_(pool_keys.size() * config.boards),
      events_(pool_keys.size()),
      primitive_ids_(pool_keys.size()) {
  MonteCarlo monte_carlo(config.monte_carlo);
  std::vector<std::uint16_t> hits;
  std::vector<std::uint32_t> hits_end;
  hits_end.reserve(pool_keys.size());
  McEvent event;
  for (std::size_t e = 0; e < pool_keys.size(); ++e) {
    monte_carlo.next(event);
    events_[e].truth = event.truth;
    hits.insert(hits.end(), event.hits.begin(), event.hits.begin() + event.hit_count);
    hits_end.push_back(static_cast<std::uint32_t>(hits.size()));
  }
  lay_out(config, hits, hits_end);
}

void Sample::lay_out(const EmulatorConfig& config, std::span<const std::uint16_t> hits, std::span<const std::uint32_t> hits_end) {
  const auto hits_of = [&](std::size_t e) {
    const std::uint32_t begin = e == 0 ? 0 : hits_end[e - 1];
    return hits.subspan(begin, hits_end[e] - begin);
  };
  const bool packed = config.layout == wire::MgpLayout::packed;
  std::size_t bytes_needed = packed ? 0 : wire::kMgpPaddedBytes;
  for (std::uint32_t board = 0; packed && board < boards_; ++board) {
    for (std::size_t e = 0, bytes = 0; e < events_.size(); ++e) {
      bytes = (e % events_per_packet_ == 0 ? wire::kMgpHeaderBytes : bytes) + part_bytes(config, part_of(hits_of(e), config, board));
      bytes_needed = std::max(bytes_needed, bytes);
    }
  }
  // A multiple of 8, so that received packets lie back to back; the largest possible packet is one already.
  packet_bytes_ = config.packet_bytes != 0 ? config.packet_bytes : static_cast<std::uint32_t>((bytes_needed + 7) / 8 * 8);
  if (bytes_needed > packet_bytes_ || (packed && packet_bytes_ > wire::kMgpPackedBytesMax)) {
    throw SetupError(
        "packets of " + std::to_string(events_per_packet_) + " packed events need up to " + std::to_string(bytes_needed) + " B",
        "there are " + std::to_string(std::min<std::size_t>(packet_bytes_, wire::kMgpPackedBytesMax)) + " B",
        "use fewer events_per_packet" + std::string(config.packet_bytes != 0 ? " or a larger packet_bytes" : ""));
  }
  packets_.resize(std::size_t{boards_} * pool_packets_ * packet_bytes_);

  std::vector<Part> kept(events_.size());  // all boards together: what a perfect engine gets to see
  for (std::uint32_t board = 0; board < boards_; ++board) {
    for (std::uint32_t p = 0; p < pool_packets_; ++p) {
      wire::MgpBuilder builder(room(board, p));
      builder.begin(config.layout);
      for (std::uint32_t i = 0; i < events_per_packet_; ++i) {
        const std::size_t e = std::size_t{p} * events_per_packet_ + i;
        const Part part = part_of(hits_of(e), config, board);
        const wire::MgpEvent header{.timestamp = wire::timestamp_of(pool_keys_[e]), .fine_time = wire::fine_time_of(pool_keys_[e])};
        if (!builder.add_event(header, part.span()))
          throw SetupError("a packet overflows", "its size was computed wrongly", "report this");
        event_offset_[board * events_.size() + e] = static_cast<std::uint16_t>(builder.last_event_offset());
        std::copy_n(part.hits.begin(), part.hit_count, kept[e].hits.begin() + kept[e].hit_count);
        kept[e].hit_count += part.hit_count;
      }
      wire::MgpHeader header;
      header.source_id = config.source_id;
      header.source_sub_id = static_cast<std::uint8_t>(config.first_sub_id + board);
      header.layout = config.layout;
      builder.finish(header, packed ? packet_bytes_ : 0);
    }
  }
  for (std::size_t e = 0; e < events_.size(); ++e) {
    std::array<std::uint16_t, rich::kMaxHits> room;
    const event::Event seen = rich::without_masked({kept[e].hits.data(), kept[e].hit_count}, config.decision.mask, room.data());
    const rich::EventRings rings = rich::find_rings_scalar(config.finder, seen);
    events_[e].hit_count = static_cast<std::uint16_t>(kept[e].hit_count);
    events_[e].hits_unsent = static_cast<std::uint16_t>(hits_of(e).size() - kept[e].hit_count);
    events_[e].mapped_hits = rings.mapped_hits;
    events_[e].primitive_id = primitive_ids_[e] = rich::primitive_id(rings, config.decision);
  }
}

void Sample::prepare(std::uint32_t board, std::uint32_t pool_packet, std::uint64_t number, std::uint64_t shift_units) {
  const std::span<std::byte> payload = room(board, pool_packet);
  const std::size_t first = std::size_t{pool_packet} * events_per_packet_;
  const std::uint64_t* const keys = pool_keys_.data() + first;
  const std::uint16_t* const offsets = event_offset_.data() + board * events_.size() + first;
  const auto base_timestamp = static_cast<std::uint32_t>(first_timestamp_ + shift_units);
  const std::uint64_t base_number = number * events_per_packet_;
  for (std::uint32_t i = 0; i < events_per_packet_; ++i) {
    wire::set_event_time(payload, offsets[i], base_timestamp + wire::timestamp_of(keys[i]), wire::fine_time_of(keys[i]),
                         static_cast<std::uint16_t>(base_number + i));
  }
  wire::set_header(payload, static_cast<std::uint32_t>(number), 0);
  wire::seal(payload);
}

void Sample::stamp(std::uint32_t board, std::uint32_t pool_packet, std::uint32_t count, std::uint32_t send_time_ns) {
  // Words 4 and 5 of n: each adds itself to the first sum and (n - index) times itself to the second.
  const std::uint32_t words = (packet_bytes_ - static_cast<std::uint32_t>(wire::kChecksumBytes)) / 2;
  const std::uint32_t low = send_time_ns & 0xFFFF;
  const std::uint32_t high = send_time_ns >> 16;
  const std::uint32_t low_weight = words - kSendTimeOffset / 2;
  const std::uint32_t first_change = (low + high) % kFletcherModulus;
  const std::uint32_t second_change = (low * low_weight + high * (low_weight - 1)) % kFletcherModulus;
  std::byte* data = room(board, pool_packet).data();
  for (std::uint32_t i = 0; i < count; ++i, data += packet_bytes_) {
    const auto checksum = wire::load_le<std::uint32_t>(data + wire::kChecksumOffset);
    std::uint32_t first = (checksum & 0xFFFF) + first_change;
    std::uint32_t second = (checksum >> 16) + second_change;
    first = first >= kFletcherModulus ? first - kFletcherModulus : first;
    second = second >= kFletcherModulus ? second - kFletcherModulus : second;
    wire::store_le(data + kSendTimeOffset, send_time_ns);
    wire::store_le(data + wire::kChecksumOffset, second << 16 | first);
  }
}

}  // namespace nanet::emulate
