// SPDX-License-Identifier: Apache-2.0
// Loop of two classes that Verilator made. For the sources of this folder.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>

#include "model/km3/loop.hpp"
#include "verilated.h"

namespace nanet::gateware::km3 {

inline constexpr std::uint32_t kSlots = 10;
inline constexpr HalfBits kHelpPeriod = kWord + 1;  // of a phase meter's clock

// A class that Verilator made, and its clocks: each is seen low before it rises again.
template <class Top>
struct Clocked {
  explicit Clocked(VerilatedContext& context) : top(std::make_unique<Top>(&context)) {}
  ~Clocked() { top->final(); }

  // set(top, clocks, level) writes the pins of these clocks, a bit each.
  template <class Set>
  void rise(unsigned clocks, const Set& set) {
    if ((clocks & low_unseen) != 0) top->eval();
    set(*top, clocks, 1);
    top->eval();
    set(*top, clocks, 0);
    low_unseen = clocks;
  }

  std::unique_ptr<Top> top;
  unsigned low_unseen = 0;
};

// What one end sends by numbers of its own, and the other expects.
class Numbers {
 public:
  std::uint16_t next() const { return next_; }
  void advance() { ++next_; }
  // Whether it is the one that was expected; after a gap anything is.
  bool take(std::uint16_t word) {
    const bool right = !expected_ || *expected_ == word;
    expected_ = static_cast<std::uint16_t>(word + 1);
    return right;
  }
  void gap() { expected_.reset(); }

 private:
  std::uint16_t next_ = 0;
  std::optional<std::uint16_t> expected_;
};

// Express codes that are under way.
class Codes {
 public:
  void taken(HalfBits at) { under_way_.push_back({code_++, at}); }
  std::uint8_t next() const { return code_; }
  void came(std::uint8_t code, HalfBits at, Values& latency, std::uint64_t& wrong) {
    while (!under_way_.empty() && under_way_.front().code != code) under_way_.pop_front();
    if (under_way_.empty()) {
      ++wrong;
      return;
    }
    latency.add(at - under_way_.front().at);
    under_way_.pop_front();
  }
  void forget() { under_way_.clear(); }

