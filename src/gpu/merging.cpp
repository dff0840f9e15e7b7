// SPDX-License-Identifier: Apache-2.0
// Event building on the host's side: the table's memory, and the runtimes launch and graph, which launch a kernel for each round. One round is on the
// GPU at a time, on one stream. Its blocks wait for one another, so all of them must be on the GPU together: there are never more than fit, and a
// cooperative launch begins with all or none, whatever else runs there (two such kernels that each got half of the GPU would wait for ever).
#include <algorithm>
#include <atomic>

#include "gpu/processor_base.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::gpu {

ProcessorBase::Merging::Merging(const event::MergerConfig& config) : table(event::part_table_bytes(config)) {}

void ProcessorBase::set_up_merging() {
  const EventMerge& merge = *config_.merge;
  state_->merging.emplace(merge.merger);
  Merging& memory = *state_->merging;
  merge_.config = merge.merger;
  merge_.table = event::part_table_memory(merge.merger, memory.table.get());
  merge_.group = memory.group.get();
  merge_.state = memory.state.get();
  merge_.clop_count = static_cast<std::uint32_t>(memory_.clops.size());
  for (std::size_t c = 0; c < memory_.clops.size(); ++c) merge_.first_source[c] = static_cast<std::uint8_t>(merge.first_source[c]);
  merge_.drop_incomplete = merge.incomplete == IncompletePolicy::drop;
}

std::uint32_t ProcessorBase::blocks_together(const void* kernel) const {
  int per_sm = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, static_cast<int>(kernels_.threads), kernels_.shared_bytes),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return static_cast<std::uint32_t>(per_sm * properties_.multiProcessorCount);
}

