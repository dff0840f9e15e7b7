// SPDX-License-Identifier: Apache-2.0
// Latency and throughput of the NIC of gateware/, counted in simulated cycles: frames back to back at 10 Gb/s, every size by every number of
// packets a buffer, the host ready at once. Prints a table as CSV, or with --json one object.
//
//   bench_gateware [--cycles N] [--json]      N: of each case, 400000 if left out
//
// Times are of the RTL: from the cycle in which a frame's last byte (of its check sequence) stands on XGMII to the cycle in which the bus takes the
// last word of its payload, or of the completion that hands it over. Where a frame began on lane 4 the same words come half a cycle later, so lanes are
// told apart.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "link/gateware/nic_driver.hpp"
#include "nanet/link/udp_frame.hpp"

namespace {

namespace link = nanet::link;
using link::gateware::Access;
using link::gateware::Device;
using nanet::gateware::Model;

constexpr std::uint32_t kAddress = 0x0A00'0001, kPeer = 0x0A00'0002;
constexpr std::uint16_t kPort = 6200;
constexpr std::array<std::size_t, 13> kFrameBytes{64,  65,   71,   72,   100,  128, 256,
                                                  512, 1024, 1214, 1500, 1518, 9018};  // FCS included
constexpr std::array<std::uint32_t, 4> kPacketsPerBuffer{1, 4, 16, 64};
constexpr std::size_t kHeadersAndFcs = link::kFrameHeaderBytes + nanet::gateware::kFcsBytes;
constexpr unsigned kStored = 20;

struct Span {  // of values
  std::uint64_t count = 0, min = std::numeric_limits<std::uint64_t>::max(), max = 0;
  void add(std::uint64_t value) {
    ++count;
    min = std::min(min, value);
    max = std::max(max, value);
  }
  std::uint64_t spread() const { return count == 0 ? 0 : max - min; }
};

// The simulated NIC, and where on its bus the buffers and the completions are: the first two pieces of memory that the driver lets it write.
class Rig final : public Device {
 public:
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

struct Case {
  std::size_t frame_bytes;
  std::uint32_t packets_per_buffer;
  std::uint64_t sent = 0, stored = 0, cycles = 0;
  double wall_s = 0;
  double line_rate_fraction() const { return sent == 0 ? 0 : static_cast<double>(stored) / static_cast<double>(sent); }
  std::array<Span, 2> to_write{};       // by start lane: 0, 4
  std::array<Span, 2> to_completion{};  // of packets that ended a buffer
};

std::vector<std::byte> make_frame(std::size_t frame_bytes) {
  std::vector<std::byte> payload(frame_bytes - kHeadersAndFcs);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i);
  std::vector<std::byte> frame(link::kFrameHeaderBytes);
  link::write_ethernet_header(frame.data(), {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 1});
  link::write_ipv4_udp_headers(frame.data() + link::kEthernetHeaderBytes, {kPeer, kAddress, 4000, kPort}, payload, 0);
  frame.insert(frame.end(), payload.begin(), payload.end());
  return nanet::gateware::with_fcs(frame);
}

// Relates writes to frames: both are in order.
class Watch {
 public:
  Watch(Rig& rig, Case& result) : rig_(rig), result_(result), payload_bytes_(result.frame_bytes - kHeadersAndFcs) {}

  void look() {
    auto& sent = rig_.model.wire_in().sent_frames();
    under_way_.insert(under_way_.end(), sent.begin(), sent.end());
    sent.clear();
    for (const nanet::gateware::WriteRequest& write : rig_.model.bus().writes()) take(write);
    rig_.model.bus().writes().clear();
  }

 private:
  void take(const nanet::gateware::WriteRequest& write) {
    if (rig_.is_payload(write.address)) {
      if ((payload_ += write.bytes) < payload_bytes_) return;
      payload_ = 0;
      newest_ = under_way_.front();
      under_way_.pop_front();
      result_.to_write[newest_.start_lane / 4].add(write.last_cycle - newest_.last_byte_cycle);
    } else if (rig_.is_completion(write.address) && (completion_ += write.bytes) == sizeof(nanet::Completion)) {
      completion_ = 0;
      result_.to_completion[newest_.start_lane / 4].add(write.last_cycle - newest_.last_byte_cycle);
    }
  }

