// SPDX-License-Identifier: Apache-2.0
// The runtimes launch and graph: the host sees a completion and launches a kernel for its buffer, on one of as many streams as buffers may be in
// flight. The kernel gives the buffer back and rings the doorbell, as the resident one does; the host only launches.
#include <algorithm>

#include "gpu/processor_base.hpp"

namespace nanet::gpu {
namespace {

// What one buffer in flight needs.
struct Flight {
  Stream stream;
  DeviceArray<std::byte> copy;  // path copied: of the buffer
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t graph_exec = nullptr;
  cudaGraphNode_t copy_node = nullptr;
  cudaGraphNode_t kernel_node = nullptr;

  Flight() = default;
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;
  ~Flight() {
    if (graph_exec != nullptr) cudaGraphExecDestroy(graph_exec);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
};

class Launched final : public ProcessorBase {
 public:
  Launched(const EventProcessorConfig& config, ContractMemory memory)
      : ProcessorBase(config, std::move(memory)),
        finder_(config_.finder),
        tables_(state_->tables.device()),
        blocks_max_(config_.gpu.blocks != 0 ? config_.gpu.blocks : 2 * static_cast<std::uint32_t>(properties_.multiProcessorCount)) {
    std::uint32_t buffer_bytes = 0;
    for (const flow::Clop* clop : memory_.clops) buffer_bytes = std::max(buffer_bytes, clop->buffer_bytes());
    for (std::uint32_t k = 0; k < config_.gpu.buffers_in_flight; ++k) {
      flights_.push_back(std::make_unique<Flight>());
      if (config_.gpu.path == BufferPath::copied) flights_.back()->copy = DeviceArray<std::byte>(buffer_bytes);
      if (config_.gpu.runtime == Runtime::graph) make_graph(*flights_.back());
    }
  }
  ~Launched() override { finish(); }

 private:
  cudaError_t dispatch() override {
    for (;;) {
      const std::uint64_t in_flight = dispatched_ - consumed();
      if (in_flight >= flights_.size()) return cudaSuccess;
      const Completion* const completion = memory_.completions.peek(in_flight);
      if (completion == nullptr || completion->sequence != static_cast<std::uint32_t>(dispatched_ + 1)) return cudaSuccess;
      BufferWord word{completion->buffer_index, completion->packet_count, completion->stride_bytes, completion->clop,
                      completion->packet_events_max};
      const std::uint32_t chunks = plan_chunks(word).chunks;
      if (memory_.answers != nullptr) {
        const std::uint64_t sent = std::atomic_ref(memory_.answers->indexes().consumed).load(std::memory_order_acquire);
        if (tx_first_ + chunks > sent + memory_.answers->capacity()) return cudaSuccess;
      }
      item_ = {dispatched_, tx_first_, completion->first_packet_ns, word, buffer_on_device(word)};
      const cudaError_t error = launch(*flights_[dispatched_ % flights_.size()], *completion, std::min(chunks, blocks_max_));
      if (error != cudaSuccess) return error;
      ++dispatched_;
      tx_first_ += chunks;
    }
  }

  cudaError_t query() const override {
    for (const auto& flight : flights_) {
      if (const cudaError_t state = cudaStreamQuery(flight->stream.get()); state != cudaSuccess) return state;
    }
    return cudaSuccess;
  }

  const std::byte* buffer_on_device(BufferWord word) const {
    const DeviceClop& clop = work_.clops[word.clop];
    return clop.buffers + std::uint64_t{word.buffer_index} * clop.buffer_bytes;
  }

  cudaKernelNodeParams kernel_parameters(std::uint32_t blocks) {
    cudaKernelNodeParams parameters{};
    parameters.func = const_cast<void*>(kernels_.item);
    parameters.gridDim = dim3(blocks);
    parameters.blockDim = dim3(kernels_.threads);
    parameters.sharedMemBytes = kernels_.shared_bytes;
    parameters.kernelParams = arguments_;
    return parameters;
  }

  void make_graph(Flight& flight) {
    check(cudaGraphCreate(&flight.graph, 0), "cudaGraphCreate");
    std::size_t before = 0;
    if (flight.copy.count() != 0) {
      check(cudaGraphAddMemcpyNode1D(&flight.copy_node, flight.graph, nullptr, 0, flight.copy.get(), work_.clops[0].buffers,
                                     flight.copy.count(), cudaMemcpyHostToDevice),
            "cudaGraphAddMemcpyNode1D");
      before = 1;
    }
    const cudaKernelNodeParams parameters = kernel_parameters(1);
    check(cudaGraphAddKernelNode(&flight.kernel_node, flight.graph, &flight.copy_node, before, &parameters),
          "cudaGraphAddKernelNode");
    check(cudaGraphInstantiate(&flight.graph_exec, flight.graph, 0), "cudaGraphInstantiate");
  }

  // item_ is what the kernel gets.
  cudaError_t launch(Flight& flight, const Completion& completion, std::uint32_t blocks) {
    // Of this thread, which may serve other GPUs too.
    if (const cudaError_t error = cudaSetDevice(config_.gpu.device); error != cudaSuccess) return error;
    const std::byte* const buffer = item_.buffer;
    const bool copied = flight.copy.count() != 0;
    if (copied) item_.buffer = flight.copy.get();
    if (flight.graph_exec != nullptr) {
      if (copied) {
        const cudaError_t error = cudaGraphExecMemcpyNodeSetParams1D(flight.graph_exec, flight.copy_node, flight.copy.get(), buffer,
                                                                     completion.bytes, cudaMemcpyHostToDevice);
        if (error != cudaSuccess) return error;
      }
      const cudaKernelNodeParams parameters = kernel_parameters(blocks);
      const cudaError_t error = cudaGraphExecKernelNodeSetParams(flight.graph_exec, flight.kernel_node, &parameters);
      return error != cudaSuccess ? error : cudaGraphLaunch(flight.graph_exec, flight.stream.get());
    }
    if (copied) {
      const cudaError_t error = cudaMemcpyAsync(flight.copy.get(), buffer, completion.bytes, cudaMemcpyHostToDevice,
                                                flight.stream.get());
      if (error != cudaSuccess) return error;
    }
    return cudaLaunchKernel(kernels_.item, dim3(blocks), dim3(kernels_.threads), arguments_, kernels_.shared_bytes,
                            flight.stream.get());
  }

  rich::FinderConfig finder_;
  DeviceTables tables_;
  Item item_{};
  void* arguments_[4] = {&finder_, &tables_, &work_, &item_};
  const std::uint32_t blocks_max_;
  std::vector<std::unique_ptr<Flight>> flights_;
  std::uint64_t dispatched_ = work_.first_number;
  std::uint64_t tx_first_ = memory_.answers != nullptr ? memory_.answers->indexes().produced : 0;
};

}  // namespace

std::unique_ptr<EventProcessor> make_launched(const EventProcessorConfig& config, ContractMemory memory) {
  return std::make_unique<Launched>(config, std::move(memory));
}

}  // namespace nanet::gpu
