// SPDX-License-Identifier: Apache-2.0
// What a host may do wrong to the NIC, and when: answers that come late, poisoned or never, pages that are gone, doorbells at every moment and beyond
// the ring, a reset in mid-packet. No queue hangs, no access is astray, each thing has its counter, and the next packet goes through.
#include <array>
#include <string>

#include "hand_ring.hpp"
#include "wire_rig.hpp"

namespace nanet::link::gateware::wire {
namespace {

class BadHostTest : public WireRig {
 protected:
  std::vector<Bytes> sent_payloads() {
    std::vector<Bytes> payloads;
    for (const Bytes& frame : left()) {
      UdpView view;
      EXPECT_EQ(read_udp_frame(frame, view), FrameError::none);
      payloads.emplace_back(view.payload.begin(), view.payload.end());
    }
    return payloads;
  }

  // The whole ring, once.
  void expect_it_sends(HandRing& ring) {
    model->step(2000);
    model->wire_out().frames().clear();
    std::vector<Bytes> payloads;
    for (std::uint32_t k = 0; k < HandRing::kEntries; ++k) ring.put(k, payloads.emplace_back(300 + k, static_cast<std::byte>(k)));
    ring.ring(HandRing::kEntries);
    const Completion* last = ring.wait_for(HandRing::kEntries - 1);
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(last->kind, CompletionKind::packet_sent);
    model->step(500);
    EXPECT_TRUE(sent_payloads() == payloads);
    EXPECT_FALSE(ring.fault());
    EXPECT_FALSE(ring.busy());
  }
};

// Some payloads are answered with an error, all late and out of order: those are not sent, and everything else is, in order.
TEST_F(BadHostTest, PoisonedPayloadsAmongLateAnswersAreNotSent) {
  start({.write_cycles = 200, .read_cycles_min = 500, .read_cycles_max = 4000, .busy_per_1024 = 100, .seed = 6});
  std::mt19937_64 random(6);
  std::vector<Bytes> expected;
  std::uint64_t errors = 0, rung = 0;
  for (int round = 0; round < 25; ++round) {
    std::vector<Bytes> batch(1 + random() % 8);
    for (Bytes& payload : batch) ASSERT_TRUE(driver->send(payload = random_bytes(random, 1 + random() % 500), 2, 1));
    rung += batch.size();
    const bool poisoned = round % 3 == 1;
    model->step(300);  // every descriptor is asked for, and none is there: what is asked for from now on is payload
    model->bus().fail_reads(poisoned);
    std::size_t done = 0;
    for (int k = 0; k < 200'000 && done < batch.size(); ++k) {
      device->poll();
      const Completion* completion = driver->poll_sent();
      if (completion == nullptr) continue;
      EXPECT_EQ(completion->kind, poisoned ? CompletionKind::error : CompletionKind::packet_sent);
      poisoned ? static_cast<void>(++errors) : expected.push_back(batch[done]);
      ++done;
    }
    ASSERT_EQ(done, batch.size());
    model->bus().fail_reads(false);
  }
  model->step(2000);
  const std::vector<Bytes> seen = sent_payloads();
  EXPECT_TRUE(seen == expected) << seen.size() << " frames, not " << expected.size();
  EXPECT_GT(errors, 10u);
  EXPECT_EQ(tx_count(tx::unreadable), errors);
  EXPECT_GE(tx_count(tx::read_error), errors);  // one for each request, and a payload may be two
  expect_balanced(rung);
  EXPECT_TRUE(model->bus().idle());
}

TEST_F(BadHostTest, AReadThatIsNeverAnsweredIsSaidAndAResetEndsIt) {
  start();
  ASSERT_TRUE(driver->send(Bytes(100), 2, 1));
  model->step(20);
  ASSERT_FALSE(model->bus().idle());
  model->bus().forget();
  model->step((1 << 20) + 100);
  EXPECT_EQ(model->read(0x428) >> 34 & 1, 1u);
  model->reset();
  EXPECT_EQ(model->read(0x428) >> 32, 0u);
  drive();
  HandRing ring(*model, *device);
  expect_it_sends(ring);
}

TEST_F(BadHostTest, AFullRingRefusesAndEmptiesInOrder) {
  for (const std::uint32_t read_cycles : {60u, 3000u}) {
    start({.read_cycles_min = read_cycles / 2, .read_cycles_max = read_cycles, .seed = 7});
    std::mt19937_64 random(7);
    std::vector<Bytes> sent;
    int refused = 0;
    std::uint64_t tag = 0;
    for (int k = 0; k < 400'000 && (sent.size() < 300 || driver->under_way() != 0); ++k) {
      const Bytes payload = random_bytes(random, 1 + random() % 1472);
      if (sent.size() < 300 && driver->send(payload, 2, sent.size()))
        sent.push_back(payload);
      else
        ++refused;
      device->poll();
      if (const Completion* done = driver->poll_sent()) {
        EXPECT_EQ(done->tag, tag++);
      }
    }
    model->step(500);
    EXPECT_GT(refused, 100);
    const std::vector<Bytes> seen = sent_payloads();
    EXPECT_TRUE(seen == sent) << seen.size() << " frames, not " << sent.size();
    pushed = 0;
    expect_balanced(300);
    TearDown();
  }
}

// Rung one by one or several at once, while descriptors before them are being read, and again as soon as a place is free.
TEST_F(BadHostTest, DoorbellsAtEveryMomentLoseAndDoubleNothing) {
  start({.write_cycles = 20, .read_cycles_min = 5, .read_cycles_max = 150, .busy_per_1024 = 100, .seed = 8});
  HandRing ring(*model, *device);
  std::mt19937_64 random(8);
  std::vector<Bytes> sent;
  std::uint32_t put = 0, rung = 0, done = 0;
  for (int k = 0; k < 400'000 && done < 800; ++k) {
    while (done < rung && ring.completion(done) != nullptr) {
      EXPECT_EQ(ring.completion(done)->kind, CompletionKind::packet_sent);
      EXPECT_EQ(ring.completion(done)->tag, done);
      ++done;
    }
    if (put < 800 && put - done < HandRing::kEntries && random() % 2 == 0) {
      ring.put(put++, sent.emplace_back(random_bytes(random, 1 + random() % 200)));
    }
    if (rung != put && random() % 3 == 0) ring.ring(rung = put);
    model->step(random() % 24);
  }
  ASSERT_EQ(done, 800u);
  model->step(500);
  const std::vector<Bytes> seen = sent_payloads();
  EXPECT_TRUE(seen == sent) << seen.size() << " frames, not " << sent.size();
  expect_balanced(800);
}

TEST_F(BadHostTest, ADescriptorThatIsRungBeforeItIsWrittenIsRefused) {
  start();
  HandRing ring(*model, *device);
  const Bytes payload(64, std::byte{4});
  ring.put(0, payload);
  ring.put(1, payload).sequence = 7;  // as it was the last time round, or will be
  ring.put(2, payload);
  ring.ring(3);
  ASSERT_NE(ring.wait_for(2), nullptr);
  EXPECT_EQ(ring.completion(0)->kind, CompletionKind::packet_sent);
  EXPECT_EQ(ring.completion(1)->kind, CompletionKind::error);
  EXPECT_EQ(ring.completion(2)->kind, CompletionKind::packet_sent);
  model->step(500);
  EXPECT_EQ(sent_payloads().size(), 2u);
  EXPECT_EQ(tx_count(tx::refused), 1u);
  expect_balanced(3);
}

TEST_F(BadHostTest, ADoorbellBeyondTheRingOrBackwardsStopsItUntilItBeginsAnew) {
  start({.read_cycles_min = 100, .read_cycles_max = 300, .seed = 9});
  HandRing ring(*model, *device);
  const auto stray_bell = [&](std::uint32_t good, std::uint64_t cycles, std::uint32_t bell) {
    SCOPED_TRACE(std::to_string(good) + ", then " + std::to_string(bell) + " after " + std::to_string(cycles));
    ring.restart();
    for (std::uint32_t k = 0; k < HandRing::kEntries; ++k) ring.put(k, Bytes(100, static_cast<std::byte>(k)));
    ring.ring(good);
    model->step(cycles);
    ring.ring(bell);
    model->step(5000);
    EXPECT_TRUE(ring.fault());
    EXPECT_FALSE(ring.busy());
    EXPECT_LE(sent_payloads().size(), HandRing::kEntries);
    ring.restart();
    expect_it_sends(ring);
  };
  for (const std::uint64_t cycles : {1u, 120u, 250u, 4000u}) {
    stray_bell(4, cycles, 13);
    stray_bell(8, cycles, 0x8000'0000);
    stray_bell(6, cycles, 0xFFFF'FFFF);
    stray_bell(6, cycles, 2);
  }
}

// Addresses of no region, beyond its pages, not readable, not aligned, among good ones, as fast as the ring goes.
TEST_F(BadHostTest, AStormOfMissedTranslationsSendsOnlyWhatMayBeRead) {
  start({.read_cycles_min = 20, .read_cycles_max = 200, .seed = 10});
  HandRing ring(*model, *device);
  std::mt19937_64 random(10);
  std::vector<Bytes> expected;
  std::uint64_t refused = 0, missed = 0;
  std::uint32_t put = 0, done = 0;
  std::array<bool, HandRing::kEntries> good{};
  for (int k = 0; k < 400'000 && done < 600; ++k) {
    if (const Completion* completion = ring.completion(done); done < put && completion != nullptr) {
      EXPECT_EQ(completion->kind == CompletionKind::packet_sent, good[done % HandRing::kEntries]) << done;
      ++done;
    }
    if (put < 600 && put - done < HandRing::kEntries) {
      const Bytes payload = random_bytes(random, 1 + random() % 400);
      TxDescriptor& descriptor = ring.put(put, payload);
      const auto kind = random() % 8;
      good[put % HandRing::kEntries] = kind >= 5;
      if (kind == 0) descriptor.address = std::uint64_t{15} << 40;
      if (kind == 1) descriptor.address += std::uint64_t{1} << 30;
      if (kind == 2) descriptor.address = ring.write_only_address();
      if (kind == 3) descriptor.address += 4;
      if (kind == 4) descriptor.address |= std::uint64_t{1} << 60;
      if (kind >= 5) expected.push_back(payload);
      missed += kind <= 2;
      refused += kind == 3 || kind == 4;
      ring.ring(++put);
    }
    model->step();
  }
  ASSERT_EQ(done, 600u);
  model->step(500);
  const std::vector<Bytes> seen = sent_payloads();
  EXPECT_TRUE(seen == expected) << seen.size() << " frames, not " << expected.size();
  EXPECT_EQ(tx_count(tx::unreadable), missed);
  EXPECT_EQ(tx_count(tx::read_fault), missed);
  EXPECT_EQ(tx_count(tx::refused), refused);
  expect_balanced(600);
}

TEST_F(BadHostTest, ARingWhosePageIsGoneStopsAndGoesOnWithThePage) {
  start();
  HandRing ring(*model, *device);
  ring.set_ring_valid(false);
  ring.put(0, Bytes(50));
  ring.ring(1);
  model->step(1000);
  EXPECT_TRUE(ring.fault());
  EXPECT_FALSE(ring.busy());
  EXPECT_GE(tx_count(tx::read_fault), 1u);
  ring.set_ring_valid(true);
  ring.restart();
  expect_it_sends(ring);
}

// The buffers' region goes away under a stream of packets: nothing is written, each packet is in one counter, and after the CLOP was disabled and its
// memory is back the next packets arrive.
TEST_F(BadHostTest, AClopWhosePagesAreGoneDropsAndBeginsAnew) {
  start({}, {.clops = {{.timeout_ns = 0}}});
  const std::uint64_t region = 1 | std::uint64_t{8} << 16 | std::uint64_t{16} << 40 | std::uint64_t{1} << 48;  // as the driver set it
  model->write(0x060, region);
  std::mt19937_64 random(11);
  for (int k = 0; k < 300; ++k) push(udp_frame(random_bytes(random, 1 + random() % 1472)));
  run_dry();
  EXPECT_TRUE(received.empty());
  EXPECT_EQ(model->read(0x230) >> 33 & 1, 1u);
  EXPECT_GT(rx_count(rx::disabled), 250u);
  expect_balanced(0);
  model->write(0x200, 0);
  model->step(3000);
  model->write(0x060, region | std::uint64_t{1} << 45);
  model->write(0x200, 1);
  std::vector<Bytes> good;
  for (int k = 0; k < 64; ++k) push(udp_frame(good.emplace_back(random_bytes(random, 1 + random() % 900))));
  receive(good.size());
  run_dry();
  EXPECT_TRUE(received == good) << received.size();
  expect_balanced(0);
}

TEST_F(BadHostTest, AResetAtAnyMomentForgetsAllAndWhatComesThenIsNew) {
  start({.write_cycles = 30, .read_cycles_min = 50, .read_cycles_max = 400, .busy_per_1024 = 50, .seed = 12});
  std::mt19937_64 random(12);
  for (int round = 0; round < 25; ++round) {
    SCOPED_TRACE(round);
    for (int k = 0; k < 6; ++k) {
      push(udp_frame(random_bytes(random, 1 + random() % 1472)));
      ASSERT_TRUE(driver->send(random_bytes(random, 1 + random() % 1472), 2, 1));
    }
    model->step(random() % 900);
    model->reset();
    const std::uint64_t writes = model->bus().write_count(), reads = model->bus().read_count();
    while (model->wire_in().waiting() != 0) model->step();
    model->step(500);
    EXPECT_EQ(model->bus().write_count(), writes);
    EXPECT_EQ(model->bus().read_count(), reads);
    EXPECT_TRUE(model->bus().idle());
    model->wire_out().frames().clear();
    drive();
    pushed = 0;
    received.clear();
    std::uint64_t before = 0;  // frames that came between reset and driver
    for (unsigned k = 0; k < rx::stored; ++k) before += rx_count(k);
    const Bytes in = random_bytes(random, 1 + random() % 1472), out = random_bytes(random, 1 + random() % 1472);
    push(udp_frame(in));
    ASSERT_TRUE(driver->send(out, 2, 1));
    receive(1);
    for (int k = 0; k < 5000 && driver->under_way() != 0; ++k) {
      device->poll();
      driver->poll_sent();
    }
    model->step(500);
    EXPECT_EQ(received, std::vector<Bytes>{in});
    ASSERT_EQ(model->wire_out().frames().size(), 1u);
    EXPECT_EQ(model->wire_out().frames()[0].bytes.size(), std::max<std::size_t>(60, kFrameHeaderBytes + out.size()));
    pushed += before;
    expect_balanced(1);
  }
}

}  // namespace
}  // namespace nanet::link::gateware::wire
