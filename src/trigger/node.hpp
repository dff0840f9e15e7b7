// SPDX-License-Identifier: Apache-2.0
// TriggerNode: the L0 trigger processor as a process runs it: primitives in by UDP, decisions on them, triggers out by UDP. One
// thread does all three.
//
// A turn: one batch of datagrams is received, each is taken and what it made ready is decided; the triggers of the batch leave in L0
// decision packets (docs/formats-l0.md) before the next batch is looked at. Decisions that are no triggers are only counted.
//
// With patience_ns, primitives wait for the slowest detector (l0tp/aligner.hpp) and `silence_ns` of the processor is not used: when
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
#include "nanet/flow/latency_histogram.hpp"
#include "nanet/flow/thread.hpp"
#include "nanet/link/udp.hpp"
#include "trigger/decision_sender.hpp"

namespace nanet::trigger {

struct NodeConfig {
  l0tp::Config processor;

  // "udp://host:port" where MTP packets come to; port 0: the kernel chooses.
  std::string listen = "udp://127.0.0.1:6400";

  // Where triggers go. None: they are counted only.
  std::optional<std::string> decisions;
  std::uint8_t source_sub_id = 0;  // of the decision packets

  // Bytes the kernel may queue for the receiving socket. Too small: primitives are lost while the thread is away.
  std::uint32_t socket_bytes = 64u << 20;

  // Core to pin to; none: not pinned.
  std::optional<int> cpu_core;

  std::int64_t spins = 20'000;       // idle turns before a blocking wait; negative: spin for ever
  std::uint64_t sleep_ns = 100'000;  // longest blocking wait, after which silence is noticed

  // Nanoseconds of sleep after each busy turn, so that many packets share one wake-up; 0: none. For a thread that shares its core. Too
  // big: added to every latency.
  std::uint64_t gather_ns = 0;

  // Nanoseconds for which an input that is silent is waited for; 0: no one is waited for. Too small: primitives are late while the
  // machine stops who sends them. Too big: without a detector, so long until the first decision.
  std::uint64_t patience_ns = 0;
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
