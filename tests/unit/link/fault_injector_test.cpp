// SPDX-License-Identifier: Apache-2.0
// The fault injector in virtual time over a scripted link; what it did is read from the packets alone and compared with its books.
#include "nanet/link/fault_injector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

// Gives packets 0, 1, 2, ... in batches of at most `batch`. Payload of packet n: n as u32, then bytes that depend on n and the place.
class Script : public Link {
 public:
  std::uint32_t packets_total = 0;
  std::uint32_t batch = 50;
  std::uint32_t packet_bytes = 96;
  std::uint32_t next = 0;
  std::uint32_t drop_before = ~0u;  // this packet carries after_drop
  std::uint64_t waited_ns = 0;
  std::uint32_t sent = 0;

  static std::vector<std::byte> make(std::uint32_t n, std::uint32_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::uint32_t i = 0; i < bytes; ++i) {
      data[i] = i < 4 ? static_cast<std::byte>(n >> (8 * i)) : static_cast<std::byte>((n * 31 + i * 7) >> 3);
    }
    return data;
  }

  std::size_t min_room_bytes() const override { return 256; }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t) override {
    RxBatch result;
    while (next < packets_total && result.packet_count < std::min<std::size_t>(batch, packets.size()) &&
           result.bytes_used + packet_bytes <= room.size()) {
      const auto data = make(next, packet_bytes);
      std::copy(data.begin(), data.end(), room.begin() + result.bytes_used);
      const std::uint16_t flags = next == drop_before ? RxPacket::after_drop : std::uint16_t{0};
      packets[result.packet_count++] = {result.bytes_used, static_cast<std::uint16_t>(packet_bytes), 4321, 0x7F000001, flags, 0};
      result.bytes_used += (packet_bytes + 7u) & ~7u;
      ++next;
    }
    return result;
  }
  void send(std::span<const TxPacket> packets, std::uint64_t) override { sent += static_cast<std::uint32_t>(packets.size()); }
  void wait(std::uint64_t timeout_ns) override { waited_ns = timeout_ns; }
  Endpoint local() const override { return {}; }
  std::string path() const override { return "memory"; }
  std::vector<std::string> notes() const override { return {}; }
  LinkStats stats() const override {
    LinkStats stats;
    stats.rx_packets = next;
    return stats;
  }
};

struct Delivered {
  std::vector<std::byte> data;
  RxPacket packet;
  std::uint64_t time_ns;

  std::uint32_t number() const {
    std::uint32_t n = 0;
    std::memcpy(&n, data.data(), std::min<std::size_t>(4, data.size()));
    return n;
  }
};

struct Bench {
  explicit Bench(const FaultConfig& config, std::uint32_t packets_total, std::uint32_t batch = 50) {
    auto owned = std::make_unique<Script>();
    script = owned.get();
    script->packets_total = packets_total;
    script->batch = batch;
    injector = std::make_unique<FaultInjector>(std::move(owned), config);
  }

  std::uint32_t receive(std::size_t room_bytes = 1 << 16, std::size_t entries = 256) {
    std::vector<std::byte> room(room_bytes);
    std::vector<RxPacket> packets(entries);
    const RxBatch got = injector->receive(room, packets, now_ns);
    EXPECT_LE(got.bytes_used, room.size());
    for (const RxPacket& p : std::span(packets).first(got.packet_count)) {
      EXPECT_LE(p.offset + std::size_t{p.bytes}, got.bytes_used);
      delivered.push_back({{room.begin() + p.offset, room.begin() + p.offset + p.bytes}, p, now_ns});
    }
    return got.packet_count;
  }

  void run(std::size_t room_bytes = 1 << 16, std::size_t entries = 256) {
    while (script->next < script->packets_total || injector->faults().held != 0) {
      receive(room_bytes, entries);
      now_ns += 10'000;
    }
  }

  Script* script;
  std::unique_ptr<FaultInjector> injector;
  std::uint64_t now_ns = 1'000'000;
  std::vector<Delivered> delivered;
};

FaultConfig every_fault(double each) {
  FaultConfig config;
  config.loss = config.duplicate = config.reorder = config.corrupt = config.truncate = config.delay = each;
  config.seed = 42;
  return config;
}

std::uint32_t bits_between(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    bits += static_cast<std::uint32_t>(std::popcount(std::to_integer<unsigned>(a[i] ^ b[i])));
  }
  return bits;
}

TEST(FaultInjector, WithoutFaultsNothingHappens) {
  Bench bench({}, 1000);
  bench.run();
  ASSERT_EQ(bench.delivered.size(), 1000u);
  for (std::uint32_t n = 0; n < 1000; ++n) {
    EXPECT_EQ(bench.delivered[n].data, Script::make(n, 96));
    EXPECT_EQ(bench.delivered[n].packet.peer_port, 4321);
  }
  EXPECT_EQ(bench.injector->faults().passed, 1000u);
  EXPECT_EQ(bench.injector->faults().received(), 1000u);
}

