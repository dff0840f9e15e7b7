// SPDX-License-Identifier: Apache-2.0
// What an engine is built from. python/nanet/config/engine.py validates the YAML file and fills these structs; every field is
// described there with its unit, default and effect, so this file only gives the shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nanet/engine/channel_monitor.hpp"
#include "nanet/engine/sender_filter.hpp"
#include "nanet/gpu/config.hpp"
#include "nanet/link/dpdk.hpp"
#include "nanet/link/fault_injector.hpp"
#include "nanet/link/gateware.hpp"
#include "nanet/link/pcap_link.hpp"
#include "nanet/link/ucx.hpp"
#include "nanet/link/xdp.hpp"
#include "nanet/rich/decision.hpp"
#include "nanet/rich/finder.hpp"

namespace nanet::engine {

enum class Topology : std::uint8_t { run_to_completion, pipelined };
enum class ProtocolKind : std::uint8_t { mgp, m2egp, raw };
enum class ProcessorKind : std::uint8_t { rich, forward, count };
enum class IncompletePolicy : std::uint8_t { drop, process };

struct SourceConfig {
  std::string name;
  std::uint8_t source_id = 0x1C;
  std::uint8_t source_sub_id = 0;
};

struct MemoryRegionConfig {
  std::string name;
  bool huge_pages = true;
  std::uint32_t buffer_count = 64;
  std::uint32_t buffer_bytes = 256 * 1024;
};

struct RecordConfig {
  std::string file;
  std::uint64_t bytes_max = 1u << 30;
};

struct LinkConfig {
  std::string name;
  std::string endpoint;
  ProtocolKind protocol = ProtocolKind::mgp;
  MemoryRegionConfig memory_region;  // each link fills a CLOP of its own
  std::uint32_t batch_size = 128;
  std::uint64_t timeout_ns = 0;
  std::uint32_t socket_buffer_bytes = 64u << 20;
  std::uint32_t packet_bytes_max = 1472;
  bool gro = true;
  std::uint32_t busy_poll_us = 0;
  std::string interface;  // udp: receive from this one only; xdp: the one to attach to; empty: any, or the one with the address
  link::XdpConfig xdp;    // what only this kind of link needs; its name, endpoints and sizes come from here
  link::DpdkConfig dpdk;  // likewise
  link::UcxConfig ucx;    // likewise
  link::GatewareConfig gateware;  // likewise
  link::PcapLinkConfig pcap;
  std::vector<SenderNetwork> senders;  // who may send here; none: everybody
  std::vector<SourceConfig> sources;
  std::optional<link::FaultConfig> faults;
  std::optional<RecordConfig> record;
};

struct MergeConfig {
  std::uint64_t window_ns = 200'000;
  std::uint32_t open_events_max = 8192;
  IncompletePolicy incomplete = IncompletePolicy::drop;
};

// Where events go that are built here and judged elsewhere, as M2EGP packets.
struct ForwardConfig {
  std::string endpoint;
  std::uint8_t source_id = 0x1C;
  std::uint8_t source_sub_id = 0;
  std::uint32_t packet_bytes_max = 1472;  // even, 280..8972: an event with the most hits has to fit
};

struct ProcessorConfig {
  ProcessorKind kind = ProcessorKind::rich;
  std::optional<MergeConfig> merge;
  std::optional<ForwardConfig> forward;  // exactly with kind forward
  rich::FinderConfig finder;
  rich::Decision decision;
  HotChannels hot_channels = HotChannels::keep;
  gpu::GpuConfig gpu;               // its runtime cpu: no GPU. In place of its device:
  std::vector<int> gpu_devices{0};  // the links go to these in turn, and each is a consumer by itself
};

struct AnswersConfig {
  std::string endpoint;
  std::vector<std::string> copies;  // the same packets go there too; at most Transmitter::kDestinationsMax - 1
  std::uint8_t source_id = 0x1C;
  std::uint8_t source_sub_id = 0;
  std::uint32_t primitives_max = 255;
  std::string via;  // name of the link that sends them; empty: a UDP socket of their own
};

struct WaitingConfig {
  std::int64_t spins = 20'000;       // idle turns before a blocking wait; negative: spin for ever
  std::uint64_t sleep_ns = 100'000;  // longest blocking wait
};

struct EngineConfig {
  Topology topology = Topology::run_to_completion;
  std::optional<int> receive_core;
  std::optional<int> process_core;
  std::optional<int> send_core;
  std::optional<int> realtime_priority;  // of the receiving thread, which is pinned then; none: an ordinary thread
  std::vector<LinkConfig> links;
  ProcessorConfig processor;
  std::optional<AnswersConfig> answers;
  WaitingConfig waiting;
};

}  // namespace nanet::engine
