// SPDX-License-Identifier: Apache-2.0
// The classical methods of using a GPU, written plainly: for each buffer the host launches, and synchronises.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gpu/kernels/bench_kernels.hpp"
#include "gpu/tables.hpp"
#include "rig.hpp"

namespace nanet::bench {

class CudaGraph {
 public:
  // Captures what `enqueue` puts on the stream.
  CudaGraph(cudaStream_t stream, const std::function<void()>& enqueue) {
    gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    enqueue();
    cudaGraph_t graph = nullptr;
    gpu::check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t error = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    gpu::check(error, "cudaGraphInstantiate");
    gpu::check(cudaGraphUpload(exec_, stream), "cudaGraphUpload");
  }
  ~CudaGraph() { cudaGraphExecDestroy(exec_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void launch(cudaStream_t stream) const { gpu::check(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

enum class ClassicalWay {
  launch,        // a kernel that reads the host's memory and writes there
  copy,          // copy in, kernel, copy out
  graph,         // copy in, kernel, copy out as one graph
  graph_mapped,  // the kernel of `launch` as a graph
};

// MATH fits of the buffers of a Rig's CLOP, a circle for each event. Nothing of the contract is used but the buffers.
class Classical {
 public:
  // in_flight: how many buffers may be between begin() and wait().
  Classical(Rig& rig, ClassicalWay way, std::uint32_t in_flight = 1)
      : rig_(rig), way_(way), registration_(rig.clop.region(), "the CLOP"), buffer_count_(rig.clop.buffer_count()) {
    for (std::uint32_t k = 0; k < in_flight; ++k) lanes_.push_back(std::make_unique<Lane>(rig));
    if (way == ClassicalWay::graph || way == ClassicalWay::graph_mapped) make_graphs();
    for (const auto& lane : lanes_) gpu::check(cudaStreamSynchronize(lane->stream.get()), "cudaStreamSynchronize");
  }

  // Starts the work on buffer number mod buffers.
  void begin(std::uint64_t number) {
    Lane& lane = *lanes_[number % lanes_.size()];
    const std::uint32_t turn = static_cast<std::uint32_t>(number % buffer_count_);
    if (graphs_.empty()) {
      enqueue(lane, buffer_of(turn));
    } else {
      graphs_[turn]->launch(lane.stream.get());
    }
  }
  void wait(std::uint64_t number) {
    gpu::check(cudaStreamSynchronize(lanes_[number % lanes_.size()]->stream.get()), "cudaStreamSynchronize");
  }

  // After wait(number). The number of circles that are not the CPU's, bit for bit.
  std::uint32_t wrong_circles(std::uint64_t number) const {
    const gpu::FittedCircle* const circles = lanes_[number % lanes_.size()]->circles.host();
    const std::size_t first = std::size_t{rig_.first_packet(buffer_of(static_cast<std::uint32_t>(number % buffer_count_)))} *
                              kPacketEvents;
    const std::vector<gpu::FittedCircle>& expected = rig_.pool().circles;
    std::uint32_t wrong = 0;
    for (std::uint32_t e = 0; e < rig_.events; ++e) {
      wrong += std::memcmp(&circles[e], &expected[(first + e) % expected.size()], sizeof circles[e]) != 0;
    }
    return wrong;
  }

 private:
  static constexpr std::uint32_t kGraphsMax = 256;

  struct Lane {
    explicit Lane(const Rig& rig)
        : packets(std::size_t{rig.packets} * kPacketBytes), device_circles(rig.events), circles(rig.events) {}
    gpu::Stream stream;
    gpu::DeviceArray<std::byte> packets;
    gpu::DeviceArray<gpu::FittedCircle> device_circles;
    gpu::PinnedArray<gpu::FittedCircle> circles;
  };

  // With graphs not every buffer has its turn, but buffers from all over the CLOP.
  std::uint32_t buffer_of(std::uint32_t turn) const { return turn * (rig_.clop.buffer_count() / buffer_count_); }

  void enqueue(Lane& lane, std::uint32_t buffer_index) {
    const std::byte* const buffer = rig_.clop.buffer(buffer_index).data();
    const cudaStream_t stream = lane.stream.get();
    if (way_ == ClassicalWay::launch || way_ == ClassicalWay::graph_mapped) {
      gpu::check(gpu::fit_packets({registration_.device(buffer), rig_.packets, lane.circles.device()}, tables_.device(), stream),
                 "a launch");
      return;
    }
    gpu::check(cudaMemcpyAsync(lane.packets.get(), buffer, lane.packets.bytes(), cudaMemcpyHostToDevice, stream),
               "cudaMemcpyAsync");
    gpu::check(gpu::fit_packets({lane.packets.get(), rig_.packets, lane.device_circles.get()}, tables_.device(), stream),
               "a launch");
    gpu::check(
        cudaMemcpyAsync(lane.circles.host(), lane.device_circles.get(), lane.device_circles.bytes(), cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  }

  void make_graphs() {
    buffer_count_ = std::min(buffer_count_, kGraphsMax);
    for (std::uint32_t k = 0; k < buffer_count_; ++k) {
      Lane& lane = *lanes_[k % lanes_.size()];
      graphs_.push_back(std::make_unique<CudaGraph>(lane.stream.get(), [&] { enqueue(lane, buffer_of(k)); }));
    }
  }

  Rig& rig_;
  const ClassicalWay way_;
  gpu::Tables tables_;
  gpu::Registration registration_;
  std::uint32_t buffer_count_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<CudaGraph>> graphs_;
};

}  // namespace nanet::bench