TEST(FaultInjector, BooksAreExactWithEveryFaultAtOnce) {
  constexpr std::uint32_t kTotal = 100'000;
  Bench bench(every_fault(0.01), kTotal);
  bench.run();
  const FaultStats books = bench.injector->faults();
  EXPECT_EQ(books.received(), kTotal);
  EXPECT_EQ(books.held, 0u);
  EXPECT_EQ(bench.delivered.size(), kTotal - books.lost + books.duplicated);
  // An expectation of 1000 each; 5 standard deviations are 160.
  for (const std::uint64_t n : {books.lost, books.duplicated, books.reordered, books.corrupted, books.truncated, books.delayed}) {
    EXPECT_NEAR(static_cast<double>(n), 1000, 160);
  }

  std::map<std::uint32_t, std::uint32_t> intact;  // number -> times seen
  std::uint64_t harmed = 0;
  std::uint64_t shortened = 0;
  for (const Delivered& d : bench.delivered) {
    if (d.data.size() < 96) {
      ++shortened;
      continue;
    }
    if (d.number() < kTotal && d.data == Script::make(d.number(), 96)) {
      ++intact[d.number()];
    } else {
      ++harmed;
    }
  }
  EXPECT_EQ(shortened, books.truncated);
  EXPECT_EQ(harmed, books.corrupted);
  std::uint64_t once = 0;
  std::uint64_t twice = 0;
  for (const auto& [number, times] : intact) {
    once += times == 1;
    twice += times == 2;
    ASSERT_LE(times, 2u) << number;
  }
  EXPECT_EQ(once, books.passed + books.reordered + books.delayed);
  EXPECT_EQ(twice, books.duplicated);
  EXPECT_EQ(kTotal - intact.size(), books.lost + books.corrupted + books.truncated);
}

TEST(FaultInjector, CorruptFlipsOneToEightBits) {
  FaultConfig config;
  config.corrupt = 1;
  Bench bench(config, 5000);
  bench.run();
  ASSERT_EQ(bench.delivered.size(), 5000u);
  std::map<std::uint32_t, int> bits_seen;
  for (std::uint32_t n = 0; n < 5000; ++n) {
    ++bits_seen[bits_between(bench.delivered[n].data, Script::make(n, 96))];
  }
  EXPECT_EQ(bits_seen.begin()->first, 1u);
  EXPECT_EQ(bits_seen.rbegin()->first, 8u);
  EXPECT_EQ(bits_seen.size(), 8u);
  EXPECT_EQ(bench.injector->faults().corrupted, 5000u);
}

TEST(FaultInjector, TruncateKeepsTheBeginning) {
  FaultConfig config;
  config.truncate = 1;
  Bench bench(config, 5000);
  bench.run();
  std::size_t shortest = 96;
  std::size_t longest = 0;
  for (std::uint32_t n = 0; n < 5000; ++n) {
    const auto whole = Script::make(n, 96);
    const auto& data = bench.delivered[n].data;
    ASSERT_TRUE(std::equal(data.begin(), data.end(), whole.begin()));
    shortest = std::min(shortest, data.size());
    longest = std::max(longest, data.size());
  }
  EXPECT_EQ(shortest, 0u);
  EXPECT_EQ(longest, 95u);
}

