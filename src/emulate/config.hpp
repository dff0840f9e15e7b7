// SPDX-License-Identifier: Apache-2.0
// What an emulator is built from: the readout boards that send (tel62), the trigger processor that checks the answers (l0tp), the run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulate/detector_bank.hpp"
#include "emulate/monte_carlo.hpp"
#include "nanet/config/setting.hpp"
#include "nanet/link/multicast.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/wire/mgp.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::wire {

constexpr auto choices(MgpLayout) {
  using config::Choice;
  return std::array{Choice{"padded", MgpLayout::padded}, Choice{"packed", MgpLayout::packed}};
}

}  // namespace nanet::wire

namespace nanet::emulate {

enum class AnswerCheck : std::uint8_t {
  time_only,  // an answer has to belong to a sent event; what it says about the ring is not checked
  primitive,  // and its primitive ID has to be what `finder` and `decision` give for all hits of the event
};

enum class BoardPath : std::uint8_t { socket, frames };

constexpr auto choices(BoardPath) {
  using config::Choice;
  return std::array{Choice{"socket", BoardPath::socket}, Choice{"frames", BoardPath::frames}};
}

struct XdpPath {
  static constexpr config::Component component{
      "XdpPath", "Answers, and packets too if wanted, through AF_XDP instead of sockets, so that they cost the emulator less."};

  std::string interface;
  BoardPath boards = BoardPath::socket;
  std::uint32_t frame_count = 16384;

  template <class Visit>
  void visit(Visit&& v) {
    v("interface", interface,
      {.help = "Interface that has the address of answers", .length_least = 1, .length_most = 15, .required = true});
    v("boards", boards,
      {.help = "What the boards send through. socket: messages of many packets that the kernel splits, cheapest at high rates; "
               "frames: each packet a frame of its own without UDP checksum, cheapest for one packet at a time"});
    v("frame_count", frame_count,
      {.help = "Frames, a power of two; with boards: frames, half of them are for sending",
       .unit = "frames",
       .least = 64,
       .most = 1 << 20,
       .too_small = "answers are lost while the emulator's thread is stopped",
       .too_big = "the working set exceeds the caches"});
  }

  // A power of two.
  std::optional<config::Problem> check() const;
};

struct EmulatorConfig {
  static constexpr config::Component component{
      "Emulator",
      "Readout boards that send, and the L0 trigger processor that checks what comes back, in one thread on one clock."};

  // ---- what is sent
  // A board's part of an event may be empty. Packed packets have the 9-bit PM ids of the board that their sub-ID names, so a single packed board
  // sends only hits of the board first_sub_id.
  std::uint32_t boards = 1;
  wire::MgpLayout layout = wire::MgpLayout::padded;
  std::uint8_t source_id = wire::kSourceRich;
  std::uint8_t first_sub_id = 0;
  std::uint32_t events_per_packet = 16;
  std::uint32_t packet_bytes = 0;     // one size, so that many packets leave as one message
  std::uint32_t pool_events = 65536;  // rounded up to whole packets; 73 B an event and board
  std::uint32_t first_timestamp = 0;  // on the wire, in units of 24.95 ns. Near 2^32: the wrap is met early
  MonteCarloConfig monte_carlo;

  // ---- where to, and where answers come to. Port 0 of a receiver: the kernel chooses
  std::vector<std::string> destinations{"udp://127.0.0.1:6200"};  // each board has a source port of its own
  std::optional<std::string> answers = "udp://127.0.0.1:6300";
  std::uint32_t answers_socket_bytes = 64u << 20;  // that the kernel may queue. Too small: answers are lost here, not in the engine
  std::optional<XdpPath> xdp;
  link::GroupSending group_sending;

  // ---- when
  double rate_events_per_s = 1e6;  // exact over the run. 0: event times as if at 10 MHz
  double duration_s = 10;
  std::uint64_t events_total = 0;  // rounded up to whole packets
  double spill_s = 0;
  double pause_s = 0;
  std::uint32_t burst_packets = 1;          // more: they leave as one message; cheaper, burstier
  std::uint32_t in_flight_packets_max = 0;  // waits 100 ms at the longest, then they count as lost
  std::uint32_t drain_ms = 200;
  std::uint32_t quiet_ms = 20;

  // ---- how answers are judged
  std::uint8_t answer_source_id = wire::kSourceRich;  // that the answers must carry
  std::uint8_t answer_source_sub_id = 0;
  AnswerCheck answer_check = AnswerCheck::primitive;
  rich::FinderConfig finder;
  rich::Decision decision;

  // Events whose answer is still awaited, at most; older ones are forgotten (their answers are stale). Rounded up. Too small: at 20 Mevent/s, 2^23
  // last 0.4 s; too big: memory, 2 B an event.
  std::uint64_t outstanding_events = std::uint64_t{1} << 23;

  // ---- the L0 trigger processor, if it is in the loop too
  std::optional<DetectorBankConfig> detectors;
  std::optional<std::string> decisions;

