// SPDX-License-Identifier: Apache-2.0
#include "emulate/detector_bank.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "nanet/config/read.hpp"
#include "nanet/wire/little_endian.hpp"
#include "nanet/wire/timestamp.hpp"

namespace nanet::emulate {
namespace {

std::uint64_t frame_ticks_of(double frame_us) {
  return kFrameTicks * static_cast<std::uint64_t>(std::max(1.0, std::round(frame_us * 1e3 / wire::kTickNs / kFrameTicks)));
}

std::string hexadecimal(std::uint8_t byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return {'0', 'x', digits[byte / 16], digits[byte % 16]};
}

}  // namespace

std::optional<config::Problem> DetectorBankConfig::check() const {
  if (detectors.empty()) {
    return config::Problem{"detectors", "there is no detector", "nothing would be sent", "name one, or set detectors to null"};
  }
  std::set<std::string> known;
  for (const DetectorConfig& one : detectors) {
    for (const std::string& said : {"name " + one.name, "source_id " + hexadecimal(one.source_id)}) {
      if (!known.insert(said).second) {
        return config::Problem{"detectors", "two detectors have " + said, "it identifies them", "change one of them"};
      }
    }
  }
  return std::nullopt;
}

DetectorBank::DetectorBank(const DetectorBankConfig& config, const Schedule& schedule, std::uint32_t first_timestamp,
                           std::uint64_t seed, link::Link& link, std::uint32_t destination)
    : schedule_(schedule),
      link_(link),
      destination_(destination),
      first_ticks_(std::uint64_t{first_timestamp} * kTicksPerUnit),
      frame_ticks_(frame_ticks_of(config.frame_us)),
      frame_ns_(wire::ns_from_ticks(frame_ticks_)),
      published_(std::make_unique<Published[]>(config.detectors.size())),
      batch_(std::make_unique<Batch>()),
      frame_(first_ticks_ / frame_ticks_) {
  config::require(config, "detectors");
  for (const DetectorConfig& one : config.detectors) detectors_.emplace_back(one, seed, frame_ticks_);
  events_.reserve(kFramePrimitives);
  frame_end_ns_ = end_ns(frame_);
}

bool DetectorBank::turn(std::uint64_t boards_ns, std::uint64_t now_ns) {
  if (boards_ns < frame_end_ns_) return false;
  if (!shown_) {
    if (detector_ == 0) gather_events();
    detectors_[detector_].see_frame(frame_, events_);
    shown_ = true;
  }
  Detector& detector = detectors_[detector_];
  const std::span<const std::byte> payload = detector.next_packet();
  add_to_batch(payload);
  Published& counts = published_[detector_];
  counts.packets.fetch_add(1, std::memory_order_relaxed);
  counts.primitives.fetch_add(detector.packet_primitives(), std::memory_order_relaxed);
  counts.events_shown.store(detector.events_shown(), std::memory_order_relaxed);
  counts.events_seen.store(detector.events_seen(), std::memory_order_relaxed);
  counts.accidentals.store(detector.accidentals(), std::memory_order_relaxed);
  if (detector.frame_is_sent()) next_detector();
  if (detector_ == 0 || batch_->count == kBatchMax) send_batch(now_ns);
  return true;
}

void DetectorBank::add_to_batch(std::span<const std::byte> payload) {
  std::copy(payload.begin(), payload.end(), batch_->room[batch_->count].begin());
  batch_->bytes[batch_->count++] = static_cast<std::uint32_t>(payload.size());
}

// Made equally long: the header's time is repeated, and the length set again.
void DetectorBank::send_batch(std::uint64_t now_ns) {
  const auto sizes = std::span(batch_->bytes).first(batch_->count);
  const std::uint32_t longest = *std::max_element(sizes.begin(), sizes.end());
  for (std::size_t i = 0; i < batch_->count; ++i) {
    std::byte* const packet = batch_->room[i].data();
    const std::uint32_t time_word = wire::load_le<std::uint32_t>(packet) & 0xFF'FFFFu;
    for (std::uint32_t at = sizes[i]; at < longest; at += wire::kMtpWordBytes) wire::store_le(packet + at, time_word);
    wire::store_le(packet + 4, static_cast<std::uint16_t>(longest));
    tx_packets_[i] = {packet, longest, destination_};
  }
  link_.send(std::span(tx_packets_).first(batch_->count), now_ns);
  batch_->count = 0;
}

// The part of the schedule that lies in this frame.
void DetectorBank::gather_events() {
  events_.clear();
  const std::uint64_t end_ticks = (frame_ + 1) * frame_ticks_;
  const std::vector<std::uint64_t>& keys = schedule_.pool_keys();
  const std::uint32_t per_packet = schedule_.events_per_packet();
  for (; next_packet_ < schedule_.packet_count(); ++next_packet_, next_in_packet_ = 0) {
    const Schedule::Packet packet = schedule_.packet(next_packet_);
    const std::uint64_t shift_ticks = first_ticks_ + packet.shift_units * kTicksPerUnit;
    const std::uint64_t* const of_packet = keys.data() + std::size_t{packet.pool_packet} * per_packet;
    for (; next_in_packet_ < per_packet; ++next_in_packet_) {
      const std::uint64_t ticks = shift_ticks + of_packet[next_in_packet_];
      if (ticks >= end_ticks) return;
      events_.push_back(ticks);
    }
  }
}

void DetectorBank::next_detector() {
  shown_ = false;
  if (++detector_ < detectors_.size()) return;
  detector_ = 0;
  frame_end_ns_ = end_ns(++frame_);
}

bool DetectorBank::finished(std::uint64_t packet_count) const { return next_packet_ >= packet_count && detector_ == 0; }

// Since the start of the run.
std::uint64_t DetectorBank::end_ns(std::uint64_t frame) const {
  return wire::ns_from_ticks((frame + 1) * frame_ticks_ - first_ticks_) + 1;
}

std::vector<DetectorCounts> DetectorBank::counts() const {
  std::vector<DetectorCounts> counts(detectors_.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Published& from = published_[i];
    counts[i] = {from.packets.load(std::memory_order_relaxed), from.primitives.load(std::memory_order_relaxed),
                 from.events_shown.load(std::memory_order_relaxed), from.events_seen.load(std::memory_order_relaxed),
                 from.accidentals.load(std::memory_order_relaxed)};
  }
  return counts;
}

}  // namespace nanet::emulate
