// SPDX-License-Identifier: Apache-2.0
#include "km3_emulate/tower.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nanet/flow/clock.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::km3_emulate {
namespace {

constexpr std::uint64_t kLeadNs = 50'000'000;      // from the start of the program to slice 0: to make it
constexpr std::uint64_t kSleepMostNs = 2'000'000;  // so that stop() and slow control are noticed
constexpr std::uint64_t kSleepLeastNs = 20'000;    // less is not worth a sleep
constexpr std::uint64_t kServeEveryNs = 100'000;
constexpr std::uint32_t kRequestsATurn = 8;
constexpr std::uint64_t kForever = ~std::uint64_t{0};

std::unique_ptr<link::UdpLink> open_link(const TowerConfig& config) {
  link::UdpConfig udp;
  udp.name = "tower";
  for (const std::string& one : config.destinations) udp.destinations.push_back(link::parse_endpoint(one));
  udp.packet_bytes_max = config.packet_bytes_max;
  udp.tx_socket_bytes = 16u << 20;
  udp.tx_wait_us = 10'000;  // a tower has no one to tell that it could not send
  return std::make_unique<link::UdpLink>(udp);
}

}  // namespace

Tower::Tower(const TowerConfig& config, km3::Detector detector)
    : config_(config), maker_(config, std::move(detector)), link_(open_link(config_)), floors_(config_.floors) {
  if (config_.control) control_ = std::make_unique<link::ReplySockets>(link::parse_endpoint(*config_.control), config_.floors);
  for (std::uint32_t floor = 0; floor < config_.floors; ++floor) {
    for (const Kind kind : maker_.kinds()) streams_.push_back({.floor = floor, .kind = kind});
    slow_control_.emplace_back(static_cast<std::uint8_t>(config_.tower), static_cast<std::uint8_t>(floor + 1), floor, maker_);
    if (!config_.waits_for_start) floors_[floor].run = config_.run;
  }
  sender_ = std::make_unique<Sender>(config_, static_cast<std::uint32_t>(streams_.size()), *link_, counters_);
  active_.resize(streams_.size());
  ready_.resize(config_.pool_slices == 0 ? 2 : config_.pool_slices);
  for (Ready& one : ready_) {
    one.units.resize(streams_.size());
    one.hits.resize(streams_.size());
  }
  for (std::uint32_t slice = 0; slice < config_.pool_slices; ++slice) {
    while (make_one(slice)) {
    }
  }
  if (config_.duration_s > 0) {
    slices_left_ = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(config_.duration_s * 1000 / config_.slice_ms)));
  }
}

Tower::~Tower() { stop(); }

void Tower::start() {
  if (thread_.joinable() || start_ns_.load() != 0) {
    throw SetupError("the tower was started before", "one object is one run", "make a new one");
  }
  const auto prepare = [this] {
    if (config_.cpu_core) flow::pin_this_thread(*config_.cpu_core);
    flow::name_this_thread("nanet-tower");
  };
  running_.store(true);
  try {
    thread_.start(prepare, [this] { run(); });
  } catch (...) {
    running_.store(false, std::memory_order_release);
    throw;
  }
}

void Tower::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

std::uint64_t Tower::elapsed_ns() const {
  const std::uint64_t start_ns = start_ns_.load();
  if (start_ns == 0) return 0;
  const std::uint64_t end_ns = end_ns_.load();
  const std::uint64_t now_ns = end_ns != 0 ? end_ns : flow::clock_now_ns();
  return now_ns > start_ns ? now_ns - start_ns : 0;
}

std::vector<std::uint16_t> Tower::control_ports() const {
  std::vector<std::uint16_t> ports;
  for (std::uint32_t floor = 0; control_ && floor < config_.floors; ++floor) ports.push_back(control_->endpoint(floor).port);
  return ports;
}

void Tower::run() {
  epoch_ns_ = flow::clock_now_ns() + kLeadNs;
  start_ns_.store(epoch_ns_);
  while (!stopping_.load(std::memory_order_relaxed) && turn(flow::clock_now_ns())) {
  }
  for (std::uint32_t stream = 0; stream < streams_.size(); ++stream) sender_->release(stream, flow::clock_now_ns());
  sender_->send_batch(flow::clock_now_ns());
  end_ns_.store(std::max(flow::clock_now_ns(), epoch_ns_));
  running_.store(false, std::memory_order_release);
}

