// SPDX-License-Identifier: Apache-2.0
// Ethernet frames to and from what a PHY speaks: XGMII at 10 Gb/s, a word of 8 bytes a cycle, or GMII at 1 Gb/s, a byte a cycle. Preamble, frame
// check sequence and gaps are of this file.
//
// Thread rules: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace nanet::gateware {

// The line of the NIC [Gb/s], which its clock and its wire follow.
enum class Line : std::uint8_t { gbps_1 = 1, gbps_10 = 10 };

constexpr double ns_per_cycle(Line line) { return line == Line::gbps_10 ? 6.4 : 8.0; }          // 156.25 MHz, 125 MHz
constexpr std::uint32_t bytes_per_cycle(Line line) { return line == Line::gbps_10 ? 8u : 1u; }  // on the wire

// Lane 0, the low byte, is first on the wire. A set bit of control: the lane holds a control character.
struct XgmiiWord {
  std::uint64_t data;
  std::uint8_t control;
};

struct GmiiByte {
  std::uint8_t data;
  bool valid;
};

inline constexpr XgmiiWord kXgmiiIdle{0x0707'0707'0707'0707, 0xFF};
inline constexpr GmiiByte kGmiiIdle{0, false};
inline constexpr std::size_t kFcsBytes = 4;
inline constexpr std::size_t kFrameBytesMin = 64;  // frame check sequence included

std::uint32_t ethernet_crc(std::span<const std::byte> bytes);

// The frame filled up with zeros to 60 bytes, its frame check sequence behind it.
std::vector<std::byte> with_fcs(std::span<const std::byte> frame);

struct SentFrame {
  std::uint64_t first_byte_cycle;  // in which its start character, or the first byte of its preamble, stood on the wire
  std::uint64_t last_byte_cycle;   // in which the last byte of its check sequence did
  std::size_t bytes;               // with the check sequence
  unsigned start_lane;             // 0 or 4; on GMII 0
};

// Sends frames back to back. The gap is 12 bytes: on GMII each, on XGMII on average, frames beginning on lane 0 or 4, as 10GBASE-R does (deficit idle count).
class WireSource {
 public:
  // bytes: with the frame check sequence, sent as they are; not before `cycle`.
  void push(std::vector<std::byte> bytes, std::uint64_t cycle = 0);

  // What stands on the wire in this cycle; one of the two for all cycles.
  XgmiiWord next_word(std::uint64_t cycle);
  GmiiByte next_byte(std::uint64_t cycle);

  std::size_t waiting() const { return queue_.size(); }  // frames whose last byte is not sent, the one in flight included
  std::uint64_t sent() const { return sent_; }           // frames

  // Keeps of each frame that was sent when and how, for sent_frames().
  void keep_sent(bool on) { keep_sent_ = on; }
  std::vector<SentFrame>& sent_frames() { return sent_frames_; }

 private:
  struct Frame {
    std::vector<std::byte> bytes;
    std::uint64_t cycle;
  };

  bool may_begin(std::uint64_t cycle) const { return gap_ == 0 && !queue_.empty() && queue_.front().cycle <= cycle; }
  void begin(unsigned lane, std::uint64_t cycle);
  void put(XgmiiWord& word, unsigned lane, std::uint64_t cycle);
  void end_frame();
  void set_xgmii_gap(unsigned lane);

  std::deque<Frame> queue_;
  std::size_t at_ = 0;    // byte of preamble and frame that comes next; 0: none in flight
  unsigned gap_ = 0;      // bytes until a start is allowed
  unsigned deficit_ = 0;  // bytes of gaps that were left out, less than 4
  std::uint64_t sent_ = 0;
  SentFrame now_{};  // in flight
  bool keep_sent_ = false;
  std::vector<SentFrame> sent_frames_;
};

struct ReceivedFrame {
  std::vector<std::byte> bytes;  // without frame check sequence
  std::uint64_t cycle;           // of the word with its end
  unsigned end_lane;             // of the first byte after it; on GMII 1, a byte after the last
};

// Collects frames from words or bytes. What is no frame, or whose check sequence is wrong, is counted in bad().
class WireSink {
 public:
  void take(XgmiiWord word, std::uint64_t cycle);
  void take(GmiiByte byte, std::uint64_t cycle);

  std::deque<ReceivedFrame>& frames() { return frames_; }
  std::uint64_t bad() const { return bad_; }

 private:
  void end(std::uint64_t cycle, unsigned lane);

  std::deque<ReceivedFrame> frames_;
  std::vector<std::byte> open_;  // from the second byte of the preamble on
  bool in_frame_ = false;
  std::uint64_t bad_ = 0;
};

}  // namespace nanet::gateware
