// SPDX-License-Identifier: Apache-2.0
#include "node_rig.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>

#include "link/gateware/nic_counts.hpp"
#include "link/pcap/mapped_file.hpp"
#include "link/pcap/pcap_reader.hpp"
#include "link/udp_frame.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::bench {
namespace {

constexpr std::uint32_t kAddress = 0x0A00'0001, kPeer = 0x0A00'0101;
constexpr std::uint16_t kPort = 6200, kPeerPort = 4000;
constexpr std::size_t kPorts = kNodePorts;
constexpr std::size_t kSubIdPlace = 1;  // byte of a packet of MGP
constexpr std::uint8_t kSourceId = 0x1C;
constexpr std::size_t kFramesAhead = 4;  // on each wire
constexpr std::uint64_t kTurnCycles = 64, kTailCycles = 20'000;
constexpr double kNsPerCycle = 6.4;

// Frames of packets to a receiver, into a pcap file with times in nanoseconds.
class PcapFile {
 public:
  explicit PcapFile(const char* path) : path_(path), file_(std::fopen(path, "wb"), &std::fclose) {
    if (file_ == nullptr) throw SetupError("cannot write " + path_, "the file does not open", "choose a place that can be written");
    constexpr std::uint32_t kMagicNs = 0xA1B2'3C4D, kVersion = 0x0004'0002, kSnapBytes = 65'535, kEthernet = 1;
    put({kMagicNs, kVersion, 0, 0, kSnapBytes, kEthernet});
  }

  void add(std::uint64_t time_ns, std::span<const std::byte> payload) {
    std::vector<std::byte> frame(link::kFrameHeaderBytes);
    link::write_ethernet_header(frame.data(), {2, 0, 0, 0, 1, 1}, {2, 0, 0, 0, 0, 1});
    link::write_ipv4_udp_headers(frame.data() + link::kEthernetHeaderBytes, {kPeer, kAddress, kPeerPort, kPort}, payload, 0);
    frame.insert(frame.end(), payload.begin(), payload.end());
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    constexpr std::uint64_t kNsPerS = 1'000'000'000;
    put({static_cast<std::uint32_t>(time_ns / kNsPerS), static_cast<std::uint32_t>(time_ns % kNsPerS), bytes, bytes});
    write(frame.data(), frame.size());
  }

 private:
  void put(std::initializer_list<std::uint32_t> words) { write(words.begin(), words.size() * sizeof(std::uint32_t)); }
  void write(const void* from, std::size_t bytes) {
    if (std::fwrite(from, 1, bytes, file_.get()) != bytes)
      throw SetupError("cannot write " + path_, "the disk may be full", "free some of it");
  }

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

void check_nothing_dropped(NodeRig& rig) {
  namespace merge = link::gateware::merge;
  constexpr std::uint32_t kMergeCounts = 0x1B00, kStride = 0x80;  // of registers/node.rdl
  for (std::uint32_t port = 0; port < kPorts; ++port) {
    for (const unsigned counter :
         {merge::length, merge::format, merge::checksum, merge::full, merge::late, merge::jump, merge::disabled}) {
      const std::uint64_t count = rig.read(kMergeCounts + kStride * port + 8 * counter);
      if (count == 0) continue;
      throw std::runtime_error("the node dropped " + std::to_string(count) + " packets or parts of board " + std::to_string(port) +
                               " (counter " + std::to_string(counter) + " of merge, see docs/gateware-registers.md)");
    }
  }
  if (rig.model.bus().stray_count() != 0) throw std::runtime_error("the node touches memory that was not registered");
}

}  // namespace

link::gateware::NicConfig node_host() {
  return {.mac = 0x02'00'00'00'00'01, .address = kAddress, .clops = {{.buffer_bytes = 128 << 10, .buffer_count = 16}}};
}

void set_up(NodeRig& rig, const link::gateware::MergeSettings& merging) {
  link::gateware::Node settings(rig);
  for (std::size_t port = 0; port < kPorts; ++port) {
    settings.set_station(port, 0x02'00'00'00'00'01 + port, kAddress + static_cast<std::uint32_t>(port));
    settings.set_match(port, {.index = 0, .port = kPort, .from_address = 0, .from_mask = 0, .source = 0, .counts_events = false},
                       link::gateware::Route::events);
  }
  settings.set_merging(merging);
}

std::vector<std::byte> node_frame(std::size_t port, std::span<const std::byte> payload) {
  std::vector<std::byte> frame(link::kFrameHeaderBytes);
  const auto number = static_cast<std::uint8_t>(1 + port);
  link::write_ethernet_header(frame.data(), {2, 0, 0, 0, 1, number}, {2, 0, 0, 0, 0, number});
  const auto place = static_cast<std::uint32_t>(port);
  link::write_ipv4_udp_headers(frame.data() + link::kEthernetHeaderBytes, {kPeer + place, kAddress + place, kPeerPort, kPort},
                               payload, 0);
  frame.insert(frame.end(), payload.begin(), payload.end());
  return gateware::with_fcs(frame);
}

void play_node(const char* boards, const char* merged) {
  const link::MappedFile file(boards);
  link::PcapReader reader;
  if (link::PcapReader::open(file.bytes(), reader) != link::PcapError::none) {
    throw SetupError(std::string("cannot play ") + boards, "it is no pcap file that this program reads", "record one with `record`");
  }
  PcapFile out(merged);
  NodeRig rig;
  link::gateware::NicDriver driver(rig, node_host());
  set_up(rig, {.source_id = kSourceId});
  const auto look = [&] {
    rig.model.step(kTurnCycles);
    while (const Completion* buffer = driver.poll()) {
      for (const PacketRef& packet : driver.packets(*buffer)) {
        out.add(static_cast<std::uint64_t>(static_cast<double>(rig.model.cycle()) * kNsPerCycle), driver.payload(*buffer, packet));
      }
      driver.release();
    }
  };
  // Boards send at the same time, whatever the order in the file.
  std::array<std::deque<std::span<const std::byte>>, kPorts> boards_payloads;
  link::PcapPacket packet;
  while (reader.next(packet)) {
    const std::size_t port = packet.payload.size() > kSubIdPlace ? std::to_integer<std::size_t>(packet.payload[kSubIdPlace]) : kPorts;
    if (port >= kPorts)
      throw SetupError(std::string("cannot play ") + boards, "it has packets of other than boards 0 to 3", "record four boards");
    boards_payloads[port].push_back(packet.payload);
  }
  const auto left = [&] {
    return std::any_of(boards_payloads.begin(), boards_payloads.end(), [](const auto& queue) { return !queue.empty(); });
  };
  while (left()) {
    for (std::size_t port = 0; port < kPorts; ++port) {
      for (auto& queue = boards_payloads[port]; !queue.empty() && rig.model.wire_in(port).waiting() < kFramesAhead;
           queue.pop_front()) {
        rig.model.wire_in(port).push(node_frame(port, queue.front()));
      }
    }
    look();
  }
  for (std::uint64_t cycles = 0; cycles < kTailCycles; cycles += kTurnCycles) look();
  check_nothing_dropped(rig);
}

}  // namespace nanet::bench