bool Tower::turn(std::uint64_t now_ns) {
  if (control_ && now_ns >= served_ns_ + kServeEveryNs) serve(now_ns);
  if (!in_slice_) begin_slice(now_ns);
  if (in_slice_ && send_due(now_ns)) {
    const bool over = std::ranges::all_of(streams_, [](const Stream& one) { return one.due_ns == kForever; });
    if (over) end_slice();
    return !over || config_.duration_s == 0 || slices_left_ > 0;
  }
  const bool is_last = config_.duration_s > 0 && slices_left_ == 1;
  if (run_number_ && !(in_slice_ && is_last) && make_one(in_slice_ ? slice_ + 1 : slice_)) return true;
  std::uint64_t due_ns = now_ns + kSleepMostNs;
  if (run_number_) due_ns = in_slice_ ? next_due_ns() : begin_ns(slice_);
  const std::uint64_t later_ns = flow::clock_now_ns();
  if (due_ns <= later_ns + kSleepLeastNs) return true;
  const std::uint64_t sleep_ns = std::min(due_ns - later_ns - kSleepLeastNs / 2, kSleepMostNs);
  if (control_) {
    control_->wait(sleep_ns);
  } else {
    link_->wait(sleep_ns);
  }
  return true;
}

// Which floors take part is decided when a slice begins.
void Tower::begin_slice(std::uint64_t now_ns) {
  if (!run_number_) {
    const auto started = std::ranges::find_if(floors_, [](const FloorState& one) { return one.run.has_value(); });
    if (started == floors_.end()) return;
    run_number_ = started->run;
    if (config_.speed > 0) slice_ = std::max(slice_, now_ns > epoch_ns_ ? slice_at(now_ns) + 1 : 0);
    go_to_second();
    first_slice_ = slice_;
    for (Stream& stream : streams_) stream.sequence = 0;
    for (FloorState& floor : floors_) floor.tower_run = run_number_;
  }
  if (config_.speed > 0 && now_ns < begin_ns(slice_)) return;
  for (std::size_t k = 0; k < streams_.size(); ++k) active_[k] = floors_[streams_[k].floor].run == run_number_;
  if (std::ranges::find(active_, true) == active_.end()) {
    run_number_.reset();
    for (FloorState& floor : floors_) floor.tower_run.reset();
    return;
  }
  std::uint64_t late = 0;
  while (make_one(slice_)) ++late;
  counters_.add(TowerCounter::units_made_late, late);
  for (std::size_t k = 0; k < streams_.size(); ++k) {
    streams_[k].next = 0;
    streams_[k].due_ns = kForever;
    if (active_[k]) set_due(streams_[k], k);
  }
  for (FloorState& floor : floors_) floor.slice = slice_;
  in_slice_ = true;
}

// To the slice that the next second begins with, if slices fit into one. A tower that is slower than the sea does not wait for it: its time is not the
// sea's anyway, and a second may take it minutes.
void Tower::go_to_second() {
  if (1000 % config_.slice_ms != 0) return;
  const std::uint64_t of_second = 1000 / config_.slice_ms, left_out = (of_second - slice_ % of_second) % of_second;
  slice_ += left_out;
  if (config_.speed < 1) left_out_ += left_out;
}

void Tower::set_due(Stream& stream, std::size_t index) {
  const std::uint32_t count = ready_for(slice_).units[index].packet_count();
  if (stream.next == count) {
    stream.due_ns = kForever;
    return;
  }
  if (config_.speed == 0) {
    stream.due_ns = 0;
    return;
  }
  const std::uint32_t end = std::min(stream.next + config_.burst_packets, count);
  const std::uint64_t begin = begin_ns(slice_);
  stream.due_ns = begin + (begin_ns(slice_ + 1) - begin) * end / count;
}

bool Tower::send_due(std::uint64_t now_ns) {
  bool any = false;
  for (std::size_t k = 0; k < streams_.size(); ++k) {
    if (streams_[k].due_ns > now_ns) continue;
    send_burst(k, now_ns);
    any = true;
  }
  sender_->send_batch(now_ns);
  return any;
}

void Tower::send_burst(std::size_t index, std::uint64_t now_ns) {
  Stream& stream = streams_[index];
  CutUnit& unit = ready_for(slice_).units[index];
  PacketHead head{.tower = static_cast<std::uint8_t>(config_.tower),
                  .floor = static_cast<std::uint8_t>(stream.floor + 1),
                  .kind = stream.kind,
                  .run = *run_number_,
                  .slice = static_cast<std::uint32_t>(slice_ - first_slice_)};
  head.gps_ns = gps_ns(slice_, stream.floor, head.untimed);
  const std::uint32_t end = std::min(stream.next + config_.burst_packets, unit.packet_count());
  if (config_.speed > 0) lateness_.record(now_ns - stream.due_ns, end - stream.next);
  for (; stream.next < end; ++stream.next) {
    const Sender::PacketPlace place{slice_, static_cast<std::uint32_t>(index), stream.floor, stream.next};
    sender_->send(unit.packet(stream.next, head, stream.sequence++), place, now_ns);
  }
  if (end == unit.packet_count()) sender_->release(static_cast<std::uint32_t>(index), now_ns);
  set_due(stream, index);
}

