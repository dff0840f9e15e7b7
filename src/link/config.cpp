// SPDX-License-Identifier: Apache-2.0
// Rules between the keys of a link's own section. Known to every build, whether or not it has that kind of link.
#include <algorithm>
#include <string>

#include "nanet/link/dpdk.hpp"
#include "nanet/link/pcap_config.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/link/xdp.hpp"

namespace nanet::link {

using config::Problem;

std::optional<Problem> UdpConfig::check() const {
  const UdpConfig plain;
  if (queues < 1 || queues > kQueuesMax || queue >= queues) {
    return Problem{"queues", "queue " + std::to_string(queue) + " of " + std::to_string(queues),
                   "an endpoint has 1 to " + std::to_string(kQueuesMax) + " queues, numbered from 0", "lower queues"};
  }
  const std::string steered = "steer_by " + std::string(config::name_of(steer_by));
  if (queues == 1 && steer_by != SteerBy::flow) {
    return Problem{"steer_by", steered + " with one queue", "every packet comes to it", "set queues: 2 or more, or remove steer_by"};
  }
  if (steer_by != SteerBy::key && (key_at != plain.key_at || key_bytes != plain.key_bytes)) {
    return Problem{"key_at", "a key with " + steered, "the payload does not choose the queue", "set steer_by: key, or remove it"};
  }
  if (key_bytes < 1 || key_bytes > kKeyBytesMax) {
    return Problem{"key_bytes", "a key of " + std::to_string(key_bytes) + " B", "it has 1 to " + std::to_string(kKeyBytesMax),
                   "name the bytes that tell the streams apart"};
  }
  if (sent && timestamps == Timestamps::off) {
    return Problem{"sent", "sent without timestamps", "there is nothing to compare it with", "set timestamps: software"};
  }
  return std::nullopt;
}

std::optional<Problem> XdpConfig::check() const {
  if (auto broken = config::power_of_two("frame_count", frame_count, "the kernel's rings have such sizes")) return broken;
  std::vector<std::uint32_t> sorted = queues;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) {
    return Problem{"queues", "a queue is named twice", "each has one socket", "name each once"};
  }
  if (split_queues && queues.size() < 2) {
    return Problem{"split_queues", "there are no queues to split", "queues does not name two or more",
                   "name them, or leave split_queues out"};
  }
  return std::nullopt;
}

std::optional<Problem> DpdkConfig::check() const {
  constexpr std::uint32_t kGpuSplitBytes = 66;      // Ethernet, IPv4, UDP, packet header, first event header
  constexpr std::uint32_t kIpv6GpuSplitBytes = 86;  // which of the two it has to be, the endpoint says
  const bool stays = payloads == Payloads::in_place || payload_memory == DpdkMemory::gpu;
  const std::string split = split_bytes == 0 ? "None" : std::to_string(split_bytes);
  if (payload_memory == DpdkMemory::gpu && split_bytes != kGpuSplitBytes && split_bytes != kIpv6GpuSplitBytes) {
    return Problem{"split_bytes", "payload_memory gpu with split_bytes " + split, "the host has to keep 24 bytes of each payload",
                   "set split_bytes: " + std::to_string(kGpuSplitBytes)};
  }
  if (queues > 1 && stays) {
    return Problem{"queues", "payloads that stay in place with " + std::to_string(queues) + " queues",
                   "those of all queues would lie in one piece of memory, which belongs to one link",
                   "set queues: 1, or payloads: copied"};
  }
  if (stays && payload_memory == DpdkMemory::dpdk) {
    return Problem{"payload_memory", "payloads in_place in DPDK's memory",
                   "that is not one piece of memory that a consumer can be pointed to", "set payload_memory: host"};
  }
  if (stays && payload_memory == DpdkMemory::host && split_bytes != 0) {
    return Problem{"split_bytes", "payloads in_place with split_bytes " + split, "a consumer on the host reads each in one piece",
                   "remove split_bytes"};
  }
  return std::nullopt;
}

std::optional<Problem> PcapLinkConfig::check() const {
  const bool has_rate = packets_per_s != 0;
  if ((pace == ReplayPace::packets) == has_rate) return std::nullopt;
  return Problem{"pace", "pace " + std::string(config::name_of(pace)) + (has_rate ? " with" : " without") + " packets_per_s",
                 "pace packets has a rate, the others have none", "set both or neither"};
}

}  // namespace nanet::link
