// SPDX-License-Identifier: Apache-2.0
// The link over a simulated torus: hosts and simulation in one process and one thread, so that every run is the same to the cycle.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>

#include "link/torus/torus_file.hpp"
#include "model/torus/rdma_shared.hpp"
#include "nanet/link/torus.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

using Bytes = std::vector<std::byte>;

// Unlike any other, whatever its length.
Bytes payload_of(std::uint32_t number, std::size_t bytes) {
  Bytes payload(bytes);
  for (std::size_t k = 0; k < bytes; ++k) payload[k] = static_cast<std::byte>(number * 131 + k * 7 + k / 251);
  return payload;
}

std::uint64_t counted(const Link& link, std::string_view group, std::string_view name) {
  for (const NicCounts& one : link.nic_counts()) {
    for (const auto& [key, value] : one.counts) {
      if (one.name == group && key == name) return value;
    }
  }
  ADD_FAILURE() << "no counter " << group << "." << name;
  return 0;
}

std::string refusal(const TorusConfig& config) {
  try {
    open_torus(config);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

class TorusLinkTest : public testing::Test {
 protected:
  void start(const char* shape, std::uint32_t wire_cycles = 4) {
    simulation.reset();  // first its file goes
    simulation.emplace(torus::Shape::read(shape), path, wire_cycles);
  }
  TorusConfig config_of(std::uint32_t node, std::vector<std::uint32_t> senders = {}, std::vector<std::uint32_t> to = {}) const {
    TorusConfig config;
    config.name = "n" + std::to_string(node);
    config.listen = Endpoint{"torus", node, 0};
    for (const std::uint32_t one : to) config.destinations.push_back({"torus", one, 0});
    config.packet_bytes_max = 9000;
    config.file = path;
    config.senders = std::move(senders);
    config.slot_count = 4;
    config.wait_ms = 0;  // nothing happens while it waits: this thread simulates
    return config;
  }
  void settle() {
    int turns = 0;
    for (int quiet = 0; quiet < 3; ++turns) {
      quiet = simulation->turn() ? 0 : quiet + 1;
      ASSERT_LT(turns, 1'000'000);
    }
  }
  void send(Link& link, const Bytes& payload, std::uint32_t destination = 0) {
    const TxPacket packet{payload.data(), static_cast<std::uint32_t>(payload.size()), destination};
    link.send({&packet, 1}, now_ns += 100'000'000);
  }
  // What has come, by the sender's node: all, or in one call so many at most.
  std::map<int, std::deque<Bytes>> take(Link& link, std::size_t most = 0) {
    std::map<int, std::deque<Bytes>> found;
    RxPacket packets[8];
    Bytes room(40'000);
    while (true) {
      const RxBatch batch = link.receive(room, std::span(packets).first(most != 0 ? most : std::size(packets)), 0);
      for (std::uint32_t k = 0; k < batch.packet_count; ++k) {
        const auto at = room.begin() + packets[k].offset;
        found[packets[k].peer_port - 1].emplace_back(at, at + packets[k].bytes);
        after_drops += packets[k].flags == RxPacket::after_drop ? 1 : 0;
      }
      if (batch.packet_count == 0 || most != 0) return found;
    }
  }
  // The receiver says hello back, and from then on there is room.
  void greet(Link& from, Link& to) {
    send(from, payload_of(0, 8));
    settle();
    take(to);
    settle();
    EXPECT_EQ(from.stats().tx_dropped, 1u);
  }
  void expect_books(const Link& from, const Link& to) {
    EXPECT_EQ(from.stats().tx_packets, to.stats().rx_packets + to.stats().rx_kernel_dropped);
    EXPECT_EQ(from.stats().tx_dropped,
              counted(from, "slots", "no_receiver") + counted(from, "slots", "unsendable") + counted(from, "slots", "no_credit"));
  }

  const std::string path = "/dev/shm/nanet-torus-test-" + std::to_string(::getpid());
  std::optional<torus::SharedTorus> simulation;
  std::uint64_t now_ns = 0;
  int after_drops = 0;
};

TEST_F(TorusLinkTest, payloads_of_all_lengths_come_as_they_left_both_ways) {
  start("2x2x1");
  const auto a = open_torus(config_of(0, {3}, {3})), b = open_torus(config_of(3, {0}, {0}));
  greet(*a, *b);
  greet(*b, *a);
  std::uint32_t number = 0;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{17}, std::size_t{1472},
                                  std::size_t{4081}, std::size_t{9000}}) {
    for (Link* const from : {a.get(), b.get()}) {
      Link& to = from == a.get() ? *b : *a;
      const Bytes payload = payload_of(++number, bytes);
      send(*from, payload);
      settle();
      const auto found = take(to);
      ASSERT_EQ(found.size(), 1u) << bytes;
      EXPECT_EQ(found.begin()->first, from == a.get() ? 0 : 3);
      EXPECT_EQ(found.begin()->second, std::deque<Bytes>{payload});
      settle();  // the credit
    }
  }
  send(*a, payload_of(1, 0));
  send(*a, payload_of(1, 9009));  // a slot has 9008
  settle();
  EXPECT_TRUE(take(*b).empty());
  EXPECT_EQ(counted(*a, "slots", "unsendable"), 2u);
  expect_books(*a, *b);
  expect_books(*b, *a);
  EXPECT_EQ(b->stats().rx_kernel_dropped, 0u);
  EXPECT_EQ(counted(*b, "node", "landed"), 1u + 1 + 1 + 1 + 1 + 2 + 3);
  EXPECT_EQ(counted(*b, "node", "lost"), 0u);
  EXPECT_EQ(simulation->flights().count, 14u);
}

// docs/design/torus.md has the figures that these two print.
TEST_F(TorusLinkTest, a_payload_takes_the_same_cycles_each_time) {
  for (const char* const shape : {"2x1x1", "2x2x1"}) {
    for (const std::size_t bytes : {std::size_t{16}, std::size_t{1472}, std::size_t{8972}}) {
      start(shape, 16);
      const auto last = static_cast<std::uint32_t>(simulation->torus().size() - 1);
      const auto a = open_torus(config_of(0, {last}, {last})), b = open_torus(config_of(last, {0}));
      greet(*a, *b);
      for (std::uint32_t k = 0; k < 3; ++k) {
        send(*a, payload_of(k, bytes));
        settle();
        EXPECT_EQ(take(*b)[0].size(), 1u);
        settle();
      }
      const torus::Flights& flights = simulation->flights();
      EXPECT_EQ(flights.count, 3u);
      EXPECT_LE(flights.cycles_max - flights.cycles_min, 2u);  // a CREDIT of a link may just be leaving
      std::printf("%s, %zu B: %llu to %llu cycles from job to completion\n", shape, bytes,
                  static_cast<unsigned long long>(flights.cycles_min), static_cast<unsigned long long>(flights.cycles_max));
    }
  }
}

TEST_F(TorusLinkTest, what_was_on_its_way_when_the_simulation_ended_is_named) {
  start("2x1x1");
  const auto a = open_torus(config_of(0, {1}, {1}));
  const auto b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  for (std::uint32_t k = 0; k < 3; ++k) send(*a, payload_of(k, 100));
  EXPECT_EQ(counted(*a, "slots", "unacknowledged"), 0u);
  EXPECT_FALSE(b->finished());
  simulation.reset();
  EXPECT_TRUE(b->finished());
  EXPECT_EQ(counted(*a, "slots", "unacknowledged"), 3u);
  EXPECT_EQ(counted(*b, "slots", "unacknowledged"), 0u);
  EXPECT_EQ(counted(*a, "slots", "ended"), 1u);
  EXPECT_EQ(counted(*b, "slots", "ended"), 1u);
}

TEST_F(TorusLinkTest, what_landed_and_was_not_received_is_held_at_its_receiver_and_unacknowledged_at_its_sender) {
  start("2x1x1");
  const auto a = open_torus(config_of(0, {1}, {1}));
  auto b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  for (std::uint32_t k = 0; k < 4; ++k) send(*a, payload_of(k, 100));
  settle();
  EXPECT_EQ(counted(*b, "slots", "held"), 4u);  // none was looked for
  EXPECT_EQ(take(*b, 1)[0].size(), 1u);
  EXPECT_EQ(counted(*b, "slots", "held"), 3u);
  EXPECT_EQ(a->stats().tx_packets, b->stats().rx_packets + counted(*b, "slots", "held"));
  EXPECT_EQ(counted(*a, "slots", "unacknowledged"), 0u);
  b.reset();
  EXPECT_EQ(counted(*a, "slots", "unacknowledged"), 4u);  // also of a sender that has nothing more to send
  EXPECT_EQ(counted(*a, "slots", "held"), 0u);
  send(*a, payload_of(9, 100));
  EXPECT_EQ(counted(*a, "slots", "unacknowledged"), 4u);
  EXPECT_EQ(counted(*a, "slots", "no_receiver"), 1u);
}

TEST_F(TorusLinkTest, what_a_node_counts_in_its_registers_is_in_its_link_by_port_and_reason) {
  start("1x2x1");
  const auto a = open_torus(config_of(0, {1}, {1})), b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  send(*a, payload_of(1, 9000));
  settle();
  const auto of = [](const Link& link, std::string_view group, std::optional<std::uint32_t> port, std::string_view name) {
    for (const NicCounts& one : link.nic_counts()) {
      for (const auto& [key, value] : one.counts) {
        if (one.name == group && one.port == port && key == name) return value;
      }
    }
    ADD_FAILURE() << "no counter " << group << "." << name;
    return std::uint64_t{0};
  };
  EXPECT_EQ(of(*b, "messages", std::nullopt, "landed"), 3u);
  EXPECT_EQ(of(*b, "messages", std::nullopt, "landed"), counted(*b, "node", "landed"));
  const std::uint64_t left = of(*a, "messages", std::nullopt, "left");
  EXPECT_GT(left, 3u);  // and hello
  EXPECT_EQ(of(*a, "router", 6, "routed"), left);
  EXPECT_EQ(of(*a, "link", 2, "sent") + of(*a, "link", 3, "sent"), left);
  EXPECT_EQ(of(*b, "link", 2, "good") + of(*b, "link", 3, "good"), left);
  // And one that is lost, by its reason at its node: a place that no torus of this shape has.
  simulation->torus().node(0).post({.kind = torus::RdmaKind::event, .to = {.at = {2, 0, 0}}});
  send(*a, payload_of(2, 8));
  settle();
  EXPECT_EQ(of(*a, "router", 6, "outside"), 1u);
  EXPECT_EQ(of(*b, "router", 6, "outside"), 0u);
}

TEST_F(TorusLinkTest, a_link_that_would_send_to_its_own_node_is_refused) {
  start("2x1x1");
  EXPECT_EQ(refusal(config_of(1, {0}, {1})),
            "link n1 cannot send to torus://1 (it is at that node, which has no slots for itself) name another node");
  EXPECT_EQ(refusal(config_of(1, {0}, {0})), "");
}

TEST_F(TorusLinkTest, a_stream_waits_for_no_credit) {
  constexpr std::uint64_t kPayloads = 40;
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{1472}, std::size_t{8972}}) {
    start("2x1x1", 16);
    TorusConfig from = config_of(0, {1}, {1}), to = config_of(1, {0});
    from.slot_count = to.slot_count = 64;
    const auto a = open_torus(from), b = open_torus(to);
    greet(*a, *b);
    std::uint64_t first = 0;
    int turns = 0;
    for (std::uint64_t k = 0; b->stats().rx_packets < kPayloads;) {
      ASSERT_LT(++turns, 10'000);
      if (k < kPayloads) send(*a, payload_of(static_cast<std::uint32_t>(k++), bytes));
      simulation->turn();
      take(*b);
      if (first == 0 && b->stats().rx_packets != 0) first = simulation->torus().cycle();
    }
    EXPECT_EQ(a->stats().tx_dropped, 1u);  // the greeting
    std::printf("%zu B: %.0f cycles each in a stream\n", bytes,
                static_cast<double>(simulation->torus().cycle() - first) / (kPayloads - 1));
  }
}

