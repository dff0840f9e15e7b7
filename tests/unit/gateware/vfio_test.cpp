// SPDX-License-Identifier: Apache-2.0
// VfioDevice against a kernel that the test makes: each refusal with its reason, and what it asks for when all is well. No card.
#include <gtest/gtest.h>
#include <linux/vfio.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fake_kernel.hpp"
#include "link/gateware/nic_driver.hpp"
#include "link/gateware/vfio_device.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

using test::FakeKernel;
using test::kCard;
using test::kContainer;
using test::kEvent;
using test::kGroup;
using test::kPciAddress;

std::string refusal(FakeKernel& kernel, const std::string& address = kPciAddress) {
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
  const std::string card = "/sys/bus/pci/devices/" + kPciAddress;
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
    VfioDevice device(kPciAddress, kernel);
    EXPECT_EQ(kernel.command, 0x0406) << "memory space and bus master, the rest as it was";
    device.write(0x428, 0x1122'3344'5566'7788);
    EXPECT_EQ(device.read(0x428), 0x1122'3344'5566'7788u);
    EXPECT_EQ(kernel.bar[0x428], std::byte{0x88});

    kernel.messages = 2;
    EXPECT_TRUE(device.wait(1000)) << "one that no one has waited for counts";
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
  VfioDevice device(kPciAddress, kernel);
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
