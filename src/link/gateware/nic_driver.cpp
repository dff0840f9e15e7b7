// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/nic_driver.hpp"

#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

// Offsets of registers/nic.rdl.
namespace reg {
constexpr std::uint32_t id = 0x000, geometry = 0x008, mac = 0x020, address = 0x028, match_sender = 0x040, match = 0x048;
constexpr std::uint32_t destination_address = 0x050, destination = 0x058, region = 0x060, page_entry = 0x068, page_index = 0x070;
constexpr std::uint32_t completions = 0x080, completion_mask = 0x088;
constexpr std::uint32_t clop_control = 0x200, clop_buffers = 0x208, clop_index = 0x210, clop_size = 0x218, clop_hand_over = 0x220;
constexpr std::uint32_t clop_consumed = 0x228;
constexpr std::uint32_t tx_control = 0x400, tx_address = 0x408, tx_completions = 0x410, tx_size = 0x418, tx_doorbell = 0x420,
                        tx_state = 0x428;
}  // namespace reg

constexpr std::uint64_t kMagic = 0x54454E414E, kMagicMask = 0xFF'FFFF'FFFF;
constexpr std::uint64_t kVersion = 1;
constexpr std::uint32_t kOffsetBits = 40;
constexpr unsigned kSmallPage = 12, kLargePage = 16;
constexpr std::uint64_t kEnable = 1, kFooter = 2, kFlush = 4, kBusy = std::uint64_t{1} << 32;
constexpr std::uint32_t kFooterBytes = 32;
constexpr int kWaitPolls = 100'000;

constexpr std::uint64_t field(std::uint64_t value, unsigned low) { return value << low; }

template <class Entry>
const Entry* entry_at(std::span<std::byte> memory, std::uint32_t index) {
  return reinterpret_cast<const Entry*>(memory.data()) + index;
}

// Whether entry `number` of a queue is there.
const Completion* look(std::span<std::byte> memory, std::uint32_t number) {
  const auto mask = static_cast<std::uint32_t>(memory.size() / sizeof(Completion) - 1);
  auto* entry = reinterpret_cast<Completion*>(memory.data()) + (number & mask);
  return std::atomic_ref<std::uint32_t>(entry->sequence).load(std::memory_order_acquire) == number + 1 ? entry : nullptr;
}

}  // namespace

std::uint64_t NicDriver::Region::address() const { return field(number, kOffsetBits); }

NicDriver::NicDriver(Device& device, const NicConfig& config) : device_(device), config_(config) {
  check_geometry();
  device_.write(reg::mac, config_.mac);
  device_.write(reg::address, config_.address);
  set_up_clop();
  set_up_ring();
}

NicDriver::~NicDriver() {
  device_.write(reg::clop_control, 0);
  device_.write(reg::tx_control, 0);
  for (int k = 0; k < kWaitPolls && (device_.read(reg::tx_state) & kBusy) != 0; ++k) device_.poll();
  for (std::uint32_t k = 0; k < 2 * payload_bytes_max_; ++k) device_.poll();  // a packet that is being written
  for (const Region* region : {&completions_, &buffers_, &index_, &ring_, &payloads_, &sent_}) {
    device_.write(reg::region, field(region->number, 48));
    device_.unmap(region->pages);
    std::free(region->memory.data());
  }
}

void NicDriver::check_geometry() {
  const std::uint64_t id = device_.read(reg::id);
  if ((id & kMagicMask) != kMagic || id >> 48 != kVersion) {
    throw SetupError("the device is no NIC that this driver knows", "its registers begin with " + std::to_string(id),
                     "use gateware and driver of one version");
  }
  payload_bytes_max_ = static_cast<std::uint32_t>(device_.read(reg::geometry) >> 56) * 64;
  slot_bytes_ = (payload_bytes_max_ + 63) & ~63u;
  const bool sizes_good = config_.buffer_bytes % (1u << kLargePage) == 0 && config_.buffer_bytes != 0 &&
                          std::has_single_bit(config_.buffer_count) && config_.buffer_count >= 2 &&
                          config_.packets_per_buffer >= 1 && config_.packets_per_buffer <= 0xFFFF &&
                          std::has_single_bit(config_.tx_entries) && config_.tx_entries >= 8;
  if (!sizes_good) {
    throw SetupError("sizes of the NIC's rings are impossible",
                     "buffers are of 65536 bytes each or a multiple, counts powers of two", "see nic_driver.hpp");
  }
}

void NicDriver::add(Region& region, std::size_t bytes, unsigned page_shift, Access access) {
  const std::size_t page_bytes = std::size_t{1} << page_shift;
  const std::size_t size = (bytes + page_bytes - 1) & ~(page_bytes - 1);
  const auto geometry = device_.read(reg::geometry);
  const std::size_t count = size >> page_shift;
  if (regions_ >= (geometry >> 24 & 0xFF) || entries_ + count > (geometry >> 32 & 0xFFFF)) {
    throw SetupError("the NIC cannot reach that much memory",
                     "its page table has " + std::to_string(geometry >> 32 & 0xFFFF) + " entries", "use fewer or smaller buffers");
  }
  void* memory = std::aligned_alloc(page_bytes, size);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, size);
  region.number = regions_++;
  region.memory = {static_cast<std::byte*>(memory), size};
  region.pages = device_.map(region.memory, page_bytes, access);
  constexpr std::uint64_t kValid = 1, kReadable = 2, kWritable = 4;
  const std::uint32_t first = entries_;
  for (const std::uint64_t page : region.pages) {
    device_.write(reg::page_entry, page | kValid | (access == Access::read ? kReadable : kWritable));
    device_.write(reg::page_index, entries_++);
  }
  device_.write(reg::region, first | field(count, 16) | field(page_shift, 40) | field(1, 45) | field(region.number, 48));
}

