// SPDX-License-Identifier: Apache-2.0
// A match entry that is written while packets stand on the wire, back to back: each packet is judged once, so it is whole or not there, and in one counter.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "nic_rig.hpp"

namespace nanet::link::gateware {
namespace {

using test::Bytes;
using test::kPort;
using test::random_bytes;

constexpr std::uint16_t kOtherPort = kPort + 1;
constexpr std::uint32_t kEntry = 3, kMatchRegister = 0x048;  // `match` of registers/nic.rdl: without its enable bit an entry is off
constexpr std::array<std::size_t, 4> kSizes{18, 66, 200, 1472};
constexpr int kMoments = 30;  // of each size
constexpr std::size_t kFrames = 24, kFramesBefore = 12;

struct Sent {
  std::uint16_t port;
  Bytes payload;
};

class MatchTest : public test::RigTest {
 protected:
  Match match() const override { return to(kPort); }
  static Match to(std::uint16_t port) { return {.index = kEntry, .port = port, .from_address = 0, .from_mask = 0, .source = 9}; }

  void start_idle() {
    start({}, {.clops = {{.packets_per_buffer = 16, .timeout_ns = 0}}});
    disable();
  }

  void disable() { device->write(kMatchRegister, kEntry); }

  // Frames back to back, to the ports in turn, and a moment while one of the first of them comes in.
  std::vector<Sent> begin(std::size_t payload_bytes, std::vector<std::uint16_t> ports) {
    std::vector<Sent> sent;
    for (std::size_t k = 0; k < kFrames; ++k) {
      sent.push_back({ports[k % ports.size()], random_bytes(random_, payload_bytes)});
      rig->push(sent.back().port, sent.back().payload);
    }
    sent_ += kFrames;
    const std::size_t frame_cycles = (payload_bytes + 66) / 8;  // headers, check sequence, preamble and gap
    model->step(random_() % (kFramesBefore * frame_cycles));
    return sent;
  }

  // All that was delivered, when everything has come in.
  std::vector<Bytes> delivered() {
    rig->run_dry();
    driver->flush();
    model->step(1000);
    std::vector<Bytes> found;
    while (const Completion* completion = driver->poll()) {
      for (const PacketRef& ref : driver->packets(*completion)) {
        const auto payload = driver->payload(*completion, ref);
        found.emplace_back(payload.begin(), payload.end());
        EXPECT_EQ(ref.source, 9);
      }
      driver->release();
    }
    delivered_ += found.size();
    EXPECT_EQ(driver->rx_count(rx::stored), delivered_);
    EXPECT_EQ(driver->rx_count(rx::no_match), sent_ - delivered_);
    return found;
  }

  std::mt19937_64 random_{20};
  std::uint64_t sent_ = 0, delivered_ = 0;
};

// The payloads of those to `before` up to the packet `turn`, and of those to `after` from it on. A port of 0: of none.
std::vector<Bytes> judged(const std::vector<Sent>& sent, std::size_t turn, std::uint16_t before, std::uint16_t after) {
  std::vector<Bytes> wanted;
  for (std::size_t k = 0; k < sent.size(); ++k) {
    if (sent[k].port == (k < turn ? before : after)) wanted.push_back(sent[k].payload);
  }
  return wanted;
}

// Whether the entry changed between two packets, whichever they are.
bool is_judged_once(const std::vector<Bytes>& found, const std::vector<Sent>& sent, std::uint16_t before, std::uint16_t after) {
  for (std::size_t turn = 0; turn <= sent.size(); ++turn) {
    if (found == judged(sent, turn, before, after)) return true;
  }
  return false;
}

TEST_F(MatchTest, EnabledAndTakenAwayUnderTraffic) {
  start_idle();
  for (const std::size_t bytes : kSizes) {
    for (int moment = 0; moment < kMoments; ++moment) {
      SCOPED_TRACE(std::to_string(bytes) + " B, moment " + std::to_string(moment));
      const std::vector<Sent> first = begin(bytes, {kPort});
      driver->set_match(to(kPort));
      const std::vector<Bytes> from = delivered();
      ASSERT_TRUE(is_judged_once(from, first, 0, kPort)) << from.size() << " packets";
      EXPECT_GE(from.size(), kFrames - kFramesBefore - 8);
      const std::vector<Sent> second = begin(bytes, {kPort});
      disable();
      const std::vector<Bytes> until = delivered();
      ASSERT_TRUE(is_judged_once(until, second, kPort, 0)) << until.size() << " packets";
    }
  }
}

TEST_F(MatchTest, MovedToAnotherPortUnderTraffic) {
  start_idle();
  driver->set_match(to(kPort));
  std::uint16_t before = kPort, after = kOtherPort;
  for (const std::size_t bytes : kSizes) {
    for (int moment = 0; moment < kMoments; ++moment) {
      SCOPED_TRACE(std::to_string(bytes) + " B, moment " + std::to_string(moment));
      const std::vector<Sent> sent = begin(bytes, {kPort, kOtherPort});
      driver->set_match(to(after));
      const std::vector<Bytes> found = delivered();
      ASSERT_TRUE(is_judged_once(found, sent, before, after)) << found.size() << " packets";
      std::swap(before, after);
    }
  }
}

}  // namespace
}  // namespace nanet::link::gateware
