// SPDX-License-Identifier: Apache-2.0
// What the programs of bench/gpu share: bounded waiting, percentiles, options, CSV, and what they say of the machine.
//
// No wait is without a limit: who waits longer than kWaitNs says for what and ends the program with status 3.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gpu/cuda_types.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/flow/thread.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/setup_error.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::bench {

// ---- events: padded MGP packets of 16 events of 20 hits

inline constexpr std::uint32_t kEventHits = 20;
inline constexpr auto kPacketEvents = static_cast<std::uint32_t>(wire::kMgpEventsMax);
inline constexpr auto kPacketBytes = static_cast<std::uint32_t>(wire::kMgpPaddedBytes);

// ---- time

inline constexpr std::uint64_t kWaitNs = 4'000'000'000;

inline std::uint64_t now_ns() { return flow::clock_now_ns(); }

[[noreturn]] inline void end_program(const std::string& why) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", why.c_str());
  std::fflush(stderr);
  std::_Exit(3);  // no destructor: it could wait for the GPU
}

// For a loop that spins. turn() is true once in a while, for what need not be looked at each time.
class Wait {
 public:
  explicit Wait(const char* what) : what_(what) {}
  bool turn() {
    if (++turns_ % 1024 != 0) return false;
    const std::uint64_t now = now_ns();
    if (begin_ns_ == 0) begin_ns_ = now;
    if (now - begin_ns_ > kWaitNs) {
      end_program(std::string("waited for ") + what_ + " (" + std::to_string(kWaitNs / 1'000'000'000) +
                  " s went by) see nvidia-smi and the kernel's log");
    }
    return true;
  }

 private:
  const char* what_;
  std::uint32_t turns_ = 0;
  std::uint64_t begin_ns_ = 0;
};

// The whole program ends after this time with status 3, wherever it is.
inline void limit_run_time(unsigned seconds) {
  std::signal(SIGALRM, [](int) {
    constexpr char kText[] = "error: the program took too long (a call into the driver does not come back) see nvidia-smi\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
    _exit(3);
  });
  alarm(seconds);
}

inline void spin_for(std::uint64_t time_ns) {
  for (const std::uint64_t begin = now_ns(); now_ns() - begin < time_ns;) {
  }
}

// Pins the calling thread: to `core`, or with -1 to the last one that it may run on.
inline int pin(int core) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (core < 0 && sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int k = 0; k < CPU_SETSIZE; ++k) core = CPU_ISSET(static_cast<std::size_t>(k), &allowed) ? k : core;
  }
  flow::pin_this_thread(core);
  return core;
}

// ---- figures

// Microseconds. The percentile p is the smallest value that p percent of all are not above.
struct Summary {
  std::size_t count = 0;
  double min = 0, p50 = 0, p90 = 0, p99 = 0, p999 = 0, p9999 = 0, max = 0, mean = 0, std = 0;
};

inline Summary summarize(std::vector<std::uint64_t> times_ns) {
  if (times_ns.empty()) return {};
  std::sort(times_ns.begin(), times_ns.end());
  const auto n = static_cast<double>(times_ns.size());
  const auto at = [&](double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * n));
    return 1e-3 * static_cast<double>(times_ns[std::clamp<std::size_t>(rank, 1, times_ns.size()) - 1]);
  };
  Summary s{times_ns.size(), at(0), at(0.5), at(0.9), at(0.99), at(0.999), at(0.9999), at(1)};
  for (const std::uint64_t time_ns : times_ns) s.mean += 1e-3 * static_cast<double>(time_ns) / n;
  for (const std::uint64_t time_ns : times_ns) s.std += std::pow(1e-3 * static_cast<double>(time_ns) - s.mean, 2) / n;
  s.std = std::sqrt(s.std);
  return s;
}

inline constexpr const char* kSummaryColumns = "count,min_us,p50_us,p90_us,p99_us,p999_us,p9999_us,max_us,mean_us,std_us";

inline std::string summary_values(const Summary& s) {
  char text[256];
  std::snprintf(text, sizeof text, "%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f", s.count, s.min, s.p50, s.p90, s.p99, s.p999,
                s.p9999, s.max, s.mean, s.std);
  return text;
}

