// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

#include "books.hpp"
#include "sender.hpp"

namespace nanet::bench {
namespace {

using link::gateware::ClopConfig;
using link::gateware::NicDriver;

constexpr std::uint64_t kTailCycles = 4000;          // after the last frame
constexpr std::uint64_t kTurnCycles = 16;            // between two looks of the consumer
constexpr std::uint64_t kBytesToSettle = 4'000'000;  // of the line's time: more than a full ring of the longest frames here takes
constexpr std::size_t kFramesAhead = 64;
constexpr std::size_t kPageBytes = 64 << 10, kLongestPacketBytes = 9216;  // of a buffer; what is kept free in one
constexpr std::uint32_t kBufferCount = 64;
constexpr std::uint32_t kTxEntries = 256;
constexpr std::uint64_t kHostileOnceIn = 4;  // frames
constexpr std::uint64_t kFlushOnceIn = 16;   // turns

void need(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("the NIC does not do what it must: ") + what);
}

ClopConfig clop_of(const Traffic& traffic) {
  const std::size_t footer = traffic.footers ? 32 : 0;
  const std::size_t longest = traffic.payload_bytes.empty() ? 0 : std::ranges::max(traffic.payload_bytes);
  const std::size_t needed = traffic.packets_per_buffer * ((longest + 15) / 16 * 16 + footer) + kLongestPacketBytes;
  return {.buffer_bytes = static_cast<std::uint32_t>((needed + kPageBytes - 1) / kPageBytes * kPageBytes),
          .buffer_count = kBufferCount,
          .packets_per_buffer = traffic.packets_per_buffer,
          .timeout_ns = traffic.timeout_ns,
          .footer = traffic.footers};
}

// NIC, driver, consumer and sender of one run.
class Run {
 public:
  explicit Run(const Traffic& traffic)
      : traffic_(traffic),
        rig_(traffic.host, traffic.line, traffic.damage),
        driver_(rig_, {.address = kAddress, .clops = {clop_of(traffic)}, .tx_entries = kTxEntries}),
        comparison_(rig_, driver_,
                    {.clop = clop_of(traffic),
                     .by_count = traffic.timeout_ns == 0 && !traffic.flushes,
                     .gaps = traffic.hostile != Hostile::none,
                     .sizes = traffic.payload_bytes.size() > 1}) {
    if (traffic.sent_payload_bytes != 0) sender_.emplace(rig_, driver_, traffic.sent_payload_bytes);
    if (!traffic.payload_bytes.empty()) set_matches(driver_);
  }

  Measured measure();

 private:
  void push_frames(std::uint64_t end);
  void turn(bool goes_on);
  bool is_balanced();
  void settle();

  const Traffic& traffic_;
  Rig rig_;
  NicDriver driver_;
  Comparison comparison_;
  std::optional<Sender> sender_;
  std::mt19937_64 random_{7};
  std::uint64_t frames_ = 0;
  Books books_;
  Measured result_;
};

void Run::push_frames(std::uint64_t end) {
  auto& wire = rig_.model.wire_in();
  while (rig_.model.cycle() < end && result_.sent < traffic_.packets_max && wire.waiting() < kFramesAhead) {
    const std::size_t bytes = traffic_.payload_bytes[result_.sent % traffic_.payload_bytes.size()];
    if (traffic_.hostile != Hostile::none && frames_++ % kHostileOnceIn == kHostileOnceIn - 1) {
      wire.push(make_hostile(traffic_.hostile, frames_, bytes));
      comparison_.expect_nothing();
    } else {
      wire.push(make_frame(result_.sent, bytes));
      comparison_.expect(result_.sent++, bytes);
    }
  }
}

void Run::turn(bool goes_on) {
  rig_.model.step(kTurnCycles);
  comparison_.look();
  if (sender_) sender_->look(goes_on);
  if (goes_on && traffic_.flushes && random_() % kFlushOnceIn == 0) driver_.flush();
}

// Whether everything that came is stored or in one counter by now.
bool Run::is_balanced() {
  books_ = read_books(driver_);
  return books_.all == rig_.model.wire_in().sent();
}

// A slow host takes what is in the NIC's memory, and the last buffer is handed over.
void Run::settle() {
  const std::uint64_t turns = kBytesToSettle / gateware::bytes_per_cycle(traffic_.line) / kTurnCycles;
  for (std::uint64_t k = 0; k < turns && !is_balanced(); ++k) turn(false);
  need(books_.all == rig_.model.wire_in().sent(), "a frame is neither stored nor counted as dropped, or counted twice");
  comparison_.last_buffer();
  driver_.flush();
  for (std::uint64_t k = 0;
       k < turns && (comparison_.result().packets != books_.stored || (sender_ && sender_->left() != sender_->rung())); ++k) {
    turn(false);
  }
  comparison_.end();
  const bool is_cut = traffic_.timeout_ns != 0 || traffic_.flushes;
  need(!is_cut || comparison_.result().cut_buffers != 0, "no buffer was handed over before it was full");
  need(comparison_.result().packets == books_.stored, "packets were stored that were not handed over");
  need(!sender_ || sender_->left() == sender_->rung(), "packets were rung that did not leave");
  need(rig_.model.bus().stray_count() == 0, "it reached for memory that was not registered");
}

Measured Run::measure() {
  const auto started = std::chrono::steady_clock::now();
  const std::uint64_t begin = rig_.model.cycle(), end = begin + traffic_.cycles_max;
  std::uint64_t last = begin;
  auto& wire = rig_.model.wire_in();
  do {
    if (!traffic_.payload_bytes.empty()) push_frames(end);
    const bool goes_on = traffic_.payload_bytes.empty() ? rig_.model.cycle() < end : wire.waiting() != 0;
    if (goes_on) last = rig_.model.cycle();
    turn(goes_on);
  } while (rig_.model.cycle() < last + kTailCycles);
  result_.cycles = rig_.model.cycle() - begin;
  result_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  settle();
  result_.drops = books_.drops;
  result_.compared = comparison_.result();
  result_.wire_cycles = comparison_.wire().cycles();
  if (result_.sent != 0) {
    result_.line_rate_fraction = comparison_.wire().fraction() * static_cast<double>(result_.compared.packets) /
                                 static_cast<double>(result_.sent);
  }
  if (sender_) {
    result_.tx_sent = sender_->left();
    result_.tx_line_rate_fraction = sender_->line_rate_fraction();
    result_.compared.wrong += sender_->wrong();
    if (result_.compared.first_wrong.empty()) result_.compared.first_wrong = sender_->first_wrong();
  }
  return std::move(result_);
}

}  // namespace

Measured measure(const Traffic& traffic) { return std::make_unique<Run>(traffic)->measure(); }

}  // namespace nanet::bench
