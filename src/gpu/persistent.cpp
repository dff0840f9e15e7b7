// SPDX-License-Identifier: Apache-2.0
// The persistent runtime: one kernel from construction to finish(). All blocks must fit on the GPU together, since they wait for one another.
#include <algorithm>

#include "gpu/processor_base.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::gpu {
namespace {

constexpr std::uint32_t kBlocksMax = 128;  // of a group, unless asked for: more than one buffer of the usual size has chunks

class Persistent final : public ProcessorBase {
 public:
  Persistent(const EventProcessorConfig& config, ContractMemory memory) : ProcessorBase(config, std::move(memory)) {
    work_.group_blocks = group_blocks();
    rich::FinderConfig finder = config_.finder;
    DeviceTables tables = state_->tables.device();
    void* arguments[] = {&finder, &tables, &work_, &merge_};  // the last one with event building only
    check(cudaLaunchKernel(kernels_.persistent, dim3(work_.group_blocks * work_.group_count), dim3(kernels_.threads), arguments,
                           kernels_.shared_bytes, stream_.get()),
          "the resident kernel's launch");
  }
  ~Persistent() override { finish(); }

 private:
  cudaError_t dispatch() override { return cudaSuccess; }
  cudaError_t query() const override { return cudaStreamQuery(stream_.get()); }

  std::uint32_t group_blocks() const {
    int per_sm = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernels_.persistent, static_cast<int>(kernels_.threads),
                                                        kernels_.shared_bytes),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    const auto room = static_cast<std::uint32_t>(per_sm * properties_.multiProcessorCount);
    const std::uint32_t groups = config_.gpu.buffers_in_flight;
    // A few multiprocessors are left to others; each block has one to itself as long as that lasts.
    const auto processors = static_cast<std::uint32_t>(properties_.multiProcessorCount);
    const std::uint32_t usual = std::clamp((processors - std::min(processors / 16, 4u)) / groups, 1u, kBlocksMax);
    const std::uint32_t blocks = config_.gpu.blocks != 0 ? config_.gpu.blocks : usual;
    const std::uint32_t wanted = blocks * groups * config_.gpu.kernels;
    if (wanted > room) {
      throw SetupError("GPU: " + std::to_string(wanted) + " blocks do not fit",
                       std::string(properties_.name) + " takes " + std::to_string(room) + " of this finder's together",
                       "lower blocks or buffers_in_flight");
    }
    return blocks;
  }

  Stream stream_;
};

}  // namespace

std::unique_ptr<EventProcessor> make_persistent(const EventProcessorConfig& config, ContractMemory memory) {
  return std::make_unique<Persistent>(config, std::move(memory));
}

}  // namespace nanet::gpu
