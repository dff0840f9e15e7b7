// SPDX-License-Identifier: Apache-2.0
// What host and kernels agree on for event building, beside device_layout.hpp. docs/design/gpu-merge.md tells how a round goes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "event/part_table.hpp"
#include "gpu/device_layout.hpp"

namespace nanet::gpu {

static_assert(kMergedAnswersMax == kChunkEvents);

enum class RoundKind : std::uint8_t {
  buffer,  // a buffer's parts are added
  tick,    // no buffer is there, and the oldest open event is due
  drain,   // end of the run: whatever is open is closed
  stop,    // no round: the blocks are to end
};

// One round, as the blocks get it: from the leading block or from the host.
struct Round {
  std::uint64_t number = 0;           // of the completion, for block 0 if it is to look there
  std::uint64_t caught_up_ns = 0;     // everything that had arrived by then was worked on before this round
  std::uint64_t arrival_ns = 0;       // Completion::last_packet_ns, if is_told
  const std::byte* buffer = nullptr;  // in the CLOP, or its copy on the device
  BufferWord word{};                  // packet_count 0: without a buffer
  std::uint32_t index = 0;            // counts rounds, modulo 2^32
  std::uint32_t tx_consumed = 0;      // descriptors that the sender had done with, modulo 2^32, if is_told
  std::uint16_t ranks = 1;            // blocks that take part
  std::uint16_t status = 0;           // Completion::status, if is_told
  RoundKind kind = RoundKind::stop;
  bool is_told = false;  // by the host; otherwise block 0 looks at the completion and tells the others
};

// How the blocks of a round speak with one another.
struct alignas(128) MergeGroup {
  std::uint32_t relay[8];  // two pieces of 16 bytes that the leading block writes for the others: {index, BufferWord, kind and ranks},
                           // {index, caught_up_ns, -}
  alignas(128) std::uint32_t head[4];  // {index, status, arrival_ns} of the round's buffer, by block 0
  alignas(128) std::uint32_t arrived;  // blocks that came to a barrier of this round, all its barriers together
  alignas(128) std::uint64_t done;     // index of the round done last
};

// What goes from round to round.
struct alignas(128) MergeState {
  std::uint64_t clock_ns;            // of the parts added last; never goes back
  std::uint64_t seen_ns[kClopsMax];  // arrival_ns of each CLOP's newest buffer
  std::uint64_t discarded;           // events
  std::uint32_t sources;             // bit s: source s has sent data in this run
};

// Everything that stays as it is while the processor lives.
struct MergeWork {
  event::MergerConfig config;
  event::PartTableMemory table;
  MergeGroup* group;
  MergeState* state;
  std::uint32_t clop_count;
  std::uint8_t first_source[kClopsMax];
  bool drop_incomplete;
};

}  // namespace nanet::gpu
