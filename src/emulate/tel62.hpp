// SPDX-License-Identifier: Apache-2.0
// Tel62: the sending readout boards. Takes what the schedule says is due, patches it, sends it, and enters it in the answer book.
//
// One batch is a run of packets due together, of every board in turn: prepare() and send() once a board. Time is an argument of both, so that the
// caller reads the clock directly before the send call, and tests run in virtual time. An event's send time is that of its last part.
//
// Thread rules: one thread; packets_sent(), markers_sent() and lateness() (a copy of it) may be read by any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "emulate/answer_book.hpp"
#include "emulate/sample.hpp"
#include "emulate/schedule.hpp"
#include "nanet/flow/latency_histogram.hpp"
#include "nanet/link/link.hpp"

namespace nanet::emulate {

enum class MarkerKind : std::uint8_t { start, end };

class Tel62 {
 public:
  static constexpr std::uint32_t kBatchMax = 48;  // packets of one send call: 56 kB of padded packets, one message to the kernel

  // Everything given must outlive it. The link's destination b is where board b sends to.
  Tel62(const EmulatorConfig& config, const Schedule& schedule, Sample& sample, AnswerBook& book, link::Link& link);

  // Start or end of run, from every board, with the number of the next event. Markers may be repeated.
  void send_markers(MarkerKind kind, std::uint64_t now_ns);

  // The run starts at this time, which the schedule calls 0.
  void start(std::uint64_t now_ns) { start_ns_ = now_ns; }

  // True: packets of one board are ready, call send() at once. False: nothing is due.
  bool prepare(std::uint64_t now_ns);
  void send(std::uint64_t now_ns);

  // Every packet of the schedule has left (never, when it is endless).
  bool finished() const { return board_ == 0 && next_packet_ >= schedule_.packet_count(); }
  // Between two boards of a batch: the run should not be stopped here.
  bool in_batch() const { return board_ != 0; }

  // When the next packet is due, since the start; a packet that waits for its burst is due all the same. After the last one: never.
  std::uint64_t next_due_ns() const { return next_due_ns_; }

  // Of each board.
  std::uint64_t packets_sent() const { return packets_sent_.load(std::memory_order_relaxed); }
  // Of all boards.
  std::uint64_t markers_sent() const { return markers_sent_.load(std::memory_order_relaxed); }

  // How long after it could have left each packet left: the emulator's own overload. Empty for an unpaced run.
  const flow::LatencyHistogram& lateness() const { return lateness_; }

 private:
  void begin_batch(std::uint64_t elapsed_ns);
  void record_lateness(std::uint64_t elapsed_ns);

  const Schedule& schedule_;
  Sample& sample_;
  AnswerBook& book_;
  link::Link& link_;
  const std::uint8_t source_id_;
  const std::uint8_t first_sub_id_;
  const wire::MgpLayout layout_;
  const Pacing pacing_;
  const std::uint32_t burst_packets_;
  const std::uint32_t batch_max_;

  std::uint64_t start_ns_ = 0;
  std::uint64_t next_packet_ = 0;  // first of the batch
  std::uint64_t next_due_ns_ = 0;  // spinning costs one comparison
  std::uint32_t batch_count_ = 0;
  std::uint32_t board_ = 0;
  std::array<Schedule::Packet, kBatchMax> batch_{};
  std::array<link::TxPacket, kBatchMax> tx_packets_{};
  std::atomic<std::uint64_t> packets_sent_{0};
  std::atomic<std::uint64_t> markers_sent_{0};
  flow::LatencyHistogram lateness_;
};

}  // namespace nanet::emulate
