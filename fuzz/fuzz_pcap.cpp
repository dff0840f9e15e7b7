// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pcap file: every payload lies inside the file, every record is counted once, and a second reading gives the same.
#include <vector>

#include "fuzz_common.hpp"
#include "link/pcap/pcap_reader.hpp"

namespace {

using namespace nanet::link;
using nanet::fuzz::require;

std::vector<std::span<const std::byte>> payloads_of(std::span<const std::byte> file, PcapReader& reader) {
  std::vector<std::span<const std::byte>> payloads;
  PcapPacket packet;
  unsigned sum = 0;
  while (reader.next(packet)) {
    const std::byte* begin = packet.payload.data();
    require(
        packet.payload.size() <= file.size() && begin >= file.data() && begin + packet.payload.size() <= file.data() + file.size(),
        "a payload lies in the file");
    for (const std::byte octet : packet.payload) sum += static_cast<unsigned>(octet);
    payloads.push_back(packet.payload);
  }
  volatile unsigned keep = sum;
  (void)keep;
  const PcapStats& stats = reader.stats();
  require(stats.packets == payloads.size(), "packets are counted");
  require(stats.records == stats.packets + stats.skipped_not_udp + stats.skipped_fragment + stats.skipped_cut, "the books balance");
  require(stats.bytes_damaged <= file.size(), "damage lies in the file");
  return payloads;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nanet::fuzz::Input input(data, size);
  PcapReader reader;
  if (PcapReader::open(input.bytes(), reader) != PcapError::none) return 0;
  const auto payloads = payloads_of(input.bytes(), reader);
  reader.rewind();
  const auto again = payloads_of(input.bytes(), reader);
  require(payloads.size() == again.size(), "a second reading gives the same");
  return 0;
}
