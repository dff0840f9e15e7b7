// SPDX-License-Identifier: Apache-2.0
// Frames in two buffers, headers here and payload there, as a NIC that splits them would lay them down: made by hand, sent round a ring device,
// which hands on the buffers themselves, and received by the link. And devices that cannot split are refused.
#ifdef NANET_DPDK
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "dpdk_frames.hpp"
#include "dpdk_support.hpp"
#include "link/dpdk/payload_memory.hpp"
#include "link/dpdk/split.hpp"

namespace nanet::link::test {
namespace {

constexpr std::uint32_t kBuffers = 255;
constexpr std::uint32_t kBufferBytes = 2048 + RTE_PKTMBUF_HEADROOM;

// A ring device with a link on it, and pools whose buffers are sent round it.
struct Rig {
  std::unique_ptr<Link> link;
  std::uint16_t port = 0;
  rte_mempool* heads = nullptr;
  std::unique_ptr<dpdk::PayloadMemory> memory;
  rte_mempool* payloads = nullptr;

  Rig() {
    link = open_dpdk(on("net_ring0"));
    EXPECT_EQ(rte_eth_dev_get_port_by_name("net_ring0", &port), 0);
    heads = rte_pktmbuf_pool_create("test_heads", kBuffers, 0, 0, kBufferBytes, SOCKET_ID_ANY);
    memory = std::make_unique<dpdk::PayloadMemory>("test", kBuffers, kBufferBytes);
    payloads = memory->make_pool("test_payloads", 0);
    EXPECT_TRUE(heads != nullptr && payloads != nullptr);
  }
  ~Rig() {
    // The link gave every buffer back.
    EXPECT_EQ(rte_mempool_avail_count(heads), kBuffers);
    EXPECT_EQ(rte_mempool_avail_count(payloads), kBuffers);
    link.reset();
    rte_mempool_free(heads);
    rte_mempool_free(payloads);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  // As the NIC lays it down: what comes before each of the places in a buffer of its own, all but the first in the memory outside.
  void arrives(const Bytes& frame, const std::vector<std::size_t>& places) const {
    rte_mbuf* chain = nullptr;
    std::size_t begin = 0;
    std::vector<std::size_t> ends = places;
    ends.push_back(frame.size());
    for (const std::size_t end : ends) {
      rte_mbuf* buffer = fill(chain == nullptr ? heads : payloads, std::span(frame).subspan(begin, end - begin));
      if (chain == nullptr) {
        chain = buffer;
      } else {
        EXPECT_TRUE(memory->holds(rte_pktmbuf_mtod(buffer, const std::byte*)));
        EXPECT_FALSE(memory->holds(buffer));  // DPDK's bookkeeping is not there
        EXPECT_EQ(rte_pktmbuf_chain(chain, buffer), 0);
      }
      begin = end;
    }
    EXPECT_EQ(rte_eth_tx_burst(port, 0, &chain, 1), 1);
  }
};

TEST(DpdkSplit, HeadersAndPayloadComeTogetherWhereverTheyAreCut) {
  in_own_process([] {
    Rig rig;
    std::uint64_t bytes = 0;
    std::vector<Bytes> expected;
    const auto arrives = [&](const Bytes& data, const Bytes& frame, const std::vector<std::size_t>& places) {
      rig.arrives(frame, places);
      expected.push_back(data);
      bytes += data.size();
    };
    for (std::uint32_t i = 0; i < 30;
         ++i) {  // as split_bytes: 66 does: the packet header and the first event header stay with the headers
      const Bytes data = payload(i, 1168);
      arrives(data, frame_of(data), {66});
    }
    const std::vector<std::vector<std::size_t>> cuts{{}, {42}, {64}, {128}, {43, 50, 700}, {66, 1000}, {38}, {20, 40}, {500}};
    for (std::uint32_t i = 0; i < cuts.size(); ++i) {  // also within the headers
      const Bytes data = payload(1000 + i, 1001 + i);
      arrives(data, frame_of(data), cuts[i]);
    }
    for (const std::size_t cut : {42u, 66u, 85u, 86u, 87u, 90u, 100u}) {
      const Bytes data = payload(static_cast<std::uint32_t>(2000 + cut), 300);
      arrives(data, long_headers(data), {cut});
    }
    for (const std::size_t size : {25u, 24u, 1u}) {  // a run marker is 24 bytes
      const Bytes data = payload(static_cast<std::uint32_t>(3000 + size), size);
      const Bytes frame = frame_of(data);
      arrives(data, frame, frame.size() > 66 ? std::vector<std::size_t>{66} : std::vector<std::size_t>{});
    }
    const std::vector<Got> got = collect(*rig.link, expected.size());
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].data, expected[i]) << i;
      EXPECT_EQ(got[i].packet.peer_address, kFar);
      EXPECT_EQ(got[i].packet.peer_port, 300);
    }
    const LinkStats stats = rig.link->stats();
    EXPECT_EQ(stats.rx_bytes, bytes);
    EXPECT_EQ(stats.rx_copied_bytes, bytes);  // once
    EXPECT_EQ(stats.rx_foreign + stats.rx_malformed + stats.rx_truncated, 0u);
  });
}