void Tower::end_slice() {
  const Ready& ready = ready_for(slice_);
  const double rate = 1000.0 / config_.slice_ms;
  for (std::size_t k = 0; k < streams_.size(); ++k) {
    if (!active_[k]) continue;
    counters_.add(TowerCounter::units);
    if (streams_[k].kind > Kind::sampled) continue;
    FloorState& floor = floors_[streams_[k].floor];
    for (std::uint32_t pm = 0; pm < kPms; ++pm) {
      counters_.add(TowerCounter::hits, ready.hits[k][pm]);
      floor.rates[pm] = static_cast<std::uint32_t>(ready.hits[k][pm] * rate);
    }
  }
  counters_.add(TowerCounter::slices);
  if (slices_left_ > 0) --slices_left_;
  in_slice_ = false;
  ++slice_;
}

Tower::Ready& Tower::ready_for(std::uint64_t slice) { return ready_[slice % ready_.size()]; }

// One unit of a slice, if one is missing; false: all are there.
bool Tower::make_one(std::uint64_t slice) {
  Ready& ready = ready_for(slice);
  const bool pool = config_.pool_slices != 0;
  if (ready.slice != slice && !(pool && ready.slice != kForever)) {
    ready.slice = slice;
    ready.made = 0;
  }
  if (ready.made == streams_.size()) return false;
  make(ready, slice, ready.made++);
  return true;
}

void Tower::make(Ready& ready, std::uint64_t slice, std::size_t index) {
  const Stream& stream = streams_[index];
  ready.hits[index] = {};
  maker_.unit(slice, stream.floor, stream.kind, floors_[stream.floor].settings, unit_, &ready.hits[index]);
  ready.units[index].cut(unit_, record_bytes(stream.kind, config_.samples), config_.packet_bytes_max);
}

void Tower::serve(std::uint64_t now_ns) {
  served_ns_ = now_ns;
  std::array<std::byte, kControlBytes + 1> room;
  ControlCounts counts;
  for (std::uint32_t k = 0; k < kRequestsATurn; ++k) {
    const auto request = control_->receive(room);
    if (!request) break;
    bool untimed = false;
    const std::uint64_t slice = slice_at(now_ns);
    const std::uint64_t since_ns = now_ns > epoch_ns_ ? now_ns - epoch_ns_ : 0;
    const double passed_ns = config_.speed > 0 ? static_cast<double>(since_ns) * config_.speed : 0.0;
    const std::uint64_t in_slice_ns = static_cast<std::uint64_t>(passed_ns) % config_.slice_ns();
    const std::uint64_t time_ns = gps_ns(slice, request->socket, untimed) + in_slice_ns;
    const auto answer = slow_control_[request->socket].answer({room.data(), request->bytes}, link::to_string(request->from),
                                                              time_ns, floors_[request->socket]);
    if (answer) control_->reply(*request, *answer);
  }
  for (const SlowControl& one : slow_control_) {
    counts.requests += one.counts().requests;
    counts.repeated += one.counts().repeated;
    counts.bad += one.counts().bad;
  }
  counters_.set(TowerCounter::control_requests, counts.requests);
  counters_.set(TowerCounter::control_repeated, counts.repeated);
  counters_.set(TowerCounter::control_bad, counts.bad);
}

std::uint64_t Tower::gps_ns(std::uint64_t slice, std::uint32_t floor, bool& untimed) const {
  auto time_ns = static_cast<std::int64_t>(std::uint64_t{config_.gps_second} * 1'000'000'000 + slice * config_.slice_ns());
  for (const JumpConfig& jump : config_.faults.jumps) {
    if (jump.floor != floor + 1 || slice < jump.slice) continue;
    time_ns += jump.jump_us * 1000;
    untimed = untimed || jump.said;
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time_ns));
}

// As fast as possible there is no time but that of the slices.
std::uint64_t Tower::slice_at(std::uint64_t now_ns) const {
  if (config_.speed == 0 || now_ns < epoch_ns_) return slice_;
  return left_out_ + static_cast<std::uint64_t>(static_cast<double>(now_ns - epoch_ns_) * config_.speed /
                                                static_cast<double>(config_.slice_ns()));
}

std::uint64_t Tower::begin_ns(std::uint64_t slice) const {
  return epoch_ns_ + static_cast<std::uint64_t>(static_cast<double>((slice - left_out_) * config_.slice_ns()) / config_.speed);
}

std::uint64_t Tower::next_due_ns() const {
  std::uint64_t due_ns = kForever;
  for (const Stream& stream : streams_) due_ns = std::min(due_ns, stream.due_ns);
  return due_ns;
}

}  // namespace nanet::km3_emulate
