// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/nic_driver.hpp"

#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

// Offsets of registers/nic.rdl.
namespace reg {
constexpr std::uint32_t id = 0x000, geometry = 0x008, mac = 0x020, address = 0x028, line = 0x038, match_sender = 0x040, match = 0x048;
constexpr std::uint32_t destination_address = 0x050, destination = 0x058, region = 0x060, page_entry = 0x068, page_index = 0x070;
constexpr std::uint32_t completions = 0x080, completion_mask = 0x088, completions_written = 0x090;
constexpr std::uint32_t stage_take = 0x0A0, stage_select = 0x0A8, stage_data = 0x0B0, stage_geometry = 0x0B8;
constexpr std::uint32_t interrupt_control = 0x0C0, interrupt_moderation = 0x0C8, interrupt_arm = 0x0D0;
constexpr std::uint32_t clop_control = 0x200, clop_buffers = 0x208, clop_index = 0x210, clop_size = 0x218, clop_hand_over = 0x220;
constexpr std::uint32_t clop_consumed = 0x228, clop_stride = 0x40;
constexpr std::uint32_t tx_control = 0x400, tx_address = 0x408, tx_completions = 0x410, tx_size = 0x418, tx_doorbell = 0x420,
                        tx_state = 0x428;
}  // namespace reg

constexpr std::uint64_t kMagic = 0x54454E414E, kMagicMask = 0xFF'FFFF'FFFF;
constexpr std::uint64_t kVersion = 3;
constexpr unsigned kSmallPage = 12, kLargePage = 16;
constexpr std::uint64_t kEnable = 1, kFooter = 2, kFlush = 4, kBusy = std::uint64_t{1} << 32;
constexpr std::uint32_t kFooterBytes = 32;
constexpr int kWaitPolls = 100'000;

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

[[noreturn]] void refuse_sizes() {
  throw SetupError("sizes of the NIC's rings are impossible", "buffers are of 65536 bytes each or a multiple, counts powers of two",
                   "see nic_driver.hpp");
}

}  // namespace

void NicDriver::remove(const Region& region) {
  device_.write(reg::region, field(region.number, 48));
  device_.unmap(region.pages);
}

NicDriver::NicDriver(Device& device, const NicConfig& config) : device_(device), config_(config) {
  for (const ClopConfig& clop : config.clops) clops_.push_back({.config = clop});
  check_geometry();
  end_earlier();
  device_.write(reg::mac, config_.mac);
  device_.write(reg::address, config_.address);
  try {
    set_up_completions();
    for (std::uint32_t clop = 0; clop < clops_.size(); ++clop) set_up_clop(clop);
    set_up_ring();
  } catch (...) {
    take_down();
    throw;
  }
}

NicDriver::~NicDriver() { take_down(); }

// Ignores what is not set up yet.
void NicDriver::take_down() {
  stop();
  for (const Region* region : {&completions_, &ring_, &payloads_, &sent_}) remove(*region);
  for (const Clop& clop : clops_) {
    remove(clop.buffers);
    remove(clop.index);
  }
}

// Disables all, and waits until nothing is in flight.
void NicDriver::stop() {
  const std::uint64_t clops = geometry_ & 0xFF;
  device_.write(reg::interrupt_control, 0);
  for (std::uint32_t clop = 0; clop < clops; ++clop) device_.write(reg::clop_control + clop * reg::clop_stride, 0);
  device_.write(reg::tx_control, 0);
  for (int k = 0; k < kWaitPolls && (device_.read(reg::tx_state) & kBusy) != 0; ++k) device_.poll();
  for (std::uint32_t k = 0; k < 2 * payload_bytes_max_; ++k) device_.poll();  // a packet that is being written
}

// A program that was killed leaves CLOPs, ring and match table as they were; new settings would be added to those.
void NicDriver::end_earlier() {
  for (std::uint64_t entry = 0; entry < (geometry_ >> 8 & 0xFF); ++entry) device_.write(reg::match, entry);
  bool goes_on = (device_.read(reg::tx_control) & kEnable) != 0;
  for (std::uint32_t clop = 0; clop < (geometry_ & 0xFF); ++clop) {
    goes_on = goes_on || (device_.read(reg::clop_control + clop * reg::clop_stride) & kEnable) != 0;
  }
  if (goes_on) stop();
}

