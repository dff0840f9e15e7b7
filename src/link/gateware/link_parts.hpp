// SPDX-License-Identifier: Apache-2.0
// What both links over the NIC share, the one with the simulated NIC and the one with a card: buffers become packets, counters of the NIC those of a
// link, its stages NicTimes.
//
// Layout of what hand_on() writes: each packet at the next multiple of 8 bytes, bytes_used rounded up to one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "link/gateware/nic_driver.hpp"
#include "link/tally.hpp"
#include "nanet/link/gateware.hpp"

namespace nanet::link::gateware {

inline constexpr std::uint32_t kMatchEntries = 16, kDestinations = 16;  // of the NIC

// A sender; port 0: not known.
struct Peer {
  std::uint32_t address;
  std::uint16_t port;
};

// Room for one packet, as Link::min_room_bytes() says.
inline std::size_t room_bytes(const GatewareConfig& config) { return (config.packet_bytes_max + std::size_t{7}) & ~std::size_t{7}; }

// Tells the NIC where `config.destinations` are, all at the Ethernet address `mac`. Throws SetupError if they are too many.
void set_destinations(NicDriver& driver, const GatewareConfig& config, std::uint64_t mac, std::uint16_t from_port);

// Whether the NIC could send it, its ring having room.
bool can_send(const NicDriver& driver, const GatewareConfig& config, const TxPacket& packet);

// Thread rules: one thread receives (take_buffer, hand_on, end_call). add_stats: any thread if the device allows that; times: one at a time.
class NicReceiver {
 public:
  // What the NIC has counted before is forgotten. Throws SetupError if its payloads are shorter than `config.packet_bytes_max`.
  NicReceiver(NicDriver& driver, const GatewareConfig& config);

  bool has_buffer() const { return buffer_ != nullptr; }  // in hand
  std::uint32_t clop() const { return buffer_->clop; }    // of the one in hand
  bool take_buffer();                                     // the next one that was handed over, if none is in hand. Whether one is

  // Packets of the buffer in hand, as far as room and entries go; a payload is cut to packet_bytes_max. With its last packet the buffer goes back to the
  // NIC: then true. peers: by PacketRef::source; those beyond are not known.
  bool hand_on(RxBatch& batch, std::span<std::byte> room, std::span<RxPacket> packets, std::span<const Peer> peers);
  void end_call(const RxBatch& batch);  // of the link's receive()

  // All packets of the buffer in hand, none of which was handed on, to the link itself: from which source, and what. It goes back to the NIC.
  void keep(const std::function<void(std::uint16_t, std::span<const std::byte>)>& take);

  void add_stats(LinkStats& stats) const;                     // rx_* of the NIC and of this object
  std::uint64_t packets() const { return packets_.value(); }  // handed on, as are the events
  std::uint64_t kept() const { return kept_.value(); }
  std::uint64_t events() const { return events_.value(); }  // in the buffers that went back, as the NIC has counted them
  NicTimes times(std::string clock);                        // since this object was made

 private:
  LinkStats counted() const;  // by the NIC, since reset

  NicDriver& driver_;
  const std::uint32_t packet_bytes_max_;
  LinkStats before_;
  const Completion* buffer_ = nullptr;
  std::uint32_t next_packet_ = 0;  // of it
  std::array<StageStats, kStageCount> stages_;
  Tally calls_, batches_, packets_, bytes_, cut_, events_, kept_;
};

}  // namespace nanet::link::gateware
