// SPDX-License-Identifier: Apache-2.0
// The sequence tracker against a model that remembers every packet of the run in a table, over a random channel.
#include <gtest/gtest.h>

#include <queue>
#include <random>
#include <vector>

#include "nanet/flow/sequence_tracker.hpp"

namespace nanet::flow {
namespace {

struct Channel {
  double loss, duplication, reordering;
  std::uint32_t longest_delay;  // in packets
  double burst;                 // chance that a burst is lost
  std::uint32_t longest_burst;
};

// Knows every packet by its running number, which neither wraps nor forgets.
class Model {
 public:
  explicit Model(std::vector<std::uint32_t> event_counts)
      : event_counts_(std::move(event_counts)), state_(event_counts_.size(), State::unknown) {}

  Verdict on_packet(std::size_t number, DropHint hint) {
    if (number >= next_) {
      expect_up_to(number, hint);
      next_ = number + 1;
      ++packets_expected;
      events_expected += event_counts_[number];
      accept(number);
      return Verdict::accept;
    }
    if (next_ - number > 1024) return Verdict::late;
    if (state_[number] == State::accepted) return Verdict::duplicate;
    (state_[number] == State::lost_kernel ? lost_kernel : lost_network) -= 1;
    accept(number);
    return Verdict::accept_reordered;
  }

  void on_end() {
    expect_up_to(state_.size(), DropHint::none);
    next_ = state_.size();
  }

  std::uint64_t packets_expected = 0, packets_accepted = 0, lost_kernel = 0, lost_network = 0;
  std::uint64_t events_expected = 0, events_accepted = 0;

 private:
  enum class State : std::uint8_t { unknown, accepted, lost_kernel, lost_network };

  void expect_up_to(std::size_t end, DropHint hint) {
    for (std::size_t k = next_; k < end; ++k) {
      state_[k] = hint == DropHint::kernel ? State::lost_kernel : State::lost_network;
      (hint == DropHint::kernel ? lost_kernel : lost_network) += 1;
      ++packets_expected;
      events_expected += event_counts_[k];
    }
  }
  void accept(std::size_t number) {
    state_[number] = State::accepted;
    ++packets_accepted;
    events_accepted += event_counts_[number];
  }

  std::vector<std::uint32_t> event_counts_;
  std::vector<State> state_;
  std::size_t next_ = 0;
};

void expect_same(const SequenceTracker& tracker, const Model& model) {
  ASSERT_EQ(tracker.packets_expected(), model.packets_expected);
  ASSERT_EQ(tracker.packets_accepted(), model.packets_accepted);
  ASSERT_EQ(tracker.packets_lost_kernel(), model.lost_kernel);
  ASSERT_EQ(tracker.packets_lost_network(), model.lost_network);
  ASSERT_EQ(tracker.events_expected(), model.events_expected);
  ASSERT_EQ(tracker.events_accepted(), model.events_accepted);
  ASSERT_EQ(tracker.packets_expected(), tracker.packets_accepted() + tracker.packets_lost_kernel() + tracker.packets_lost_network());
  ASSERT_EQ(tracker.events_expected(), tracker.events_accepted() + tracker.events_lost());
}

void run_channel(const Channel& channel, std::size_t packet_count, std::uint32_t most_events, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };

  std::vector<std::uint32_t> event_counts(packet_count);
  std::vector<std::uint64_t> first_events(packet_count);
  // The sequence wraps in the middle of the run, the event number some hundred times.
  const std::uint32_t first_sequence = 0u - static_cast<std::uint32_t>(packet_count / 2);
  const std::uint64_t first_event = 123'456'789'012;
  std::uint64_t event = first_event;
  for (std::size_t k = 0; k < packet_count; ++k) {
    event_counts[k] = 1 + below(most_events);
    first_events[k] = event;
    event += event_counts[k];
  }

  // What arrives, by time of arrival; packet k leaves at time k.
  struct Arrival {
    std::uint64_t time;
    std::size_t number;
    bool operator>(const Arrival& other) const { return time > other.time; }
  };
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  for (std::size_t k = 0; k < packet_count; ++k) {
    if (uniform(random) < channel.burst) {
      k += below(channel.longest_burst);
      continue;
    }
    if (uniform(random) < channel.loss) continue;
    const bool is_delayed = uniform(random) < channel.reordering;
    arrivals.push({k + (is_delayed ? 1 + below(channel.longest_delay) : 0), k});
    while (uniform(random) < channel.duplication) arrivals.push({k + below(channel.longest_delay), k});
  }

  SequenceTracker tracker;
  Model model(event_counts);
  tracker.on_start_marker(first_sequence, first_event);
  std::uint64_t verdicts[4] = {};
  for (std::size_t step = 0; !arrivals.empty(); ++step) {
    const std::size_t number = arrivals.top().number;
    arrivals.pop();
    const DropHint hint = below(10) == 0 ? DropHint::kernel : DropHint::none;
    const Verdict verdict = tracker.on_packet(first_sequence + static_cast<std::uint32_t>(number),
                                              static_cast<std::uint16_t>(first_events[number]), event_counts[number], hint);
    ASSERT_EQ(verdict, model.on_packet(number, hint)) << "packet " << number;
    ++verdicts[static_cast<std::size_t>(verdict)];
    if (step % 64 == 0) {
      ASSERT_NO_FATAL_FAILURE(expect_same(tracker, model));
    }
    if (below(1000) == 0) tracker.on_start_marker(first_sequence, first_event);  // belated repetitions
  }
  tracker.on_end_marker(first_sequence + static_cast<std::uint32_t>(packet_count), event);
  model.on_end();
  expect_same(tracker, model);
  EXPECT_EQ(tracker.packets_expected(), packet_count);
  EXPECT_EQ(tracker.events_expected(), event - first_event);
  EXPECT_EQ(tracker.restarts(), 0u);
  EXPECT_GT(verdicts[0], packet_count / 4);
  if (channel.reordering > 0) {
    EXPECT_GT(verdicts[1], 0u);
  }
  if (channel.duplication > 0) {
    EXPECT_GT(verdicts[2], 0u);
  }
  if (channel.longest_delay > 1100) {
    EXPECT_GT(verdicts[3], 0u);
  }
}

TEST(SequenceModel, OnePercentOfEachFault) { run_channel({0.01, 0.01, 0.01, 200, 0, 1}, 1'000'000, 32, 1); }

TEST(SequenceModel, DelaysBeyondTheWindow) { run_channel({0.01, 0.01, 0.02, 3000, 0, 1}, 1'000'000, 32, 2); }

TEST(SequenceModel, BurstsLargerThanTheWindow) { run_channel({0.01, 0.02, 0.05, 1500, 0.0005, 5000}, 1'000'000, 32, 3); }

TEST(SequenceModel, HalfIsLostAndMuchIsTwice) { run_channel({0.5, 0.3, 0.5, 100, 0, 1}, 300'000, 255, 4); }

TEST(SequenceModel, NothingIsWrong) { run_channel({0, 0, 0, 1, 0, 1}, 100'000, 16, 5); }

}  // namespace
}  // namespace nanet::flow
