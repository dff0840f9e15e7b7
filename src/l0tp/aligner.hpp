// SPDX-License-Identifier: Apache-2.0
// Aligner: stands before a TriggerProcessor and gives it the primitives of all inputs in order of time, whenever they come.
//
// The alignment memory holds 51 to 410 us, so a detector whose packets come later than that is late, or out of range. On a machine that
// stops a process for tens of milliseconds all are. Here the primitives of those that are ahead wait for the slowest, in memory
// that is as large as the longest stop.
//
// Terms
//   heard     of an input: the newest time in its packets, from a primitive or from the header of a packet, which may be empty.
//   patience  an input is waited for until no packet of it came for so long; then the others go on without it until it is heard again.
//   reached   the oldest of what was heard of the inputs that are waited for. With none, the newest of all.
//   released  up to here the processor has the primitives. It follows `reached` in steps of a quarter of the alignment memory, with a
//             decide() after each, so nothing that the aligner releases is out of the memory's range.
//
// What does not wait: a primitive before `released` (its input was given up, or it is late in its own stream) and one more than
// kAheadTicksMax after it (a wild clock) go to the processor at once, which counts them. Such headers vote there; when a jump in time is
// decided, all that waits is handed over and the aligner begins again.
//
// An input has room for kHeldMax primitives; from seven eighths on, what is missing is not waited for: time goes on to its oldest one.
//
// Rules: those of TriggerProcessor. Its silence_us must be 0: the patience says what silence is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "l0tp/trigger_processor.hpp"

namespace nanet::l0tp {

class Aligner {
 public:
  static constexpr std::uint64_t kHeldMax = std::uint64_t{1} << 20;  // primitives of an input: 16 MiB, touched when they are needed
  static constexpr std::uint64_t kAheadTicksMax = 100'000'000'000;   // 9.7 s

  // The processor must outlive it. config: what the processor was made with.
  Aligner(TriggerProcessor& processor, const Config& config, std::uint64_t patience_ns);

  // One UDP payload. Whatever is in it, it is counted.
  void take(std::span<const std::byte> datagram, std::uint64_t now_ns);

  // As TriggerProcessor::decide: as many as there is room, call again.
  std::size_t decide(std::uint64_t now_ns, std::span<Decision> room);

  // Nothing more has arrived up to now: inputs that were silent for longer than the patience are not waited for.
  void give_up_on_silent(std::uint64_t now_ns);

  // Something was heard since the start or the last flush, and no one is waited for: the end of a run.
  bool all_silent() const { return started_ && waited_ == 0; }

  // End of run: hands over all that waits; then as TriggerProcessor::flush.
  std::size_t flush(std::uint64_t now_ns, std::span<Decision> room);

  // Primitives of an input that wait here. Precondition: input < input_count().
  std::uint64_t held(std::uint32_t input) const { return queues_[input].count(); }

 private:
  // time << 16 | primitive ID, as in the processor's cells.
  struct Held {
    std::uint64_t word;
    std::uint64_t arrived_ns;
  };
  // A ring in the order of time.
  struct Queue {
    std::unique_ptr<Held[]> entries;
    std::uint64_t first = 0;
    std::uint64_t end = 0;

    std::uint64_t count() const { return end - first; }
    Held& at(std::uint64_t index) const { return entries[index & (kHeldMax - 1)]; }
    void insert(const Held& held);
  };

  void start(std::uint64_t wire_time, std::uint64_t now_ns);
  void hear(std::uint32_t input, std::uint64_t wire_time);
  void keep(std::uint32_t input, const TriggerProcessor::Found& primitive, std::uint64_t now_ns);
  std::uint64_t unwrapped(std::uint64_t wire_time) const;
  bool waits_for_its_turn(std::uint64_t time) const { return time - released_ - 1 < kAheadTicksMax; }
  std::uint64_t reached() const;
  std::uint64_t oldest_held() const;
  bool release_step();
  void release(std::uint32_t input, std::uint64_t last_time);
  bool processor_jumped();
  void hand_over_all();

  TriggerProcessor& processor_;
  const std::uint64_t patience_ns_;
  const std::uint64_t step_ticks_;
  const std::uint32_t input_count_;
  bool started_ = false;
  std::uint32_t waited_ = 0;  // bit: input
  std::uint64_t released_ = 0;
  std::uint64_t forced_ = 0;  // time goes on to here, whoever is missing
  std::uint64_t time_jumps_ = 0;
  std::array<std::uint64_t, kInputsMax> heard_{};
  std::array<std::uint64_t, kInputsMax> heard_ns_{};
  std::array<Queue, kInputsMax> queues_;
};

}  // namespace nanet::l0tp
