// SPDX-License-Identifier: Apache-2.0
#include "model/wire.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace nanet::gateware {
namespace {

constexpr std::uint8_t kIdle = 0x07, kStart = 0xFB, kTerminate = 0xFD, kPreamble = 0x55, kSfd = 0xD5;
constexpr std::size_t kPreambleBytes = 8;
constexpr unsigned kGapBytes = 12;

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB8'8320u : 0u);
    table[i] = value;
  }
  return table;
}

}  // namespace

std::uint32_t ethernet_crc(std::span<const std::byte> bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = 0xFFFF'FFFF;
  for (const std::byte byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
  return ~crc;
}

std::vector<std::byte> with_fcs(std::span<const std::byte> frame) {
  std::vector<std::byte> bytes(std::max(frame.size(), kFrameBytesMin - kFcsBytes) + kFcsBytes);
  std::copy(frame.begin(), frame.end(), bytes.begin());
  const std::uint32_t crc = ethernet_crc(std::span(bytes).first(bytes.size() - kFcsBytes));
  for (std::size_t i = 0; i < kFcsBytes; ++i) bytes[bytes.size() - kFcsBytes + i] = static_cast<std::byte>(crc >> (8 * i));
  return bytes;
}

void WireSource::push(std::vector<std::byte> bytes, std::uint64_t cycle) { queue_.push_back({std::move(bytes), cycle}); }

void WireSource::begin(unsigned lane, std::uint64_t cycle) {
  at_ = 1;
  now_.start_lane = lane;
  now_.first_byte_cycle = cycle;
  now_.bytes = queue_.front().bytes.size();
}

void WireSource::end_frame() {
  queue_.pop_front();
  ++sent_;
  if (keep_sent_) sent_frames_.push_back(now_);
  at_ = 0;
}

XgmiiWord WireSource::next_word(std::uint64_t cycle) {
  if (at_ == 0 && (queue_.empty() || queue_.front().cycle > cycle)) {
    gap_ = gap_ > 8 ? gap_ - 8 : 0;
    deficit_ = 0;
    return kXgmiiIdle;
  }
  XgmiiWord word{0, 0};
  if (at_ >= kPreambleBytes && at_ <= queue_.front().bytes.size()) {  // eight bytes of the frame
    std::memcpy(&word.data, queue_.front().bytes.data() + at_ - kPreambleBytes, sizeof(word.data));
    at_ += sizeof(word.data);
    if (at_ == kPreambleBytes + queue_.front().bytes.size()) now_.last_byte_cycle = cycle;
    return word;
  }
  for (unsigned lane = 0; lane < 8; ++lane) put(word, lane, cycle);
  return word;
}

void WireSource::put(XgmiiWord& word, unsigned lane, std::uint64_t cycle) {
  std::uint8_t byte = kIdle;
  bool control = true;
  if (at_ == 0 && lane % 4 == 0 && may_begin(cycle)) {
    byte = kStart;
    begin(lane, cycle);
  } else if (at_ != 0) {
    const std::vector<std::byte>& bytes = queue_.front().bytes;
    control = false;
    if (at_ < kPreambleBytes) {
      byte = at_ == kPreambleBytes - 1 ? kSfd : kPreamble;
    } else if (at_ - kPreambleBytes < bytes.size()) {
      byte = std::to_integer<std::uint8_t>(bytes[at_ - kPreambleBytes]);
      if (at_ - kPreambleBytes + 1 == bytes.size()) now_.last_byte_cycle = cycle;
    } else {
      byte = kTerminate;
      control = true;
    }
    ++at_;
    if (control) {
      end_frame();
      set_xgmii_gap(lane);
    }
  } else if (gap_ != 0) {
    --gap_;
  }
  word.data |= std::uint64_t{byte} << (8 * lane);
  word.control = static_cast<std::uint8_t>(word.control | (control ? 1u << lane : 0u));
}

// The terminate character, in this lane, is the gap's first byte. The next start is where the gap ends, or up to three bytes before, as long as the
// sum of what was left out stays below four, or up to three after.
void WireSource::set_xgmii_gap(unsigned lane) {
  const unsigned over = (lane + kGapBytes) % 4;
  gap_ = kGapBytes - 1;
  if (deficit_ + over <= 3) {
    deficit_ += over;
    gap_ -= over;
  } else {
    deficit_ -= 4 - over;
    gap_ += 4 - over;
  }
}

GmiiByte WireSource::next_byte(std::uint64_t cycle) {
  if (at_ == 0) {
    if (!may_begin(cycle)) {
      if (gap_ != 0) --gap_;
      return kGmiiIdle;
    }
    begin(0, cycle);
    return {kPreamble, true};
  }
  const std::vector<std::byte>& bytes = queue_.front().bytes;
  const std::size_t place = at_++;
  if (place < kPreambleBytes) return {place == kPreambleBytes - 1 ? kSfd : kPreamble, true};
  const GmiiByte byte{std::to_integer<std::uint8_t>(bytes[place - kPreambleBytes]), true};
  if (at_ == kPreambleBytes + bytes.size()) {
    now_.last_byte_cycle = cycle;
    end_frame();
    gap_ = kGapBytes;
  }
  return byte;
}

void WireSink::take(XgmiiWord word, std::uint64_t cycle) {
  if (!in_frame_ && word.control == 0xFF && word.data == kXgmiiIdle.data) return;
  if (in_frame_ && word.control == 0) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&word.data);
    open_.insert(open_.end(), bytes, bytes + sizeof(word.data));
    return;
  }
  for (unsigned lane = 0; lane < 8; ++lane) {
    const auto byte = static_cast<std::uint8_t>(word.data >> (8 * lane));
    const bool control = (word.control >> lane & 1) != 0;
    if (!control) {
      if (in_frame_) open_.push_back(static_cast<std::byte>(byte));
    } else if (byte == kStart && !in_frame_) {
      in_frame_ = true;
      open_.clear();
    } else if (in_frame_ && byte == kTerminate) {
      end(cycle, lane);
    } else if (in_frame_) {
      in_frame_ = false;
      ++bad_;
    }
  }
}

void WireSink::take(GmiiByte byte, std::uint64_t cycle) {
  if (byte.valid && in_frame_) {
    open_.push_back(static_cast<std::byte>(byte.data));
  } else if (byte.valid) {
    in_frame_ = true;
    open_.clear();
  } else if (in_frame_) {
    end(cycle - 1, 1);
  }
}

void WireSink::end(std::uint64_t cycle, unsigned lane) {
  in_frame_ = false;
  constexpr std::size_t kBefore = kPreambleBytes - 1;  // the first byte of the preamble, or the start character, is not collected
  if (open_.size() < kBefore + kFrameBytesMin || open_[kBefore - 1] != std::byte{kSfd}) {
    ++bad_;
    return;
  }
  const std::span frame = std::span(open_).subspan(kBefore);
  const std::size_t body = frame.size() - kFcsBytes;
  std::uint32_t fcs = 0;
  for (std::size_t i = 0; i < kFcsBytes; ++i) fcs |= std::to_integer<std::uint32_t>(frame[body + i]) << (8 * i);
  if (ethernet_crc(frame.first(body)) != fcs) {
    ++bad_;
    return;
  }
  frames_.push_back({{frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(body)}, cycle, lane});
}

}  // namespace nanet::gateware
