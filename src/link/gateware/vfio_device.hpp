// SPDX-License-Identifier: Apache-2.0
// The NIC as a PCIe card given to this process by vfio-pci: NOT RUN ON HARDWARE, there is no card yet. Everything up to the kernel is tested with a
// kernel that the tests make.
//
// Terms
//   bus address  what the NIC puts on PCIe: an address of the IOMMU, which leads to registered memory of this process and to nothing else.
//
// Contract
//   * Opening gives the card the right to write before any memory is registered: what an earlier process left in flight in it meets no memory.
//   * The card is not reset: the driver sets what it uses. When this object goes, the kernel takes the right and the memory away.
// Thread rules: read, write and poll: any thread. wait: one. The rest is set-up.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/gateware/device.hpp"

namespace nanet::link::gateware {

// What VfioDevice asks of the system. Each call is as the system's of that name: -1 and errno when it fails.
class Kernel {
 public:
  virtual ~Kernel() = default;

  virtual bool exists(const std::string& path) = 0;
  virtual std::optional<std::string> link_name(const std::string& path) = 0;  // last part of what a symbolic link leads to
  virtual int open(const std::string& path) = 0;                              // to read and write
  virtual void close(int file) = 0;
  virtual int ioctl(int file, unsigned long request, void* argument) = 0;
  virtual ssize_t read_at(int file, std::span<std::byte> to, std::uint64_t offset) = 0;
  virtual ssize_t write_at(int file, std::span<const std::byte> from, std::uint64_t offset) = 0;
  virtual void* map(int file, std::size_t bytes, std::uint64_t offset) = 0;  // null when it fails
  virtual void unmap(void* memory, std::size_t bytes) = 0;
  virtual int make_event() = 0;                                // an eventfd, at zero
  virtual bool wait(int event, std::uint64_t timeout_ns) = 0;  // until it is not zero; takes it to zero. Whether it was
};

Kernel& system_kernel();

class VfioDevice final : public Device {
 public:
  // pci_address: as lspci -D writes it, "0000:3b:00.0". Throws SetupError.
  explicit VfioDevice(const std::string& pci_address, Kernel& kernel = system_kernel());
  ~VfioDevice() override;
  VfioDevice(const VfioDevice&) = delete;
  VfioDevice& operator=(const VfioDevice&) = delete;

  std::uint64_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint64_t value) override;

  // Throws SetupError when the kernel does not lock that much memory. It stays locked until unmap.
  std::vector<std::uint64_t> map(std::span<std::byte> memory, std::size_t page_bytes, Access access) override;
  void unmap(std::span<const std::uint64_t> pages) override;

  void poll() override { read(0); }  // a round trip to the card, about a microsecond
  bool wait(std::uint64_t timeout_ns) override { return kernel_.wait(*messages_, timeout_ns); }

 private:
  // A file of the kernel that is closed when it goes.
  class File {
   public:
    explicit File(Kernel& kernel) : kernel_(kernel) {}
    ~File() {
      if (number_ >= 0) kernel_.close(number_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    void operator=(int number) { number_ = number; }
    int operator*() const { return number_; }

   private:
    Kernel& kernel_;
    int number_ = -1;
  };

  std::string find_group() const;
  void open_container();
  void open_group(const std::string& number);
  void open_card();
  void map_registers();
  void enable_bus_master();
  void enable_messages();

  Kernel& kernel_;
  const std::string address_;
  File container_, group_, card_, messages_;  // closed in the reverse order
  std::byte* registers_ = nullptr;
  std::size_t register_bytes_ = 0;
  std::uint64_t next_;                                   // bus address that no memory has had
  std::map<std::uint64_t, std::uint64_t> mapped_bytes_;  // by the first bus address
};

}  // namespace nanet::link::gateware
