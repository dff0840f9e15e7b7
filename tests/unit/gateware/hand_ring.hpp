// SPDX-License-Identifier: Apache-2.0
// A TX ring of eight descriptors in place of the driver's, for what no driver should do with one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "link/gateware/device.hpp"
#include "nanet/contract.hpp"

namespace nanet::link::gateware::wire {

class HandRing {
 public:
  static constexpr std::uint32_t kEntries = 8, kSlotBytes = 1024;

  HandRing(nanet::gateware::Model& model, Device& device) : model_(model), device_(device) {
    add(ring_, 12, 4000, 1, Access::read);
    add(payloads_, 13, 4001, kEntries * kSlotBytes / kPageBytes, Access::read);
    add(sent_, 14, 4001 + kEntries * kSlotBytes / kPageBytes, 1, Access::write);
    restart();
  }
  ~HandRing() {
    stop();
    for (const Region* region : {&ring_, &payloads_, &sent_}) {
      set_valid(*region, false);
      device_.unmap(region->pages);
      std::free(region->memory);
    }
  }
  HandRing(const HandRing&) = delete;
  HandRing& operator=(const HandRing&) = delete;

  // As a driver does it after a fault.
  void restart() {
    stop();
    std::memset(ring_.memory, 0, kPageBytes);
    std::memset(sent_.memory, 0, kPageBytes);
    model_.write(0x408, address(ring_));
    model_.write(0x410, address(sent_));
    model_.write(0x418, (kEntries - 1) | std::uint64_t{kEntries - 1} << 32);
    model_.write(0x420, 0);
    model_.write(0x400, 1);
  }

  // Descriptor `number`, with its payload; it is rung by ring().
  TxDescriptor& put(std::uint32_t number, std::span<const std::byte> payload) {
    const std::uint32_t slot = number % kEntries;
    std::memcpy(payloads_.memory + slot * kSlotBytes, payload.data(), payload.size());
    auto& descriptor = *reinterpret_cast<TxDescriptor*>(ring_.memory + slot * sizeof(TxDescriptor));
    descriptor = {address(payloads_) + slot * kSlotBytes, static_cast<std::uint32_t>(payload.size()), 2, number, {}, number + 1};
    return descriptor;
  }
  void ring(std::uint32_t count) { model_.write(0x420, count); }

  const Completion* completion(std::uint32_t number) const {
    const auto* entry = reinterpret_cast<const Completion*>(sent_.memory) + number % kEntries;
    return entry->sequence == number + 1 ? entry : nullptr;
  }
  const Completion* wait_for(std::uint32_t number) {
    for (int k = 0; k < 50'000 && completion(number) == nullptr; ++k) model_.step();
    return completion(number);
  }

  bool busy() { return (model_.read(0x428) >> 32 & 1) != 0; }
  bool fault() { return (model_.read(0x428) >> 33 & 1) != 0; }
  void set_ring_valid(bool valid) { set_valid(ring_, valid); }
  std::uint64_t write_only_address() const { return address(sent_); }

 private:
  static constexpr std::uint64_t kValid = 1, kReadable = 2, kWritable = 4;
  static constexpr std::uint32_t kPageBytes = 4096;
  struct Region {
    std::uint64_t number = 0, first = 0;
    std::byte* memory = nullptr;
    std::vector<std::uint64_t> pages;
  };

  static std::uint64_t address(const Region& region) { return region.number << 40; }

  void add(Region& region, std::uint64_t number, std::uint64_t first, std::size_t pages, Access access) {
    region.number = number;
    region.first = first;
    region.memory = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, pages * kPageBytes));
    std::memset(region.memory, 0, pages * kPageBytes);
    region.pages = device_.map({region.memory, pages * kPageBytes}, kPageBytes, access);
    for (std::size_t k = 0; k < pages; ++k) {
      model_.write(0x068, region.pages[k] | kValid | (access == Access::read ? kReadable : kWritable));
      model_.write(0x070, first + k);
    }
    set_valid(region, true);
  }

  void set_valid(const Region& region, bool valid) {
    model_.write(0x060, region.first | region.pages.size() << 16 | std::uint64_t{12} << 40 | std::uint64_t{valid} << 45 |
                            region.number << 48);
  }

  void stop() {
    model_.write(0x400, 0);
    for (int k = 0; k < 100'000 && busy(); ++k) model_.step();
    EXPECT_FALSE(busy()) << "the ring hangs";
  }

  nanet::gateware::Model& model_;
  Device& device_;
  Region ring_, payloads_, sent_;
};

}  // namespace nanet::link::gateware::wire
