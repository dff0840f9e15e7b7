// SPDX-License-Identifier: Apache-2.0
// The link over DPDK: a poll-mode driver in this process moves the frames, without the kernel. docs/design/link-dpdk.md.
//
// Optional: built where libdpdk (22.11 or newer) is found. DPDK is set up once per process; all links of a process share it.
//
// The link is a station of its own on the network: it has an address that no kernel has, answers ARP (IPv6: NDP) and echo requests for it, and
// asks for the Ethernet addresses of its destinations, before open_dpdk() returns and every 30 s afterwards.
//
// Layout of what receive() writes, unless payloads stay in place (DpdkConfig::payloads): each payload is copied to the next multiple of 8 bytes from the start of the room, and bytes_used is
// rounded up to a multiple of 8 (at most the size of the room), as with UdpLink.
//
// Thread rules: those of Link. wait() belongs to the thread that receives. The first call of a thread registers it with DPDK, once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nanet/link/back_end.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link {

// Whose memory received packets land in: DPDK's, huge pages of the link's own, which another device (a GPU) can use, or a GPU's.
enum class DpdkMemory : std::uint8_t { dpdk, host, gpu };

constexpr auto choices(DpdkMemory) {
  return std::array{config::Choice{"dpdk", DpdkMemory::dpdk}, config::Choice{"host", DpdkMemory::host},
                    config::Choice{"gpu", DpdkMemory::gpu}};
}

struct DpdkConfig {
  static constexpr std::uint32_t kQueuesMax = 64;
  static constexpr config::Component component{"Dpdk", "What a DPDK link needs: a device and memory."};

  // Name of the link in messages and reports.
  std::string name = "dpdk";

  // dpdk://ADDRESS:PORT to receive on. The address, IPv4 or IPv6, is this link's own: it, not a kernel, answers for it. None: this link only sends.
  std::optional<Endpoint> listen;

  // TxPacket::destination is an index into this list. Of the family of the link's own address.
  std::vector<Endpoint> destinations;

  // What DPDK calls a device: "0000:3b:00.0", or a virtual one such as "net_af_packet0,iface=eth1".
  std::string device;

  // The link's own address with the prefix length of its network: "10.0.0.2/24", "2001:db8::2/64". Empty: the address to listen on, /24 or /64.
  std::string address;

  // Address of the router to destinations outside that network. Empty: there is none.
  std::string gateway;

  // How many receive queues of the device share the endpoint, and which of them this link is (docs/design/queues.md). They are opened in order, 0 first,
  // which sets the device up for all; what the device drops counts there.
  std::uint32_t queues = 1;
  std::uint32_t queue = 0;

  // More arguments for DPDK's environment abstraction layer; those of the first link of a process count.
  std::vector<std::string> eal_arguments;

  // Huge pages: needed by most NICs. Without: ordinary memory. Of memory_mib MiB in all, for the pools of all links of the process; the first link sets it.
  bool huge_pages = false;
  std::uint32_t memory_mib = 256;

  // Of each of the device's two rings; raised to what the driver asks for. Too few: rx_kernel_dropped at every pause. Too many: memory no cache holds.
  std::uint32_t descriptors = 1024;

  // Bytes, 1..9014: longest UDP payload expected. Longer ones are received all the same where the driver can chain buffers, at the price of a second copy.
  std::uint32_t packet_bytes_max = 1472;

  // Header/data split by the NIC: this many bytes of a frame into one buffer, the rest into another; 0: frames whole. Refused where the device
  // cannot. 66 are Ethernet, IPv4, UDP, the packet header and the first event header of MGP (86 over IPv6); fewer than 42 (62) would cut through the headers.
  std::uint32_t split_bytes = 0;

  // Of the payloads if the NIC splits, else of whole frames.
  DpdkMemory payload_memory = DpdkMemory::dpdk;

  // in_place: payloads stay where the device wrote them until give_back(), with payload_memory host (frames whole, split_bytes 0) or gpu (split_bytes
  // 66, over IPv6 86: 24 bytes of each payload on the host, the rest there). lent_max: packets that the caller may hold at once; the pools get so many buffers more.
  Payloads payloads = Payloads::copied;
  std::uint32_t lent_max = 0;

  // With payload_memory gpu: dpdk_gpu_bytes() of a GPU's memory at a multiple of 64 KiB, whole such pages. The caller's; it outlives the link.
  std::span<std::byte> gpu_memory;