void NicDriver::check_geometry() {
  const std::uint64_t id = device_.read(reg::id);
  if ((id & kMagicMask) != kMagic || id >> 48 != kVersion) {
    throw SetupError("the device is no NIC that this driver knows", "its registers begin with " + std::to_string(id),
                     "use gateware and driver of one version");
  }
  geometry_ = device_.read(reg::geometry);
  payload_bytes_max_ = static_cast<std::uint32_t>(geometry_ >> 56) * 64;
  slot_bytes_ = (payload_bytes_max_ + 63) & ~63u;
  cycle_ns_ = static_cast<double>(device_.read(reg::line) >> 32 & 0xFFFF) / 1000;
  const std::uint64_t clops = geometry_ & 0xFF;
  const std::uint64_t stages = device_.read(reg::stage_geometry);
  counts_stages_ = (stages & 0xFF) != 0;
  if (clops_.empty() || clops < clops_.size()) {
    throw SetupError("the NIC cannot receive into " + std::to_string(clops_.size()) + " CLOPs", "it has " + std::to_string(clops),
                     "use one at least, and as many at most");
  }
  if (counts_stages_ && stages != (kStageCount | field(StageStats::bin_count, 8))) {
    throw SetupError("the NIC counts other stages than this driver reads", "their geometry is " + std::to_string(stages),
                     "use gateware and driver of one version");
  }
  for (const Clop& clop : clops_) check(clop.config);
  if (!std::has_single_bit(config_.tx_entries) || config_.tx_entries < 8) refuse_sizes();
}

void NicDriver::check(const ClopConfig& config) const {
  constexpr std::size_t kPage = std::size_t{1} << kLargePage;
  const bool sizes_good = config.buffer_bytes % kPage == 0 && config.buffer_bytes != 0 && std::has_single_bit(config.buffer_count) &&
                          config.buffer_count >= 2 && config.packets_per_buffer >= 1 && config.packets_per_buffer <= 0xFFFF;
  if (!sizes_good) refuse_sizes();
  const std::span<std::byte> gpu = config.gpu_memory;
  const std::size_t bytes = std::size_t{config.buffer_count} * config.buffer_bytes;
  if (!gpu.empty() && (gpu.size() != bytes || reinterpret_cast<std::uintptr_t>(gpu.data()) % kPage != 0)) {
    throw SetupError("a GPU's memory cannot hold the buffers of a CLOP",
                     std::to_string(bytes) + " bytes from a multiple of 65536 on are needed", "allocate it so");
  }
}

void NicDriver::add(Region& region, std::size_t bytes, unsigned page_shift, Access access) {
  const std::size_t page_bytes = std::size_t{1} << page_shift;
  const std::size_t size = (bytes + page_bytes - 1) & ~(page_bytes - 1);
  Memory& memory = memory_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(page_bytes, size)), &std::free);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory.get(), 0, size);
  add_memory(region, {memory.get(), size}, page_shift, access);
}

void NicDriver::add_memory(Region& region, std::span<std::byte> memory, unsigned page_shift, Access access) {
  const std::size_t page_bytes = std::size_t{1} << page_shift;
  const std::size_t count = memory.size() >> page_shift;
  if (regions_ >= (geometry_ >> 24 & 0xFF) || entries_ + count > (geometry_ >> 32 & 0xFFFF)) {
    throw SetupError("the NIC cannot reach that much memory",
                     "its page table has " + std::to_string(geometry_ >> 32 & 0xFFFF) + " entries", "use fewer or smaller buffers");
  }
  const unsigned offset_bits = geometry_ >> 48 & 0xFF;
  if (memory.size() > std::uint64_t{1} << offset_bits) {
    throw SetupError("the NIC cannot reach " + std::to_string(memory.size()) + " bytes in one piece",
                     "its addresses in a region have " + std::to_string(offset_bits) + " bits", "use fewer or smaller buffers");
  }
  region.address = field(regions_, offset_bits);
  region.number = regions_++;
  region.memory = memory;
  region.pages = device_.map(region.memory, page_bytes, access);
  constexpr std::uint64_t kValid = 1, kReadable = 2, kWritable = 4, kGpu = 8;
  const std::uint64_t may = access == Access::read ? kReadable : access == Access::write ? kWritable : kWritable | kGpu;
  const std::uint32_t first = entries_;
  for (const std::uint64_t page : region.pages) {
    device_.write(reg::page_entry, page | kValid | may);
    device_.write(reg::page_index, entries_++);
  }
  device_.write(reg::region, first | field(count, 16) | field(page_shift, 40) | field(1, 45) | field(region.number, 48));
}

