// SPDX-License-Identifier: Apache-2.0
// What an engine is built from. A struct with visit() declares its keys once, and the models of a YAML file are made from it
// (config/setting.hpp); what python/nanet/config/engine.py still describes itself has only its shape here.
#pragma once

#include <any>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/config/value.hpp"
#include "nanet/contract.hpp"
#include "nanet/link/fault_injector.hpp"
#include "nanet/link/multicast.hpp"
#include "nanet/link/torus.hpp"

namespace nanet {

constexpr auto choices(MemoryKind) {
  return std::array{config::Choice{"host", MemoryKind::host}, config::Choice{"host_pinned", MemoryKind::host_pinned},
                    config::Choice{"device", MemoryKind::device}};
}

}  // namespace nanet

namespace nanet::engine {

class Processor;
struct LinkKind;
struct Protocol;

enum class Topology : std::uint8_t { run_to_completion, pipelined };
enum class IncompletePolicy : std::uint8_t { drop, process };

constexpr auto choices(IncompletePolicy) {
  return std::array{config::Choice{"drop", IncompletePolicy::drop}, config::Choice{"process", IncompletePolicy::process}};
}

struct SourceConfig {
  static constexpr config::Component component{"Source", "One sender of packets, known by source ID and sub-ID."};

  std::string name;
  std::uint8_t source_id = 0x1C;
  std::uint8_t source_sub_id = 0;

  template <class Visit>
  void visit(Visit&& v) {
    v("name", name, {.help = "Name in reports", .form = "Name", .required = true});
    v("source_id", source_id, {.help = "Source ID in the packet header", .least = 0, .most = 255});
    v("source_sub_id", source_sub_id, {.help = "Sub-ID in the packet header: which board", .least = 0, .most = 255});
  }
};

struct MemoryRegionConfig {
  static constexpr config::Component component{
      "MemoryRegion", "Memory for the circular list of persistent buffers (CLOP) of the links that name it."};

  std::string name;
  MemoryKind kind = MemoryKind::host;
  bool huge_pages = true;
  std::uint32_t buffer_count = 64;
  std::uint32_t buffer_bytes = 256 * 1024;

  template <class Visit>
  void visit(Visit&& v) {
    v("name", name, {.help = "Name by which links refer to it", .form = "Name", .required = true});
    v("kind", kind,
      {.help = "Where the memory is: host; host_pinned: host memory that a GPU reads in place, for nanet.open; device: refused"});
    v("huge_pages", huge_pages, {.help = "Try huge pages; if there are none, ordinary pages are used and this is reported"});
    v("buffer_count", buffer_count,
      {.help = "Buffers of each CLOP, a power of two",
       .unit = "buffers",
       .least = 2,
       .most = 65536,
       .too_small = "packets are dropped as packets_clop_full while the processor is busy",
       .too_big = "the working set exceeds the caches, and packets wait longer instead of being dropped"});
    v("buffer_bytes", buffer_bytes,
      {.help = "Size of one buffer, a multiple of 4096",
       .unit = "bytes",
       .least = 4096,
       .most = 1 << 30,
       .too_small = "few packets per hand-over, so more overhead for each",
       .too_big = "memory; with timeout_us above 0 also latency at low rates"});
  }

  // Powers of two, whole pages, and no GPU memory.
  std::optional<config::Problem> check() const;
};

struct RecordConfig {
  static constexpr config::Component component{"Record", "Writes what a link receives to a pcap file, for tshark and for replay."};

  std::string file;
  std::uint64_t bytes_max = 1u << 30;

  template <class Visit>
  void visit(Visit&& v) {
    v("file", file, {.help = "Path of the pcap file; it is overwritten", .length_least = 1, .required = true});
    v("bytes_max", bytes_max,
      {.help = "The file stops growing at this size; what is left out is counted",
       .unit = "bytes",
       .least = 4096,
       .too_big = "a full disk"});
  }
};

struct StreamRangeConfig {
  static constexpr config::Component component{"StreamRange", "Streams by their keys, from the first to the last."};

