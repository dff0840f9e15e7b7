// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/vfio_device.hpp"

#include <fcntl.h>
#include <linux/vfio.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <regex>

#include "flow/fence.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

constexpr std::uint64_t kFirstBusAddress = std::uint64_t{1} << 32;  // above the interrupt controller's, which no IOMMU maps
constexpr std::size_t kRegisterBytes = 4096;
constexpr std::uint64_t kNanoseconds = 1'000'000'000;
constexpr std::uint64_t kCommandOffset = 4;  // of PCI's configuration space
constexpr std::uint16_t kMemorySpace = 1 << 1, kBusMaster = 1 << 2;

std::string reason() { return std::strerror(errno); }

class SystemKernel final : public Kernel {
 public:
  bool exists(const std::string& path) override { return access(path.c_str(), F_OK) == 0; }

  std::optional<std::string> link_name(const std::string& path) override {
    std::array<char, 4096> target;
    const ssize_t bytes = readlink(path.c_str(), target.data(), target.size());
    if (bytes <= 0) return std::nullopt;
    const std::string name(target.data(), static_cast<std::size_t>(bytes));
    return name.substr(name.rfind('/') + 1);
  }

  int open(const std::string& path) override { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); }
  void close(int file) override { ::close(file); }
  int ioctl(int file, unsigned long request, void* argument) override { return ::ioctl(file, request, argument); }

  ssize_t read_at(int file, std::span<std::byte> to, std::uint64_t offset) override {
    return pread(file, to.data(), to.size(), static_cast<off_t>(offset));
  }
  ssize_t write_at(int file, std::span<const std::byte> from, std::uint64_t offset) override {
    return pwrite(file, from.data(), from.size(), static_cast<off_t>(offset));
  }

  void* map(int file, std::size_t bytes, std::uint64_t offset) override {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    return memory == MAP_FAILED ? nullptr : memory;
  }
  void unmap(void* memory, std::size_t bytes) override { munmap(memory, bytes); }

  int make_event() override { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
  bool wait(int event, std::uint64_t timeout_ns) override {
    pollfd waited{.fd = event, .events = POLLIN, .revents = 0};
    const timespec timeout{.tv_sec = static_cast<time_t>(timeout_ns / kNanoseconds),
                           .tv_nsec = static_cast<long>(timeout_ns % kNanoseconds)};
    std::uint64_t count = 0;
    return ppoll(&waited, 1, &timeout, nullptr) == 1 && ::read(event, &count, sizeof(count)) == sizeof(count);
  }
};

}  // namespace

Kernel& system_kernel() {
  static SystemKernel kernel;
  return kernel;
}

VfioDevice::VfioDevice(const std::string& pci_address, Kernel& kernel)
    : kernel_(kernel),
      address_(pci_address),
      container_(kernel),
      group_(kernel),
      card_(kernel),
      messages_(kernel),
      next_(kFirstBusAddress) {
  const std::string group = find_group();
  open_container();
  open_group(group);
  open_card();
  enable_bus_master();
  map_registers();
  enable_messages();
}

VfioDevice::~VfioDevice() {
  if (registers_ != nullptr) kernel_.unmap(registers_, register_bytes_);
}

std::string VfioDevice::find_group() const {
  static const std::regex kPciAddress("[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\\.[0-7]");
  if (!std::regex_match(address_, kPciAddress)) {
    throw SetupError("'" + address_ + "' is no PCI address", "it is domain:bus:device.function in lower case",
                     "write it as lspci -D does, like 0000:3b:00.0");
  }
  const std::string card = "/sys/bus/pci/devices/" + address_;
  if (!kernel_.exists(card)) {
    throw SetupError("there is no PCI device " + address_, card + " is missing", "look for the card with lspci -D");
  }
  const std::optional<std::string> driver = kernel_.link_name(card + "/driver");
  if (driver != "vfio-pci") {
    throw SetupError("PCI device " + address_ + " is not given to programs", driver ? "its driver is " + *driver : "it has no driver",
                     "run driverctl set-override " + address_ + " vfio-pci");
  }
  const std::optional<std::string> group = kernel_.link_name(card + "/iommu_group");
  if (!group) {
    throw SetupError("PCI device " + address_ + " has no IOMMU group", "the IOMMU is off",
                     "switch it on in the firmware, and with intel_iommu=on on the kernel's command line");
  }
  return *group;
}

