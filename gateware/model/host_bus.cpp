// SPDX-License-Identifier: Apache-2.0
#include "model/host_bus.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace nanet::gateware {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kWordBytes = 16;

}  // namespace

HostBus::HostBus(const HostTiming& timing) : timing_(timing), random_(timing.seed) {
  if (timing.read_cycles_min > timing.read_cycles_max || timing.busy_per_1024 >= 1024) {
    throw std::invalid_argument("timing of the host is impossible (minimum above maximum, or always busy) correct it");
  }
  strays_.reserve(kStraysKept);
}

void HostBus::map(std::uint64_t bus_address, std::span<std::byte> memory, bool readable, bool writable, bool gpu) {
  const Range range{bus_address, bus_address + memory.size(), memory.data(), readable, writable, gpu};
  const auto after = std::lower_bound(ranges_.begin(), ranges_.end(), range,
                                      [](const Range& a, const Range& b) { return a.from < b.from; });
  const bool overlaps = (after != ranges_.end() && after->from < range.to) ||
                        (after != ranges_.begin() && (after - 1)->to > range.from);
  if (bus_address % kPage != 0 || memory.empty() || overlaps) {
    throw std::invalid_argument(
        "memory cannot be registered (not at a page, empty, or over other memory) choose another bus address");
  }
  ranges_.insert(after, range);
  found_ = 0;
}

void HostBus::unmap(std::uint64_t bus_address) {
  std::erase_if(ranges_, [&](const Range& range) { return range.from == bus_address; });
  found_ = 0;
}

void HostBus::forget() {
  reads_.clear();
  in_write_ = false;
  interrupt_ = false;
}

bool HostBus::busy() { return timing_.busy_per_1024 != 0 && (random_() & 1023) < timing_.busy_per_1024; }

bool HostBus::write_ready() { return !busy(); }

bool HostBus::read_ready() { return !busy(); }

const HostBus::Range* HostBus::find(std::uint64_t address, std::uint32_t bytes) {
  const auto holds = [&](const Range& range) { return range.from <= address && address + bytes <= range.to; };
  if (found_ < ranges_.size() && holds(ranges_[found_])) return &ranges_[found_];
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                      [](std::uint64_t a, const Range& range) { return a < range.from; });
  if (after == ranges_.begin() || !holds(*(after - 1))) return nullptr;
  found_ = static_cast<std::size_t>(after - 1 - ranges_.begin());
  return &ranges_[found_];
}

void HostBus::stray(std::uint64_t address, std::uint32_t bytes, bool is_write, const char* why) {
  ++stray_count_;
  if (strays_.size() < kStraysKept) strays_.push_back({address, bytes, is_write, why});
}

// Where in this process the bytes are, or null and a stray access.
std::byte* HostBus::check(std::uint64_t address, std::uint32_t bytes, bool is_write, bool gpu) {
  const Range* range = find(address, bytes);
  const char* why = nullptr;
  if (bytes == 0 || address / kPage != (address + bytes - 1) / kPage)
    why = "crosses a page";
  else if (range == nullptr)
    why = "not registered";
  else if (is_write ? !range->writable : !range->readable)
    why = is_write ? "not writable" : "not readable";
  else if (range->gpu != gpu)
    why = "the other aperture";
  if (why != nullptr) {
    stray(address, bytes, is_write, why);
    return nullptr;
  }
  return range->memory + (address - range->from);
}