  // ---- the thread
  std::optional<int> cpu_core;

  // Nanoseconds between two looks at the clock that count as a stall of this thread itself. Too small: its own work counts as a stall.
  std::uint64_t stall_ns = 50'000;

  template <class Visit>
  void visit(Visit&& v) {
    visit_boards(v);
    visit_run(v);
    visit_packets(v);
    visit_rest(v);
  }

  // Packets fit their layout, and what is wanted of a run goes together.
  std::optional<config::Problem> check() const;

 private:
  std::optional<config::Problem> check_layout() const;
  std::optional<config::Problem> check_l0tp() const;

  template <class Visit>
  void visit_boards(Visit& v) {
    v("boards", boards, {.help = "1: whole events from one board; 4: each event's hits split over four boards", .one_of = {1, 4}});
    v("layout", layout, {.help = "Layout of the MGP packets: 1168 B for 16 events, or 9-bit hits"});
    v("source_id", source_id, {.help = "Source ID of the boards", .least = 0, .most = 255});
    v("first_sub_id", first_sub_id, {.help = "Sub-ID of the first board; the others follow", .least = 0, .most = 255});
    v("destinations", destinations,
      {.help = "Where to send: one endpoint for all boards, one for each, or none: only check answers", .form = "Endpoint"});
    v("answers", answers, {.help = "Where answers are received and checked; null: nowhere", .form = "Endpoint"});
    v("xdp", xdp, {.help = "Receive answers, or send too, through AF_XDP; null: sockets in both directions"});
    group_sending.visit(v);
  }

  template <class Visit>
  void visit_run(Visit& v) {
    v("rate_events_per_s", rate_events_per_s,
      {.help = "Mean rate of the Poisson arrivals while a spill lasts; 0: as fast as possible",
       .unit = "events/s",
       .least = 0,
       .most = 1e9});
    v("duration_s", duration_s,
      {.help = "How long to send, pauses included; 0: until stopped", .unit = "s", .least = 0, .most = 86400});
    v("events_total", events_total,
      {.help = "Stop after this many events; 0: only by duration_s", .unit = "events", .least = 0, .below = 0x1p62});
    v("burst_packets", burst_packets,
      {.help = "Packets of a board sent in one call; 1: each leaves when its last event happens",
       .unit = "packets",
       .least = 1,
       .most = 48,
       .too_small = "the sender limits the rate",
       .too_big = "latency: the first packet of a burst waits for the last"});
    v("in_flight_packets_max", in_flight_packets_max,
      {.help = "Most unanswered packets of a board, after which it waits; 0: no limit, as real boards send; 1: as ping-pong tools "
               "measure, so that a stall of the machine affects one packet only",
       .unit = "packets",
       .least = 0,
       .most = 1 << 20});
  }

  template <class Visit>
  void visit_packets(Visit& v) {
    v("events_per_packet", events_per_packet,
      {.help = "Events of a full packet; 16 in the padded layout", .unit = "events", .least = 1, .most = wire::kMgpPackedEventsMax});
    v("packet_bytes", packet_bytes,
      {.help = "Size of every packet, even; 0: the smallest that holds every packet of the pool, 1168 if padded",
       .unit = "bytes",
       .least = 0,
       .most = wire::kMgpPackedBytesMax,
       .too_small = "a pool packet does not fit and the emulator does not start"});
    v("pool_events", pool_events,
      {.help = "Events made before the start and sent repeatedly",
       .unit = "events",
       .least = 256,
       .most = 1 << 24,
       .too_small = "the same events repeat too often",
       .too_big = "the working set exceeds the caches, and a longer start"});
    v("spill_s", spill_s, {.help = "Length of a spill; 0: no spill structure", .unit = "s", .least = 0, .most = 3600});
    v("pause_s", pause_s, {.help = "Pause between spills", .unit = "s", .least = 0, .most = 3600});
  }

  template <class Visit>
  void visit_rest(Visit& v) {
    v("cpu_core", cpu_core, {.help = "Core of the emulator's thread; null: not pinned", .form = "Core"});
    v("drain_ms", drain_ms,
      {.help = "After the last packet, no answer for so long ends the run", .unit = "ms", .least = 0, .most = 60000});
    v("quiet_ms", quiet_ms,
      {.help = "Once every event is answered, the run ends when nothing has arrived for this long",
       .unit = "ms",
       .least = 0,
       .most = 60000,
       .too_small = "decisions of an L0 trigger processor with patience_ms do not come back",
       .too_big = "the run ends later"});
    v("monte_carlo", monte_carlo, {.help = "Which events are made"});
    v("detectors", detectors,
      {.help = "The other detectors, whose primitives of the same events go to the L0 trigger processor; null: none"});
    v("decisions", decisions,
      {.help = "Where the L0 trigger processor's decisions are received and their latency is measured; null: nowhere",
       .form = "Endpoint"});
  }
};

}  // namespace nanet::emulate
