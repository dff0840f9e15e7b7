// SPDX-License-Identifier: Apache-2.0
// What an emulator is built from: the readout boards that send (tel62), the trigger processor that checks the answers (l0tp), the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulate/detector_bank.hpp"
#include "emulate/monte_carlo.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/wire/mgp.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::emulate {

enum class AnswerCheck : std::uint8_t {
  time_only,  // an answer has to belong to a sent event; what it says about the ring is not checked
  primitive,  // and its primitive ID has to be what `finder` and `decision` give for all hits of the event
};

// Answers, and packets too if wanted, through AF_XDP: bypassing this kernel's network stack.
struct XdpPath {
  // Network interface that has the address of `answers`.
  std::string interface;

  // What the boards send through. socket: messages of up to 48 packets that the kernel cuts, which is cheapest where many are due at once. frames:
  // each packet a frame, written whole into the queue; cheapest for one packet at a time. Their UDP checksum is 0 (none): the format has its own.
  enum class Boards : std::uint8_t { socket, frames } boards = Boards::socket;

  // Frames, a power of two, 64..1048576; with Boards::frames half of them are for sending. Too few: answers are lost while this thread is stopped.
  std::uint32_t frame_count = 16384;
};

struct EmulatorConfig {
  // ---- what is sent
  // Readout boards, 1 or 4. 1: one source sends whole events. 4: every board sends a part of every event, the hits of its own channels,
  // which may be none; board b has sub ID first_sub_id + b.
  std::uint32_t boards = 1;

  // padded: 1168 B. packed: 9-bit PM ids of one board, so a single packed board sends only hits of the board first_sub_id, and 4 packed boards
  // need first_sub_id 0.
  wire::MgpLayout layout = wire::MgpLayout::padded;

  std::uint8_t source_id = wire::kSourceRich;
  std::uint8_t first_sub_id = 0;

  // Events, 1..16 (padded) or 1..182 (packed). Too small: more packets, more cost; too big: the first event waits long for the last.
  std::uint32_t events_per_packet = 16;

  // Bytes, packed only, even, up to 1472: every packet has this size, so that many leave as one message. 0: the smallest that holds every packet.
  std::uint32_t packet_bytes = 0;

  // Events made before the run and played again and again; rounded up to whole packets. Too small: few different events; too big: the pool (73 B
  // an event and board) leaves the caches and patching costs more.
  std::uint32_t pool_events = 65536;

  MonteCarloConfig monte_carlo;

  // Timestamp on the wire at the start of the run, in units of 24.95 ns. Near 2^32: the wrap is met early.
  std::uint32_t first_timestamp = 0;

  // ---- where to
  // "udp://host:port", one a board or one for all; each board has a source port of its own. None: nothing is sent, answers are only checked.
  std::vector<std::string> endpoints;

  // Where the answers come to; port 0: the kernel chooses. None: nothing is received.
  std::optional<std::string> answers = "udp://127.0.0.1:0";

  // Bytes the kernel may queue for answers. Too small: answers are lost here, not in the engine (link.rx_kernel_dropped tells).
  std::uint32_t answers_socket_bytes = 64u << 20;

  // Needs `answers`. None: this kernel's sockets, in both directions.
  std::optional<XdpPath> xdp;

  // ---- when
  // Events/s while the spill is on (Poisson, exact over the run); up to 1e9. 0: as fast as possible, event times as if at 10 MHz.
  double rate_events_per_s = 1e6;

  // Seconds; 0: until stop(). Pauses count too.
  double duration_s = 0;

  // Events; 0: no limit. Rounded up to whole packets.
  std::uint64_t events_total = 0;

  // Seconds on and off; either 0: always on.
  double spill_s = 0;
  double pause_s = 0;

  // Packets, 1..48. 1: each packet leaves as soon as its last event has happened (late ones leave together). More: a board waits until so many are
  // due and sends them as one message; cheaper, burstier.
  std::uint32_t burst_packets = 1;

  // Packets of each board sent and not answered, at most: then the boards wait (100 ms at the longest, then those count as lost). 0: no limit, as
  // real boards send. 1 is how ping-pong tools measure: a stall of the machine then meets one packet, not all that were due during it.
  std::uint32_t in_flight_packets_max = 0;

  // Milliseconds without an answer after which unanswered events are given up, once sending has ended; 0: at once. Too small: late answers count
  // as lost; too big: a run that lost events ends late (one that lost none ends when nothing has come for quiet_ms).
  double drain_ms = 200;

  // Milliseconds without a packet after which a run that is answered ends. Too small: decisions of an L0 trigger processor that waits for
  // silent detectors do not come back.
  double quiet_ms = 20;

  // ---- how answers are judged
  // Source that the answers must carry.
  std::uint8_t answer_source_id = wire::kSourceRich;
  std::uint8_t answer_source_sub_id = 0;
  AnswerCheck answer_check = AnswerCheck::primitive;
  rich::FinderConfig finder;
  rich::Decision decision;

  // Events whose answer is still awaited, at most; older ones are forgotten (their answers are stale). Rounded up. Too small: at 20 Mevent/s, 2^23
  // last 0.4 s; too big: memory, 2 B an event.
  std::uint64_t outstanding_events = std::uint64_t{1} << 23;

  // ---- the L0 trigger processor, if it is in the loop too
  // Detectors whose primitives go to it, beside the boards' one; needs boards and a rate. None: no detectors.
  std::optional<DetectorBankConfig> detectors;

  // Where its L0 decision packets come to; port 0: the kernel chooses. None: nothing is received.
  std::optional<std::string> decisions;

  // ---- the thread
  // Core to pin to; none: not pinned.
  std::optional<int> cpu_core;

  // Nanoseconds between two looks at the clock that count as a stall of this thread itself. Too small: its own work counts as a stall.
  std::uint64_t stall_ns = 50'000;
};

// Throws SetupError for the first value that is out of range.
void validate(const EmulatorConfig& config);

}  // namespace nanet::emulate