  std::uint64_t first = 0;
  std::uint64_t last = 0;

  template <class Visit>
  void visit(Visit&& v) {
    v("first", first, {.help = "The lowest key", .least = 0, .most = 0x1p53, .required = true});
    v("last", last, {.help = "The highest key", .least = 0, .most = 0x1p53, .required = true});
  }

  // They are in that order.
  std::optional<config::Problem> check() const;
};

enum class MergeBy : std::uint8_t { unit, time };
constexpr auto choices(MergeBy) { return std::array{config::Choice{"unit", MergeBy::unit}, config::Choice{"time", MergeBy::time}}; }

// Of packets of units: what a format says of their times (engine/unit_facts.hpp).
struct UnitTime;

struct StreamMergeConfig {
  static constexpr config::Component component{"StreamMerge",
                                               "How units of several streams are put together as parts of one unit."};

  std::vector<std::uint64_t> streams;
  std::uint64_t part_bytes = 0;
  std::optional<MergeBy> by;
  std::uint64_t tolerance_ns = 0;

  template <class Visit>
  void visit(Visit&& v) {
    v("streams", streams,
      {.help = "The streams, by their keys, in the order of their parts; packets of others are refused as packets_unknown_stream",
       .least = 0,
       .most = 0x1p53,
       .length_least = 1,
       .length_most = 4096,
       .required = true});
    v("part_bytes", part_bytes,
      {.help = "How much of the unit each stream has", .unit = "bytes", .least = 1, .most = 1 << 30, .required = true});
    v("by", by,
      {.help = "What parts of one unit have in common: unit, its number; time, that of their packets, which is the unit's number "
               "then; "
               "null: as the format declares it, else unit"});
    v("tolerance_ns", tolerance_ns,
      {.help = "By time: how far the times of packets of one unit are apart at most",
       .unit = "ns",
       .least = 0,
       .most = 1'000'000'000'000,
       .too_small = "units fall into parts when clocks differ, each handed over incomplete",
       .too_big = "at half of the time between two units and above, parts of different ones are mixed"});
  }

  // Each stream has one part.
  std::optional<config::Problem> check() const;

  bool is_by_time(const UnitTime& time) const;
  // Who merges by time needs packets that say one.
  std::optional<config::Problem> check(const UnitTime& time) const;
};

enum class ResendBy : std::uint8_t { gvcp };
constexpr auto choices(ResendBy) { return std::array{config::Choice{"gvcp", ResendBy::gvcp}}; }

struct ResendConfig {
  static constexpr config::Component component{"Resend", "How the sender of units is asked for packets that are missing."};

  ResendBy by = ResendBy::gvcp;
  std::string endpoint;
  std::uint64_t after_us = 1000;
  std::uint64_t again_us = 10'000;
  std::uint32_t tries_max = 3;
  std::uint32_t packets_max = 256;

  template <class Visit>
  void visit(Visit&& v) {
    v("by", by, {.help = "The protocol of the requests. gvcp: PACKETRESEND_CMD of GigE Vision, for formats that count packets"});
    v("endpoint", endpoint,
      {.help = "Where requests go, udp://ADDRESS:PORT; the control port of a GigE Vision camera is 3956",
       .form = "Endpoint",
       .required = true});
    v("after_us", after_us,
      {.help = "How often holes are looked for. One is asked for when it was there at two looks in a row, the end of a unit when "
               "no "
               "packet of it came for again_us",
       .unit = "us",
       .least = 1,
       .most = 1'000'000,
       .too_small = "packets that are merely reordered are asked for, and come twice",
       .too_big = "the sender has forgotten them, or the unit is closed before they come"});
    v("again_us", again_us,
      {.help = "After how long what is still missing is asked for again",
       .unit = "us",
       .least = 1,
       .most = 10'000'000,
       .too_small = "asked for again while the answer is on its way, and then it comes twice"});
    v("tries_max", tries_max,
      {.help = "How often the holes of a unit are asked for at most", .unit = "times", .least = 1, .most = 16});
    v("packets_max", packets_max,
      {.help = "Packets of a unit that are asked for at most; what is missing beyond that is lost",
       .unit = "packets",
       .least = 1,
       .most = 65536,
       .too_big = "where packets are lost since there are too many, still more of them"});
  }
};

struct AssembleConfig {
  static constexpr config::Component component{
      "Assemble", "How units (frames, events, heaps) are put together from many packets, each in a buffer of its own."};