TEST(FaultInjector, ReorderedPacketComesBehindOneToEightOthers) {
  FaultConfig config;
  config.reorder = 0.05;
  Bench bench(config, 20'000);
  bench.run();
  ASSERT_EQ(bench.delivered.size(), 20'000u);
  const FaultStats books = bench.injector->faults();
  std::uint64_t displaced = 0;
  std::map<std::uint32_t, int> behind_seen;
  std::uint32_t newest = 0;
  for (std::size_t i = 0; i < bench.delivered.size(); ++i) {
    const std::uint32_t number = bench.delivered[i].number();
    if (number < newest) {
      ++displaced;
      // Those let through between its turn and now: the packets that pass it, less those that are themselves displaced.
      std::uint32_t behind = 0;
      std::uint32_t top = number;
      for (std::size_t j = i; j-- > 0 && i - j < 64;) {
        const std::uint32_t other = bench.delivered[j].number();
        const bool in_turn = std::none_of(bench.delivered.begin() + static_cast<std::ptrdiff_t>(j > 64 ? j - 64 : 0),
                                          bench.delivered.begin() + static_cast<std::ptrdiff_t>(j),
                                          [&](const Delivered& d) { return d.number() > other; });
        behind += other > number && in_turn;
        top = std::max(top, other);
      }
      ++behind_seen[behind];
    }
    newest = std::max(newest, number);
  }
  EXPECT_EQ(books.passed + books.reordered, 20'000u);
  // The last packets may find nothing that passes them.
  EXPECT_LE(displaced, books.reordered);
  EXPECT_GE(displaced + 8, books.reordered);
  EXPECT_EQ(behind_seen.begin()->first, 1u);
  EXPECT_EQ(behind_seen.rbegin()->first, 8u);
}

TEST(FaultInjector, TheSameSeedGivesTheSamePacketsHoweverTheyAreBatched) {
  FaultConfig config = every_fault(0.02);
  config.delay = 0;  // would depend on the time
  config.hold_max_ns = 1'000'000'000'000;
  Bench one(config, 5000, 1);
  Bench many(config, 5000, 100);
  while (one.script->next < 5000) {
    one.receive();
  }
  while (many.script->next < 5000) {
    many.receive();
  }
  ASSERT_EQ(one.delivered.size(), many.delivered.size());
  for (std::size_t i = 0; i < one.delivered.size(); ++i) {
    ASSERT_EQ(one.delivered[i].data, many.delivered[i].data) << i;
  }
  config.seed = 43;
  Bench other(config, 5000, 100);
  while (other.script->next < 5000) {
    other.receive();
  }
  EXPECT_FALSE(std::equal(other.delivered.begin(), other.delivered.end(), many.delivered.begin(), many.delivered.end(),
                          [](const Delivered& a, const Delivered& b) { return a.data == b.data; }));
}

TEST(FaultInjector, DelayedPacketComesAtItsTime) {
  FaultConfig config;
  config.delay = 1;
  config.delay_us = 123;
  Bench bench(config, 1);
  EXPECT_EQ(bench.receive(), 0u);
  EXPECT_EQ(bench.injector->faults().held, 1u);
  bench.now_ns = 1'000'000 + 122'999;
  EXPECT_EQ(bench.receive(), 0u);
  bench.injector->wait(5'000'000);
  EXPECT_EQ(bench.script->waited_ns, 1u);  // not longer than until it is due
  bench.now_ns += 1;
  EXPECT_EQ(bench.receive(), 1u);
  EXPECT_EQ(bench.delivered[0].data, Script::make(0, 96));
  EXPECT_EQ(bench.injector->faults().delayed, 1u);
  EXPECT_EQ(bench.injector->faults().held, 0u);
  bench.injector->wait(5'000'000);
  EXPECT_EQ(bench.script->waited_ns, 5'000'000u);
}

TEST(FaultInjector, HeldPacketsComeOutWhenNothingNewArrives) {
  FaultConfig config;
  config.reorder = 0.5;
  config.duplicate = 0.5;
  config.hold_max_ns = 700'000;
  Bench bench(config, 6);
  bench.receive();
  const FaultStats books = bench.injector->faults();
  ASSERT_GT(books.held, 0u);
  const std::size_t before = bench.delivered.size();
  bench.now_ns += 699'999;
  EXPECT_EQ(bench.receive(), 0u);
  bench.now_ns += 1;
  EXPECT_EQ(bench.receive(), books.held);
  EXPECT_EQ(bench.delivered.size(), before + books.held);
  EXPECT_EQ(bench.delivered.size(), 6 + books.duplicated);
}

TEST(FaultInjector, FullStorageLetsPacketsPassUnharmed) {
  FaultConfig config;
  config.delay = 1;
  config.delay_us = 1'000'000;
  config.held_max = 10;
  Bench bench(config, 100);
  while (bench.script->next < 100) {
    bench.receive();
  }
  const FaultStats books = bench.injector->faults();
  EXPECT_EQ(books.delayed, 10u);
  EXPECT_EQ(books.held, 10u);
  EXPECT_EQ(books.passed, 90u);
  EXPECT_EQ(bench.delivered.size(), 90u);
}

TEST(FaultInjector, LongPacketsAreNotHeld) {
  FaultConfig config;
  config.delay = 0.5;
  config.duplicate = 0.5;
  config.packet_bytes_max = 88;
  Bench bench(config, 100);
  bench.run();
  EXPECT_EQ(bench.injector->faults().passed, 100u);
  EXPECT_EQ(bench.delivered.size(), 100u);
}

// The least room and few entries: slower, but nothing more is lost than the books say.
TEST(FaultInjector, SmallRoomsAndFewEntriesLoseNothing) {
  for (const std::size_t entries : {1u, 2u, 3u, 7u}) {
    FaultConfig config = every_fault(0.1);
    Bench bench(config, 3000, 50);
    bench.run(bench.injector->min_room_bytes(), entries);
    const FaultStats books = bench.injector->faults();
    EXPECT_EQ(books.received(), 3000u);
    EXPECT_EQ(bench.delivered.size(), 3000 - books.lost + books.duplicated);
  }
}

TEST(FaultInjector, TheReportOfDropsSurvivesALoss) {
  FaultConfig config;
  config.loss = 0.5;
  Bench bench(config, 200);
  bench.script->drop_before = 100;
  bench.run();
  std::uint32_t flagged = 0;
  for (const Delivered& d : bench.delivered) {
    if (d.packet.flags == RxPacket::after_drop) {
      ++flagged;
      EXPECT_GE(d.number(), 100u);
      EXPECT_LE(d.number(), 120u);
    }
  }
  EXPECT_EQ(flagged, 1u);
}

TEST(FaultInjector, SendPassesThrough) {
  Bench bench(every_fault(0.1), 0);
  const std::vector<TxPacket> packets(7);
  bench.injector->send(packets, 0);
  EXPECT_EQ(bench.script->sent, 7u);
}

TEST(FaultInjector, NewProbabilitiesHoldFromTheNextBatch) {
  Bench bench({}, 4000, 100);
  bench.receive();
  EXPECT_EQ(bench.injector->faults().passed, 100u);
  bench.injector->reconfigure({.duplicate = 1});
  bench.injector->reconfigure({.loss = 1});  // the last one counts
  EXPECT_EQ(bench.injector->faults().lost, 0u);
  bench.receive();
  EXPECT_EQ(bench.injector->faults().lost, 100u);
  EXPECT_EQ(bench.injector->faults().duplicated, 0u);
  bench.injector->reconfigure({.delay = 1, .delay_us = 50});
  bench.receive();
  EXPECT_EQ(bench.injector->faults().held, 100u);
  bench.injector->reconfigure({});
  bench.now_ns += 49'999;
  bench.receive();
  EXPECT_EQ(bench.injector->faults().held, 100u) << "what is held back stays so until its time";
  bench.now_ns += 1;
  bench.run();
  const FaultStats faults = bench.injector->faults();
  EXPECT_EQ(faults.received(), 4000u);
  EXPECT_EQ(faults.delayed, 100u);
  EXPECT_EQ(bench.delivered.size(), 3900u);
}

TEST(FaultInjector, WhatCannotBeUsedChangesNothing) {
  Bench bench({.loss = 1}, 200, 100);
  EXPECT_THROW(bench.injector->reconfigure({.loss = 2}), SetupError);
  EXPECT_THROW(bench.injector->reconfigure({.loss = 0.6, .delay = 0.6}), SetupError);
  bench.receive();
  EXPECT_EQ(bench.injector->faults().lost, 100u);
}

// With either plan every packet meets a fault; only with pieces of both could one pass.
TEST(FaultInjector, ReconfiguredByAnotherThreadItIsNeverBetweenTwoPlans) {
  const FaultConfig one{.loss = 0.5, .truncate = 0.5}, other{.duplicate = 0.5, .corrupt = 0.5};
  Bench bench(one, 0, 20);
  std::atomic<bool> done{false};
  std::thread control([&] {
    for (int n = 0; !done.load(); ++n) bench.injector->reconfigure(n % 2 == 0 ? other : one);
  });
  FaultStats faults;
  std::size_t delivered = 0;
  do {  // however late the other thread gets its turn
    bench.script->packets_total += 20'000;
    bench.run();
    delivered += std::exchange(bench.delivered, {}).size();
    faults = bench.injector->faults();
    std::this_thread::yield();
  } while (faults.lost == 0 || faults.corrupted == 0);
  done = true;
  control.join();
  EXPECT_EQ(faults.received(), bench.script->packets_total);
  EXPECT_EQ(faults.passed, 0u);
  EXPECT_EQ(delivered, faults.received() - faults.lost + faults.duplicated);
}

TEST(FaultInjector, RefusesWhatIsNoProbability) {
  const auto problem = [](const FaultConfig& config) {
    try {
      FaultInjector(std::make_unique<Script>(), config);
    } catch (const SetupError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  FaultConfig config;
  config.reorder = 1.5;
  EXPECT_NE(problem(config).find("cannot use reorder (1.5 must be at most 1)"), std::string::npos);
  config.reorder = -0.1;
  EXPECT_NE(problem(config).find("must be at least 0"), std::string::npos);
  config.reorder = 0.6;
  config.loss = 0.6;
  EXPECT_NE(problem(config).find("the probabilities add up to 1.2"), std::string::npos);
  config.loss = 0.4;
  EXPECT_EQ(problem(config), "");
}

}  // namespace
}  // namespace nanet::link
