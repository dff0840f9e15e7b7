// SPDX-License-Identifier: Apache-2.0
// The consumer of the benchmark: every packet that is handed over is compared whole with what was sent, and timed.
//
// Compared are data, length, order, sender, place in the buffer, what the completion says of all of them, and times of arrival. What a buffer
// holds is written over before it is given back, so a packet that is not written anew is seen.
// Times begin with the word in which a frame's start character is on the wire (first byte), or the last byte of its check sequence (last byte). They
// end with the cycle in which the host's memory has the last word of its payload, or of the completion that hands it over: with a host that is
// ready at once, the cycle in which the bus takes that word.
//
// Thread rules: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "histogram.hpp"
#include "packets.hpp"
#include "rig.hpp"
#include "wire_use.hpp"

namespace nanet::bench {

struct Latencies {  // [cycles]
  Histogram first_to_write, last_to_write;
  Histogram first_to_completion, last_to_completion;  // of packets that filled a buffer
};

struct Compared {
  std::uint64_t packets = 0;                                // that were handed over
  std::uint64_t wrong = 0;                                  // of them
  std::uint64_t cut_buffers = 0;                            // handed over before they were full, but for the last
  std::uint64_t missing = 0;                                // that were not, and should have been
  std::string first_wrong;                                  // in words
  std::array<Latencies, 2> latencies;                       // of the right ones, by start lane: 0, 4
  std::map<std::size_t, std::array<Latencies, 2>> by_size;  // the same by payload, for traffic of several sizes
};

struct Handing {
  link::gateware::ClopConfig clop;
  bool by_count;  // buffers are handed over full, but for the last one
  bool gaps;      // packets may be missing among those that come; else each is the next that was sent
  bool sizes;     // fill Compared::by_size too
};

class Comparison {
 public:
  Comparison(Rig& rig, link::gateware::NicDriver& driver, const Handing& handing);

  // What goes to the wire, in this order: packet `number`, counting from 0, or a frame that must not be handed over.
  void expect(std::uint64_t number, std::size_t payload_bytes);
  void expect_nothing() { on_wire_.push_back(std::nullopt); }

  // A packet whose frame begins earlier may be missing: it is before a start.
  void may_miss_before(std::uint64_t cycle) { must_come_from_ = cycle; }

  void look();                           // takes what was handed over, and gives buffers back, some at a time
  void last_buffer() { ended_ = true; }  // from now on a buffer may be handed over by a flush
  void end();                            // everything has come: what is still expected is missing

  const Compared& result() const { return result_; }
  const WireUse& wire() const { return wire_; }

 private:
  struct Expected {
    std::uint64_t number;
    std::size_t payload_bytes;
    std::optional<gateware::SentFrame> sent;  // once its frame has been
  };
  struct Found {
    const Completion& completion;
    const PacketRef& ref;
    std::size_t place;  // in the CLOP's memory
    bool first, last;   // of the buffer
  };
  using Words = std::optional<std::string>;  // of what is wrong

  void take_sent();
  void take(const Completion& completion);
  std::optional<Expected> next(const Found& found);
  bool is(const Expected& expected, const Found& found);
  void skip(const Expected& expected);
  Words difference(const Completion& completion);
  Words difference(const Found& found, const Expected& expected);
  Words different_data(const Found& found, const Expected& expected);
  Words different_times(const Found& found, const Expected& expected);
  void time(const Found& found, const Expected& expected);
  void poison(const Completion& completion, std::size_t bytes);

  Rig& rig_;
  link::gateware::NicDriver& driver_;
  const Handing handing_;
  std::deque<Expected> expected_;                     // not yet handed over, by their number
  std::deque<std::optional<std::uint64_t>> on_wire_;  // frames, the number of a packet
  WireUse wire_;
  std::uint64_t buffers_ = 0;                     // handed over
  std::size_t end_ = 0;                           // of the packets in this buffer
  std::map<std::size_t, std::int64_t> arrivals_;  // cycles from a frame's start to its arrival, by what they depend on
  std::optional<std::uint64_t> clock_start_;      // the cycle of the model that is the NIC's cycle 0
  std::vector<std::byte> data_;                   // that a packet should have
  std::uint32_t to_release_ = 0;
  std::uint64_t must_come_from_ = 0;
  bool ended_ = false;
  Compared result_;
};

}  // namespace nanet::bench