  Rig& rig_;
  Case& result_;
  const std::uint64_t payload_bytes_;
  std::uint64_t payload_ = 0, completion_ = 0;  // bytes
  std::deque<nanet::gateware::SentFrame> under_way_;
  nanet::gateware::SentFrame newest_{};
};

Case run(std::size_t frame_bytes, std::uint32_t packets_per_buffer, std::uint64_t cycles) {
  Case result{frame_bytes, packets_per_buffer};
  const auto started = std::chrono::steady_clock::now();
  Rig rig;
  const std::uint64_t begin = rig.model.cycle();
  {
    link::gateware::NicDriver driver(
        rig,
        {.address = kAddress, .buffer_bytes = 640 << 10, .buffer_count = 64, .packets_per_buffer = packets_per_buffer, .timeout_ns = 0});
    driver.set_match({.index = 0, .port = kPort});
    rig.model.bus().keep_writes(true);
    rig.model.wire_in().keep_sent(true);
    const std::vector<std::byte> frame = make_frame(frame_bytes);
    Watch watch(rig, result);
    const std::uint64_t end = rig.model.cycle() + cycles;
    constexpr std::uint64_t kTail = 4000;  // behind the last frame
    std::uint64_t last = 0;
    constexpr std::size_t kFramesAhead = 8;
    std::uint32_t to_release = 0;
    while (rig.model.cycle() < std::max(end, last) + kTail) {
      if (rig.model.wire_in().waiting() != 0) last = rig.model.cycle();
      while (rig.model.cycle() < end && rig.model.wire_in().waiting() < kFramesAhead) {
        rig.model.wire_in().push(frame);
        ++result.sent;
      }
      rig.model.step(16);
      watch.look();
      while (driver.poll() != nullptr) ++to_release;
      if (to_release >= 8) driver.release(std::exchange(to_release, 0));
    }
    watch.look();
    result.stored = driver.rx_count(kStored);
  }
  result.cycles = rig.model.cycle() - begin;
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

void print_csv(const std::vector<Case>& cases) {
  std::printf(
      "frame_bytes,packets_per_buffer,start_lane,packets,to_write_min,to_write_max,to_completion_min,to_completion_max,line_rate_"
      "fraction\n");
  for (const Case& one : cases) {
    for (unsigned lane = 0; lane < 2; ++lane) {
      const Span &write = one.to_write[lane], &completion = one.to_completion[lane];
      if (write.count == 0) continue;
      std::printf("%zu,%u,%u,%llu,%llu,%llu,", one.frame_bytes, one.packets_per_buffer, 4 * lane,
                  static_cast<unsigned long long>(write.count), static_cast<unsigned long long>(write.min),
                  static_cast<unsigned long long>(write.max));
      if (completion.count != 0) {
        std::printf("%llu,%llu", static_cast<unsigned long long>(completion.min), static_cast<unsigned long long>(completion.max));
      } else {
        std::printf(",");
      }
      std::printf(",%.6f\n", one.line_rate_fraction());
    }
  }
}

// spread: the largest of any frame size, buffer and lane.
void print_json(const std::vector<Case>& cases, double cycles_per_s) {
  Span all;
  std::uint64_t spread = 0;
  for (const Case& one : cases) {
    for (const Span& lane : one.to_write) {
      if (lane.count == 0) continue;
      all.add(lane.min);
      all.add(lane.max);
      spread = std::max(spread, lane.spread());
    }
  }
  std::printf("{\"last_byte_to_last_write_cycles\": {\"min\": %llu, \"max\": %llu, \"spread\": %llu}, \"line_rate_fraction\": {",
              static_cast<unsigned long long>(all.min), static_cast<unsigned long long>(all.max),
              static_cast<unsigned long long>(spread));
  const char* before = "";
  for (const std::size_t bytes : kFrameBytes) {
    double lowest = 1;
    for (const Case& one : cases) {
      if (one.frame_bytes == bytes) lowest = std::min(lowest, one.line_rate_fraction());
    }
    std::printf("%s\"%zu\": %.6f", std::exchange(before, ", "), bytes, lowest);
  }
  std::printf("}, \"cycles_per_wall_second\": %.0f, \"cases\": [", cycles_per_s);
  before = "";
  for (const Case& one : cases) {
    for (unsigned lane = 0; lane < 2; ++lane) {
      const Span& write = one.to_write[lane];
      if (write.count == 0) continue;
      std::printf(
          "%s{\"frame_bytes\": %zu, \"packets_per_buffer\": %u, \"start_lane\": %u, \"packets\": %llu, \"min\": %llu, \"max\": "
          "%llu}",
          std::exchange(before, ", "), one.frame_bytes, one.packets_per_buffer, 4 * lane,
          static_cast<unsigned long long>(write.count), static_cast<unsigned long long>(write.min),
          static_cast<unsigned long long>(write.max));
    }
  }
  std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t cycles = 400'000;
  bool json = false;
  for (int k = 1; k < argc; ++k) {
    const std::string_view argument = argv[k];
    if (argument == "--json") {
      json = true;
    } else if (argument == "--cycles" && k + 1 < argc) {
      cycles = std::strtoull(argv[++k], nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: bench_gateware [--cycles N] [--json]\n");
      return 2;
    }
  }
  std::vector<Case> cases;
  double wall_s = 0;
  double all_cycles = 0;
  for (const std::size_t bytes : kFrameBytes) {
    for (const std::uint32_t packets : kPacketsPerBuffer) {
      cases.push_back(run(bytes, packets, cycles));
      wall_s += cases.back().wall_s;
      all_cycles += static_cast<double>(cases.back().cycles);
    }
  }
  if (json) {
    print_json(cases, all_cycles / wall_s);
  } else {
    print_csv(cases);
    std::fprintf(stderr, "cycles_per_wall_second %.0f\n", all_cycles / wall_s);
  }
}
