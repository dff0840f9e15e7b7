// SPDX-License-Identifier: Apache-2.0
// The link over RDMA: remote nodes put their payloads into rings of this process's memory and notify them (nanet/rdma/notify_ring.hpp).
// docs/design/rdma.md.
//
// Optional: built where UCX is found. It only receives. A sender is an rdma::NotifyWriter with a connection to region "ring-0", "ring-1", ...
// of this link's address, one sender a ring. Where the way is one-sided (shared memory, RDMA hardware) no system call and no message is in
// it; over TCP (trust_network) this process's CPU writes the payloads, inside receive().
//
// Nothing is lost here: what is not received stays in its ring, and a full ring stops its sender (keeps_packets()).
//
// Layout of what receive() writes: each payload is copied to the next multiple of 8 bytes from the start of the room, and bytes_used is
// rounded up to a multiple of 8 (at most the size of the room), as with UdpLink. RxPacket::peer_port is the ring's index + 1, peer_address 0.
//
// Thread rules: those of Link. wait() belongs to the thread that receives; no notice can wake it, so it sleeps 50 us at most.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nanet/link/endpoint.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link {

// shared: memory that processes of this machine can map. host: private memory, for RDMA hardware.
enum class UcxMemory : std::uint8_t { shared, host };

struct UcxConfig {
  // Name of the link in messages and reports.
  std::string name = "ucx";

  // ucx://ADDRESS:PORT to take connections on: nanet's own set-up channel. Loopback: shared memory of this machine; else RDMA hardware.
  std::optional<Endpoint> listen;

  // None: this link only receives.
  std::vector<Endpoint> destinations;

  // 1..1024: senders at most, each has a ring.
  std::uint32_t ring_count = 1;

  // 1..1048576, of each ring. Too few: its sender waits at every pause of the receiver. Too many: memory no cache holds.
  std::uint32_t slot_count = 1024;

  // Bytes, 1..65507: longest payload. A sender that has a longer one is told so by its own side.
  std::uint32_t packet_bytes_max = 1472;

  // What a sender must prove to know; it is never sent.
  std::uint64_t token = 0;

  // As UCX_TLS, such as "posix"; empty: as the address says (nanet/rdma/worker.hpp).
  std::string transports;

  // UCX's TCP may be used: whoever reaches the interface has full control over this process.
  bool trust_network = false;

  UcxMemory memory = UcxMemory::shared;
};

// Throws SetupError, also when the back-end cannot be loaded (back_end.hpp).
std::unique_ptr<Link> open_ucx(const UcxConfig& config);

bool has_ucx();  // has_back_end("ucx")

}  // namespace nanet::link
