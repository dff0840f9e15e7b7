// SPDX-License-Identifier: Apache-2.0
// What an engine is built from. python/nanet/config/engine.py validates the YAML file and fills these structs; every field is
// described there with its unit, default and effect, so this file only gives the shape.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/config/value.hpp"
#include "nanet/engine/sender_filter.hpp"
#include "nanet/link/dpdk.hpp"
#include "nanet/link/fault_injector.hpp"
#include "nanet/link/gateware.hpp"
#include "nanet/link/pcap_link.hpp"
#include "nanet/link/ucx.hpp"
#include "nanet/link/xdp.hpp"

namespace nanet::engine {

class Processor;
struct LinkKind;
struct Protocol;

enum class Topology : std::uint8_t { run_to_completion, pipelined };
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
  const Protocol* protocol = nullptr;  // must be given
  MemoryRegionConfig memory_region;    // each link fills a CLOP of its own
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
  std::shared_ptr<const LinkKind> kind;  // none: the built-in one that the endpoint's scheme names
  config::Value settings;                // what only a plug-in's kind of link needs: a map of its own keys
};

struct MergeConfig {
  std::uint64_t window_ns = 200'000;
  std::uint32_t open_events_max = 8192;
  IncompletePolicy incomplete = IncompletePolicy::drop;
};

// Where a processor's packets go.
struct SendConfig {
  std::string name = "answers";        // of the link
  std::vector<std::string> endpoints;  // each packet goes to all of them; at most Transmitter::kDestinationsMax
  std::string via;                     // name of the link that sends them; empty: a UDP socket of their own
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
  std::shared_ptr<Processor> processor;  // must be given; of one engine
  std::optional<SendConfig> send;
  WaitingConfig waiting;
};

}  // namespace nanet::engine
