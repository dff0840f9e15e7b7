// SPDX-License-Identifier: Apache-2.0
// The player over real sockets, from a source made of memory: every packet once a lap, in order, not before its time.
#include "link/pcap/replay.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "nanet/setup_error.hpp"
#include "sockets.hpp"

namespace nanet::link::test {
namespace {

struct Made {
  std::vector<Bytes> payloads;
  std::uint64_t gap_ns = 0;
};

class MemorySource final : public ReplaySource {
 public:
  explicit MemorySource(Made made) : made_(std::move(made)) {}
  std::size_t next(std::span<ReplayPacket> packets) override {
    std::size_t count = 0;
    for (; count < packets.size() && next_ < made_.payloads.size(); ++count, ++next_) {
      packets[count] = {made_.payloads[next_], 5'000 + next_ * made_.gap_ns, 2};
    }
    return count;
  }
  void rewind() override { next_ = 0; }
  Counts counts() const override { return {{"given", next_}}; }

 private:
  const Made made_;
  std::size_t next_ = 0;
};

Made make(std::size_t count, std::uint64_t gap_ns = 0) {
  Made made{.gap_ns = gap_ns};
  for (std::uint32_t p = 0; p < count; ++p) made.payloads.push_back(payload(p, 100 + p % 3));
  return made;
}

std::string to(const PlainSocket& socket) { return "udp://127.0.0.1:" + std::to_string(socket.port()); }

void expect_laps(PlainSocket& listener, const Made& made, std::size_t laps) {
  for (std::size_t lap = 0; lap < laps; ++lap) {
    for (const Bytes& expected : made.payloads) {
      const auto got = listener.receive();
      ASSERT_TRUE(got.has_value());
      ASSERT_EQ(got->first, expected);
    }
  }
  EXPECT_FALSE(listener.receive(0).has_value());
}

TEST(Replay, PlaysEveryPacketOfEveryLapInOrder) {
  for (const ReplayPace pace : {ReplayPace::original, ReplayPace::packets, ReplayPace::events, ReplayPace::maximum}) {
    PlainSocket listener;
    const Made made = make(70, 1000);
    Replay replay(std::make_unique<MemorySource>(made), {.to = to(listener), .pace = pace, .rate = 1e6, .laps = 2});
    EXPECT_FALSE(replay.finished());
    replay.run();
    EXPECT_TRUE(replay.finished());
    expect_laps(listener, made, 2);
    const ReplayStats stats = replay.stats();
    EXPECT_EQ(stats.packets_sent, 140u);
    EXPECT_EQ(stats.events_sent, 280u);
    EXPECT_EQ(stats.laps_done, 2u);
    EXPECT_EQ(stats.tx_dropped, 0u);
    EXPECT_EQ(replay.counts().front().second, 70u);
  }
}

// Gaps of 10 ms: how long it takes at least is sure, how much longer is the machine's.
TEST(Replay, NothingLeavesBeforeItsTime) {
  PlainSocket listener;
  const Made made = make(6, 10'000'000);
  Replay original(std::make_unique<MemorySource>(made), {.to = to(listener), .laps = 2});
  original.run();
  EXPECT_GE(original.stats().elapsed_ns, 110'000'000u);
  expect_laps(listener, made, 2);
  Replay packets(std::make_unique<MemorySource>(made), {.to = to(listener), .pace = ReplayPace::packets, .rate = 100});
  packets.run();
  EXPECT_GE(packets.stats().elapsed_ns, 50'000'000u);
  Replay events(std::make_unique<MemorySource>(made), {.to = to(listener), .pace = ReplayPace::events, .rate = 200});
  events.run();
  EXPECT_GE(events.stats().elapsed_ns, 50'000'000u);
}

TEST(Replay, StopsWhenAsked) {
  PlainSocket listener;
  Replay replay(std::make_unique<MemorySource>(make(3, 3'600'000'000'000)), {.to = to(listener), .laps = 0});
  std::thread thread([&] { replay.run(); });
  EXPECT_TRUE(listener.receive(10'000).has_value());
  EXPECT_FALSE(replay.finished());
  replay.stop();
  thread.join();
  EXPECT_TRUE(replay.finished());
  EXPECT_EQ(replay.stats().packets_sent, 1u);
}

TEST(Replay, AnEmptyRecordingEndsAtOnce) {
  Replay replay(std::make_unique<MemorySource>(Made{}), {.to = "udp://127.0.0.1:9", .laps = 0});
  replay.run();
  EXPECT_EQ(replay.stats().packets_sent, 0u);
}

TEST(Replay, SetUpMistakesThrow) {
  const auto source = [] { return std::make_unique<MemorySource>(Made{}); };
  EXPECT_THROW(Replay(source(), {.to = "nowhere"}), SetupError);
  for (const double rate : {0.0, -1.0, 2e9}) {
    EXPECT_THROW(Replay(source(), {.to = "udp://127.0.0.1:9", .pace = ReplayPace::packets, .rate = rate}), SetupError);
  }
  EXPECT_THROW(MappedFile("/nowhere/at/all"), SetupError);
  EXPECT_THROW(MappedFile("/"), SetupError);
}

// What PcapSource says of a file that begins with these words.
std::string refusal_of(const std::vector<std::uint32_t>& words) {
  std::string path = (std::filesystem::temp_directory_path() / "nanet-replay-XXXXXX").string();
  ::close(::mkstemp(path.data()));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(4 * words.size()));
  std::string said = "nothing";
  try {
    PcapSource(std::make_unique<MappedFile>(path), path, 0, [](std::span<const std::byte>) { return 0u; });
  } catch (const SetupError& error) {
    said = error.what();
  }
  std::filesystem::remove(path);
  return said;
}

TEST(Replay, OnlyWhatEditcapCanConvertIsSentToIt) {
  const std::string pcapng = refusal_of({0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0xFFFFFFFF, 0xFFFFFFFF, 28});
  EXPECT_NE(pcapng.find("editcap -F nsecpcap"), std::string::npos) << pcapng;
  const std::string wifi = refusal_of({0xA1B2C3D4, 0x00040002, 0, 0, 262144, 105});
  EXPECT_NE(wifi.find("link type"), std::string::npos) << wifi;
  EXPECT_EQ(wifi.find("editcap"), std::string::npos) << wifi;
  const std::string text = refusal_of({0x6C6C6548, 0x6F772C6F, 0x00646C72, 0, 0, 0});
  EXPECT_NE(text.find("not a pcap file"), std::string::npos) << text;
  EXPECT_EQ(text.find("editcap"), std::string::npos) << text;
}

}  // namespace
}  // namespace nanet::link::test
