// SPDX-License-Identifier: Apache-2.0
// The simulated node with four ports, as the bench sets it up: a board a port, all events merged, packets of them into one CLOP of the driver.
//
// Thread rules: one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "link/gateware/nic_driver.hpp"
#include "link/gateware/node.hpp"
#include "model/model.hpp"

namespace nanet::bench {

inline constexpr std::size_t kNodePorts = 4;  // of the model

// Where the driver's buffers lie on the bus: the second piece of memory that it lets the node write.
class NodeRig final : public link::gateware::Device {
 public:
  std::uint64_t read(std::uint32_t offset) override { return sim_.read(offset); }
  void write(std::uint32_t offset, std::uint64_t value) override { sim_.write(offset, value); }
  void poll() override { sim_.poll(); }
  bool wait(std::uint64_t timeout_ns) override { return sim_.wait(timeout_ns); }
  void unmap(std::span<const std::uint64_t> pages) override { sim_.unmap(pages); }
  std::vector<std::uint64_t> map(std::span<std::byte> memory, std::size_t page_bytes, link::gateware::Access access) override {
    std::vector<std::uint64_t> pages = sim_.map(memory, page_bytes, access);
    if (++maps_ == 2) {
      const auto [low, high] = std::minmax_element(pages.begin(), pages.end());
      buffers_from_ = *low;
      buffers_to_ = *high + page_bytes;
    }
    return pages;
  }
  bool is_payload(std::uint64_t address) const { return buffers_from_ <= address && address < buffers_to_; }

  gateware::Model model{{}, gateware::Line::gbps_10, gateware::Design::node};

 private:
  link::gateware::SimDevice sim_{model};
  int maps_ = 0;
  std::uint64_t buffers_from_ = 0, buffers_to_ = 0;
};

// What the host's port of it is told.
link::gateware::NicConfig node_host();

// The driver of the host's port is there.
void set_up(NodeRig& rig, const link::gateware::MergeSettings& merging);

// A frame to `port` with a board's packet, with its check sequence.
std::vector<std::byte> node_frame(std::size_t port, std::span<const std::byte> payload);

// What comes of a recording of four boards' MGP packets, sub id 0 to 3, each into the port of its number: a recording of the packets of merged events. Both are pcap
// files. Throws SetupError, and std::runtime_error when the node drops something.
void play_node(const char* boards, const char* merged);

}  // namespace nanet::bench
