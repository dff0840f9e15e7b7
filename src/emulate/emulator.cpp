// SPDX-License-Identifier: Apache-2.0
#include "emulate/emulator.hpp"

#include <algorithm>
#include <utility>

#include "nanet/config/read.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/link/xdp.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::emulate {
namespace {

constexpr int kMarkerRepeats = 3;
constexpr std::uint64_t kMarkerEveryNs = 5'000'000;        // while events are unanswered
constexpr std::uint64_t kSilenceNs = 5'000'000'000;        // a stopped engine is waited for
constexpr std::uint64_t kDrainLongestNs = 30'000'000'000;  // and what never stops to answer is not
constexpr std::uint64_t kSettleNs = 1'000'000;             // from the start markers to the start of the run
constexpr std::uint64_t kGiveUpNs = 100'000'000;           // an answer that took longer is not waited for
constexpr std::uint64_t kAwakeNs = 10'000'000;  // after what was sent or came last: an answer in flight finds the thread awake
constexpr std::uint64_t kRestNs = 1'000'000;
constexpr double kUnpacedRate = 10e6;  // event times of a run that goes as fast as it can

Schedule make_schedule(const EmulatorConfig& config) {
  const std::uint32_t per_packet = config.events_per_packet;
  const std::uint32_t pool_events = (config.pool_events + per_packet - 1) / per_packet * per_packet;
  const bool paced = config.rate_events_per_s > 0;
  // The seed of the arrival times differs from that of the events, but follows from it.
  Arrivals arrivals = poisson_arrivals(pool_events, paced ? config.rate_events_per_s : kUnpacedRate,
                                       config.monte_carlo.seed ^ 0x9E3779B97F4A7C15u);
  return Schedule({.events_per_packet = per_packet,
                   .pacing = paced ? Pacing::paced : Pacing::unpaced,
                   .spill_s = config.spill_s,
                   .pause_s = config.pause_s,
                   .duration_s = config.duration_s,
                   .packets_total = (config.events_total + per_packet - 1) / per_packet},
                  std::move(arrivals));
}

std::vector<link::Endpoint> endpoints(const EmulatorConfig& config) {
  std::vector<link::Endpoint> found;
  for (std::uint32_t board = 0; board < config.boards && !config.destinations.empty(); ++board) {
    found.push_back(link::parse_endpoint(config.destinations[config.destinations.size() == 1 ? 0 : board]));
  }
  if (config.detectors) found.push_back(link::parse_endpoint(config.detectors->endpoint));
  return found;
}

bool answers_have_own_link(const EmulatorConfig& config) {
  return config.xdp && config.xdp->boards == BoardPath::socket && !config.destinations.empty();
}

std::unique_ptr<link::Link> open_xdp_link(const EmulatorConfig& config, std::uint32_t packet_bytes) {
  link::XdpConfig xdp;
  xdp.name = "emulator";
  xdp.listen = link::parse_endpoint(*config.answers);
  if (!answers_have_own_link(config)) xdp.destinations = endpoints(config);
  xdp.group_sending = config.group_sending;
  xdp.interface = config.xdp->interface;
  xdp.frame_count = config.xdp->frame_count;
  xdp.packet_bytes_max = std::max<std::uint32_t>(packet_bytes, wire::kMtpBytesMax);
  xdp.checksum = link::XdpChecksum::absent;
  return link::open_xdp(xdp);
}

std::unique_ptr<link::Link> open_link(const EmulatorConfig& config, std::uint32_t packet_bytes) {
  if (config.xdp && !answers_have_own_link(config)) return open_xdp_link(config, packet_bytes);
  link::UdpConfig udp;
  udp.name = "emulator";
  if (config.answers && !config.xdp) udp.listen = link::parse_endpoint(*config.answers);
  udp.destinations = endpoints(config);
  udp.group_sending = config.group_sending;
  udp.rx_socket_bytes = config.answers_socket_bytes;
  udp.packet_bytes_max = std::max<std::uint32_t>(packet_bytes, wire::kMtpBytesMax);
  return std::make_unique<link::UdpLink>(udp);
}

link::UdpConfig decision_link_config(const EmulatorConfig& config) {
  link::UdpConfig udp;
  udp.name = "decisions";
  udp.listen = link::parse_endpoint(*config.decisions);
  udp.rx_socket_bytes = config.answers_socket_bytes;
  udp.packet_bytes_max = wire::kL0DecisionBytesMax;
  return udp;
}

}  // namespace

