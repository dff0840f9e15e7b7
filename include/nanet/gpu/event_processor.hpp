// SPDX-License-Identifier: Apache-2.0
// EventProcessor: a GPU as the consumer of completions and the producer of answers. It reads packets where the link put them, unpacks the
// events, finds their rings, judges them, writes MTP packets and descriptors, rings the doorbell and gives the buffers back: all of the contract
// (contract.hpp) to the right of the completion queue.
//
// With the runtime `persistent` the host does nothing at all between a completion and a doorbell; with `launch` and `graph` it launches a
// kernel for each completion. The kernels' work and their answers are the same.
//
// Answers: one MTP packet per chunk of packets (about 64 events), in the order of the buffers. With event building, one for up to 64 of the events
// that a buffer completes or closes, in any order.
// Thread rules: one thread calls poll and finish; busy() and totals() from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nanet/event/parts.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/payload_memory.hpp"
#include "nanet/flow/tx_ring.hpp"
#include "nanet/gpu/config.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/rich/spectra.hpp"

namespace nanet::gpu {

// The longest packet that the kernels take.
inline constexpr std::uint32_t kPacketBytesMax = 1472;

enum class IncompletePolicy : std::uint8_t { drop, process };

// Event building: the most answers in one packet.
inline constexpr std::uint32_t kMergedAnswersMax = 64;

// Event building: the parts of an event that several sources send are put together before rings are sought (docs/design/gpu-merge.md).
struct EventMerge {
  event::MergerConfig merger;  // takes 304 bytes of the GPU's memory for each of 4 * open_events_max events
  IncompletePolicy incomplete = IncompletePolicy::drop;  // what becomes of events that miss a part
  std::vector<std::uint32_t> first_source;  // by Completion::clop: where the sources of that CLOP begin in the numbering over all
};

struct EventProcessorConfig {
  GpuConfig gpu;
  rich::FinderConfig finder;
  rich::Decision decision;
  std::optional<EventMerge> merge;       // with it one buffer is worked on at a time, whatever gpu.buffers_in_flight says
  std::uint8_t answer_source_id = 0x1C;  // of the MTP packets
  std::uint8_t answer_source_sub_id = 0;
};

// The contract's memory, which must outlive the processor. No one else consumes these completions or fills that ring.
struct ContractMemory {
  flow::CompletionQueue& completions;
  std::vector<flow::Clop*> clops;   // by Completion::clop; at most kClopsMax
  flow::TxRing* answers = nullptr;  // null: rings are found and counted, nothing is sent. Slots of at least 1472 bytes
  std::vector<flow::PayloadMemory> payloads = {};  // by Completion::clop, of those in place; shorter or empty: the others are not
};
inline constexpr std::size_t kClopsMax = 16;

// Since the start of the run. During the run, a buffer or two less than what was given back.
struct Totals {
  std::uint64_t events = 0;
  std::uint64_t rings = 0;
  std::uint64_t electrons = 0;
  std::uint64_t hits_unmapped = 0;
  std::uint64_t hits_masked = 0;
  std::uint64_t rings_over_answer = 0;  // events
  std::uint64_t rings_outside = 0;
  // Of event building. Each event that was closed is in `events` or in events_discarded.
  event::MergerStats merger{};
  std::uint64_t events_discarded = 0;
  std::uint64_t packets_bad_body = 0;  // of those in place that the host could not check: wrong checksum or lengths of events
  std::uint64_t events_bad_body = 0;   // events (or parts) in them
};

class EventProcessor {
 public:
  // Registers the memory with the GPU and starts the resident kernel, if there is one. Throws SetupError.
  static std::unique_ptr<EventProcessor> make(const EventProcessorConfig& config, ContractMemory memory);
  virtual ~EventProcessor() = default;

  // One turn: makes sure that present completions are worked on. Returns the buffers given back since the last call. now_ns: of
  // CLOCK_MONOTONIC, as are the arrivals in completions.
  // caught_up_ns: for event building. Everything that had arrived by then has been handed over, so what has waited long enough at that time can
  // be closed; 0: nothing is known.
  virtual std::uint32_t poll(std::uint64_t now_ns, std::uint64_t caught_up_ns = 0) = 0;

  // Whether the GPU has buffers that it has not given back.
  virtual bool busy() const = 0;

  // Waits, within the watchdog's time, for the rest; then the GPU is free. Event building closes what is open: for its answers the TX ring needs
  // open_events_max / kMergedAnswersMax + 2 free descriptors, unless another thread sends meanwhile.
  virtual void finish() = 0;

  virtual Totals totals() const = 0;

  // Why the GPU was given up; empty while all is well. "problem (why) suggestion". From then on buffers are given back unjudged.
  virtual const std::string& fault() const = 0;
  virtual std::uint64_t events_unjudged() const = 0;  // in the buffers given back like that; with event building parts of events

  // After finish().
  virtual rich::Spectra spectra() const = 0;
  virtual std::span<const std::uint64_t, rich::kChannelCount> channel_hits() const = 0;
  virtual std::span<const rich::EventSample> samples() const = 0;

  virtual const char* device_name() const = 0;
};

}  // namespace nanet::gpu
