// SPDX-License-Identifier: Apache-2.0
#include "trigger/node.hpp"

#include <algorithm>
#include <bit>
#include <chrono>

#include "nanet/config/read.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/flow/wait.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::trigger {
namespace {

constexpr std::size_t kRoomBytes = 256 * 1024;            // of datagrams per turn
constexpr std::uint64_t kDrainQuietNs = 20'000'000;       // nothing came for this long: the rest has arrived
constexpr std::uint64_t kDrainLongestNs = 1'000'000'000;  // a sender that does not stop is not waited for

link::UdpConfig link_config(const NodeConfig& config) {
  link::UdpConfig udp;
  udp.name = "l0tp";
  udp.listen = link::parse_endpoint(config.listen);
  if (config.decisions) udp.destinations = {link::parse_endpoint(*config.decisions)};
  udp.rx_socket_bytes = config.socket_buffer_bytes;
  udp.packet_bytes_max = wire::kMtpBytesMax;
  if (udp.listen->port != 0 && !udp.destinations.empty() && udp.destinations[0] == *udp.listen) {
    throw SetupError("decisions go to the trigger processor's own " + config.listen, "it would take them for primitives",
                     "choose another port for one of them");
  }
  return udp;
}

// With an aligner the patience says what silence is.
l0tp::Config processor_config(const NodeConfig& config) {
  l0tp::Config processor = config.processor;
  if (config.patience_ms > 0) processor.silence_us = 0;
  return processor;
}

// Some counters as words, so that they can be published one by one.
template <class T>
std::size_t put(const T& counters, std::atomic<std::uint64_t>* to) {
  const auto words = std::bit_cast<std::array<std::uint64_t, sizeof(T) / 8>>(counters);
  for (std::size_t i = 0; i < words.size(); ++i) to[i].store(words[i], std::memory_order_relaxed);
  return words.size();
}
template <class T>
std::size_t get(T& counters, const std::atomic<std::uint64_t>* from) {
  std::array<std::uint64_t, sizeof(T) / 8> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = from[i].load(std::memory_order_relaxed);
  counters = std::bit_cast<T>(words);
  return words.size();
}

}  // namespace

std::optional<config::Problem> NodeConfig::check() const {
  if (auto broken = processor.check()) return broken;
  if (decisions != listen) return std::nullopt;
  return config::Problem{"decisions", "listen and decisions are both " + listen, "triggers are not primitives", "change one"};
}

TriggerNode::TriggerNode(const NodeConfig& config)
    : config_(config::require(config)),
      processor_(processor_config(config)),
      link_(std::make_unique<link::UdpLink>(link_config(config))),
      sender_(*link_, config.decisions ? Destination::link : Destination::none, config.source_sub_id),
      room_(std::max(kRoomBytes, link_->min_room_bytes())) {
  if (config.patience_ms > 0) aligner_.emplace(processor_, config.processor, config.patience_ms * 1'000'000);
}

TriggerNode::~TriggerNode() { stop(); }

void TriggerNode::start() {
  if (thread_.joinable() || start_ns_.load() != 0) {
    throw SetupError("the trigger processor was started before", "one object is one run", "make a new one");
  }
  const auto prepare = [this] {
    start_ns_.store(flow::clock_now_ns());
    if (config_.cpu_core) flow::pin_this_thread(*config_.cpu_core);
    flow::name_this_thread("nanet-l0tp");
    if (config_.waiting.gather_us > 0) flow::ask_for_short_turns();  // it shares its core
  };
  running_.store(true);
  try {
    thread_.start(prepare, [this] { run(); });
  } catch (...) {
    running_.store(false, std::memory_order_release);
    throw;
  }
}

void TriggerNode::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void TriggerNode::run() {
  const std::uint64_t waited_before_ns = flow::this_thread_core_wait_ns();
  const auto [spin, sleep_us, gather_us] = config_.waiting;
  std::int64_t idle_turns = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (turn() > 0) {
      idle_turns = 0;
      if (gather_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(gather_us));
    } else if (spin < 0 || idle_turns < spin) {
      ++idle_turns;
      flow::cpu_relax();
    } else {
      link_->wait(sleep_us * 1000);
    }
  }
  const std::uint64_t stop_ns = flow::clock_now_ns();
  std::uint64_t quiet_since_ns = stop_ns;
  for (std::uint64_t now_ns = stop_ns; now_ns - quiet_since_ns < kDrainQuietNs && now_ns - stop_ns < kDrainLongestNs;
       now_ns = flow::clock_now_ns()) {
    if (turn() > 0) quiet_since_ns = now_ns;
    link_->wait(sleep_us * 1000);
  }
  flush();
  core_wait_ns_.store(flow::this_thread_core_wait_ns() - waited_before_ns);
  end_ns_.store(flow::clock_now_ns());
  running_.store(false, std::memory_order_release);
}

