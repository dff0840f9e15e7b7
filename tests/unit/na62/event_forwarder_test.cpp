// SPDX-License-Identifier: Apache-2.0
// Build and forward: every event leaves once and whole, under markers and running numbers that balance, and a second node that
// gets the packets answers as one that had got the boards' packets itself.
#include "na62/event_forwarder.hpp"

#include <gtest/gtest.h>

#include <map>

#include "../engine/support.hpp"
#include "na62/forward_processor.hpp"
#include "na62/protocols.hpp"
#include "na62/rich_trigger.hpp"
#include "nanet/engine/engine.hpp"
#include "nanet/engine/event_builder.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/engine/transmitter.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

using flow::Counter;
using test::Bytes;
using test::TestEvent;

struct Forwarded {
  std::uint64_t key;
  std::uint16_t number;
  std::vector<std::uint16_t> hits;
  bool operator==(const Forwarded&) const = default;
};

// A link, a receiver of any protocol, a CLOP and a sink of any kind.
class Node {
 public:
  Node(const Protocol& protocol_, std::uint32_t source_count_) : protocol(protocol_), source_count(source_count_) {
    std::vector<flow::Route> routes;
    for (std::uint8_t s = 0; s < source_count; ++s) routes.push_back({0x1C, s, s, 0});
    receiver = protocol.make_receiver({.batch_size = 16}, {link, clop, queue, flow::Router(routes), source_count});
  }
  // Moves everything from the link through the processor to the link's other side.
  void run(std::uint64_t now_ns) {
    while (receiver->poll(now_ns) > 0) {
      while (queue.peek() != nullptr) {
        consumer->poll(now_ns, now_ns);
        send();
      }
    }
  }
  void finish() {
    consumer->finish();
    send();
  }
  void build_for(std::unique_ptr<event::EventSink> sink, std::optional<MergeConfig> merge) {
    consumer = std::make_unique<EventBuilder>(queue, std::vector<EventOrigin>{{&clop, &protocol, 0}}, source_count, merge,
                                              std::move(sink), counters);
  }
  void forward(const na62::ForwardConfig& config, std::optional<MergeConfig> merge) {
    build_for(std::make_unique<na62::EventForwarder>(ring, sent_queue, config, counters, &transmitter), merge);
  }
  void send() {
    while (transmitter.poll(0) > 0) {
    }
    collect_sent(sent_queue, counters, Counter::packets_forwarded);  // as a lane does
  }
  std::uint64_t of_source(Counter counter, std::size_t source = 0) const {
    return receiver->source_counters(source).value(counter);
  }

  const Protocol& protocol;
  const std::uint32_t source_count;
  test::MemoryLink link;
  flow::Clop clop{flow::ClopConfig{.buffer_count = 64, .buffer_bytes = 1 << 18, .huge_pages = false, .locked = false}};
  flow::CompletionQueue queue{128};
  flow::TxRing ring{{.capacity = 4, .slot_bytes = 8972}};  // short, so that the writer has to wait for room
  flow::CompletionQueue sent_queue{8};
  flow::Counters counters;
  Transmitter transmitter{ring, link, sent_queue};
  std::unique_ptr<Receiver> receiver;
  std::unique_ptr<Consumer> consumer;
};

// What a node with a ring processor answers to these packets, by key.
std::map<std::uint64_t, std::uint16_t> answers_of(Node& node, std::optional<MergeConfig> merge, const std::vector<Bytes>& packets) {
  na62::RingMonitor monitor;
  na62::ChannelMonitor channels;
  na62::AnswerWriter writer(node.ring, node.sent_queue, {}, node.counters, &node.transmitter);
  node.build_for(std::make_unique<na62::RichTrigger>(na62::RichConfig{}, writer, node.counters, monitor, channels), merge);
  for (const Bytes& packet : packets) node.link.incoming.push_back({packet});
  node.run(1000);
  node.finish();
  node.consumer.reset();
  std::map<std::uint64_t, std::uint16_t> found;
  for (const Bytes& packet : node.link.outgoing) {
    wire::MtpView view;
    EXPECT_EQ(wire::MtpView::parse(packet, view), wire::ParseError::none);
    wire::for_each_primitive(view, [&](wire::Primitive primitive) {
      EXPECT_TRUE(found.emplace(event::event_key(primitive.timestamp, primitive.fine_time), primitive.id).second);
    });
  }
  return found;
}

