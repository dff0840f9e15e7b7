// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>

#include "link/gateware/nic_counts.hpp"
#include "link/gateware/nic_driver.hpp"
#include "link/udp_frame.hpp"

namespace nanet::bench {
namespace {

using gateware::Model;
using gateware::SentFrame;
using gateware::WriteRequest;
using link::gateware::Access;
using link::gateware::Device;
using link::gateware::NicDriver;
namespace rx = link::gateware::rx;

constexpr std::uint32_t kAddress = 0x0A00'0001, kPeer = 0x0A00'0002;
constexpr std::uint16_t kPort = 6200;
constexpr std::uint64_t kTailCycles = 4000;  // after the last frame
constexpr std::uint64_t kTurnCycles = 16;    // between two looks of the consumer
constexpr int kTurnsToSettle = 1000;
constexpr std::size_t kFramesAhead = 8;
constexpr std::uint32_t kReleaseAtOnce = 8;                               // buffers
constexpr std::size_t kPageBytes = 64 << 10, kLongestPacketBytes = 9216;  // of a buffer; what is kept free in one
constexpr std::uint32_t kBufferCount = 64;
constexpr std::uint64_t kDeficitBytes = 7;  // by which the gaps of any run of frames may exceed their mean
static_assert(kHeadersAndFcs == link::kFrameHeaderBytes + gateware::kFcsBytes);

void need(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("the NIC does not do what it must: ") + what);
}

// The simulated NIC, and where on its bus the buffers and the completions are: the first two pieces of memory that the driver lets it write.
class Rig final : public Device {
 public:
  explicit Rig(const gateware::HostTiming& host) : model(host) {}
  std::uint64_t read(std::uint32_t offset) override { return sim_.read(offset); }
  void write(std::uint32_t offset, std::uint64_t value) override { sim_.write(offset, value); }
  void poll() override { sim_.poll(); }
  bool wait(std::uint64_t timeout_ns) override { return sim_.wait(timeout_ns); }
  void unmap(std::span<const std::uint64_t> pages) override { sim_.unmap(pages); }
  std::vector<std::uint64_t> map(std::span<std::byte> memory, std::size_t page_bytes, Access access) override {
    std::vector<std::uint64_t> pages = sim_.map(memory, page_bytes, access);
    const auto [low, high] = std::minmax_element(pages.begin(), pages.end());
    ranges_.push_back({*low, *high + page_bytes});
    return pages;
  }
  bool is_completion(std::uint64_t address) const { return ranges_[0].from <= address && address < ranges_[0].to; }
  bool is_payload(std::uint64_t address) const { return ranges_[1].from <= address && address < ranges_[1].to; }

  Model model;

 private:
  struct Range {
    std::uint64_t from, to;
  };
  link::gateware::SimDevice sim_{model};
  std::vector<Range> ranges_;
};

std::byte payload_byte(std::size_t place) { return static_cast<std::byte>(place * 7 + place / 256); }

std::vector<std::byte> make_payload(std::size_t bytes) {
  std::vector<std::byte> payload(bytes);
  for (std::size_t i = 0; i < bytes; ++i) payload[i] = payload_byte(i);
  return payload;
}

std::vector<std::byte> make_frame(std::size_t frame_bytes) {
  const std::vector<std::byte> payload = make_payload(frame_bytes - kHeadersAndFcs);
  std::vector<std::byte> frame(link::kFrameHeaderBytes);
  link::write_ethernet_header(frame.data(), {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 1});
  link::write_ipv4_udp_headers(frame.data() + link::kEthernetHeaderBytes, {kPeer, kAddress, 4000, kPort}, payload, 0);
  frame.insert(frame.end(), payload.begin(), payload.end());
  return gateware::with_fcs(frame);
}

// Relates writes to frames: both are in order.
class Watch {
 public:
  Watch(Rig& rig, const Traffic& traffic, Measured& result)
      : rig_(rig), write_cycles_(traffic.host.write_cycles), sizes_(traffic.frame_bytes), result_(result) {}

  void look() {
    auto& sent = rig_.model.wire_in().sent_frames();
    for (const SentFrame& frame : sent) {
      last_start_ = 8 * frame.first_byte_cycle + frame.start_lane;
      if (wire_bytes_ == 0) first_start_ = last_start_;
      last_bytes_ = frame.bytes + kBetweenFramesBytes;
      wire_bytes_ += last_bytes_;
    }
    under_way_.insert(under_way_.end(), sent.begin(), sent.end());
    sent.clear();
    for (const WriteRequest& write : rig_.model.bus().writes()) take(write);
    rig_.model.bus().writes().clear();
  }

  // To be called at the end.
  void sum_up() {
    const std::uint64_t took = last_start_ - first_start_ + last_bytes_;  // bytes' time on the wire
    const double offered = took <= wire_bytes_ + kDeficitBytes ? 1 : static_cast<double>(wire_bytes_) / static_cast<double>(took);
    result_.wire_cycles = static_cast<double>(took) / 8;
    result_.line_rate_fraction = offered * static_cast<double>(result_.stored) / static_cast<double>(result_.sent);
    if (result_.lost() == 0) return;
    result_.latencies = {};
    result_.by_size.clear();
  }

