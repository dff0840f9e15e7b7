// SPDX-License-Identifier: Apache-2.0
// The reader on files that are made here, byte by byte, by a writer of its own; and what it says of damage.
#include "link/pcap/pcap_reader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace nanet::link::test {
namespace {

using Octets = std::vector<std::uint8_t>;

enum class Order { little, big };

void put(Octets& to, std::uint64_t value, std::size_t bytes, Order order) {
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::size_t shift = 8 * (order == Order::little ? i : bytes - 1 - i);
    to.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

Octets joined(std::initializer_list<Octets> parts) {
  Octets all;
  for (const Octets& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

struct Ip {
  std::uint8_t version_and_words = 0x45;
  std::uint8_t protocol = 17;
  std::uint16_t fragment = 0x4000;
  std::uint16_t to_port = 6200;
  int udp_length_change = 0;
  int ip_length_change = 0;
};

Octets udp_packet(const std::string& payload, const Ip& ip = {}) {
  Octets packet{ip.version_and_words, 0};
  const int header_bytes = 4 * (ip.version_and_words & 0xF);
  put(packet, static_cast<std::uint64_t>(header_bytes + 8 + static_cast<int>(payload.size()) + ip.ip_length_change), 2, Order::big);
  put(packet, 7, 2, Order::big);
  put(packet, ip.fragment, 2, Order::big);
  packet.insert(packet.end(), {64, ip.protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2});
  packet.resize(static_cast<std::size_t>(header_bytes));
  put(packet, 40000, 2, Order::big);
  put(packet, ip.to_port, 2, Order::big);
  put(packet, static_cast<std::uint64_t>(static_cast<int>(8 + payload.size()) + ip.udp_length_change), 2, Order::big);
  put(packet, 0, 2, Order::big);
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

Octets ethernet(const Octets& packet, const Octets& tags = {}, std::uint16_t type = 0x0800) {
  Octets frame = joined({Octets(12, 0xEE), tags});
  put(frame, type, 2, Order::big);
  return joined({frame, packet});
}

// Copied to a block of exactly its size, so that the address sanitizer sees a read past the end.
class File {
 public:
  File(std::uint32_t magic, Order order, std::uint32_t link_type, const std::vector<Octets>& frames, const Octets& behind = {}) {
    Octets bytes;
    put(bytes, magic, 4, order);
    put(bytes, 2, 2, order);
    put(bytes, 4, 2, order);
    put(bytes, 0, 8, order);
    put(bytes, 262144, 4, order);
    put(bytes, link_type, 4, order);
    std::uint32_t second = 1000;
    for (const Octets& frame : frames) {
      put(bytes, second++, 4, order);
      put(bytes, 5, 4, order);
      put(bytes, frame.size(), 4, order);
      put(bytes, frame.size(), 4, order);
      bytes.insert(bytes.end(), frame.begin(), frame.end());
    }
    bytes.insert(bytes.end(), behind.begin(), behind.end());
    size_ = bytes.size();
    data_ = std::make_unique<std::byte[]>(size_);
    std::memcpy(data_.get(), bytes.data(), size_);
  }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  std::size_t size_ = 0;
  std::unique_ptr<std::byte[]> data_;
};

constexpr std::uint32_t kUs = 0xA1B2C3D4;
constexpr std::uint32_t kNs = 0xA1B23C4D;

struct Read {
  std::vector<std::string> payloads;
  std::vector<std::uint64_t> times_ns;
  PcapStats stats;
  PcapPacket last{};
};

Read read(const File& file) {
  PcapReader reader;
  Read found;
  EXPECT_EQ(PcapReader::open(file.bytes(), reader), PcapError::none);
  while (reader.next(found.last)) {
    found.payloads.emplace_back(reinterpret_cast<const char*>(found.last.payload.data()), found.last.payload.size());
    found.times_ns.push_back(found.last.time_ns);
  }
  found.stats = reader.stats();
  EXPECT_EQ(found.stats.records,
            found.stats.packets + found.stats.skipped_not_udp + found.stats.skipped_fragment + found.stats.skipped_cut);
  EXPECT_EQ(found.stats.packets, found.payloads.size());
  return found;
}

TEST(PcapReader, ReadsBothByteOrdersAndBothClocks) {
  for (const Order order : {Order::little, Order::big}) {
    for (const std::uint32_t magic : {kUs, kNs}) {
      const Read found = read(File(magic, order, 101, {udp_packet("one"), udp_packet("second")}));
      EXPECT_EQ(found.payloads, (std::vector<std::string>{"one", "second"}));
      const std::uint64_t fraction_ns = magic == kUs ? 5000 : 5;
      EXPECT_EQ(found.times_ns, (std::vector<std::uint64_t>{1'000'000'000'000 + fraction_ns, 1'001'000'000'000 + fraction_ns}));
      EXPECT_EQ(found.last.flow.from_address, 0x0A000001u);
      EXPECT_EQ(found.last.flow.to_address, 0x0A000002u);
      EXPECT_EQ(found.last.flow.from_port, 40000);
      EXPECT_EQ(found.last.flow.to_port, 6200);
      EXPECT_EQ(found.stats.bytes_damaged, 0u);
    }
  }
}

TEST(PcapReader, ReadsEveryLinkType) {
  const Octets packet = udp_packet("payload");
  const Octets vlan{0x81, 0x00, 0, 5};
  const Octets provider{0x88, 0xA8, 0, 6};
  const Octets cooked = joined({Octets(14, 1), {0x08, 0x00}, packet});
  const Octets cooked2 = joined({{0x08, 0x00}, Octets(18, 1), packet});
  const std::vector<std::pair<std::uint32_t, std::vector<Octets>>> cases = {
      {101, {packet}},
      {12, {packet}},
      {14, {packet}},
      {228, {packet}},
      {1, {ethernet(packet), ethernet(packet, vlan), ethernet(packet, joined({provider, vlan}))}},
      {113, {cooked}},
      {276, {cooked2}},
      {1u | 0x50000000u, {ethernet(packet)}},
  };
  for (const auto& [type, frames] : cases) {
    const Read found = read(File(kUs, Order::little, type, frames));
    EXPECT_EQ(found.payloads, std::vector<std::string>(frames.size(), "payload")) << type;
  }
}

TEST(PcapReader, PassesOverWhatIsNotAWholeUdpPacket) {
  Octets short_udp = udp_packet("");
  short_udp.resize(27);
  Octets tag_only = ethernet({}, {0x81, 0x00, 0, 5}, 0x8100);
  const Read found = read(File(kUs, Order::little, 1,
                               {
                                   ethernet(udp_packet("tcp", {.protocol = 6})),
                                   ethernet(udp_packet("arp"), {}, 0x0806),
                                   ethernet(udp_packet("six", {.version_and_words = 0x65})),
                                   Octets(13, 0),
                                   tag_only,
                                   ethernet({}),
                                   ethernet(udp_packet("first part", {.fragment = 0x2000})),
                                   ethernet(udp_packet("later part", {.fragment = 0x0010})),
                                   ethernet(short_udp),
                                   ethernet(Octets{0x45}),
                                   ethernet(udp_packet("no header", {.version_and_words = 0x44})),
                                   ethernet(udp_packet("longer", {.udp_length_change = 1})),
                                   ethernet(udp_packet("", {.udp_length_change = -1})),
                                   ethernet(udp_packet("IP says less than UDP", {.ip_length_change = -1})),
                                   ethernet(udp_packet("IP says more than there is", {.ip_length_change = 1})),
                                   ethernet(udp_packet("good")),
                                   ethernet(udp_packet("good", {.version_and_words = 0x4F})),
                                   ethernet(udp_packet("padded")),
                               }));
  EXPECT_EQ(found.payloads, (std::vector<std::string>{"good", "good", "padded"}));
  EXPECT_EQ(found.stats.skipped_not_udp, 6u);
  EXPECT_EQ(found.stats.skipped_fragment, 2u);
  EXPECT_EQ(found.stats.skipped_cut, 7u);
}

TEST(PcapReader, SaysWhereTheFileIsDamaged) {
  const Octets packet = udp_packet("good");
  EXPECT_EQ(read(File(kUs, Order::little, 101, {packet}, Octets(15, 0))).stats.bytes_damaged, 15u);
  Octets record;
  for (const std::uint32_t word : {1u, 2u, 100u, 100u}) put(record, word, 4, Order::little);
  record.resize(16 + 99);
  const Read found = read(File(kUs, Order::little, 101, {packet}, record));
  EXPECT_EQ(found.payloads.size(), 1u);
  EXPECT_EQ(found.stats.bytes_damaged, record.size());
  Octets huge;
  for (const std::uint32_t word : {1u, 2u, 0xFFFFFFFFu, 3u}) put(huge, word, 4, Order::little);
  EXPECT_EQ(read(File(kUs, Order::little, 101, {packet}, huge)).stats.bytes_damaged, 16u);
}

TEST(PcapReader, RefusesOtherFiles) {
  PcapReader reader;
  EXPECT_EQ(PcapReader::open(File(kUs, Order::little, 101, {}).bytes().first(23), reader), PcapError::not_pcap);
  EXPECT_EQ(PcapReader::open(File(0x12345678, Order::little, 101, {}).bytes(), reader), PcapError::not_pcap);
  EXPECT_EQ(PcapReader::open(File(0x0A0D0D0A, Order::little, 101, {}).bytes(), reader), PcapError::pcapng);
  EXPECT_EQ(PcapReader::open(File(kUs, Order::little, 189, {}).bytes(), reader), PcapError::link_type);
  EXPECT_EQ(PcapReader::open({}, reader), PcapError::not_pcap);
  EXPECT_EQ(read(File(kUs, Order::little, 1, {})).stats.records, 0u);
}

TEST(PcapReader, RewindBeginsAgain) {
  const File file(kUs, Order::little, 101, {udp_packet("one"), udp_packet("two")});
  PcapReader reader;
  ASSERT_EQ(PcapReader::open(file.bytes(), reader), PcapError::none);
  PcapPacket packet;
  for (int lap = 0; lap < 3; ++lap) {
    EXPECT_TRUE(reader.next(packet));
    EXPECT_EQ(packet.payload.size(), 3u);
    EXPECT_TRUE(reader.next(packet));
    EXPECT_FALSE(reader.next(packet));
    EXPECT_EQ(reader.stats().records, 2u);
    reader.rewind();
  }
}

}  // namespace
}  // namespace nanet::link::test
