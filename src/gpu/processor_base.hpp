// SPDX-License-Identifier: Apache-2.0
// What the runtimes on a GPU have in common: the contract's memory as the GPU sees it, the state on the device, progress and faults.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/cuda_types.hpp"
#include "gpu/device_layout.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/merge_layout.hpp"
#include "gpu/tables.hpp"
#include "nanet/gpu/event_processor.hpp"

namespace nanet::gpu {

class ProcessorBase : public EventProcessor {
 public:
  ProcessorBase(const EventProcessorConfig& config, ContractMemory memory);

  std::uint32_t poll(std::uint64_t now_ns, std::uint64_t caught_up_ns) final;
  bool busy() const final { return memory_.completions.peek() != nullptr; }
  void finish() final;
  Totals totals() const final;
  const std::string& fault() const final { return fault_; }
  std::uint64_t events_unjudged() const final { return events_unjudged_; }
  rich::Spectra spectra() const final { return spectra_; }
  std::span<const std::uint64_t, rich::kChannelCount> channel_hits() const final { return channel_hits_; }
  std::span<const rich::EventSample> samples() const final { return samples_; }
  const char* device_name() const final { return properties_.name; }

 protected:
  // Gives the GPU what it may begin with. False: it failed.
  virtual cudaError_t dispatch() = 0;
  // Event building, when no buffer is left: sees to it that what is open is closed. The resident kernel does so by itself.
  virtual cudaError_t drain() { return cudaSuccess; }
  // cudaSuccess: the GPU does nothing for us any more; cudaErrorNotReady: it does.
  virtual cudaError_t query() const = 0;

  std::uint64_t consumed() const { return std::atomic_ref(memory_.completions.indexes().consumed).load(std::memory_order_acquire); }
  void tell(Stop stop) {
    for (std::uint32_t group = 0; group < work_.group_count; ++group) {
      std::atomic_ref(state_->words.host()[group].stop).store(static_cast<std::uint64_t>(stop), std::memory_order_release);
    }
  }

  std::uint64_t told_caught_up_ns() const { return caught_up_ns_; }
  std::uint32_t blocks_together(const void* kernel) const;  // that fit on the GPU

  struct Merging {
    explicit Merging(const event::MergerConfig& config);
    DeviceArray<std::byte> table;
    DeviceArray<MergeGroup> group{1};
    DeviceArray<MergeState> state{1};
  };

  // Device memory. Held by a pointer, so that it can be left alone if a kernel never ends: freeing it would wait for ever.
  struct State {
    State(std::uint32_t group_count, const rich::Decision& host_decision);
    PinnedArray<HostWords> words{kBuffersInFlightMax};
    PinnedArray<Report> report{1};
    PinnedArray<rich::EventSample> sample_events{rich::kSamples};
    DeviceArray<Group> groups;
    DeviceArray<Order> order{1};
    DeviceArray<RingTotals> totals{1};
    DeviceArray<BodyTotals> bodies{1};
    DeviceArray<rich::Spectra> spectra{1};
    DeviceArray<std::uint64_t> channel_hits{rich::kChannelCount};
    DeviceArray<DeviceSamples> samples;
    DeviceArray<rich::ConditionTable> conditions;
    DeviceArray<rich::ChannelSet> mask;
    Tables tables;
    std::optional<Merging> merging;
  };

  const EventProcessorConfig config_;
  ContractMemory memory_;
  cudaDeviceProp properties_{};
  std::vector<std::unique_ptr<Registration>> registrations_;
  std::unique_ptr<State> state_;
  RuntimeKernels kernels_{};
  Work work_{};
  MergeWork merge_{};  // with config_.merge

 private:
  void select_device();
  void register_memory();
  void place_payloads(const flow::PayloadMemory& payloads, const std::string& clop, DeviceClop& placed);
  void set_up_merging();
  void begin_where_others_ended();
  const Registration& add_registration(std::span<std::byte> memory, const std::string& name);
  void tell_time(std::uint64_t now_ns);
  void give_up(const std::string& why);
  std::uint32_t discard();
  bool wait_until_ended(std::uint64_t timeout_ns) const;
  void collect();

  std::uint64_t consumed_seen_ = 0;
  std::uint64_t caught_up_ns_ = 0;  // as the caller said last
  std::uint64_t told_ns_ = 0;
  std::uint64_t progress_ns_ = 0;
  bool busy_ = false;  // when poll looked last
  std::uint64_t events_unjudged_ = 0;
  bool ended_ = false;
  std::string fault_;
  rich::Spectra spectra_{};
  std::array<std::uint64_t, rich::kChannelCount> channel_hits_{};
  std::vector<rich::EventSample> samples_;
};

std::unique_ptr<EventProcessor> make_persistent(const EventProcessorConfig& config, ContractMemory memory);
std::unique_ptr<EventProcessor> make_launched(const EventProcessorConfig& config, ContractMemory memory);
std::unique_ptr<EventProcessor> make_launched_rounds(const EventProcessorConfig& config, ContractMemory memory);  // event building

}  // namespace nanet::gpu
