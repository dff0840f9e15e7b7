// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/ethernet_device.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "nanet/contract.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {

using host_frames::Header;
using host_frames::Kind;
using host_frames::Record;

namespace {

constexpr std::size_t kWaitingBytesMax = 64 << 10;  // of records; then whoever writes a register waits
constexpr int kFramesPerTurn = 64;
constexpr int kOpenings = 200;
constexpr std::chrono::milliseconds kOpeningPause{10};

std::uint64_t steady_ns() {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// Its last word with release order: whoever sees the sequence of a completion sees all that the NIC wrote before. The word has the size of that sequence:
// an atomic store of one size and a load of another do not order anything.
void copy_in_order(std::span<std::byte> to, std::span<const std::byte> from) {
  using Word = decltype(Completion::sequence);
  static_assert(offsetof(Completion, sequence) + sizeof(Word) == sizeof(Completion));
  std::byte* const last = to.data() + to.size() - std::min(sizeof(Word), to.size());
  if (to.size() < sizeof(Word) || reinterpret_cast<std::uintptr_t>(last) % sizeof(Word) != 0) {
    std::copy(from.begin(), from.end(), to.begin());
    return;
  }
  std::copy(from.begin(), from.end() - sizeof(Word), to.begin());
  Word word;
  std::memcpy(&word, &*(from.end() - sizeof(Word)), sizeof(word));
  std::atomic_ref(*reinterpret_cast<Word*>(last)).store(word, std::memory_order_release);
}

}  // namespace

EthernetDevice::EthernetDevice(std::unique_ptr<FramePort> port, const std::string& name, const EthernetTiming& timing)
    : timing_(timing), port_(std::move(port)), session_(std::random_device{}()) {
  for (std::vector<std::byte>& frame : frames_) frame.reserve(host_frames::kFrameBytesMax);
  answer_.reserve(host_frames::kFrameBytesMin);
  waiting_.reserve(2 * kWaitingBytesMax);
  waiting_ends_.reserve(2 * kWaitingBytesMax / sizeof(std::uint64_t));
  server_ = std::thread(&EthernetDevice::serve, this);
  try {
    open_session(name);
  } catch (...) {
    stops_ = true;
    server_.join();
    throw;
  }
}

EthernetDevice::~EthernetDevice() {
  stops_ = true;
  server_.join();
}

void EthernetDevice::open_session(const std::string& name) {
  Lock lock(mutex_);
  for (int k = 0; k < kOpenings; ++k) {
    fill(answer_, host_frames::kOpen, 0, {});
    transmit(answer_);
    if (heard_.wait_for(lock, kOpeningPause, [this] { return is_open_; })) return;
  }
  throw SetupError("no board answers on " + name, "for two seconds nothing came back from the Ethernet address 02:00:00:00:00:01",
                   "check the cable to the board's host port, that the link is up at 1 Gb/s (ethtool " + name +
                       ") and that the board is configured (its LED is dark until a host is there)");
}

// --- the thread ---

void EthernetDevice::serve() {
  std::array<std::byte, host_frames::kFrameBytesMax> room;
  while (!stops_) {
    std::span<const std::byte> frame = port_->receive(room, timing_.retry_ns / 4);
    const Lock lock(mutex_);
    const std::uint64_t now_ns = steady_ns();
    for (int k = 1; !frame.empty(); ++k) {
      take(frame, now_ns);
      frame = k < kFramesPerTurn ? port_->receive(room, 0) : std::span<const std::byte>();
    }
    send_records();
    if (owes_acknowledgement_) {
      fill(answer_, 0, number_, {});
      transmit(answer_);
    }
    if (in_flight() == 0) continue;
    if (now_ns > progress_ns_ + timing_.retry_ns) send_again(now_ns);
    if (now_ns > quiet_since_ns_ + timing_.silence_ns && !std::exchange(is_silent_, true)) heard_.notify_all();
  }
}

void EthernetDevice::take(std::span<const std::byte> frame, std::uint64_t now_ns) {
  const std::optional<Header> header = host_frames::header_for(port_->address(), frame);
  if (!header || header->session != session_) {
    ++counts_.foreign;
    return;
  }
  quiet_since_ns_ = now_ns;
  is_silent_ = false;
  if (!std::exchange(is_open_, true)) heard_.notify_all();
  take_acknowledgement(header->acknowledged, now_ns);
  if ((header->flags & host_frames::kData) == 0) return;
  owes_acknowledgement_ = true;
  if (header->number != expected_) {
    ++counts_.again;
    return;
  }
  ++expected_;
  ++counts_.taken;
  take_records(frame.subspan(sizeof(Header)));
}

void EthernetDevice::take_acknowledgement(std::uint16_t acknowledged, std::uint64_t now_ns) {
  const auto newly = static_cast<std::uint16_t>(acknowledged - oldest_);
  if (newly == 0 || newly > in_flight()) return;
  oldest_ = acknowledged;
  progress_ns_ = now_ns;
  heard_.notify_all();  // whoever waits for room
}

void EthernetDevice::take_records(std::span<const std::byte> records) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  while (records.size() >= kWord) {
    const Record record = host_frames::record_of(host_frames::word_at(records, 0));
    if (record.kind == Kind::nothing) return;
    records = records.subspan(kWord);
    const std::size_t used = take_record(record, records);
    if (used > records.size()) {  // no such record, or one that the frame ends in
      ++counts_.malformed;
      return;
    }
    records = records.subspan(used);
  }
}

