// SPDX-License-Identifier: Apache-2.0
// Several sockets of one endpoint over loopback: who gets which packet, and what does not belong anywhere.
#include <array>
#include <memory>
#include <string>

#include "nanet/setup_error.hpp"
#include "sockets.hpp"

namespace nanet::link::test {
namespace {

constexpr std::uint32_t kKeyAt = 3;

// Opened as an engine does: the first one's port is that of the others.
class Queues {
 public:
  explicit Queues(UdpConfig config) {
    for (config.queue = 0; config.queue < config.queues; ++config.queue) {
      if (config.queue > 0) config.listen = links_.front()->local();
      links_.push_back(std::make_unique<UdpLink>(config));
    }
  }

  std::uint16_t port() const { return links_.front()->local().port; }
  std::size_t count() const { return links_.size(); }
  UdpLink& operator[](std::size_t k) { return *links_[k]; }

 private:
  std::vector<std::unique_ptr<UdpLink>> links_;
};

UdpConfig steered(SteerBy by, std::uint32_t queues, Coalesce gro = Coalesce::on) {
  UdpConfig config = listening(gro);
  config.queues = queues;
  config.steer_by = by;
  if (by == SteerBy::key) {
    config.key_at = kKeyAt;
    config.key_bytes = 2;
  }
  return config;
}

// A packet whose key is the big-endian number `key`, followed by the packet's own number.
Bytes keyed(std::uint16_t key, std::uint8_t number, std::size_t bytes = 200) {
  Bytes data = payload(number, bytes);
  data[kKeyAt] = static_cast<std::byte>(key >> 8);
  data[kKeyAt + 1] = static_cast<std::byte>(key);
  data[kKeyAt + 2] = static_cast<std::byte>(number);
  return data;
}

std::uint16_t key_of(const Bytes& data) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(data[kKeyAt]) << 8 | std::to_integer<unsigned>(data[kKeyAt + 1]));
}

class ByKey : public testing::TestWithParam<Coalesce> {};
INSTANTIATE_TEST_SUITE_P(Gro, ByKey, testing::Values(Coalesce::on, Coalesce::off),
                         [](const auto& which) { return which.param == Coalesce::on ? "on" : "off"; });

TEST_P(ByKey, EachStreamComesToOneQueueInOrder) {
  constexpr std::uint16_t kStreams = 8;
  constexpr std::uint8_t kPackets = 20;
  Queues queues(steered(SteerBy::key, 3, GetParam()));
  constexpr std::array kStreamsOf = {3u, 3u, 2u};  // of the numbers 0x01 XOR 0 to 7
  PlainSocket sender;
  for (std::uint8_t number = 0; number < kPackets; ++number) {
    for (std::uint16_t stream = 0; stream < kStreams; ++stream) {
      sender.send(queues.port(), keyed(static_cast<std::uint16_t>(0x0100 + stream), number));
    }
  }
  for (std::size_t q = 0; q < 3; ++q) {
    std::vector<unsigned> next(kStreams);
    for (const Got& got : Collector().collect(queues[q], kPackets * kStreamsOf[q])) {
      const unsigned stream = key_of(got.data) - 0x0100u;
      ASSERT_LT(stream, kStreams);
      EXPECT_EQ((stream ^ 1u) % 3, q);
      EXPECT_EQ(std::to_integer<unsigned>(got.data[kKeyAt + 2]), next[stream]++);
      EXPECT_EQ(got.packet.flags, 0);
    }
    EXPECT_EQ(queues[q].stats().rx_packets, kPackets * kStreamsOf[q]);
  }
}

TEST_P(ByKey, APacketTooShortForOneComesToTheFirst) {
  Queues queues(steered(SteerBy::key, 2, GetParam()));
  PlainSocket sender;
  for (std::size_t bytes = 0; bytes <= kKeyAt + 1; ++bytes) sender.send(queues.port(), Bytes(bytes, std::byte{1}));
  Bytes longer(kKeyAt + 2, std::byte{0});
  longer.back() = std::byte{1};
  sender.send(queues.port(), longer);
  const auto first = Collector().collect(queues[0], kKeyAt + 2);
  ASSERT_EQ(first.size(), kKeyAt + 2);
  for (const Got& got : first) EXPECT_EQ(got.packet.flags, 0);
  EXPECT_EQ(Collector().collect(queues[1], 1).size(), 1u);
}

// A sender of several streams from one port, whose packets travel as one message: the kernel looks at the key of the first.
TEST_P(ByKey, AForgedKeyInsideACoalescedMessageIsFlagged) {
  Queues queues(steered(SteerBy::key, 2, GetParam()));
  PlainSocket sender;
  Bytes message;
  for (std::uint8_t number = 0; number < 10; ++number) {
    const Bytes packet = keyed(number == 4 || number == 9 ? 0 : 1, number);
    message.insert(message.end(), packet.begin(), packet.end());
  }
  sender.send_super(queues.port(), message, 200);
  const auto got = Collector().collect(queues[1], 10);
  ASSERT_EQ(got.size(), 10u);
  for (std::uint8_t number = 0; number < 10; ++number) {
    EXPECT_EQ(got[number].packet.flags, number == 4 || number == 9 ? RxPacket::wrong_queue : 0) << unsigned{number};
  }
  EXPECT_EQ(queues[0].stats().rx_packets, 0u);
}

