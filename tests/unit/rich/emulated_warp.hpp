// SPDX-License-Identifier: Apache-2.0
// EmulatedWarp: the 32 lanes of a GPU's warp on one thread of the CPU, as the templates over a Warp want it (rich/mixture_team_memory.hpp). Each lane has
// a stack of its own and runs until it asks for something of the others; then the next lane runs. So what a lane sees of another without
// asking is as old, or as new, as the order of the lanes makes it: the order is turned around to find what would depend on it.
//
// Fails (gtest) if lanes ask for different things at one time: on a GPU they would hang, or read nonsense.
#pragma once

#include <gtest/gtest.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#include <sanitizer/common_interface_defs.h>
#endif
#endif

namespace nanet::rich {

class EmulatedWarp {
 public:
  static constexpr std::uint32_t kLanes = 32;

  template <class T>
  struct Memory {
    T* object;
    T& operator*() const { return *object; }
    T* operator->() const { return object; }
  };

  // Runs `work` on all lanes, `backwards` or in their order.
  static void run(const std::function<void()>& work, bool backwards) {
    static EmulatedWarp warp;
    warp.start(work, backwards);
  }

  static std::uint32_t lane() { return current().lane_; }
  static void sync() { current().meet(Question::sync, 0); }
  static std::uint32_t ballot(bool vote) {
    const Answers& votes = current().meet(Question::ballot, vote ? 1 : 0);
    std::uint32_t all = 0;
    for (std::uint32_t k = 0; k < kLanes; ++k) all |= static_cast<std::uint32_t>(votes[k]) << k;
    return all;
  }
  template <class T>
  static T from_lane(T value, std::uint32_t lane) {
    static_assert(sizeof(T) == 4);
    return std::bit_cast<T>(current().meet(Question::from_lane, std::bit_cast<std::uint32_t>(value)).at(lane % kLanes));
  }
  template <class T>
  static T from_other(T value, std::uint32_t mask) {
    return from_lane(value, lane() ^ mask);
  }
  static std::int32_t max(std::int32_t value) {
    const Answers& all = current().meet(Question::max, std::bit_cast<std::uint32_t>(value));
    std::int32_t most = value;
    for (const std::uint32_t one : all) most = std::max(most, std::bit_cast<std::int32_t>(one));
    return most;
  }
  static void set_bits(std::uint32_t& word, std::uint32_t bits) { word |= bits; }
  static std::uint32_t bit_count(std::uint32_t word) { return static_cast<std::uint32_t>(std::popcount(word)); }
  static std::uint32_t first_bit(std::uint32_t word) { return static_cast<std::uint32_t>(std::countr_zero(word)); }
  static std::uint32_t reversed(std::uint32_t word) {
    std::uint32_t other = 0;
    for (int bit = 0; bit < 32; ++bit) other |= (word >> bit & 1u) << (31 - bit);
    return other;
  }

 private:
  enum class Question { sync, ballot, from_lane, max, end };
  using Answers = std::array<std::uint32_t, kLanes>;
  static constexpr std::size_t kStackBytes = 256 * 1024;

  EmulatedWarp() {
    for (auto& stack : stacks_) stack = std::make_unique<std::byte[]>(kStackBytes);
    current_ = this;
  }
  static EmulatedWarp& current() { return *current_; }

  void start(const std::function<void()>& work, bool backwards) {
    work_ = &work;
    backwards_ = backwards;
    for (std::uint32_t k = 0; k < kLanes; ++k) prepare(lanes_[k], stacks_[k].get());
    ended_ = false;
    round_ = 0;
    while (!ended_) {
      for (std::uint32_t n = 0; n < kLanes; ++n) {
        lane_ = backwards_ ? kLanes - 1 - n : n;
        go_to(lanes_[lane_], main_, stacks_[lane_].get(), kStackBytes);
      }
      check_questions();
      ++round_;
    }
  }

  [[gnu::noinline]] static void prepare(ucontext_t& lane, std::byte* stack) {
    getcontext(&lane);
    lane.uc_stack.ss_sp = stack;
    lane.uc_stack.ss_size = kStackBytes;
    lane.uc_link = nullptr;
    makecontext(&lane, &EmulatedWarp::run_lane, 0);
  }

  // One round of lanes: all have asked. Where they ask for different things the lanes are left as they stand.
  void check_questions() {
    const bool same = std::all_of(questions_.begin(), questions_.end(), [&](Question one) { return one == questions_[0]; });
    EXPECT_TRUE(same) << "lanes ask for different things";
    ended_ = !same || questions_[0] == Question::end;
  }

  // Called by a lane: waits for all others. Values of two rounds are kept, since a lane may ask again before another has read.
  const Answers& meet(Question question, std::uint32_t value) {
    const std::uint32_t lane = lane_;
    Answers& answers = answers_[round_ % 2];
    questions_[lane] = question;
    answers[lane] = value;
    go_to(main_, lanes_[lane], main_stack_, main_stack_bytes_);
    return answers;
  }

  static void run_lane() {
    EmulatedWarp& warp = current();
    warp.arrived();
    (*warp.work_)();
    warp.meet(Question::end, 0);
  }

#if defined(__SANITIZE_ADDRESS__)
  void arrived() { __sanitizer_finish_switch_fiber(nullptr, &main_stack_, &main_stack_bytes_); }
  void go_to(ucontext_t& to, ucontext_t& from, const void* stack, std::size_t bytes) {
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stack, bytes);
    swapcontext(&from, &to);
    const void* old = nullptr;
    std::size_t old_bytes = 0;
    __sanitizer_finish_switch_fiber(fake, &old, &old_bytes);
    if (&from != &main_) {
      main_stack_ = old;
      main_stack_bytes_ = old_bytes;
    }
  }
#else
  void arrived() {}
  static void go_to(ucontext_t& to, ucontext_t& from, const void*, std::size_t) { swapcontext(&from, &to); }
#endif

  inline static EmulatedWarp* current_ = nullptr;
  const std::function<void()>* work_ = nullptr;
  bool backwards_ = false;
  bool ended_ = false;
  std::uint32_t lane_ = 0;
  std::uint32_t round_ = 0;
  std::array<Question, kLanes> questions_{};
  std::array<Answers, 2> answers_{};
  std::array<ucontext_t, kLanes> lanes_{};
  std::array<std::unique_ptr<std::byte[]>, kLanes> stacks_;
  ucontext_t main_{};
  const void* main_stack_ = nullptr;
  std::size_t main_stack_bytes_ = 0;
};

}  // namespace nanet::rich
