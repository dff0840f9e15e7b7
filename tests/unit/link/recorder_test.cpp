// SPDX-License-Identifier: Apache-2.0
// The recorder's files, read by a reader of its own.
#include "nanet/link/recorder.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "nanet/setup_error.hpp"
#include "sockets.hpp"

namespace nanet::link::test {
namespace {

using Octets = std::vector<std::uint8_t>;

struct Record {
  std::uint64_t time_ns;
  Octets packet;  // from the IPv4 header on
};

std::uint32_t le32(const Octets& data, std::size_t at) {
  return data[at] | std::uint32_t{data[at + 1]} << 8 | std::uint32_t{data[at + 2]} << 16 | std::uint32_t{data[at + 3]} << 24;
}
std::uint32_t be16(const Octets& data, std::size_t at) { return std::uint32_t{data[at]} << 8 | data[at + 1]; }
std::uint32_t be32(const Octets& data, std::size_t at) { return be16(data, at) << 16 | be16(data, at + 2); }

// Ones' complement sum over the words of all parts; a right checksum makes it 0xFFFF.
std::uint32_t ones_sum(const Octets& data) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    sum += i % 2 == 0 ? std::uint32_t{data[i]} << 8 : data[i];
    sum = (sum & 0xFFFF) + (sum >> 16);
  }
  return sum;
}

Octets file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<Record> read_pcap(const std::string& path) {
  const Octets file = file_bytes(path);
  std::vector<Record> records;
  const Octets header{0x4D, 0x3C, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0};
  EXPECT_EQ(Octets(file.begin(), file.begin() + 24), header);
  for (std::size_t at = 24; at < file.size();) {
    const std::uint32_t bytes = le32(file, at + 8);
    EXPECT_EQ(le32(file, at + 12), bytes);
    EXPECT_LE(at + 16 + bytes, file.size());
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at + 16);
    records.push_back({le32(file, at) * 1'000'000'000ull + le32(file, at + 4), Octets(begin, begin + bytes)});
    at += 16 + bytes;
  }
  return records;
}

void expect_right_headers(const Octets& packet, std::size_t payload_bytes) {
  ASSERT_EQ(packet.size(), payload_bytes + 28);
  EXPECT_EQ(be16(packet, 2), packet.size());
  EXPECT_EQ(ones_sum(Octets(packet.begin(), packet.begin() + 20)), 0xFFFFu);
  EXPECT_EQ(be16(packet, 24), payload_bytes + 8);
  Octets covered{0, 17, packet[24], packet[25]};  // pseudo header: zero, protocol, UDP length, then both addresses
  covered.insert(covered.end(), packet.begin() + 12, packet.end());
  EXPECT_EQ(ones_sum(covered), 0xFFFFu);
  EXPECT_NE(be16(packet, 26), 0u);
}

std::uint64_t wall_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

class RecorderFile : public testing::Test {
 protected:
  static RecorderConfig config_of(const std::string& path, std::uint64_t max_bytes, const Endpoint& local,
                                  const Endpoint& destination) {
    RecorderConfig config;
    config.path = path;
    config.max_bytes = max_bytes;
    config.local = local;
    config.destinations.push_back(destination);
    return config;
  }

  RecorderFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "recorder_test_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/capture.pcap";
  }
  ~RecorderFile() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string path_;
};