TEST(DpdkSplit, WhatIsNotForUsIsCountedAsInOneBuffer) {
  in_own_process([] {
    Rig rig;
    Bytes too_long = frame_of(payload(1, 200));
    too_long[39] = std::byte{0xFF};  // a UDP length beyond the frame's end
    rig.arrives(too_long, {66});
    Bytes other_port = frame_of(payload(2, 200));
    other_port[37] = std::byte{1};
    rig.arrives(other_port, {66});
    Bytes ping = frame_of(payload(3, 200));
    ping[23] = std::byte{1};  // ICMP
    ping[34] = std::byte{8};  // echo request
    rig.arrives(ping, {66});  // its answer, for another station, comes back round the ring
    rig.arrives(frame_of(payload(4, 200)), {66});
    const std::vector<Got> got = collect(*rig.link, 2);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].data, payload(4, 200));
    EXPECT_EQ(rig.link->stats().rx_malformed, 1u);
    EXPECT_EQ(rig.link->stats().rx_foreign, 2u);
  });
}

TEST(DpdkSplit, ARoomThatEndsInThePayloadCutsThere) {
  in_own_process([] {
    Rig rig;
    const Bytes data = payload(1, 1168);
    Bytes room(100);
    RxPacket entry;
    rig.arrives(frame_of(data), {66});
    ASSERT_EQ(rig.link->receive(room, {&entry, 1}, 0).packet_count, 1u);
    EXPECT_EQ(entry.flags, RxPacket::truncated);
    EXPECT_TRUE(std::equal(room.begin(), room.end(), data.begin()));
  });
}

TEST(DpdkSplit, ADeviceThatCannotSplitIsRefused) {
  in_own_network([] {
    char recording[] = "/tmp/nanet_dpdk_XXXXXX";
    ASSERT_GE(::mkstemp(recording), 0);
    const std::uint32_t head[] = {0xA1B2C3D4, 0x00040002, 0, 0, 65'535, 1};  // a recording without a packet
    std::ofstream(recording, std::ios::binary).write(reinterpret_cast<const char*>(head), sizeof head);
    for (const std::string& device : {std::string("net_ring0"), std::string("net_af_packet0,iface=near"),
                                      std::string("net_af_xdp0,iface=near"), std::string("net_pcap0,rx_pcap=") + recording}) {
      DpdkConfig config = on(device);
      config.split_bytes = 66;
      const std::string problem = problem_of(config);
      const std::string driver = device.substr(0, device.find('0'));
      EXPECT_TRUE(contains(problem, "cannot split headers from data (driver " + driver + " has no buffer split) leave split_bytes out"))
          << problem;
    }
    ::unlink(recording);
    DpdkConfig config = on("net_ring0");
    config.split_bytes = 41;
    EXPECT_TRUE(contains(problem_of(config), "42..1024")) << problem_of(config);
    config = on("net_af_xdp0,iface=near");
    config.payload_memory = DpdkMemory::host;
    EXPECT_TRUE(contains(problem_of(config), "cannot receive into memory of its own (net_af_xdp gives the kernel the pool itself"))
        << problem_of(config);
  });
}

// What a driver must say, one missing ability at a time.
TEST(DpdkSplit, WhatADriverMustBeAbleToDo) {
  rte_eth_dev_info info{};
  info.driver_name = "net_some";
  info.rx_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER;
  EXPECT_EQ(dpdk::why_no_split(info), "driver net_some has no buffer split");
  info.rx_offload_capa |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
  EXPECT_EQ(dpdk::why_no_split(info), "driver net_some splits within one pool only");
  info.rx_seg_capa.multi_pools = 1;
  info.rx_seg_capa.max_nseg = 1;
  EXPECT_EQ(dpdk::why_no_split(info), "driver net_some splits into 1 parts");
  info.rx_seg_capa.max_nseg = 2;
  EXPECT_EQ(dpdk::why_no_split(info), "");

  auto* const heads = reinterpret_cast<rte_mempool*>(64);  // only handed on
  auto* const payloads = reinterpret_cast<rte_mempool*>(128);
  const auto segments = dpdk::split_segments(66, heads, payloads);
  EXPECT_EQ(segments[0].split.mp, heads);
  EXPECT_EQ(segments[0].split.length, 66);
  EXPECT_EQ(segments[1].split.mp, payloads);
  EXPECT_EQ(segments[1].split.length, 0);
  EXPECT_EQ(segments[1].split.offset, 0);
}

}  // namespace
}  // namespace nanet::link::test
#else
#include <gtest/gtest.h>

#include <cstdio>

#include "nanet/link/dpdk.hpp"

TEST(DpdkSplit, NotInThisBuild) {
  std::printf("NOT RUN: tests of header and data split (built without DPDK)\n");
  EXPECT_FALSE(nanet::link::has_dpdk());
}
#endif