// Returns the number of datagrams taken.
std::uint32_t TriggerNode::turn() {
  const link::RxBatch batch = link_->receive(room_, packets_, 0);
  const std::uint64_t now_ns = flow::clock_now_ns();
  const std::uint64_t seen_before = decisions_seen_;
  for (std::uint32_t i = 0; i < batch.packet_count; ++i) {
    const link::RxPacket& packet = packets_[i];
    // What was cut short says nothing reliable: as an empty datagram it is counted as of bad length.
    const bool whole = (packet.flags & link::RxPacket::truncated) == 0;
    take(std::span(room_).subspan(packet.offset, whole ? packet.bytes : 0), now_ns);
    decide(now_ns);
  }
  if (batch.packet_count == 0) nothing_came(now_ns);
  sender_.send(flow::clock_now_ns);
  if (batch.packet_count > 0 || decisions_seen_ != seen_before) publish();
  return batch.packet_count;
}

void TriggerNode::take(std::span<const std::byte> datagram, std::uint64_t now_ns) {
  aligner_ ? aligner_->take(datagram, now_ns) : processor_.take(datagram, now_ns);
}

void TriggerNode::nothing_came(std::uint64_t now_ns) {
  if (aligner_) {
    aligner_->give_up_on_silent(now_ns);
    if (aligner_->all_silent()) return flush();
  }
  decide(now_ns);
}

void TriggerNode::decide(std::uint64_t now_ns) {
  std::size_t count = 0;
  do {
    count = aligner_ ? aligner_->decide(now_ns, decisions_) : processor_.decide(now_ns, decisions_);
    pass_on(count);
  } while (count == decisions_.size());
}

void TriggerNode::flush() {
  std::size_t count = 0;
  do {
    count = aligner_ ? aligner_->flush(flow::clock_now_ns(), decisions_) : processor_.flush(decisions_);
    pass_on(count);
  } while (count == decisions_.size());
  sender_.send(flow::clock_now_ns);
  publish();
}

void TriggerNode::pass_on(std::size_t count) {
  decisions_seen_ += count;
  for (const l0tp::Decision& decision : std::span(decisions_).first(count)) {
    if (!decision.is_trigger() || sender_.add(decision)) continue;
    sender_.send(flow::clock_now_ns);
    sender_.add(decision);
  }
}

void TriggerNode::publish() {
  std::atomic<std::uint64_t>* to = published_.data();
  to += put(processor_.stats(), to);
  for (std::uint32_t i = 0; i < processor_.input_count(); ++i) to += put(processor_.input_stats(i), to);
  for (const l0tp::MaskStats& mask : processor_.mask_stats()) to += put(mask, to);
  const std::uint64_t held = aligner_ ? aligner_->held(processor_.reference_index()) : 0;
  put(Own{processor_.pending_count() + held, sender_.triggers_sent(), sender_.packets_sent()}, to);
}

NodeSnapshot TriggerNode::snapshot() const {
  NodeSnapshot snapshot;
  snapshot.inputs.resize(processor_.input_count());
  snapshot.masks.resize(processor_.mask_stats().size());
  const std::atomic<std::uint64_t>* from = published_.data();
  from += get(snapshot.stats, from);
  for (l0tp::InputStats& input : snapshot.inputs) from += get(input, from);
  for (l0tp::MaskStats& mask : snapshot.masks) from += get(mask, from);
  Own own{};
  get(own, from);
  snapshot.pending = own.pending;
  snapshot.triggers_sent = own.triggers_sent;
  snapshot.decision_packets = own.decision_packets;
  const std::uint64_t start_ns = start_ns_.load();
  const std::uint64_t end_ns = end_ns_.load();
  if (start_ns != 0) snapshot.elapsed_s = 1e-9 * static_cast<double>((end_ns != 0 ? end_ns : flow::clock_now_ns()) - start_ns);
  snapshot.core_wait_s = 1e-9 * static_cast<double>(core_wait_ns_.load());
  snapshot.link = link_->stats();
  snapshot.latency = sender_.latency();
  return snapshot;
}

}  // namespace nanet::trigger
