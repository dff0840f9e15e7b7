// SPDX-License-Identifier: Apache-2.0
// The part of payloads in the memory of a GPU that needs neither a GPU nor a NIC that splits: frames in two buffers, headers and the payload's first 24 bytes
// here and the rest there, made by hand and sent round a ring device, which hands on the buffers themselves. "There" is memory of the host that
// cannot be read while the link has it.
#ifdef NANET_DPDK
#include <rte_ethdev.h>
#include <sys/mman.h>

#include <string>
#include <vector>

#include "dpdk_frames.hpp"
#include "lent.hpp"
#include "link/dpdk/device.hpp"
#include "link/dpdk/neighbours.hpp"
#include "link/dpdk/payload_memory.hpp"
#include "link/dpdk/receiver.hpp"
#include "link/dpdk/station.hpp"

namespace nanet::link::test {
namespace {

constexpr std::uint32_t kBuffers = 255;
constexpr std::uint32_t kBufferBytes = 2176;
constexpr std::size_t kPageBytes = 65'536;
constexpr std::size_t kMemoryBytes = (kBuffers * kBufferBytes + kPageBytes - 1) / kPageBytes * kPageBytes;

// As a GPU's: addresses that the host has to leave alone.
class OtherMemory {
 public:
  OtherMemory() {
    void* const mapping = ::mmap(nullptr, kMemoryBytes + kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapping, MAP_FAILED);
    first_ = static_cast<std::byte*>(mapping);
    first_ += (kPageBytes - reinterpret_cast<std::uintptr_t>(first_) % kPageBytes) % kPageBytes;
  }
  std::span<std::byte> span() const { return {first_, kMemoryBytes}; }
  void close() const { EXPECT_EQ(::mprotect(first_, kMemoryBytes, PROT_NONE), 0); }
  void open() const { EXPECT_EQ(::mprotect(first_, kMemoryBytes, PROT_READ | PROT_WRITE), 0); }

 private:
  std::byte* first_;
};

// The receiving half of the link on a ring device, and the NIC in front of it, which is this object.
class SplitLink final : public Link {
 public:
  SplitLink()
      : config_(on("net_ring0")),
        neighbours_(config_),
        device_(config_, neighbours_.own_address(), notes_),
        station_(device_, neighbours_, 0) {
    EXPECT_EQ(rte_eth_dev_get_port_by_name("net_ring0", &port_), 0);
    heads_ = rte_pktmbuf_pool_create("test_heads", kBuffers, 0, 0, kBufferBytes, SOCKET_ID_ANY);
    memory_.emplace("test", there_.span(), kBuffers, kBufferBytes);
    payloads_ = memory_->make_pool("test_payloads", 0);
    EXPECT_TRUE(heads_ != nullptr && payloads_ != nullptr);
    receiver_.emplace(device_, station_, *config_.listen, 0, payload_memory());
  }
  ~SplitLink() override {
    EXPECT_EQ(free_buffers(), 2 * kBuffers) << "not all were freed, or one twice";
    there_.open();
    receiver_.reset();
    rte_mempool_free(heads_);
    rte_mempool_free(payloads_);
  }

  // In buffers that end at these places; `pools`: where each lies, by default the first here and the others there.
  void arrives(const Bytes& frame, std::vector<std::size_t> ends, std::vector<rte_mempool*> pools = {}) {
    there_.open();
    rte_mbuf* chain = nullptr;
    std::size_t begin = 0;
    ends.push_back(frame.size());
    for (std::size_t i = 0; i < ends.size(); begin = ends[i++]) {
      rte_mempool* const pool = i < pools.size() ? pools[i] : i == 0 ? heads_ : payloads_;
      rte_mbuf* const buffer = fill(pool, std::span(frame).subspan(begin, ends[i] - begin));
      if (chain == nullptr) {
        chain = buffer;
      } else {
        EXPECT_EQ(rte_pktmbuf_chain(chain, buffer), 0);
      }
    }
    EXPECT_EQ(rte_eth_tx_burst(port_, 0, &chain, 1), 1);
    there_.close();
  }

  unsigned free_buffers() const { return rte_mempool_avail_count(heads_) + rte_mempool_avail_count(payloads_); }
  void open_memory() const { there_.open(); }
  rte_mempool* heads() const { return heads_; }