class ForwarderTest : public ::testing::Test {
 protected:
  void make(std::uint32_t source_count, std::optional<MergeConfig> merge, std::uint32_t packet_bytes_max = 1472) {
    node = std::make_unique<Node>(na62::kMgp, source_count);
    node->forward({.source_sub_id = 0, .packet_bytes_max = packet_bytes_max}, merge);
  }
  std::uint64_t count(Counter counter) const { return node->counters.value(counter); }
  void give_boards(std::span<const TestEvent> events, std::uint8_t boards) {
    for (std::uint32_t p = 0; 16 * p < events.size(); ++p) {
      for (std::uint8_t board = 0; board < boards; ++board) {
        std::vector<TestEvent> parts;
        for (const TestEvent& event : events.subspan(16 * p, 16)) parts.push_back(test::part_of(event, board));
        node->link.incoming.push_back({test::make_packet(parts, p, board)});
      }
    }
  }
  // Events of all data packets sent, in order; checks what holds of every packet.
  std::vector<Forwarded> forwarded() const {
    std::vector<Forwarded> events;
    for (const Bytes& packet : node->link.outgoing) {
      wire::M2egpView view;
      EXPECT_EQ(wire::M2egpView::parse(packet, view), wire::ParseError::none);
      EXPECT_EQ(view.header().source_id, 0x1C);
      wire::for_each_event(view, [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
        events.push_back({event::event_key(event.timestamp, event.fine_time), event.event_number, {hits, hits + event.hit_count}});
      });
    }
    return events;
  }

  std::unique_ptr<Node> node;
};

std::vector<Forwarded> as_forwarded(std::span<const TestEvent> events) {
  std::vector<Forwarded> expected;
  for (const TestEvent& event : events) {
    expected.push_back(
        {event::event_key(event.time.timestamp, event.time.fine_time), static_cast<std::uint16_t>(expected.size()), event.hits});
  }
  return expected;
}

TEST_F(ForwarderTest, SendsEveryEventOfOneBoardInOrder) {
  make(1, std::nullopt);
  const auto events = test::make_events(16 * 300, 3);
  for (std::uint32_t p = 0; p < 300; ++p) {
    node->link.incoming.push_back({test::make_packet(std::span(events).subspan(16 * p, 16), p)});
  }
  node->run(1000);
  node->finish();
  EXPECT_EQ(forwarded(), as_forwarded(events));
  EXPECT_EQ(count(Counter::events_forwarded), events.size());
  EXPECT_EQ(count(Counter::events_answered), 0u);
  collect_sent(node->sent_queue, node->counters, Counter::packets_forwarded);
  EXPECT_EQ(count(Counter::packets_forwarded), node->link.outgoing.size());
}

TEST_F(ForwarderTest, MergesAndBalances) {
  make(4, MergeConfig{.window_us = 1, .open_events_max = 1024});
  const auto events = test::make_events(16 * 100, 6);
  give_boards(events, 4);
  node->link.incoming.pop_back();  // 16 events lose a part
  node->run(1000);
  node->consumer->poll(2000, 2000);
  node->finish();
  const auto sent = forwarded();
  ASSERT_EQ(sent.size(), events.size() - 16);
  for (std::size_t e = 0; e < sent.size(); ++e) {
    EXPECT_EQ(sent[e].number, e);
    auto hits = events[e].hits;  // as merged: board by board
    std::ranges::stable_sort(hits, {}, [](std::uint16_t hit) { return wire::hit_channel(hit) / 512; });
    EXPECT_EQ(sent[e].hits, hits);
  }
  EXPECT_EQ(count(Counter::events_complete), events.size() - 16);
  EXPECT_EQ(count(Counter::events_missing_parts), 16u);
  EXPECT_EQ(count(Counter::events_forwarded) + count(Counter::events_discarded),
            count(Counter::events_complete) + count(Counter::events_missing_parts) + count(Counter::events_overflow));
}

