// SPDX-License-Identifier: Apache-2.0
// The side that writes and reads: a connection to one region that a target exposes.
//
// put and get return when the caller's memory is free again (put) or filled (get); what a put wrote is in the target's memory only once a
// later flush returned ok. Operations between two flushes may be done in any order. Each ends within the time limit; a time-out or a lost
// peer closes the connection, since UCX can take back a transfer in no other way. After set-up nothing here allocates but the atomics (UCX may).
//
// start_put, start_get and start_flush only begin: the transfer goes on in progress() and in every other call that serves the worker.
//   - Each takes one of `depth` slots. Status ok: accepted, and its tag will be told once by take_completed, also where the connection ends
//     before. would_block: no slot is free, nothing was sent; call progress and take_completed, which frees the slot. Any other status:
//     refused or closed, nothing was sent, no tag will be told.
//   - The caller's memory belongs to the transfer until its tag was told. Tags are the caller's and need not differ. They may be told in
//     another order than they were started. A put is told ok when its memory is free, a flush when all that was accepted before it is in
//     the target's memory.
//   - They are not cut into chunks. A region that is mapped here (shared memory) is copied within the call, and told ok afterwards.
//   - The time limit of each is looked at in progress(): call it often.
// put, get and flush may be mixed with them, and have a slot of their own that is never taken by others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  std::uint32_t depth = 8;            // transfers or chunks under way at once, at most; larger: more memory registered, fuller wire
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

  struct Completed {
    std::uint64_t tag = 0;
    Status status;  // ok, or what the connection ended with
  };

  Status start_put(std::uint64_t offset_bytes, std::span<const std::byte> data, std::uint64_t tag);
  Status start_get(std::uint64_t offset_bytes, std::span<std::byte> data, std::uint64_t tag);
  Status start_flush(std::uint64_t tag);
  Status progress();                          // serves the worker once, never blocks; closes the connection if that is over
  std::optional<Completed> take_completed();  // none: nothing more has ended
  std::size_t in_flight() const;              // accepted and not yet told; also those that have ended

  Status put(std::uint64_t offset_bytes, std::span<const std::byte> data);
  Status get(std::uint64_t offset_bytes, std::span<std::byte> data);
  // Words of 8 bytes at a multiple of 8, each of which both sides see whole. put_words after a flush: who sees one of them sees all that was
  // put before the flush. get_words: what this thread puts next was not there before the words were read.
  Status put_words(std::uint64_t offset_bytes, std::span<const std::uint64_t> words);
  Status get_words(std::uint64_t offset_bytes, std::span<std::uint64_t> words);
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