  flow::PayloadMemory payload_memory() const override { return {.memory = memory_->memory(), .kind = MemoryKind::device}; }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override {
    return receiver_->receive(room, packets, now_ns);
  }
  void give_back(std::span<const PlacedPacket> packets) override { receiver_->give_back(packets); }
  LinkStats stats() const override {
    LinkStats stats;
    receiver_->add_stats(stats);
    return stats;
  }
  std::size_t min_room_bytes() const override { return sizeof(PlacedPacket); }
  void send(std::span<const TxPacket>, std::uint64_t) override {}
  void wait(std::uint64_t) override {}
  Endpoint local() const override { return *config_.listen; }
  std::string path() const override { return "split by hand"; }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  DpdkConfig config_;
  std::vector<std::string> notes_;
  dpdk::Neighbours neighbours_;
  dpdk::Device device_;
  dpdk::Station station_;
  OtherMemory there_;
  std::uint16_t port_ = 0;
  rte_mempool* heads_ = nullptr;
  std::optional<dpdk::PayloadMemory> memory_;
  rte_mempool* payloads_ = nullptr;
  std::optional<dpdk::Receiver> receiver_;
};

TEST(DpdkGpu, TheHeadComesAndTheRestStaysWhereTheHostCannotRead) {
  in_own_process([] {
    SplitLink link;
    Lent lent(link, 50);
    std::vector<Bytes> expected;
    for (std::uint32_t lap = 0; lap < 20; ++lap) {
      for (const std::size_t bytes : {1168u, 25u, 24u, 10u, 0u, 1472u, 26u, 700u}) {
        const Bytes data = payload(static_cast<std::uint32_t>(expected.size()), bytes);
        const Bytes frame = frame_of(data);
        link.arrives(frame, frame.size() > 66 ? std::vector<std::size_t>{66} : std::vector<std::size_t>{});
        expected.push_back(data);
      }
      lent.collect(8);
      if (lap % 2 == 0) continue;
      ASSERT_EQ(lent.all().size(), 16u);
      link.open_memory();
      for (std::size_t i = 0; i < 16; ++i) {
        const Lent::One& one = lent.all()[i];
        EXPECT_EQ(one.data(), expected[expected.size() - 16 + i]);
        EXPECT_EQ(one.placed.head_bytes, PlacedPacket::head_bytes_max);
        EXPECT_EQ(one.placed.address % 64, one.placed.bytes > 24 ? RTE_PKTMBUF_HEADROOM % 64 : 0);
        EXPECT_EQ(one.packet.peer_address, kFar);
        EXPECT_EQ(one.packet.flags, 0);
      }
      lent.give_back(16);
      EXPECT_EQ(link.free_buffers(), 2 * kBuffers);
    }
    EXPECT_EQ(link.stats().rx_packets, expected.size());
    EXPECT_EQ(link.stats().rx_copied_bytes, 0u);
    EXPECT_EQ(link.stats().rx_truncated + link.stats().rx_foreign + link.stats().rx_malformed, 0u);
  });
}

TEST(DpdkGpu, WhatTheNicCutElsewhereIsCountedAndNotLookedAt) {
  in_own_process([] {
    SplitLink link;
    Lent lent(link);
    const Bytes frame = frame_of(payload(1, 1168));
    link.arrives(frame, {60});                                // less than 24 bytes of the payload here
    link.arrives(frame, {70});                                // more: what follows is not the rest
    link.arrives(frame, {});                                  // all of it here
    link.arrives(frame, {66, 500});                           // the rest in two pieces
    link.arrives(frame, {66}, {link.heads(), link.heads()});  // elsewhere
    link.arrives(frame_of(payload(2, 1168)), {66});           // as it should be
    lent.collect(6);
    ASSERT_EQ(lent.all().size(), 6u);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(lent.all()[i].packet.flags, RxPacket::truncated) << i;
      EXPECT_EQ(lent.all()[i].packet.bytes, 0) << i;
    }
    EXPECT_EQ(lent.all()[5].packet.flags, 0);
    EXPECT_EQ(link.stats().rx_truncated, 5u);
    EXPECT_EQ(link.stats().rx_bytes, 1168u);
  });
}

TEST(DpdkGpu, WhatIsNotForUsIsCountedByItsHeadersAlone) {
  in_own_process([] {
    SplitLink link;
    Lent lent(link);
    Bytes too_long = frame_of(payload(1, 200));
    too_long[39] = std::byte{0xFF};
    link.arrives(too_long, {66});
    Bytes other_port = frame_of(payload(2, 200));
    other_port[37] = std::byte{1};
    link.arrives(other_port, {66});
    Bytes ping = frame_of(payload(3, 200));
    ping[23] = std::byte{1};
    ping[34] = std::byte{8};
    ping[35] = std::byte{0};
    link.arrives(ping, {66});                           // no answer could be whole
    link.arrives(long_headers(payload(4, 300)), {66});  // UDP's header is not here
    link.arrives(frame_of(payload(5, 200)), {66});
    lent.collect(1);
    ASSERT_EQ(lent.all().size(), 1u);
    link.open_memory();
    EXPECT_EQ(lent.all()[0].data(), payload(5, 200));
    EXPECT_EQ(link.stats().rx_malformed, 2u);
    EXPECT_EQ(link.stats().rx_foreign, 2u);
  });
}

TEST(DpdkGpu, MemoryForTheBuffersIsCountedBeforeAndChecked) {
  DpdkConfig config = on("0000:00:00.0");
  EXPECT_EQ(dpdk_gpu_bytes(config), (4u * 1024 + 1024) * 2176);
  config.payloads = Payloads::in_place;
  config.lent_max = 1000;
  config.packet_bytes_max = 8972;
  EXPECT_EQ(dpdk_gpu_bytes(config), (4u * 1024 + 1024 + 1000) * 9152);  // 8972 + 28 + 22 + 128, at a multiple of 64
  in_own_process([] {
    const auto link = open_dpdk(on("net_ring0"));
    const OtherMemory there;
    try {
      dpdk::PayloadMemory("test", there.span(), 1 << 20, kBufferBytes);
      ADD_FAILURE() << "not refused";
    } catch (const SetupError& error) {
      EXPECT_TRUE(contains(error.what(), "has too little memory of a GPU (1048576 buffers of 2176 bytes do not fit into 589824"))
          << error.what();
    }
  });
}

}  // namespace
}  // namespace nanet::link::test
#else
#include <gtest/gtest.h>

#include <cstdio>

#include "nanet/link/dpdk.hpp"

TEST(DpdkGpu, NotInThisBuild) {
  std::printf("NOT RUN: tests of payloads in the memory of a GPU (built without DPDK)\n");
  EXPECT_FALSE(nanet::link::has_dpdk());
}
#endif