// One queue for all CLOPs, with room for all their buffers.
void NicDriver::set_up_completions() {
  std::uint32_t buffers = 0;
  for (const Clop& clop : clops_) buffers += clop.config.buffer_count;
  const std::uint32_t queue = std::max<std::uint32_t>(64, 2 * std::bit_ceil(buffers));
  add(completions_, queue * sizeof(Completion), kSmallPage, Access::write);
  completions_.memory = completions_.memory.first(queue * sizeof(Completion));
  device_.write(reg::completions, completions_.address);
  device_.write(reg::completion_mask, queue - 1);
  taken_ = static_cast<std::uint32_t>(device_.read(reg::completions_written));  // it goes on from there, whoever had the NIC before
}

void NicDriver::set_up_clop(std::uint32_t number) {
  Clop& clop = clops_[number];
  const ClopConfig& config = clop.config;
  if (config.gpu_memory.empty()) {
    add(clop.buffers, std::size_t{config.buffer_count} * config.buffer_bytes, kLargePage, Access::write);
  } else {
    add_memory(clop.buffers, config.gpu_memory, kLargePage, Access::write_gpu);
  }
  add(clop.index, std::size_t{config.buffer_count} * config.packets_per_buffer * sizeof(PacketRef), kSmallPage, Access::write);
  const std::uint32_t at = number * reg::clop_stride;
  device_.write(reg::clop_buffers + at, clop.buffers.address);
  device_.write(reg::clop_index + at, clop.index.address);
  device_.write(reg::clop_size + at, config.buffer_bytes | field(config.buffer_count, 32));
  device_.write(reg::clop_hand_over + at, config.timeout_ns | field(config.packets_per_buffer, 48));
  device_.write(reg::clop_consumed + at, 0);
  device_.write(reg::clop_control + at, kEnable | (config.footer ? kFooter : 0));
}

void NicDriver::set_up_ring() {
  add(ring_, config_.tx_entries * sizeof(TxDescriptor), kSmallPage, Access::read);
  add(payloads_, std::size_t{config_.tx_entries} * slot_bytes_, kLargePage, Access::read);
  add(sent_, config_.tx_entries * sizeof(Completion), kSmallPage, Access::write);
  sent_.memory = sent_.memory.first(config_.tx_entries * sizeof(Completion));
  device_.write(reg::tx_address, ring_.address);
  device_.write(reg::tx_completions, sent_.address);
  device_.write(reg::tx_size, (config_.tx_entries - 1) | field(config_.tx_entries - 1, 32));
  device_.write(reg::tx_doorbell, 0);
  device_.write(reg::tx_control, kEnable);
}

void NicDriver::need_entry(std::uint32_t index, unsigned at, const char* table) const {
  const std::uint64_t entries = geometry_ >> at & 0xFF;
  if (index < entries) return;
  throw SetupError("the NIC has no entry " + std::to_string(index) + " of its " + table, "there are " + std::to_string(entries),
                   "use fewer, or gateware with more");
}

void NicDriver::set_match(const Match& match) {
  need_entry(match.index, 8, "match table");
  device_.write(reg::match_sender, match.from_address | field(match.from_mask, 32));
  device_.write(reg::match, match.index | field(1, 8) | field(match.counts_events, 9) | field(match.clop, 12) |
                                field(match.port, 16) | field(match.source, 32));
}

void NicDriver::set_destination(const Destination& to) {
  need_entry(to.index, 16, "destinations");
  device_.write(reg::destination_address, to.address | field(to.port, 32) | field(to.from_port, 48));
  device_.write(reg::destination, to.mac | field(to.index, 48) | field(1, 56));
}

void NicDriver::flush(std::uint32_t clop) {
  device_.write(reg::clop_control + clop * reg::clop_stride, kEnable | (clops_[clop].config.footer ? kFooter : 0) | kFlush);
}

const Completion* NicDriver::poll() {
  const Completion* completion = look(completions_.memory, taken_);
  if (completion != nullptr) ++taken_;
  return completion;
}

