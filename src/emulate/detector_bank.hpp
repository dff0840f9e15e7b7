// SPDX-License-Identifier: Apache-2.0
// DetectorBank: the emulated detectors beside the one whose boards are emulated. Shows them the events of a schedule, frame after frame,
// and sends their MTP packets to the L0 trigger processor. No clock: time is an argument.
//
// A frame (see detectors.hpp) is sent when its end has come on the boards' own time: that of the clock, or, when the boards are late, that of
// the next packet that they have to send. And the boards wait when the bank is more than a frame late (must_catch_up). So what reaches
// the trigger processor from both is about a frame apart at most, even after the machine has stopped this thread for long.
//
// The packets of a frame leave in one call. They are made equally long by timestamp words at their ends, which say nothing in MTP, so that
// the kernel takes them as one message instead of one each.
//
// Thread rules: one thread; counts() by any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulate/detectors.hpp"
#include "emulate/schedule.hpp"
#include "nanet/link/link.hpp"

namespace nanet::emulate {

struct DetectorBankConfig {
  static constexpr config::Component component{"Detectors", "All of them, in the emulator's thread and on its clock."};

  std::string endpoint = "udp://127.0.0.1:6400";
  double frame_us = 6.4;
  std::vector<DetectorConfig> detectors = default_detectors();

  template <class Visit>
  void visit(Visit&& v) {
    v("endpoint", endpoint, {.help = "Where the L0 trigger processor listens", .form = "Endpoint"});
    v("frame_us", frame_us,
      {.help = "How often each detector sends a packet, rounded to whole 6.387 us; 6.4 is NA62's",
       .unit = "us",
       .least = 6,
       .most = 1000,
       .too_small = "each packet costs the emulator a microsecond",
       .too_big = "the read lag of the trigger processor has to be longer"});
    v("detectors", detectors, {.help = "The detectors"});
  }

  // There are some, and no two are called alike.
  std::optional<config::Problem> check() const;
};

struct DetectorCounts {
  std::uint64_t packets = 0;
  std::uint64_t primitives = 0;  // sent; what is seen at the end of the last frame may be left over
  std::uint64_t events_shown = 0;
  std::uint64_t events_seen = 0;
  std::uint64_t accidentals = 0;
};

class DetectorBank {
 public:
  // schedule and link must outlive it. Throws SetupError.
  DetectorBank(const DetectorBankConfig& config, const Schedule& schedule, std::uint32_t first_timestamp, std::uint64_t seed,
               link::Link& link, std::uint32_t destination);

  // Makes at most one packet, the next one that is due on the boards' time (nanoseconds since the start of the run), and sends all of a frame
  // with its last one. True: it made one.
  bool turn(std::uint64_t boards_ns, std::uint64_t now_ns);

  // The boards should wait: the bank is more than a frame late.
  bool must_catch_up(std::uint64_t boards_ns) const { return boards_ns > frame_end_ns_ + frame_ns_; }

  // All frames with events of the packets before this one are sent.
  bool finished(std::uint64_t packet_count) const;

  std::uint64_t frame_ns() const { return frame_ns_; }

  std::vector<DetectorCounts> counts() const;

 private:
  static constexpr std::size_t kBatchMax = 16;

  struct Batch {
    std::array<std::array<std::byte, wire::kMtpBytesMax>, kBatchMax> room;
    std::array<std::uint32_t, kBatchMax> bytes;
    std::size_t count = 0;
  };

  void gather_events();
  void add_to_batch(std::span<const std::byte> payload);
  void send_batch(std::uint64_t now_ns);
  void next_detector();
  std::uint64_t end_ns(std::uint64_t frame) const;

  struct Published {
    std::atomic<std::uint64_t> packets{0};
    std::atomic<std::uint64_t> primitives{0};
    std::atomic<std::uint64_t> events_shown{0};
    std::atomic<std::uint64_t> events_seen{0};
    std::atomic<std::uint64_t> accidentals{0};
  };

  const Schedule& schedule_;
  link::Link& link_;
  const std::uint32_t destination_;
  const std::uint64_t first_ticks_;  // of the run, on the detectors' time
  const std::uint64_t frame_ticks_;
  const std::uint64_t frame_ns_;
  std::vector<Detector> detectors_;
  std::unique_ptr<Published[]> published_;

  std::unique_ptr<Batch> batch_;
  std::array<link::TxPacket, kBatchMax> tx_packets_{};

  std::uint64_t frame_;                // that is being sent
  std::uint64_t frame_end_ns_ = 0;     // since the start of the run
  std::size_t detector_ = 0;           // whose turn it is
  bool shown_ = false;                 // the frame's events are shown to it
  std::vector<std::uint64_t> events_;  // of the frame
  std::uint64_t next_packet_ = 0;      // of the schedule, from where events are still to be shown
  std::uint32_t next_in_packet_ = 0;
};

}  // namespace nanet::emulate
