// SPDX-License-Identifier: Apache-2.0
#include "router.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>

#include "Vrouter.h"

namespace nanet::bench {
namespace {

constexpr std::uint64_t kCyclesBefore = 100;
constexpr unsigned kPacketsAPermutation = 256;

void need(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("the router does not do what it must: ") + what);
}

// Every word says where it comes from and where in its packet it is, so that a word that is lost, doubled or mixed in is seen.
struct Word {
  std::uint64_t packet;  // of this input
  std::uint32_t place;   // in the packet
  std::size_t input;
  std::uint64_t value() const { return std::uint64_t{input} << 56 | packet << 16 | place; }
};

class Bench {
 public:
  Bench(const RouterLoad& load) : load_(load) {
    context_.randReset(2);
    top_.rst = 1;
    top_.m_axis_tready = (1u << kRouterPorts) - 1;
    for (int k = 0; k < 4; ++k) tick();
    top_.rst = 0;
    for (std::size_t i = 0; i < kRouterPorts; ++i) begin_packet(i);
  }
  ~Bench() { top_.final(); }

  RouterMeasured run(std::uint64_t cycles) {
    for (std::uint64_t k = 0; k < kCyclesBefore; ++k) cycle();
    result_ = {load_, cycles};
    for (std::uint64_t k = 0; k < cycles; ++k) cycle();
    return result_;
  }

 private:
  struct Input {
    Word next{};
    std::uint32_t words = 0;  // of the packet
    std::uint8_t destination = 0;
  };
  struct Output {
    std::uint32_t place = 0;  // of the next word of its packet
    std::size_t input = 0;
  };

  void begin_packet(std::size_t i) {
    Input& input = inputs_[i];
    input.next = {.packet = sent_[i]++, .place = 0, .input = i};
    input.words = static_cast<std::uint32_t>((load_.packet_bytes[i] + kRouterWordBytes - 1) / kRouterWordBytes);
    if (load_.pattern == Pattern::one_output) return;
    if (load_.pattern == Pattern::random) {
      input.destination = static_cast<std::uint8_t>(random_() % kRouterPorts);
    } else {  // shifted by one more each time: all inputs change at their own packet, so they meet for a moment
      input.destination = static_cast<std::uint8_t>((i + input.next.packet / kPacketsAPermutation) % kRouterPorts);
    }
  }

  std::uint8_t keep_of_last(std::size_t i) const {
    const std::size_t rest = load_.packet_bytes[i] % kRouterWordBytes;
    return static_cast<std::uint8_t>(rest == 0 ? 0xFF : (1u << rest) - 1);
  }

  void cycle() {
    top_.s_axis_tvalid = (1u << kRouterPorts) - 1;
    top_.s_axis_tlast = 0;
    top_.s_axis_tkeep = 0;
    top_.s_meta_destination = 0;
    for (std::size_t i = 0; i < kRouterPorts; ++i) {
      const Input& input = inputs_[i];
      const bool last = input.next.place + 1 == input.words;
      top_.s_axis_tdata[2 * i] = static_cast<std::uint32_t>(input.next.value());
      top_.s_axis_tdata[2 * i + 1] = static_cast<std::uint32_t>(input.next.value() >> 32);
      top_.s_axis_tkeep |= std::uint32_t{last ? keep_of_last(i) : std::uint8_t{0xFF}} << (8 * i);
      top_.s_axis_tlast = static_cast<std::uint8_t>(top_.s_axis_tlast | unsigned{last} << i);
      top_.s_meta_destination |= std::uint32_t{input.destination} << (8 * i);
    }
    top_.clk = 0;
    top_.eval();
    for (std::size_t o = 0; o < kRouterPorts; ++o) take(o);
    const unsigned taken = top_.s_axis_tready;
    top_.clk = 1;
    top_.eval();
    for (std::size_t i = 0; i < kRouterPorts; ++i) {
      if ((taken >> i & 1) != 0 && ++inputs_[i].next.place == inputs_[i].words) begin_packet(i);
    }
  }

  void take(std::size_t o) {
    if ((top_.m_axis_tvalid >> o & 1) == 0) return;
    const std::uint64_t value = top_.m_axis_tdata[2 * o] | std::uint64_t{top_.m_axis_tdata[2 * o + 1]} << 32;
    const std::size_t input = top_.m_meta_source >> (8 * o) & 0xFF;
    const auto keep = static_cast<std::uint8_t>(top_.m_axis_tkeep >> (8 * o));
    const bool last = (top_.m_axis_tlast >> o & 1) != 0;
    Output& output = outputs_[o];
    need(input < kRouterPorts && (output.place == 0 || output.input == input), "packets are mixed");
    need(value == Word{arrived_[input], output.place, input}.value(), "a word is lost, doubled or changed");
    need(keep == (last ? keep_of_last(input) : 0xFF), "bytes of a word are lost");
    result_.bytes[input] += static_cast<unsigned>(std::popcount(keep));
    output = {last ? 0 : output.place + 1, input};
    if (!last) return;
    ++result_.packets[input];
    ++arrived_[input];
  }

  void tick() {
    top_.clk = 0;
    top_.eval();
    top_.clk = 1;
    top_.eval();
  }

  VerilatedContext context_;
  Vrouter top_{&context_};
  RouterLoad load_;
  RouterMeasured result_;
  std::array<Input, kRouterPorts> inputs_{};
  std::array<Output, kRouterPorts> outputs_{};
  std::array<std::uint64_t, kRouterPorts> sent_{}, arrived_{};  // packets, since the start
  std::mt19937_64 random_{1};
};

}  // namespace

double RouterMeasured::bytes_per_s() const {
  const auto all = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  return static_cast<double>(all) / static_cast<double>(cycles) * kRouterCyclesPerSecond;
}

double RouterMeasured::of_full_rate() const {
  const std::size_t outputs = load.pattern == Pattern::one_output ? 1 : kRouterPorts;
  return bytes_per_s() / (static_cast<double>(outputs * kRouterWordBytes) * kRouterCyclesPerSecond);
}

double RouterMeasured::jain_index() const {
  double sum = 0, squares = 0;
  for (const std::uint64_t count : packets) {
    sum += static_cast<double>(count);
    squares += static_cast<double>(count) * static_cast<double>(count);
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(kRouterPorts) * squares);
}

std::vector<RouterMeasured> measure_router(std::uint64_t cycles) {
  constexpr std::array<std::size_t, kRouterPorts> kSmall{64, 64, 64, 64}, kLarge{1472, 1472, 1472, 1472}, kUnequal{64, 64, 64, 1472};
  std::vector<RouterMeasured> all;
  for (const RouterLoad& load : {
           RouterLoad{"permutation, 64 B", Pattern::permutation, kSmall},
           RouterLoad{"permutation, 1472 B", Pattern::permutation, kLarge},
           RouterLoad{"all to one output, 64 B", Pattern::one_output, kSmall},
           RouterLoad{"all to one output, 1472 B", Pattern::one_output, kLarge},
           RouterLoad{"all to one output, 3 x 64 B and 1472 B", Pattern::one_output, kUnequal},
           RouterLoad{"any output at random, 1472 B", Pattern::random, kLarge},
       }) {
    all.push_back(std::make_unique<Bench>(load)->run(cycles));
  }
  return all;
}

}  // namespace nanet::bench