TEST_F(RecorderFile, BothDirectionsAreWrittenWithRightChecksums) {
  PlainSocket peer;
  UdpConfig config = listening();
  config.destinations = {Endpoint{"udp", INADDR_LOOPBACK, peer.port()}};
  auto udp = std::make_unique<UdpLink>(config);
  const Endpoint local = udp->local();
  const std::uint64_t begin_ns = wall_clock_ns();
  const std::vector<std::size_t> sizes{1168, 0, 1, 1471, 65507, 1168, 1168};
  {
    Recorder recorder(std::move(udp), config_of(path_, 1u << 30, local, config.destinations[0]));
    Collector collector;
    for (std::uint32_t i = 0; i < sizes.size(); ++i) {
      peer.send(local.port, payload(i, sizes[i]));
      const auto got = collector.collect(recorder, 1);
      ASSERT_EQ(got.size(), 1u);
      EXPECT_EQ(got[0].data, payload(i, sizes[i]));
      const Bytes answer = payload(100 + i, 40);
      const TxPacket packet{answer.data(), 40, 0};
      recorder.send(std::span(&packet, 1), 0);
      EXPECT_EQ(peer.receive()->first, answer);
    }
    EXPECT_EQ(recorder.recorder_stats().packets_recorded, 2 * sizes.size());
    EXPECT_EQ(recorder.stats().rx_packets, sizes.size());
    recorder.flush();
    EXPECT_EQ(read_pcap(path_).size(), 2 * sizes.size());
    EXPECT_EQ(std::filesystem::file_size(path_), recorder.recorder_stats().bytes_recorded);
  }
  const std::uint64_t end_ns = wall_clock_ns();
  const auto records = read_pcap(path_);
  ASSERT_EQ(records.size(), 2 * sizes.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const bool received = i % 2 == 0;
    const Octets& packet = records[i].packet;
    const Bytes expected = received ? payload(static_cast<std::uint32_t>(i / 2), sizes[i / 2])
                                    : payload(static_cast<std::uint32_t>(100 + i / 2), 40);
    expect_right_headers(packet, expected.size());
    EXPECT_EQ(be32(packet, 12), INADDR_LOOPBACK);
    EXPECT_EQ(be32(packet, 16), INADDR_LOOPBACK);
    EXPECT_EQ(be16(packet, 20), received ? peer.port() : local.port);
    EXPECT_EQ(be16(packet, 22), received ? local.port : peer.port());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), reinterpret_cast<const std::byte*>(packet.data()) + 28));
    EXPECT_GE(records[i].time_ns, begin_ns);
    EXPECT_LE(records[i].time_ns, end_ns);
  }
}

// A link that goes nowhere, so that every byte of the headers is known.
class Nowhere : public Link {
 public:
  std::size_t min_room_bytes() const override { return 0; }
  RxBatch receive(std::span<std::byte>, std::span<RxPacket>, std::uint64_t) override { return {}; }
  void send(std::span<const TxPacket>, std::uint64_t) override {}
  void wait(std::uint64_t) override {}
  Endpoint local() const override { return {}; }
  std::string path() const override { return "memory"; }
  std::vector<std::string> notes() const override { return {}; }
  LinkStats stats() const override { return {}; }
};

TEST_F(RecorderFile, LiteralBytes) {
  const RecorderConfig config = config_of(path_, 1000, Endpoint{"udp", 0x0A000001, 6200}, Endpoint{"udp", 0xC0A80002, 6201});
  const std::array<std::byte, 5> data{std::byte{'h'}, std::byte{'e'}, std::byte{'l'}, std::byte{'l'}, std::byte{'o'}};
  const TxPacket packet{data.data(), 5, 0};
  { Recorder(std::make_unique<Nowhere>(), config).send(std::span(&packet, 1), 0); }
  const auto records = read_pcap(path_);
  ASSERT_EQ(records.size(), 1u);
  const Octets expected{0x45, 0x00, 0x00, 0x21, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x70, 0x21, 0x0A, 0x00, 0x00, 0x01, 0xC0,
                        0xA8, 0x00, 0x02, 0x18, 0x38, 0x18, 0x39, 0x00, 0x0D, 0xC0, 0xE5, 'h',  'e',  'l',  'l',  'o'};
  EXPECT_EQ(records[0].packet, expected);
}

