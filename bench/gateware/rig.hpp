// SPDX-License-Identifier: Apache-2.0
// The simulated NIC before its driver, and what the driver's memory is: where in it each write of the NIC's ended, and when.
//
// Thread rules: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "link/gateware/nic_driver.hpp"

namespace nanet::bench {

// What NicDriver registers for one CLOP, in its order.
enum class Memory : std::uint8_t { completions, buffers, index };

// Damage on the way to memory, to see that the comparison sees it.
enum class Damage : std::uint8_t {
  none,
  payload,  // every other packet's bits are turned over
  bit,      // one bit of one packet is
  stale,    // one packet is not written
  length,   // an index entry says a byte more
  offset,   // an index entry says another place
  source,   // an index entry says another sender
  stamp     // a completion says another time
};
inline constexpr std::array<std::string_view, 8> kDamageNames{"none",   "payload", "bit",    "stale",
                                                              "length", "offset",  "source", "stamp"};

class Rig final : public link::gateware::Device {
 public:
  using Access = link::gateware::Access;

  Rig(const gateware::HostTiming& host, gateware::Line line, Damage damage);

  std::uint64_t read(std::uint32_t offset) override { return sim_.read(offset); }
  void write(std::uint32_t offset, std::uint64_t value) override { sim_.write(offset, value); }
  void poll() override { sim_.poll(); }
  bool wait(std::uint64_t timeout_ns) override { return sim_.wait(timeout_ns); }
  void unmap(std::span<const std::uint64_t> pages) override { sim_.unmap(pages); }
  std::vector<std::uint64_t> map(std::span<std::byte> memory, std::size_t page_bytes, Access access) override;

  // Takes over what the bus has written since the last call.
  void look();

  std::span<std::byte> memory(Memory of) const { return pieces_[static_cast<std::size_t>(of)].memory; }

  // The cycle in which the last word of the latest write to this byte was in memory. 0: none was.
  std::uint64_t written_cycle(Memory of, std::size_t place) const;

  gateware::Model model;

 private:
  struct Piece {
    std::span<std::byte> memory;
    std::size_t page_bytes;
    std::vector<std::uint64_t> pages;
    std::vector<std::uint64_t> cycles;  // by word of 16 bytes
  };
  struct Place {
    Memory of;
    std::size_t at;
  };

  std::optional<Place> place_of(std::uint64_t bus_address) const;
  bool harm(const Place& place, std::span<std::byte> data);

  link::gateware::SimDevice sim_{model};
  const std::uint64_t write_cycles_;
  const Damage damage_;
  std::vector<Piece> pieces_;
  std::uint64_t harmed_ = 0;  // requests, or entries, that it might have harmed
};

}  // namespace nanet::bench
