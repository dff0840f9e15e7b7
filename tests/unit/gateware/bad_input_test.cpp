// SPDX-License-Identifier: Apache-2.0
// Everything bad that can come from the wire, through the whole verilated NIC: each under its own counter, the next good frame arrives, and the books
// balance. A frame too short for its headers, a broken preamble and a control character in mid-frame are made in gateware/tb/mac_10g_rx and udp_rx.
#include "wire_rig.hpp"

namespace nanet::link::gateware::wire {
namespace {

constexpr unsigned kReplies = rx::count;  // where all_counts() has those of the replier

struct BadFrame {
  const char* name;
  unsigned counter;  // of all_counts()
  Bytes bytes;       // with the check sequence
};

// Every defect that a frame with a payload of `payload.size()` >= 40 bytes may have.
std::vector<BadFrame> bad_frames(std::mt19937_64& random, const Bytes& payload) {
  using nanet::gateware::with_fcs;
  std::vector<BadFrame> all;
  const auto add = [&](const char* name, unsigned counter, const Bytes& frame) { all.push_back({name, counter, with_fcs(frame)}); };
  const auto ip = [&](const char* name, unsigned counter, const Ipv4& header) {
    add(name, counter, ethernet(ipv4(udp(payload), header)));
  };
  const Bytes good = udp_frame(payload);

  Bytes flipped = with_fcs(good);
  flipped[random() % flipped.size()] ^= std::byte{1} << (random() % 8);
  all.push_back({"bad check sequence", rx::fcs, flipped});
  Bytes cut = with_fcs(good);
  cut.resize(64 + random() % (cut.size() - 64));
  all.push_back({"cut on the wire", rx::fcs, cut});
  Bytes cut_before(good.begin(), good.end() - 1 - static_cast<std::ptrdiff_t>(random() % (good.size() - 60)));
  add("cut, then given a check sequence", rx::truncated, cut_before);
  for (const std::size_t bytes : std::vector<std::size_t>{1, 7, 8, 9, 20, 63}) {
    Bytes runt(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes));
    const std::uint32_t crc = nanet::gateware::ethernet_crc(std::span(runt).first(bytes < 4 ? 0 : bytes - 4));
    for (std::size_t k = 0; k < 4 && bytes >= 4; ++k) runt[bytes - 4 + k] = static_cast<std::byte>(crc >> (8 * k));
    all.push_back({"runt", rx::runt, runt});
  }
  add("one byte too long", rx::oversize, udp_frame(random_bytes(random, 8977)));
  add("far too long", rx::oversize, Bytes(20'000, std::byte{3}));
  add("for another station", rx::mac_address, ethernet(ipv4(udp(payload)), {.to = {2, 0, 0, 0, 0, 9}}));
  add("multicast", rx::mac_address, ethernet(ipv4(udp(payload)), {.to = {1, 0, 0x5E, 0, 0, 1}}));
  add("IPv6", rx::ethertype, ethernet(ipv4(udp(payload)), {.type = kIpv6}));
  add("two tags", rx::ethertype, ethernet(ipv4(udp(payload)), {.tags = {5, 6}}));
  add("a length in place of a type", rx::ethertype, ethernet(ipv4(udp(payload)), {.type = 100}));
  ip("version 6", rx::version, {.version_and_words = 0x65});
  ip("options", rx::options, {.version_and_words = 0x46});
  ip("header of four words", rx::options, {.version_and_words = 0x44});
  ip("IPv4 checksum", rx::header_checksum, {.checksum_error = static_cast<std::uint16_t>(1u << random() % 16)});
  ip("first fragment", rx::fragment, {.fragment = 0x2000});
  ip("middle fragment", rx::fragment, {.fragment = 0x2005});
  ip("last fragment", rx::fragment, {.fragment = 0x0005});
  ip("TCP", rx::protocol, {.protocol = kTcpProtocol});
  ip("for another address", rx::address, {.to = kAddress + 1});
  ip("IPv4 length too small", rx::length, {.length_error = -1});
  ip("IPv4 length zero", rx::length, {.length_error = -static_cast<std::int32_t>(payload.size()) - 28});
  add("UDP length too small", rx::length, udp_frame(payload, {.length_error = -1}));
  add("UDP length too large", rx::length, udp_frame(payload, {.length_error = 1}));
  add("UDP length below its header", rx::length,
      udp_frame(payload, {.length_error = -static_cast<std::int32_t>(payload.size()) - 1}));
  add("both lengths beyond the frame", rx::truncated, ethernet(ipv4(udp(payload, {.length_error = 1000}), {.length_error = 1000})));
  add("no payload", rx::empty, udp_frame({}));
  add("for another port", rx::no_match, udp_frame(payload, {.port = kPort + 1}));
  add("UDP checksum", rx::udp_checksum, udp_frame(payload, {.checksum_error = static_cast<std::uint16_t>(1u << random() % 16)}));
  add("ARP of another network", kReplies + reply::arp_malformed, ethernet(Bytes(46, std::byte{6}), {.type = kArp}));
  add("ARP for another", kReplies + reply::arp_other, arp_request(kAddress + 1));
  add("ARP answer", kReplies + reply::arp_other, ethernet(arp_packet(2, kPeerMac, kPeer, kMac, kAddress), {.type = kArp}));
  add("echo answer", kReplies + reply::icmp_other, ethernet(ipv4(icmp(0, payload), {.protocol = kIcmpProtocol})));
  add("ICMP checksum", kReplies + reply::icmp_checksum, ethernet(ipv4(icmp(8, payload, 4), {.protocol = kIcmpProtocol})));
  add("ICMP cut", kReplies + reply::icmp_length, ethernet(ipv4(icmp(8, payload), {.protocol = kIcmpProtocol, .length_error = 500})));
  add("echo too large", kReplies + reply::echo_large, echo_request(Bytes(1473)));
  add("ICMP fragment", rx::fragment, ethernet(ipv4(icmp(8, payload), {.protocol = kIcmpProtocol, .fragment = 0x2000})));
  return all;
}

class BadInputTest : public WireRig {};

TEST_F(BadInputTest, EveryBadFrameHasItsCounterAndTheNextGoodOneArrives) {
  start();
  std::mt19937_64 random(3);
  const Bytes payload = random_bytes(random, 40 + random() % 100);
  for (const BadFrame& bad : bad_frames(random, payload)) {
    SCOPED_TRACE(bad.name);
    const std::vector<std::uint64_t> before = all_counts();
    received.clear();
    push_raw(bad.bytes);
    push(udp_frame(payload));
    receive(1);
    run_dry();
    EXPECT_EQ(received, std::vector<Bytes>{payload});
    std::vector<std::uint64_t> after = all_counts();
    EXPECT_LE(after[rx::bad], before[rx::bad] + 1);  // a payload that had begun to be written
    after[rx::bad] = before[rx::bad];
    std::vector<std::uint64_t> expected = before;
    ++expected[rx::parsed];
    ++expected[rx::stored];
    ++expected[bad.counter];
    EXPECT_EQ(after, expected);
  }
  EXPECT_EQ(left(), std::vector<Bytes>{});
  expect_balanced(0);
}

TEST_F(BadInputTest, AllOfThemMixedAtLineRateOnABusyHost) {
  start({.write_cycles = 60, .busy_per_1024 = 80, .seed = 4});
  std::mt19937_64 random(4);
  std::vector<Bytes> good;
  std::vector<std::uint64_t> expected(kReplies + reply::count);
  for (int k = 0; k < 2500; ++k) {
    const Bytes payload = random_bytes(random, 40 + random() % 200);
    if (random() % 2 == 0) {
      const std::vector<BadFrame> all = bad_frames(random, payload);
      const BadFrame& bad = all[random() % all.size()];
      push_raw(bad.bytes);
      ++expected[bad.counter];
    } else {
      push(random() % 4 == 0 ? ethernet(ipv4(udp(payload)), {.tags = {static_cast<std::uint16_t>(random() % 4096)}})
                             : udp_frame(payload));
      good.push_back(payload);
    }
  }
  receive(good.size());
  run_dry();
  EXPECT_TRUE(received == good) << received.size() << " payloads, not " << good.size();
  expected[rx::parsed] = expected[rx::stored] = good.size();
  std::vector<std::uint64_t> counts = all_counts();
  EXPECT_LE(counts[rx::bad],
            counts[rx::oversize] + counts[rx::runt] + counts[rx::fcs] + counts[rx::truncated] + counts[rx::udp_checksum]);
  counts[rx::bad] = 0;
  EXPECT_EQ(counts, expected);
  expect_balanced(0);
}

// A NIC knows no duplicates, and the longest frame and one with a VLAN tag are good.
TEST_F(BadInputTest, WhatOnlyLooksBadIsDelivered) {
  start({}, {.clops = {{.buffer_bytes = 128 << 10}}});
  std::mt19937_64 random(5);
  const Bytes payload = random_bytes(random, 200), longest = random_bytes(random, 8976), longest_tagged = random_bytes(random, 8972);
  for (int k = 0; k < 3; ++k) push(udp_frame(payload));
  push(udp_frame(longest));
  push(ethernet(ipv4(udp(longest_tagged)), {.tags = {4095}}));
  push(ethernet(ipv4(udp(payload)), {.to = kEveryone, .tags = {0}}));
  receive(6);
  EXPECT_TRUE(received == (std::vector<Bytes>{payload, payload, payload, longest, longest_tagged, payload}));
  run_dry();
  expect_balanced(0);
}

TEST_F(BadInputTest, PacketsForAClopThatIsNotEnabledAreDropped) {
  start();
  model->write(0x040, 0);
  model->write(0x048, std::uint64_t{1} | 1u << 8 | 2u << 12 | std::uint64_t{kPort + 1} << 16);  // entry 1, CLOP 2
  push(udp_frame(Bytes(100), {.port = kPort + 1}));
  push(udp_frame(Bytes(100, std::byte{1})));
  receive(1);
  run_dry();
  EXPECT_EQ(received, std::vector<Bytes>{Bytes(100, std::byte{1})});
  EXPECT_EQ(rx_count(rx::disabled), 1u);
  expect_balanced(0);
}

}  // namespace
}  // namespace nanet::link::gateware::wire
