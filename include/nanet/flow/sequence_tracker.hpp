// SPDX-License-Identifier: Apache-2.0
// The books of one source: which packets and events were sent, came, came twice, came late or never came.
//
// Terms
//   window   the 1024 sequence numbers before the next one that is expected. Inside it every packet is known individually.
//   run      what a source sends between a start and an end marker. Sequence and event numbers start again with it.
//   assumed  a run that began with its first packet because no start marker had come.
//
// Promises, at any time:
//   packets_expected = packets_accepted + packets_lost_kernel + packets_lost_network
//   events_expected  = events_accepted + events_lost
// A lost packet that still comes inside the window is accepted, and its loss taken back from the side it was counted on.
//
// Thread rules: one thread. No clock, no I/O, no allocation. 16 bits of the event number and 32 of the sequence may wrap.
#pragma once

#include <array>
#include <cstdint>

namespace nanet::flow {

enum class Verdict : std::uint8_t {
  accept,            // the newest so far
  accept_reordered,  // a later one came first
  duplicate,         // was accepted already: drop it
  late,              // outside the window, before it or far ahead: drop it
};

// Why packets are probably missing before this one.
enum class DropHint : std::uint8_t {
  none,    // nothing known: they were lost before this socket
  kernel,  // the socket has just reported an overflow
};

class SequenceTracker {
 public:
  static constexpr std::uint32_t kWindowPackets = 1024;
  // A packet further ahead than this is not a gap but a source that restarted: an outage of a minute at 1 M packets/s.
  static constexpr std::uint32_t kMaxGapPackets = 1u << 26;
  // This many packets in a row, ascending and none acceptable, mean a source that restarted without a marker.
  static constexpr std::uint32_t kRestartPackets = 64;

  // A checked data packet. The caller uses it if the verdict is accept or accept_reordered.
  Verdict on_packet(std::uint32_t sequence, std::uint16_t first_event_number, std::uint32_t event_count,
                    DropHint hint = DropHint::none);

  // A run marker: sequence of the next data packet, running number of the next event.
  void on_start_marker(std::uint32_t sequence, std::uint64_t next_event);
  void on_end_marker(std::uint32_t sequence, std::uint64_t next_event, DropHint hint = DropHint::none);

  std::uint64_t packets_expected() const { return packets_expected_; }
  std::uint64_t packets_accepted() const { return packets_accepted_; }
  std::uint64_t packets_lost_kernel() const { return packets_lost_[1]; }
  std::uint64_t packets_lost_network() const { return packets_lost_[0]; }
  std::uint64_t events_expected() const { return events_expected_; }
  std::uint64_t events_accepted() const { return events_accepted_; }
  std::uint64_t events_lost() const { return events_lost_; }
  std::uint64_t restarts() const { return restarts_; }  // runs begun after the first

  // Packets found missing since the last call, less those that came after all; for Completion::packets_lost.
  std::uint32_t packets_newly_lost();

  // The sequence number that would be accepted without a gap; 0 before the first packet or marker.
  std::uint32_t next_sequence() const { return next_sequence_; }

 private:
  enum class Start : std::uint8_t { assumed, marked };
  enum class Phase : std::uint8_t { idle, running, ended };
  struct Position {
    std::uint32_t sequence = 0;
    std::uint64_t event = 0;  // running number; only its low 16 bits count while the start is assumed
  };

  void begin_run(Position at, Start start);
  bool fits_pending_start(std::uint32_t sequence) const;
  bool is_stray_of_previous_run(std::uint32_t sequence) const;
  Verdict advance(std::uint32_t gap, std::uint16_t first_event_number, std::uint32_t event_count, DropHint hint);
  Verdict look_behind(std::uint32_t behind, std::uint16_t first_event_number, std::uint32_t event_count);
  Verdict refuse(Verdict verdict, std::uint32_t sequence, std::uint16_t first_event_number, std::uint32_t event_count);
  void extend_start(std::uint32_t packets, std::uint64_t event);

  void add_missing(std::uint32_t first_sequence, std::uint32_t packets, DropHint side);
  void add_events_missing(std::int64_t events);
  void take_back(std::uint32_t sequence, std::uint32_t event_count);
  void learn_event_count(std::uint32_t event_count);
  std::int64_t events_between(std::uint64_t from, std::uint64_t to, std::uint32_t packets) const;

  static constexpr std::uint32_t kWindowWords = kWindowPackets / 64;

  // Totals over all runs.
  std::uint64_t packets_expected_ = 0;
  std::uint64_t packets_accepted_ = 0;
  std::array<std::uint64_t, 2> packets_lost_{};  // by DropHint
  std::uint64_t events_expected_ = 0;
  std::uint64_t events_accepted_ = 0;
  std::uint64_t events_lost_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint32_t newly_lost_ = 0;

  // The run. Its packets so far are the run_packets_ sequence numbers before next_sequence_.
  Phase phase_ = Phase::idle;
  Start start_ = Start::assumed;
  std::uint32_t next_sequence_ = 0;
  std::uint64_t run_packets_ = 0;
  std::uint64_t next_event_ = 0;
  std::uint64_t start_event_ = 0;
  std::uint64_t events_per_packet_q16_ = 0;  // running mean, 16 fraction bits
  std::int64_t learned_packets_ = 0;

  // A start marker that may be an old one: believed when the first packet after it fits it and not the run.
  bool has_pending_start_ = false;
  Position pending_start_{};

  // Where the run before this one ended, for strays of it.
  bool has_previous_run_ = false;
  std::uint32_t previous_next_sequence_ = 0;

  // Packets in a row that were refused, ascending.
  std::uint32_t refused_in_row_ = 0;
  Position refused_first_{};
  std::uint32_t refused_last_sequence_ = 0;

  std::array<std::uint64_t, kWindowWords> received_{};
  std::array<std::uint64_t, kWindowWords> lost_side_{};  // 1: kernel; only for packets not received
};

}  // namespace nanet::flow