void VfioDevice::open_container() {
  container_ = kernel_.open("/dev/vfio/vfio");
  if (*container_ < 0) {
    throw SetupError("/dev/vfio/vfio does not open", reason(), "run modprobe vfio-pci, and have the right to write there");
  }
  if (kernel_.ioctl(*container_, VFIO_GET_API_VERSION, nullptr) != VFIO_API_VERSION ||
      kernel_.ioctl(*container_, VFIO_CHECK_EXTENSION, reinterpret_cast<void*>(VFIO_TYPE1v2_IOMMU)) != 1) {
    throw SetupError("this kernel's VFIO is another one", "it has no IOMMU of type 1, version 2",
                     "run modprobe vfio_iommu_type1, or use a host whose architecture has it");
  }
}

void VfioDevice::open_group(const std::string& number) {
  const std::string path = "/dev/vfio/" + number;
  group_ = kernel_.open(path);
  if (*group_ < 0) {
    throw SetupError(path + " does not open", reason(),
                     errno == EBUSY ? "end the program that has the card" : "have the right to write there, chown it to your user");
  }
  vfio_group_status status{.argsz = sizeof(status), .flags = 0};
  if (kernel_.ioctl(*group_, VFIO_GROUP_GET_STATUS, &status) != 0 || (status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    throw SetupError("IOMMU group " + number + " of PCI device " + address_ + " is not viable",
                     "another device of the group has a driver of the kernel",
                     "give vfio-pci every device in /sys/kernel/iommu_groups/" + number + "/devices");
  }
  int container = *container_;
  if (kernel_.ioctl(*group_, VFIO_GROUP_SET_CONTAINER, &container) != 0 ||
      kernel_.ioctl(*container_, VFIO_SET_IOMMU, reinterpret_cast<void*>(VFIO_TYPE1v2_IOMMU)) != 0) {
    throw SetupError("IOMMU group " + number + " cannot be used", reason(), "look into the kernel's log with dmesg");
  }
}

void VfioDevice::open_card() {
  std::string name = address_;
  card_ = kernel_.ioctl(*group_, VFIO_GROUP_GET_DEVICE_FD, name.data());
  if (*card_ < 0) {
    throw SetupError("VFIO does not give PCI device " + address_, reason(), "look into the kernel's log with dmesg");
  }
}

void VfioDevice::enable_bus_master() {
  vfio_region_info region{};
  region.argsz = sizeof(region);
  region.index = VFIO_PCI_CONFIG_REGION_INDEX;
  std::array<std::byte, 2> bytes{};
  const bool got = kernel_.ioctl(*card_, VFIO_DEVICE_GET_REGION_INFO, &region) == 0 &&
                   kernel_.read_at(*card_, bytes, region.offset + kCommandOffset) == 2;
  std::uint16_t command = 0;
  std::memcpy(&command, bytes.data(), sizeof(command));
  command = static_cast<std::uint16_t>(command | kMemorySpace | kBusMaster);
  std::memcpy(bytes.data(), &command, sizeof(command));
  if (!got || kernel_.write_at(*card_, bytes, region.offset + kCommandOffset) != 2) {
    throw SetupError("PCI device " + address_ + " does not become bus master", reason(), "look into the kernel's log with dmesg");
  }
}

void VfioDevice::map_registers() {
  vfio_region_info region{};
  region.argsz = sizeof(region);
  region.index = VFIO_PCI_BAR0_REGION_INDEX;
  if (kernel_.ioctl(*card_, VFIO_DEVICE_GET_REGION_INFO, &region) != 0 || region.size < kRegisterBytes ||
      (region.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0) {
    throw SetupError("PCI device " + address_ + " has no registers that this driver knows",
                     "its BAR 0 has " + std::to_string(region.size) + " bytes of memory",
                     "is this the card with the NIC's gateware?");
  }
  registers_ = static_cast<std::byte*>(kernel_.map(*card_, region.size, region.offset));
  if (registers_ == nullptr) {
    throw SetupError("the registers of PCI device " + address_ + " cannot be mapped", reason(),
                     "look into the kernel's log with dmesg");
  }
  register_bytes_ = region.size;
  if (read(0) == ~std::uint64_t{0}) {
    kernel_.unmap(registers_, register_bytes_);
    throw SetupError("PCI device " + address_ + " does not answer", "all its registers read as ones",
                     "is gateware loaded? If it was loaded after the host started, rescan or restart");
  }
}

// The NIC has one MSI, vector 0; the kernel turns it into a write to an eventfd.
void VfioDevice::enable_messages() {
  messages_ = kernel_.make_event();
  const std::int32_t event = *messages_;
  alignas(vfio_irq_set) std::array<std::byte, sizeof(vfio_irq_set) + sizeof(event)> bytes{};
  const vfio_irq_set request{.argsz = sizeof(bytes),
                             .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
                             .index = VFIO_PCI_MSI_IRQ_INDEX,
                             .start = 0,
                             .count = 1};
  std::memcpy(bytes.data(), &request, sizeof(request));
  std::memcpy(bytes.data() + sizeof(request), &event, sizeof(event));
  if (event >= 0 && kernel_.ioctl(*card_, VFIO_DEVICE_SET_IRQS, bytes.data()) == 0) return;
  const std::string why = reason();
  kernel_.unmap(registers_, register_bytes_);
  throw SetupError("PCI device " + address_ + " gives no interrupts", why, "look into the kernel's log with dmesg");
}

std::uint64_t VfioDevice::read(std::uint32_t offset) {
  const std::uint64_t value = *reinterpret_cast<const volatile std::uint64_t*>(registers_ + offset);
  flow::full_fence();  // memory that is read after this is at least as new
  return value;
}

void VfioDevice::write(std::uint32_t offset, std::uint64_t value) {
  flow::full_fence();  // a doorbell after its descriptor
  *reinterpret_cast<volatile std::uint64_t*>(registers_ + offset) = value;
}

std::vector<std::uint64_t> VfioDevice::map(std::span<std::byte> memory, std::size_t page_bytes, Access access) {
  vfio_iommu_type1_dma_map request{};
  request.argsz = sizeof(request);
  request.flags = access == Access::read ? VFIO_DMA_MAP_FLAG_READ : VFIO_DMA_MAP_FLAG_WRITE;
  request.vaddr = reinterpret_cast<std::uintptr_t>(memory.data());
  request.iova = (next_ + page_bytes - 1) / page_bytes * page_bytes;
  request.size = memory.size();
  if (kernel_.ioctl(*container_, VFIO_IOMMU_MAP_DMA, &request) != 0) {
    throw SetupError(std::to_string(memory.size()) + " bytes cannot be registered with PCI device " + address_, reason(),
                     errno == ENOMEM ? "raise the limit of locked memory (ulimit -l)" : "look into the kernel's log with dmesg");
  }
  mapped_bytes_[request.iova] = memory.size();
  next_ = request.iova + memory.size() + page_bytes;  // nothing lies after it
  std::vector<std::uint64_t> pages(memory.size() / page_bytes);
  for (std::size_t k = 0; k < pages.size(); ++k) pages[k] = request.iova + k * page_bytes;
  return pages;
}

void VfioDevice::unmap(std::span<const std::uint64_t> pages) {
  const auto found = pages.empty() ? mapped_bytes_.end() : mapped_bytes_.find(pages.front());
  if (found == mapped_bytes_.end()) return;
  vfio_iommu_type1_dma_unmap request{};
  request.argsz = sizeof(request);
  request.iova = found->first;
  request.size = found->second;
  kernel_.ioctl(*container_, VFIO_IOMMU_UNMAP_DMA, &request);  // what it refuses goes with the container
  mapped_bytes_.erase(found);
}

}  // namespace nanet::link::gateware
