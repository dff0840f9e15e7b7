// SPDX-License-Identifier: Apache-2.0
// A gpu::EventProcessor that is a thread of this machine. Like a GPU it only reads and writes the contract's memory: whoever sleeps is not
// woken by it. It is as slow as asked, in polls and not in time, so that a test which passes does not depend on how fast the machine is.
// Where it is told to merge, it does.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_merge.hpp"
#include "na62/gpu_consumer.hpp"
#include "nanet/flow/wait.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/wire/mgp.hpp"
#include "nanet/wire/mtp.hpp"

namespace nanet::engine::test {

// What a fake does, and what it saw; shared with the test, which outlives it.
struct FakeGpuScript {
  std::uint64_t polls_a_buffer = 0;           // a buffer is done when it was looked for so often since it began
  std::uint64_t fault_after_buffers = ~0ull;  // then it is given up ...
  bool ends = true;                           // ... and gives the rest back, or never ends
  std::uint64_t refuse_every = 0;             // each so many-th packet is refused, as if no host had been able to check it; 0: none
  std::atomic<std::uint64_t> polls{0};
  std::atomic<std::uint64_t> finished{0};  // times that finish() was called
  gpu::EventProcessorConfig config{};
};

class FakeGpu final : public gpu::EventProcessor {
 public:
  FakeGpu(FakeGpuScript& script, const gpu::EventProcessorConfig& config, gpu::ContractMemory memory)
      : script_(script), memory_(std::move(memory)), source_id_(config.answer_source_id), source_sub_id_(config.answer_source_sub_id) {
    script_.config = config;
    if (config.merge) {
      merge_.emplace(
          *config.merge, [this](const event::TableEvent& event) { take_merged(event); },
          [this](std::span<const std::byte> packet) { return refuses(packet); });
    }
    thread_ = std::thread([this] { work(); });
  }
  ~FakeGpu() override { end(); }

  std::uint32_t poll(std::uint64_t, std::uint64_t caught_up_ns) override {
    script_.polls.fetch_add(1, std::memory_order_release);
    caught_up_ns_.store(caught_up_ns, std::memory_order_release);
    if (fault_.empty() && done_.load(std::memory_order_acquire) == script_.fault_after_buffers) {
      fault_ = "GPU fake was given up (the test says so) see the test";
      end();
    }
    if (!fault_.empty()) discard();
    const std::uint64_t done = done_.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(done - std::exchange(done_seen_, done));
  }
  bool busy() const override { return memory_.completions.peek() != nullptr; }
  void finish() override {
    script_.finished.fetch_add(1);
    end();
    if (!merge_ || !fault_.empty() || drained_) return;
    merge_->drain();
    end_round(0);
    drained_ = true;
  }
  gpu::Totals totals() const override {
    const std::lock_guard lock(told_mutex_);
    return {.events = events_.load(),
            .rings = rings_.load(),
            .merger = merger_told_,
            .events_discarded = discarded_told_,
            .packets_bad_body = packets_bad_.load(),
            .events_bad_body = events_bad_.load()};
  }
  const std::string& fault() const override { return fault_; }
  std::uint64_t events_unjudged() const override { return unjudged_; }
  rich::Spectra spectra() const override { return spectra_; }
  std::span<const std::uint64_t, rich::kChannelCount> channel_hits() const override { return channel_hits_; }
  std::span<const rich::EventSample> samples() const override { return samples_; }
  const char* device_name() const override { return "fake"; }

 private:
  void end() {
    ending_.store(true);
    if (thread_.joinable()) thread_.join();
  }

  // The thread's.
  void work() {
    while (!ending_.load(std::memory_order_relaxed)) {
      const std::uint64_t caught_up_ns = caught_up_ns_.load(std::memory_order_acquire);  // before the look at the queue
      const Completion* completion = memory_.completions.peek();
      if (completion == nullptr || done_.load() == script_.fault_after_buffers) {
        if (completion == nullptr && merge_) tick(caught_up_ns);
        flow::cpu_relax();
        continue;
      }
      const std::uint64_t polls_then = script_.polls.load() + script_.polls_a_buffer;
      while (script_.polls.load(std::memory_order_acquire) < polls_then && !ending_.load(std::memory_order_relaxed))
        std::this_thread::yield();
      if (ending_.load()) return;
      merge_ ? merge(*completion) : judge(*completion);
      memory_.clops[completion->clop]->release();
      memory_.completions.pop();
      done_.fetch_add(1, std::memory_order_release);
    }
  }

  bool refuses(std::span<const std::byte> packet) {
    if (script_.refuse_every == 0 || ++packets_seen_ % script_.refuse_every != 0) return false;
    packets_bad_.fetch_add(1);
    events_bad_.fetch_add(static_cast<std::uint64_t>(packet[3]));
    return true;
  }

