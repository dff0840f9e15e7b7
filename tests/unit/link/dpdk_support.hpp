// SPDX-License-Identifier: Apache-2.0
// What the tests of the DPDK link share.
#pragma once

#include <functional>

#include "dpdk_network.hpp"
#include "nanet/link/dpdk.hpp"
#include "nanet/setup_error.hpp"
#include "sockets.hpp"

namespace nanet::link::test {

inline constexpr std::uint16_t kPort = 6200;

inline DpdkConfig on(const std::string& device) {
  DpdkConfig config;
  config.device = device;
  config.listen = Endpoint{"dpdk", kNear, kPort};
  return config;
}

inline std::string problem_of(const DpdkConfig& config) {
  try {
    open_dpdk(config);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Takes packets until `count` are there, or none came for a second.
inline std::vector<Got> collect(Link& link, std::size_t count) {
  std::vector<Got> got;
  Bytes room(std::size_t{1} << 18);
  std::vector<RxPacket> entries(100);
  for (int idle = 0; got.size() < count && idle < 20;) {
    const RxBatch batch = link.receive(room, entries, 0);
    for (const RxPacket& packet : std::span(entries).first(batch.packet_count)) {
      const auto begin = room.begin() + packet.offset;
      got.push_back({Bytes(begin, begin + packet.bytes), packet});
    }
    idle = batch.packet_count != 0 ? 0 : idle + 1;
    if (batch.packet_count == 0) link.wait(50'000'000);
  }
  return got;
}

// A link that no one built is said so; the tests of one that is there stand under it.
inline void with_dpdk(const std::function<void()>& test) {
  if (has_dpdk()) {
    test();
  } else {
    EXPECT_TRUE(contains(problem_of(on("net_ring0")), "libnanet_link_dpdk.so is neither in")) << problem_of(on("net_ring0"));
  }
}

}  // namespace nanet::link::test