// How many bytes of `data` are of it; more than there are: it is not taken.
std::size_t EthernetDevice::take_record(const Record& record, std::span<const std::byte> data) {
  switch (record.kind) {
    case Kind::write: {
      const std::size_t bytes = host_frames::bus_bytes(record.address % host_frames::kBusWordBytes, record.bytes);
      if (bytes <= data.size()) write_memory(record, data);
      return bytes;
    }
    case Kind::read: answer_read(record); return 0;
    case Kind::interrupt:
      ++interrupts_;
      heard_.notify_all();
      return 0;
    case Kind::register_answer:
      if (data.size() >= sizeof(std::uint64_t) && asked_) {
        registers_[*asked_] = host_frames::word_at(data, 0);
        asked_.reset();
        heard_.notify_all();
      }
      return sizeof(std::uint64_t);
    default: return data.size() + 1;
  }
}

const EthernetDevice::Piece* EthernetDevice::piece_of(const Record& record, bool is_write) const {
  const auto holds = [&](const Piece& piece) {
    const std::uint64_t at = record.address - piece.address;
    return record.address >= piece.address && at < piece.memory.size() && record.bytes <= piece.memory.size() - at &&
           (piece.access == Access::write) == is_write;
  };
  const auto found = std::find_if(pieces_.begin(), pieces_.end(), holds);
  return found != pieces_.end() ? &*found : nullptr;
}

void EthernetDevice::write_memory(const Record& record, std::span<const std::byte> data) {
  if (const Piece* piece = piece_of(record, true)) {
    copy_in_order(piece->memory.subspan(record.address - piece->address, record.bytes),
                  data.subspan(record.address % host_frames::kBusWordBytes, record.bytes));
  } else {
    ++counts_.strays;
  }
}

void EthernetDevice::answer_read(const Record& record) {
  static constexpr std::array<std::byte, 4096> kZeros{};  // a record cannot ask for more
  const Piece* piece = piece_of(record, false);
  if (piece == nullptr) ++counts_.strays;
  const std::span<const std::byte> data = piece != nullptr ? piece->memory.subspan(record.address - piece->address, record.bytes)
                                                           : std::span(kZeros).first(record.bytes);
  if (sizeof(std::uint64_t) + host_frames::bus_bytes(0, record.bytes) > host_frames::kRecordBytesMax) {
    ++counts_.malformed;  // its answer fits no frame
    return;
  }
  add_record({.kind = Kind::read_answer, .failed = piece == nullptr, .tag = record.tag, .bytes = record.bytes}, data,
             host_frames::kBusWordBytes);
}

void EthernetDevice::send_again(std::uint64_t now_ns) {
  progress_ns_ = now_ns;
  counts_.retries += in_flight();
  for (std::uint16_t number = oldest_; number != number_; ++number) transmit(frames_[number % kFramesInFlight]);
}

// --- sending ---

void EthernetDevice::add_record(const Record& record, std::span<const std::byte> data, std::size_t unit) {
  host_frames::append(waiting_, record, data, unit);
  waiting_ends_.push_back(waiting_.size());
}

