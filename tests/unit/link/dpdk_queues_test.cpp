// SPDX-License-Identifier: Apache-2.0
// Several receive queues of one DPDK device, each a link: over a packet socket, whose queues the kernel fills by its hash of addresses and ports.
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "dpdk_support.hpp"

namespace nanet::link::test {
namespace {

constexpr std::uint32_t kFlows = 24;
constexpr std::uint32_t kRounds = 10;

DpdkConfig queue_of(std::uint32_t queue, std::uint32_t queues = 2) {
  DpdkConfig config = on("net_af_packet0,iface=near");
  config.name = "boards." + std::to_string(queue);
  config.queues = queues;
  config.queue = queue;
  return config;
}

// What each queue gets, in threads of their own, until all together have `wanted`.
std::vector<std::vector<Got>> received(const std::vector<std::unique_ptr<Link>>& links, std::size_t wanted) {
  std::vector<std::vector<Got>> all(links.size());
  std::atomic<std::size_t> count{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < links.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int idle = 0; count < wanted && idle < 40;) {
        Bytes room(std::size_t{1} << 18);
        std::vector<RxPacket> entries(100);
        const RxBatch batch = links[i]->receive(room, entries, 0);
        for (const RxPacket& packet : std::span(entries).first(batch.packet_count)) {
          const auto begin = room.begin() + packet.offset;
          all[i].push_back({Bytes(begin, begin + packet.bytes), packet});
        }
        count += batch.packet_count;
        idle = batch.packet_count != 0 ? 0 : idle + 1;
        if (batch.packet_count == 0) links[i]->wait(50'000'000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return all;
}

TEST(DpdkQueues, EachFlowComesToOneOfThem) {
  with_dpdk([] {
    in_own_network([] {
      std::vector<std::unique_ptr<FarSocket>> senders;
      for (std::uint32_t i = 0; i < kFlows; ++i) senders.push_back(std::make_unique<FarSocket>());
      DpdkConfig first = queue_of(0);
      first.destinations = {Endpoint{"udp", kFar, senders[0]->port()}};  // its answer may come to either queue
      std::vector<std::unique_ptr<Link>> links;
      links.push_back(open_dpdk(first));
      links.push_back(open_dpdk(queue_of(1)));
      EXPECT_TRUE(contains(links[1]->path(), "queue 1 of 2")) << links[1]->path();
      // All may be sent before a busy machine lets the address be asked for: by itself the kernel keeps some 160 of them until then.
      ASSERT_EQ(run("echo 4194304 > /proc/sys/net/ipv4/neigh/far/unres_qlen_bytes"), 0);
      ASSERT_EQ(run("ip neigh flush dev far"), 0);
      std::thread sending([&] {
        for (std::uint32_t round = 0; round < kRounds; ++round) {
          for (std::uint32_t i = 0; i < kFlows; ++i) EXPECT_TRUE(senders[i]->send(kPort, payload(round * kFlows + i, 200)));
          ::usleep(1000);
        }
      });
      const std::vector<std::vector<Got>> got = received(links, std::size_t{kFlows} * kRounds);
      sending.join();
      EXPECT_EQ(got[0].size() + got[1].size(), std::size_t{kFlows} * kRounds);
      std::map<std::uint16_t, std::set<std::size_t>> queues_of_port;
      for (std::size_t queue = 0; queue < got.size(); ++queue) {
        EXPECT_FALSE(got[queue].empty()) << queue;
        for (const Got& one : got[queue]) queues_of_port[one.packet.peer_port].insert(queue);
      }
      EXPECT_EQ(queues_of_port.size(), std::size_t{kFlows});
      for (const auto& [port, queues] : queues_of_port) EXPECT_EQ(queues.size(), 1u) << port;
      std::uint64_t dropped = 0, packets = 0;
      for (const auto& link : links) {
        packets += link->stats().rx_packets;
        dropped += link->stats().rx_kernel_dropped + link->stats().rx_malformed;
      }
      EXPECT_EQ(packets, std::uint64_t{kFlows} * kRounds);
      EXPECT_EQ(dropped, 0u);
      const Bytes answer = payload(7, 300);
      links[0]->send(std::vector<TxPacket>{{answer.data(), 300, 0}}, 0);
      const auto told = senders[0]->receive();
      ASSERT_TRUE(told);
      EXPECT_EQ(told->data, answer);
      links.erase(links.begin());  // the device stays for the other one
      EXPECT_EQ(links[0]->receive({}, {}, 0).packet_count, 0u);
    });
  });
}

TEST(DpdkQueues, WhatCannotBeIsRefused) {
  with_dpdk([] {
    in_own_network([] {
      const auto expect = [](const DpdkConfig& config, const std::string& part) {
        const std::string problem = problem_of(config);
        EXPECT_TRUE(contains(problem, part)) << (problem.empty() ? "nothing was wrong" : problem);
      };
      expect(queue_of(1), "(queue 0, which sets it up, is not open) open the queues in order");
      expect(queue_of(2), "cannot have queue = 2 (it can be 0..1)");
      expect(queue_of(0, 65), "cannot have queues = 65");
      DpdkConfig few = queue_of(0, 3);
      few.device = "net_af_packet0,iface=near,qpairs=2";
      expect(few, "cannot have 3 queues (device net_af_packet0,iface=near,qpairs=2");
      DpdkConfig sends = queue_of(0);
      sends.listen.reset();
      sends.address = "10.77.0.2/24";
      sends.destinations = {Endpoint{"udp", kFar, 9}};
      expect(sends, "cannot have 2 queues (it only sends)");
      DpdkConfig stays = queue_of(0);
      stays.payload_memory = DpdkMemory::host;
      stays.payloads = Payloads::in_place;
      stays.lent_max = 64;
      expect(stays, "cannot have 2 queues (payloads of all would stay in one piece of memory");
    });
  });
}

}  // namespace
}  // namespace nanet::link::test
