// SPDX-License-Identifier: Apache-2.0
// km3_shore and km3_fcm of gateware/rtl/km3, verilated, at the two ends of two fibres, with serialisers and deserialisers in half bits: the loop of three clocks.
//
// Every reset puts the four dividers and the clocks of the phase meters at any phase. The fibres' delays stay.
// Thread rules: one thread for each object. An assertion of the RTL that fails ends the process with a message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "model/km3/serial.hpp"

namespace nanet::gateware::km3 {

enum class Size : std::uint8_t {
  short_frames,  // 800 words, 20 us at 800 Mb/s: for many resets
  mbps_800,      // 4,000 words
  mbps_2500,     // 12,500 words
  any_comma,     // short frames, and a floor that takes each symbol with the seven bits of a comma for one: wrong
};

struct Settings {
  Size size = Size::short_frames;
  Wrong wrong = Wrong::nothing;  // of the floor's receiver
  bool test_pattern = false;     // between frames three of four words from the shore have a K28.7 in byte 1
  HalfBits down_delay = 2463, up_delay = 2801;
  std::uint64_t seed = 1;
};

// The different values that there were of a number, in the order in which they came.
class Values {
 public:
  void add(std::uint64_t value) {
    last_ = value;
    ++count_;
    for (const std::uint64_t one : different_) {
      if (one == value) return;
    }
    different_.push_back(value);
  }
  std::size_t different() const { return different_.size(); }
  const std::vector<std::uint64_t>& all() const { return different_; }
  std::uint64_t count() const { return count_; }
  std::uint64_t last() const { return last_; }

 private:
  std::vector<std::uint64_t> different_;
  std::uint64_t count_ = 0, last_ = 0;
};

// Of a receiver, in the order of km3_pkg::rx_counts_t from its lowest bit up; `lost` stands below them.
enum class Count : std::uint8_t {
  error_time,
  error_express,
  error_stray,
  error_direction,
  error_order,
  error_code,
  error_place,
  drop_crc,
  drop_symbol,
  drop_code,
  drop_cut,
  drop_floor,
  drop_head,
  good,
  restarts,
  down,
  up,
  lost,
  kinds
};
inline constexpr std::array<std::string_view, static_cast<std::size_t>(Count::kinds)> kCountNames{
    "error_time",  "error_express", "error_stray", "error_direction", "error_order", "error_code",
    "error_place", "drop_crc",      "drop_symbol", "drop_code",       "drop_cut",    "drop_floor",
    "drop_head",   "count_good",    "restarts",    "count_down",      "count_up",    "lost"};

class Counts {
 public:
  void add(std::uint64_t pulses);
  std::uint64_t operator[](Count kind) const { return of_[static_cast<std::size_t>(kind)]; }
  // Frames that began; so many have a fate.
  std::uint64_t fates() const;
  // All but what a good link has.
  std::uint64_t errors() const;

 private:
  std::array<std::uint64_t, static_cast<std::size_t>(Count::kinds)> of_{};
};

// What was seen since the object was made. Times in half bits.
struct Seen {
  Values down;                      // from the shore's word 0 to the floor's of the same frame
  Values recovered;                 // edge of the floor's clock after one of the reference
  Values floor_tx;                  // edge of the divider of the floor's serialiser after one of the floor's clock
  Values round_trip;                // from the shore's word 0 to the first word of the floor's frame of that number
  Values third;                     // edge of the clock recovered on shore after one of the reference
  Values trip, phase;               // what the RTL says of the last two: frames and words, steps
  Values express_down, express_up;  // from the edge that takes a code to the one after which it is there
  Counts shore, floor;
  std::uint64_t error_trip = 0, error_phase = 0, error_second = 0, error_gps = 0, error_jump = 0, error_silent = 0, error_cut = 0;
  std::uint64_t error_tx_phase = 0, tx_failed = 0;
  std::uint64_t payload_words = 0, wrong_words = 0;  // up, of good frames; not what was sent
  std::uint64_t control_words = 0, wrong_control = 0;
  std::uint64_t wrong_express = 0;
  std::uint64_t wrong_times = 0;  // frames of the floor whose time is not that of the shore's frame so long before
  std::uint64_t heads = 0;        // up, since the last reset
};

class Loop {
 public:
  virtual ~Loop() = default;
  virtual void reset() = 0;  // all of the link, at both ends; time on shore goes on
  virtual void run(std::uint64_t words) = 0;

  // Since the last reset: two frames came up, and every value was measured.
  virtual bool up() const = 0;
  virtual bool timed() const = 0;                   // the floor has the time
  virtual void set_gps(std::uint32_t second) = 0;   // begins with the next word
  virtual void set_floor(std::uint8_t number) = 0;  // that the shore expects, and sends to
  virtual std::uint32_t frame_words() const = 0;
  virtual HalfBits now() const = 0;
  virtual Fibre& down_fibre() = 0;
  virtual Fibre& up_fibre() = 0;

  // What there is to send: every slot always full, each word of its own; and codes between them, one in so many words of time.
  bool busy_up = false, busy_down = false;
  std::uint32_t express_every = 0;

  const Seen& seen() const { return seen_; }

 protected:
  Seen seen_;
};

std::unique_ptr<Loop> make_loop(const Settings& settings);

// Until it is up, or this many frames have gone by. Whether it is up.
bool bring_up(Loop& loop, std::uint32_t frames_max = 40);

}  // namespace nanet::gateware::km3