Emulator::Emulator(const EmulatorConfig& config) : config_(config), stalls_(config.stall_ns) {
  config::require(config);
  const bool sends = !config.destinations.empty();
  std::span<const std::uint64_t> pool_keys;
  if (sends) {
    schedule_.emplace(make_schedule(config));
    pool_keys = schedule_->pool_keys();
    sample_.emplace(config, pool_keys);
  }
  const std::uint64_t outstanding = sends ? config.outstanding_events / config.events_per_packet + 1 : 1;
  book_.emplace(pool_keys, config.events_per_packet, outstanding, config.first_timestamp);
  const std::uint32_t packet_bytes = sends ? sample_->packet_bytes() : 0;
  link_ = open_link(config, packet_bytes);
  if (answers_have_own_link(config)) answers_link_ = open_xdp_link(config, packet_bytes);
  if (sends) tel62_.emplace(config, *schedule_, *sample_, *book_, *link_);
  if (config.answers) {
    const bool check = sends && config.answer_check == AnswerCheck::primitive;
    checker_.emplace(config, *book_, check ? sample_->primitive_ids() : std::span<const std::uint16_t>{}, answers_link(), stalls_,
                     course_);
  }
  if (config.detectors) {
    detectors_.emplace(*config.detectors, *schedule_, config.first_timestamp, config.monte_carlo.seed, *link_, config.boards);
  }
  if (config.decisions) {
    decision_link_ = std::make_unique<link::UdpLink>(decision_link_config(config));
    decisions_.emplace(*book_, *decision_link_);
  }
}

Emulator::~Emulator() { stop(); }

void Emulator::start() {
  if (thread_.joinable() || phase_.load() != RunPhase::ready) {
    throw SetupError("the emulator was started before", "one object is one run", "make a new one");
  }
  const auto prepare = [this] {
    if (config_.cpu_core) flow::pin_this_thread(*config_.cpu_core);
    flow::name_this_thread("nanet-emulate");
  };
  running_.store(true);
  try {
    thread_.start(prepare, [this] { run(); });
  } catch (...) {
    phase_.store(RunPhase::finished);
    running_.store(false, std::memory_order_release);
    throw;
  }
}

void Emulator::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void Emulator::run() {
  if (tel62_) {
    for (int i = 0; i < kMarkerRepeats; ++i) tel62_->send_markers(MarkerKind::start, flow::clock_now_ns());
  }
  const std::uint64_t start_ns = flow::clock_now_ns() + kSettleNs;
  if (tel62_) tel62_->start(start_ns);
  course_.start(start_ns);
  start_ns_.store(start_ns);
  phase_.store(RunPhase::sending);
  send_and_receive();

  if (tel62_) {
    for (int i = 0; i < kMarkerRepeats; ++i) tel62_->send_markers(MarkerKind::end, flow::clock_now_ns());
  }
  end_ns_.store(std::max(flow::clock_now_ns(), start_ns));
  phase_.store(RunPhase::draining);
  drain();
  course_.close_step(std::max(flow::clock_now_ns(), start_ns), events_sent(), events_answered());
  phase_.store(RunPhase::finished);
  running_.store(false, std::memory_order_release);
}

void Emulator::send_and_receive() {
  // A paced schedule ends by itself; what has no schedule ends by the clock.
  const bool by_clock = config_.duration_s > 0 && (!tel62_ || config_.rate_events_per_s == 0);
  const std::uint64_t last_ns = by_clock ? start_ns_.load() + static_cast<std::uint64_t>(config_.duration_s * 1e9)
                                         : ~std::uint64_t{0};
  while (true) {
    const std::uint64_t now_ns = look();
    const bool in_batch = tel62_ && tel62_->in_batch();
    if (!in_batch && (stopping_.load(std::memory_order_relaxed) || now_ns >= last_ns)) return;
    if (tel62_) {
      const bool behind = detectors_ && detectors_->must_catch_up(boards_ns(now_ns));
      if (in_batch || (!behind && !must_wait(now_ns))) send_once();
      if (tel62_->finished()) return;
    }
    if (detectors_) detectors_->turn(boards_ns(now_ns), now_ns);
    if (!receive_once() && !detectors_) rest(now_ns, tel62_ ? start_ns_.load() + tel62_->next_due_ns() : last_ns);
  }
}

void Emulator::drain() {
  if (config_.drain_ms == 0) return;
  const std::uint64_t began_ns = flow::clock_now_ns();
  std::uint64_t heard_ns = 0;
  std::uint64_t quiet_since_ns = began_ns;
  std::uint64_t next_marker_ns = began_ns + kMarkerEveryNs;
  const auto quiet_ns = std::uint64_t{config_.quiet_ms} * 1'000'000;
  while (true) {
    const std::uint64_t now_ns = look();
    if (now_ns >= drained_ns(began_ns, heard_ns)) return;
    const bool heard = receive_once();
    if (heard) quiet_since_ns = heard_ns = now_ns;
    if (detectors_ && !detectors_->finished(tel62_->packets_sent())) {
      if (detectors_->turn(boards_ns(now_ns), now_ns)) quiet_since_ns = now_ns;
    } else if (!heard) {
      rest(now_ns, now_ns + kMarkerEveryNs);
    }
    if (events_answered() == events_sent()) {
      if (now_ns > quiet_since_ns + quiet_ns) return;
    } else if (tel62_ && now_ns >= next_marker_ns) {
      tel62_->send_markers(MarkerKind::end, now_ns);
      next_marker_ns = now_ns + kMarkerEveryNs;
    }
  }
}