void HostBus::take_write(const WriteWord& word, std::uint64_t cycle) {
  if (word.first) {
    if (in_write_) stray(open_.address, open_.bytes, true, "ended without its last word");
    open_ = {word.address, word.bytes, cycle, 0};
    open_gpu_ = word.gpu;
    open_bytes_ = 0;
    open_bad_ = false;
    in_write_ = true;
  }
  if (!in_write_) return stray(word.address, word.bytes, true, "words without a request");
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(word.keep));
  const auto lanes = static_cast<std::uint32_t>(std::popcount(word.keep));
  const bool in_its_lane = lane == (open_.address + open_bytes_) % kWordBytes;
  const bool whole = word.keep != 0 && (std::uint32_t{word.keep} >> lane) == (1u << lanes) - 1;
  if (!whole || !in_its_lane || open_bytes_ + lanes > kWriteBytesMax) {
    open_bad_ = true;
  } else {
    std::memcpy(open_data_.data() + open_bytes_, reinterpret_cast<const std::byte*>(word.data.data()) + lane, lanes);
    open_bytes_ += lanes;
  }
  if (word.last) {
    open_.last_cycle = cycle;
    end_write();
  }
}

void HostBus::end_write() {
  in_write_ = false;
  ++write_count_;
  if (open_bad_ || open_bytes_ != open_.bytes) return stray(open_.address, open_.bytes, true, "bytes are not as announced");
  std::byte* to = check(open_.address, open_.bytes, true, open_gpu_);
  if (to == nullptr) return;
  if (keep_writes_) writes_.push_back(open_);
  if (tamper_ && !tamper_(open_.address, std::span(open_data_).first(open_bytes_))) return;
  Landing landing{open_.last_cycle + timing_.write_cycles, to, open_.bytes, open_data_};
  landing_.push_back(landing);
  ++asked_writes_;
}

void HostBus::land(std::uint64_t cycle) {
  while (!landing_.empty() && landing_.front().cycle <= cycle) {
    std::memcpy(landing_.front().to, landing_.front().data.data(), landing_.front().bytes);
    landing_.pop_front();
    ++landed_writes_;
  }
}

void HostBus::take_interrupt(bool level) {
  if (level && !interrupt_) messages_.push_back(asked_writes_);
  interrupt_ = level;
}

bool HostBus::take_message() {
  if (messages_.empty() || messages_.front() > landed_writes_) return false;
  messages_.pop_front();
  return true;
}

void HostBus::take_read(const ReadRequest& request, std::uint64_t cycle) {
  ++read_count_;
  std::byte* from = nullptr;
  if (request.bytes > kReadBytesMax || request.address / kReadBytesMax != (request.address + request.bytes - 1) / kReadBytesMax) {
    stray(request.address, request.bytes, false, "crosses a multiple of 512 bytes");
  } else {
    from = check(request.address, request.bytes, false, request.gpu);
  }
  const std::uint32_t spread = timing_.read_cycles_max - timing_.read_cycles_min;
  const std::uint64_t delay = timing_.read_cycles_min + (spread == 0 ? 0 : random_() % (spread + 1));
  reads_.push_back({request, cycle + delay, asked_writes_, 0, fail_reads_ ? nullptr : from, {}});
}

AnswerWord HostBus::answer(std::uint64_t cycle) {
  AnswerWord word{};
  if (reads_.empty() || busy()) return word;
  // Any of those whose time has come; the answers of several requests mix word by word.
  const std::size_t begin = timing_.read_cycles_min == timing_.read_cycles_max ? 0 : random_() % reads_.size();
  for (std::size_t k = 0; k < reads_.size(); ++k) {
    const std::size_t place = (begin + k) % reads_.size();
    Read& read = reads_[place];
    if (read.cycle > cycle || read.writes_before > landed_writes_) continue;
    if (read.given == 0 && read.from != nullptr) std::memcpy(read.data.data(), read.from, read.request.bytes);
    const std::uint32_t bytes = std::min(kWordBytes, read.request.bytes - read.given);
    std::memcpy(word.data.data(), read.data.data() + read.given, bytes);
    read.given += bytes;
    word.valid = true;
    word.tag = read.request.tag;
    word.last = read.given >= read.request.bytes;
    word.error = word.last && read.from == nullptr;
    if (word.last) reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(place));
    return word;
  }
  return word;
}

}  // namespace nanet::gateware