TEST_F(TorusLinkTest, a_full_receiver_is_counted_at_its_sender_and_takes_again_when_it_has_room) {
  start("2x1x1");
  const auto a = open_torus(config_of(0, {1}, {1})), b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  for (std::uint32_t k = 1; k <= 6; ++k) send(*a, payload_of(k, 100));
  settle();
  EXPECT_EQ(a->stats().tx_packets, 4u);              // its slots
  EXPECT_EQ(counted(*a, "slots", "no_credit"), 3u);  // the greeting's too
  EXPECT_EQ(take(*b)[0].size(), 4u);
  settle();
  send(*a, payload_of(7, 100));
  settle();
  EXPECT_EQ(take(*b)[0], std::deque<Bytes>{payload_of(7, 100)});
  expect_books(*a, *b);
  EXPECT_EQ(b->stats().rx_kernel_dropped, 0u);
}

TEST_F(TorusLinkTest, a_slot_is_free_when_its_payload_is_taken_and_not_before) {
  start("2x1x1");
  const auto a = open_torus(config_of(0, {1}, {1})), b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  for (std::uint32_t k = 1; k <= 4; ++k) send(*a, payload_of(k, 3000));
  settle();
  EXPECT_EQ(take(*b, 2)[0], (std::deque<Bytes>{payload_of(1, 3000), payload_of(2, 3000)}));
  settle();
  for (std::uint32_t k = 5; k <= 8; ++k) send(*a, payload_of(k, 3000));
  settle();
  EXPECT_EQ(a->stats().tx_packets, 6u);
  const std::deque<Bytes> rest{payload_of(3, 3000), payload_of(4, 3000), payload_of(5, 3000), payload_of(6, 3000)};
  EXPECT_EQ(take(*b)[0], rest);
  EXPECT_EQ(after_drops, 0);
  expect_books(*a, *b);
}