  // Milliseconds for which open_dpdk() asks for the Ethernet address of each destination (ARP, or NDP). Too short: the start fails if a peer is late.
  std::uint32_t arp_wait_ms = 3000;

  // Microseconds that send() may wait for the device to take more, in each call. Too small: drops in a burst. Too big: send() stalls its thread.
  std::uint32_t tx_wait_us = 100;

  template <class Visit>
  void visit(Visit&& v) {
    v("device", device,
      {.help = "What DPDK calls it: '0000:3b:00.0', or a virtual device such as 'net_af_packet0,iface=eth1'",
       .length_least = 1,
       .length_most = 255,
       .required = true});
    v("address", address,
      {.help = "The link's own address with prefix length, 10.0.0.2/24 or 2001:db8::2/64; null: the endpoint's, with /24 or /64",
       .pattern = R"(^(\d{1,3}(\.\d{1,3}){3}/\d{1,2}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*/\d{1,3})$)",
       .nullable = true});
    v("gateway", gateway,
      {.help = "Address of the router to destinations outside the link's own network; null: none",
       .pattern = R"(^(\d{1,3}(\.\d{1,3}){3}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$)",
       .nullable = true});
    v("queues", queues,
      {.help = "Receive queues of the device, over which it spreads the flows (RSS). Each is a link of its own, NAME.0, NAME.1 and "
               "so on, with "
               "its own memory region and counters; cpu_cores.lanes gives them cores of their own",
       .unit = "queues",
       .least = 1,
       .most = kQueuesMax,
       .too_big = "memory: each has descriptors and a memory region"});
    v("arp_wait_ms", arp_wait_ms,
      {.help = "How long to wait at start for a destination's MAC address (ARP, or NDP over IPv6)",
       .unit = "ms",
       .least = 1,
       .most = 60'000,
       .too_small = "a peer that starts later keeps this one from starting",
       .too_big = "a missing peer is noticed late"});
    v("tx_wait_us", tx_wait_us,
      {.help = "How long a send may wait for room in the device's ring",
       .unit = "us",
       .least = 0,
       .most = 1'000'000,
       .too_small = "answers_dropped in a burst",
       .too_big = "the sending thread does nothing else meanwhile"});
    v("eal_arguments", eal_arguments,
      {.help = "More arguments for DPDK's environment abstraction layer (EAL); those of the first link count"});
    v("huge_pages", huge_pages, {.help = "Use huge pages; a NIC needs them, virtual devices do not"});
    v("memory_mib", memory_mib,
      {.help = "Memory for DPDK's pools", .unit = "MiB", .least = 32, .most = 1 << 16, .too_small = "DPDK does not start"});
    v("descriptors", descriptors,
      {.help = "Length of the device's receive and send rings",
       .unit = "packets",
       .least = 64,
       .most = 1 << 15,
       .too_small = "kernel_dropped at every pause of the receiving thread",
       .too_big = "the working set exceeds the caches"});
    v("split_bytes", split_bytes,
      {.help = "The NIC writes this many bytes of each frame into one buffer and the rest into another; null: frames stay whole. "
               "Refused where"
               " the device cannot do so. 66: Ethernet, IPv4, UDP, packet header and first event header (over IPv6: 86)",
       .unit = "bytes",
       .least = 42,
       .most = 1024,
       .nullable = true});
    v("payload_memory", payload_memory,
      {.help = "Where packets are received (if the NIC splits them: their payloads). dpdk: DPDK's memory; host: huge pages of the "
               "link's own;"
               " gpu: memory of the processor's GPU, with split_bytes 66 (over IPv6: 86) and payloads that stay in place"});
    v("payloads", payloads,
      {.help = "copied: each payload is copied into a buffer of the memory region; in_place: it stays where the device wrote it "
               "until the"
               " buffer that names it is given back, with payload_memory host (frames whole) or gpu, which implies it"});
  }

  // What payloads in place need.
  std::optional<config::Problem> check() const;
};

// Throws SetupError, also when the back-end cannot be loaded (back_end.hpp).
std::unique_ptr<Link> open_dpdk(const DpdkConfig& config);

// What payload_memory gpu needs with these descriptors, packet_bytes_max and lent_max.
std::size_t dpdk_gpu_bytes(const DpdkConfig& config);

BackEndPlace dpdk_back_end();
bool has_dpdk();  // has_back_end(dpdk_back_end())

}  // namespace nanet::link
