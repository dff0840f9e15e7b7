// SPDX-License-Identifier: Apache-2.0
// The link through a board whose host is at the end of a cable: the whole NIC with its host link, verilated, at the other end, and frames that are lost.
#include "link/gateware/ethernet_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "board_rig.hpp"
#include "link/gateware/card_link.hpp"
#include "nanet/setup_error.hpp"
#include "wire_rig.hpp"

namespace nanet::link::gateware {
namespace {

using test::kAddress;
using test::kPeer;
using test::kPort;
using test::random_bytes;
using namespace std::chrono_literals;

// The board's time goes some hundred times slower than ours.
constexpr EthernetTiming kSlow{.retry_ns = 100'000'000, .silence_ns = 60'000'000'000};

GatewareConfig board_config() {
  GatewareConfig config{.name = "board", .listen = Endpoint{"gateware", kAddress, kPort}};
  config.card = {.card = "", .host_interface = "eth1", .mac = "02:00:00:00:00:01", .next_hop = "02:00:00:00:00:02"};
  config.destinations.push_back({"udp", kPeer, 5000});
  return config;
}

template <class Done>
bool within(std::chrono::seconds limit, Done done) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

struct BoardTest : ::testing::Test {
  void start(const EthernetTiming& timing = kSlow) {
    auto own = std::make_unique<EthernetDevice>(std::make_unique<test::CablePort>(cable), "eth1", timing);
    device = own.get();
    link = std::make_unique<CardLink>(std::move(own), board_config());
  }

  bool receive(std::size_t wanted) {
    test::Bytes room(1 << 18);
    std::vector<RxPacket> packets(128);
    return within(60s, [&] {
      const RxBatch batch = link->receive(room, packets, 0);
      for (std::uint32_t p = 0; p < batch.packet_count; ++p) {
        const auto payload = std::span(room).subspan(packets[p].offset, packets[p].bytes);
        received.emplace_back(payload.begin(), payload.end());
      }
      if (batch.packet_count == 0) link->wait(10'000'000);
      return received.size() >= wanted;
    });
  }

  void both_ways(int packets, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<test::Bytes> in, out;
    received.clear();
    for (int k = 0; k < packets; ++k) {
      in.push_back(random_bytes(random, 1 + random() % 1472));
      out.push_back(random_bytes(random, 1 + random() % 1472));
      board.push(wire::udp_frame(in.back()));
      link->send(std::vector<TxPacket>{{out.back().data(), static_cast<std::uint32_t>(out.back().size()), 0}}, 0);
      EXPECT_TRUE(receive(in.size()));  // one at a time: what the board has no room for is its own loss
    }
    EXPECT_TRUE(received == in);
    std::vector<test::Bytes> sent;
    EXPECT_TRUE(within(60s, [&] {
      for (test::Bytes& frame : board.take_sent()) {
        UdpView view;
        if (read_udp_frame(frame, view) == FrameError::none) sent.emplace_back(view.payload.begin(), view.payload.end());
      }
      return sent.size() >= out.size();
    }));
    EXPECT_TRUE(sent == out);
  }

  test::Cable cable{7};
  test::Board board{cable};
  std::unique_ptr<CardLink> link;
  EthernetDevice* device = nullptr;
  std::vector<test::Bytes> received;
};

TEST_F(BoardTest, ReceivesAndSendsThroughTheCable) {
  start();
  EXPECT_EQ(link->path(), "NIC on a board behind interface eth1");
  both_ways(20, 1);
  const LinkStats stats = link->stats();
  EXPECT_EQ(stats.rx_packets, 20u);
  EXPECT_EQ(stats.tx_packets, 20u);
  EXPECT_EQ(stats.rx_malformed + stats.rx_foreign + stats.rx_kernel_dropped + stats.tx_dropped, 0u);
  const EthernetDevice::Counts counts = device->counts();
  EXPECT_EQ(counts.strays + counts.malformed + counts.foreign, 0u);
}

TEST_F(BoardTest, WhatTheCableLosesIsSentAgain) {
  start();
  cable.lose(20);
  both_ways(10, 2);
  cable.lose(0);
  EXPECT_EQ(link->stats().rx_packets, 10u);
  EXPECT_EQ(link->stats().tx_packets, 10u);
  const EthernetDevice::Counts counts = device->counts();
  EXPECT_GT(counts.retries, 0u);
  EXPECT_EQ(counts.strays + counts.malformed, 0u);
}

TEST_F(BoardTest, ANewProgramIsANewSession) {
  for (std::uint64_t seed = 3; seed < 5; ++seed) {
    start();
    both_ways(3, seed);
    board.push(wire::udp_frame(test::Bytes(1000)));  // on its way when the program ends
    link.reset();
  }
}

TEST_F(BoardTest, OneThatFallsSilentHoldsNoOneUp) {
  start({.retry_ns = 50'000'000, .silence_ns = 2'000'000'000});
  both_ways(2, 5);
  const LinkStats before = link->stats();
  cable.lose(100);
  (void)link->stats();  // as long as the silence takes to be noticed
  const auto begin = std::chrono::steady_clock::now();
  const LinkStats silent = link->stats();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s) << "it is not waited for again";
  EXPECT_EQ(silent.rx_packets, before.rx_packets);
  EXPECT_EQ(silent.rx_kernel_dropped, before.rx_kernel_dropped);
  cable.lose(0);
  EXPECT_TRUE(within(30s, [&] { return device->read(0) != 0 && device->counts().taken > 0; }));
  both_ways(2, 6);
}

// A host's end that answers nothing.
struct DeadPort final : FramePort {
  MacAddress address() const override { return test::kHost; }
  void send(std::span<const std::byte>) override {}
  std::span<const std::byte> receive(std::span<std::byte>, std::uint64_t timeout_ns) override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min<std::uint64_t>(timeout_ns, 1'000'000)));
    return {};
  }
};

TEST(BoardRefusals, WithoutABoard) {
  try {
    EthernetDevice device(std::make_unique<DeadPort>(), "eth1");
    FAIL() << "opened";
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("no board answers on eth1 (for two seconds nothing came back"), std::string::npos);
  }
  GatewareConfig config = board_config();
  config.card->host_interface = "no-such-port";
  try {
    open_card(config);
    FAIL() << "opened";
  } catch (const SetupError& error) {
    EXPECT_NE(
        std::string(error.what()).find("the board's host port cannot be reached through interface no-such-port (No such device"),
        std::string::npos)
        << error.what();
  }
}