// Lines "# key: value" first, then a table. Each line is written out at once.
class Csv {
 public:
  explicit Csv(const std::string& file) {
    if (file.empty()) return;
    out_.open(file);
    if (!out_) throw SetupError("'" + file + "' cannot be written", std::strerror(errno), "name a file in a folder that exists");
  }
  void line(const std::string& text) {
    if (out_.is_open()) out_ << text << std::endl;
  }

 private:
  std::ofstream out_;
};

// What was measured on, on the screen and in the CSV. Throws SetupError where there is no GPU.
inline void describe_machine(const char* program, Csv& csv) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    throw SetupError("GPU: none to measure on", error != cudaSuccess ? cudaGetErrorString(error) : "the driver shows none",
                     "run this on a machine with one, see nanet doctor");
  }
  gpu::check(cudaSetDeviceFlags(cudaDeviceScheduleSpin), "cudaSetDeviceFlags");  // the fastest way to synchronise
  gpu::check(cudaSetDevice(0), "cudaSetDevice");
  cudaDeviceProp properties{};
  gpu::check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int driver = 0;
  gpu::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  std::string cpu = "unknown";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) {
      cpu = line.substr(line.find(':') + 2);
      break;
    }
  }
  const std::string version = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  std::printf("%s on %s, CUDA %s of the driver, %s\n", program, properties.name, version.c_str(), cpu.c_str());
  csv.line(std::string("# program: ") + program);
  csv.line(std::string("# gpu: ") + properties.name);
  csv.line("# cuda: " + version);
  csv.line("# cpu: " + cpu);
}

// ---- options

// --name value pairs, and --short, which has no value. Throws SetupError for one that is not in `known`.
class Options {
 public:
  Options(int argc, char** argv, const std::vector<std::string>& known) {
    for (int k = 1; k < argc; k += 2) {
      const std::string name = argv[k];
      if (name == "--short") {
        is_short_ = true;
        --k;
        continue;
      }
      if (std::find(known.begin(), known.end(), name) == known.end() || k + 1 == argc) {
        std::string all;
        for (const std::string& one : known) all += " " + one;
        throw SetupError("'" + name + "' is not understood", k + 1 == argc ? "it has no value" : "there is no such option",
                         "use:" + all);
      }
      values_[name] = argv[k + 1];
    }
  }
  // A smoke of it is wanted: that it runs, not how fast.
  bool is_short() const { return is_short_; }
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  double number(const std::string& name, double otherwise) const {
    const std::string value = text(name);
    if (value.empty()) return otherwise;
    char* end = nullptr;
    const double result = std::strtod(value.c_str(), &end);
    if (*end != '\0' || !(result >= -1 && result <= 1e15))
      throw SetupError(name + " is '" + value + "'", "it is a number", "write " + name + " 10");
    return result;
  }
  std::uint64_t count(const std::string& name, std::uint64_t otherwise) const {
    return static_cast<std::uint64_t>(std::max(0.0, number(name, static_cast<double>(otherwise))));
  }
  std::vector<std::string> list(const std::string& name, const std::string& otherwise) const {
    std::vector<std::string> parts;
    std::istringstream in(text(name, otherwise));
    for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
    return parts;
  }
  std::vector<std::uint32_t> counts(const std::string& name, const std::string& otherwise) const {
    std::vector<std::uint32_t> parts;
    for (const std::string& part : list(name, otherwise)) {
      const unsigned long value = std::strtoul(part.c_str(), nullptr, 10);
      if (value == 0 || value > 1u << 20)
        throw SetupError(name + " has '" + part + "'", "it is a list of counts", "write " + name + " 16,1024");
      parts.push_back(static_cast<std::uint32_t>(value));
    }
    return parts;
  }

 private:
  std::map<std::string, std::string> values_;
  bool is_short_ = false;
};

inline rich::FinderKind finder_of(const std::string& name) {
  for (std::uint32_t k = 0; k < rich::kFinderCount; ++k) {
    if (name == rich::finder_name(static_cast<rich::FinderKind>(k))) return static_cast<rich::FinderKind>(k);
  }
  throw SetupError("there is no finder '" + name + "'", "it is math, almagest, triplets, mixture or another of rich/finder.hpp",
                   "take one of these");
}

}  // namespace nanet::bench
