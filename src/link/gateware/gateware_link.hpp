// SPDX-License-Identifier: Apache-2.0
// Wraps a link that stands in for the wire: its packets go through the simulated NIC. See nanet/link/gateware.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/gateware/link_parts.hpp"
#include "link/gateware/nic_driver.hpp"
#include "link/udp_frame.hpp"
#include "nanet/link/gateware.hpp"

namespace nanet::link::gateware {

class GatewareLink final : public Link {
 public:
  // wire: its destinations are those of the configuration. Throws SetupError.
  GatewareLink(std::unique_ptr<Link> wire, const GatewareConfig& config);

  std::size_t min_room_bytes() const override { return room_bytes(config_); }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;
  void wait(std::uint64_t timeout_ns) override;
  LinkStats stats() const override;
  std::optional<NicTimes> nic_times() const override;
  bool finished() const override;
  bool keeps_packets() const override { return wire_->keeps_packets(); }
  Endpoint local() const override;
  std::string path() const override;
  std::vector<std::string> notes() const override;

  std::uint64_t stray_count() const;  // accesses of the NIC to memory that was not registered for it

 private:
  static nanet::gateware::Line line_of(const GatewareConfig& config);  // throws SetupError
  struct Nic {
    nanet::gateware::Model model;
    SimDevice device{model};
    NicDriver driver;
    NicReceiver receiver;
    Nic(const nanet::gateware::HostTiming& timing, const NicConfig& nic, const GatewareConfig& link)
        : model(timing, line_of(link)), driver(device, nic), receiver(driver, link) {}
  };

  void take_from_wire(std::uint64_t now_ns);
  void push_frame(const UdpFlow& flow, std::span<const std::byte> payload);
  void learn(std::uint32_t address, std::uint16_t port);
  void give_to_wire(std::uint64_t now_ns);
  bool is_busy() const;  // something is, or may be, in flight in the NIC

  const GatewareConfig config_;
  std::unique_ptr<Link> wire_;
  mutable std::mutex mutex_;  // over all that follows: receive, send, stats and nic_times let the NIC's time go on
  std::unique_ptr<Nic> nic_;
  std::vector<Peer> peers_;  // the NIC knows one by its address, so of one that uses several ports the port is not known
  mutable std::uint64_t busy_until_ = 0;  // cycle
  std::vector<std::byte> room_;           // for what comes from the wire
  std::vector<RxPacket> arrived_;
  std::vector<std::byte> frame_;
  std::int64_t frames_awaited_ = 0;  // that the NIC has sent and the wire has not seen
  LinkStats own_;                    // what this link itself counts
};

}  // namespace nanet::link::gateware
