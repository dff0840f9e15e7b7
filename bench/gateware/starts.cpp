// SPDX-License-Identifier: Apache-2.0
#include "starts.hpp"

#include <chrono>
#include <memory>
#include <random>

#include "books.hpp"

namespace nanet::bench {
namespace {

constexpr std::uint64_t kFramesBefore = 6, kFramesAfter = 20;  // of the moment, in frames' times
constexpr std::uint64_t kTurnCycles = 16, kTailCycles = 1000;
constexpr int kTurnsToSettle = 400;
constexpr link::gateware::ClopConfig kClop{.buffer_bytes = 64 << 10, .buffer_count = 16, .packets_per_buffer = 16, .timeout_ns = 0};

// A NIC for many starts, as long as they are right.
class Bench {
 public:
  Bench(std::size_t payload_bytes, gateware::Line line)
      : payload_bytes_(payload_bytes),
        rig_({}, line, Damage::none),
        driver_(rig_, {.address = kAddress, .clops = {kClop}}),
        comparison_(rig_, driver_, {.clop = kClop, .by_count = false, .gaps = true, .sizes = false}) {
    comparison_.last_buffer();
  }

  // Whether it was right; `before`: cycles from the first frame to the moment.
  bool start(std::uint64_t before) {
    const std::uint64_t frame_cycles = (frame_bytes(payload_bytes_) + kBetweenFramesBytes) /
                                       gateware::bytes_per_cycle(rig_.model.line());
    const Compared old = comparison_.result();
    clear_matches(rig_);
    send(kFramesBefore + kFramesAfter + before / frame_cycles);
    comparison_.may_miss_before(UINT64_MAX);
    step(before);
    set_matches(driver_);
    comparison_.may_miss_before(rig_.model.cycle());
    settle();
    // The next packets stand on the wire when the entries are taken away.
    send(kFramesBefore + before / frame_cycles);
    step(before);
    comparison_.may_miss_before(UINT64_MAX);
    clear_matches(rig_);
    settle();
    const Compared& now = comparison_.result();
    return is_balanced_ && now.wrong == old.wrong && now.missing == old.missing;
  }

  std::uint64_t sent() const { return number_; }
  std::uint64_t cycles() const { return rig_.model.cycle(); }
  const Compared& compared() const { return comparison_.result(); }
  std::uint64_t strays() { return rig_.model.bus().stray_count(); }

 private:
  void send(std::uint64_t count) {
    for (std::uint64_t k = 0; k < count; ++k) {
      rig_.model.wire_in().push(make_frame(number_, payload_bytes_));
      comparison_.expect(number_++, payload_bytes_);
    }
  }

  void step(std::uint64_t cycles) {
    for (; cycles > kTurnCycles; cycles -= kTurnCycles) {
      rig_.model.step(kTurnCycles);
      comparison_.look();
    }
    rig_.model.step(cycles);
    comparison_.look();
  }

  // Everything arrives, and is handed over.
  void settle() {
    while (rig_.model.wire_in().waiting() != 0) step(kTurnCycles);
    step(kTailCycles);
    driver_.flush();
    is_balanced_ = false;
    for (int k = 0; k < kTurnsToSettle && !is_balanced_; ++k) {
      step(kTurnCycles);
      const Books books = read_books(driver_);
      is_balanced_ = books.all == rig_.model.wire_in().sent() && books.stored == comparison_.result().packets;
    }
    comparison_.end();
  }

  const std::size_t payload_bytes_;
  Rig rig_;
  link::gateware::NicDriver driver_;
  Comparison comparison_;
  std::uint64_t number_ = 0;
  bool is_balanced_ = false;
};

void add(const Bench& bench, Measured& to) {
  const Compared& one = bench.compared();
  to.sent += bench.sent();
  to.cycles += bench.cycles();
  to.compared.packets += one.packets;
  to.compared.wrong += one.wrong;
  to.compared.missing += one.missing;
  if (to.compared.first_wrong.empty()) to.compared.first_wrong = one.first_wrong;
}

}  // namespace

Starts measure_starts(std::size_t payload_bytes, std::uint64_t count, gateware::Line line) {
  Starts starts{.count = count, .wrong = 0, .measured = {}};
  const auto began = std::chrono::steady_clock::now();
  std::mt19937_64 random(payload_bytes);
  const std::uint64_t frames_cycles = kFramesBefore * (frame_bytes(payload_bytes) + kBetweenFramesBytes) /
                                      gateware::bytes_per_cycle(line);
  auto bench = std::make_unique<Bench>(payload_bytes, line);
  for (std::uint64_t k = 0; k < count; ++k) {
    if (bench->start(random() % frames_cycles)) continue;
    ++starts.wrong;  // a NIC that is broken now says nothing of the next start
    add(*bench, starts.measured);
    bench = std::make_unique<Bench>(payload_bytes, line);
  }
  add(*bench, starts.measured);
  starts.measured.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return starts;
}

}  // namespace nanet::bench