// On loopback, where what is sent comes back.
TEST(BoardPort, IsAPacketSocketOfItsEtherType) {
  std::unique_ptr<PacketSocket> port;
  try {
    port = std::make_unique<PacketSocket>("lo", host_frames::kEtherType);
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("run as root, or with CAP_NET_RAW"), std::string::npos) << error.what();
    return;
  }
  test::Bytes room(2000), frame(100);
  host_frames::Header header{.to = host_frames::kBoard, .from = port->address(), .session = 5};
  header.ethertype ^= 1;
  std::memcpy(frame.data(), &header, sizeof(header));
  port->send(frame);  // of another one
  header.ethertype ^= 1;
  std::memcpy(frame.data(), &header, sizeof(header));
  port->send(frame);
  const std::span<const std::byte> came = port->receive(room, 1'000'000'000);
  EXPECT_TRUE(std::equal(came.begin(), came.end(), frame.begin(), frame.end()));
  while (!port->receive(room, 0).empty()) {  // loopback shows it twice, on its way out and in
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(port->receive(room, 20'000'000).empty());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 19ms);
}

// Frames of a board that the test writes itself.
class Script final : public FramePort {
 public:
  MacAddress address() const override { return test::kHost; }
  void send(std::span<const std::byte> frame) override {
    const std::lock_guard lock(mutex_);
    std::memcpy(&last, frame.data(), sizeof(last));
    records.assign(frame.begin() + sizeof(last), frame.end());
    if ((last.flags & host_frames::kOpen) != 0) frames_.push_back(frame_of({}, 0));
  }
  std::span<const std::byte> receive(std::span<std::byte> room, std::uint64_t timeout_ns) override {
    {
      const std::lock_guard lock(mutex_);
      if (!frames_.empty()) {
        const test::Bytes frame = std::move(frames_.front());
        frames_.pop_front();
        std::copy(frame.begin(), frame.end(), room.begin());
        return room.first(frame.size());
      }
    }
    if (timeout_ns != 0) std::this_thread::sleep_for(1ms);
    return {};
  }
  void say(const test::Bytes& body) {
    const std::lock_guard lock(mutex_);
    frames_.push_back(frame_of(body, host_frames::kData));
    ++number_;
  }
  host_frames::Header heard(test::Bytes& body) {
    const std::lock_guard lock(mutex_);
    body = records;
    return last;
  }

