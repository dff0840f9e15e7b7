// SPDX-License-Identifier: Apache-2.0
// The whole emulator over the loopback interface, against small engines made here: one that answers all, and some that misbehave.
#include "emulate/emulator.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "nanet/config/read.hpp"
#include "nanet/rich/finder.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::emulate {
namespace {

using namespace std::chrono_literals;

// Receives the boards' packets, puts parts together by time, and answers each event when its last part is in.
class Responder {
 public:
  explicit Responder(std::uint32_t boards) : boards_(boards), room_(1 << 20) {
    link::UdpConfig config;
    config.listen = link::parse_endpoint("udp://127.0.0.1:0");
    receive_ = std::make_unique<link::UdpLink>(config);
  }
  ~Responder() { stop(); }

  std::string endpoint() const { return link::to_string(receive_->local()); }

  // `change` may alter a primitive, drop it (false), or write more of them.
  void start(const Emulator& emulator, std::function<bool(wire::Primitive&, wire::MtpWriter&)> change = {}) {
    link::UdpConfig config;
    config.destinations = {emulator.answers_endpoint()};
    answer_ = std::make_unique<link::UdpLink>(config);
    change_ = std::move(change);
    thread_ = std::thread([this] {
      while (!stopping_) turn();
    });
  }
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // Read after stop().
  std::map<std::uint8_t, int> start_markers;
  std::map<std::uint8_t, int> end_markers;
  std::map<std::uint8_t, std::uint64_t> packets;
  std::map<std::uint8_t, std::uint64_t> announced_events;  // by the end marker
  std::uint64_t sequence_breaks = 0;

 private:
  void turn() {
    receive_->wait(1'000'000);
    std::array<link::RxPacket, 256> descriptors;
    const link::RxBatch batch = receive_->receive(room_, descriptors, 0);
    for (std::uint32_t i = 0; i < batch.packet_count; ++i) {
      wire::MgpView view;
      ASSERT_EQ(wire::MgpView::parse(std::span(room_).subspan(descriptors[i].offset, descriptors[i].bytes), view),
                wire::ParseError::none);
      take(view);
    }
    if (writer_.primitive_count() > 0) post();
  }

  void take(const wire::MgpView& view) {
    const std::uint8_t board = view.header().source_sub_id;
    if (view.is_marker()) {
      ++(view.header().run_start ? start_markers : end_markers)[board];
      if (view.header().run_end) announced_events[board] = view.next_event_number();
      return;
    }
    if (view.header().sequence != packets[board]) ++sequence_breaks;
    ++packets[board];
    std::array<std::uint16_t, wire::kMgpScratchHits> scratch;
    wire::for_each_event(view, scratch.data(), [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
      Open& open = open_[{event.timestamp, event.fine_time}];
      open.hits.insert(open.hits.end(), hits, hits + event.hit_count);
      if (++open.parts < boards_) return;
      const rich::EventRings rings = rich::find_rings_scalar({}, {open.hits.data(), static_cast<std::uint32_t>(open.hits.size())});
      answer({event.timestamp, event.fine_time, rich::primitive_id(rings, rich::Decision{})});
      open_.erase({event.timestamp, event.fine_time});
    });
  }

  void answer(wire::Primitive primitive) {
    if (writer_.primitive_count() == 0) writer_.begin(0x1C, 0, primitive.timestamp);
    if (change_ && !change_(primitive, writer_)) return;
    if (!writer_.add(primitive)) {
      post();
      writer_.begin(0x1C, 0, primitive.timestamp);
      ASSERT_TRUE(writer_.add(primitive));
    }
  }

  void post() {
    const auto bytes = writer_.finish();
    const link::TxPacket packet{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0};
    answer_->send({&packet, 1}, 0);
    writer_.begin(0x1C, 0, 0);
  }