 private:
  struct Taken {
    std::uint8_t code;
    HalfBits at;
  };
  std::uint8_t code_ = 0;
  std::deque<Taken> under_way_;
};

template <class Shore, class Floor>
class LoopOf final : public Loop {
 public:
  explicit LoopOf(const Settings& settings, std::uint32_t frame_words)
      : frame_words_(frame_words),
        test_pattern_(settings.test_pattern),
        random_(settings.seed),
        down_(0, settings.down_delay),
        up_(settings.down_delay, settings.up_delay),
        shore_tx_(down_),
        floor_rx_(down_, settings.wrong),
        floor_tx_(up_),
        shore_rx_(up_, Wrong::nothing) {
    context_.randReset(2);  // what reset does not clear begins with anything
    context_.randSeed(static_cast<int>(settings.seed & 0x7FFF'FFFE) + 1);
    shore_ = std::make_unique<Clocked<Shore>>(context_);
    floor_ = std::make_unique<Clocked<Floor>>(context_);
    Shore& shore = *shore_->top;
    shore.clk = shore.div_clk = shore.rx_clk = shore.help_clk = 0;
    shore.gps_set = shore.control_valid = shore.control_last = shore.express_valid = 0;
    Floor& floor = *floor_->top;
    floor.clk = floor.div_clk = floor.help_clk = 0;
    floor.s_valid = floor.express_valid = 0;
    shore.floor = floor.floor = 1;
    shore.rst = shore.link_rst = floor.rst = 1;
    now_ = (settings.down_delay + settings.up_delay) / kWord * kWord +
           kWord;  // so that every clock runs: a receiver's does without light too
    next_ref_ = now_ + kWord;
    begin_anew();
    run(kResetWords);
    shore.rst = 0;
    reset();
    set_gps(1000);
  }

  void reset() override {
    shore_->top->link_rst = floor_->top->rst = 1;
    begin_anew();
    run(kResetWords + random_() % kResetWords);
    begin_anew();
    shore_->top->link_rst = 0;
    run(random_() % kResetWords);
    floor_->top->rst = 0;
    seen_.heads = starts_ = phases_ = 0;
    for (Numbers& slot : slots_) slot.gap();
    control_.gap();
    down_codes_.forget();
    up_codes_.forget();
  }

  void run(std::uint64_t words) override {
    const HalfBits end = now_ + words * kWord;
    while (now_ < end) step();
  }

  bool up() const override { return seen_.heads >= 2 && starts_ >= 2 && phases_ >= 1; }
  bool timed() const override { return floor_->top->timed != 0; }
  void set_gps(std::uint32_t second) override {
    while (now_ != next_ref_ - kWord) step();  // just after an edge of the reference
    shore_->top->gps_second = second;
    shore_->top->gps_set = 1;
    run(1);
    shore_->top->gps_set = 0;
  }
  void set_floor(std::uint8_t number) override { shore_->top->floor = number; }
  std::uint32_t frame_words() const override { return frame_words_; }
  HalfBits now() const override { return now_; }
  Fibre& down_fibre() override { return down_; }
  Fibre& up_fibre() override { return up_; }

 private:
  static constexpr std::uint64_t kResetWords = 32;
  static constexpr std::uint64_t kGood = std::uint64_t{1}
                                         << (16 + static_cast<unsigned>(Count::good));  // all other counts: words may be missing
  enum Clock : unsigned { kClk = 1, kDiv = 2, kHelp = 4, kRx = 8 };
  struct Begun {
    std::uint64_t at = 0;  // second, number
    HalfBits when = 0;
  };

  void begin_anew() {
    shore_tx_.reset(now_, random_);
    floor_rx_.reset(now_, random_);
    floor_tx_.reset(now_, random_);
    shore_rx_.reset(now_, random_);
    shore_help_ = now_ + 1 + random_() % kHelpPeriod;
    floor_help_ = now_ + 1 + random_() % kHelpPeriod;
  }

  void step() {
    now_ = std::min({next_ref_, shore_tx_.next_edge(), shore_rx_.next_edge(), shore_help_, floor_rx_.next_edge(),
                     floor_tx_.next_edge(), floor_help_});
    unsigned shore = (now_ == next_ref_ ? kClk : 0U) | (now_ == shore_tx_.next_edge() ? kDiv : 0U) |
                     (now_ == shore_rx_.next_edge() ? kRx : 0U) | (now_ == shore_help_ ? kHelp : 0U);
    unsigned floor = (now_ == floor_rx_.next_edge() ? kClk : 0U) | (now_ == floor_tx_.next_edge() ? kDiv : 0U) |
                     (now_ == floor_help_ ? kHelp : 0U);
    if (shore != 0) step_shore(shore);
    if (floor != 0) step_floor(floor);
  }

  void step_shore(unsigned clocks) {
    Shore& top = *shore_->top;
    const std::uint32_t codes = top.tx_codes;
    const bool light = top.tx_on != 0;
    const bool express = top.express_valid != 0 && top.express_ready != 0, control = top.control_valid != 0 && top.control_ready != 0;
    shore_->rise(clocks, [](Shore& pins, unsigned of, CData level) {
      if ((of & kClk) != 0) pins.clk = level;
      if ((of & kDiv) != 0) pins.div_clk = level;
      if ((of & kHelp) != 0) pins.help_clk = level;
      if ((of & kRx) != 0) pins.rx_clk = level;
    });
    if ((clocks & kDiv) != 0) shore_tx_.take(light ? patterned(codes) : codes, light);
    if ((clocks & kClk) != 0) after_reference(express, control);
    if ((clocks & kRx) != 0) after_up();
    if ((clocks & kHelp) != 0) {
      shore_help_ += kHelpPeriod;
      if (top.tx_slide != 0) shore_tx_.slide();
      seen_.error_phase += top.error_phase;
      seen_.error_tx_phase += top.error_tx_phase;
      seen_.tx_failed += top.error_tx_failed;
      if (top.phase_valid != 0 && seen_.heads != 0) {
        seen_.phase.add(top.phase);
        ++phases_;
      }
    }
  }

  std::uint32_t patterned(std::uint32_t codes) {
    // K28.5, D16.2 after minus and plus, the first bit lowest; D21.5; K28.7, which is taken for a comma by its first seven bits. None turns the disparity.
    constexpr std::uint32_t kIdleMinus = 0x17C | 0x289 << 10, kIdlePlus = 0x283 | 0x2B6 << 10;
    constexpr std::uint32_t kD21_5 = 0x155, kMinus = 0x07C, kPlus = 0x383;
    constexpr std::uint32_t kBetween = 40;  // idle words in a row are in no frame
    idle_words_ = codes == kIdleMinus || codes == kIdlePlus ? idle_words_ + 1 : 0;
    if (!test_pattern_ || idle_words_ < kBetween || idle_words_ % 4 == 0) return codes;
    return kD21_5 | (codes == kIdleMinus ? kMinus : kPlus) << 10;
  }

  void after_reference(bool express, bool control) {
    Shore& top = *shore_->top;
    next_ref_ += kWord;
    ++references_;
    if (top.start != 0) begun_[top.at & 63] = {top.at, now_};
    seen_.error_trip += top.error_trip;
    seen_.error_second += top.error_second;
    seen_.error_gps += top.error_gps;
    seen_.error_cut += top.error_cut;
    if (top.trip_valid != 0) seen_.trip.add(top.trip);
    if (express) {
      down_codes_.taken(now_);
      top.express_valid = 0;
    }
    if (express_every != 0 && references_ % express_every == 0) top.express_valid = 1;
    top.express = down_codes_.next();
    if (control) control_.advance();
    top.control_valid = busy_down;
    top.control_data = control_.next();
    top.eval();  // what is ready follows from what is offered
  }

  void after_up() {
    Shore& top = *shore_->top;
    if (top.rx_slide != 0 && !shore_slid_) shore_rx_.slide();
    shore_slid_ = top.rx_slide != 0;
    top.rx_bits = shore_rx_.give();
    if (top.rx_restart != 0) shore_rx_.reset(now_, random_);
    seen_.shore.add(top.counts);
    if ((top.counts & ~kGood) != 0) gap_up();
    if (top.up_express_valid != 0) up_codes_.came(top.up_express, now_, seen_.express_up, seen_.wrong_express);
    if (top.up_head != 0) {
      const Begun& begun = begun_[top.head & 63];
      const std::uint64_t at = top.head & 0xFFFF'FFFF'FFFF;
      if (begun.at != at) {
        ++seen_.wrong_times;
      } else {
        ++seen_.heads;
        seen_.round_trip.add(now_ - top.up_since * kWord - begun.when);
        seen_.third.add(now_ % kWord);
      }
    }
    if (top.rx_locked != 0) follow_up_frame();
  }

  void follow_up_frame() {
    Shore& top = *shore_->top;
    if (top.up_valid != 0) {
      ++frame_words_up_;
      frame_wrong_ += slots_[top.up_slot].take(top.up_data) ? 0U : 1U;
    }
    if (top.up_end == 0) return;
    if (top.up_good != 0) {
      seen_.payload_words += frame_words_up_;
      seen_.wrong_words += frame_wrong_;
    }
    frame_words_up_ = frame_wrong_ = 0;
  }

  void gap_up() {
    for (Numbers& slot : slots_) slot.gap();
  }

  void step_floor(unsigned clocks) {
    Floor& top = *floor_->top;
    const std::uint32_t codes = top.tx_codes;
    const bool light = top.tx_on != 0;
    const bool express = top.express_valid != 0 && top.express_ready != 0;
    const unsigned taken = top.s_valid & top.s_ready;
    floor_->rise(clocks, [](Floor& pins, unsigned of, CData level) {
      if ((of & kClk) != 0) pins.clk = level;
      if ((of & kDiv) != 0) pins.div_clk = level;
      if ((of & kHelp) != 0) pins.help_clk = level;
    });
    if ((clocks & kDiv) != 0) {
      floor_tx_.take(codes, light);
      floor_div_at_ = now_;
    }
    if ((clocks & kClk) != 0) {
      after_down();
      feed(taken, express);
      floor_clk_at_ = now_;
    }
    if ((clocks & kHelp) != 0) {
      floor_help_ += kHelpPeriod;
      if (top.tx_slide != 0) floor_tx_.slide();
      seen_.error_tx_phase += top.error_tx_phase;
      seen_.tx_failed += top.error_tx_failed;
    }
  }

  void after_down() {
    Floor& top = *floor_->top;
    if (top.rx_slide != 0 && !floor_slid_) floor_rx_.slide();
    floor_slid_ = top.rx_slide != 0;
    top.rx_bits = floor_rx_.give();
    if (top.rx_restart != 0) floor_rx_.reset(now_, random_);
    seen_.floor.add(top.counts);
    seen_.error_jump += top.error_jump;
    seen_.error_silent += top.error_silent;
    seen_.error_cut += top.error_cut;
    if (top.down_express_valid != 0) down_codes_.came(top.down_express, now_, seen_.express_down, seen_.wrong_express);
    if (top.control_valid != 0) {
      ++frame_control_;
      frame_wrong_control_ += control_.take(top.control_data) ? 0U : 1U;
    }
    if (top.control_end != 0) {
      seen_.control_words += top.control_good != 0 ? frame_control_ : 0;
      seen_.wrong_control += top.control_good != 0 ? frame_wrong_control_ : 0;
      frame_control_ = frame_wrong_control_ = 0;
    }
    if ((top.counts & ~kGood) != 0) control_.gap();
    if (top.start == 0) return;
    const Begun& begun = begun_[top.at & 63];
    if (begun.at != top.at) {
      ++seen_.wrong_times;
      return;
    }
    ++starts_;
    seen_.down.add(now_ - begun.when);
    seen_.recovered.add(now_ % kWord);
    seen_.floor_tx.add((floor_div_at_ - floor_clk_at_) % kWord);
  }

  void feed(unsigned taken, bool express) {
    Floor& top = *floor_->top;
    for (std::uint32_t s = 0; s < kSlots; ++s) {
      if ((taken >> s & 1) != 0) slots_[s].advance();
    }
    if (busy_up || taken != 0) {
      for (std::uint32_t s = 0; s < kSlots; s += 2) {
        top.s_data[s / 2] = slots_[s].next() | std::uint32_t{slots_[s + 1].next()} << 16;
      }
    }
    top.s_valid = busy_up ? (1U << kSlots) - 1 : 0;
    if (express) {
      up_codes_.taken(now_);
      top.express_valid = 0;
    }
    if (express_every != 0 && ++floor_cycles_ % express_every == 0) top.express_valid = 1;
    top.express = up_codes_.next();
    top.eval();
  }

  const std::uint32_t frame_words_;
  const bool test_pattern_;
  std::mt19937_64 random_;
  VerilatedContext context_;
  std::unique_ptr<Clocked<Shore>> shore_;
  std::unique_ptr<Clocked<Floor>> floor_;
  Fibre down_, up_;
  Serialiser shore_tx_;
  Deserialiser floor_rx_;
  Serialiser floor_tx_;
  Deserialiser shore_rx_;

  HalfBits now_ = 0, next_ref_ = 0, shore_help_ = 0, floor_help_ = 0;
  bool shore_slid_ = false, floor_slid_ = false;
  std::array<Begun, 64> begun_{};
  std::array<Numbers, kSlots> slots_;
  Numbers control_;
  Codes down_codes_, up_codes_;
  HalfBits floor_div_at_ = 0, floor_clk_at_ = 0;
  std::uint64_t references_ = 0, floor_cycles_ = 0, starts_ = 0, phases_ = 0, idle_words_ = 0;
  std::uint64_t frame_words_up_ = 0, frame_wrong_ = 0, frame_control_ = 0, frame_wrong_control_ = 0;
};

}  // namespace nanet::gateware::km3