// Asks for an interrupt if there is more than was taken. What came since the last look raises it at once, so none is missed.
bool NicDriver::wait(std::uint64_t timeout_ns) {
  device_.write(reg::interrupt_control, kEnable);
  device_.write(reg::interrupt_arm, taken_);
  bool woken = false;
  do {
    woken = device_.wait(timeout_ns);
  } while (woken && look(completions_.memory, taken_) == nullptr);  // an old interrupt, for what was taken by polling
  return woken;
}

void NicDriver::set_interrupt(const InterruptConfig& config) {
  device_.write(reg::interrupt_moderation, config.moderation_ns | field(config.completions, 32));
}

std::span<const PacketRef> NicDriver::packets(const Completion& completion) const {
  const Clop& clop = clops_[completion.clop];
  return {entry_at<PacketRef>(clop.index.memory, completion.buffer_index * clop.config.packets_per_buffer), completion.packet_count};
}

std::size_t NicDriver::place(const Completion& completion, const PacketRef& packet) const {
  return std::size_t{completion.buffer_index} * clops_[completion.clop].config.buffer_bytes + packet.offset;
}

std::span<const std::byte> NicDriver::payload(const Completion& completion, const PacketRef& packet) const {
  return clops_[completion.clop].buffers.memory.subspan(place(completion, packet), packet.bytes);
}

std::array<std::uint64_t, 4> NicDriver::stamps(const Completion& completion, const PacketRef& packet) const {
  const std::size_t behind = (packet.bytes + 15u) & ~15u;
  std::array<std::uint64_t, 4> stamps;
  static_assert(sizeof(stamps) == kFooterBytes);
  const std::span<const std::byte> buffers = clops_[completion.clop].buffers.memory;
  std::memcpy(stamps.data(), buffers.data() + place(completion, packet) + behind, sizeof(stamps));
  return stamps;
}

void NicDriver::release(std::uint32_t buffers, std::uint32_t clop) {
  device_.write(reg::clop_consumed + clop * reg::clop_stride, clops_[clop].released += buffers);
}

bool NicDriver::send(std::span<const std::byte> payload, std::uint32_t destination, std::uint64_t tag) {
  if (payload.empty() || payload.size() > payload_bytes_max_ || under_way() == config_.tx_entries) return false;
  const std::uint32_t slot = rung_ % config_.tx_entries;
  const std::size_t at = std::size_t{slot} * slot_bytes_;
  std::memcpy(payloads_.memory.data() + at, payload.data(), payload.size());
  auto* descriptor = reinterpret_cast<TxDescriptor*>(ring_.memory.data()) + slot;
  descriptor->address = payloads_.address + at;
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

std::uint64_t StageStats::bin_floor(unsigned bin) {
  constexpr unsigned kExactBits = 5, kSplitBits = 2;  // as of stage_stats.sv
  if (bin < 1u << kExactBits) return bin;
  const unsigned above = bin - (1u << kExactBits);
  const unsigned octave = kExactBits + (above >> kSplitBits);
  const std::uint64_t part = above & ((1u << kSplitBits) - 1);
  return (std::uint64_t{1} << octave) + (part << (octave - kSplitBits));
}

void StageStats::add(const StageStats& later) {
  if (later.count == 0) return;
  min = count == 0 ? later.min : std::min(min, later.min);
  max = std::max(max, later.max);
  count += later.count;
  sum += later.sum;
  for (unsigned bin = 0; bin < bin_count; ++bin) bins[bin] += later.bins[bin];
}

std::uint64_t NicDriver::stage_word(unsigned stage, unsigned word, std::uint64_t is_bin) {
  device_.write(reg::stage_select, word | field(is_bin, 6) | field(stage, 8));
  return device_.read(reg::stage_data);
}

std::array<StageStats, kStageCount> NicDriver::take_stage_stats() {
  std::array<StageStats, kStageCount> all;
  if (!counts_stages_) return all;
  device_.write(reg::stage_take, 1);
  for (unsigned stage = 0; stage < kStageCount; ++stage) {
    StageStats& stats = all[stage];
    stats.count = stage_word(stage, 0, 0);
    if (stats.count == 0) continue;
    stats.min = stage_word(stage, 1, 0);
    stats.max = stage_word(stage, 2, 0);
    stats.sum = stage_word(stage, 3, 0);
    for (unsigned bin = 0; bin < StageStats::bin_count; ++bin) stats.bins[bin] = stage_word(stage, bin, 1);
  }
  return all;
}

}  // namespace nanet::link::gateware
