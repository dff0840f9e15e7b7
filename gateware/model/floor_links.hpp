// SPDX-License-Identifier: Apache-2.0
// The floors at the ends of a simulated KM3NeT node's links: they follow the time that the shore sends, and send frames of what they are given
// (docs/design/km3-link.md).
//
// Where a frame is due and none was given the links stand, and their clocks with them, while the node's core goes on: the time of the detector waits
// for what is to be sent in it. Thread rules: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "model/code_8b10b.hpp"

namespace nanet::gateware {

inline constexpr std::size_t kFloorSlots = 10;  // optical modules 0 to 5, hydrophones 0 and 1, instruments, slow control

struct FloorGeometry {
  std::uint32_t mbps = 0;
  std::uint32_t frame_words = 0;
  std::uint32_t frames_per_s = 0;
  std::array<std::uint16_t, kFloorSlots> slot_words{};
};

FloorGeometry floor_geometry(std::uint32_t mbps);  // 800 or 2500: of the nodes that are simulated

struct FrameTime {
  std::uint32_t second = 0;
  std::uint16_t number = 0;

  bool operator==(const FrameTime&) const = default;
};

struct FloorFrame {
  std::uint8_t floor = 0;
  std::array<std::vector<std::uint16_t>, kFloorSlots> slots;
  std::optional<std::uint32_t> spoiled;  // this word of it has a wrong bit
};

// All of its words, without idle ones behind them. What a slot has beyond its words is left out.
std::vector<LinkWord> words_of(const FloorFrame& frame, FrameTime at, const FloorGeometry& geometry);

class FloorEnd {
 public:
  explicit FloorEnd(const FloorGeometry& geometry) : geometry_(geometry) {}

  // A frame of this time is to begin with the next word.
  std::optional<FrameTime> due() const { return due_; }
  void give(const std::optional<FloorFrame>& frame);  // none: the period has no frame

  std::uint32_t next_bits();      // of the next word
  void take(std::uint32_t bits);  // a word that the shore sent; not while a frame is due

  void forget();

  std::uint64_t frames() const { return frames_; }              // sent
  std::vector<std::uint8_t>& slow_control() { return bytes_; }  // bytes of good frames from the shore
  std::uint64_t bad() const { return bad_; }                    // frames from the shore whose check is wrong

  // An express code goes at once, but where a frame begins. Each that comes is answered with the same, always as many words later.
  void send_express(std::uint8_t code) { express_.push_back({code, 0}); }
  std::uint64_t express_heard() const { return express_heard_; }

 private:
  struct Express {
    std::uint8_t code;
    std::uint32_t waits;  // words
  };

  void end_of_frame();
  bool take_express(LinkWord word);  // whether it is a word of one
  std::optional<LinkWord> next_express();

  const FloorGeometry& geometry_;
  Encoder8b10b encoder_;
  std::deque<LinkWord> words_;  // that are to go
  std::vector<LinkWord> heard_;
  bool hears_ = false;
  std::uint32_t since_ = 0;      // words since the shore's frame began, express codes among them
  std::uint32_t begins_in_ = 0;  // words; 0: none begins
  FrameTime next_;
  std::optional<FrameTime> due_;
  std::uint64_t frames_ = 0, bad_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::deque<Express> express_;               // that are to go
  std::optional<std::uint8_t> express_half_;  // whose second word goes next
  std::optional<std::uint8_t> express_due_;   // whose second word comes next
  std::uint64_t express_heard_ = 0;
};

class FloorLinks {
 public:
  explicit FloorLinks(std::uint32_t mbps, std::size_t ports) : geometry_(floor_geometry(mbps)), ends_(ports, FloorEnd(geometry_)) {}
  FloorLinks(const FloorLinks&) = delete;
  FloorLinks& operator=(const FloorLinks&) = delete;

  const FloorGeometry& geometry() const { return geometry_; }
  std::vector<FloorEnd>& ends() { return ends_; }
  const std::vector<FloorEnd>& ends() const { return ends_; }

  // The time of the frames that are due, on all links or on none.
  std::optional<FrameTime> due() const { return ends_.front().due(); }
  bool stand() const;

  void reset();  // nothing is due, and what was to go is gone

  // The GPS: a pulse now, and one a second from then on.
  void pulse() { until_pulse_ = 0; }
  bool next_pps();  // its level in the next cycle of the reference

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  const FloorGeometry geometry_;
  std::vector<FloorEnd> ends_;
  std::uint64_t until_pulse_ = kNever;  // cycles of the reference
  std::uint32_t pulse_left_ = 0;
};

}  // namespace nanet::gateware
