// SPDX-License-Identifier: Apache-2.0
// The side that writes and reads: a connection to one region that a target exposes.
//
// put and get return when the caller's memory is free again (put) or filled (get); what a put wrote is in the target's memory only once a
// later flush returned ok. Operations between two flushes may be done in any order. Each ends within the time limit; a time-out or a lost
// peer closes the connection, since UCX can take back a transfer in no other way. After set-up nothing here allocates (UCX may).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nanet/rdma/region.hpp"
#include "nanet/rdma/status.hpp"
#include "nanet/rdma/target.hpp"
#include "nanet/rdma/worker.hpp"

namespace nanet::rdma {

enum class Require : std::uint8_t {
  anything,
  one_sided,  // set-up throws unless put and get are known to be one-sided
};

struct ConnectionConfig {
  std::string address;  // of the target, or its host name
  std::uint16_t port = 0;
  std::string region;                 // name it is exposed under
  std::uint64_t token = 0;            // of the exposure
  std::uint32_t timeout_ms = 10000;   // of set-up and of each operation; too short: a slow, large transfer is given up
  std::size_t chunk_bytes = 1 << 20;  // transfers are cut into these; smaller: more work, faster notice of a lost peer
  std::uint32_t depth = 8;            // chunks under way at once, at most; larger: more memory registered, fuller wire
  Require require = Require::anything;
};

// One way that UCX has opened to the target; which one an operation takes depends on its size and on the memory.
struct Lane {
  std::string transport;  // such as "posix", "cma", "tcp", "rc_mlx5"
  std::string device;     // such as "memory", "eth0", "mlx5_0:1"
};

struct Path {
  std::vector<Lane> lanes;
  enum class Sided : std::uint8_t {
    one_sided,  // the region is mapped into this process (shared memory), or there is a lane of RDMA hardware (rc, dc)
    emulated,   // every lane is TCP: the target's CPU does it, in its worker's progress
    not_known,  // UCX may do either, per operation
  } sided = Sided::not_known;
  std::string text() const;  // such as "posix/memory cma/memory (one-sided or emulated: not known)"
};

class Connection {
 public:
  Connection(const Worker& worker, const ConnectionConfig& config);  // throws SetupError, also when the target refuses
  ~Connection();                                                     // as close
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  struct Fetched {
    Status status;
    std::uint64_t before = 0;  // what was there, if the status is ok
  };

  Status put(std::uint64_t offset_bytes, std::span<const std::byte> data);
  Status get(std::uint64_t offset_bytes, std::span<std::byte> data);
  Status flush();                                                       // all before it is done, at the target
  Fetched atomic_add(std::uint64_t offset_bytes, std::uint64_t value);  // 8 bytes; done by the target's CPU unless the region is mapped
  Fetched atomic_swap(std::uint64_t offset_bytes, std::uint64_t value);
  Status close();  // flushes, then closes; ok if all before it was done

  std::uint64_t bytes() const;  // of the region
  Permissions permissions() const;
  Path path() const;
  const std::string& error() const;  // what UCX said when an operation failed, empty before

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace nanet::rdma
