// SPDX-License-Identifier: Apache-2.0
#include "km3_engine/event_writer.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::km3_engine {
namespace {

constexpr std::uint32_t kMagic = 0x4B4D3345;  // "KM3E"

template <class Number>
std::byte* put(std::byte* to, Number value) {
  km3::store_be(to, value);
  return to + sizeof value;
}

// Kinds of the triggered seed that each hit began. Seeds and hits come in the order of their times, and of those of a time in that of their PMs.
class SeedKinds {
 public:
  explicit SeedKinds(std::span<const km3::Seed> seeds) : left_(seeds) {}
  std::uint32_t of(const km3::Hit& hit) {
    while (!left_.empty() && is_before(left_.front(), hit)) left_ = left_.subspan(1);
    return !left_.empty() && left_.front().point.time_ns == hit.time_ns && left_.front().pm == hit.pm ? left_.front().kinds : 0;
  }

 private:
  static bool is_before(const km3::Seed& seed, const km3::Hit& hit) {
    return seed.point.time_ns != hit.time_ns ? seed.point.time_ns < hit.time_ns : seed.pm < hit.pm;
  }
  std::span<const km3::Seed> left_;
};

std::byte* put_time(std::byte* to, double time_ns) { return put(to, static_cast<std::uint64_t>(std::llround(time_ns * 1024.0))); }

}  // namespace

EventWriter::EventWriter(const km3::Detector& detector, std::uint32_t packet_bytes, flow::TxRing& ring, flow::CompletionQueue& sent,
                         flow::Counters& counters, engine::Transmitter* inline_transmitter)
    : slots_(ring, sent, counters, inline_transmitter), packet_bytes_(packet_bytes), time_base_ns_(detector.time_base_ns()) {
  for (const km3::Pm& pm : detector.pms()) {
    const km3::Floor& floor = detector.floors()[pm.floor];
    if (pm.number >> kEventPmBits != 0) {
      throw SetupError("events cannot name PM " + std::to_string(pm.number) + " of a floor", "they have five bits for its number",
                       "leave out answers, or use a detector file with at most 32 PMs a floor");
    }
    names_.push_back({static_cast<std::uint8_t>(floor.tower), static_cast<std::uint8_t>(floor.number), pm.number});
  }
}

void EventWriter::write(const km3::Event& event, std::span<const km3::Hit> hits, std::span<const km3::Seed> seeds,
                        const Slice& slice, std::uint64_t arrival_ns) {
  SeedKinds kinds(seeds);
  const auto hit_count = static_cast<std::uint32_t>(hits.size());
  const std::uint32_t event_bytes = kEventHeadBytes + hit_count * kEventHitBytes;
  std::uint32_t offset = 0;
  std::uint32_t next = 0;
  while (offset < event_bytes) {
    std::byte* const packet = slots_.acquire().data();
    std::byte* to = packet;
    to = put(to, kMagic);
    to = put(to, slice.run);
    to = put(to, slice.slice);
    to = put(to, static_cast<std::uint32_t>(event.number));
    to = put(to, static_cast<std::uint32_t>(slice.begin_ns / 1'000'000'000));
    to = put(to, static_cast<std::uint32_t>(slice.begin_ns % 1'000'000'000 / 16));
    to = put(to, offset);
    to = put(to, event_bytes);
    std::uint32_t room = packet_bytes_ - kEventHeaderBytes;
    if (offset == 0) {
      to = put(to, hit_count);
      to = put(to, event.seed_count);
      to = put(to, event.kinds);
      to = put(to, event.is_cut);
      to = put_time(to, event.begin_ns + time_base_ns_);
      room -= kEventHeadBytes;
      offset = kEventHeadBytes;
    }
    const std::uint32_t end = std::min(hit_count, next + room / kEventHitBytes);
    for (; next < end; ++next) {
      const km3::Hit& hit = hits[next];
      const Name& name = names_[hit.pm];
      const float charge = std::min(255.0F, std::round(hit.charge_pe / km3::kChargeUnitPe));
      to = put(to, name.tower);
      to = put(to, name.floor);
      to = put(to, static_cast<std::uint8_t>(kinds.of(hit) << kEventPmBits | name.pm));
      to = put(to, static_cast<std::uint8_t>(charge));
      to = put_time(to, hit.time_ns + time_base_ns_);
    }
    offset = kEventHeadBytes + next * kEventHitBytes;
    slots_.post(static_cast<std::size_t>(to - packet), arrival_ns);
  }
}

}  // namespace nanet::km3_engine
