// SPDX-License-Identifier: Apache-2.0
// What the driver needs of a NIC, whatever provides it: registers, memory that the NIC may reach, and time that advances.
//
// Thread rules: one thread, if a device does not allow more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/model.hpp"

namespace nanet::link::gateware {

// What the NIC does with memory; write_gpu: memory of a GPU, through its aperture.
enum class Access : std::uint8_t { read, write, write_gpu };

constexpr std::uint64_t field(std::uint64_t value, unsigned low) { return value << low; }  // of a register

class Device {
 public:
  virtual ~Device() = default;

  virtual std::uint64_t read(std::uint32_t offset) = 0;
  virtual void write(std::uint32_t offset, std::uint64_t value) = 0;

  // Lets the NIC reach `memory`, which begins at a page and holds whole pages. Returns each page's address on the bus, a multiple of its size.
  virtual std::vector<std::uint64_t> map(std::span<std::byte> memory, std::size_t page_bytes, Access access) = 0;
  virtual void unmap(std::span<const std::uint64_t> pages) = 0;

  virtual void poll() = 0;  // lets time go on where it does not by itself

  // Sleeps until an interrupt comes, timeout_ns of the NIC's time at most. Whether one came; one that no one has waited for counts.
  virtual bool wait(std::uint64_t timeout_ns) = 0;
};

// Registers `memory` with a modelled bus from `next` on, which it moves on. Pages lie in an order of their own, with holes between them, so that an address
// which was not translated, or went beyond its page, is a stray access.
std::vector<std::uint64_t> map_apart(nanet::gateware::HostBus& bus, std::uint64_t& next, std::span<std::byte> memory,
                                     std::size_t page_bytes, Access access);

// The simulated one.
class SimDevice final : public Device {
 public:
  explicit SimDevice(nanet::gateware::Model& model) : model_(model) {}

  std::uint64_t read(std::uint32_t offset) override { return model_.read(offset); }
  void write(std::uint32_t offset, std::uint64_t value) override { model_.write(offset, value); }
  std::vector<std::uint64_t> map(std::span<std::byte> memory, std::size_t page_bytes, Access access) override {
    return map_apart(model_.bus(), next_, memory, page_bytes, access);
  }
  void unmap(std::span<const std::uint64_t> pages) override {
    for (const std::uint64_t page : pages) model_.bus().unmap(page);
  }
  void poll() override { model_.step(); }
  bool wait(std::uint64_t timeout_ns) override {
    const auto cycles = static_cast<std::uint64_t>(static_cast<double>(timeout_ns) / model_.cycle_ns());
    const std::uint64_t until = model_.cycle() + cycles;
    while (!model_.bus().take_message()) {
      if (model_.cycle() >= until) return false;
      model_.step();
    }
    return true;
  }

 private:
  nanet::gateware::Model& model_;
  std::uint64_t next_ = 0x10'0000'0000;
};

}  // namespace nanet::link::gateware
