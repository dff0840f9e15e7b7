// SPDX-License-Identifier: Apache-2.0
// TriggerNode: the L0 trigger processor as a process runs it: primitives in by UDP, decisions on them, triggers out by UDP. One
// thread does all three.
//
// A turn: one batch of datagrams is received, each is taken and what it made ready is decided; the triggers of the batch leave in L0
// decision packets (docs/formats-l0.md) before the next batch is looked at. Decisions that are no triggers are only counted.
//
// With patience_ms, primitives wait for the slowest detector (l0tp/aligner.hpp) and `silence_us` of the processor is not used: when
// all inputs were silent for the patience, all that waits is decided.
//
// Latency: from the return of the receive call that brought the reference (or calibration) primitive to the return of the call that sent
// its trigger, a record a trigger. The read lag of the processor is part of it.
//
// Books, exact when finished, beside those of TriggerProcessor:
//   link.rx_packets = stats.packets
//   stats.triggers_physics + stats.triggers_calibration = triggers_sent (0 without a destination)
//   decision_packets = link.tx_packets + link.tx_dropped
//
// Thread rules: start and stop from one control thread; everything const from any thread at any time. After start() nothing is allocated.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "l0tp/aligner.hpp"
#include "l0tp/trigger_processor.hpp"
#include "nanet/config/setting.hpp"
#include "nanet/flow/latency_histogram.hpp"
#include "nanet/flow/thread.hpp"
#include "nanet/link/udp.hpp"
#include "trigger/decision_sender.hpp"

namespace nanet::trigger {

struct NodeWaiting {
  static constexpr config::Component component{"NodeWaiting", "What the thread does when nothing arrives."};

  std::int64_t spin = 20'000;
  std::uint64_t sleep_us = 100;
  std::uint64_t gather_us = 0;

  template <class Visit>
  void visit(Visit&& v) {
    v("spin", spin,
      {.help = "Empty polls before it sleeps; -1: spin forever, which needs a core of its own",
       .unit = "polls",
       .least = -1,
       .most = 0x1p40,
       .too_small = "the kernel's wake-up time (about 30 us) is added at every pause",
       .too_big = "a core that is never idle"});
    v("sleep_us", sleep_us,
      {.help = "Longest sleep, after which silence is noticed",
       .unit = "us",
       .least = 1,
       .most = 1'000'000,
       .too_big = "what is pending at the end of a spill is decided late"});
    v("gather_us", gather_us,
      {.help = "Sleep after each pass that had work, so that many packets share one wake-up; 0: none, for a core of its own",
       .unit = "us",
       .least = 0,
       .most = 10'000,
       .too_small = "on a shared core, each packet interrupts the other thread",
       .too_big = "all of it adds to the latency"});
  }
};

struct NodeConfig {
  static constexpr config::Component component{"L0tp", "A whole L0 trigger processor: inputs, alignment memory and masks."};

  l0tp::Config processor;  // its keys are among the node's
  std::uint64_t patience_ms = 0;
  std::string listen = "udp://127.0.0.1:6400";  // port 0, for programs: the kernel chooses
  std::optional<std::string> decisions;
  std::uint8_t source_sub_id = 0;
  std::uint32_t socket_buffer_bytes = 64u << 20;
  std::optional<int> cpu_core;
  NodeWaiting waiting;

