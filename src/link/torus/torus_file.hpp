// SPDX-License-Identifier: Apache-2.0
// What the simulation of a torus and the hosts of its nodes share, each a process: a file that all of them map. Of each node it has the memory, into which the
// RTL writes, and rings of jobs, keys and completions, which a host sees as it would see a card's.
//
//   0        TorusHead
//   4096     TorusHost of node 0, 1, ..., each from a multiple of 4096
//   ...      memory of node 0, 1, ..., kTorusNodeBytes each
//
// Locks on bytes of the file, which the kernel takes away from who has ended: 0 is the simulation's, 1 + n that of the host of node n. Whoever may open the file
// (its owner: mode 0600) may do anything to the torus.
//
// Thread rules: each ring has one thread that writes and one that takes. The rest is set-up.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "link/torus/torus_counters.hpp"
#include "nanet/contract.hpp"

namespace nanet::link {

inline constexpr std::uint32_t kTorusNodesMax = 64, kTorusKeys = 16, kTorusCountsMax = 32;
inline constexpr std::size_t kTorusNodeBytes = 63u << 16;

enum class TorusJobKind : std::uint8_t { put = 0x01, event = 0x11 };

// Of a host to its network interface. local: in the node's memory; offset: in the region, of an EVENT its value.
struct TorusJob {
  TorusJobKind kind = TorusJobKind::put;
  std::uint8_t region = 0;
  std::uint16_t process = 0;
  std::uint32_t to = 0;  // node
  std::uint32_t nonce = 0;
  std::uint32_t bytes = 0;
  std::uint32_t offset = 0;
  std::uint32_t local = 0;
};

// Memory of a node that others may write with this key, or may no longer.
struct TorusKey {
  std::uint8_t index = 0;
  bool is_valid = false;
  std::uint32_t nonce = 0;
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

// One thread pushes, one pops, in different processes. Whatever the other writes into it, no index leaves it.
template <class T, std::uint32_t kEntries>
class SharedRing {
 public:
  bool push(const T& one) {
    const std::uint64_t at = pushed_.load(std::memory_order_relaxed);
    if (at - popped_.load(std::memory_order_acquire) >= kEntries) return false;
    entries_[at % kEntries] = one;
    pushed_.store(at + 1, std::memory_order_release);
    return true;
  }
  bool pop(T& one) {
    const std::uint64_t at = popped_.load(std::memory_order_relaxed);
    if (pushed_.load(std::memory_order_acquire) == at) return false;
    one = entries_[at % kEntries];
    popped_.store(at + 1, std::memory_order_release);
    return true;
  }
  // How many of those that wait are such; for the one who pops.
  template <class Is>
  std::uint64_t count_if(Is&& is) const {
    const std::uint64_t end = pushed_.load(std::memory_order_acquire);
    std::uint64_t found = 0;
    for (std::uint64_t at = popped_.load(std::memory_order_relaxed), left = kEntries; at != end && left != 0; ++at, --left)
      found += is(entries_[at % kEntries]) ? 1 : 0;
    return found;
  }

 private:
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  alignas(64) std::atomic<std::uint64_t> popped_{0};
  alignas(64) std::array<T, kEntries> entries_{};
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
};

// Slots for one sender in the memory of a node, and what the sender has to know to put payloads there. The rest is of `generation`, which is 0 while there are none.
struct TorusInbox {
  std::atomic<std::uint32_t> generation{0};
  std::atomic<std::uint32_t> opened{0};  // how often
  std::atomic<std::uint32_t> region{0}, nonce{0}, slot_count{0}, slot_bytes{0};
};

// A node, as its host sees it.
struct TorusHost {
  SharedRing<TorusJob, 1024> jobs;
  SharedRing<TorusKey, 64> keys;
  SharedRing<Completion, 1024> completions;
  std::array<TorusInbox, kTorusNodesMax> inboxes;                    // by sender
  std::array<std::atomic<std::uint64_t>, kTorusCountsMax> counts;    // as of the last turn
  std::array<std::atomic<std::uint64_t>, kTorusCounters> registers;  // as last read, in the order of kTorusCounterTable
};

struct TorusHead {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t host_bytes = 0;  // of a TorusHost: both sides are of one build
  std::array<std::uint32_t, 3> shape{};
  std::uint32_t wire_cycles = 0;
  std::uint32_t counts = 0;  // of a node; the simulation knows what it counts
  std::array<std::array<char, 16>, kTorusCountsMax> names{};

  std::uint32_t nodes() const { return shape[0] * shape[1] * shape[2]; }
  std::string shape_text() const;
  // A node as packets name it: x 6 bits, y 5, z 5. kTorusNodesMax: no node of this torus.
  std::uint32_t node_at(std::uint32_t place) const;
};

class TorusFile {
 public:
  // For the simulation: a new file, in place of one that another simulation has left. Throws SetupError.
  static TorusFile create(const std::string& path, const std::array<std::uint32_t, 3>& shape, std::uint32_t wire_cycles,
                          std::span<const std::string_view> count_names);
  // For a host. Throws SetupError: no torus there, or no simulation of it is running.
  static TorusFile open(const std::string& path, const std::string& link);
  TorusFile(TorusFile&& other) noexcept;
  ~TorusFile();

  // The node is this host's until the file goes. Throws SetupError.
  void claim(std::uint32_t node, const std::string& link);

  // Whether the simulation still runs.
  bool is_served() const;

  const TorusHead& head() const { return *reinterpret_cast<const TorusHead*>(memory_.data()); }
  TorusHost& host(std::uint32_t node) const;
  std::span<std::byte> memory(std::uint32_t node) const;
  std::span<std::byte> memories() const;  // of all nodes, back to back

 private:
  TorusFile(const std::string& path, int file) : path_(path), file_(file) {}
  void map(std::size_t bytes);

  std::string path_;
  int file_;
  bool is_owner_ = false;  // the simulation's: it goes with it
  std::span<std::byte> memory_;
};

}  // namespace nanet::link
