// SPDX-License-Identifier: Apache-2.0
// DPDK with payloads that stay where the device wrote them, in memory of the link's own; and what cannot be.
#include <algorithm>
#include <random>

#include "dpdk_support.hpp"
#include "lent.hpp"

namespace nanet::link::test {
namespace {

DpdkConfig lending_on(const std::string& device, std::uint32_t lent_max) {
  DpdkConfig config = on(device);
  config.payload_memory = DpdkMemory::host;
  config.payloads = Payloads::in_place;
  config.lent_max = lent_max;
  return config;
}

TEST(DpdkInPlace, APacketSocketsPayloadsAreNotTouchedWhileTheyAreLent) {
  with_dpdk([] {
    in_own_network([] {
      DpdkConfig config = lending_on("net_af_packet0,iface=near", 320);
      config.descriptors = 128;
      const auto link = open_dpdk(config);
      EXPECT_TRUE(contains(link->path(), ", received into memory of the link's own, payloads in place")) << link->path();
      EXPECT_EQ(link->payload_memory().kind, MemoryKind::host);
      EXPECT_EQ(link->min_room_bytes(), sizeof(PlacedPacket));
      FarSocket far;
      Lent lent(*link);
      std::mt19937_64 random(3);
      std::uint32_t sent = 0;
      std::uint64_t bytes = 0;
      const auto size_of = [](std::uint32_t id) { return id * 37 % 1473; };
      for (int lap = 0; lap < 60; ++lap) {  // many times what the pool holds: a buffer that does not come back would be missed
        while (lent.all().size() + 60 <= 320) {
          for (int i = 0; i < 60; ++i, ++sent) {
            ASSERT_TRUE(far.send(kPort, payload(sent, size_of(sent))));
            bytes += size_of(sent);
          }
          lent.collect(60);
        }
        ASSERT_EQ(lent.all().size(), 300u);
        for (std::uint32_t i = 0; i < 300; ++i) {
          const std::uint32_t id = sent - 300 + i;
          ASSERT_EQ(lent.all()[i].data(), payload(id, size_of(id))) << "lap " << lap;
        }
        if (lap % 8 == 7) std::shuffle(lent.all().begin(), lent.all().end(), random);
        lent.give_back(lap % 8 == 7 ? 300 : 60 * (1 + random() % 5));
      }
      ASSERT_TRUE(far.send(kPort + 1, payload(1, 100)));
      EXPECT_EQ(lent.receive(), 0u);
      const LinkStats stats = link->stats();
      EXPECT_EQ(stats.rx_packets, sent);
      EXPECT_EQ(stats.rx_bytes, bytes);
      EXPECT_EQ(stats.rx_copied_bytes, 0u);
      EXPECT_EQ(stats.rx_kernel_dropped + stats.rx_truncated + stats.rx_malformed, 0u);
    });
  });
}

TEST(DpdkInPlace, WhatCannotBeIsRefused) {
  with_dpdk([] {
    in_own_network([] {
      const auto expect = [](const DpdkConfig& config, const std::string& part) {
        EXPECT_TRUE(contains(problem_of(config), part)) << problem_of(config);
      };
      expect(lending_on("net_ring0", 100), "cannot leave payloads in place (net_ring hands on the sender's own buffers");
      expect(lending_on("net_af_xdp0,iface=near", 100),
             "cannot receive into memory of its own (net_af_xdp gives the kernel the pool itself");
      expect(lending_on("net_ring0", 0), "lent_max = 0");
      DpdkConfig config = lending_on("net_ring0", 100);
      config.payload_memory = DpdkMemory::dpdk;
      expect(config, "(DPDK's own memory is not one piece that a consumer can be told of) set payload_memory: host");
      config = lending_on("net_ring0", 100);
      config.split_bytes = 66;
      expect(config, "(a consumer on the host reads each in one piece, and split_bytes cuts it) leave split_bytes out");
      config = lending_on("net_ring0", 100);
      config.listen.reset();
      config.address = "10.77.0.2/24";
      config.destinations = {Endpoint{"udp", kFar, 6300}};
      expect(config, "cannot leave payloads in place (it only sends)");

      std::vector<std::byte> memory(1 << 16);
      config = lending_on("net_ring0", 100);
      config.payload_memory = DpdkMemory::gpu;
      config.gpu_memory = memory;
      expect(config, "(of a payload in the memory of a GPU the host has to keep 24 bytes) set split_bytes: 66");
      config.split_bytes = 66;
      expect(config, "cannot split headers from data (driver net_ring has no buffer split)");
      config.payloads = Payloads::copied;
      expect(config, "cannot copy payloads (they lie in the memory of a GPU) set payloads: in_place");
      config.payloads = Payloads::in_place;
      config.gpu_memory = {};
      expect(config, "(no one made memory of a GPU for them)");
    });
  });
}

}  // namespace
}  // namespace nanet::link::test
