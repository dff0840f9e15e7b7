// SPDX-License-Identifier: Apache-2.0
// Tori of verilated nodes under load: every packet is compared, every one has a fate, and how many threads there are changes nothing.
#include <gtest/gtest.h>

#include <stdexcept>

#include "model/torus/torus.hpp"

namespace nanet::torus {
namespace {

struct Outcome {
  Books books;
  std::vector<std::uint64_t> words;
  std::uint64_t latency_max = 0;
  double latency_mean = 0;
};

Outcome run(const Settings& settings, const Load& load, std::uint64_t cycles = 1500) {
  Torus torus(settings);
  torus.set_load(load);
  torus.set_window({200, 200 + cycles});
  torus.run(200 + cycles);
  EXPECT_TRUE(torus.drain(50'000));
  EXPECT_EQ(torus.problem(), "");
  Outcome outcome{.books = torus.books(), .words = {}};
  Latencies latencies;
  for (std::size_t n = 0; n < torus.size(); ++n) {
    outcome.words.push_back(torus.node(n).sink().window_words());
    latencies.add(torus.node(n).sink().latencies());
  }
  outcome.latency_max = latencies.max();
  outcome.latency_mean = latencies.mean();
  return outcome;
}

void expect_all_came(const Books& books) {
  EXPECT_GT(books.injected, 50u);
  EXPECT_EQ(books.good, books.injected);
  EXPECT_EQ(books.flagged + books.wrong + books.skipped + books.losses() + books.links.noise, 0u);
}

TEST(Torus, AtFullLoadEveryPacketComes) {
  for (const auto& [shape, pattern] :
       {std::pair(Shape({4, 1, 1}), Pattern::uniform), std::pair(Shape({2, 2, 1}), Pattern::transpose),
        std::pair(Shape({1, 3, 2}), Pattern::hot_spot), std::pair(Shape({5, 1, 1}), Pattern::tornado)}) {
    for (const std::uint32_t bytes : {0u, 100u}) {
      SCOPED_TRACE(shape.text() + " " + std::to_string(bytes));
      expect_all_came(
          run({.shape = shape, .wire_cycles = 5}, {.pattern = pattern, .offered = 1.0, .payload_bytes = bytes, .seed = 7}, 600).books);
    }
  }
}

TEST(Torus, LongPacketsFillALink) {
  Torus torus({.shape = Shape({3, 1, 1}), .wire_cycles = 40});
  for (int k = 0; k < 16; ++k) torus.node(0).source().push(1, 4096, 0);
  torus.set_window({500, 4500});
  torus.run(4500);
  const Sink& sink = torus.node(1).sink();
  EXPECT_EQ(sink.row_cycles(), 262 * sink.row_packets());  // 256 of payload, and MAGIC, START, header, footer and a CREDIT of two
  EXPECT_GE(sink.row_packets(), 10u);
}

TEST(Torus, ThreadsChangeNothing) {
  const Load load{.pattern = Pattern::uniform, .offered = 0.7, .payload_bytes = 64, .seed = 3};
  const Outcome one = run({.shape = Shape({2, 2, 1}), .wire_cycles = 7, .threads = 1}, load);
  const Outcome three = run({.shape = Shape({2, 2, 1}), .wire_cycles = 7, .threads = 3}, load);
  expect_all_came(one.books);
  EXPECT_EQ(one.words, three.words);
  EXPECT_EQ(one.books.injected, three.books.injected);
  EXPECT_EQ(one.latency_max, three.latency_max);
  EXPECT_EQ(one.latency_mean, three.latency_mean);
}

// A hop is 14 cycles and the wire, 15 if a CREDIT is just leaving; the router alone 7, and a register before it.
TEST(Torus, AnIdleOneTakesAHopALink) {
  constexpr std::uint32_t kWire = 9;
  Torus torus({.shape = Shape({5, 1, 2}), .wire_cycles = kWire});
  torus.run(100);
  const auto cycles_to = [&](std::uint32_t to) {
    const std::uint64_t begin = torus.cycle();
    torus.node(0).source().push(to, 16, begin);
    torus.run(200);
    return torus.node(to).sink().last_header_cycle() - begin;
  };
  const std::uint64_t router = cycles_to(0);
  EXPECT_EQ(router, 7u);
  for (std::uint32_t to = 1; to < torus.size(); ++to) {
    const std::uint64_t links = torus.shape().distance(0, to), way = cycles_to(to) - router;
    EXPECT_GE(way, links * (14 + kWire)) << to;
    EXPECT_LE(way, links * (15 + kWire)) << to;
  }
  EXPECT_TRUE(torus.drain(10'000));
  EXPECT_EQ(torus.problem(), "");
}

TEST(Torus, ALinkThatGoesDownLosesOnlyByName) {
  Torus torus({.shape = Shape({3, 2, 1}), .wire_cycles = 12});
  torus.set_load({.pattern = Pattern::uniform, .offered = 0.9, .payload_bytes = 256, .seed = 5});
  torus.run(800);
  torus.set_link(1, 0, false);
  torus.run(400);
  torus.set_link(1, 0, true);
  torus.run(800);
  EXPECT_TRUE(torus.drain(50'000));
  EXPECT_EQ(torus.problem(), "");
  const Books books = torus.books();
  EXPECT_GT(books.links.drop_down, 0u);
  EXPECT_EQ(books.wrong, 0u);
  EXPECT_EQ(books.injected, books.good + books.flagged + books.losses());
  EXPECT_GT(books.good, 200u);
}

// Two credit periods after the last word, and a cycle to say so; no other link takes its neighbour for dead.
TEST(Torus, ADeadCableIsKnownAtBothEnds) {
  constexpr std::uint64_t kSilence = 2 * 192;
  Torus torus({.shape = Shape({3, 1, 1}), .wire_cycles = 10});
  torus.set_load({.pattern = Pattern::uniform, .offered = 0.9, .payload_bytes = 256, .seed = 5});
  torus.run(600);
  const std::uint64_t cut = torus.cycle() + torus.wire_cycles();
  torus.set_cable(2, 0, false);
  torus.run(kSilence + 20);
  for (const LinkCounts& link : {torus.node(2).link(0), torus.node(0).link(1)}) {
    EXPECT_EQ(link.silences, 1u);
    EXPECT_GT(link.silent_cycle, cut);
    EXPECT_LE(link.silent_cycle, cut + kSilence + 1);
  }
  EXPECT_EQ(torus.books().links.silences, 2u);
  torus.set_link(2, 0, false);
  torus.run(20);
  torus.set_cable(2, 0, true);
  torus.set_link(2, 0, true);
  torus.run(400);
  EXPECT_TRUE(torus.drain(50'000));
  EXPECT_EQ(torus.problem(), "");
  const Books books = torus.books();
  EXPECT_GT(books.in_wires, 0u);
  EXPECT_EQ(books.wrong, 0u);
  EXPECT_EQ(books.injected, books.good + books.flagged + books.losses());
}

TEST(Torus, AWireHasALength) {
  EXPECT_THROW(Torus({.shape = Shape({2, 1, 1}), .wire_cycles = 1}), std::invalid_argument);
  EXPECT_THROW(Torus({.shape = Shape({2, 1, 1}), .wire_cycles = 4097}), std::invalid_argument);
}

// What the sink must see: one packet as it was sent is good; any word, order or place changed is not.
TEST(Sink, SeesWhatIsNotWhatWasSent) {
  const Shape shape({3, 1, 1});
  const auto packet_of = [&shape] {
    Source source(shape, 1);
    source.push(2, 40, 77);
    std::vector<Word> words;
    for (bool last = false; !last;) {
      last = source.last();
      words.push_back(source.word());
      source.taken();
    }
    words[0][3] |= 1u << 14;  // a hop
    return words;
  };
  const auto taken = [&shape](const std::vector<Word>& words, std::uint32_t at = 2) {
    Sink sink(shape, at);
    for (std::size_t k = 0; k < words.size(); ++k) sink.take(words[k], k + 1 == words.size(), 100 + k, {0, 1000});
    return sink;
  };
  const std::vector<Word> words = packet_of();
  ASSERT_EQ(words.size(), packet_words(40));
  const Sink sink = taken(words);
  EXPECT_EQ(sink.good(), 1u);
  EXPECT_EQ(sink.wrong(), 0u);
  EXPECT_EQ(sink.latencies().max(), 100u + 4 - 77);
  for (std::size_t k = 0; k < words.size(); ++k) {
    for (std::size_t part = 0; part < 4; ++part) {
      std::vector<Word> changed = words;
      changed[k][part] ^= 1u << 20;
      EXPECT_EQ(taken(changed).good(), 0u) << k << " " << part;
    }
  }
  EXPECT_EQ(taken(words, 0).good(), 0u);                          // at another node
  EXPECT_EQ(taken({words.begin(), words.end() - 1}).good(), 0u);  // short
  Sink twice = taken(words);
  for (std::size_t k = 0; k < words.size(); ++k) twice.take(words[k], k + 1 == words.size(), 200, {0, 1000});
  EXPECT_EQ(twice.good(), 1u);
  EXPECT_EQ(twice.wrong(), 1u);
}

}  // namespace
}  // namespace nanet::torus
