// SPDX-License-Identifier: Apache-2.0
// What can be wrong with the machine or the configuration of a DPDK link: each has its line, and what comes back is used again.
#include <linux/capability.h>
#include <sys/syscall.h>

#include <thread>

#include "dpdk_support.hpp"

namespace nanet::link::test {
namespace {

// Each fault that set-up can find says what is wrong, why, and what to do. In one process: none of them spoils it for the next.
TEST(DpdkFaults, FaultsOfTheConfigurationAreExplained) {
  with_dpdk([] {
    const auto expect = [](const DpdkConfig& config, const std::string& part) {
      const std::string problem = problem_of(config);
      EXPECT_TRUE(contains(problem, part)) << (problem.empty() ? "nothing was wrong" : problem);
    };
    DpdkConfig config = on("net_ring0");
    config.listen.reset();
    expect(config, "neither listen nor destinations");
    config = on("");
    expect(config, "device is empty");
    config = on("net_ring0");
    config.listen->port = 0;
    expect(config, "needs an address of its own and a port");
    config = on("net_ring0");
    config.listen->scheme = "udp";
    expect(config, "is not dpdk");
    config = on("net_ring0");
    config.packet_bytes_max = 9015;
    expect(config, "1..9014");
    config = on("net_ring0");
    config.address = "10.77.0.3/24";
    expect(config, "its own address is 10.77.0.3/24");
    config.address = "10.77.0.2/33";
    expect(config, "no IPv4 or IPv6 address with prefix length");
    config = on("net_ring0");
    config.destinations = {Endpoint{"udp", 0x0A4E0001, 9}};
    expect(config, "no gateway is set");
    config.gateway = "10.78.0.9";
    expect(config, "cannot have the gateway");
    config.destinations = {Endpoint{"udp", kFar, 0}};
    expect(config, "needs an address and a port");
    config = on("net_ring0");
    config.listen.reset();
    config.destinations = {Endpoint{"udp", kFar, 9}};
    expect(config, "has no address");
  });
}

TEST(DpdkFaults, FaultsOfTheMachineAreExplained) {
  with_dpdk([] {
    in_own_network([] {
      const auto expect = [](const DpdkConfig& config, const std::string& part) {
        const std::string problem = problem_of(config);
        EXPECT_TRUE(contains(problem, part)) << (problem.empty() ? "nothing was wrong" : problem);
      };
      expect(on("net_af_packet0,iface=nowhere"), "there is no such interface");
      expect(on("net_nosuch0"), "cannot use device net_nosuch0 (DPDK says: ");
      expect(on("net_pcap0,rx_pcap=/no/such/file"), "No such file");
      expect(on("net_af_packet0,iface=near,framesz=x"), "cannot use device");
      ASSERT_EQ(run("ip link set near down"), 0);
      expect(on("net_af_packet0,iface=near"), "ip link set dev near up");
      ASSERT_EQ(run("ip link set near up && ip link set far down"), 0);
      EXPECT_TRUE(contains(open_dpdk(on("net_af_packet0,iface=near"))->notes().at(0), "no carrier"));
      ASSERT_EQ(run("ip link set far up"), 0);
      DpdkConfig config = on("net_af_packet0,iface=near");
      config.packet_bytes_max = 1473;
      expect(config, "ip link set dev near mtu 1501");
      ASSERT_EQ(run("ip link set near mtu 9100"), 0);
      config = on("net_af_xdp0,iface=near");
      config.packet_bytes_max = 8000;
      expect(config, "driver net_af_xdp takes an MTU of");
      config = on("net_af_packet0,iface=near");
      config.packet_bytes_max = 9000;
      config.descriptors = 32'768;
      expect(config, "set a larger memory_mib than 256");
      config = on("net_ring0");
      config.memory_mib = 512;
      expect(config, "DPDK was started with memory_mib = 256");
      config = on("net_ring0");
      config.huge_pages = true;
      expect(config, "huge_pages alike");
      config = on("net_ring0");
      config.eal_arguments = {"--no-hpet"};
      expect(config, "other eal_arguments");
      expect(on("0000:ff:1f.7"), "put the link with the device 0000:ff:1f.7 first");
      config = on("net_af_packet0,iface=near");
      config.destinations = {Endpoint{"udp", 0x0A4D0009, 9}};
      config.arp_wait_ms = 50;
      expect(config, "10.77.0.9 did not answer ARP within 50 ms");
      const auto link = open_dpdk(on("net_af_packet0,iface=near"));
      expect(on("net_af_packet0,iface=near"), "another link of this process has it");
      EXPECT_TRUE(link->notes().empty());
      ASSERT_EQ(run("ip link set far down"), 0);
      EXPECT_TRUE(contains(link->notes().at(0), "has no link"));
      // Capabilities belong to a thread: this one gives them up.
      std::thread([&] {
        __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
        __user_cap_data_struct none[2]{};
        ASSERT_EQ(::syscall(SYS_capset, &header, none), 0);
        expect(on("net_af_packet1,iface=near"), "CAP_NET_RAW is missing");
        expect(on("net_af_xdp1,iface=near"), "CAP_NET_ADMIN");
      }).join();
    });
  });
}

TEST(DpdkFaults, AStartThatFailsIsExplained) {
  with_dpdk([] {
    in_own_process([] {
      DpdkConfig config = on("net_ring0");
      config.huge_pages = true;
      config.memory_mib = 1u << 20;  // more than there is
      for (const char* part : {"vm.nr_hugepages", "start the program again"}) {
        const std::string problem = problem_of(config);
        EXPECT_TRUE(contains(problem, "cannot start DPDK") && contains(problem, part)) << problem;
      }
    });
    in_own_process([] {
      const std::string problem = problem_of(on("0000:ff:1f.7"));
      EXPECT_TRUE(contains(problem, "dpdk-devbind.py --status")) << problem;
    });
  });
}

// A frame on the wire from another, and back, through the interface going away: nothing has to be opened again.
TEST(DpdkFaults, AnInterfaceThatComesBackIsUsedAgain) {
  with_dpdk([] {
    in_own_network([] {
      const auto link = open_dpdk(on("net_af_packet0,iface=near"));
      FarSocket far;
      ASSERT_TRUE(far.send(kPort, payload(1, 100)));
      EXPECT_EQ(collect(*link, 1).size(), 1u);
      ASSERT_EQ(run("ip link set near down"), 0);
      EXPECT_EQ(collect(*link, 1).size(), 0u);
      EXPECT_TRUE(contains(link->notes().at(0), "has no link"));
      ASSERT_EQ(run("ip link set near up"), 0);
      std::vector<Got> got;
      for (int i = 0; i < 10 && got.empty(); ++i) {  // the kernel takes a while to see that the line is there again
        far.send(kPort, payload(2, 100));
        got = collect(*link, 1);
      }
      ASSERT_FALSE(got.empty());
      EXPECT_EQ(got[0].data, payload(2, 100));
      for (const std::string& note : link->notes()) EXPECT_FALSE(contains(note, "has no link")) << note;
    });
  });
}

// Over virtual interfaces the kernel hands on what it would have a NIC cut into packets, and the driver cannot cut it: counted, and said.
TEST(DpdkFaults, SuperPacketsAreCountedAndNoted) {
  with_dpdk([] {
    in_own_network([] {
      const auto link = open_dpdk(on("net_af_packet0,iface=near"));
      FarSocket far;
      const int segment_bytes = 1168;
      ASSERT_EQ(::setsockopt(far.fd(), SOL_UDP, UDP_SEGMENT, &segment_bytes, sizeof segment_bytes), 0);
      ASSERT_TRUE(far.send(kPort, payload(1, 11'680)));
      EXPECT_EQ(collect(*link, 1).size(), 0u);
      EXPECT_EQ(link->stats().rx_malformed, 1u);
      EXPECT_TRUE(contains(link->notes().at(0), "tx-udp-segmentation off"));
    });
  });
}

TEST(DpdkFaults, SuperPacketsAreCutBeforeAfXdp) {
  with_dpdk([] {
    in_own_network([] {
      const auto link = open_dpdk(on("net_af_xdp0,iface=near"));
      FarSocket far;
      const int segment_bytes = 1168;
      ASSERT_EQ(::setsockopt(far.fd(), SOL_UDP, UDP_SEGMENT, &segment_bytes, sizeof segment_bytes), 0);
      const Bytes data = payload(1, 11'680);
      ASSERT_TRUE(far.send(kPort, data));
      const std::vector<Got> got = collect(*link, 10);
      ASSERT_EQ(got.size(), 10u);
      for (std::ptrdiff_t i = 0; i < 10; ++i) {
        EXPECT_EQ(got[static_cast<std::size_t>(i)].data, Bytes(data.begin() + i * 1168, data.begin() + (i + 1) * 1168));
      }
    });
  });
}

// A neighbour whose Ethernet address changes without a word is asked again after 30 s.
TEST(DpdkFaults, AnotherEthernetAddressIsFound) {
  with_dpdk([] {
    in_own_network([] {
      FarSocket far;
      DpdkConfig config = on("net_af_packet0,iface=near");
      config.destinations = {Endpoint{"udp", kFar, far.port()}};
      const auto link = open_dpdk(config);
      const Bytes data = payload(1, 100);
      const std::vector<TxPacket> packets{{data.data(), 100, 0}};
      Bytes room(2000);
      std::vector<RxPacket> entries(8);
      link->receive(room, entries, 1);
      ASSERT_EQ(run("ip link set far address 02:00:00:00:00:99"), 0);
      link->send(packets, 1);
      EXPECT_FALSE(far.receive(200)) << "sent to an address that no one has";
      bool arrived = false;
      for (int i = 0; i < 100 && !arrived; ++i) {
        link->receive(room, entries, 31'000'000'000);
        link->send(packets, 1);
        arrived = far.receive(20).has_value();
      }
      EXPECT_TRUE(arrived);
    });
  });
}

}  // namespace
}  // namespace nanet::link::test
