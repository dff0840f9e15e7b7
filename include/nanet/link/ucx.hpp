// SPDX-License-Identifier: Apache-2.0
// The link over RDMA: remote nodes put their payloads into rings of this process's memory and notify them (nanet/rdma/notify_ring.hpp).
// docs/design/rdma.md.
//
// Optional: built where UCX is found. It only receives. A sender is an rdma::NotifyWriter with a connection to region "ring-0", "ring-1", ...
// of this link's address, one sender a ring. If the path is one-sided (shared memory, RDMA hardware) no system call and no message is in
// it; over TCP (trust_network) this process's CPU writes the payloads, inside receive().
//
// Nothing is lost here: what is not received stays in its ring, and a full ring stops its sender (keeps_packets()).
//
// Layout of what receive() writes: each payload is copied to the next multiple of 8 bytes from the start of the room, and bytes_used is
// rounded up to a multiple of 8 (at most the size of the room), as with UdpLink. RxPacket::peer_port is the ring's index + 1, peer_address 0.
//
// Thread rules: those of Link. wait() belongs to the thread that receives; no notice can wake it, so it sleeps 50 us at most.
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

namespace nanet::link {

// shared: memory that processes of this machine can map. host: private memory, for RDMA hardware.
enum class UcxMemory : std::uint8_t { shared, host };

constexpr auto choices(UcxMemory) {
  return std::array{config::Choice{"shared", UcxMemory::shared}, config::Choice{"host", UcxMemory::host}};
}

struct UcxConfig {
  static constexpr config::Component component{"Ucx",
                                               "What a UCX link needs: rings that remote writers fill, and who may fill them."};

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

  // Bytes, 1..65507: longest payload. A sender that has a longer one gets an error on its own side.
  std::uint32_t packet_bytes_max = 1472;

  // What a sender must prove to know; it is never sent.
  std::uint64_t token = 0;

  // As UCX_TLS, such as "posix"; empty: as the address says (nanet/rdma/worker.hpp).
  std::string transports;

  // UCX's TCP may be used: whoever reaches the interface has full control over this process.
  bool trust_network = false;

  UcxMemory memory = UcxMemory::shared;

  // For whoever starts the engine: whether it may be root, and where the token is. The link itself looks at neither.
  bool allow_root = false;
  std::string token_file;

  template <class Visit>
  void visit(Visit&& v) {
    v("ring_count", ring_count,
      {.help = "Rings, one for each sender: its region is ring-0, ring-1, ...",
       .unit = "rings",
       .least = 1,
       .most = 1024,
       .too_small = "further senders are refused",
       .too_big = "memory, and one more poll for each empty ring"});
    v("slot_count", slot_count,
      {.help = "Payloads that each ring has room for, each of the link's packet_bytes_max",
       .unit = "payloads",
       .least = 1,
       .most = 1 << 20,
       .too_small = "its sender waits at every pause of the receiving thread; nothing is lost",
       .too_big = "the working set exceeds the caches"});
    v("memory", memory,
      {.help = "shared: memory that writers on this machine map; host: locked memory of this process, for RDMA hardware"});
    v("transports", transports,
      {.help = "As in UCX_TLS, such as posix or rc_verbs; senders need the same. Empty: shared memory at a loopback address, "
               "elsewhere RDMA"
               " hardware (rc, dc) of the device that owns the address",
       .length_most = 255,
       .pattern = R"(^[!-~]*$)"});
    v("trust_network", trust_network,
      {.help = "UCX's TCP may be used, where it is named in transports, or where the address is of no RDMA hardware. It checks no "
               "keys: whoever"
               " reaches that interface has full control over this process"});
    v("allow_root",
      allow_root, {.help = "Receive as root. Otherwise root is refused unless run.user gives it up: a sender could use what this process may do"});
    v("token_file", token_file,
      {.help = "File with the token that a sender must prove to know, 1 to 16 hexadecimal digits, readable by its owner only; null:"
               " NANET_RDMA_TOKEN of the environment, else none, and then the endpoint must be on loopback",
       .length_least = 1,
       .nullable = true});
  }
};

// Throws SetupError, also when the back-end cannot be loaded (back_end.hpp).
std::unique_ptr<Link> open_ucx(const UcxConfig& config);

BackEndPlace ucx_back_end();
bool has_ucx();  // has_back_end(ucx_back_end())

}  // namespace nanet::link
