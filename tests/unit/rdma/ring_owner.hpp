// SPDX-License-Identifier: Apache-2.0
// The owner of a ring, used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "nanet/rdma/notify_ring.hpp"
#include "nanet/rdma/target.hpp"
#include "target_process.hpp"
#include "writer_process.hpp"

namespace nanet::test {

inline constexpr rdma::NotifyRingConfig RING{.slot_count = 7, .payload_bytes_max = RING_PAYLOAD_BYTES_MAX};

struct Ring {
  Ring(const rdma::Worker& worker, const std::string& name, rdma::RegionKind kind)
      : region(worker, {.name = name, .bytes = rdma::notify_ring_bytes(RING), .kind = kind, .locked = false}),
        reader(region.span(), RING) {}

  rdma::Region region;
  rdma::NotifyReader reader;
};

struct RingOwner {
  static constexpr auto PATIENCE = std::chrono::seconds(30);

  explicit RingOwner(const std::string& transports, rdma::RegionKind kind = rdma::RegionKind::host_shared)
      : worker(worker_config(transports, 100)), ring(worker, "ring", kind), target(worker, {.address = target_address()}) {
    expose(ring, "ring");
  }
  void expose(const Ring& one, const std::string& name, std::uint32_t connection_count_max = 1) {
    target.expose(one.region, {.name = name,
                               .permissions = {.read = true, .write = true},
                               .token = TARGET_TOKEN,
                               .connection_count_max = connection_count_max});
  }
  rdma::ConnectionConfig config() const {
    return {.address = target_address(), .port = target.port(), .region = "ring", .token = TARGET_TOKEN, .depth = 3};
  }
  // The next payload, if one comes in time.
  std::optional<std::span<std::byte>> next() {
    const auto end = std::chrono::steady_clock::now() + PATIENCE;
    while (std::chrono::steady_clock::now() < end) {
      if (const auto payload = ring.reader.take()) return payload;
      if (!worker.progress()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return std::nullopt;
  }

  rdma::Worker worker;
  Ring ring;
  rdma::Target target;
};

}  // namespace nanet::test