  std::vector<StreamRangeConfig> streams;
  std::uint32_t streams_max = 64;
  std::uint64_t stream_idle_us = 10'000'000;
  std::uint32_t units_open = 4;
  std::uint64_t timeout_us = 100'000;
  IncompletePolicy incomplete = IncompletePolicy::process;
  std::uint64_t unit_step = 0;
  std::optional<StreamMergeConfig> merge;
  std::optional<ResendConfig> resend;

  template <class Visit>
  void visit(Visit&& v) {
    v("streams", streams,
      {.help = "Which streams (senders of units) there are; packets of others are refused as packets_unknown_stream; none: any, so "
               "whoever may send can also invent some",
       .length_most = 64});
    v("streams_max", streams_max,
      {.help = "Most streams at a time; packets of a further one are refused as packets_no_stream, unless one is idle",
       .unit = "streams",
       .least = 1,
       .most = 65536,
       .too_big = "1.7 kB of memory for each"});
    v("stream_idle_us", stream_idle_us,
      {.help = "A stream of which no packet was accepted for so long makes room for a further one, as streams_evicted",
       .unit = "us",
       .least = 1,
       .most = 86'400'000'000,
       .too_small = "streams that merely pause lose their books, and their place to invented ones",
       .too_big = "invented streams keep new ones out for so long"});
    v("units_open", units_open,
      {.help = "Most units of a stream that are incomplete at a time; when a further one begins, the oldest is closed as "
               "units_overflow",
       .unit = "units",
       .least = 1,
       .most = 64,
       .too_small = "units whose packets arrive mixed are closed early",
       .too_big = "a unit that lost a packet is handed over late, and buffers are taken meanwhile"});
    v("timeout_us", timeout_us,
      {.help = "A unit is closed incomplete when its first packet came this long ago; its later packets are packets_late for as "
               "long again",
       .unit = "us",
       .least = 1,
       .most = 3'600'000'000,
       .too_small = "units whose packets are merely slow are closed without them",
       .too_big = "the last units before a pause are handed over late if they lost a packet"});
    v("incomplete", incomplete,
      {.help = "process: a unit with holes is handed over, with what came; drop: it is dropped as units_discarded"});
    v("unit_step", unit_step,
      {.help = "By how much the number of a unit grows from one to the next of its stream: so units of which no packet came are "
               "known, as "
               "units_lost; 0: not known",
       .least = 0,
       .most = 0x1p40});
    v("merge", merge, {.help = "Units of several streams are parts of one unit; null: each stream has units of its own"});
    v("resend", resend, {.help = "The sender is asked for packets that are missing; null: no one is"});
  }

  // What merges says itself which streams there are, and has no packets of its own to ask for; who asks does so before a unit is closed.
  std::optional<config::Problem> check() const;
};

// What all links have. The key `protocol` of a configuration is the name of one, and `memory_region` that of a region.
struct LinkConfig {
  static constexpr config::Component component{"Link", "One place where packets come from."};

  std::string name;
  std::string endpoint;
  std::uint32_t batch_size = 128;
  std::uint64_t timeout_us = 0;
  std::uint32_t socket_buffer_bytes = 64u << 20;
  std::uint32_t packet_bytes_max = 1472;
  bool gro = true;
  std::uint32_t busy_poll_us = 0;
  std::string interface;
  std::vector<std::string> senders;
  std::vector<SourceConfig> sources;
  std::optional<AssembleConfig> assemble;
  std::optional<link::FaultConfig> faults;
  std::optional<RecordConfig> record;

