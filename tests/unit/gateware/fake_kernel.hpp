// SPDX-License-Identifier: Apache-2.0
// A kernel with vfio that a test makes: a host with one card, in which anything may be missing.
#pragma once

#include <gtest/gtest.h>
#include <linux/vfio.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "link/gateware/vfio_device.hpp"

namespace nanet::link::gateware::test {

inline constexpr int kContainer = 10, kGroup = 11, kCard = 12, kEvent = 13;
inline constexpr std::uint64_t kBarOffset = 0x10000, kConfigOffset = 0x70000;
inline const std::string kPciAddress = "0000:3b:00.0";

struct FakeKernel final : Kernel {
  std::set<std::string> paths{"/sys/bus/pci/devices/" + kPciAddress};
  std::map<std::string, std::string> links{{"/sys/bus/pci/devices/" + kPciAddress + "/driver", "vfio-pci"},
                                           {"/sys/bus/pci/devices/" + kPciAddress + "/iommu_group", "27"}};
  std::map<std::string, int> files{{"/dev/vfio/vfio", kContainer}, {"/dev/vfio/27", kGroup}};
  int open_error = ENOENT, map_error = 0;
  std::size_t maps_max = SIZE_MAX;  // more memory is not locked
  std::uint32_t group_flags = VFIO_GROUP_FLAGS_VIABLE, bar_flags = VFIO_REGION_INFO_FLAG_MMAP;
  std::uint64_t bar_bytes = 65536;
  bool has_type1 = true, gives_card = true, gives_messages = true;
  std::uint64_t messages = 0;
  alignas(8) std::array<std::byte, 65536> bar{};
  std::uint16_t command = 0;
  std::vector<std::string> steps;
  std::vector<int> closed;
  std::vector<vfio_iommu_type1_dma_map> maps;
  std::vector<vfio_iommu_type1_dma_unmap> unmaps;
  int unmapped_registers = 0;

  bool exists(const std::string& path) override { return paths.contains(path); }
  std::optional<std::string> link_name(const std::string& path) override {
    return links.contains(path) ? std::optional(links[path]) : std::nullopt;
  }
  int open(const std::string& path) override {
    errno = open_error;
    return files.contains(path) ? files[path] : -1;
  }
  void close(int file) override { closed.push_back(file); }

  int ioctl(int file, unsigned long request, void* argument) override {
    switch (request) {
      case VFIO_GET_API_VERSION: return VFIO_API_VERSION;
      case VFIO_CHECK_EXTENSION: return has_type1 ? 1 : 0;
      case VFIO_GROUP_GET_STATUS: static_cast<vfio_group_status*>(argument)->flags = group_flags; return 0;
      case VFIO_GROUP_SET_CONTAINER: return file == kGroup && *static_cast<int*>(argument) == kContainer ? 0 : -1;
      case VFIO_SET_IOMMU: return file == kContainer ? 0 : -1;
      case VFIO_GROUP_GET_DEVICE_FD: return gives_card && static_cast<const char*>(argument) == kPciAddress ? kCard : -1;
      case VFIO_DEVICE_GET_REGION_INFO: return region(*static_cast<vfio_region_info*>(argument));
      case VFIO_IOMMU_MAP_DMA: return map_dma(*static_cast<vfio_iommu_type1_dma_map*>(argument));
      case VFIO_IOMMU_UNMAP_DMA: unmaps.push_back(*static_cast<vfio_iommu_type1_dma_unmap*>(argument)); return 0;
      case VFIO_DEVICE_SET_IRQS: return gives_messages && is_message_event(argument) ? 0 : -1;
      default: errno = ENOTTY; return -1;
    }
  }

  static bool is_message_event(const void* argument) {
    vfio_irq_set request;
    std::int32_t event;
    std::memcpy(&request, argument, sizeof(request));
    std::memcpy(&event, static_cast<const std::byte*>(argument) + sizeof(request), sizeof(event));
    return request.argsz == sizeof(request) + sizeof(event) && request.index == VFIO_PCI_MSI_IRQ_INDEX && request.count == 1 &&
           request.flags == (VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER) && event == kEvent;
  }

  int region(vfio_region_info& info) {
    const bool is_bar = info.index == VFIO_PCI_BAR0_REGION_INDEX;
    info.flags = is_bar ? bar_flags : 0;
    info.size = is_bar ? bar_bytes : 4096;
    info.offset = is_bar ? kBarOffset : kConfigOffset;
    return 0;
  }

  int map_dma(const vfio_iommu_type1_dma_map& map) {
    steps.push_back("memory");
    errno = map_error != 0 ? map_error : ENOMEM;
    if (map_error != 0 || maps.size() == maps_max) return -1;
    maps.push_back(map);
    return 0;
  }

  ssize_t read_at(int, std::span<std::byte> to, std::uint64_t offset) override {
    EXPECT_EQ(offset, kConfigOffset + 4);
    std::memcpy(to.data(), &command, to.size());
    return static_cast<ssize_t>(to.size());
  }
  ssize_t write_at(int, std::span<const std::byte> from, std::uint64_t offset) override {
    EXPECT_EQ(offset, kConfigOffset + 4);
    std::memcpy(&command, from.data(), from.size());
    steps.push_back("command");
    return static_cast<ssize_t>(from.size());
  }
  void* map(int file, std::size_t bytes, std::uint64_t offset) override {
    EXPECT_EQ(file, kCard);
    EXPECT_EQ(offset, kBarOffset);
    return bytes <= bar.size() ? bar.data() : nullptr;
  }
  void unmap(void*, std::size_t) override { ++unmapped_registers; }
  int make_event() override { return kEvent; }
  bool wait(int event, std::uint64_t) override {
    EXPECT_EQ(event, kEvent);
    return std::exchange(messages, 0) != 0;
  }
};

}  // namespace nanet::link::gateware::test