  // An answer packet for each packet of the buffer, or nothing to send; then the doorbell, by which no one is woken.
  void judge(const Completion& completion) {
    const flow::Clop& clop = *memory_.clops[completion.clop];
    for (const PacketRef& ref : clop.packet_index(completion.buffer_index).first(completion.packet_count)) {
      const auto packet = wire::MgpView::from_checked(clop.buffer(completion.buffer_index).subspan(ref.offset, ref.bytes));
      std::span<std::byte> slot;
      while (memory_.answers != nullptr && (slot = memory_.answers->slot()).empty()) std::this_thread::yield();
      if (refuses(packet.payload())) {
        if (memory_.answers == nullptr) continue;
        memory_.answers->post(0, 0, completion.first_packet_ns);
        ++posted_;
        continue;
      }
      wire::MtpWriter writer(slot.empty() ? std::span<std::byte>(nothing_) : slot);
      writer.begin(source_id_, source_sub_id_, packet.event(0).timestamp);
      for (std::size_t e = 0; e < packet.header().event_count; ++e) {
        const wire::MgpEvent event = packet.event(e);
        writer.add(answer({packet.slot_hits(e), event.hit_count}, event.timestamp, event.fine_time));
      }
      if (memory_.answers == nullptr) continue;
      memory_.answers->post(static_cast<std::uint32_t>(writer.finish().size()), 0, completion.first_packet_ns);
      ++posted_;
    }
    if (memory_.answers != nullptr) std::atomic_ref(memory_.answers->indexes().produced).store(posted_, std::memory_order_release);
  }

  // A round with a buffer.
  void merge(const Completion& completion) {
    merge_->add_buffer(completion, *memory_.clops[completion.clop]);
    end_round(completion.last_packet_ns);
  }

  void tick(std::uint64_t caught_up_ns) {
    if (caught_up_ns == ticked_ns_) return;
    ticked_ns_ = caught_up_ns;
    merge_->tick(caught_up_ns);
    end_round(caught_up_ns);
  }

  void take_merged(const event::TableEvent& event) {
    merged_.push_back(answer({event.hits, event.hit_count}, event::key_timestamp(event.key), event::key_fine_time(event.key)));
  }

  // Answer packets of what the round has closed, one doorbell, and the books.
  void end_round(std::uint64_t arrival_ns) {
    for (std::size_t first = 0; memory_.answers != nullptr && first < merged_.size(); first += gpu::kMergedAnswersMax) {
      const auto answers = std::span(merged_).subspan(first, std::min<std::size_t>(merged_.size() - first, gpu::kMergedAnswersMax));
      std::span<std::byte> slot;
      while ((slot = memory_.answers->slot()).empty()) std::this_thread::yield();
      wire::MtpWriter writer(slot);
      writer.begin(source_id_, source_sub_id_, answers.front().timestamp);
      for (const wire::Primitive& primitive : answers) writer.add(primitive);
      memory_.answers->post(static_cast<std::uint32_t>(writer.finish().size()), 0, arrival_ns);
      ++posted_;
    }
    if (memory_.answers != nullptr) std::atomic_ref(memory_.answers->indexes().produced).store(posted_, std::memory_order_release);
    merged_.clear();
    const std::lock_guard lock(told_mutex_);
    merger_told_ = merge_->stats();
    discarded_told_ = merge_->discarded();
  }

  wire::Primitive answer(const event::Event& hits, std::uint32_t timestamp, std::uint8_t fine_time) {
    const rich::EventRings rings = rich::find_rings_scalar({}, hits);
    const rich::Verdict verdict = rich::judge(rings, rich::Decision{}.cuts);
    events_.fetch_add(1);
    rings_.fetch_add(verdict.rings);
    spectra_.multiplicity[0] += 1;
    const wire::Primitive made{timestamp, fine_time, rich::primitive_id(verdict, rich::ConditionTable{})};
    if (samples_.empty()) samples_.push_back({.answer = made, .rings = rings});
    return made;
  }

  void discard() {
    const Completion* completion = nullptr;
    while (script_.ends && (completion = memory_.completions.peek()) != nullptr) {
      unjudged_ += completion->event_count;
      memory_.clops[completion->clop]->release();
      memory_.completions.pop();
      done_.fetch_add(1);
    }
  }

  FakeGpuScript& script_;
  gpu::ContractMemory memory_;
  const std::uint8_t source_id_;
  const std::uint8_t source_sub_id_;
  std::array<std::byte, wire::kMtpBytesMax> nothing_{};
  std::optional<FakeMerge> merge_;       // the thread's, and of who has joined it
  std::vector<wire::Primitive> merged_;  // answers of this round
  std::uint64_t ticked_ns_ = 0;
  bool drained_ = false;
  std::atomic<std::uint64_t> caught_up_ns_{0};
  mutable std::mutex told_mutex_;
  event::MergerStats merger_told_;
  std::uint64_t discarded_told_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t packets_seen_ = 0;  // the thread's
  std::atomic<std::uint64_t> packets_bad_{0};
  std::atomic<std::uint64_t> events_bad_{0};
  std::atomic<std::uint64_t> events_{0};
  std::atomic<std::uint64_t> rings_{0};
  std::atomic<std::uint64_t> done_{0};
  rich::Spectra spectra_;
  std::array<std::uint64_t, rich::kChannelCount> channel_hits_{};
  std::vector<rich::EventSample> samples_;
  std::atomic<bool> ending_{false};
  std::uint64_t done_seen_ = 0;  // the polling thread's
  std::uint64_t unjudged_ = 0;
  std::string fault_;
  std::thread thread_;
};

inline na62::GpuFactory fake_gpu(FakeGpuScript& script) {
  return [&script](const gpu::EventProcessorConfig& config, gpu::ContractMemory memory) {
    return std::make_unique<FakeGpu>(script, config, std::move(memory));
  };
}

}  // namespace nanet::engine::test