  const Protocol* protocol = nullptr;               // must be given
  std::shared_ptr<const void> protocol_owner = {};  // keeps what `protocol` points to, if that is no constant
  MemoryRegionConfig memory_region;                 // each link fills a CLOP of its own
  std::shared_ptr<const LinkKind> kind;             // none: the built-in one that the endpoint's scheme names
  std::any section;  // what only its kind needs, such as a link::XdpConfig, whose name, endpoints and sizes come from here; empty: the defaults
  std::uint32_t queue = 0;  // which of its queues this is, where it is one of several (LinkKind::queue_count)
  config::Value settings;   // what only a plug-in's kind of link needs: a map of its own keys

  template <class Visit>
  void visit(Visit&& v) {
    v("name", name, {.help = "Name in reports", .form = "Name", .required = true});
    v("endpoint", endpoint, {.help = "Where to listen", .required = true});
    v("batch_size", batch_size,
      {.help = "Most packets in one receive call",
       .unit = "packets",
       .least = 1,
       .most = 4096,
       .too_small = "a system call for every few packets, which lowers the critical rate",
       .too_big = "the first packet of a batch waits for the last one"});
    v("timeout_us", timeout_us,
      {.help = "Hand a buffer over when its oldest packet is this old; 0: after every batch",
       .unit = "us",
       .least = 0,
       .most = 1'000'000,
       .too_small = "small buffers, so more hand-overs per second",
       .too_big = "latency at low rates"});
    v("socket_buffer_bytes", socket_buffer_bytes,
      {.help = "Receive buffer requested from the kernel; what it grants is reported",
       .unit = "bytes",
       .least = 4096,
       .most = 0x1p31,
       .too_small = "packets_lost_kernel at every pause of the receiving thread",
       .too_big = "packets that are late instead of lost after a long pause"});
    v("packet_bytes_max", packet_bytes_max,
      {.help = "Longest payload that is accepted; 1472 fits a 1500-byte MTU, 8972 a 9000-byte one",
       .unit = "bytes",
       .least = 24,
       .most = 65507,
       .too_small = "packets are refused as packets_truncated",
       .too_big = "more room kept free at the end of each buffer"});
    v("gro", gro, {.help = "Take many packets of equal size in one piece from the kernel (UDP_GRO)"});
    v("busy_poll_us", busy_poll_us,
      {.help = "Let the kernel poll the NIC this long in a receive call (SO_BUSY_POLL); 0: off",
       .unit = "us",
       .least = 0,
       .most = 1'000'000,
       .too_big = "time in which the thread does nothing else"});
    v("interface", interface,
      {.help = "Network interface. udp: use this one whatever the routes say; xdp: null is the one that has the address; not with "
               "other kinds",
       .length_least = 1,
       .length_most = 15,
       .nullable = true});
    v("senders", senders,
      {.help = "Addresses or networks (10.0.0.0/24, 2001:db8::/32) that may send here; packets from others are refused and "
               "counted; none: "
               "anyone",
       .length_most = 64,
       .form = "Network"});
    v("sources", sources, {.help = "Which boards may send here, by the ID in their packets; others are refused and counted"});
    v("assemble", assemble,
      {.help = "How packets are put together to units, for protocols whose packets are pieces of some; a buffer of the memory "
               "region has to "
               "hold the longest; null: a protocol that needs it has the defaults"});
    v("faults", faults, {.help = "Faults injected on purpose; null: none"});
    v("record", record, {.help = "Recording of what arrives; null: none"});
  }
};

struct MergeConfig {
  static constexpr config::Component component{"Merge",
                                               "How the parts of an event from several sources are put together, by timestamp."};

  std::uint64_t window_us = 200;
  std::uint32_t open_events_max = 8192;
  IncompletePolicy incomplete = IncompletePolicy::drop;

