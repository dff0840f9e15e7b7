// SPDX-License-Identifier: Apache-2.0
#include "link/pcap/replay.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include "nanet/flow/clock.hpp"
#include "nanet/flow/wait.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr std::uint64_t kSpinNs = 100'000;         // a sleep may end this late, so the rest is spun
constexpr std::uint64_t kSleepMaxNs = 20'000'000;  // so that stop() is seen
constexpr std::uint32_t kTxWaitUs = 10'000;        // a sender of files has nothing better to do than to wait for the socket

UdpConfig udp_config(const ReplayConfig& config) {
  return {.name = "replay", .destinations = {parse_endpoint(config.to)}, .tx_wait_us = kTxWaitUs};
}

// editcap reads what Wireshark reads: it cannot help with a file that is no capture, nor make IPv4 of another link type.
[[noreturn]] void refuse(const std::string& path, PcapError error) {
  const std::string problem = "cannot replay " + path;
  switch (error) {
    case PcapError::pcapng:
      throw SetupError(problem, "it is a pcapng file", "convert it with: editcap -F nsecpcap " + path + " FILE");
    case PcapError::link_type:
      throw SetupError(problem, "its link type is not Ethernet, raw IP or Linux cooked",
                       "capture on an Ethernet interface, or with -i any");
    default:
      throw SetupError(problem, "it is not a pcap file", "check the file: nanet replay takes pcap files and raw data of NA62");
  }
}

}  // namespace

PcapSource::PcapSource(std::unique_ptr<MappedFile> file, const std::string& path, std::uint16_t only_port, EventCounter events_in)
    : file_(std::move(file)), only_port_(only_port), events_in_(events_in) {
  const PcapError error = PcapReader::open(file_->bytes(), reader_);
  if (error != PcapError::none) refuse(path, error);
}

bool PcapSource::next_packet(PcapPacket& packet) {
  while (reader_.next(packet)) {
    if (only_port_ == 0 || packet.flow.to_port == only_port_) return true;
    ++skipped_port_;
  }
  return false;
}

std::size_t PcapSource::next(std::span<ReplayPacket> packets) {
  std::size_t count = 0;
  PcapPacket packet;
  while (count < packets.size() && next_packet(packet)) {
    packets[count++] = {packet.payload, packet.time_ns, events_in_(packet.payload)};
  }
  return count;
}

void PcapSource::rewind() {
  reader_.rewind();
  skipped_port_ = 0;
}

ReplaySource::Counts PcapSource::counts() const { return named(reader_.stats(), skipped_port_); }

ReplaySource::Counts PcapSource::named(const PcapStats& stats, std::uint64_t skipped_port) {
  return {{"records", stats.records},
          {"skipped_not_udp", stats.skipped_not_udp},
          {"skipped_fragment", stats.skipped_fragment},
          {"skipped_cut", stats.skipped_cut},
          {"skipped_port", skipped_port},
          {"bytes_damaged", stats.bytes_damaged}};
}

Replay::Replay(std::unique_ptr<ReplaySource> source, const ReplayConfig& config)
    : config_(config), source_(std::move(source)), pace_(config.pace, config.rate), link_(udp_config(config)) {}

void Replay::run() {
  const std::uint64_t start_ns = flow::clock_now_ns();
  pace_.start(start_ns);
  began_ns_.store(start_ns, std::memory_order_relaxed);
  for (std::uint64_t lap = 0; !stopping() && (config_.laps == 0 || lap < config_.laps); ++lap) {
    if (lap > 0) source_->rewind();
    if (!play_lap()) break;
    laps_done_.add(1);
  }
  ended_ns_.store(flow::clock_now_ns(), std::memory_order_relaxed);
  finished_.store(true, std::memory_order_release);
}

// False when it was stopped, or when the recording has no packet.
bool Replay::play_lap() {
  std::array<ReplayPacket, kBatch> packets;
  while (const std::size_t count = source_->next(packets)) {
    play(std::span(packets).first(count));
    if (stopping()) return false;
  }
  const bool any = pace_.lap_packets() > 0;
  pace_.next_lap();
  return any;
}

// Whatever is due leaves together.
void Replay::play(std::span<const ReplayPacket> packets) {
  std::size_t first = 0;
  for (std::size_t p = 0; p < packets.size(); ++p) {
    const std::uint64_t due = pace_.due_ns(packets[p].time_ns, packets[p].event_count);
    std::uint64_t now_ns = flow::clock_now_ns();
    if (due > now_ns) {
      send(packets.subspan(first, p - first));
      first = p;
      if (!wait_until(due)) return;
      now_ns = flow::clock_now_ns();
    }
    if (config_.pace != ReplayPace::maximum && now_ns - due > latest_ns_.load(std::memory_order_relaxed)) {
      latest_ns_.store(now_ns - due, std::memory_order_relaxed);
    }
  }
  send(packets.subspan(first));
}

void Replay::send(std::span<const ReplayPacket> packets) {
  if (packets.empty()) return;
  std::array<TxPacket, kBatch> out;
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;
  for (std::size_t p = 0; p < packets.size(); ++p) {
    out[p] = {.data = packets[p].payload.data(), .bytes = static_cast<std::uint32_t>(packets[p].payload.size()), .destination = 0};
    bytes += packets[p].payload.size();
    events += packets[p].event_count;
  }
  link_.send(std::span(out).first(packets.size()), flow::clock_now_ns());
  packets_sent_.add(packets.size());
  bytes_sent_.add(bytes);
  events_sent_.add(events);
}

bool Replay::wait_until(std::uint64_t time_ns) const {
  for (std::uint64_t now_ns = flow::clock_now_ns(); now_ns < time_ns; now_ns = flow::clock_now_ns()) {
    if (stopping()) return false;
    const std::uint64_t left_ns = time_ns - now_ns;
    if (left_ns > kSpinNs) {
      const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(std::min(left_ns - kSpinNs, kSleepMaxNs))};
      ::nanosleep(&pause, nullptr);
    } else {
      flow::cpu_relax();
    }
  }
  return true;
}

ReplayStats Replay::stats() const {
  const LinkStats link = link_.stats();
  const std::uint64_t began_ns = began_ns_.load(std::memory_order_relaxed);
  const std::uint64_t end_ns = finished() ? ended_ns_.load(std::memory_order_relaxed) : flow::clock_now_ns();
  return {.packets_sent = packets_sent_.value(),
          .bytes_sent = bytes_sent_.value(),
          .events_sent = events_sent_.value(),
          .laps_done = laps_done_.value(),
          .elapsed_ns = began_ns == 0 ? 0 : end_ns - began_ns,
          .latest_ns = latest_ns_.load(std::memory_order_relaxed),
          .tx_dropped = link.tx_dropped,
          .tx_refused = link.tx_refused};
}

}  // namespace nanet::link