namespace {

class LaunchedRounds final : public ProcessorBase {
 public:
  LaunchedRounds(const EventProcessorConfig& config, ContractMemory memory)
      : ProcessorBase(config, std::move(memory)), finder_(config_.finder), tables_(state_->tables.device()) {
    if (properties_.cooperativeLaunch == 0) {
      throw SetupError("GPU: merge with a kernel a buffer", std::string(properties_.name) + " has no cooperative launches",
                       "set runtime: persistent, or cpu");
    }
    const std::uint32_t room = std::min(blocks_together(kernels_.item), 0xFFFFu);
    const auto processors = static_cast<std::uint32_t>(properties_.multiProcessorCount);
    work_.group_blocks = config_.gpu.blocks != 0 ? config_.gpu.blocks : std::min(room, processors);
    if (work_.group_blocks > room) {
      throw SetupError("GPU: " + std::to_string(work_.group_blocks) + " blocks do not fit",
                       std::string(properties_.name) + " takes " + std::to_string(room) + " of this finder's together",
                       "lower blocks");
    }
    std::uint32_t buffer_bytes = 0;
    for (const flow::Clop* clop : memory_.clops) buffer_bytes = std::max(buffer_bytes, clop->buffer_bytes());
    if (config_.gpu.path == BufferPath::copied) copy_ = DeviceArray<std::byte>(buffer_bytes);
    if (config_.gpu.runtime == Runtime::graph) make_graph();
  }
  ~LaunchedRounds() override {
    finish();
    if (graph_exec_ != nullptr) cudaGraphExecDestroy(graph_exec_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

 private:
  cudaError_t dispatch() override {
    if (!is_done() || consumed() != dispatched_) return cudaSuccess;
    // Of this thread, which may serve other GPUs too.
    if (const cudaError_t error = cudaSetDevice(config_.gpu.device); error != cudaSuccess) return error;
    const Completion* const completion = memory_.completions.peek();
    if (completion != nullptr) return launch_buffer(*completion);
    caught_up_ns_ = std::max(caught_up_ns_, told_caught_up_ns());  // nothing was there after it was said
    const auto age_ns = static_cast<std::int64_t>(caught_up_ns_ - report().oldest_ns);
    if (open_count() == 0 || age_ns < static_cast<std::int64_t>(merge_.config.window_ns)) return cudaSuccess;
    return launch_other(RoundKind::tick, open_count());
  }

  cudaError_t drain() override {
    if (const cudaError_t error = cudaSetDevice(config_.gpu.device); error != cudaSuccess) return error;
    return launch_other(RoundKind::drain, event::part_table_slots(merge_.config));
  }

  cudaError_t query() const override { return cudaStreamQuery(stream_.get()); }

  Report& report() const { return *state_->report.host(); }
  bool is_done() const { return std::atomic_ref(report().round).load(std::memory_order_acquire) == round_.index; }
  std::uint32_t open_count() const {
    const event::MergerStats stats = totals().merger;
    return static_cast<std::uint32_t>(stats.events_opened - stats.events_complete - stats.events_missing_parts -
                                      stats.events_overflow);
  }

  // round_ is what the kernel gets.
  void begin(RoundKind kind, std::uint32_t blocks) {
    const std::uint32_t index = round_.index + 1;
    round_ = {};
    round_.kind = kind;
    round_.index = index;
    round_.caught_up_ns = caught_up_ns_;
    round_.ranks = static_cast<std::uint16_t>(std::clamp(blocks, 1u, work_.group_blocks));
    round_.is_told = true;
    if (memory_.answers != nullptr) {
      round_.tx_consumed = static_cast<std::uint32_t>(
          std::atomic_ref(memory_.answers->indexes().consumed).load(std::memory_order_acquire));
    }
  }

  cudaError_t launch_other(RoundKind kind, std::uint32_t things) {
    begin(kind, 1 + things / kernels_.threads);
    return launch_kernel();
  }

  cudaError_t launch_kernel() {
    return cudaLaunchCooperativeKernel(kernels_.item, dim3(round_.ranks), dim3(kernels_.threads), arguments_, kernels_.shared_bytes,
                                       stream_.get());
  }

  cudaError_t launch_buffer(const Completion& completion) {
    const BufferWord word{completion.buffer_index, completion.packet_count, completion.stride_bytes, completion.clop,
                          completion.packet_events_max};
    begin(RoundKind::buffer, plan_chunks(word).chunks);
    ++dispatched_;
    const DeviceClop& clop = work_.clops[word.clop];
    const std::byte* const buffer = clop.buffers + std::uint64_t{word.buffer_index} * clop.buffer_bytes;
    const bool copied = copy_.count() != 0;
    round_.word = word;
    round_.arrival_ns = completion.last_packet_ns;
    round_.status = completion.status;
    round_.buffer = copied ? copy_.get() : buffer;
    if (graph_exec_ != nullptr) return launch_graph(completion, buffer);
    if (copied) {
      const cudaError_t error = cudaMemcpyAsync(copy_.get(), buffer, completion.bytes, cudaMemcpyHostToDevice, stream_.get());
      if (error != cudaSuccess) return error;
    }
    return launch_kernel();
  }

  cudaError_t launch_graph(const Completion& completion, const std::byte* buffer) {
    if (copy_node_ != nullptr) {
      const cudaError_t error = cudaGraphExecMemcpyNodeSetParams1D(graph_exec_, copy_node_, copy_.get(), buffer, completion.bytes,
                                                                   cudaMemcpyHostToDevice);
      if (error != cudaSuccess) return error;
    }
    const cudaKernelNodeParams parameters = kernel_parameters();
    const cudaError_t error = cudaGraphExecKernelNodeSetParams(graph_exec_, kernel_node_, &parameters);
    return error != cudaSuccess ? error : cudaGraphLaunch(graph_exec_, stream_.get());
  }

  cudaKernelNodeParams kernel_parameters() {
    cudaKernelNodeParams parameters{};
    parameters.func = const_cast<void*>(kernels_.item);
    parameters.gridDim = dim3(round_.ranks);
    parameters.blockDim = dim3(kernels_.threads);
    parameters.sharedMemBytes = kernels_.shared_bytes;
    parameters.kernelParams = arguments_;
    return parameters;
  }

  void make_graph() {
    check(cudaGraphCreate(&graph_, 0), "cudaGraphCreate");
    std::size_t before = 0;
    if (copy_.count() != 0) {
      check(cudaGraphAddMemcpyNode1D(&copy_node_, graph_, nullptr, 0, copy_.get(), work_.clops[0].buffers, copy_.count(),
                                     cudaMemcpyHostToDevice),
            "cudaGraphAddMemcpyNode1D");
      before = 1;
    }
    const cudaKernelNodeParams parameters = kernel_parameters();
    check(cudaGraphAddKernelNode(&kernel_node_, graph_, &copy_node_, before, &parameters), "cudaGraphAddKernelNode");
    cudaLaunchAttributeValue together{};
    together.cooperative = 1;
    check(cudaGraphKernelNodeSetAttribute(kernel_node_, cudaLaunchAttributeCooperative, &together),
          "cudaGraphKernelNodeSetAttribute");
    check(cudaGraphInstantiate(&graph_exec_, graph_, 0), "cudaGraphInstantiate");
  }

  rich::FinderConfig finder_;
  DeviceTables tables_;
  Round round_;
  void* arguments_[5] = {&finder_, &tables_, &work_, &merge_, &round_};
  Stream stream_;
  DeviceArray<std::byte> copy_;  // path copied: of the buffer
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t graph_exec_ = nullptr;
  cudaGraphNode_t copy_node_ = nullptr;
  cudaGraphNode_t kernel_node_ = nullptr;
  std::uint64_t dispatched_ = work_.first_number;
  std::uint64_t caught_up_ns_ = 0;  // everything that had arrived by then was worked on
};

}  // namespace

std::unique_ptr<EventProcessor> make_launched_rounds(const EventProcessorConfig& config, ContractMemory memory) {
  return std::make_unique<LaunchedRounds>(config, std::move(memory));
}

}  // namespace nanet::gpu
