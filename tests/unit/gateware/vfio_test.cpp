// SPDX-License-Identifier: Apache-2.0
// VfioDevice against a kernel that the test makes: each refusal with its reason, and what it asks for when all is well. No card.
#include <gtest/gtest.h>
#include <linux/vfio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "link/gateware/nic_driver.hpp"
#include "link/gateware/vfio_device.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

constexpr int kContainer = 10, kGroup = 11, kCard = 12, kEvent = 13;
constexpr std::uint64_t kBarOffset = 0x10000, kConfigOffset = 0x70000;
const std::string kAddress = "0000:3b:00.0";

// A host with one card, in which anything may be missing.
struct FakeKernel final : Kernel {
  std::set<std::string> paths{"/sys/bus/pci/devices/" + kAddress};
  std::map<std::string, std::string> links{{"/sys/bus/pci/devices/" + kAddress + "/driver", "vfio-pci"},
                                           {"/sys/bus/pci/devices/" + kAddress + "/iommu_group", "27"}};
  std::map<std::string, int> files{{"/dev/vfio/vfio", kContainer}, {"/dev/vfio/27", kGroup}};
  int open_error = ENOENT, map_error = 0;
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
      case VFIO_GROUP_GET_DEVICE_FD: return gives_card && static_cast<const char*>(argument) == kAddress ? kCard : -1;
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
    errno = map_error;
    if (map_error != 0) return -1;
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

std::string refusal(FakeKernel& kernel, const std::string& address = kAddress) {
  try {
    VfioDevice device(address, kernel);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "opened";
}

TEST(VfioDevice, SaysWhatIsMissing) {
  struct Case {
    const char* said;
    std::function<void(FakeKernel&)> take_away;
  };
  const std::string card = "/sys/bus/pci/devices/" + kAddress;
  const Case cases[] = {
      {"there is no PCI device 0000:3b:00.0 (", [](FakeKernel& k) { k.paths.clear(); }},
      {"(its driver is xdma) run driverctl", [&](FakeKernel& k) { k.links[card + "/driver"] = "xdma"; }},
      {"(it has no driver) run driverctl", [&](FakeKernel& k) { k.links.erase(card + "/driver"); }},
      {"has no IOMMU group (the IOMMU is off)", [&](FakeKernel& k) { k.links.erase(card + "/iommu_group"); }},
      {"/dev/vfio/vfio does not open (No such file", [](FakeKernel& k) { k.files.erase("/dev/vfio/vfio"); }},
      {"it has no IOMMU of type 1", [](FakeKernel& k) { k.has_type1 = false; }},
      {"/dev/vfio/27 does not open (Permission denied) have the right",
       [](FakeKernel& k) { k.files.erase("/dev/vfio/27"), k.open_error = EACCES; }},
      {"/dev/vfio/27 does not open (Device or resource busy) end the program",
       [](FakeKernel& k) { k.files.erase("/dev/vfio/27"), k.open_error = EBUSY; }},
      {"IOMMU group 27 of PCI device 0000:3b:00.0 is not viable", [](FakeKernel& k) { k.group_flags = 0; }},
      {"VFIO does not give PCI device", [](FakeKernel& k) { k.gives_card = false; }},
      {"its BAR 0 has 0 bytes", [](FakeKernel& k) { k.bar_bytes = 0; }},
      {"its BAR 0 has 65536 bytes", [](FakeKernel& k) { k.bar_flags = 0; }},
      {"cannot be mapped", [](FakeKernel& k) { k.bar_bytes = 1 << 20; }},
      {"gives no interrupts (", [](FakeKernel& k) { k.gives_messages = false; }},
      {"does not answer (all its registers read as ones)", [](FakeKernel& k) { k.bar.fill(std::byte{0xFF}); }},
  };
  for (const Case& one : cases) {
    auto kernel = std::make_unique<FakeKernel>();
    one.take_away(*kernel);
    EXPECT_NE(refusal(*kernel).find(one.said), std::string::npos) << one.said << "\n" << refusal(*kernel);
  }
  for (const char* address : {"", "3b:00.0", "0000:3b:00.8", "0000:3B:00.0", "0000:3b:00.0/..", "0000:3b:20.0"}) {
    FakeKernel kernel;
    EXPECT_NE(refusal(kernel, address).find("is no PCI address"), std::string::npos) << address;
  }
}

TEST(VfioDevice, IsRefusedByThisHost) {
  try {
    VfioDevice device("ffff:ff:1f.7");
    FAIL() << "there is such a card here";
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("there is no PCI device ffff:ff:1f.7"), std::string::npos) << error.what();
  }
}

TEST(VfioDevice, RegistersAndMemory) {
  FakeKernel kernel;
  kernel.command = 0x0400;
  {
    VfioDevice device(kAddress, kernel);
    EXPECT_EQ(kernel.command, 0x0406) << "memory space and bus master, the rest as it was";
    device.write(0x428, 0x1122'3344'5566'7788);
    EXPECT_EQ(device.read(0x428), 0x1122'3344'5566'7788u);
    EXPECT_EQ(kernel.bar[0x428], std::byte{0x88});

    kernel.messages = 2;
    EXPECT_TRUE(device.wait(1000)) << "one that nobody has waited for counts";
    EXPECT_FALSE(device.wait(1000));

    alignas(4096) static std::byte small[3 * 4096], large[4 * 65536];
    const auto small_pages = device.map(small, 4096, Access::write);
    const auto large_pages = device.map(large, 65536, Access::read);
    EXPECT_EQ(kernel.steps, (std::vector<std::string>{"command", "memory", "memory"})) << "memory last";
    EXPECT_EQ(small_pages.size(), 3u);
    EXPECT_EQ(small_pages[2], small_pages[0] + 2 * 4096);
    EXPECT_EQ(large_pages.size(), 4u);
    EXPECT_EQ(large_pages[0] % 65536, 0u);
    EXPECT_GT(large_pages[0], small_pages[2] + 4096) << "a hole between";
    ASSERT_EQ(kernel.maps.size(), 2u);
    EXPECT_EQ(kernel.maps[0].flags, VFIO_DMA_MAP_FLAG_WRITE);
    EXPECT_EQ(kernel.maps[1].flags, VFIO_DMA_MAP_FLAG_READ);
    EXPECT_EQ(kernel.maps[0].vaddr, reinterpret_cast<std::uintptr_t>(small));
    EXPECT_EQ(kernel.maps[1].size, sizeof(large));
    EXPECT_EQ(kernel.maps[1].iova, large_pages[0]);

    device.unmap(small_pages);
    device.unmap(small_pages);
    ASSERT_EQ(kernel.unmaps.size(), 1u);
    EXPECT_EQ(kernel.unmaps[0].iova, small_pages[0]);
    EXPECT_EQ(kernel.unmaps[0].size, sizeof(small));

    kernel.map_error = ENOMEM;
    try {
      device.map(small, 4096, Access::write);
      FAIL() << "nothing was refused";
    } catch (const SetupError& error) {
      EXPECT_NE(std::string(error.what()).find("12288 bytes cannot be registered"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("ulimit -l"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(kernel.closed, (std::vector<int>{kEvent, kCard, kGroup, kContainer}));
  EXPECT_EQ(kernel.unmapped_registers, 1);
}

TEST(VfioDevice, WaitsWithTheSystemsKernel) {
  Kernel& kernel = system_kernel();
  const int event = kernel.make_event();
  ASSERT_GE(event, 0);
  EXPECT_FALSE(kernel.wait(event, 1'000'000));
  const std::uint64_t one = 1;
  EXPECT_EQ(write(event, &one, sizeof(one)), 8);
  EXPECT_TRUE(kernel.wait(event, 1'000'000'000));
  EXPECT_FALSE(kernel.wait(event, 0)) << "it was taken";
  kernel.close(event);
}

TEST(VfioDevice, AnotherCardIsRefusedByTheDriver) {
  FakeKernel kernel;
  VfioDevice device(kAddress, kernel);
  device.write(0, 0x1234);
  try {
    NicDriver driver(device, {});
    FAIL() << "it took any card";
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("the device is no NIC that this driver knows"), std::string::npos);
  }
  EXPECT_TRUE(kernel.maps.empty());
}

}  // namespace
}  // namespace nanet::link::gateware
