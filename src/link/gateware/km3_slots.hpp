// SPDX-License-Identifier: Apache-2.0
// Packets of floors (docs/formats-km3.md) put back into what a floor's link carries: records in slots of frames. It stands in for the floors' front ends, of
// which a program on a network sends packets.
//
// A slice goes when its units have come. One that is not whole, or has no room, leaves the first frame of its floor's slice out: so the shore sees that
// something is missing. Nothing of a floor in a slice: no frames. Every packet has one fate, or is held. Thread rules: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "link/gateware/km3_node.hpp"
#include "model/floor_links.hpp"

namespace nanet::link::gateware {

enum class Km3Fate : std::uint8_t {
  carried,
  bad_head,     // not of the format
  wrong_floor,  // of no floor of this node
  no_slot,      // of a kind that the frames have no slot for
  untimed,      // its floor's time is not right: such a floor sends no frames
  wrong_run,    // of another run, which too few floors say
  wrong_time,   // its slice does not begin when the run says, or the run's first not with a second
  too_late,     // its slice has gone
  again,        // its place in the unit is taken
  bad_record,   // its unit has other records than go into slots
  no_room,      // its unit is longer than the slice's frames
  no_frame,     // its slice is one frame, and that is left out
  fates
};
inline constexpr std::size_t kKm3Fates = static_cast<std::size_t>(Km3Fate::fates);
inline constexpr std::array<std::string_view, kKm3Fates> kKm3FateNames{"carried", "bad_head",   "wrong_floor", "no_slot",
                                                                       "untimed", "wrong_run",  "wrong_time",  "too_late",
                                                                       "again",   "bad_record", "no_room",     "no_frame"};

class Km3Slots {
 public:
  static constexpr std::uint64_t kPatienceNs = 300'000'000;  // so long a stream that has said nothing is waited for
  static constexpr std::uint64_t kQuietNs = 3'000'000'000;   // so long nothing at all has come before a slice goes by without data

  struct Floors {
    std::uint8_t tower = 0;
    std::uint8_t first = 1;
    std::uint32_t count = 1;
    std::uint32_t slice_frames = 1;
  };

  Km3Slots(const Floors& floors, const nanet::gateware::FloorGeometry& geometry);

  void take(std::span<const std::byte> packet, std::uint64_t now_ns);

  // The run that is to begin, once all that is held of the last one has gone.
  std::optional<Km3Run> next_run() const;
  void begin_run();

  // The next slice can go. at_end: no packet comes any more.
  bool ready(std::uint64_t now_ns, bool at_end);
  // Nothing of it has come, nor anything else for so long that it can go without.
  bool is_quiet(std::uint64_t now_ns) const;
  void open_slice();                                                                               // lets it go
  std::uint32_t slice() const { return next_; }                                                    // that is to be opened next
  std::optional<nanet::gateware::FloorFrame> frame(std::size_t floor, std::uint32_t place) const;  // of the one that was opened last

  // Whether the floor, if it has no frame here, may send one without data. One that sends nothing in the slice may begin it: the node makes no packets of
  // such a frame, and misses none before it.
  bool may_answer(std::size_t floor, std::uint32_t place) const;

  std::uint64_t received() const { return received_; }
  std::uint64_t held() const { return held_; }  // packets
  std::size_t held_bytes() const { return held_bytes_; }
  std::uint64_t fate(Km3Fate fate) const { return fates_[static_cast<std::size_t>(fate)]; }

 private:
  using Bytes = std::vector<std::byte>;
  static constexpr std::size_t kKinds = 4;  // hits, hydrophones 0 and 1, instruments
  struct Head {
    std::uint8_t tower, floor, kind, flags;
    std::uint32_t run, slice, second, tick, offset;
  };
  struct Unit {
    std::map<std::uint32_t, Bytes> pieces;  // by place
    std::optional<std::uint32_t> end;
    bool is_whole() const;
    bool add(const Head& head, std::span<const std::byte> payload);
  };
  struct Stream {
    bool is_known = false, is_silent = false;
    std::uint32_t newest = 0;             // slice
    std::map<std::uint32_t, Unit> units;  // by slice
  };
  using Words = std::array<std::vector<std::uint16_t>, nanet::gateware::kFloorSlots>;
  struct Carried {
    std::uint32_t left_out = 0;  // frames: all, or the first one, or none
    Words words;
  };
  struct Candidate {
    Km3Run run;
    std::uint64_t floors = 0;  // that say so, a bit each
    std::vector<Bytes> packets;
  };

  static std::optional<Head> head_of(std::span<const std::byte> packet);
  static std::optional<Words> words_of(const Unit& unit, std::size_t kind);
  std::optional<Km3Run> run_of(const Head& head) const;
  void end(Km3Fate fate, std::uint64_t packets = 1) { fates_[static_cast<std::size_t>(fate)] += packets; }
  void propose(const Head& head, const Km3Run& run, std::span<const std::byte> packet);
  void drop_candidate();
  void place(const Head& head, std::span<const std::byte> payload);
  bool fits(const Words& words, std::uint32_t frames) const;
  void carry(std::size_t floor);
  void carry_unit(Unit unit, std::size_t kind, Carried& to);

  const Floors floors_;
  const nanet::gateware::FloorGeometry geometry_;
  std::optional<Km3Run> run_;
  std::optional<Candidate> candidate_;
  std::vector<std::array<Stream, kKinds>> streams_;
  std::vector<Carried> carried_;
  std::uint32_t next_ = 0;
  bool is_settled_ = false;  // which streams there are is known
  std::uint64_t arrived_ns_ = 0, received_ = 0, held_ = 0;
  std::size_t held_bytes_ = 0;
  std::array<std::uint64_t, kKm3Fates> fates_{};
};

}  // namespace nanet::link::gateware
