// SPDX-License-Identifier: Apache-2.0
// The whole loop on one machine, as configurations of an emulated board and of an engine that judges on a GPU.
#pragma once

#include <string>
#include <vector>

#include "common.hpp"
#include "emulate/emulator.hpp"
#include "na62/protocols.hpp"
#include "na62/rich_processor.hpp"
#include "nanet/engine/engine.hpp"

namespace nanet::bench {

struct Plan {
  double seconds = 2;
  std::vector<int> cores;  // of emulator, receiving thread, processing thread; empty: not pinned
  std::uint32_t port = 6400;
  std::uint32_t burst_packets = 1;
  engine::Topology topology = engine::Topology::pipelined;
  rich::FinderConfig finder;
  gpu::GpuConfig gpu;
};

struct Setting {
  std::string runtime;
  double rate_events_per_s = 0;
  std::uint32_t packets = 0;
  std::uint32_t in_flight = 0;
};

inline gpu::Runtime runtime_of(const std::string& name) {
  if (name == "cpu") return gpu::Runtime::cpu;
  if (name == "launch") return gpu::Runtime::launch;
  if (name == "graph") return gpu::Runtime::graph;
  if (name == "persistent") return gpu::Runtime::persistent;
  throw SetupError("there is no runtime '" + name + "'", "it is persistent, launch, graph or cpu", "take one of these");
}

inline std::string endpoint(std::uint32_t port) { return "udp://127.0.0.1:" + std::to_string(port); }

inline engine::EngineConfig engine_config(const Plan& plan, const Setting& setting) {
  // Of 64 packets at the least, whatever is wanted: the time decides when a buffer is handed over, and after a stall fewer and fuller ones catch up. A link that
  // takes coalesced packets calls a buffer full that has less than 64 KiB left.
  const std::uint32_t packets_full = std::max(setting.packets, 64u);
  engine::LinkConfig link;
  link.name = "board";
  link.protocol = &na62::kMgp;
  link.endpoint = endpoint(plan.port);
  link.memory_region = {
      .name = "buffers", .buffer_count = 256, .buffer_bytes = 65536 + ((packets_full - 1) * kPacketBytes + 4095) / 4096 * 4096};
  link.batch_size = packets_full;
  const double packet_ns = 1e9 * kPacketEvents / setting.rate_events_per_s;
  link.timeout_us = static_cast<std::uint64_t>(std::ceil((setting.packets - 1) * packet_ns / 1000));
  link.sources = {{.name = "board", .source_id = wire::kSourceRich, .source_sub_id = 0}};
  engine::EngineConfig config;
  config.topology = plan.topology;
  if (!plan.cores.empty()) {
    config.cpu_cores.receive = plan.cores[1];
    config.cpu_cores.process = plan.cores[2];
  }
  config.links = {link};
  na62::RichConfig rich{.finder = plan.finder, .answers = na62::AnswerConfig{}, .gpu = plan.gpu};
  rich.gpu.runtime = runtime_of(setting.runtime);
  rich.gpu.buffers_in_flight = setting.in_flight;
  config.processor = std::make_shared<na62::RichProcessor>(rich);
  config.send = engine::SendConfig{.endpoints = {endpoint(plan.port + 1)}};
  config.waiting.spin = plan.cores.empty() ? 200 : -1;
  return config;
}

inline emulate::EmulatorConfig emulator_config(const Plan& plan, const Setting& setting) {
  emulate::EmulatorConfig config;
  config.destinations = {endpoint(plan.port)};
  config.answers = endpoint(plan.port + 1);
  config.monte_carlo.mean_hits = kEventHits;
  config.pool_events = 16384;
  config.rate_events_per_s = setting.rate_events_per_s;
  config.duration_s = plan.seconds;
  config.burst_packets = plan.burst_packets;
  config.finder = plan.finder;
  if (!plan.cores.empty()) config.cpu_core = plan.cores[0];
  return config;
}

inline std::vector<int> cores_of(const Options& options) {
  std::vector<int> cores;
  for (const std::string& core : options.list("--cores", "")) cores.push_back(std::atoi(core.c_str()));
  if (cores.empty()) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
    for (int k = CPU_SETSIZE - 1; k >= 0 && cores.size() < 3; --k) {
      if (CPU_ISSET(static_cast<std::size_t>(k), &allowed)) cores.push_back(k);
    }
    if (cores.size() < 3) {
      std::printf("threads are not pinned (less than 3 cores) figures are those of the scheduler\n");
      return {};
    }
  }
  if (cores.size() != 3)
    throw SetupError("--cores has " + std::to_string(cores.size()) + " cores", "three threads spin", "write --cores 1,2,3");
  return cores;
}

}  // namespace nanet::bench
