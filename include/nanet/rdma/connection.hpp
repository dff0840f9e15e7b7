// SPDX-License-Identifier: Apache-2.0
// The side that writes and reads: a connection to one region that a target exposes.
//
// put and get return when the caller's memory is free again (put) or filled (get); what a put wrote is in the target's memory only once a
// later flush returned ok. Operations between two flushes may be done in any order. Each ends within the time limit; a time-out or a lost
// peer closes the connection, since UCX cannot take back a transfer otherwise. After set-up nothing here allocates but the atomics (UCX may).
//
// start_put, start_get and start_flush only begin: the transfer goes on in progress() and in every other call that serves the worker.
//   - Each takes one of `depth` slots. Status ok: accepted, and take_completed will report its tag once, even if the connection ends
//     before. would_block: no slot is free, nothing was sent; call progress and take_completed, which frees the slot. Any other status:
//     refused or closed, nothing was sent, no tag will be reported.
//   - The caller's memory belongs to the transfer until its tag was reported. Tags are the caller's and need not differ. They may be
//     reported in another order than they were started. A put is reported ok when its memory is free, a flush when all
//     accepted before it is in the target's memory.
//   - They are not cut into chunks. A region that is mapped here (shared memory) is copied within the call, and then reported ok.
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
  // Set-up throws unless UCX's report on a get of one chunk shows it. A region that may only be written is judged by its lanes, and so never
  // has the last two.
  one_sided,  // put and get take no CPU of the target: the region is mapped here, or RDMA hardware or another GPU's copy engine does them
  rdma,       // RDMA hardware does them (rc, dc)
  zero_copy,  // neither side's CPU copies a chunk. Small transfers are copied by every transport. Shared memory is a copy by this CPU
  gpudirect,  // the region is a GPU's memory, and RDMA hardware or another GPU reaches it without a copy in host memory
};

struct ConnectionConfig {
  std::string address;  // of the target, its host name, or the path of its Unix socket; the worker's is on the same machine or network
  std::uint16_t port = 0;
  std::string region;                 // name it is exposed under
  std::uint64_t token = 0;            // of the exposure: proved to the target, and by it; never sent
  std::uint32_t timeout_ms = 10000;   // of set-up and of each operation; too short: a slow, large transfer is given up
  std::size_t chunk_bytes = 1 << 20;  // transfers are cut into these; smaller: more work, faster notice of a lost peer
  std::uint32_t depth = 8;            // transfers or chunks in flight at once, at most; larger: more memory registered, fuller wire
  Require require = Require::anything;
  // This side's memory, if transfers will be of its parts and it is a GPU's: what is said and required of the path is then of those. Set-up
  // gets a chunk into it. Needed during set-up only.
  const Region* local = nullptr;
};

// One lane that UCX has opened to the target; which one an operation takes depends on its size and on the memory.
struct Lane {
  std::string transport;  // such as "posix", "cma", "tcp", "rc_mlx5"
  std::string device;     // such as "memory", "eth0", "mlx5_0:1"
};

// What UCX said of the first transfer of its kind and size class (a power of two) on a connection.
struct Way {
  enum class Operation : std::uint8_t { put, get } operation = Operation::put;
  bool is_from_device = false;  // this side's memory is a GPU's
  std::uint64_t bytes = 0;      // of that transfer
  std::string text;  // UCX's words, such as "zero-copy rc_mlx5/mlx5_0:1", "software emulation tcp/eth0"; or "copied by this CPU"

  bool is_emulated() const;   // the target's CPU has a part in it: software emulation, or TCP
  bool is_one_sided() const;  // known to take no CPU of the target
  bool is_zero_copy() const;
};

struct Path {
  std::vector<Lane> lanes;
  enum class Sided : std::uint8_t {
    one_sided,  // the region is mapped into this process (shared memory), or the worker was given RDMA hardware alone (rc, dc)
    emulated,  // every lane is TCP, or a GPU's memory takes part and no lane reaches one: the target's CPU does it, in its worker's progress
    not_known,  // UCX may do either, per operation
  } sided = Sided::not_known;
  bool is_mapped = false;         // the region is mapped into this process: its CPU copies
  bool is_device = false;         // the region, or this side's memory, is a GPU's
  std::optional<Way> probe = {};  // of the get at set-up: if something was required, or the region is a GPU's
  // How a NIC or another GPU reaches a GPU's memory: "GPUDirect RDMA", "peer to peer (cuda_ipc)"; "none": through host memory, or not known.
  std::string gpudirect() const;
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
  std::size_t in_flight() const;              // accepted and not yet reported; also those that have ended

  // A part of a region of this worker, of any kind; otherwise like those with spans, which are host memory.
  struct Part {
    const Region& region;
    std::uint64_t offset_bytes = 0;
    std::size_t bytes = 0;  // out of the region: out_of_bounds
  };
  Status start_put(std::uint64_t offset_bytes, const Part& from, std::uint64_t tag);
  Status start_get(std::uint64_t offset_bytes, const Part& into, std::uint64_t tag);
  Status put(std::uint64_t offset_bytes, const Part& from);
  Status get(std::uint64_t offset_bytes, const Part& into);

  Status put(std::uint64_t offset_bytes, std::span<const std::byte> data);
  Status get(std::uint64_t offset_bytes, std::span<std::byte> data);
  // Words of 8 bytes at a multiple of 8, each of which both sides see whole. put_words after a flush: seeing one of them means seeing all
  // that was put before the flush. get_words: what this thread puts next was not there before the words were read.
  Status put_words(std::uint64_t offset_bytes, std::span<const std::uint64_t> words);
  Status get_words(std::uint64_t offset_bytes, std::span<std::uint64_t> words);
  Status flush();  // all before it is done, at the target
  Fetched atomic_add(std::uint64_t offset_bytes,
                     std::uint64_t value);  // 8 bytes; done by the target's CPU unless the region is mapped; a GPU's: not_permitted
  Fetched atomic_swap(std::uint64_t offset_bytes, std::uint64_t value);
  Status close();  // flushes, then closes; ok if all before it was done

  std::uint64_t bytes() const;  // of the region
  Permissions permissions() const;
  Path path() const;
  std::vector<Way> ways() const;     // of the transfers so far, in the order of operation and size
  const std::string& error() const;  // what UCX said when an operation failed, empty before

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace nanet::rdma