  template <class Visit>
  void visit(Visit&& v) {
    v("window_us", window_us,
      {.help = "How long an open event waits for its missing parts",
       .unit = "us",
       .least = 1,
       .most = 1'000'000,
       .too_small = "parts that are merely slow arrive after their event was closed without them",
       .too_big = "more latency for every event that lost a part, and more open events"});
    v("open_events_max", open_events_max,
      {.help = "Most events that can be open at once, a power of two",
       .unit = "events",
       .least = 16,
       .most = 1 << 20,
       .too_small = "events_overflow at high rates: events are closed early",
       .too_big = "the working set exceeds the caches"});
    v("incomplete",
      incomplete, {.help = "process: an event with a part missing is answered from the hits that arrived; drop: it is dropped as events_discarded"});
  }

  // A power of two.
  std::optional<config::Problem> check() const;
};

// Where a processor's packets go.
struct SendConfig {
  std::string name = "answers";        // of the link
  std::vector<std::string> endpoints;  // each packet goes to all of them; at most Transmitter::kDestinationsMax
  std::string via;                     // name of the link that sends them; empty: a UDP socket of their own, or `torus`
  std::optional<link::TorusFrom> torus = {};
  link::GroupSending group_sending = {};
};

struct WaitingConfig {
  static constexpr config::Component component{"Waiting", "What a thread does when there is nothing to do."};

  std::int64_t spin = 20'000;
  std::uint64_t sleep_us = 100;

  template <class Visit>
  void visit(Visit&& v) {
    v("spin", spin,
      {.help = "Empty polls before it sleeps; -1: spin forever, which needs a core of its own",
       .unit = "polls",
       .least = -1,
       .most = 0x1p40,
       .too_small = "the kernel's wake-up time (about 30 us) is added at every pause",
       .too_big = "a core that is never idle"});
    v("sleep_us", sleep_us,
      {.help = "Longest sleep, after which time-outs are checked",
       .unit = "us",
       .least = 1,
       .most = 1'000'000,
       .too_big = "buffers and open events are handed over late while nothing arrives"});
  }
};

struct CoresConfig {
  static constexpr config::Component component{
      "Cores", "Which core each thread is pinned to; null: not pinned. A thread that cannot be pinned as asked does not start."};

  std::optional<int> receive;
  std::optional<int> process;
  std::optional<int> send;
  std::vector<int> lanes;
  std::optional<int> realtime_priority;

  template <class Visit>
  void visit(Visit&& v) {
    v("receive", receive,
      {.help = "Core of the receiving thread, which in run_to_completion does all the work; null: not pinned", .form = "Core"});
    v("process", process,
      {.help = "Core of the processing thread, which with a GPU sends too; pipelined only; null: not pinned", .form = "Core"});
    v("send", send, {.help = "Core of the sending thread; pipelined only, and not with a GPU; null: not pinned", .form = "Core"});
    v("lanes", lanes,
      {.help = "In place of receive, run_to_completion only: a thread on each of these cores, among which the links and their "
               "queues are dealt in turn. Each receives and processes alone, so the processor must be one that shares nothing, "
               "such as count",
       .length_most = 64,
       .form = "Core"});
    v("realtime_priority", realtime_priority,
      {.help = "SCHED_FIFO priority of the receiving threads, which must be pinned: they run before every ordinary thread. Refused "
               "while the"
               " kernel's real-time throttling is off; null: an ordinary thread",
       .least = 1,
       .most = 99,
       .too_big = "real-time kernel threads, such as those of interrupts (50), have to wait"});
  }

  // A thread with priority is pinned.
  std::optional<config::Problem> check() const;
};

struct EngineConfig {
  Topology topology = Topology::run_to_completion;
  CoresConfig cpu_cores;
  std::vector<LinkConfig> links;
  std::shared_ptr<Processor> processor;  // must be given; of one engine
  std::optional<SendConfig> send;
  WaitingConfig waiting;
};

}  // namespace nanet::engine
