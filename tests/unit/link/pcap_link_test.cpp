// SPDX-License-Identifier: Apache-2.0
// A file as a link, in virtual time: the same payloads in the same order, each at its time, and what a damaged file or a small room does.
#include "link/pcap/pcap_link.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "link/udp_frame.hpp"
#include "nanet/link/recorder.hpp"
#include "nanet/setup_error.hpp"
#include "sockets.hpp"

namespace nanet::link::test {
namespace {

struct Kept {
  Bytes payload;
  std::uint64_t time_ns;
  std::uint16_t to_port = 6200;
};

class PcapLinkFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "nanet-pcap-link-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = pattern + "/file.pcap";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(std::uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8) file_.push_back(static_cast<char>(word >> shift));
  }
  void put(std::span<const std::byte> bytes) {
    for (const std::byte octet : bytes) file_.push_back(static_cast<char>(octet));
  }
  void begin() {
    file_.clear();
    for (const std::uint32_t word : {0xA1B23C4Du, 0x00040002u, 0u, 0u, 262144u, 101u}) put(word);
  }
  // From 10.0.0.1, port 40000 + how many there are already.
  void add(const Kept& packet) {
    Bytes frame(kIpUdpHeaderBytes);
    const UdpFlow flow{.from_address = 0x0A000001, .to_address = 0x0A000002, .from_port = next_port_++, .to_port = packet.to_port};
    write_ipv4_udp_headers(frame.data(), flow, packet.payload, 0);
    frame.insert(frame.end(), packet.payload.begin(), packet.payload.end());
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    put(static_cast<std::uint32_t>(packet.time_ns / 1'000'000'000));
    put(static_cast<std::uint32_t>(packet.time_ns % 1'000'000'000));
    put(bytes);
    put(bytes);
    put(frame);
  }
  void write() { std::ofstream(path_, std::ios::binary) << file_; }
  void write(const std::vector<Kept>& packets) {
    begin();
    for (const Kept& packet : packets) add(packet);
    write();
  }

  PcapLinkConfig config(ReplayPace pace = ReplayPace::maximum) { return {.path = path_, .pace = pace}; }

  std::string folder_;
  std::string path_;
  std::string file_;
  std::uint16_t next_port_ = 40000;
};

struct Got {
  Bytes payload;
  RxPacket about;
};

std::vector<Got> receive(PcapLink& link, std::uint64_t now_ns, std::size_t room_bytes = 1 << 20, std::size_t packets_max = 256) {
  Bytes room(room_bytes);
  std::vector<RxPacket> packets(packets_max);
  const RxBatch batch = link.receive(room, packets, now_ns);
  EXPECT_LE(batch.packet_count, packets_max);
  EXPECT_LE(batch.bytes_used, room_bytes);
  std::vector<Got> got;
  std::size_t end = 0;
  for (const RxPacket& packet : std::span(packets).first(batch.packet_count)) {
    EXPECT_GE(packet.offset, end);
    end = packet.offset + packet.bytes;
    EXPECT_LE(end, batch.bytes_used);
    const auto begin = room.begin() + packet.offset;
    got.push_back({Bytes(begin, begin + packet.bytes), packet});
  }
  return got;
}

std::map<std::string_view, std::uint64_t> named(const PcapLink& link) {
  const auto counts = link.counts();
  return {counts.begin(), counts.end()};
}

std::vector<Kept> many(std::size_t count, std::uint64_t gap_ns) {
  std::vector<Kept> packets;
  for (std::uint32_t p = 0; p < count; ++p) packets.push_back({payload(p, 1 + p * 37 % 1472), 5'000'000'000'000 + p * gap_ns});
  return packets;
}

TEST_F(PcapLinkFile, GivesEveryPayloadInOrderWithItsSender) {
  const std::vector<Kept> kept = many(500, 1000);
  write(kept);
  PcapLink link(config());
  EXPECT_FALSE(link.finished());
  EXPECT_TRUE(link.keeps_packets());
  std::size_t next = 0;
  for (std::size_t call = 0; call < 8; ++call) {
    const auto got = receive(link, call, 1 << 20, 64);
    EXPECT_EQ(got.size(), call < 7 ? 64u : 500u - 7 * 64u);
    for (const Got& packet : got) {
      EXPECT_EQ(packet.payload, kept[next].payload);
      EXPECT_EQ(packet.about.peer_address, 0x0A000001u);
      EXPECT_EQ(packet.about.peer_port, 40000 + next);
      EXPECT_EQ(packet.about.offset % 8, 0u);
      EXPECT_EQ(packet.about.flags, 0);
      ++next;
    }
    EXPECT_EQ(link.finished(), next == 500);
    EXPECT_EQ(link.stats().rx_packets, next);
    EXPECT_EQ(named(link)["records"], next + (next < 500 ? 1 : 0));
  }
  EXPECT_TRUE(receive(link, 1000).empty());
  const LinkStats stats = link.stats();
  EXPECT_EQ(stats.rx_calls, 9u);
  EXPECT_EQ(stats.rx_batches, 8u);
  std::uint64_t bytes = 0;
  for (const Kept& packet : kept) bytes += packet.payload.size();
  EXPECT_EQ(stats.rx_bytes, bytes);
  EXPECT_EQ(stats.rx_truncated, 0u);
}

TEST_F(PcapLinkFile, KeepsTheGapsOfTheRecording) {
  // The third was recorded before the second: it comes with it.
  const std::vector<std::uint64_t> times_ns = {7'000'000'000, 7'000'000'500, 7'000'000'400, 7'000'002'000, 9'000'000'000};
  std::vector<Kept> kept;
  for (std::uint32_t p = 0; p < 5; ++p) kept.push_back({payload(p, 100), times_ns[p]});
  write(kept);
  PcapLink link(config(ReplayPace::original));
  EXPECT_FALSE(link.keeps_packets());
  constexpr std::uint64_t kStart = 123'456'789;
  EXPECT_EQ(receive(link, kStart).size(), 1u);
  EXPECT_EQ(receive(link, kStart + 499).size(), 0u);
  EXPECT_EQ(receive(link, kStart + 500).size(), 2u);
  EXPECT_EQ(receive(link, kStart + 1999).size(), 0u);
  EXPECT_FALSE(link.finished());
  EXPECT_EQ(receive(link, kStart + 5'000'000'000).size(), 2u);  // a late call loses nothing
  EXPECT_TRUE(link.finished());
}

TEST_F(PcapLinkFile, KeepsARateOfPackets) {
  write(many(100, 0));
  PcapLinkConfig config = this->config(ReplayPace::packets);
  config.packets_per_s = 1e6;
  PcapLink link(config);
  std::size_t given = 0;
  for (std::uint64_t now_ns = 0; now_ns < 99'000; now_ns += 500) {
    given += receive(link, 1'000'000 + now_ns).size();
    EXPECT_EQ(given, now_ns / 1000 + 1);
  }
  EXPECT_FALSE(link.finished());
  EXPECT_EQ(receive(link, 1'099'000).size(), 1u);
  EXPECT_TRUE(link.finished());
}

TEST_F(PcapLinkFile, WhatDoesNotFitComesInTheNextCall) {
  std::vector<Kept> kept;
  for (std::uint32_t p = 0; p < 10; ++p) kept.push_back({payload(p, 1000), p});
  kept[4].payload.clear();  // an empty packet needs no room
  write(kept);
  PcapLink link(config());
  std::vector<std::size_t> calls;
  std::vector<Bytes> payloads;
  while (!link.finished()) {
    const auto got = receive(link, 0, 2100);
    calls.push_back(got.size());
    for (const Got& packet : got) payloads.push_back(packet.payload);
    ASSERT_LT(calls.size(), 20u);
  }
  EXPECT_EQ(calls, (std::vector<std::size_t>{2, 3, 2, 2, 1}));
  for (std::size_t p = 0; p < kept.size(); ++p) EXPECT_EQ(payloads[p], kept[p].payload);
  EXPECT_EQ(link.stats().rx_truncated, 0u);
}

TEST_F(PcapLinkFile, APacketLongerThanAllowedOrThanTheWholeRoomIsCut) {
  write({{payload(1, 3000), 0}, {payload(2, 1472), 0}, {payload(3, 1472), 0}, {payload(4, 10), 0}});
  PcapLink link(config());
  EXPECT_EQ(link.min_room_bytes(), 1472u);
  const auto first = receive(link, 0, 3000, 2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].payload.size(), 1472u);
  EXPECT_EQ(first[0].about.flags, RxPacket::truncated);
  EXPECT_EQ(first[1].about.flags, 0);
  const auto second = receive(link, 0, 100);
  ASSERT_EQ(second.size(), 1u);
  Bytes beginning = payload(3, 1472);
  beginning.resize(100);
  EXPECT_EQ(second[0].payload, beginning);
  EXPECT_EQ(second[0].about.flags, RxPacket::truncated);
  const auto nothing = receive(link, 0, 0);
  ASSERT_EQ(nothing.size(), 1u);
  EXPECT_EQ(nothing[0].about.bytes, 0u);
  EXPECT_EQ(link.stats().rx_truncated, 3u);
}

TEST_F(PcapLinkFile, PlaysOnePortAndCountsWhatItPassesOver) {
  begin();
  add({payload(1, 50), 0, 6200});
  add({payload(2, 50), 0, 6300});
  add({payload(3, 50), 0, 6200});
  Bytes other(40, std::byte{0x45});  // protocol 0x45
  for (int i = 0; i < 2; ++i) put(0);
  for (int i = 0; i < 2; ++i) put(40);
  put(other);
  add({payload(4, 50), 0, 6300});
  const std::size_t whole = file_.size();
  add({payload(5, 50), 0, 6200});
  file_.resize(whole + 20);  // the file ends within the record
  write();
  PcapLinkConfig config = this->config();
  config.port = 6200;
  PcapLink link(config);
  const auto got = receive(link, 0);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[1].payload, payload(3, 50));
  EXPECT_TRUE(link.finished());
  EXPECT_EQ(link.stats().rx_skipped_port, 2u);
  EXPECT_EQ(link.stats().rx_skipped_not_udp, 1u);
  EXPECT_EQ(link.stats().rx_skipped_fragment + link.stats().rx_skipped_cut, 0u);
  EXPECT_EQ(link.stats().rx_bytes_damaged, 20u);
  auto counts = named(link);
  EXPECT_EQ(counts["records"], 5u);
  EXPECT_EQ(counts["skipped_port"], 2u);
  EXPECT_EQ(counts["skipped_not_udp"], 1u);
  EXPECT_EQ(counts["skipped_cut"] + counts["skipped_fragment"], 0u);
  EXPECT_EQ(counts["bytes_damaged"], 20u);
  EXPECT_EQ(link.local(), (Endpoint{.scheme = "pcap", .address = 0, .port = 6200}));
}

TEST_F(PcapLinkFile, PlaysWhatTheRecorderWrote) {
  std::vector<Kept> kept = many(200, 0);
  write(kept);
  const std::string again = folder_ + "/again.pcap";
  {
    auto inner = std::make_unique<PcapLink>(config());
    Recorder recorder(std::move(inner), {.path = again, .local = {.scheme = "udp", .address = 0x0A000002, .port = 6200}});
    Bytes room(1 << 20);
    std::vector<RxPacket> packets(32);
    while (recorder.receive(room, packets, 0).packet_count > 0) {
    }
  }
  path_ = again;
  PcapLink link(config(ReplayPace::original));
  std::size_t next = 0;
  for (std::uint64_t now_ns = 0; !link.finished() && now_ns < 3'600'000'000'000; now_ns += 1'000'000'000) {
    for (const Got& packet : receive(link, now_ns)) {
      EXPECT_EQ(packet.payload, kept[next].payload);
      EXPECT_EQ(packet.about.peer_port, 40000 + next);
      ++next;
    }
  }
  EXPECT_EQ(next, kept.size());
}

TEST_F(PcapLinkFile, AnEmptyRecordingIsFinishedAtOnce) {
  write(std::vector<Kept>{});
  PcapLink link(config(ReplayPace::original));
  EXPECT_TRUE(link.finished());
  EXPECT_TRUE(receive(link, 0).empty());
  link.wait(1000);
}

// How long a sleep takes at least is sure; that wait() with a packet due does not sleep is seen from the time-out it is given.
TEST_F(PcapLinkFile, WaitsForTheNextPacketOnly) {
  write({{payload(1, 10), 0}, {payload(2, 10), 5'000'000}});
  PcapLink link(config(ReplayPace::original));
  constexpr std::uint64_t kHour = 3'600'000'000'000;
  link.wait(kHour);  // the first is due at once
  EXPECT_EQ(receive(link, 1000).size(), 1u);
  link.wait(kHour);  // 5 ms
  EXPECT_EQ(receive(link, 5'001'000).size(), 1u);
  link.wait(1000);
  PcapLink fast(config());
  fast.wait(kHour);
}

TEST_F(PcapLinkFile, WhatIsSentIsCountedAsDropped) {
  write(many(1, 0));
  PcapLink link(config());
  const Bytes data = payload(1, 10);
  const std::vector<TxPacket> packets(3, TxPacket{data.data(), 10, 0});
  link.send(packets, 0);
  EXPECT_EQ(link.stats().tx_dropped, 3u);
  EXPECT_EQ(link.stats().tx_packets, 0u);
}

TEST_F(PcapLinkFile, SaysItsPath) {
  write(many(1, 0));
  EXPECT_NE(PcapLink(config()).path().find("as fast"), std::string::npos);
  EXPECT_NE(PcapLink(config(ReplayPace::original)).path().find(path_ + ", at its own pace"), std::string::npos);
  EXPECT_TRUE(PcapLink(config()).notes().empty());
}

TEST_F(PcapLinkFile, SetUpMistakesThrow) {
  EXPECT_THROW(PcapLink{config()}, SetupError);  // no file yet
  std::ofstream(path_) << "not a capture, but longer than 24 bytes";
  EXPECT_THROW(PcapLink{config()}, SetupError);
  write(many(1, 0));
  const auto refused = [&](auto&& change) {
    PcapLinkConfig wrong = config();
    change(wrong);
    EXPECT_THROW(PcapLink{wrong}, SetupError);
  };
  refused([](PcapLinkConfig& c) { c.pace = ReplayPace::events; });
  refused([](PcapLinkConfig& c) { c.pace = ReplayPace::packets; });
  refused([](PcapLinkConfig& c) { c.packet_bytes_max = 0; });
  refused([](PcapLinkConfig& c) { c.packet_bytes_max = 65'508; });
}

// Every prefix of a file, and every byte of it changed: the books balance, nothing is read outside (the address sanitizer looks).
TEST_F(PcapLinkFile, DamagedFilesArePlayedAsFarAsTheyGo) {
  write(many(4, 10));
  const std::string whole = file_;
  for (std::size_t k = 24; k < 2 * whole.size() - 24; ++k) {
    file_ = k < whole.size() ? whole.substr(0, k) : whole;
    if (k >= whole.size()) file_[k - whole.size() + 24] = static_cast<char>(~file_[k - whole.size() + 24]);
    write();
    PcapLink link(config());
    std::uint64_t given = 0;
    for (int call = 0; call < 8 && !link.finished(); ++call) given += receive(link, 0, 4096, 2).size();
    EXPECT_TRUE(link.finished());
    auto counts = named(link);
    EXPECT_EQ(counts["records"], given + counts["skipped_not_udp"] + counts["skipped_fragment"] + counts["skipped_cut"]);
  }
}

}  // namespace
}  // namespace nanet::link::test