void NicDriver::set_up_clop() {
  const std::uint32_t queue = std::max<std::uint32_t>(64, 2 * config_.buffer_count);
  add(completions_, queue * sizeof(Completion), kSmallPage, Access::write);
  add(buffers_, std::size_t{config_.buffer_count} * config_.buffer_bytes, kLargePage, Access::write);
  add(index_, std::size_t{config_.buffer_count} * config_.packets_per_buffer * sizeof(PacketRef), kSmallPage, Access::write);
  completions_.memory = completions_.memory.first(queue * sizeof(Completion));
  device_.write(reg::completions, completions_.address());
  device_.write(reg::completion_mask, queue - 1);
  device_.write(reg::clop_buffers, buffers_.address());
  device_.write(reg::clop_index, index_.address());
  device_.write(reg::clop_size, config_.buffer_bytes | field(config_.buffer_count, 32));
  device_.write(reg::clop_hand_over, config_.timeout_ns | field(config_.packets_per_buffer, 48));
  device_.write(reg::clop_consumed, 0);
  device_.write(reg::clop_control, kEnable | (config_.footer ? kFooter : 0));
}

void NicDriver::set_up_ring() {
  add(ring_, config_.tx_entries * sizeof(TxDescriptor), kSmallPage, Access::read);
  add(payloads_, std::size_t{config_.tx_entries} * slot_bytes_, kLargePage, Access::read);
  add(sent_, config_.tx_entries * sizeof(Completion), kSmallPage, Access::write);
  sent_.memory = sent_.memory.first(config_.tx_entries * sizeof(Completion));
  device_.write(reg::tx_address, ring_.address());
  device_.write(reg::tx_completions, sent_.address());
  device_.write(reg::tx_size, (config_.tx_entries - 1) | field(config_.tx_entries - 1, 32));
  device_.write(reg::tx_doorbell, 0);
  device_.write(reg::tx_control, kEnable);
}

void NicDriver::set_match(const Match& match) {
  device_.write(reg::match_sender, match.from_address | field(match.from_mask, 32));
  device_.write(reg::match,
                match.index | field(1, 8) | field(match.counts_events, 9) | field(match.port, 16) | field(match.source, 32));
}

void NicDriver::set_destination(const Destination& to) {
  device_.write(reg::destination_address, to.address | field(to.port, 32) | field(to.from_port, 48));
  device_.write(reg::destination, to.mac | field(to.index, 48) | field(1, 56));
}

void NicDriver::flush() { device_.write(reg::clop_control, kEnable | (config_.footer ? kFooter : 0) | kFlush); }

const Completion* NicDriver::poll() {
  const Completion* completion = look(completions_.memory, taken_);
  if (completion != nullptr) ++taken_;
  return completion;
}

std::span<const PacketRef> NicDriver::packets(const Completion& completion) const {
  return {entry_at<PacketRef>(index_.memory, completion.buffer_index * config_.packets_per_buffer), completion.packet_count};
}

std::span<const std::byte> NicDriver::payload(const Completion& completion, const PacketRef& packet) const {
  return buffers_.memory.subspan(std::size_t{completion.buffer_index} * config_.buffer_bytes + packet.offset, packet.bytes);
}

std::array<std::uint64_t, 4> NicDriver::stamps(const Completion& completion, const PacketRef& packet) const {
  const std::size_t behind = (packet.bytes + 15u) & ~15u;
  std::array<std::uint64_t, 4> stamps;
  static_assert(sizeof(stamps) == kFooterBytes);
  const std::size_t at = std::size_t{completion.buffer_index} * config_.buffer_bytes + packet.offset + behind;
  std::memcpy(stamps.data(), buffers_.memory.data() + at, sizeof(stamps));
  return stamps;
}

void NicDriver::release(std::uint32_t buffers) { device_.write(reg::clop_consumed, released_ += buffers); }

bool NicDriver::send(std::span<const std::byte> payload, std::uint32_t destination, std::uint64_t tag) {
  if (payload.empty() || payload.size() > payload_bytes_max_ || under_way() == config_.tx_entries) return false;
  const std::uint32_t slot = rung_ % config_.tx_entries;
  const std::size_t at = std::size_t{slot} * slot_bytes_;
  std::memcpy(payloads_.memory.data() + at, payload.data(), payload.size());
  auto* descriptor = reinterpret_cast<TxDescriptor*>(ring_.memory.data()) + slot;
  descriptor->address = payloads_.address() + at;
  descriptor->bytes = static_cast<std::uint32_t>(payload.size());
  descriptor->destination = destination;
  descriptor->tag = tag;
  std::atomic_ref<std::uint64_t>(descriptor->sequence).store(std::uint64_t{rung_} + 1, std::memory_order_release);
  device_.write(reg::tx_doorbell, ++rung_);
  return true;
}

const Completion* NicDriver::poll_sent() {
  const Completion* completion = look(sent_.memory, gone_);
  if (completion != nullptr) ++gone_;
  return completion;
}

}  // namespace nanet::link::gateware