TEST_F(TorusLinkTest, a_sender_that_keeps_to_no_rule_is_refused_and_spoils_no_other) {
  start("3x1x1");
  const auto a = open_torus(config_of(0, {1}, {1})), b = open_torus(config_of(1, {0, 2}));
  greet(*a, *b);
  TorusFile rude = TorusFile::open(path, "rude");
  rude.claim(2, "rude");
  const TorusInbox& inbox = rude.host(1).inboxes[2];
  TorusJob job{.region = static_cast<std::uint8_t>(inbox.region.load()), .to = 1, .nonce = inbox.nonce, .bytes = 64};
  for (job.process = 0; job.process < 6; ++job.process) ASSERT_TRUE(rude.host(2).jobs.push(job));  // two more than there are slots
  job.bytes = 2 * inbox.slot_bytes;
  ASSERT_TRUE(rude.host(2).jobs.push(job));
  settle();
  EXPECT_EQ(take(*b)[2].size(), 4u);
  EXPECT_EQ(b->stats().rx_malformed, 3u);
  send(*a, payload_of(1, 200));
  settle();
  EXPECT_EQ(take(*b)[0], std::deque<Bytes>{payload_of(1, 200)});
  EXPECT_EQ(b->stats().rx_kernel_dropped, 0u);
}

