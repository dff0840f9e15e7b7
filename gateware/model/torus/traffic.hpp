// SPDX-License-Identifier: Apache-2.0
// What a node of the torus sends and receives: an open source, which is born packets whatever the torus takes, and a sink that compares each word that comes.
//
// Thread rules: one thread for each object.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "model/torus/packet.hpp"
#include "model/torus/shape.hpp"

namespace nanet::torus {

struct Load {
  Pattern pattern = Pattern::uniform;
  double offered = 0;                 // words a node and cycle, header and footer among them
  std::uint32_t payload_bytes = 256;  // of every packet
  std::uint64_t seed = 1;
};

// Packets whose last word has come count here by the cycle in which they were born.
struct Window {
  std::uint64_t begin = 0, end = 0;
  bool has(std::uint64_t cycle) const { return begin <= cycle && cycle < end; }
};

// splitmix64: of each node its own, so that nothing depends on who is simulated when.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15u;
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9u;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// The stream of packets into a node's local port.
class Source {
 public:
  Source(const Shape& shape, std::uint32_t node);

  void set_load(const Load& load);  // from the next cycle on; what waits, waits on
  void stop();                      // nothing more is born, and what waits is forgotten but for the packet that is on its way in
  void push(std::uint32_t to, std::uint32_t payload_bytes, std::uint64_t cycle);  // one packet, beside the load

  void be_born(std::uint64_t cycle, const Window& window);  // once a cycle
  bool valid() const { return words_ != 0; }
  bool last() const { return place_ + 1 == words_; }
  const Word& word() const { return word_; }
  void taken();  // the word

  std::uint64_t born() const { return born_; }             // in the window
  std::uint64_t injected() const { return injected_; }     // packets whose last word was taken
  std::uint64_t waiting() const { return queue_.size(); }  // the one on its way in included

 private:
  struct Waiting {
    std::uint64_t cycle;
    std::uint32_t to, payload_bytes;
  };
  void begin();

  const Shape shape_;
  const std::uint32_t node_;
  Load load_;
  Random random_{0};
  std::uint64_t threshold_ = 0;  // of 2^64: a packet is born
  std::deque<Waiting> queue_;
  std::vector<std::uint16_t> numbers_;  // by destination
  Header header_;
  Word word_{};
  PacketCrc crc_{Word{}};
  std::uint32_t place_ = 0, words_ = 0;  // of the packet on its way in; 0 words: none
  std::uint64_t born_ = 0, injected_ = 0;
};

// Cycles from birth to the last word, one by one below the highest.
class Latencies {
 public:
  Latencies() : counts_(kCycles) {}
  void add(std::uint64_t cycles) {
    ++counts_[cycles < kCycles ? cycles : kCycles - 1];
    sum_ += cycles;
    ++count_;
    max_ = cycles > max_ ? cycles : max_;
    min_ = cycles < min_ ? cycles : min_;
  }
  void add(const Latencies& other);
  std::uint64_t count() const { return count_; }
  std::uint64_t min() const { return min_; }
  std::uint64_t max() const { return max_; }
  double mean() const { return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_); }
  std::uint64_t at(double share) const;  // so many or fewer for that share of the packets

 private:
  static constexpr std::size_t kCycles = 32768;
  std::vector<std::uint32_t> counts_;
  std::uint64_t sum_ = 0, count_ = 0, min_ = ~std::uint64_t{0}, max_ = 0;
};

// The stream out of a node's local port.
class Sink {
 public:
  Sink(const Shape& shape, std::uint32_t node);

  void take(const Word& word, bool last, std::uint64_t cycle, const Window& window);

  std::uint64_t good() const {
    return good_;
  }  // every word was what was sent, in the order of its sender, after as many hops as there must be
  std::uint64_t flagged() const { return flagged_; }  // a link found it bad, and said so
  std::uint64_t wrong() const { return wrong_; }
  std::uint64_t skipped() const { return skipped_; }  // did not come before others of their sender
  std::uint64_t window_words() const { return window_words_; }
  // From the last word of the first packet that ended in the window to that of the last, and how many ended after the first.
  std::uint64_t row_cycles() const { return last_end_ - first_end_; }
  std::uint64_t row_packets() const { return row_packets_; }
  std::uint64_t hops() const { return hops_; }                          // of the good ones, in all
  std::uint64_t from(std::uint32_t node) const { return from_[node]; }  // packets that have its name, good and flagged
  const Latencies& latencies() const { return latencies_; }
  std::uint64_t last_header_cycle() const { return header_cycle_; }

 private:
  void take_header(const Word& word, std::uint64_t cycle);
  void take_footer(const Word& word, std::uint64_t cycle, const Window& window);

  const Shape shape_;
  const std::uint32_t node_;
  std::vector<std::uint16_t> numbers_;  // by sender: the next
  std::vector<std::uint64_t> from_;
  Header header_;
  PacketCrc crc_{Word{}};
  std::uint32_t place_ = 0;  // of the word that comes next
  bool differs_ = false;
  std::uint64_t good_ = 0, flagged_ = 0, wrong_ = 0, skipped_ = 0, window_words_ = 0, hops_ = 0, header_cycle_ = 0;
  std::uint64_t first_end_ = 0, last_end_ = 0, row_packets_ = 0;
  Latencies latencies_;
};

}  // namespace nanet::torus