TEST_F(ForwarderTest, FullPacketsHaveOneLengthAndEventsFillThem) {
  for (const std::uint32_t packet_bytes : {280u, 1472u, 8972u}) {
    make(1, std::nullopt, packet_bytes);
    std::vector<TestEvent> events(16 * 40);
    for (std::size_t e = 0; e < events.size(); ++e) {
      events[e].time.timestamp = static_cast<std::uint32_t>(e);
      events[e].hits.assign(20, 7);
    }
    for (std::uint32_t p = 0; p < 40; ++p) {
      node->link.incoming.push_back({test::make_packet(std::span(events).subspan(16 * p, 16), p)});
    }
    node->run(1000);
    node->finish();
    EXPECT_EQ(forwarded(), as_forwarded(events));
    std::size_t full = 0;
    for (const Bytes& packet : node->link.outgoing) {
      EXPECT_LE(packet.size(), packet_bytes);
      full += packet.size() == packet_bytes;
    }
    EXPECT_GT(full, 0u) << packet_bytes;
    EXPECT_GT(count(Counter::forwards_waited), 0u) << "the ring has four slots";
  }
}

TEST_F(ForwarderTest, RunsAreMarkedAndNumberedFromZero) {
  make(2, MergeConfig{.window_us = 1000, .open_events_max = 1024});
  const auto first = test::make_events(64, 9, 5000);
  const auto second = test::make_events(32, 10, 100);
  for (const auto* events : {&first, &second}) {
    for (std::uint8_t board = 0; board < 2; ++board) node->link.incoming.push_back({test::make_start_marker(0, 0, board)});
    give_boards(*events, 2);
    const auto packets = static_cast<std::uint32_t>(events->size() / 16);
    for (std::uint8_t board = 0; board < 2; ++board) {
      node->link.incoming.push_back({test::make_end_marker(packets, events->size(), board)});
    }
    node->run(1000);
  }
  node->finish();
  node->finish();      // once is enough
  std::string course;  // S, E: markers; d: data
  std::vector<std::uint64_t> numbers;
  std::uint32_t sequence = 0;
  for (const Bytes& packet : node->link.outgoing) {
    wire::M2egpView view;
    ASSERT_EQ(wire::M2egpView::parse(packet, view), wire::ParseError::none);
    if (view.is_marker()) {
      course += view.header().run_start ? 'S' : 'E';
      numbers.push_back(view.next_event_number());
      if (view.header().run_start) sequence = 0;
      EXPECT_EQ(view.header().sequence, sequence);
    } else {
      if (course.back() != 'd') course += 'd';
      EXPECT_EQ(view.header().sequence, sequence++);
    }
  }
  EXPECT_EQ(course, "SSSdEEESSSdEEE");
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{0, 0, 0, 64, 64, 64, 0, 0, 0, 32, 32, 32}));
}

TEST_F(ForwarderTest, ARunWithoutEventsIsARunToo) {
  make(1, std::nullopt);
  node->finish();
  ASSERT_EQ(node->link.outgoing.size(), 6u);
  EXPECT_TRUE(forwarded().empty());
  EXPECT_EQ(node->transmitter.residence_ns().count(), 0u) << "markers answer no packet";
}

TEST_F(ForwarderTest, EventsOfPacketsThatTheLinkDropsAreUnsentAndNotForwarded) {
  make(1, std::nullopt);
  node->link.takes = 3 + 7;  // start markers, and so many packets of events
  const auto events = test::make_events(16 * 40, 3);
  for (std::uint32_t p = 0; p < 40; ++p) {
    node->link.incoming.push_back({test::make_packet(std::span(events).subspan(16 * p, 16), p)});
  }
  node->run(1000);
  node->finish();
  EXPECT_EQ(count(Counter::events_forwarded), forwarded().size());
  EXPECT_GT(count(Counter::events_forwarded), 0u);
  EXPECT_GT(count(Counter::events_unsent), 0u);
  EXPECT_EQ(count(Counter::events_forwarded) + count(Counter::events_unsent), events.size());
}

TEST_F(ForwarderTest, CutsWhatTheFormatCannotHoldAndSaysSo) {
  make(1, std::nullopt);
  Bytes room(1472);
  wire::MgpBuilder builder(room);
  builder.begin(wire::MgpLayout::packed);
  std::vector<std::uint16_t> hits(200);
  for (std::size_t h = 0; h < hits.size(); ++h) hits[h] = static_cast<std::uint16_t>(h);
  builder.add_event({}, hits);
  builder.add_event({.timestamp = 1}, std::span(hits).first(128));
  const auto packet = builder.finish({.source_id = 0x1C});
  node->link.incoming.push_back({Bytes(packet.begin(), packet.end())});
  node->run(1000);
  const auto sent = forwarded();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].hits, std::vector<std::uint16_t>(hits.begin(), hits.begin() + 128));
  EXPECT_EQ(sent[1].hits, sent[0].hits);
  EXPECT_EQ(count(Counter::events_forwarded_cut), 1u);
}