TEST_F(TorusLinkTest, what_a_cut_cable_loses_is_named_and_the_next_packet_comes) {
  start("1x2x1");
  const auto a = open_torus(config_of(0, {1}, {1})), b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  send(*a, payload_of(1, 9000));
  for (int k = 0; k < 250; ++k) simulation->turn();
  EXPECT_EQ(counted(*b, "node", "landed"), 1u);  // of its three packets
  simulation->torus().set_cable(0, 2, false);
  simulation->torus().set_cable(0, 3, false);
  settle();
  simulation->torus().set_cable(0, 2, true);
  simulation->torus().set_cable(0, 3, true);
  EXPECT_TRUE(take(*b).empty());
  for (std::uint32_t k = 2; k < 5; ++k) {
    send(*a, payload_of(k, 64));
    settle();
  }
  const auto found = take(*b)[0];
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back(), payload_of(4, 64));
  EXPECT_GE(b->stats().rx_kernel_dropped, 1u);
  EXPECT_EQ(counted(*b, "slots", "failed"), 1u);  // the one that was cut in the middle
  EXPECT_GE(counted(*b, "node", "flagged"), 1u);
  expect_books(*a, *b);
  settle();
  send(*a, payload_of(5, 64));
  settle();
  EXPECT_EQ(take(*b)[0], std::deque<Bytes>{payload_of(5, 64)});
}

TEST_F(TorusLinkTest, slots_that_were_all_lost_are_free_again_after_the_sender_has_asked) {
  start("1x2x1");
  const auto a = open_torus(config_of(0, {1}, {1})), b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  for (const std::size_t port : {2u, 3u}) simulation->torus().set_cable(0, port, false);
  for (std::uint32_t k = 1; k <= 4; ++k) send(*a, payload_of(k, 64));
  settle();
  for (const std::size_t port : {2u, 3u}) simulation->torus().set_cable(0, port, true);
  for (std::uint32_t k = 5; k < 9; ++k) {  // no credit; the first that finds none asks
    send(*a, payload_of(k, 64));
    settle();
    take(*b);
    settle();
  }
  EXPECT_EQ(b->stats().rx_kernel_dropped, 4u);
  EXPECT_GE(counted(*a, "slots", "asks"), 1u);
  EXPECT_EQ(b->stats().rx_packets, a->stats().tx_packets - 4);
  expect_books(*a, *b);
  send(*a, payload_of(9, 64));
  settle();
  EXPECT_EQ(take(*b)[0], std::deque<Bytes>{payload_of(9, 64)});
  EXPECT_EQ(after_drops, 1);  // the first that came after them
}

