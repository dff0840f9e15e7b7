// SPDX-License-Identifier: Apache-2.0
// Sending at line rate, counted in words of XGMII: alone, and while frames come in back to back, none of which is lost or late.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nic_rig.hpp"

namespace nanet::link::gateware {
namespace {

using namespace test;

constexpr std::size_t kBetweenFramesBytes = 20;             // preamble and gap
constexpr std::uint64_t kWordBytes = 8, kDeficitBytes = 3;  // of XGMII; by which the gaps of any run of frames may exceed their mean
constexpr std::uint32_t kTxEntries = 128;
constexpr std::size_t kPayloads = 8;  // different ones of a size, in turn

// What is sent, and what comes in meanwhile.
struct Load {
  std::size_t sent_bytes;      // of a payload
  std::size_t received_bytes;  // 0: nothing comes in
  std::uint32_t packets_per_buffer;
  double rate = 1;             // of line rate, that is reached at least
  std::uint64_t late_max = 0;  // cycles by which a received packet may be later than without sending
};

std::string name_of(const Load& load) {
  std::string text = "send_" + std::to_string(load.sent_bytes);
  if (load.received_bytes == 0) return text + "_alone";
  return text + "_receive_" + std::to_string(load.received_bytes) + "_by_" + std::to_string(load.packets_per_buffer);
}

void PrintTo(const Load& load, std::ostream* out) { *out << name_of(load); }

std::uint64_t wire_bytes(std::size_t payload_bytes) {
  return std::max(payload_bytes + kFrameHeaderBytes + nanet::gateware::kFcsBytes, nanet::gateware::kFrameBytesMin) +
         kBetweenFramesBytes;
}

// The least and the greatest of received packets, from the first byte of the frame to its last write, in cycles.
struct Range {
  std::uint64_t least = ~std::uint64_t{0}, greatest = 0;
};

class LineRate : public ::testing::TestWithParam<Load> {
 protected:
  void SetUp() override {
    NicConfig config;
    config.tx_entries = kTxEntries;
    config.clops = {
        {.buffer_bytes = 256 << 10, .buffer_count = 16, .packets_per_buffer = GetParam().packets_per_buffer, .timeout_ns = 0}};
    rig_.emplace(config, HostTiming{.read_cycles_min = 140, .read_cycles_max = 156});  // up to a microsecond away
    rig_->driver->set_match({.index = 0, .port = kPort, .from_address = 0, .from_mask = 0, .source = 0, .counts_events = false});
    rig_->driver->set_destination({.index = 2, .mac = 0x02'00'00'00'00'02, .address = kPeer, .port = kPeerPort, .from_port = kPort});
    rig_->model.wire_in().keep_sent(true);
    rig_->model.bus().keep_writes(true);
    for (std::size_t k = 0; k < kPayloads; ++k) {
      outgoing_.push_back(random_bytes(random_, GetParam().sent_bytes));
      incoming_.push_back(random_bytes(random_, GetParam().received_bytes));
    }
  }

  // Frames come in back to back.
  void receive() {
    if (GetParam().received_bytes == 0) return;
    while (rig_->model.wire_in().waiting() < 8) rig_->push(kPort, incoming_[pushed_++ % kPayloads]);
    take_received();
  }

  // What the driver has received is looked at and given back.
  void take_received() {
    std::uint32_t buffers = 0;
    while (const Completion* completion = rig_->driver->poll()) {
      for (const PacketRef& ref : rig_->driver->packets(*completion)) {
        const auto payload = rig_->driver->payload(*completion, ref);
        const Bytes& expected = incoming_[received_++ % kPayloads];
        ASSERT_TRUE(std::ranges::equal(payload, expected)) << "packet " << received_ - 1;
      }
      ++buffers;
    }
    if (buffers != 0) rig_->driver->release(buffers);
    take_times();
  }

  // Writes of payloads are found by their bytes: nothing else is written in pieces that add up to one.
  void take_times() {
    auto& model = rig_->model;
    for (const auto& frame : model.wire_in().sent_frames()) frames_.push_back(frame);
    model.wire_in().sent_frames().clear();
    const Mapped& buffers = rig_->device.mapped[1];
    for (const auto& write : model.bus().writes()) {
      const bool is_payload = std::ranges::any_of(buffers.pages, [&](std::uint64_t page) { return write.address - page < 64 << 10; });
      if (!is_payload || (written_ += write.bytes) < GetParam().received_bytes) continue;
      written_ = 0;
      const auto& frame = frames_[timed_++];
      Range& range = times_[frame.start_lane];
      const std::uint64_t cycles = write.last_cycle - frame.first_byte_cycle;
      range = {std::min(range.least, cycles), std::max(range.greatest, cycles)};
    }
    model.bus().writes().clear();
  }

  std::optional<Rig> rig_;
  std::mt19937_64 random_{5};
  std::vector<Bytes> outgoing_, incoming_;
  std::uint64_t pushed_ = 0, received_ = 0;
  std::vector<nanet::gateware::SentFrame> frames_;
  std::size_t timed_ = 0, written_ = 0;
  std::map<unsigned, Range> times_;  // by start lane
};

TEST_P(LineRate, IsReached) {
  const Load& load = GetParam();
  NicDriver& driver = *rig_->driver;
  auto& model = rig_->model;
  const std::uint64_t settle_cycles = 4000 + 2 * wire_bytes(load.received_bytes) / kWordBytes;
  for (const std::uint64_t end = model.cycle() + settle_cycles; model.cycle() < end; model.step(8)) receive();
  const std::map<unsigned, Range> times_without = std::exchange(times_, {});

  // Sent are whole rings, so that the ring is never empty before the last: its completions come in time for the next ones.
  const std::uint64_t count = load.sent_bytes > 4000 ? 150 : 1500;
  std::uint64_t rung = 0, gone = 0;
  for (int idle = 0; gone < count && idle < 100'000; ++idle) {
    while (rung < count && driver.send(outgoing_[rung % kPayloads], 2, rung)) ++rung;
    while (const Completion* sent = driver.poll_sent()) {
      ASSERT_EQ(sent->tag, gone++);
      ASSERT_EQ(sent->kind, CompletionKind::packet_sent);
      idle = 0;
    }
    receive();
    if (HasFatalFailure()) return;
    model.step(4);
  }
  ASSERT_EQ(gone, count);
  model.step(100);
  ASSERT_EQ(model.wire_out().bad(), 0u);
  const auto& frames = model.wire_out().frames();
  ASSERT_EQ(frames.size(), count);
  for (std::size_t k = 0; k < count; ++k) {
    const auto payload = std::span(frames[k].bytes).subspan(kFrameHeaderBytes, load.sent_bytes);
    ASSERT_TRUE(std::ranges::equal(payload, outgoing_[k % kPayloads])) << "frame " << k;
  }

  // From the end of a frame in mid-load to that of the last but as many as the ring holds, when it may have run empty.
  const std::size_t first = 64 < count / 2 ? 64 : count / 2, last = count - 1;
  const std::uint64_t words = frames[last].cycle - frames[first].cycle;
  const double wanted = static_cast<double>((last - first) * wire_bytes(load.sent_bytes) + kDeficitBytes) / kWordBytes;
  const double reached = wanted / static_cast<double>(words);
  RecordProperty("line_rate_fraction", std::to_string(reached));
  std::cout << name_of(load) << ": " << reached << " of line rate\n";
  if (load.rate == 1) {
    EXPECT_LE(static_cast<double>(words), wanted + 1) << "words of XGMII";
  } else {
    EXPECT_GE(reached, load.rate);
  }

  // What came in meanwhile is all there, and no later than before.
  for (int idle = 0; idle < 2000; ++idle) {
    if (model.wire_in().waiting() != 0) idle = 0;
    take_received();
    model.step(8);
  }
  EXPECT_EQ(received_, pushed_ / load.packets_per_buffer * load.packets_per_buffer);
  std::uint64_t dropped = 0;
  for (unsigned k = rx::preamble; k < rx::count; ++k) dropped += k == rx::stored ? 0 : driver.rx_count(k);
  EXPECT_EQ(dropped, 0u);
  for (const auto& [lane, range] : times_) {
    std::cout << "  lane " << lane << ": " << range.least << " to " << range.greatest << " cycles, alone "
              << times_without.at(lane).least << " to " << times_without.at(lane).greatest << "\n";
    EXPECT_LE(range.greatest, times_without.at(lane).greatest + load.late_max) << "lane " << lane;
  }
}

// From the cycle in which the doorbell's write stands on AXI4-Lite to the word with the frame's start, without the two reads of the host: the packet is whole
// before it leaves, and so is each answer before it goes on, both a word of 16 bytes a cycle.
TEST(SendLatency, FromDoorbellToWire) {
  constexpr std::uint64_t kReadCycles = 60, kPreambleBytes = 8, kOtherCycles = 35;
  constexpr std::size_t kRequestBytes = 512, kBusBytes = 16;
  std::mt19937_64 random(6);
  Rig rig(NicConfig{}, HostTiming{.read_cycles_min = kReadCycles, .read_cycles_max = kReadCycles});
  rig.driver->set_destination({.index = 2, .mac = 0x02'00'00'00'00'02, .address = kPeer, .port = kPeerPort, .from_port = kPort});
  std::size_t at = 0;  // of the payload in memory: the driver's places follow one another
  for (int k = 0; k < 100; ++k, at += rig.driver->payload_bytes_max()) {
    const std::size_t bytes = std::array<std::size_t, 4>{18, 64, 512, 1472}[random() % 4];
    std::size_t longest = 0;  // of the read's requests, which end at multiples of kRequestBytes
    for (std::size_t from = at; from < at + bytes; from += kRequestBytes - from % kRequestBytes) {
      longest = std::max(longest, std::min(at + bytes - from, kRequestBytes - from % kRequestBytes));
    }
    rig.model.step(random() % 16);
    const std::uint64_t rung = rig.model.cycle();
    ASSERT_TRUE(rig.driver->send(random_bytes(random, bytes), 2, 0));
    for (int wait = 0; wait < 5000 && rig.driver->poll_sent() == nullptr; ++wait) rig.model.step();
    rig.model.step(300);
    ASSERT_EQ(rig.model.wire_out().frames().size(), 1u);
    const std::uint64_t ended = rig.model.wire_out().frames().front().cycle;
    rig.model.wire_out().frames().clear();
    const std::uint64_t frame_words = (wire_bytes(bytes) - kBetweenFramesBytes + kPreambleBytes) /
                                      kWordBytes;  // before that with its end
    const auto words = [](std::size_t count) { return (count + kBusBytes - 1) / kBusBytes; };
    EXPECT_EQ(ended - frame_words - rung - 2 * kReadCycles, kOtherCycles + words(bytes) + words(longest)) << bytes << " B at " << at;
  }
}

std::vector<Load> loads() {
  constexpr std::size_t kFits = 22;  // from this size on a frame takes 11 cycles
  std::vector<Load> all;
  for (const std::size_t bytes : {18ul, 19ul, 22ul, 33ul, 64ul, 100ul, 255ul, 1000ul, 1472ul, 8960ul}) {
    all.push_back({bytes, 0, 1});
    all.push_back({bytes, bytes, 16});
    if (bytes >= kFits) all.push_back({bytes, bytes, 1});
  }
  // The path to memory takes a word of 16 bytes a cycle: two of payload, one of the index and four of each of the two completions are 11 cycles, of the
  // 10.5 that a frame of 64 B takes. With received packets at most a cycle late, each byte less than kFits takes a sixteenth (docs/design/gateware-nic.md
  // shows that there is no more); the run's beginning and end take the rest.
  for (std::size_t bytes = 18; bytes < kFits; ++bytes) {
    all.push_back({bytes, bytes, 1, 0.999 * (1 - static_cast<double>(kFits - bytes) / 16), 1});
  }
  for (const std::size_t bytes : {64ul, 210ul, 1472ul, 8960ul}) all.push_back({18, bytes, 16});
  all.push_back({18, 466, 16, 0.75});  // the pauses between such packets are short, and within one there is no time to make up for a pause
  for (const std::size_t bytes : {18ul, 210ul, 8960ul}) all.push_back({1472, bytes, 16});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Loads, LineRate, ::testing::ValuesIn(loads()), [](const auto& load) { return name_of(load.param); });

}  // namespace
}  // namespace nanet::link::gateware
