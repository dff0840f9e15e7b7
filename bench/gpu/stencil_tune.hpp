// SPDX-License-Identifier: Apache-2.0
// Of bench_gpu_stencil: each variant of a pass, with each number of threads a block and rows a band, on one GPU.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common.hpp"
#include "gpu/cuda_types.hpp"
#include "stencil_gpu/kernels/stencil.hpp"
#include "stencil_gpu/kernels/variants.hpp"

namespace nanet::bench {

inline constexpr const char* kTuneColumns = "dtype,size,sweeps,ahead,threads,band_rows,updates_per_s,fraction_of_copy";

// Passes to and fro between two fields, the median of `repeats`.
template <class T>
double pass_seconds(const gpu::PassVariant<T>& variant, gpu::SweepArgs<T> args, int threads, int repeats) {
  constexpr int kPasses = 2;
  gpu::Event begin;
  gpu::Event end;
  std::vector<double> seconds;
  for (int repeat = -1; repeat < repeats; ++repeat) {
    begin.record();
    for (int pass = 0; pass < kPasses; ++pass) {
      gpu::check(variant.launch(args, threads, nullptr), "a kernel launch");
      T* const written = args.out;
      args.out = const_cast<T*>(args.in);  // both are fields of ours
      args.in = written;
    }
    end.record();
    end.wait();
    if (repeat >= 0) seconds.push_back(end.seconds_since(begin) / kPasses);
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return seconds[static_cast<std::size_t>(repeats / 2)];
}

template <class T>
std::vector<T> noise(std::size_t cells) {
  std::vector<T> field(cells);
  std::uint64_t state = 1;
  for (T& cell : field) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    cell = T{1} + static_cast<T>(state >> 40) / static_cast<T>(1 << 24);
  }
  return field;
}

template <class T>
void tune(const char* dtype, std::int32_t size, int repeats, double copy_bytes_per_s, Csv& csv) {
  constexpr std::int32_t kUnit = gpu::kRowAlignBytes / sizeof(T);
  const std::int32_t stride = (size + kUnit - 1) / kUnit * kUnit;
  const std::size_t cells = static_cast<std::size_t>(size) * static_cast<std::size_t>(stride);
  const std::vector<T> start = noise<T>(cells);
  const gpu::DeviceArray<T> fields[2] = {{start.data(), cells}, {start.data(), cells}};
  gpu::SweepArgs<T> args{fields[0].get(), fields[1].get(), stride, size, size, 0, size, 1, size - 1, 0};
  const double inner = static_cast<double>(size - 2) * static_cast<double>(size - 2);
  for (const gpu::PassVariant<T>& variant : gpu::pass_variants<T>()) {
    std::pair<double, std::string> best{0, ""};
    for (const int threads : {64, 128, 256}) {
      for (const std::int32_t band_rows : {4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 48, 64, 96, 128, 192, 256}) {
        if (band_rows < 2 * variant.sweeps) continue;
        args.band_rows = band_rows;
        const double rate = inner * variant.sweeps / pass_seconds(variant, args, threads, repeats);
        char line[160];
        std::snprintf(line, sizeof line, "%s,%d,%d,%d,%d,%d,%.6g,%.4f", dtype, size, variant.sweeps, variant.ahead, threads,
                      band_rows, rate, rate * 2 * sizeof(T) / copy_bytes_per_s);
        csv.line(line);
        if (rate > best.first) best = {rate, line};
      }
    }
    std::printf("%s\n", best.second.c_str());
    std::fflush(stdout);
  }
}

}  // namespace nanet::bench
