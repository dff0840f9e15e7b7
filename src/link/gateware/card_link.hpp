// SPDX-License-Identifier: Apache-2.0
// The link through a card or a board with the NIC of gateware/. NOT RUN ON HARDWARE: there is none yet. Its tests give it the simulated NIC.
// See nanet/link/gateware.hpp.
//
// Thread rules: those of Link, if the device may be used by several threads; with SimDevice one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/gateware/device.hpp"
#include "link/gateware/link_parts.hpp"
#include "link/gateware/nic_driver.hpp"
#include "link/gateware/vfio_device.hpp"
#include "nanet/link/gateware.hpp"

namespace nanet::link::gateware {

class CardLink final : public Link {
 public:
  // device: the card or the board that config.card names. Throws SetupError.
  CardLink(std::unique_ptr<Device> device, const GatewareConfig& config);

  std::size_t min_room_bytes() const override { return room_bytes(config_); }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;

  // Where the ring is full it waits until a packet has left, some milliseconds at most, and then drops.
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;

  void wait(std::uint64_t timeout_ns) override;

  // A packet is in tx_packets from when it is in the ring, and moves to tx_dropped if the NIC could not send it.
  LinkStats stats() const override;

  std::optional<NicTimes> nic_times() const override;
  Endpoint local() const override { return *config_.listen; }
  std::string path() const override;
  std::vector<std::string> notes() const override;

 private:
  bool has_room();
  std::uint64_t not_sent() const;  // that the NIC took and did not send, since reset

  const GatewareConfig config_;
  std::unique_ptr<Device> device_;
  NicDriver driver_;
  mutable NicReceiver receiver_;    // nic_times() takes from it
  mutable std::mutex times_mutex_;  // over receiver_.times()
  std::uint64_t not_sent_before_ = 0;
  bool is_stuck_ = false;  // the ring stayed full
  Tally tx_calls_, tx_packets_, tx_bytes_, tx_dropped_;
};

// Throws SetupError, also when the card is not there or not given to programs, or no board answers.
std::unique_ptr<Link> open_card(const GatewareConfig& config, Kernel& kernel = system_kernel());

}  // namespace nanet::link::gateware