// When events that are unanswered are given up. heard_ns: of the newest packet since sending ended; 0: none came.
std::uint64_t Emulator::drained_ns(std::uint64_t began_ns, std::uint64_t heard_ns) const {
  const auto drain_ns = std::uint64_t{config_.drain_ms} * 1'000'000;
  const bool may_be_stopped = heard_ns == 0 && events_answered() > 0;
  const std::uint64_t since_ns = may_be_stopped ? began_ns + kSilenceNs : std::max(began_ns, heard_ns);
  return std::min(since_ns, began_ns + kDrainLongestNs) + drain_ns;
}

void Emulator::send_once() {
  if (!tel62_->prepare(look())) return;
  last_send_ns_ = look();
  tel62_->send(last_send_ns_);
}

bool Emulator::must_wait(std::uint64_t now_ns) {
  if (config_.in_flight_packets_max == 0) return false;
  const std::uint64_t settled = events_answered() + events_given_up_;
  const std::uint64_t in_flight = events_sent() > settled ? events_sent() - settled : 0;
  if (in_flight < std::uint64_t{config_.in_flight_packets_max} * config_.events_per_packet) return false;
  if (now_ns - last_send_ns_ < kGiveUpNs) return true;
  events_given_up_ += in_flight;
  return false;
}

bool Emulator::receive_once() {
  const bool decided = receive_decisions();
  if (!checker_ || checker_->receive(look()) == 0) return decided;
  last_heard_ns_ = look();
  checker_->check(last_heard_ns_);
  return true;
}

// Sleeps a little, or until an answer comes, where nothing is due for long enough that waking up late delays no packet. Decisions wake no one.
void Emulator::rest(std::uint64_t now_ns, std::uint64_t due_ns) {
  if (now_ns < std::max(last_send_ns_, last_heard_ns_) + kAwakeNs || due_ns < now_ns + 3 * kRestNs) return;
  answers_link().wait(kRestNs);
  stalls_.skip_to(std::min(flow::clock_now_ns(), now_ns + kRestNs));  // what it sleeps longer, the host took
}

bool Emulator::receive_decisions() {
  if (!decisions_ || decisions_->receive(look()) == 0) return false;
  last_heard_ns_ = look();
  decisions_->check(last_heard_ns_);
  return true;
}

// The time that detectors follow: the boards may be late.
std::uint64_t Emulator::boards_ns(std::uint64_t now_ns) const {
  const std::uint64_t start_ns = start_ns_.load(std::memory_order_relaxed);
  const std::uint64_t elapsed_ns = now_ns > start_ns ? now_ns - start_ns : 0;
  return phase_.load(std::memory_order_relaxed) == RunPhase::sending ? std::min(elapsed_ns, tel62_->next_due_ns()) : elapsed_ns;
}

std::uint64_t Emulator::look() {
  const std::uint64_t now_ns = flow::clock_now_ns();
  stalls_.look(now_ns);
  course_.look(now_ns, events_sent(), events_answered());
  return now_ns;
}

std::uint64_t Emulator::events_sent() const { return tel62_ ? tel62_->packets_sent() * config_.events_per_packet : 0; }

// What is received counts on one link, what is sent on the other.
link::LinkStats Emulator::link_stats() const {
  link::LinkStats stats = answers_link().stats();
  if (!answers_link_) return stats;
  const link::LinkStats sent = link_->stats();
  stats.tx_packets = sent.tx_packets;
  stats.tx_bytes = sent.tx_bytes;
  stats.tx_calls = sent.tx_calls;
  stats.tx_refused = sent.tx_refused;
  stats.tx_dropped = sent.tx_dropped;
  return stats;
}

std::vector<std::string> Emulator::notes() const {
  std::vector<std::string> notes = link_->notes();
  if (answers_link_) {
    for (std::string& note : answers_link_->notes()) notes.push_back(std::move(note));
  }
  return notes;
}

EmulatorSnapshot Emulator::snapshot() const {
  EmulatorSnapshot snapshot;
  snapshot.phase = phase_.load(std::memory_order_acquire);
  if (checker_) {  // before what was sent: never more answered than sent
    snapshot.answers = checker_->counts();
    snapshot.latency = checker_->latency();
    snapshot.latency_clean = checker_->latency_clean();
  }
  if (tel62_) {
    snapshot.events_sent = std::max(events_sent(), snapshot.answers.answered);
    snapshot.packets_sent = tel62_->packets_sent() * config_.boards;
    snapshot.markers_sent = tel62_->markers_sent();
    snapshot.send_lateness = tel62_->lateness();
  }
  const std::uint64_t start_ns = start_ns_.load();
  if (start_ns != 0) {
    const std::uint64_t end_ns = end_ns_.load();
    const std::uint64_t now_ns = end_ns != 0 ? end_ns : flow::clock_now_ns();
    snapshot.elapsed_ns = now_ns > start_ns ? now_ns - start_ns : 0;
  }
  if (detectors_) snapshot.detectors = detectors_->counts();
  if (decisions_) {
    snapshot.decisions = decisions_->counts();
    snapshot.decision_latency = decisions_->latency();
    snapshot.decisions_kernel_dropped = decision_link_->stats().rx_kernel_dropped;
  }
  snapshot.link = link_stats();
  snapshot.stalls = stalls_.snapshot();
  snapshot.course = course_.snapshot();
  return snapshot;
}

}  // namespace nanet::emulate