  struct Open {
    std::vector<std::uint16_t> hits;
    std::uint32_t parts = 0;
  };
  std::uint32_t boards_;
  std::vector<std::byte> room_;
  std::vector<std::byte> answer_room_ = std::vector<std::byte>(1472);
  wire::MtpWriter writer_{answer_room_};
  std::unique_ptr<link::UdpLink> receive_;
  std::unique_ptr<link::UdpLink> answer_;
  std::function<bool(wire::Primitive&, wire::MtpWriter&)> change_;
  std::map<std::pair<std::uint32_t, std::uint8_t>, Open> open_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

constexpr std::uint64_t kEvents = 640;
constexpr std::uint64_t kPackets = kEvents / 16;

// So few packets that a socket buffer of any default size holds them all: nothing is lost, however long a thread has to wait for its turn.
EmulatorConfig small_config(const Responder& responder) {
  EmulatorConfig config;
  config.destinations = {responder.endpoint()};
  config.answers = "udp://127.0.0.1:0";
  config.pool_events = 310;  // becomes 320: two laps
  config.outstanding_events = 65536;
  config.rate_events_per_s = 10e3;
  config.duration_s = 0;
  config.events_total = kEvents;
  config.drain_ms = 30'000;  // not used up where every event is answered
  return config;
}

void send_to(const link::Endpoint& endpoint, std::span<const std::byte> bytes) {
  link::UdpConfig config;
  config.destinations = {endpoint};
  link::UdpLink sender(config);
  const link::TxPacket packet{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0};
  sender.send({&packet, 1}, 0);
}

EmulatorSnapshot run_to_end(Emulator& emulator) {
  while (emulator.running()) std::this_thread::sleep_for(2ms);
  emulator.stop();
  return emulator.snapshot();
}

class EmulatorLayouts : public testing::TestWithParam<std::pair<std::uint32_t, wire::MgpLayout>> {};

TEST_P(EmulatorLayouts, EveryEventIsAnsweredOnce) {
  Responder responder(GetParam().first);
  EmulatorConfig config = small_config(responder);
  config.boards = GetParam().first;
  config.layout = GetParam().second;
  config.first_timestamp = 0xFFFFFF00u;
  Emulator emulator(config);
  responder.start(emulator);
  emulator.start();
  const EmulatorSnapshot end = run_to_end(emulator);
  responder.stop();

  EXPECT_EQ(end.phase, RunPhase::finished);
  EXPECT_EQ(end.events_sent, kEvents);
  EXPECT_EQ(end.packets_sent, kPackets * config.boards);
  EXPECT_EQ(end.answers.answered, kEvents);
  EXPECT_EQ(end.events_unanswered(), 0u);
  EXPECT_EQ(end.answers.primitives, kEvents);
  EXPECT_EQ(end.answers.unknown + end.answers.duplicate + end.answers.stale + end.answers.wrong + end.answers.bad_primitives, 0u);
  EXPECT_EQ(end.answers.packets_bad_length + end.answers.packets_bad_format + end.answers.packets_bad_source, 0u);
  EXPECT_EQ(end.latency.count(), kEvents);
  EXPECT_GT(end.latency.min(), 0u);
  EXPECT_LE(end.latency_clean.count(), end.latency.count());
  EXPECT_EQ(end.send_lateness.count(), kPackets);
  EXPECT_EQ(end.link.tx_packets, end.packets_sent + end.markers_sent);
  EXPECT_GE(end.markers_sent, 6u * config.boards);  // more where answers were late
  EXPECT_GE(end.elapsed_ns, emulator.schedule()->packet(kPackets - 1).due_ns);
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  for (const CoursePoint& point : end.course) {
    sent += point.events_sent;
    answered += point.events_answered;
  }
  EXPECT_EQ(sent, kEvents);
  EXPECT_EQ(answered, kEvents);

  EXPECT_EQ(responder.sequence_breaks, 0u);
  ASSERT_EQ(responder.packets.size(), config.boards);
  for (const auto& [board, packets] : responder.packets) {
    EXPECT_EQ(packets, kPackets);
    EXPECT_EQ(responder.start_markers[board], 3);
    EXPECT_EQ(3u + static_cast<std::uint64_t>(responder.end_markers[board]), end.markers_sent / config.boards);
    EXPECT_EQ(responder.announced_events[board], kEvents);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EmulatorLayouts,
                         testing::Values(std::pair{1u, wire::MgpLayout::padded}, std::pair{4u, wire::MgpLayout::padded},
                                         std::pair{4u, wire::MgpLayout::packed}));

TEST(Emulator, WhatTheEngineDoesWrongIsCountedByName) {
  Responder responder(1);
  EmulatorConfig config = small_config(responder);
  config.drain_ms = 2000;  // used up: events stay unanswered
  Emulator emulator(config);
  std::uint64_t number = 0;
  responder.start(emulator, [&](wire::Primitive& primitive, wire::MtpWriter& writer) {
    ++number;
    if (number <= 100) return false;                                                                  // 100 lost
    if (number <= 150) writer.add(primitive);                                                         // 50 twice
    if (number > 200 && number <= 230) primitive.timestamp += 1'000'000'000;                          // 30 of no event
    if (number > 300 && number <= 307) primitive.id = static_cast<std::uint16_t>(primitive.id ^ 1u);  // 7 with a wrong ring
    if (number > 400 && number <= 411) primitive.id |= 0x8000;                                        // 11 impossible
    return true;
  });
  emulator.start();
  send_to(emulator.answers_endpoint(), std::vector<std::byte>(7));
  send_to(emulator.answers_endpoint(), std::vector<std::byte>(12));
  const EmulatorSnapshot end = run_to_end(emulator);
  EXPECT_EQ(end.events_sent, kEvents);
  EXPECT_EQ(end.answers.answered, kEvents - 100 - 30 - 11);
  EXPECT_EQ(end.events_unanswered(), 141u);
  EXPECT_EQ(end.answers.duplicate, 50u);
  EXPECT_EQ(end.answers.unknown, 30u);
  EXPECT_EQ(end.answers.wrong, 7u);
  EXPECT_EQ(end.answers.bad_primitives, 11u);
  EXPECT_EQ(end.answers.packets_bad_length, 2u);
  EXPECT_EQ(end.answers.primitives,
            end.answers.answered + end.answers.duplicate + end.answers.stale + end.answers.unknown + end.answers.bad_primitives);
}

TEST(Emulator, SpillsBurstsAndDurationEndTheRunByThemselves) {
  Responder responder(1);
  EmulatorConfig config = small_config(responder);
  config.events_total = 0;
  config.duration_s = 0.3;
  config.spill_s = 0.1;
  config.pause_s = 0.1;
  config.burst_packets = 4;
  Emulator emulator(config);
  responder.start(emulator);
  emulator.start();
  const EmulatorSnapshot end = run_to_end(emulator);
  EXPECT_NEAR(static_cast<double>(end.events_sent), 2000, 200);  // 0.2 s of 10 kHz
  EXPECT_EQ(end.answers.answered, end.events_sent);
}

TEST(Emulator, AsFastAsPossibleEndsByNumberAndByTime) {
  Responder responder(1);
  EmulatorConfig config = small_config(responder);
  config.rate_events_per_s = 0;
  config.drain_ms = 100;
  {
    Emulator emulator(config);
    responder.start(emulator);
    emulator.start();
    const EmulatorSnapshot end = run_to_end(emulator);
    EXPECT_EQ(end.events_sent, kEvents);
    EXPECT_EQ(end.send_lateness.count(), 0u);
    EXPECT_EQ(end.answers.unknown + end.answers.duplicate + end.answers.wrong, 0u);
    EXPECT_EQ(end.answers.answered + end.events_unanswered(), kEvents);
  }
  responder.stop();
  config.events_total = 0;
  config.duration_s = 0.02;
  config.drain_ms = 1;
  Emulator timed(config);
  timed.start();
  const EmulatorSnapshot end = run_to_end(timed);
  EXPECT_GT(end.events_sent, 0u);
  EXPECT_GE(end.elapsed_ns, 20'000'000u);
}

// Of boards that send to a socket which no one reads.
struct Unanswered {
  Unanswered() : sink({.listen = link::parse_endpoint("udp://127.0.0.1:0")}) {
    config.destinations = {link::to_string(sink.local())};
    config.answers = "udp://127.0.0.1:0";
    config.pool_events = 256;
  }
  link::UdpLink sink;
  EmulatorConfig config;
};

// The sender is exact where a packet is due, and leaves the core to others in a pause and while it waits for what may not come.
TEST(Emulator, SleepsWhereNothingIsDue) {
  Unanswered boards;
  EmulatorConfig& config = boards.config;
  config.rate_events_per_s = 160e3;
  config.spill_s = 0.01;
  config.pause_s = 0.5;
  config.duration_s = 0.55;
  config.drain_ms = 500;
  Emulator emulator(config);
  const std::clock_t before = std::clock();  // CPU time of this process
  const auto began = std::chrono::steady_clock::now();
  emulator.start();
  const EmulatorSnapshot end = run_to_end(emulator);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.6 * took.count());  // one that spins takes all of it
  EXPECT_GT(end.elapsed_ns, 510'000'000u);
  EXPECT_NEAR(static_cast<double>(end.packets_sent), 200, 60);
  EXPECT_EQ(end.events_unanswered(), end.events_sent);
}

// No one answers: each packet is waited for 100 ms and then given up.
TEST(Emulator, WaitsForAnswersWhenToldToAndGivesUp) {
  Unanswered boards;
  EmulatorConfig& config = boards.config;
  config.duration_s = 0;
  config.rate_events_per_s = 1e6;
  config.events_total = 16 * 4;
  config.in_flight_packets_max = 1;
  config.drain_ms = 1;
  Emulator emulator(config);
  emulator.start();
  while (emulator.running()) std::this_thread::sleep_for(1ms);
  const EmulatorSnapshot snapshot = emulator.snapshot();
  EXPECT_EQ(snapshot.packets_sent, 4u);
  EXPECT_GE(snapshot.elapsed_ns, 300'000'000u);
}

TEST(Emulator, WaitingForAnswersLosesNone) {
  Responder responder(1);
  EmulatorConfig config;
  config.destinations = {responder.endpoint()};
  config.answers = "udp://127.0.0.1:0";
  config.pool_events = 1024;
  config.duration_s = 0;
  config.rate_events_per_s = 0;
  config.events_total = 16 * 200;
  config.in_flight_packets_max = 1;
  Emulator emulator(config);
  responder.start(emulator);
  emulator.start();
  while (emulator.running()) std::this_thread::sleep_for(1ms);
  responder.stop();
  const EmulatorSnapshot snapshot = emulator.snapshot();
  EXPECT_EQ(snapshot.answers.answered, 16u * 200);
  EXPECT_EQ(snapshot.answers.packets, 200u) << "an answer packet for each, since only one packet was in flight";
}

TEST(Emulator, StopsWhenAskedAndCanBeWatched) {
  Responder responder(1);
  EmulatorConfig config = small_config(responder);
  config.events_total = 0;
  Emulator emulator(config);
  EXPECT_EQ(emulator.snapshot().phase, RunPhase::ready);
  EXPECT_FALSE(emulator.running());
  responder.start(emulator);
  emulator.start();
  EXPECT_TRUE(emulator.running());
  EXPECT_THROW(emulator.start(), SetupError);
  for (int i = 0; i < 30; ++i) {
    const EmulatorSnapshot now = emulator.snapshot();
    EXPECT_LE(now.answers.answered, now.events_sent);
    std::this_thread::sleep_for(5ms);
  }
  emulator.stop();
  EXPECT_FALSE(emulator.running());
  const EmulatorSnapshot end = emulator.snapshot();
  EXPECT_EQ(end.phase, RunPhase::finished);
  EXPECT_GT(end.events_sent, 0u);
  EXPECT_EQ(end.answers.answered, end.events_sent);
  emulator.stop();
  EXPECT_THROW(emulator.start(), SetupError);
}

TEST(Emulator, OnlyChecksOrOnlySends) {
  EmulatorConfig config;
  config.destinations.clear();
  config.answers = "udp://127.0.0.1:0";
  config.duration_s = 0.2;
  config.drain_ms = 0;
  Emulator checks_only(config);
  checks_only.start();
  std::vector<std::byte> room(1472);
  wire::MtpWriter writer(room);
  writer.begin(0x1C, 0, 0);
  writer.add({5, 6, 0x4000});
  send_to(checks_only.answers_endpoint(), writer.finish());
  EmulatorSnapshot end = run_to_end(checks_only);
  EXPECT_EQ(end.answers.unknown, 1u);
  EXPECT_EQ(end.events_sent, 0u);

  Responder responder(1);
  config = small_config(responder);
  config.answers.reset();
  config.drain_ms = 0;
  config.rate_events_per_s = 1e6;
  Emulator sends_only(config);
  sends_only.start();
  end = run_to_end(sends_only);
  EXPECT_EQ(end.events_sent, kEvents);
  EXPECT_EQ(end.answers.packets, 0u);
}

TEST(Emulator, RefusesToRunUnpinnedWhenPinningWasAsked) {
  Responder responder(1);
  EmulatorConfig config = small_config(responder);
  config.cpu_core = 100'000;
  Emulator emulator(config);
  EXPECT_THROW(emulator.start(), SetupError);
  EXPECT_FALSE(emulator.running());
  EXPECT_EQ(emulator.snapshot().events_sent, 0u);
}

TEST(EmulatorConfig, EachValueOutOfRangeIsRefused) {
  const std::vector<std::function<void(EmulatorConfig&)>> spoil = {
      [](EmulatorConfig& c) { c.boards = 2; },
      [](EmulatorConfig& c) { c.layout = static_cast<wire::MgpLayout>(3); },
      [](EmulatorConfig& c) { c.events_per_packet = 0; },
      [](EmulatorConfig& c) { c.events_per_packet = 17; },
      [](EmulatorConfig& c) { c.packet_bytes = 1000; },
      [](EmulatorConfig& c) {
        c.layout = wire::MgpLayout::packed;
        c.packet_bytes = 1474;
      },
      [](EmulatorConfig& c) {
        c.layout = wire::MgpLayout::packed;
        c.packet_bytes = 999;
      },
      [](EmulatorConfig& c) {
        c.layout = wire::MgpLayout::packed;
        c.first_sub_id = 4;
      },
      [](EmulatorConfig& c) { c.pool_events = 255; },
      [](EmulatorConfig& c) { c.rate_events_per_s = -1; },
      [](EmulatorConfig& c) { c.rate_events_per_s = 2e9; },
      [](EmulatorConfig& c) { c.duration_s = -1; },
      [](EmulatorConfig& c) { c.drain_ms = 60'001; },
      [](EmulatorConfig& c) { c.burst_packets = 0; },
      [](EmulatorConfig& c) { c.burst_packets = 49; },
      [](EmulatorConfig& c) { c.stall_ns = 0; },
      [](EmulatorConfig& c) { c.outstanding_events = 0; },
      [](EmulatorConfig& c) { c.destinations.resize(3, c.destinations[0]); },
      [](EmulatorConfig& c) {
        c.destinations.clear();
        c.answers.reset();
      },
      [](EmulatorConfig& c) {
        c.xdp = XdpPath{.interface = "lo"};
        c.answers.reset();
      },
  };
  const EmulatorConfig good;
  EXPECT_NO_THROW(config::require(good));
  for (std::size_t i = 0; i < spoil.size(); ++i) {
    EmulatorConfig bad = good;
    spoil[i](bad);
    EXPECT_THROW(config::require(bad), SetupError) << i;
  }
}

// Where the L0 trigger processor would be: counts the detectors' packets, and says of each event that the responder answered that it is a
// trigger.
TEST(Emulator, DetectorsAndDecisions) {
  link::UdpConfig listen;
  listen.listen = link::parse_endpoint("udp://127.0.0.1:0");
  link::UdpLink l0tp(listen);
  Responder responder(1);
  EmulatorConfig config = small_config(responder);
  config.detectors = DetectorBankConfig{.endpoint = link::to_string(l0tp.local()), .frame_us = 1'000};
  for (DetectorConfig& detector : config.detectors->detectors) detector.accidental_rate_hz = 0;
  config.decisions = "udp://127.0.0.1:0";
  Emulator emulator(config);
  link::UdpConfig sends;
  sends.destinations = {emulator.decisions_endpoint()};
  link::UdpLink decisions(sends);
  std::array<std::byte, wire::kL0DecisionBytesMax> room{};
  wire::L0DecisionWriter decision(room);
  std::uint64_t triggers = 0;
  responder.start(emulator, [&](wire::Primitive& primitive, wire::MtpWriter&) {
    decision.begin(0, triggers++);
    decision.add({primitive.timestamp, primitive.fine_time, 1, 1});
    const auto bytes = decision.finish();
    const link::TxPacket packet{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0};
    decisions.send({&packet, 1}, 0);
    return true;
  });
  emulator.start();
  const EmulatorSnapshot snapshot = run_to_end(emulator);
  responder.stop();
  EXPECT_EQ(snapshot.answers.answered, kEvents);
  EXPECT_EQ(snapshot.decisions.physics, kEvents);
  EXPECT_EQ(snapshot.decisions.unknown + snapshot.decisions.stale + snapshot.decisions.missing, 0u);
  EXPECT_EQ(snapshot.decision_latency.count(), kEvents);

  std::map<std::uint8_t, DetectorCounts> got;
  std::vector<std::byte> buffer(1 << 20);
  std::array<link::RxPacket, 64> packets;
  for (auto batch = l0tp.receive(buffer, packets, 0); batch.packet_count > 0; batch = l0tp.receive(buffer, packets, 0)) {
    for (std::uint32_t i = 0; i < batch.packet_count; ++i) {
      wire::MtpView view;
      ASSERT_EQ(wire::MtpView::parse(std::span(buffer).subspan(packets[i].offset, packets[i].bytes), view), wire::ParseError::none);
      ++got[view.source_id()].packets;
      got[view.source_id()].primitives += view.primitive_count();
    }
  }
  ASSERT_EQ(snapshot.detectors.size(), 6u);
  for (std::size_t d = 0; d < 6; ++d) {
    const DetectorCounts& counts = snapshot.detectors[d];
    EXPECT_EQ(counts.events_shown, kEvents);
    EXPECT_GE(counts.packets, 60u);  // of 1 ms, for 64 ms
    EXPECT_LE(counts.events_seen - counts.primitives, 2u);
    const std::uint8_t source = config.detectors->detectors[d].source_id;
    EXPECT_EQ(got[source].packets, counts.packets);
    EXPECT_EQ(got[source].primitives, counts.primitives);
  }
}

TEST(Emulator, DetectorsNeedBoardsAndTheirTime) {
  Responder responder(1);
  EmulatorConfig config = small_config(responder);
  config.detectors = DetectorBankConfig{.endpoint = "udp://127.0.0.1:9", .detectors = {DetectorConfig{}}};
  EmulatorConfig unpaced = config;
  unpaced.rate_events_per_s = 0;
  EXPECT_THROW(Emulator{unpaced}, SetupError);
  config.destinations.clear();
  EXPECT_THROW(Emulator{config}, SetupError);
}

}  // namespace
}  // namespace nanet::emulate
