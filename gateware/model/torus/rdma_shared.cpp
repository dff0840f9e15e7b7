// SPDX-License-Identifier: Apache-2.0
#include "model/torus/rdma_shared.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

namespace nanet::torus {
namespace {

using link::TorusJobKind;

constexpr std::uint64_t kCyclesPerUs = 175;
constexpr std::size_t kJobsAhead = 8;       // of a node, beyond which the others stay with their host
constexpr std::size_t kUnderWayMax = 4096;  // of a pair of nodes, whose flights are told; a lost one is forgotten when a later one lands

static_assert(link::kTorusNodeBytes == kHostBytes && link::kTorusKeys == kKeys);

// What a node counts: what became of packets, then messages and jobs.
constexpr std::array<std::string_view, 5> kOtherNames{"missed", "refused", "gone_good", "gone_bad", "lost"};
constexpr std::size_t kCounts = kPacketNames.size() + kOtherNames.size();
static_assert(kCounts <= link::kTorusCountsMax);

std::vector<std::string_view> count_names() {
  std::vector<std::string_view> names(kPacketNames.begin(), kPacketNames.end());
  names.insert(names.end(), kOtherNames.begin(), kOtherNames.end());
  return names;
}

std::array<std::uint32_t, 3> numbers(const Shape& shape) { return {shape.of(0), shape.of(1), shape.of(2)}; }

std::span<std::uint8_t> bytes_of(std::span<std::byte> memory) {
  return {reinterpret_cast<std::uint8_t*>(memory.data()), memory.size()};
}

}  // namespace

void Flights::add(std::uint64_t cycles) {
  cycles_min = count == 0 ? cycles : std::min(cycles_min, cycles);
  cycles_max = std::max(cycles_max, cycles);
  cycles_sum += cycles;
  ++count;
}

SharedTorus::SharedTorus(const Shape& shape, const std::string& path, std::uint32_t wire_cycles, unsigned threads)
    : file_(link::TorusFile::create(path, numbers(RdmaTorus::checked(shape, wire_cycles)), wire_cycles, count_names())),
      torus_(shape, wire_cycles, bytes_of(file_.memories()), threads),
      hosts_(shape.nodes()),
      turn_cycles_(wire_cycles - 1),
      quiet_cycles_(RdmaTorus::quiet_cycles(wire_cycles)) {}

bool SharedTorus::turn() {
  if (take_from_hosts()) busy_until_ = torus_.cycle() + quiet_cycles_;
  const bool is_quiet = torus_.cycle() >= busy_until_;
  if (is_quiet && !is_quiet_) torus_.begin_reading();
  is_quiet_ = is_quiet;
  const bool is_busy = !is_quiet || !torus_.has_read();
  if (is_busy) torus_.run(turn_cycles_);
  if (give_to_hosts()) busy_until_ = torus_.cycle() + quiet_cycles_;
  return is_busy;
}

// Jobs before keys: a host whose slots are known has given their key out before.
bool SharedTorus::take_from_hosts() {
  bool any = false;
  link::TorusJob job;
  for (std::uint32_t n = 0; n < hosts_.size(); ++n) {
    RdmaNode& node = torus_.node(n);
    while (node.jobs() < kJobsAhead && file_.host(n).jobs.pop(job)) {
      any = true;
      if (job.to >= hosts_.size()) continue;  // no host of ours: there is no such node
      const bool is_put = job.kind == TorusJobKind::put;
      node.post({.kind = is_put ? RdmaKind::put : RdmaKind::event,
                 .to = torus_.shape().place(job.to),
                 .process = job.process,
                 .nonce = job.nonce,
                 .region = job.region,
                 .offset = job.offset,
                 .local = RdmaNode::device_address(job.local),
                 .bytes = job.bytes});
      auto& under_way = under_way_[{n, job.to}];
      if (is_put && under_way.size() < kUnderWayMax) under_way.push_back({job.process, torus_.cycle()});
    }
  }
  link::TorusKey key;
  for (std::uint32_t n = 0; n < hosts_.size(); ++n) {
    while (file_.host(n).keys.pop(key)) {
      any = true;
      torus_.node(n).set_key({.index = static_cast<std::uint8_t>(key.index % kKeys),
                              .is_valid = key.is_valid,
                              .is_readable = false,
                              .is_writable = key.is_valid,
                              .nonce = key.nonce,
                              .offset = key.offset,
                              .bytes = key.bytes});
    }
  }
  return any;
}

bool SharedTorus::give_to_hosts() {
  bool any = false;
  for (std::uint32_t n = 0; n < hosts_.size(); ++n) {
    if (give(n)) any = true;
    const std::uint64_t sum = publish_counts(n) + torus_.node(n).jobs();
    if (std::exchange(hosts_[n].seen, sum) != sum) any = true;
  }
  return any;
}

// A host that takes nothing leaves the queue of its network interface full, which then drops packets.
bool SharedTorus::give(std::uint32_t node) {
  std::deque<Completion>& waiting = hosts_[node].waiting;
  if (waiting.empty()) {
    for (const Completion& one : torus_.take(node)) {
      count_flight(node, one);
      waiting.push_back(one);
    }
  }
  bool any = false;
  for (; !waiting.empty() && file_.host(node).completions.push(waiting.front()); waiting.pop_front()) any = true;
  return any;
}

void SharedTorus::count_flight(std::uint32_t to, const Completion& one) {
  if (one.kind != CompletionKind::message || one.reserved0 != static_cast<std::uint8_t>(RdmaKind::put)) return;
  const auto process = static_cast<std::uint16_t>(one.reserved1 >> 32);
  auto& under_way = under_way_[{file_.head().node_at(static_cast<std::uint16_t>(one.reserved1)), to}];
  const auto found = std::ranges::find(under_way, process, &Under::process);
  if (found == under_way.end()) return;
  const std::uint64_t made = (one.last_packet_ns * kCyclesPerUs + 999) / 1000;  // its nanoseconds are cut, so up
  flights_.add(made - found->cycle);
  under_way.erase(under_way.begin(), found + 1);
}

std::uint64_t SharedTorus::publish_counts(std::uint32_t node) {
  const RdmaCounts& counts = torus_.node(node).counts();
  std::array<std::uint64_t, kCounts> all{};
  std::ranges::copy(counts.packets, all.begin());
  const std::array<std::uint64_t, kOtherNames.size()> rest{counts.missed, counts.refused, counts.gone_good, counts.gone_bad,
                                                           counts.lost};
  std::ranges::copy(rest, all.begin() + static_cast<std::ptrdiff_t>(counts.packets.size()));
  auto& shared = file_.host(node).counts;
  for (std::size_t k = 0; k < all.size(); ++k) shared[k].store(all[k], std::memory_order_relaxed);
  const auto& read = torus_.node(node).registers().counters();
  for (std::size_t k = 0; k < read.size(); ++k) file_.host(node).registers[k].store(read[k], std::memory_order_relaxed);
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

}  // namespace nanet::torus
