// SPDX-License-Identifier: Apache-2.0
// Detector: an emulated detector that sees given events, each with some probability and at a slightly wrong time, and things
// that are no events; it reports both in MTP packets, at least one every 6.4 us. No clock, no I/O.
//
// Terms
//   tick     97.46 ps; times are ticks since the start of the run (64 bits, never wrap). (timestamp, fine time) on the wire are
//            their lower 40 bits.
//   frame    65536 ticks, 6.4 us: what one TSH covers; or a whole number of these. Frame k of n ticks begins at tick n k.
//
// A primitive is sent with the frame that its own time lies in, or with the frame of its event when its time is before that. So
// primitives of a packet are in order of time, and those of a frame are at most four sigma less the offset before its beginning.
//
// One draw of 64 bits an event decides whether it is seen, when and how: the time is looked up in a table of 4096 equally likely ones.
//
// The same configuration and seed give the same packets on any machine whose libm does.
// Thread rules: one thread. Nothing is allocated after the constructor but when a frame holds more than kFramePrimitives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::emulate {

inline constexpr std::uint64_t kFrameTicks = 65'536;
inline constexpr std::size_t kFramePrimitives = 4'096;  // room made before the start

struct DetectorConfig {
  static constexpr config::Component component{
      "Detector", "One detector: a primitive for each event that it sees, and accidental ones that belong to no event."};

  std::string name;
  std::uint8_t source_id = wire::kSourceChod;
  std::uint8_t source_sub_id = 0;
  double efficiency = 0.95;
  double time_sigma_ns = 0.5;  // in 4096 steps, so up to 3.7 sigma
  double offset_ns = 0.0;
  double accidental_rate_hz = 1e5;      // Poisson
  std::uint16_t primitive_id = 0x4000;  // its top byte is never 0, and bit 15 marks calibration
  std::uint16_t random_bits = 0xF;

  template <class Visit>
  void visit(Visit&& v) {
    v("name", name, {.help = "Name in reports", .form = "Name", .required = true});
    v("source_id", source_id, {.help = "Source ID in its MTP packets", .least = 0, .most = 255, .required = true});
    v("efficiency", efficiency, {.help = "Probability that it sees an event", .least = 0, .most = 1});
    v("time_sigma_ns", time_sigma_ns, {.help = "Resolution of its times, Gaussian", .unit = "ns", .least = 0, .most = 100});
    v("offset_ns", offset_ns,
      {.help = "Added to every time: a detector that is not aligned", .unit = "ns", .least = -1000, .most = 1000});
    v("accidental_rate_hz", accidental_rate_hz,
      {.help = "Primitives that belong to no event, at random times",
       .unit = "Hz",
       .least = 0,
       .most = 1e9,
       .too_big = "the emulator's thread falls behind"});
    v("primitive_id", primitive_id, {.help = "Bits set in every primitive ID", .least = wire::kPrimitiveIdMin, .below = 0x8000});
    v("random_bits", random_bits, {.help = "Bits of the primitive ID that are drawn uniformly", .least = 0, .below = 0x8000});
  }
};

class Detector {
 public:
  // frame_ticks: a multiple of kFrameTicks. Throws SetupError.
  Detector(const DetectorConfig& config, std::uint64_t seed, std::uint64_t frame_ticks = kFrameTicks);

  // The events of a frame: frames come one after the other, the first may have any number. Ticks in
  // [n frame, n (frame + 1)), in order.
  void see_frame(std::uint64_t frame, std::span<const std::uint64_t> event_ticks);

  // The packets of that frame: at least one, an empty one if nothing was seen; more when one is full. Then an empty span. Valid until the
  // next call.
  std::span<const std::byte> next_packet();

  // Primitives in the packet that next_packet() gave; whether it was the frame's last.
  std::uint32_t packet_primitives() const { return packet_primitives_; }
  bool frame_is_sent() const { return !packet_due_; }

  // Since construction: events shown, events seen, accidentals.
  std::uint64_t events_shown() const { return events_shown_; }
  std::uint64_t events_seen() const { return events_seen_; }
  std::uint64_t accidentals() const { return accidentals_; }

 private:
  struct Sighting {
    std::uint64_t ticks;
    std::uint16_t id;
  };

  double uniform();
  void draw_accidental();
  void insert(std::uint64_t ticks, std::uint64_t bits);

  DetectorConfig config_;
  std::mt19937_64 random_;
  std::uint64_t frame_ticks_;
  std::uint64_t seen_below_;          // of 2^24 equally likely draws, so many see the event
  std::vector<std::int16_t> shifts_;  // from an event's time to that of its primitive, equally likely [ticks]
  double accidental_gap_ticks_;       // mean; 0: none
  double next_accidental_ticks_ = 0;  // since the beginning of the next frame
  std::uint64_t frame_ = 0;
  std::vector<Sighting> waiting_;  // in order of time from the call of see_frame on
  std::size_t ready_count_ = 0;    // of these belong to this frame
  std::size_t sent_count_ = 0;     // of these are in packets
  bool packet_due_ = false;
  std::uint32_t packet_primitives_ = 0;
  std::uint64_t events_shown_ = 0;
  std::uint64_t events_seen_ = 0;
  std::uint64_t accidentals_ = 0;
  std::array<std::byte, wire::kMtpBytesMax> room_{};
};

// Six detectors beside the RICH with efficiencies and resolutions of the right size, none of them measured; few accidentals.
std::vector<DetectorConfig> default_detectors();

}  // namespace nanet::emulate
