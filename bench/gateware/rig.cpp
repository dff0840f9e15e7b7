// SPDX-License-Identifier: Apache-2.0
#include "rig.hpp"

#include <algorithm>

namespace nanet::bench {
namespace {

constexpr std::size_t kWordBytes = 16;
constexpr std::uint64_t kHarmOnceIn = 64;  // of what may be harmed

void add_to(std::span<std::byte> data, std::size_t place, std::uint8_t value) {
  if (place < data.size()) data[place] = static_cast<std::byte>(std::to_integer<std::uint8_t>(data[place]) + value);
}

}  // namespace

Rig::Rig(const gateware::HostTiming& host, gateware::Line line, Damage damage)
    : model(host, line), write_cycles_(host.write_cycles), damage_(damage) {
  model.bus().keep_writes(true);
  if (damage == Damage::none) return;
  model.bus().tamper([this](std::uint64_t bus_address, std::span<std::byte> data) {
    const std::optional<Place> place = place_of(bus_address);
    return !place || harm(*place, data);
  });
}

std::vector<std::uint64_t> Rig::map(std::span<std::byte> memory, std::size_t page_bytes, Access access) {
  std::vector<std::uint64_t> pages = sim_.map(memory, page_bytes, access);
  pieces_.push_back({memory, page_bytes, pages, std::vector<std::uint64_t>(memory.size() / kWordBytes)});
  return pages;
}

// SimDevice puts the pages of a piece backwards, each second place empty.
std::optional<Rig::Place> Rig::place_of(std::uint64_t bus_address) const {
  for (std::size_t k = 0; k < pieces_.size() && k <= static_cast<std::size_t>(Memory::index); ++k) {
    const Piece& piece = pieces_[k];
    if (bus_address < piece.pages.back() || bus_address >= piece.pages.front() + piece.page_bytes) continue;
    const std::size_t page = (piece.pages.front() + piece.page_bytes - 1 - bus_address) / (2 * piece.page_bytes);
    return Place{static_cast<Memory>(k), page * piece.page_bytes + (bus_address - piece.pages[page])};
  }
  return std::nullopt;
}

void Rig::look() {
  for (const gateware::WriteRequest& write : model.bus().writes()) {
    const std::optional<Place> place = place_of(write.address);
    if (!place) continue;
    std::vector<std::uint64_t>& cycles = pieces_[static_cast<std::size_t>(place->of)].cycles;
    const auto first = cycles.begin() + static_cast<std::ptrdiff_t>(place->at / kWordBytes);
    const auto end = cycles.begin() + static_cast<std::ptrdiff_t>((place->at + write.bytes + kWordBytes - 1) / kWordBytes);
    std::fill(first, end, write.last_cycle + write_cycles_);
  }
  model.bus().writes().clear();
}

std::uint64_t Rig::written_cycle(Memory of, std::size_t place) const {
  return pieces_[static_cast<std::size_t>(of)].cycles[place / kWordBytes];
}

// Whether the write happens.
bool Rig::harm(const Place& place, std::span<std::byte> data) {
  const bool whole = damage_ <= Damage::stale;  // of a request, not of an entry
  const Memory target = whole ? Memory::buffers : damage_ == Damage::stamp ? Memory::completions : Memory::index;
  if (place.of != target) return true;
  const std::uint64_t number = harmed_++;
  if (damage_ == Damage::payload) {
    if (number % 2 != 0) std::ranges::for_each(data, [](std::byte& byte) { byte = ~byte; });
  } else if (number % kHarmOnceIn == kHarmOnceIn - 1) {
    switch (damage_) {
      case Damage::bit: data.back() ^= std::byte{1}; break;
      case Damage::stale: return false;
      case Damage::length: add_to(data, offsetof(PacketRef, bytes), 1); break;
      case Damage::offset: add_to(data, offsetof(PacketRef, offset), kWordBytes); break;
      case Damage::source: add_to(data, offsetof(PacketRef, source), 1); break;
      case Damage::stamp: add_to(data, offsetof(Completion, last_packet_ns), 1); break;
      case Damage::none:
      case Damage::payload: break;
    }
  }
  return true;
}

}  // namespace nanet::bench
