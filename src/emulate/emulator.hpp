// SPDX-License-Identifier: Apache-2.0
// Emulator: readout boards and trigger processor in one thread, with one clock. Start it, look at it, stop it; one run per object.
//
// The run: start markers of every board (three times), packets as the schedule says, end markers (three times), the last answers, end.
// The last answers are waited for until every event is answered and nothing comes any more, or nothing has come for drain_ms. While events
// are unanswered, end markers are sent again every 5 ms: a receiver that had no room for the last packets had none for the first markers either,
// and only a marker tells it what it missed. An engine that did answer and has been silent since the end of sending may be stopped: it gets 5 s
// more. 30 s beyond drain_ms it all ends.
// Without boards it only checks what comes; without answers it only sends. With detectors and decisions the L0 trigger processor is in the
// loop too: one packet of a detector per turn, so that the boards stay on time.
//
// Thread rules: start and stop from one control thread; everything const from any thread at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulate/answer_book.hpp"
#include "emulate/answer_checker.hpp"
#include "emulate/config.hpp"
#include "emulate/decision_receiver.hpp"
#include "emulate/detector_bank.hpp"
#include "emulate/run_watch.hpp"
#include "emulate/sample.hpp"
#include "emulate/schedule.hpp"
#include "emulate/tel62.hpp"
#include "nanet/flow/thread.hpp"
#include "nanet/link/udp.hpp"

namespace nanet::emulate {

enum class RunPhase : std::uint8_t { ready, sending, draining, finished };

// Totals of the run up to now. While it runs, they may differ by what happened during the copy; when finished they are exact.
struct EmulatorSnapshot {
  RunPhase phase = RunPhase::ready;
  std::uint64_t elapsed_ns = 0;    // since the start of the run; stands still when sending ends
  std::uint64_t packets_sent = 0;  // of all boards, without markers
  std::uint64_t markers_sent = 0;  // of all boards
  std::uint64_t events_sent = 0;   // whole events, whatever the number of boards
  AnswerCounts answers;
  link::LinkStats link;  // tx_dropped: given up by the kernel here; rx_kernel_dropped: answers lost here, not in the engine
  StallTotals stalls;
  flow::LatencyHistogram latency;         // [ns], one record per answered event
  flow::LatencyHistogram latency_clean;   // the same without answers in flight while this thread stalled
  flow::LatencyHistogram send_lateness;   // [ns], one record per packet of a board: the emulator's own overload
  std::vector<CoursePoint> course;        // steps of 0.1 s, oldest first
  std::vector<DetectorCounts> detectors;  // in the order of the configuration
  DecisionCounts decisions;
  std::uint64_t decisions_kernel_dropped = 0;
  flow::LatencyHistogram decision_latency;  // [ns], one record per trigger of an event

  // Sent and not answered: in flight while the run lasts, lost when it is finished.
  std::uint64_t events_unanswered() const { return events_sent - answers.answered; }
};

class Emulator {
 public:
  // Makes the pool, opens and binds the sockets, allocates everything. Throws SetupError.
  explicit Emulator(const EmulatorConfig& config);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  // Throws SetupError when the thread cannot be pinned as asked, or on a second start.
  void start();

  // Ends the sending, waits for the drain, joins. Does nothing before start() and after the end.
  void stop();

  // False before start() and when the run is over (by itself or by stop()).
  bool running() const { return running_.load(std::memory_order_acquire); }

  EmulatorSnapshot snapshot() const;

  // Where the answers are awaited, with the actual port; port 0: nothing is awaited.
  link::Endpoint answers_endpoint() const { return answers_link().local(); }
  // The same for decisions; port 0: none are awaited.
  link::Endpoint decisions_endpoint() const { return decision_link_ ? decision_link_->local() : link::Endpoint{"udp", 0, 0}; }

  // One line for each thing the kernel limited, "problem (why) suggestion".
  std::vector<std::string> notes() const;

  const EmulatorConfig& config() const { return config_; }
  // None without boards.
  const Sample* sample() const { return sample_ ? &*sample_ : nullptr; }
  const Schedule* schedule() const { return schedule_ ? &*schedule_ : nullptr; }

 private:
  void run();
  void send_and_receive();
  void drain();
  std::uint64_t drained_ns(std::uint64_t began_ns, std::uint64_t heard_ns) const;
  void send_once();
  bool must_wait(std::uint64_t now_ns);
  bool receive_once();
  bool receive_decisions();
  void rest(std::uint64_t now_ns, std::uint64_t due_ns);
  std::uint64_t boards_ns(std::uint64_t now_ns) const;
  std::uint64_t look();
  link::Link& answers_link() const { return answers_link_ ? *answers_link_ : *link_; }
  link::LinkStats link_stats() const;
  std::uint64_t events_sent() const;
  std::uint64_t events_answered() const { return checker_ ? checker_->answered() : 0; }

  const EmulatorConfig config_;
  std::optional<Schedule> schedule_;
  std::optional<Sample> sample_;
  std::optional<AnswerBook> book_;
  std::unique_ptr<link::Link> link_;          // of the boards, and of the answers if they have none of their own
  std::unique_ptr<link::Link> answers_link_;  // none: `link_`
  StallWatch stalls_;
  Course course_;
  std::optional<Tel62> tel62_;
  std::optional<AnswerChecker> checker_;
  std::optional<DetectorBank> detectors_;
  std::unique_ptr<link::UdpLink> decision_link_;
  std::optional<DecisionReceiver> decisions_;

  std::uint64_t events_given_up_ = 0;  // not waited for any longer, see in_flight_packets_max
  std::uint64_t last_send_ns_ = 0;
  std::uint64_t last_heard_ns_ = 0;

  flow::Thread thread_;
  std::atomic<bool> running_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<RunPhase> phase_{RunPhase::ready};
  std::atomic<std::uint64_t> start_ns_{0};
  std::atomic<std::uint64_t> end_ns_{0};  // of sending; 0: it goes on
};

}  // namespace nanet::emulate