// Two nodes in a row against one: the same answers, and the second node's books against the first one's.
TEST_F(ForwarderTest, ASecondNodeAnswersAsTheFirstWouldHave) {
  const MergeConfig merge{.window_us = 1, .open_events_max = 1024};
  make(4, merge);
  const auto events = test::make_events(16 * 200, 21);
  give_boards(events, 4);
  std::vector<Bytes> boards;
  for (const auto& incoming : node->link.incoming) boards.push_back(incoming.payload);
  node->run(1000);
  node->finish();

  Node direct(na62::kMgp, 4);
  const auto expected = answers_of(direct, merge, boards);
  Node second(na62::kM2egp, 1);
  const auto answers = answers_of(second, std::nullopt, node->link.outgoing);
  EXPECT_EQ(answers.size(), events.size());
  EXPECT_EQ(answers, expected);
  EXPECT_EQ(second.of_source(Counter::events_received), count(Counter::events_forwarded));
  EXPECT_EQ(second.of_source(Counter::events_lost), 0u);
  EXPECT_EQ(second.of_source(Counter::packets_marker), 6u);
  EXPECT_EQ(second.counters.value(Counter::events_answered), count(Counter::events_forwarded));
}

// Two forwarding nodes, each with two boards, and a third that merges their halves.
TEST_F(ForwarderTest, MergedHalvesCanBeMergedAgain) {
  const MergeConfig merge{.window_us = 1, .open_events_max = 1024};
  const auto events = test::make_events(16 * 50, 22);
  Node third(na62::kM2egp, 2);
  for (std::uint8_t half = 0; half < 2; ++half) {
    Node first(na62::kMgp, 2);
    first.forward({.source_sub_id = half}, merge);
    for (std::uint32_t p = 0; p < 50; ++p) {
      for (std::uint8_t board = 0; board < 2; ++board) {
        std::vector<TestEvent> parts;
        for (const TestEvent& event : std::span(events).subspan(16 * p, 16)) {
          parts.push_back(test::part_of(event, 2u * half + board));
        }
        first.link.incoming.push_back({test::make_packet(parts, p, board)});
      }
    }
    first.run(1000);
    first.finish();
    for (const Bytes& packet : first.link.outgoing) third.link.incoming.push_back({packet});
  }
  third.forward({}, merge);
  third.run(1000);
  third.finish();
  EXPECT_EQ(third.counters.value(Counter::events_complete), events.size());
  EXPECT_EQ(third.counters.value(Counter::events_forwarded), events.size());
}

TEST(ForwarderSetUp, TheEngineRefusesWhatCannotBeForwarded) {
  EngineConfig config;
  LinkConfig& link = config.links.emplace_back();
  link.name = "boards";
  link.endpoint = "udp://127.0.0.1:0";
  link.protocol = &na62::kMgp;
  link.sources.emplace_back().name = "board0";
  const auto with = [&](std::uint32_t packet_bytes_max) {
    EngineConfig made = config;
    made.processor = std::make_shared<na62::ForwardProcessor>(na62::ForwardConfig{.packet_bytes_max = packet_bytes_max});
    return made;
  };
  EXPECT_THROW(Engine{config}, SetupError) << "no processor";
  EXPECT_THROW(Engine{with(1472)}, SetupError) << "no destination";
  config.send = SendConfig{.name = "forward", .endpoints = {"udp://127.0.0.1:9"}};
  EXPECT_NO_THROW(Engine{with(1472)});
  for (const std::uint32_t bytes : {278u, 1473u, 8974u}) EXPECT_THROW(Engine{with(bytes)}, SetupError) << bytes;
  config.links[0].protocol = &kRaw;
  EXPECT_THROW(Engine{with(1472)}, SetupError) << "no events";
  config.links[0].protocol = nullptr;
  EXPECT_THROW(Engine{with(1472)}, SetupError) << "no protocol";
}

}  // namespace
}  // namespace nanet::engine