TEST_F(TorusLinkTest, a_wrong_key_is_refused_by_the_node_and_spoils_nothing) {
  start("3x1x1");
  const auto a = open_torus(config_of(0, {1}, {1})), b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  TorusFile stranger = TorusFile::open(path, "stranger");
  stranger.claim(2, "stranger");
  const TorusInbox& inbox = stranger.host(1).inboxes[0];
  TorusJob guess{.region = 0, .to = 1, .nonce = inbox.nonce ^ 1, .bytes = 64};
  ASSERT_TRUE(stranger.host(2).jobs.push(guess));
  settle();
  EXPECT_EQ(counted(*b, "node", "key"), 1u);
  EXPECT_TRUE(take(*b).empty());
  guess.nonce = inbox.nonce;
  guess.offset = inbox.slot_count * inbox.slot_bytes - 63;  // a byte too far
  ASSERT_TRUE(stranger.host(2).jobs.push(guess));
  settle();
  EXPECT_EQ(counted(*b, "node", "bounds"), 1u);
  guess.offset = 3 * inbox.slot_bytes;
  ASSERT_TRUE(stranger.host(2).jobs.push(guess));  // with the right key, but no slots of its own
  settle();
  EXPECT_TRUE(take(*b).empty());
  EXPECT_EQ(b->stats().rx_malformed, 1u);
  send(*a, payload_of(1, 200));
  settle();
  EXPECT_EQ(take(*b)[0], std::deque<Bytes>{payload_of(1, 200)});
  expect_books(*a, *b);
}

TEST_F(TorusLinkTest, a_host_that_takes_no_completions_has_packets_dropped_by_name) {
  start("3x1x1");
  const auto a = open_torus(config_of(2, {1}, {1})), b = open_torus(config_of(1, {2}));
  TorusFile loud = TorusFile::open(path, "loud");
  loud.claim(0, "loud");
  std::uint64_t told = 0;
  for (int round = 0; round < 4; ++round) {  // more than all queues on the way hold
    while (loud.host(0).jobs.push({.kind = TorusJobKind::event, .to = 1})) ++told;
    settle();
  }
  const std::uint64_t came = counted(*b, "node", "event");
  EXPECT_EQ(came + counted(*b, "node", "queue"), told);
  EXPECT_GT(counted(*b, "node", "queue"), 0u);
  for (int round = 0; round < 8; ++round) {
    EXPECT_TRUE(take(*b).empty());
    settle();
  }
  EXPECT_EQ(counted(*b, "slots", "stale"), came);  // news of nothing
  greet(*a, *b);
  send(*a, payload_of(1, 100));
  settle();
  EXPECT_EQ(take(*b)[2], std::deque<Bytes>{payload_of(1, 100)});
  expect_books(*a, *b);
}

TEST_F(TorusLinkTest, a_receiver_that_goes_and_comes_back_takes_nothing_of_before) {
  start("2x1x1");
  const auto a = open_torus(config_of(0, {1}, {1}));
  auto b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  send(*a, payload_of(1, 100));  // its key is taken away before it is there
  b.reset();
  settle();
  send(*a, payload_of(2, 100));
  EXPECT_EQ(counted(*a, "slots", "no_receiver"), 1u);
  b = open_torus(config_of(1, {0}));
  EXPECT_EQ(counted(*b, "node", "key"), 1u);
  send(*a, payload_of(3, 100));  // says hello
  settle();
  EXPECT_TRUE(take(*b).empty());
  settle();
  send(*a, payload_of(4, 100));
  settle();
  EXPECT_EQ(take(*b)[0], std::deque<Bytes>{payload_of(4, 100)});
  EXPECT_EQ(b->stats().rx_kernel_dropped, 0u);
  EXPECT_EQ(counted(*a, "slots", "unacknowledged"), 1u);
}

