// SPDX-License-Identifier: Apache-2.0
#include "model/floor_links.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "model/wire.hpp"

namespace nanet::gateware {
namespace {

constexpr std::uint8_t kDown = 0xA6, kUp = 0xC9, kIdle = 0x50;
constexpr LinkWord kIdleWord{kIdle << 8U | kK28_5, 1};
constexpr std::size_t kHeadWords = 5, kCheckWords = 2;
constexpr std::uint8_t kHears = 1, kTimed = 2;
constexpr std::size_t kDownHead = kHeadWords + 1 + kCheckWords;  // one slot
constexpr std::uint32_t kDelayWords = 20;                        // from the shore's frame to the floor's
constexpr std::uint32_t kExpressWords = 10;                      // from an express code to its answer
constexpr std::uint32_t kPulseCycles = 3;
constexpr LinkWord kUpWord{kUp << 8U | kK28_5, 1};

// Of the words' bytes, the low one first.
std::array<LinkWord, kCheckWords> check_of(std::span<const LinkWord> words) {
  std::vector<std::byte> bytes;
  bytes.reserve(2 * words.size());
  for (const LinkWord& word : words) {
    bytes.push_back(static_cast<std::byte>(word.data));
    bytes.push_back(static_cast<std::byte>(word.data >> 8U));
  }
  const std::uint32_t crc = ethernet_crc(bytes);
  return {LinkWord{static_cast<std::uint16_t>(crc), 0}, LinkWord{static_cast<std::uint16_t>(crc >> 16U), 0}};
}

}  // namespace

FloorGeometry floor_geometry(std::uint32_t mbps) {
  // As cmake/NanetGateware.cmake has the nodes verilated.
  constexpr std::uint32_t kFramesPerS = 10'000;
  const bool is_quick = mbps == 2500;
  const std::uint16_t optical = is_quick ? 2016 : 600, instruments = is_quick ? 64 : 60;
  return {.mbps = mbps,
          .frame_words = mbps * 50'000 / kFramesPerS,
          .frames_per_s = kFramesPerS,
          .slot_words = {optical, optical, optical, optical, optical, optical, 64, 64, instruments, 128}};
}

std::vector<LinkWord> words_of(const FloorFrame& frame, FrameTime at, const FloorGeometry& geometry) {
  std::vector<LinkWord> words{kUpWord,
                              {at.number, 0},
                              {static_cast<std::uint16_t>(at.second), 0},
                              {static_cast<std::uint16_t>(at.second >> 16U), 0},
                              {static_cast<std::uint16_t>((kHears | kTimed) << 8U | frame.floor), 0}};
  const auto count_of = [&](std::size_t slot) { return std::min<std::size_t>(frame.slots[slot].size(), geometry.slot_words[slot]); };
  for (std::size_t slot = 0; slot < kFloorSlots; ++slot) words.push_back({static_cast<std::uint16_t>(count_of(slot)), 0});
  const auto head_check = check_of(words);
  std::vector<LinkWord> checked = words;
  words.insert(words.end(), head_check.begin(), head_check.end());
  for (std::size_t slot = 0; slot < kFloorSlots; ++slot) {
    for (std::size_t k = 0; k < geometry.slot_words[slot]; ++k) {
      const LinkWord word = k < count_of(slot) ? LinkWord{frame.slots[slot][k], 0} : kIdleWord;
      words.push_back(word);
      checked.push_back(word);
    }
  }
  const auto check = check_of(checked);
  words.insert(words.end(), check.begin(), check.end());
  if (frame.spoiled && *frame.spoiled < words.size())
    words[*frame.spoiled] = {static_cast<std::uint16_t>(words[*frame.spoiled].data ^ 1U), 0};
  return words;
}

void FloorEnd::give(const std::optional<FloorFrame>& frame) {
  const FrameTime at = *std::exchange(due_, std::nullopt);
  if (!frame) return;
  ++frames_;
  for (const LinkWord& word : words_of(*frame, at, geometry_)) words_.push_back(word);
}

void FloorEnd::forget() {
  due_.reset();
  begins_in_ = 0;
  hears_ = false;
  words_.clear();
  express_.clear();
  express_half_.reset();
  express_due_.reset();
}

// The first word of a frame has its place, so that a code goes neither just before it nor instead of it.
std::optional<LinkWord> FloorEnd::next_express() {
  if (express_half_) {
    const std::uint8_t code = *std::exchange(express_half_, std::nullopt);
    return LinkWord{static_cast<std::uint16_t>(kK29_7 << 8U | (code ^ 0xFFU)), 2};
  }
  if (express_.empty() || express_.front().waits != 0 || begins_in_ == 1 || (!words_.empty() && words_.front() == kUpWord)) {
    return std::nullopt;
  }
  express_half_ = express_.front().code;
  express_.pop_front();
  return LinkWord{static_cast<std::uint16_t>(*express_half_ << 8U | kK27_7), 1};
}

bool FloorEnd::take_express(LinkWord word) {
  if (word.control == 1 && (word.data & 0xFFU) == kK27_7) {
    express_due_ = static_cast<std::uint8_t>(word.data >> 8U);
    return true;
  }
  const auto due = std::exchange(express_due_, std::nullopt);
  if (word.control != 2 || word.data >> 8U != kK29_7) return false;
  if (due && (*due ^ (word.data & 0xFFU)) == 0xFFU) {
    ++express_heard_;
    express_.push_back({*due, kExpressWords});
  }
  return true;
}

std::uint32_t FloorEnd::next_bits() {
  for (Express& one : express_) one.waits -= one.waits != 0 ? 1 : 0;
  LinkWord word = kIdleWord;
  if (const auto express = next_express()) {
    word = *express;
  } else if (!words_.empty()) {
    word = words_.front();
    words_.pop_front();
  }
  return encoder_.encode(word);
}

void FloorEnd::take(std::uint32_t bits) {
  if (begins_in_ != 0 && --begins_in_ == 0) due_ = next_;
  ++since_;
  const std::optional<LinkWord> word = decode_8b10b(bits);
  if (!word) {
    hears_ = false;
    return;
  }
  if (take_express(*word)) return;
  if (*word == LinkWord{kDown << 8U | kK28_5, 1}) {
    heard_.clear();
    hears_ = true;
    since_ = 1;
  }
  if (!hears_) return;
  heard_.push_back(*word);
  if (heard_.size() == kHeadWords) {
    next_ = {static_cast<std::uint32_t>(heard_[2].data | std::uint32_t{heard_[3].data} << 16U), heard_[1].data};
    begins_in_ = since_ < kDelayWords ? kDelayWords - since_ : 0;
  }
  if (heard_.size() == kDownHead + geometry_.slot_words.back() + kCheckWords) end_of_frame();
}

void FloorEnd::end_of_frame() {
  hears_ = false;
  std::vector<LinkWord> checked(heard_.begin(), heard_.begin() + kHeadWords + 1);
  checked.insert(checked.end(), heard_.begin() + kDownHead, heard_.end() - kCheckWords);
  const auto check = check_of(checked);
  if (!std::equal(check.begin(), check.end(), heard_.end() - kCheckWords)) {
    ++bad_;
    return;
  }
  for (std::size_t k = 0; k < heard_[kHeadWords].data; ++k) {
    bytes_.push_back(static_cast<std::uint8_t>(heard_[kDownHead + k].data));
    bytes_.push_back(static_cast<std::uint8_t>(heard_[kDownHead + k].data >> 8U));
  }
}

bool FloorLinks::stand() const {
  return std::any_of(ends_.begin(), ends_.end(), [](const FloorEnd& end) { return end.due().has_value(); });
}

void FloorLinks::reset() {
  for (FloorEnd& end : ends_) end.forget();
}

bool FloorLinks::next_pps() {
  if (until_pulse_ == 0) {
    pulse_left_ = kPulseCycles;
    until_pulse_ = std::uint64_t{geometry_.frame_words} * geometry_.frames_per_s;
  }
  if (until_pulse_ != kNever) --until_pulse_;
  if (pulse_left_ == 0) return false;
  --pulse_left_;
  return true;
}

}  // namespace nanet::gateware