 private:
  test::Bytes frame_of(const test::Bytes& body, std::uint8_t flags) const {
    const host_frames::Header header{
        .to = test::kHost, .from = host_frames::kBoard, .flags = flags, .session = last.session, .number = number_};
    test::Bytes frame(sizeof(header));
    std::memcpy(frame.data(), &header, sizeof(header));
    frame.insert(frame.end(), body.begin(), body.end());
    return frame;
  }

  std::mutex mutex_;
  host_frames::Header last;
  test::Bytes records;
  std::deque<test::Bytes> frames_;
  std::uint16_t number_ = 0;
};

// Requests that no NIC of ours makes: nothing but registered memory is touched, and each is counted.
TEST(BoardRequests, ThatAreWrongTouchNothing) {
  auto own = std::make_unique<Script>();
  Script& script = *own;
  EthernetDevice device(std::move(own), "eth1");
  constexpr std::size_t kPage = 4096;
  alignas(kPage) static std::array<std::byte, 3 * kPage> memory{};
  const std::span<std::byte> middle = std::span(memory).subspan(kPage, kPage);
  const std::uint64_t writable = device.map(middle, kPage, Access::write).front();
  alignas(kPage) static std::array<std::byte, kPage> read_only{};
  const std::uint64_t readable = device.map(read_only, kPage, Access::read).front();

  using host_frames::Kind;
  const test::Bytes ones(64, std::byte{1});
  std::uint64_t strays = 0, malformed = 0, taken = 0;
  const auto say = [&](const host_frames::Record& record, const test::Bytes& data) {
    test::Bytes body;
    host_frames::append(body, record, data, 1);
    script.say(body);
    ++taken;
    EXPECT_TRUE(within(10s, [&] { return device.counts().taken == taken; }));
    EXPECT_EQ(device.counts().strays, strays);
    EXPECT_EQ(device.counts().malformed, malformed);
  };
  const auto untouched = [&] {
    return std::all_of(memory.begin(), memory.end(), [](std::byte byte) { return byte == std::byte{0}; });
  };
  for (const std::uint64_t address :
       {std::uint64_t{0}, writable - 16, writable + kPage - 32, writable + kPage, readable, host_frames::kAddressMask - 63}) {
    ++strays;
    say({.kind = Kind::write, .bytes = 64, .address = address}, ones);
  }
  ++strays;
  say({.kind = Kind::read, .tag = 3, .bytes = 64, .address = writable}, {});
  test::Bytes body;
  EXPECT_TRUE(within(10s, [&] { return (script.heard(body).flags & host_frames::kData) != 0; }));
  const host_frames::Record answer = host_frames::record_of(host_frames::word_at(body, 0));
  EXPECT_TRUE(answer.kind == Kind::read_answer && answer.failed && answer.tag == 3 && answer.bytes == 64);
  ++malformed;
  say({.kind = Kind::write, .bytes = 64, .address = writable}, test::Bytes(48));  // cut
  ++malformed;
  say({.kind = static_cast<Kind>(9)}, ones);
  ++malformed;
  say({.kind = Kind::read, .bytes = 2048, .address = readable}, {});  // its answer fits no frame
  say({.kind = Kind::register_answer}, test::Bytes(8));               // that no one asked for
  EXPECT_TRUE(untouched());
  say({.kind = Kind::write, .bytes = 64, .address = writable + 64}, ones);
  EXPECT_FALSE(untouched());
  EXPECT_TRUE(std::equal(ones.begin(), ones.end(), middle.begin() + 64));
}

}  // namespace
}  // namespace nanet::link::gateware
