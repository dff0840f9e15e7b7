// SPDX-License-Identifier: Apache-2.0
// FakeMerge: event building in rounds on an event::PartTable, as the GPU's kernels do it (src/gpu/kernels/merge_work.cuh), by one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "event/part_table.hpp"
#include "nanet/contract.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/gpu/event_processor.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::engine::test {

class FakeMerge {
 public:
  // answer: called for each event that a round answers, before its place is given back. refuses: called for each packet; true: its parts are not
  // added.
  FakeMerge(const gpu::EventMerge& merge, std::function<void(const event::TableEvent&)> answer,
            std::function<bool(std::span<const std::byte>)> refuses)
      : merge_(merge),
        answer_(std::move(answer)),
        refuses_(std::move(refuses)),
        memory_((event::part_table_bytes(merge.merger) + sizeof(Line) - 1) / sizeof(Line)),
        table_(merge.merger, event::part_table_memory(merge.merger, reinterpret_cast<std::byte*>(memory_.data()))),
        seen_ns_(merge.first_source.size()) {}

  // A round, or one more where a run begins in the buffer.
  void add_buffer(const Completion& completion, const flow::Clop& clop) {
    clock_ns_ = std::max(clock_ns_, completion.last_packet_ns);
    seen_ns_[completion.clop] = std::max(seen_ns_[completion.clop], completion.last_packet_ns);
    for (const PacketRef& ref : clop.packet_index(completion.buffer_index).first(completion.packet_count)) {
      const std::uint32_t source = merge_.first_source[completion.clop] + (ref.source & PacketRef::source_mask);
      if ((ref.source & PacketRef::run_start) != 0 && (sources_ >> source & 1) != 0) {
        end_round(Closing::flush);
        sources_ = 0;
      }
      sources_ |= 1u << source;
      const std::span<const std::byte> payload = clop.buffer(completion.buffer_index).subspan(ref.offset, ref.bytes);
      if (!refuses_(payload)) add_packet(payload, source);
    }
    end_round(Closing::expire);
  }

  // No buffer is there, and everything that had arrived by caught_up_ns was added.
  void tick(std::uint64_t caught_up_ns) {
    caught_up_ns_ = std::max(caught_up_ns_, caught_up_ns);
    clock_ns_ = std::max(clock_ns_, caught_up_ns);
    end_round(Closing::expire);
  }

  void drain() { end_round(Closing::drain); }

  event::MergerStats stats() const { return table_.stats(); }
  std::uint64_t discarded() const { return discarded_; }

 private:
  struct alignas(event::kPartTableAlignment) Line {
    std::array<std::byte, event::kPartTableAlignment> bytes{};
  };
  enum class Closing { expire, drain, flush };

  void add_packet(std::span<const std::byte> payload, std::uint32_t source) {
    const auto add = [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
      table_.add_part(source, event::event_key(event.timestamp, event.fine_time), hits, event.hit_count, clock_ns_, tally_);
    };
    if (wire::is_m2egp(payload)) return wire::for_each_event(wire::M2egpView::from_checked(payload), add);
    std::array<std::uint16_t, wire::kMgpScratchHits> scratch;
    wire::for_each_event(wire::MgpView::from_checked(payload), scratch.data(), add);
  }

  void end_round(Closing closing) {
    table_.commit(tally_);
    const std::uint32_t complete = table_.ready_count();
    const std::uint64_t expire_ns = std::max(*std::min_element(seen_ns_.begin(), seen_ns_.end()), caught_up_ns_);
    if (closing == Closing::flush) table_.flush({}, tally_);
    if (closing == Closing::drain) table_.drain(clock_ns_, {}, tally_);
    if (closing == Closing::expire && table_.expire_due(expire_ns)) table_.expire(expire_ns, {}, tally_);
    table_.commit(tally_);
    for (std::uint32_t i = 0; i < table_.ready_count(); ++i) {
      if (i < complete || merge_.incomplete == gpu::IncompletePolicy::process) {
        answer_(table_.ready(i));
      } else {
        ++discarded_;
      }
      table_.release(i, clock_ns_);
    }
    table_.finish_round();
  }

  const gpu::EventMerge merge_;
  const std::function<void(const event::TableEvent&)> answer_;
  const std::function<bool(std::span<const std::byte>)> refuses_;
  std::vector<Line> memory_;
  event::PartTable<event::HostAtomics> table_;
  event::PartTally tally_;
  std::vector<std::uint64_t> seen_ns_;  // of each link's newest buffer
  std::uint64_t clock_ns_ = 0;
  std::uint64_t caught_up_ns_ = 0;
  std::uint64_t discarded_ = 0;
  std::uint32_t sources_ = 0;  // bit s: s has sent data in this run
};

}  // namespace nanet::engine::test
