// SPDX-License-Identifier: Apache-2.0
// The link over AF_XDP: packets of the configured ports come from the driver's queue without the kernel's network stack, on any NIC;
// everything else goes on to the kernel. docs/design/link-xdp.md.
//
// Optional: built where libxdp, libbpf and clang are found.
// Thread rules: those of Link. One thread may receive while another sends. A thread of its own keeps the addresses of the neighbours; it sleeps.
//
// Layout of what receive() writes, unless payloads stay in their frames (XdpConfig::payloads): each packet at the next multiple of 8 bytes from the start of the room, bytes_used rounded up to one. So packets
// of one size that is a multiple of 8 lie back to back, also over several calls when the caller passes the rest of its buffer.
// Packets given to send() = tx_packets + tx_dropped, exactly. rx_kernel_dropped: what found no frame, was too long, or came on a queue without
// a socket. tx_refused stays 0: notices that a peer is not there go to the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/link/back_end.hpp"
#include "nanet/link/endpoint.hpp"
#include "nanet/link/link.hpp"
#include "nanet/link/multicast.hpp"

namespace nanet::link {

enum class XdpZeroCopy : std::uint8_t { automatic, required, off };
enum class XdpAttach : std::uint8_t { automatic, driver, generic };  // where the program runs: in the driver, or after it

constexpr auto choices(XdpZeroCopy) {
  return std::array{config::Choice{"automatic", XdpZeroCopy::automatic}, config::Choice{"required", XdpZeroCopy::required},
                    config::Choice{"off", XdpZeroCopy::off}};
}

constexpr auto choices(XdpAttach) {
  return std::array{config::Choice{"automatic", XdpAttach::automatic}, config::Choice{"driver", XdpAttach::driver},
                    config::Choice{"generic", XdpAttach::generic}};
}

// The UDP checksum of what is sent. absent: 0, by which IPv4 says that there is none; for payloads that carry one of their own. IPv6 has one always.
enum class XdpChecksum : std::uint8_t { present, absent };

struct XdpConfig {
  static constexpr config::Component component{"Xdp", "What an AF_XDP link needs besides an interface."};

  // Name of the link in messages and reports.
  std::string name = "xdp";

  // xdp://ADDRESS:PORT to receive on, an address of `interface`, or 0.0.0.0 or [::] with an interface: packets to the port at any address of that
  // family. Port 0: one that no socket has, local() tells. None: this link only sends, and attaches no program. A multicast group is joined on `interface`; the
  // network then sends packets of the senders joined, but packets of others that come all the same are received too.
  std::optional<Endpoint> listen;
  GroupJoin group_join;

  // TxPacket::destination is an index into this list, IPv4 as is `listen` then. Reached through `interface`, by the kernel's neighbour table. Packets leave by the
  // first of `queues`, from the port listened on or else one that the kernel chooses.
  std::vector<Endpoint> destinations;
  GroupSending group_sending;

  // Network interface; empty: the one that has the address to listen on.
  std::string interface;

  // Queues of the interface to receive from; empty: all it has. Packets that the NIC puts into another queue go to the kernel, and count
  // as rx_kernel_dropped.
  std::vector<std::uint32_t> queues;

  // split_queues: each of `queues` is a link of its own, and `queue` says which of them this one is (docs/design/queues.md). They are opened in order, 0
  // first, on the port that 0 has; the program that it attaches goes with the last of them. Only 0 has destinations.
  bool split_queues = false;
  std::uint32_t queue = 0;

  // Frames of each queue, a power of two, 64..1048576; with destinations half of those of the first queue are for sending. A frame takes
  // 2048 bytes, or 4096 with packet_bytes_max above 1742. Too few: rx_kernel_dropped at every pause. Too many: memory no cache holds.
  std::uint32_t frame_count = 8192;

  // Bytes, 1..9014: longest UDP payload expected; the interface's MTU must be 28 more. Above 3790 one packet takes several frames, which
  // needs Linux 6.6.
  std::uint32_t packet_bytes_max = 1472;

  // in_place: payloads stay in the frames until give_back(). Payloads of packets without VLAN tags and IP options begin at multiples of 16. One packet
  // takes one frame, so packet_bytes_max is at most 3784. lent_max: packets that the caller may hold at once; each queue gets so many frames more.
  Payloads payloads = Payloads::copied;
  std::uint32_t lent_max = 0;

  XdpZeroCopy zero_copy = XdpZeroCopy::automatic;
  XdpAttach attach = XdpAttach::automatic;

  // Microseconds for which the kernel polls the NIC's queue in a receive call (SO_PREFER_BUSY_POLL); 0: off.
  std::uint32_t busy_poll_us = 0;

  // Microseconds that send() may wait in each call for frames or for the device. Too small: drops in a burst. Too big: send() stalls its thread.
  std::uint32_t tx_wait_us = 100;

  bool huge_pages = true;  // for the frames

  XdpChecksum checksum = XdpChecksum::present;

  template <class Visit>
  void visit(Visit&& v) {
    v("queues", queues,
      {.help = "Queues of the interface to receive from; none: all of them. Packets in other queues go to the kernel",
       .least = 0,
       .most = 1023,
       .length_most = 64});
    v("split_queues", split_queues,
      {.help = "Each of the queues is a link of its own, by the name NAME.0 and so on, which has a core of its own with "
               "cpu_cores.lanes; else one thread takes them in turn"});
    v("frame_count", frame_count,
      {.help = "Frames of each queue, a power of two; half of them are for sending",
       .unit = "frames",
       .least = 64,
       .most = 1 << 20,
       .too_small = "kernel_dropped at every pause of the receiving thread",
       .too_big = "the working set exceeds the caches"});
    v("zero_copy", zero_copy,
      {.help = "automatic: if the driver supports it; required: refuse to start without it; off: the kernel copies"});
    v("attach",
      attach, {.help = "Where the steering program runs. driver: in the NIC's driver; generic: after it, on any NIC; automatic: the better of the two"});
    v("tx_wait_us", tx_wait_us,
      {.help = "How long a send may wait for room in the ring",
       .unit = "us",
       .least = 0,
       .most = 1'000'000,
       .too_small = "answers_dropped in a burst",
       .too_big = "the sending thread does nothing else meanwhile"});
    v("huge_pages", huge_pages,
      {.help = "Try huge pages for the frames; if there are none, ordinary pages are used and this is reported"});
    v("payloads", payloads,
      {.help = "copied: each payload is copied into a buffer of the memory region, and its frame is free at once; in_place: it "
               "stays in its"
               " frame until the buffer that names it is given back, so each queue gets frames for all packets of the region in "
               "addition to"
               " frame_count"});
  }

  // A power of two, no queue twice, and several of them to be split.
  std::optional<config::Problem> check() const;
};

// Attaches the program, opens the sockets, allocates everything. Throws SetupError, also when the back-end cannot be loaded (back_end.hpp).
std::unique_ptr<Link> open_xdp(const XdpConfig& config);

BackEndPlace xdp_back_end();
bool has_xdp();  // has_back_end(xdp_back_end())

}  // namespace nanet::link