 private:
  void take(const WriteRequest& write) {
    const std::uint64_t landed = write.last_cycle + write_cycles_;
    if (rig_.is_payload(write.address)) {
      if ((payload_ += write.bytes) < sizes_[stored_ % sizes_.size()] - kHeadersAndFcs) return;
      payload_ = 0;
      ++stored_;
      if (under_way_.empty()) return;  // packets were lost before it
      newest_ = under_way_.front();
      under_way_.pop_front();
      add(landed, &Latencies::first_to_write, &Latencies::last_to_write);
    } else if (rig_.is_completion(write.address) && (completion_ += write.bytes) == sizeof(Completion)) {
      completion_ = 0;
      add(landed, &Latencies::first_to_completion, &Latencies::last_to_completion);
    }
  }

  void add(std::uint64_t cycle, Histogram Latencies::*first, Histogram Latencies::*last) {
    const auto put = [&](Latencies& to) {
      (to.*first).add(cycle - newest_.first_byte_cycle);
      (to.*last).add(cycle - newest_.last_byte_cycle);
    };
    put(result_.latencies[newest_.start_lane / 4]);
    if (sizes_.size() > 1) put(result_.by_size[newest_.bytes][newest_.start_lane / 4]);
  }

  Rig& rig_;
  const std::uint64_t write_cycles_;
  const std::vector<std::size_t>& sizes_;  // of frames, in their order
  Measured& result_;
  std::uint64_t stored_ = 0;                                                          // packets
  std::uint64_t payload_ = 0, completion_ = 0;                                        // bytes
  std::uint64_t first_start_ = 0, last_start_ = 0, last_bytes_ = 0, wire_bytes_ = 0;  // starts as bytes' times
  std::deque<SentFrame> under_way_;
  SentFrame newest_{};
};

// The consumer: it looks at one packet of each buffer, and gives the buffers back.
class Consumer {
 public:
  Consumer(NicDriver& driver, const Traffic& traffic)
      : driver_(driver), packets_(traffic.packets_per_buffer), payload_(make_payload(std::ranges::max(traffic.frame_bytes))) {}

  void take_all() {
    while (const Completion* completion = driver_.poll()) {
      need(completion->packet_count == packets_, "a buffer was not handed over with all its packets");
      const PacketRef& packet = driver_.packets(*completion).back();
      const auto bytes = driver_.payload(*completion, packet);
      need(std::memcmp(bytes.data(), payload_.data(), bytes.size()) == 0, "the bytes in memory are not those that were sent");
      if (++to_release_ >= kReleaseAtOnce) driver_.release(std::exchange(to_release_, 0));
    }
  }

 private:
  NicDriver& driver_;
  const std::uint32_t packets_;
  const std::vector<std::byte> payload_;
  std::uint32_t to_release_ = 0;
};

// Whether everything sent is stored or in one counter by now.
bool read_books(NicDriver& driver, Measured& result) {
  result.drops.clear();
  result.stored = driver.rx_count(rx::stored);
  std::uint64_t dropped = 0;
  for (unsigned k = 0; k < rx::bad; ++k) {
    const std::uint64_t count = k == rx::parsed || k == rx::stored ? 0 : driver.rx_count(k);
    if (count != 0) result.drops.emplace_back(rx::kNames[k], count);
    dropped += count;
  }
  return result.sent == result.stored + dropped;
}

std::uint32_t buffer_bytes(const Traffic& traffic) {
  const std::size_t stride = (std::ranges::max(traffic.frame_bytes) + 15) / 16 * 16;
  const std::size_t needed = traffic.packets_per_buffer * stride + kLongestPacketBytes;
  return static_cast<std::uint32_t>((needed + kPageBytes - 1) / kPageBytes * kPageBytes);
}

}  // namespace

Measured measure(const Traffic& traffic) {
  Measured result;
  Rig rig(traffic.host);
  NicDriver driver(rig, {.address = kAddress,
                         .clops = {{.buffer_bytes = buffer_bytes(traffic),
                                    .buffer_count = kBufferCount,
                                    .packets_per_buffer = traffic.packets_per_buffer,
                                    .timeout_ns = 0}}});
  driver.set_match({.index = 0, .port = kPort});
  rig.model.bus().keep_writes(true);
  rig.model.wire_in().keep_sent(true);
  std::map<std::size_t, std::vector<std::byte>> frames;
  for (const std::size_t bytes : traffic.frame_bytes) {
    if (auto& frame = frames[bytes]; frame.empty()) frame = make_frame(bytes);
  }
  Watch watch(rig, traffic, result);
  Consumer consumer(driver, traffic);
  const auto started = std::chrono::steady_clock::now();
  const std::uint64_t begin = rig.model.cycle(), end = begin + traffic.cycles_max;
  std::uint64_t last = begin;
  auto& wire = rig.model.wire_in();
  const auto turn = [&] {
    rig.model.step(kTurnCycles);
    watch.look();
    consumer.take_all();
  };
  do {
    while (rig.model.cycle() < end && result.sent < traffic.packets_max && wire.waiting() < kFramesAhead) {
      wire.push(frames[traffic.frame_bytes[result.sent % traffic.frame_bytes.size()]]);
      ++result.sent;
    }
    if (wire.waiting() != 0) last = rig.model.cycle();
    turn();
  } while (rig.model.cycle() < last + kTailCycles);
  result.cycles = rig.model.cycle() - begin;
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  bool balanced = read_books(driver, result);
  for (int k = 0; k < kTurnsToSettle && !balanced; ++k) {  // a slow host takes what is in the NIC's memory
    turn();
    balanced = read_books(driver, result);
  }
  need(balanced, "a frame is neither stored nor counted as dropped");
  need(rig.model.bus().stray_count() == 0, "it reached for memory that was not registered");
  watch.sum_up();
  return result;
}

}  // namespace nanet::bench
