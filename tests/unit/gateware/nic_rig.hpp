// SPDX-License-Identifier: Apache-2.0
// For tests of the NIC with its driver: frames to it, and a device that tells which memory the driver has registered.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "link/gateware/nic_counts.hpp"
#include "link/gateware/nic_driver.hpp"
#include "link/udp_frame.hpp"

namespace nanet::link::gateware::test {

using nanet::gateware::HostTiming;
using nanet::gateware::Model;
using Bytes = std::vector<std::byte>;

inline constexpr std::uint32_t kAddress = 0x0A00'0001, kPeer = 0x0A00'0002;
inline constexpr std::uint16_t kPort = 6200, kPeerPort = 4000;
inline constexpr MacAddress kMac{2, 0, 0, 0, 0, 1}, kPeerMac{2, 0, 0, 0, 0, 2};

// To a port of the NIC, with the frame check sequence.
inline Bytes frame_to(std::uint16_t port, std::span<const std::byte> payload) {
  Bytes frame(kFrameHeaderBytes + payload.size());
  write_ethernet_header(frame.data(), kPeerMac, kMac);
  write_ipv4_udp_headers(frame.data() + kEthernetHeaderBytes, {kPeer, kAddress, kPeerPort, port}, payload, 0);
  std::copy(payload.begin(), payload.end(), frame.begin() + kFrameHeaderBytes);
  return nanet::gateware::with_fcs(frame);
}

inline Bytes random_bytes(std::mt19937_64& random, std::size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// A piece of memory that the driver has registered, in the order in which it did.
struct Mapped {
  std::span<std::byte> memory;
  Access access;
  std::vector<std::uint64_t> pages;
};

class WatchedDevice final : public Device {
 public:
  explicit WatchedDevice(Model& model) : sim_(model) {}

  std::uint64_t read(std::uint32_t offset) override { return sim_.read(offset); }
  void write(std::uint32_t offset, std::uint64_t value) override { sim_.write(offset, value); }
  void poll() override { sim_.poll(); }
  bool wait(std::uint64_t timeout_ns) override { return sim_.wait(timeout_ns); }
  void unmap(std::span<const std::uint64_t> pages) override { sim_.unmap(pages); }
  std::vector<std::uint64_t> map(std::span<std::byte> memory, std::size_t page_bytes, Access access) override {
    mapped.push_back({memory, access, sim_.map(memory, page_bytes, access)});
    return mapped.back().pages;
  }

  std::vector<Mapped> mapped;

 private:
  SimDevice sim_;
};

// The NIC with its driver. Ends the test with a failure if the NIC went astray.
struct Rig {
  explicit Rig(const NicConfig& config, const HostTiming& timing = {}, nanet::gateware::Line line = nanet::gateware::Line::gbps_10)
      : model(timing, line) {
    drive(config);
  }
  ~Rig() {
    driver.reset();
    EXPECT_EQ(model.bus().stray_count(), strays_expected) << (model.bus().strays().empty() ? "" : model.bus().strays().front().why);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  // A driver, the first or one more after a reset.
  void drive(NicConfig config) {
    config.address = kAddress;
    driver.reset();
    driver = std::make_unique<NicDriver>(device, config);
  }

  void push(std::uint16_t port, std::span<const std::byte> payload) { model.wire_in().push(frame_to(port, payload)); }
  void run_dry() {
    while (model.wire_in().waiting() != 0) device.poll();
    model.step(400);
  }

  Model model;
  WatchedDevice device{model};
  std::unique_ptr<NicDriver> driver;
  std::uint64_t strays_expected = 0;
};

// The rig as a fixture: start() makes one, whose driver has match() and destination 2, from kPort to the peer.
class RigTest : public ::testing::Test {
 protected:
  void start(const HostTiming& timing = {}, const NicConfig& config = {}) {
    rig.emplace(config, timing);
    model = &rig->model;
    device = &rig->device;
    set_up_driver();
  }

  // One more driver, after a reset.
  void drive() {
    rig->drive({});
    set_up_driver();
  }

  void TearDown() override { rig.reset(); }
  virtual Match match() const = 0;

  std::optional<Rig> rig;
  Model* model = nullptr;  // these three are the rig's, from start() on
  Device* device = nullptr;
  NicDriver* driver = nullptr;

 private:
  void set_up_driver() {
    driver = rig->driver.get();
    driver->set_match(match());
    driver->set_destination({.index = 2, .mac = 0x02'00'00'00'00'02, .address = kPeer, .port = kPeerPort, .from_port = kPort});
  }
};

}  // namespace nanet::link::gateware::test
