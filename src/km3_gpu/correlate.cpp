// SPDX-License-Identifier: Apache-2.0
#include "km3_gpu/correlate.hpp"

#include <algorithm>

#include "gpu/cuda_types.hpp"
#include "km3_gpu/kernels/kernels.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::km3_gpu {
namespace {

using gpu::check;

template <class T>
void copy_in(T* device, const T* host, std::size_t count, cudaStream_t stream) {
  check(cudaMemcpyAsync(device, host, count * sizeof(T), cudaMemcpyHostToDevice, stream), "copying to the GPU");
}

template <class T>
void copy_out(T* host, const T* device, std::size_t count, cudaStream_t stream) {
  check(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "copying from the GPU");
  check(cudaStreamSynchronize(stream), "copying from the GPU");
}

// Holds the pinned memory through which all goes: copies from other memory would not run beside kernels.
class GpuJudge final : public km3::SeedJudge {
 public:
  GpuJudge(std::uint32_t seeds_max, int device)
      : current_(device),
        device_(device),
        seeds_(seeds_max),
        judgements_(seeds_max),
        host_seeds_(seeds_max),
        host_judgements_(seeds_max) {}

  void judge_all(std::span<const km3::Seed> seeds, const km3::JudgeCuts& cuts, std::span<const km3::Direction> directions,
                 std::span<km3::Judgement> judgements) override {
    const gpu::CurrentDevice current(device_);
    const auto count = static_cast<std::uint32_t>(std::min(seeds.size(), seeds_.count()));
    std::fill(judgements.begin() + count, judgements.end(), km3::Judgement{});
    if (count == 0) return;
    if (!directions.empty() && directions.size() != directions_.count()) {  // once, in the first slice
      directions_ = gpu::DeviceArray<km3::Direction>(directions.data(), directions.size());
    }
    std::copy_n(seeds.begin(), count, host_seeds_.host());
    copy_in(seeds_.get(), host_seeds_.host(), count, stream_.get());
    check(km3_gpu::launch_judge(seeds_.get(), count, cuts, directions_.get(), static_cast<std::uint32_t>(directions.size()),
                                judgements_.get(), stream_.get()),
          "starting the kernel that judges seeds");
    copy_out(host_judgements_.host(), judgements_.get(), count, stream_.get());
    std::copy_n(host_judgements_.host(), count, judgements.begin());
  }

 private:
  gpu::CurrentDevice current_;  // while what follows is made
  int device_;
  gpu::Stream stream_;
  gpu::DeviceArray<km3::Seed> seeds_;
  gpu::DeviceArray<km3::Judgement> judgements_;
  gpu::DeviceArray<km3::Direction> directions_;
  gpu::PinnedArray<km3::Seed> host_seeds_;
  gpu::PinnedArray<km3::Judgement> host_judgements_;
};

}  // namespace

struct Correlator::State {
  State(std::uint32_t hits_max, const km3::Match3B& the_match, int the_device)
      : device(the_device), match(the_match), points(hits_max), degrees(hits_max), pairs(1) {}

  int device;
  km3::Match3B match;
  std::uint32_t count = 0;
  gpu::Stream stream;
  gpu::Event begin;
  gpu::Event end;
  gpu::DeviceArray<km3::Point> points;
  gpu::DeviceArray<std::uint32_t> degrees;
  gpu::DeviceArray<unsigned long long> pairs;
};

Correlator::Correlator(std::uint32_t hits_max, const km3::Match3B& match, int device) {
  const gpu::CurrentDevice current(device);
  state_ = std::make_unique<State>(hits_max, match, device);
}

Correlator::~Correlator() = default;

std::uint32_t Correlator::load(std::span<const km3::Point> points) {
  const gpu::CurrentDevice current(state_->device);
  state_->count = static_cast<std::uint32_t>(std::min(points.size(), state_->points.count()));
  copy_in(state_->points.get(), points.data(), state_->count, state_->stream.get());
  check(cudaStreamSynchronize(state_->stream.get()), "copying to the GPU");
  return state_->count;
}

double Correlator::correlate(std::uint32_t window) {
  State& s = *state_;
  const gpu::CurrentDevice current(s.device);
  check(cudaMemsetAsync(s.degrees.get(), 0, s.degrees.bytes(), s.stream.get()), "cudaMemset");
  check(cudaMemsetAsync(s.pairs.get(), 0, s.pairs.bytes(), s.stream.get()), "cudaMemset");
  s.begin.record(s.stream.get());
  check(launch_pair_degrees(s.points.get(), s.count, window, s.match, s.degrees.get(), s.pairs.get(), s.stream.get()),
        "starting the kernel that correlates hits");
  s.end.record(s.stream.get());
  s.end.wait();
  return s.end.seconds_since(s.begin);
}

std::uint64_t Correlator::pair_count() const {
  const gpu::CurrentDevice current(state_->device);
  unsigned long long pairs = 0;
  copy_out(&pairs, state_->pairs.get(), 1, state_->stream.get());
  return pairs;
}

void Correlator::store_degrees(std::span<std::uint32_t> degrees) const {
  const gpu::CurrentDevice current(state_->device);
  const std::size_t count = std::min<std::size_t>(degrees.size(), state_->count);
  if (count != 0) copy_out(degrees.data(), state_->degrees.get(), count, state_->stream.get());
}

std::unique_ptr<km3::SeedJudge> make_gpu_judge(std::uint32_t seeds_max, int device) {
  return std::make_unique<GpuJudge>(seeds_max, device);
}

}  // namespace nanet::km3_gpu