TEST_F(TorusLinkTest, a_receiver_that_comes_back_at_once_is_told_nothing_of_the_one_before) {
  start("2x1x1");
  const auto a = open_torus(config_of(0, {1}, {1}));
  auto b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  for (std::uint32_t k = 1; k <= 2; ++k) send(*a, payload_of(k, 100));
  settle();
  EXPECT_EQ(take(*b)[0].size(), 2u);  // the credit is not yet on its way
  b.reset();
  b = open_torus(config_of(1, {0}));
  send(*a, payload_of(4, 100));  // says hello
  settle();
  send(*a, payload_of(5, 100));  // no one has answered
  EXPECT_EQ(counted(*a, "slots", "stale"), 1u);
  EXPECT_EQ(a->stats().tx_packets, 2u);
  EXPECT_TRUE(take(*b).empty());
  settle();
  send(*a, payload_of(6, 100));
  settle();
  EXPECT_EQ(take(*b)[0], std::deque<Bytes>{payload_of(6, 100)});
  EXPECT_EQ(b->stats().rx_kernel_dropped, 0u);
  send(*a, payload_of(7, 100));
  EXPECT_EQ(a->stats().tx_packets, 4u);
  b.reset();
  b = open_torus(config_of(1, {0}));
  settle();
  EXPECT_EQ(counted(*b, "node", "key"), 1u);  // that of the one before
  EXPECT_TRUE(take(*b).empty());
}

TEST_F(TorusLinkTest, a_sender_that_comes_back_waits_for_what_was_sent_before) {
  start("2x1x1");
  auto a = open_torus(config_of(0, {1}, {1}));
  const auto b = open_torus(config_of(1, {0}));
  greet(*a, *b);
  for (std::uint32_t k = 1; k <= 3; ++k) send(*a, payload_of(k, 100));
  settle();
  a.reset();
  a = open_torus(config_of(0, {1}, {1}));
  send(*a, payload_of(4, 100));
  settle();
  EXPECT_EQ(b->receive({}, {}, 0).packet_count, 0u);  // sees the hello, and has no room
  settle();
  send(*a, payload_of(4, 100));
  EXPECT_EQ(a->stats().tx_packets, 0u);
  EXPECT_EQ(take(*b)[0], (std::deque<Bytes>{payload_of(1, 100), payload_of(2, 100), payload_of(3, 100)}));
  take(*b);
  settle();
  send(*a, payload_of(5, 100));
  settle();
  EXPECT_EQ(take(*b)[0], std::deque<Bytes>{payload_of(5, 100)});
  EXPECT_EQ(b->stats().rx_kernel_dropped, 0u);
  EXPECT_EQ(b->stats().rx_malformed, 0u);
}

TEST_F(TorusLinkTest, set_up_says_what_is_wrong) {
  EXPECT_EQ(refusal(config_of(0)),
            "link n0 has no torus (" + path + ": no such file or directory) start nanet torus serve, or name its file");
  start("2x1x1");
  EXPECT_EQ(refusal(config_of(2)), "link n2 cannot be at node 2 (the torus of " + path + " is 2x1x1) name one of 0 to 1");
  EXPECT_NE(refusal(config_of(0, {1, 0})).find("node 0 is a sender to itself (link 'n0' is at that node"), std::string::npos);
  EXPECT_NE(refusal(config_of(0, {5})).find("cannot receive from node 5"), std::string::npos);
  EXPECT_NE(refusal(config_of(0, {1}, {7})).find("cannot send to torus://7"), std::string::npos);
  EXPECT_NE(refusal(config_of(0, {1}, {1, 1})).find("cannot send twice to torus://1"), std::string::npos);
  TorusConfig config = config_of(0);
  config.slot_count = 4096;
  EXPECT_NE(refusal(config).find("does not fit into the memory of its node"), std::string::npos);
  config.slot_count = 3;
  EXPECT_NE(refusal(config).find("slot_count 3 is not a power of two"), std::string::npos);
  config = config_of(0);
  config.file.clear();
  EXPECT_NE(refusal(config).find("has no torus"), std::string::npos);
  const auto taken = open_torus(config_of(0));
  EXPECT_EQ(refusal(config_of(0)), "link n0 cannot be at node 0 (another link is) name another node");
  EXPECT_THROW(torus::SharedTorus(torus::Shape::read("2x1x1"), path), SetupError);
  EXPECT_TRUE(taken->notes().empty());
  simulation.reset();
  ASSERT_EQ(taken->notes().size(), 1u);
  EXPECT_NE(taken->notes()[0].find("n0: nothing goes over its torus"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream(path) << "no torus";
  EXPECT_NE(refusal(config_of(0)).find(path + " is none"), std::string::npos);
  EXPECT_THROW(start("2x1x1"), SetupError);  // and leaves the file
  EXPECT_TRUE(std::filesystem::remove(path));
}

}  // namespace
}  // namespace nanet::link
