// SPDX-License-Identifier: Apache-2.0
// Wraps links that stand in for the wires, one for each port of the simulated NIC or node: their packets go through it. See nanet/link/gateware.hpp.
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
#include "link/gateware/node.hpp"
#include "link/gateware/rounds.hpp"
#include "link/udp_frame.hpp"
#include "nanet/link/gateware.hpp"

namespace nanet::link::gateware {

class GatewareLink final : public Link {
 public:
  // wires: one, or as many as config.merge says. Destinations of the first are those of the configuration. Throws SetupError.
  GatewareLink(std::vector<std::unique_ptr<Link>> wires, const GatewareConfig& config);

  std::size_t min_room_bytes() const override { return room_bytes(config_); }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;
  void wait(std::uint64_t timeout_ns) override;
  LinkStats stats() const override;
  std::optional<NicTimes> nic_times() const override;
  std::vector<NicCounts> nic_counts() const override;  // of a node
  bool finished() const override;
  bool keeps_packets() const override { return wires_.front()->keeps_packets(); }
  Endpoint local() const override { return local(0); }
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
        : model(timing, line_of(link), link.merge ? nanet::gateware::Design::node : nanet::gateware::Design::nic),
          driver(device, nic),
          receiver(driver, link) {}
  };

  void set_up_merging();  // throws SetupError
  Endpoint local(std::size_t port) const;
  void take_from_wires(std::uint64_t now_ns);
  void take_from_wire(std::size_t port, std::uint64_t now_ns);
  void add_frame(std::size_t port, const RxPacket& packet);
  void learn(std::uint32_t address, std::uint16_t port);
  void forget_time_between_runs(std::uint64_t now_ns);
  void give_to_wires(std::uint64_t now_ns);
  void give_to_wire(std::size_t port, std::uint64_t now_ns);
  std::size_t frames_ahead() const;  // of the busiest wire
  std::uint64_t dropped() const;     // of what was to be sent, here and by the wires
  class Reading;
  bool is_busy() const;  // something is, or may be, in flight in the NIC

  // The mutex, in turn: the thread that receives gives it up for a moment only, too short for another one to wake up and take it.
  std::unique_lock<std::mutex> lock_in_turn() const {
    const std::lock_guard next(next_);
    return std::unique_lock(mutex_);
  }

  const GatewareConfig config_;
  std::vector<std::unique_ptr<Link>> wires_;  // by port
  mutable std::mutex next_;                   // whoever is the next one to have mutex_
  mutable std::mutex mutex_;  // over all that follows: receive, send, stats, nic_times and nic_counts let the NIC's time go on
  std::unique_ptr<Nic> nic_;
  std::optional<Node> node_;  // where events are merged
  Rounds rounds_;
  std::uint64_t quiet_cycles_ = 0;  // longer than anything is in flight after its frame has ended
  std::vector<Peer> peers_;         // the NIC knows one by its address, so of one that uses several ports the port is not known
  mutable std::uint64_t busy_until_ = 0;  // cycle
  mutable bool is_unseen_ = false;        // something may have come to the host while registers were read
  bool may_be_marked_ = false;            // frames came since the node was asked for markers
  std::uint64_t markers_ = 0;             // of runs, that the node has seen
  std::uint64_t arrived_ns_ = 0;          // the last frame, by the host's clock; 0: and the node has been told to forget it since
  std::vector<std::byte> room_;           // for what comes from a wire
  std::vector<RxPacket> arrived_;
  std::vector<std::byte> frame_;
  std::int64_t frames_awaited_ = 0;  // that the NIC has sent and the wire has not seen
  LinkStats own_;                    // what this link itself counts
};

}  // namespace nanet::link::gateware
