// SPDX-License-Identifier: Apache-2.0
// Wraps a link that brings packets of KM3NeT's floors: they go as frames over the fibres of a simulated node, and come as the node makes them again, from a CLOP
// a kind of data. See nanet/link/gateware.hpp.
//
// The detector's time is the simulation's: it stands until the next slice has come, or slow control is to go by a link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/gateware/km3_control.hpp"
#include "link/gateware/km3_node.hpp"
#include "link/gateware/km3_slots.hpp"
#include "link/gateware/link_parts.hpp"
#include "link/gateware/nic_driver.hpp"
#include "nanet/link/gateware.hpp"

namespace nanet::link::gateware {

class Km3Link final : public Link {
 public:
  static constexpr std::uint32_t wire_bytes_max = 8972;  // of floors' packets

  // Throws SetupError.
  Km3Link(std::unique_ptr<Link> wire, const GatewareConfig& config);

  std::size_t min_room_bytes() const override { return room_bytes(config_); }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;  // nothing: all is dropped
  void wait(std::uint64_t timeout_ns) override;
  LinkStats stats() const override;
  std::optional<NicTimes> nic_times() const override;
  std::vector<NicCounts> nic_counts() const override;
  bool finished() const override;
  bool keeps_packets() const override { return wire_->keeps_packets(); }
  Endpoint local() const override;
  std::string path() const override;
  std::vector<std::string> notes() const override;

  std::uint64_t stray_count() const;  // accesses of the node to memory that was not registered for it

 private:
  struct Nic {
    nanet::gateware::Model model;
    SimDevice device{model};
    NicDriver driver;
    Km3Node node;
    NicReceiver receiver;
    explicit Nic(const GatewareConfig& config);
  };

  nanet::gateware::FloorLinks& floors() const { return nic_->model.floors(); }
  void set_up_ports();  // throws SetupError
  void pass(std::uint64_t cycles);
  void give_none();
  void take_from_wire(std::uint64_t now_ns);
  void set_time(std::uint32_t second);
  void begin_run();
  bool give_frames(std::uint64_t now_ns);  // whether there are any
  std::optional<nanet::gateware::FloorFrame> frame(std::size_t port) const;
  void give_down();     // requests to the node
  void give_heard();    // what came down to the floors to their programs, and takes their answers
  void take_control();  // answers that came up
  void send_express(std::uint32_t port, std::uint8_t code);
  void take_express();
  bool has_control() const { return control_ && (control_frames_ != 0 || control_->has_answers()); }
  class Reading;
  bool moves() const { return (run_ || control_) && !floors().stand(); }  // until the next frames are due
  bool is_busy() const;

  // The mutex, in turn: where slow control goes by, the thread that receives gives it up for a moment only, too short for another one to
  // wake up and take it.
  std::unique_lock<std::mutex> lock_in_turn() const {
    const std::lock_guard next(next_);
    return std::unique_lock(mutex_);
  }

  const GatewareConfig config_;
  const std::unique_ptr<Link> wire_;
  const std::uint32_t slice_frames_;
  mutable std::mutex next_;   // whoever is the next one to have mutex_
  mutable std::mutex mutex_;  // over all that follows: whatever reads a register lets the node's time go on
  std::unique_ptr<Nic> nic_;
  Km3Slots slots_;
  std::optional<Km3Run> run_;
  std::unique_ptr<Km3Control> control_;   // null: none
  std::uint32_t control_frames_ = 0;      // that are to go by for it
  std::uint32_t place_ = 0;               // in the slice, of the frame that is due next
  std::uint64_t lost_runs_ = 0;           // that the node did not begin
  mutable std::uint64_t busy_until_ = 0;  // cycle
  mutable bool is_unseen_ = false;        // something may have come to the host while registers were read
  std::vector<std::byte> room_;           // for what comes from the wire
  std::vector<RxPacket> arrived_;
  LinkStats own_;  // what this link itself counts
};

}  // namespace nanet::link::gateware
