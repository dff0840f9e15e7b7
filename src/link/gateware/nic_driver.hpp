// SPDX-License-Identifier: Apache-2.0
// The driver of the NIC in gateware/: one CLOP, one TX ring, all in memory that it registers with the device. It does what docs/design/gateware-nic.md asks
// of a driver, and knows nothing of what stands behind the device.
//
// Thread rules: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "link/gateware/device.hpp"
#include "nanet/contract.hpp"

namespace nanet::link::gateware {

struct NicConfig {
  std::uint64_t mac = 0x02'00'00'00'00'01;  // as one writes it
  std::uint32_t address = 0;                // IPv4, host order
  std::uint32_t buffer_bytes = 64 << 10;    // of each receive buffer, a multiple of 65536
  std::uint32_t buffer_count = 8;           // power of two, 2 or more
  std::uint32_t packets_per_buffer = 64;    // at most; then it is handed over
  std::uint32_t timeout_ns = 2000;          // of the NIC's clock; 0: none
  bool footer = false;                      // four cycle stamps behind each payload
  std::uint32_t tx_entries = 32;            // power of two, 8 or more
};

struct Match {
  std::uint32_t index;  // of the table: the lowest that fits wins
  std::uint16_t port;
  std::uint32_t from_address;  // IPv4, host order
  std::uint32_t from_mask;     // a zero bit: may be anything
  std::uint16_t source;        // PacketRef::source
  bool counts_events;          // byte 3 of a payload is its number of events
};

struct Destination {
  std::uint32_t index;
  std::uint64_t mac;
  std::uint32_t address;
  std::uint16_t port;
  std::uint16_t from_port;
};

class NicDriver {
 public:
  // Finds the NIC, registers memory, enables CLOP and ring. Throws SetupError when it is another NIC or has not enough of something.
  NicDriver(Device& device, const NicConfig& config);
  ~NicDriver();  // disables both, waits until nothing is under way, takes the memory back
  NicDriver(const NicDriver&) = delete;
  NicDriver& operator=(const NicDriver&) = delete;

  void set_match(const Match& match);
  void set_destination(const Destination& destination);
  void flush();

  // The next buffer that was handed over, or null. It and what it names stay until as many release() as poll() that found one.
  const Completion* poll();
  std::span<const PacketRef> packets(const Completion& completion) const;
  std::span<const std::byte> payload(const Completion& completion, const PacketRef& packet) const;
  std::array<std::uint64_t, 4> stamps(const Completion& completion, const PacketRef& packet) const;  // [cycles]; with footers
  void release(std::uint32_t buffers = 1);                                                           // the oldest ones

  // Copies a payload and rings. False: the ring is full, or the payload is empty or longer than payload_bytes_max().
  bool send(std::span<const std::byte> payload, std::uint32_t destination, std::uint64_t tag);
  const Completion* poll_sent();  // the next completion of a sent packet, or of one that could not be (kind error)
  std::uint32_t under_way() const { return rung_ - gone_; }

  std::uint32_t payload_bytes_max() const { return payload_bytes_max_; }
  std::uint64_t rx_count(unsigned counter) { return device_.read(0x800 + 8 * counter); }  // nic_core.sv names them
  std::uint64_t tx_count(unsigned counter) { return device_.read(0x900 + 8 * counter); }

 private:
  // Registered memory: its number as a region of the NIC, and what is in it.
  struct Region {
    std::uint32_t number = 0;
    std::span<std::byte> memory;
    std::vector<std::uint64_t> pages;
    std::uint64_t address() const;  // of its first byte, for the NIC
  };

  void check_geometry();
  void add(Region& region, std::size_t bytes, unsigned page_shift, Access access);
  void set_up_clop();
  void set_up_ring();

  Device& device_;
  NicConfig config_;
  std::uint32_t regions_ = 0, entries_ = 0;  // in use
  std::uint32_t payload_bytes_max_ = 0, slot_bytes_ = 0;
  Region completions_, buffers_, index_, ring_, payloads_, sent_;
  std::uint32_t taken_ = 0, released_ = 0;  // buffers
  std::uint32_t rung_ = 0, gone_ = 0;       // descriptors
};

}  // namespace nanet::link::gateware