  template <class Visit>
  void visit(Visit&& v) {
    processor.visit(v);
    v("patience_ms", patience_ms,
      {.help = "How long a silent input is waited for: until then the primitives of the others are held back, whenever they "
               "arrive; "
               "0: no input is waited for, as in hardware. With patience, silence_us is not used",
       .unit = "ms",
       .least = 0,
       .most = 60'000,
       .too_small = "primitives are late when the machine stops the process that sends them",
       .too_big = "if one of the detectors is missing, the first decisions are delayed by this much"});
    v("listen", listen, {.help = "Where MTP packets of all inputs are received", .form = "Endpoint"});
    v("decisions", decisions,
      {.help = "Where triggers are sent, in L0 decision packets; null: they are only counted", .form = "Endpoint"});
    v("source_sub_id", source_sub_id, {.help = "Source sub-ID of the decision packets", .least = 0, .most = 255});
    v("socket_buffer_bytes", socket_buffer_bytes,
      {.help = "How much the kernel may queue for the receiving socket",
       .unit = "bytes",
       .least = 65536,
       .most = 1 << 30,
       .too_small = "primitives are lost while the thread is not running",
       .too_big = "primitives that are late instead of lost"});
    v("cpu_core", cpu_core, {.help = "Core of the thread; null: not pinned", .form = "Core"});
    v("waiting", waiting, {.help = "What the thread does when nothing arrives"});
  }

  // Those of the processor, and that triggers are not sent to the node itself.
  std::optional<config::Problem> check() const;
};

// Totals of the run up to now. While it runs they may differ by what happened during the copy; when finished they are exact.
struct NodeSnapshot {
  double elapsed_s = 0;
  double core_wait_s = 0;  // ready to run, but something else had the core; known after stop()
  l0tp::Stats stats;
  std::vector<l0tp::InputStats> inputs;
  std::vector<l0tp::MaskStats> masks;
  std::uint64_t pending = 0;  // reference primitives that wait for their decision
  std::uint64_t triggers_sent = 0;
  std::uint64_t decision_packets = 0;
  link::LinkStats link;
  flow::LatencyHistogram latency;  // [ns]
};

class TriggerNode {
 public:
  // Opens and binds the sockets, allocates everything. Throws SetupError.
  explicit TriggerNode(const NodeConfig& config);
  ~TriggerNode();
  TriggerNode(const TriggerNode&) = delete;
  TriggerNode& operator=(const TriggerNode&) = delete;

  // Throws SetupError when the thread cannot be pinned as asked, or on a second start.
  void start();

  // Takes what has arrived, decides on all that waits, sends it, joins. Bounded in time. Does nothing before start() and after the end.
  void stop();

  bool running() const { return running_.load(std::memory_order_acquire); }
  NodeSnapshot snapshot() const;

  // Where it listens, with the actual port.
  link::Endpoint local() const { return link_->local(); }

  // One line for each thing the kernel limited, "problem (why) suggestion".
  std::vector<std::string> notes() const { return link_->notes(); }

 private:
  static constexpr std::size_t kWords = (sizeof(l0tp::Stats) + l0tp::kInputsMax * sizeof(l0tp::InputStats) +
                                         l0tp::kMasksMax * sizeof(l0tp::MaskStats)) /
                                            8 +
                                        3;
  static constexpr std::uint32_t kPacketsMax = 512;
  static constexpr std::size_t kDecisionsMax = 256;

  struct Own {
    std::uint64_t pending;
    std::uint64_t triggers_sent;
    std::uint64_t decision_packets;
  };

  void run();
  std::uint32_t turn();
  void take(std::span<const std::byte> datagram, std::uint64_t now_ns);
  void decide(std::uint64_t now_ns);
  void nothing_came(std::uint64_t now_ns);
  void flush();
  void pass_on(std::size_t count);
  void publish();

  const NodeConfig config_;
  l0tp::TriggerProcessor processor_;
  std::optional<l0tp::Aligner> aligner_;
  std::unique_ptr<link::UdpLink> link_;
  DecisionSender sender_;
  std::vector<std::byte> room_;
  std::array<link::RxPacket, kPacketsMax> packets_{};
  std::array<l0tp::Decision, kDecisionsMax> decisions_{};
  std::uint64_t decisions_seen_ = 0;
  std::array<std::atomic<std::uint64_t>, kWords> published_{};

  flow::Thread thread_;
  std::atomic<bool> running_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> start_ns_{0};
  std::atomic<std::uint64_t> end_ns_{0};
  std::atomic<std::uint64_t> core_wait_ns_{0};
};

}  // namespace nanet::trigger