// Those that wait in the spill, because there were fewer entries than packets, are looked at as well.
TEST_P(ByKey, AForgedKeyIsFlaggedInTheRestOfAMessageToo) {
  Queues queues(steered(SteerBy::key, 2, GetParam()));
  PlainSocket sender;
  Bytes message;
  for (std::uint8_t number = 0; number < 10; ++number) {
    const Bytes packet = keyed(number % 2 == 0 ? 1 : 0, number);
    message.insert(message.end(), packet.begin(), packet.end());
  }
  sender.send_super(queues.port(), message, 200);
  const auto got = Collector(std::size_t{1} << 20, 3).collect(queues[1], 10);
  ASSERT_EQ(got.size(), 10u);
  for (std::uint8_t number = 0; number < 10; ++number) {
    EXPECT_EQ(got[number].packet.flags, number % 2 == 0 ? 0 : RxPacket::wrong_queue) << unsigned{number};
  }
}

TEST(QueuesByAddress, EachSenderComesToOne) {
  Queues queues(steered(SteerBy::address, 2));
  for (std::uint32_t host = 1; host <= 4; ++host) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in own{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(0x7F000000u + host)}, .sin_zero = {}};
    ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    const sockaddr_in to = loopback(queues.port());
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(::sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to), 1);
    }
    ::close(fd);
  }
  for (std::uint32_t q = 0; q < 2; ++q) {
    const auto got = Collector().collect(queues[q], 20);
    ASSERT_EQ(got.size(), 20u);
    for (const Got& one : got) EXPECT_EQ(((one.packet.peer_address & 0xFF) ^ 0x7F) % 2, q);
  }
}

TEST(QueuesByAddress, OfIpv6) {
  UdpConfig config = steered(SteerBy::address, 2);
  config.listen = parse_endpoint("udp://[::1]:0");
  Queues queues(config);
  UdpConfig sending;
  sending.destinations = {queues[0].local()};
  UdpLink sender(sending);
  const Bytes data(64);
  const TxPacket packet{data.data(), 64, 0};
  for (int i = 0; i < 5; ++i) sender.send(std::span(&packet, 1), 0);
  EXPECT_EQ(Collector().collect(queues[1], 5).size(), 5u);  // ::1 folds to 1
  EXPECT_EQ(queues[0].stats().rx_packets, 0u);
}

TEST(QueuesByFlow, NothingIsLostAndEachFlowStaysInOne) {
  constexpr std::size_t kFlows = 16, kPackets = 10;
  Queues queues(steered(SteerBy::flow, 4));
  std::vector<std::unique_ptr<PlainSocket>> senders;
  for (std::size_t f = 0; f < kFlows; ++f) senders.push_back(std::make_unique<PlainSocket>());
  for (std::size_t i = 0; i < kPackets; ++i) {
    for (auto& sender : senders) sender->send(queues.port(), payload(1, 100));
  }
  std::vector<std::size_t> of_port(65536), queues_of_port(65536);
  std::size_t all = 0;
  for (std::size_t q = 0; q < queues.count(); ++q) {
    std::vector<bool> here(65536);
    std::vector<Got> got;
    Collector collector;
    for (std::size_t before = 1; before != got.size();) {
      before = got.size();
      collector.receive_once(queues[q], got);
    }
    for (const Got& one : got) {
      ++of_port[one.packet.peer_port];
      if (!here[one.packet.peer_port]) ++queues_of_port[one.packet.peer_port];
      here[one.packet.peer_port] = true;
    }
    all += got.size();
  }
  EXPECT_EQ(all, kFlows * kPackets);
  for (auto& sender : senders) {
    EXPECT_EQ(of_port[sender->port()], kPackets);
    EXPECT_EQ(queues_of_port[sender->port()], 1u);
  }
}

TEST(Queues, OneWhoseConsumerStopsTakesNothingFromTheOthers) {
  UdpConfig config = steered(SteerBy::key, 2);
  config.rx_socket_bytes = 16 * 1024;
  Queues queues(config);
  PlainSocket sender;
  Collector collector;
  std::size_t taken = 0;
  for (int round = 0; round < 100; ++round) {
    for (std::uint16_t key = 0; key < 2; ++key) sender.send(queues.port(), keyed(key, static_cast<std::uint8_t>(round), 1000));
    taken += collector.collect(queues[0], 1).size();
  }
  EXPECT_EQ(taken, 100u);
  EXPECT_EQ(queues[0].stats().rx_kernel_dropped, 0u);
  const std::uint64_t dropped = queues[1].stats().rx_kernel_dropped;
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(collector.collect(queues[1], 100 - dropped).size(), 100 - dropped);  // nothing without a name
}

void expect_refused(const UdpConfig& config, const std::string& problem) {
  try {
    const UdpLink link(config);
    ADD_FAILURE() << "accepted: " << problem;
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find(problem), std::string::npos) << error.what();
  }
}

TEST(Queues, ThePortOfAnotherIsRefused) {
  Queues queues(steered(SteerBy::flow, 2));
  UdpConfig again = steered(SteerBy::flow, 2);
  again.listen = queues[0].local();
  expect_refused(again, "cannot listen on");
  const PlainSocket plain;
  again.listen->port = plain.port();
  expect_refused(again, "cannot listen on");
}

TEST(Queues, WhatCannotBeIsRefused) {
  UdpConfig config = listening();
  config.queues = 0;
  expect_refused(config, "queue 0 of 0");
  config.queues = UdpConfig::kQueuesMax + 1;
  expect_refused(config, "queue 0 of 65");
  config.queues = 2;
  config.queue = 2;
  expect_refused(config, "queue 2 of 2");
  expect_refused(steered(SteerBy::address, 1), "steer_by address with one queue");
  config = steered(SteerBy::flow, 2);
  config.key_at = 4;
  expect_refused(config, "a key with steer_by flow");
  config = steered(SteerBy::key, 2);
  config.key_bytes = 9;
  expect_refused(config, "a key of 9 B");
  config = steered(SteerBy::flow, 2);
  config.listen = parse_endpoint("udp://239.1.2.3:0");
  expect_refused(config, "cannot have 2 queues");
}

}  // namespace
}  // namespace nanet::link::test