// As many records in each frame as fit whole: one that comes while all frames are in flight shares the next with others.
void EthernetDevice::send_records() {
  std::size_t begin = 0, gone = 0;
  while (gone < waiting_ends_.size() && in_flight() < kFramesInFlight) {
    std::size_t end = begin;
    while (gone < waiting_ends_.size() && waiting_ends_[gone] - begin <= host_frames::kRecordBytesMax) end = waiting_ends_[gone++];
    if (in_flight() == 0) progress_ns_ = quiet_since_ns_ = steady_ns();
    std::vector<std::byte>& frame = frames_[number_ % kFramesInFlight];
    fill(frame, host_frames::kData, number_, std::span(waiting_).subspan(begin, end - begin));
    ++number_;
    transmit(frame);
    begin = end;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(begin));
  waiting_ends_.erase(waiting_ends_.begin(), waiting_ends_.begin() + static_cast<std::ptrdiff_t>(gone));
  for (std::size_t& end : waiting_ends_) end -= begin;
}

void EthernetDevice::fill(std::vector<std::byte>& frame, std::uint8_t flags, std::uint16_t number,
                          std::span<const std::byte> records) {
  const Header header{.to = host_frames::kBoard, .from = port_->address(), .flags = flags, .session = session_, .number = number};
  frame.assign(std::max(sizeof(header) + records.size(), host_frames::kFrameBytesMin), std::byte{0});
  std::memcpy(frame.data(), &header, sizeof(header));
  std::copy(records.begin(), records.end(), frame.begin() + sizeof(header));
}

// With what is acknowledged now, also in a frame that is sent again.
void EthernetDevice::transmit(std::vector<std::byte>& frame) {
  std::memcpy(frame.data() + offsetof(Header, acknowledged), &expected_, sizeof(expected_));
  if ((static_cast<std::uint8_t>(frame[offsetof(Header, flags)]) & host_frames::kOpen) == 0) owes_acknowledgement_ = false;
  port_->send(frame);
}

// --- the device ---

std::uint64_t EthernetDevice::read(std::uint32_t offset) {
  const std::size_t which = offset / sizeof(std::uint64_t) % registers_.size();
  const auto silence = std::chrono::nanoseconds(timing_.silence_ns);
  Lock lock(mutex_);
  const auto is_free = [this] { return !asked_ || is_silent_; };
  if (!heard_.wait_for(lock, silence, is_free) || is_silent_) return registers_[which];
  asked_ = which;
  add_record({.kind = Kind::register_read, .address = offset}, {});
  send_records();
  heard_.wait_for(lock, silence, is_free);
  return registers_[which];
}

void EthernetDevice::write(std::uint32_t offset, std::uint64_t value) {
  const auto has_room = [this] { return waiting_.size() < kWaitingBytesMax; };
  Lock lock(mutex_);
  if (!has_room() && (is_silent_ || !heard_.wait_for(lock, std::chrono::nanoseconds(timing_.silence_ns), has_room))) {
    ++counts_.writes_dropped;
    return;
  }
  add_record({.kind = Kind::register_write, .address = offset}, std::as_bytes(std::span(&value, 1)));
  send_records();
}

std::vector<std::uint64_t> EthernetDevice::map(std::span<std::byte> memory, std::size_t page_bytes, Access access) {
  if (access == Access::write_gpu) {
    throw SetupError("the NIC cannot reach memory of a GPU", "it is on Ethernet, and this program serves its memory",
                     "let it receive into memory of the host");
  }
  const Lock lock(mutex_);
  next_address_ = (next_address_ + page_bytes - 1) / page_bytes * page_bytes;
  std::vector<std::uint64_t> pages(memory.size() / page_bytes);
  for (std::size_t k = 0; k < pages.size(); ++k) pages[k] = next_address_ + k * page_bytes;
  pieces_.push_back({next_address_, memory, access});
  next_address_ += memory.size() + page_bytes;  // between two pieces lies nothing
  return pages;
}

void EthernetDevice::unmap(std::span<const std::uint64_t> pages) {
  if (pages.empty()) return;
  read(0);  // what the NIC has sent before is in memory
  const Lock lock(mutex_);
  std::erase_if(pieces_, [&](const Piece& piece) { return piece.address == pages.front(); });
}

void EthernetDevice::poll() {
  constexpr std::uint64_t kPollNs = 1000;
  for (const std::uint64_t until = steady_ns() + kPollNs; steady_ns() < until;) {
  }
}

bool EthernetDevice::wait(std::uint64_t timeout_ns) {
  Lock lock(mutex_);
  heard_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [this] { return interrupts_ != 0; });
  return std::exchange(interrupts_, 0) != 0;
}

EthernetDevice::Counts EthernetDevice::counts() const {
  const Lock lock(mutex_);
  return counts_;
}

}  // namespace nanet::link::gateware