TEST_F(RecorderFile, StopsAtItsLimitAndCounts) {
  const RecorderConfig config = config_of(path_, 24 + 3 * (16 + 28 + 100) + 50, Endpoint{"udp", 1, 1}, Endpoint{"udp", 2, 2});
  const Bytes data = payload(1, 100);
  const Bytes shorter = payload(2, 1);
  {
    Recorder recorder(std::make_unique<Nowhere>(), config);
    const std::vector<TxPacket> packets(5, TxPacket{data.data(), 100, 0});
    recorder.send(packets, 0);
    const TxPacket small{shorter.data(), 1, 0};  // it would fit, but a capture with holes would mislead
    recorder.send(std::span(&small, 1), 0);
    EXPECT_EQ(recorder.recorder_stats().packets_recorded, 3u);
    EXPECT_EQ(recorder.recorder_stats().packets_unrecorded, 3u);
    EXPECT_EQ(recorder.stats().recorded, 3u);
    EXPECT_EQ(recorder.stats().unrecorded, 3u);
    ASSERT_EQ(recorder.notes().size(), 1u);
    EXPECT_NE(recorder.notes()[0].find("bytes_max = 506"), std::string::npos) << recorder.notes()[0];
  }
  EXPECT_EQ(read_pcap(path_).size(), 3u);
  EXPECT_LE(std::filesystem::file_size(path_), config.max_bytes);
}

TEST_F(RecorderFile, MoreThanOneBufferIsWrittenWhole) {
  const RecorderConfig config = config_of(path_, 1u << 30, Endpoint{"udp", 1, 1}, Endpoint{"udp", 2, 2});
  const Bytes data = payload(1, 60'000);
  {
    Recorder recorder(std::make_unique<Nowhere>(), config);
    const std::vector<TxPacket> packets(100, TxPacket{data.data(), 60'000, 0});
    recorder.send(packets, 0);
  }
  const auto records = read_pcap(path_);
  ASSERT_EQ(records.size(), 100u);
  for (const Record& record : records) {
    expect_right_headers(record.packet, 60'000);
  }
}

TEST_F(RecorderFile, FullDiskIsCountedAndStopsNothing) {
  const RecorderConfig config = config_of("/dev/full", 1u << 30, Endpoint{"udp", 1, 1}, Endpoint{"udp", 2, 2});
  const Bytes data = payload(1, 60'000);
  Recorder recorder(std::make_unique<Nowhere>(), config);
  const std::vector<TxPacket> packets(100, TxPacket{data.data(), 60'000, 0});
  recorder.send(packets, 0);
  EXPECT_EQ(recorder.recorder_stats().packets_recorded, 0u);
  EXPECT_EQ(recorder.recorder_stats().packets_unrecorded, 100u);
  EXPECT_EQ(recorder.stats().unrecorded, 100u);
  ASSERT_EQ(recorder.notes().size(), 1u);
  EXPECT_NE(recorder.notes()[0].find("No space left on device"), std::string::npos) << recorder.notes()[0];
}

// A disk that takes a part of the last packet: the file ends before that packet, and the books say what is in it.
TEST_F(RecorderFile, EndsWithAWholeRecordWhereTheDiskIsFull) {
  constexpr std::uint32_t kBytes = 60'000;
  constexpr rlim_t kRoom = 2'345'678;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit full = before;
  full.rlim_cur = kRoom;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  RecorderStats stats;
  {
    const Bytes data = payload(1, kBytes);
    Recorder recorder(std::make_unique<Nowhere>(), config_of(path_, 1u << 30, Endpoint{"udp", 1, 1}, Endpoint{"udp", 2, 2}));
    const std::vector<TxPacket> packets(100, TxPacket{data.data(), kBytes, 0});
    recorder.send(packets, 0);
    recorder.flush();
    stats = recorder.recorder_stats();
    EXPECT_EQ(recorder.notes().size(), 1u);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  const std::uint64_t fitting = (kRoom - 24) / (16 + 28 + kBytes);
  EXPECT_EQ(read_pcap(path_).size(), fitting);
  EXPECT_EQ(stats.packets_recorded, fitting);
  EXPECT_EQ(stats.packets_unrecorded, 100 - fitting);
  EXPECT_EQ(std::filesystem::file_size(path_), stats.bytes_recorded);
}

TEST_F(RecorderFile, RefusesAPathThatCannotBe) {
  try {
    Recorder(std::make_unique<Nowhere>(), config_of(directory_ + "/no/such/file.pcap", 1000, {}, {}));
    FAIL();
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("No such file or directory"), std::string::npos);
  }
  EXPECT_THROW(Recorder(std::make_unique<Nowhere>(), config_of(path_, 23, {}, {})), SetupError);
}

}  // namespace
}  // namespace nanet::link::test
