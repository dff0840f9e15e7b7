// SPDX-License-Identifier: Apache-2.0
// A node of the torus with its network interface (simulated_rdma_node.sv), verilated, and the host behind it: memory, pages, and a bus that is always ready and
// answers a read after kReadCycles. docs/design/apenet-rdma.md
//
// Memory is 63 pages of 64 KiB. They lie on the bus in reverse order, so what ignored the page table would go elsewhere, and the completion queue lies on one more.
// Whatever the RTL asks of the bus beyond that is a std::logic_error with the node and the address.
// Thread rules: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "model/torus/node.hpp"
#include "model/torus/rdma_registers.hpp"
#include "nanet/contract.hpp"

namespace nanet::torus {

class VerilatedRdma;

inline constexpr std::uint32_t kHostBytes = 63u << 16;
inline constexpr std::uint32_t kReadCycles = 20;  // from a request of the bus to the first word of its answer
inline constexpr std::size_t kKeys = 16;
inline constexpr std::uint32_t kMessageBytesMax = 64 * 4080 - 15;  // of a PUT or GET, wherever it begins
inline constexpr std::uint64_t kOffsetsMax = std::uint64_t{1} << 40;

enum class RdmaKind : std::uint8_t { put = 0x01, get = 0x03, event = 0x11 };

// As job_t of rdma_pkg.sv.
struct RdmaJob {
  RdmaKind kind = RdmaKind::put;
  Place to;
  std::uint16_t process = 0;
  std::uint32_t nonce = 0;
  std::uint8_t region = 0;
  std::uint64_t offset = 0;  // of an EVENT: its value
  std::uint64_t local = 0;
  std::uint32_t local_nonce = 0;
  std::uint32_t bytes = 0;
  std::uint64_t tag = 0;
};

// Memory that other nodes may use; offset and bytes are of this node's memory.
struct RdmaKey {
  std::uint8_t index = 0;
  bool is_valid = true, is_readable = false, is_writable = false;
  std::uint32_t nonce = 0, offset = 0, bytes = 0;
};

// What becomes of a packet, in the order of rdma_pkg.sv.
inline constexpr std::array<std::string_view, 20> kPacketNames{
    "landed", "event", "get",       "flagged", "crc",     "type",  "length",   "key",  "rights",   "bounds",
    "page",   "stale", "duplicate", "misfit",  "outside", "queue", "requests", "send", "no_match", "full"};

struct RdmaCounts {
  std::array<std::uint64_t, kPacketNames.size()> packets{};
  std::uint64_t missed = 0, refused = 0;      // messages; jobs and GETs
  std::uint64_t gone_good = 0, gone_bad = 0;  // jobs
  std::uint64_t lost = 0;                     // cycles in which router, links or pages refused something
};

// What lofamo of a node knows of the neighbour at a link, and since which cycle.
struct NeighbourState {
  bool has_link = false, is_silent = false;  // silent: nothing is heard, so the rest says nothing
  bool is_host_silent = false;
  std::uint8_t says = 0;  // the neighbour's host of itself: 0 when it is well
  std::uint64_t since_cycle = 0;
};

inline constexpr std::uint32_t kBeatCycles = 1024;  // of the network interface, for its host: lofamo's

class RdmaNode {
 public:
  // memory: kHostBytes that outlive it, such as those that another process maps; none: its own.
  RdmaNode(const Shape& shape, std::uint32_t number, std::array<const Wire*, kLinks> in, std::array<Wire*, kLinks> out,
           std::span<std::uint8_t> memory = {});
  RdmaNode(RdmaNode&&) noexcept;
  ~RdmaNode();

  std::span<std::uint8_t> memory() { return memory_; }
  static std::uint64_t device_address(std::uint64_t offset) { return (std::uint64_t{1} << 40) + offset; }
  void set_key(const RdmaKey& key) { keys_.push_back(key); }
  void post(const RdmaJob& job) { jobs_.push_back(job); }
  std::size_t jobs() const { return jobs_.size(); }
  // Completions since the last call.
  std::vector<Completion> take();
  void step(std::uint64_t cycle);

  // LO|FA|MO: the host beats every beat_cycles, and is silent for its network interface when none came for period_cycles; 0: it is not watched.
  void watch(std::uint32_t beat_cycles, std::uint32_t period_cycles);
  void set_host(bool lives) { host_lives_ = lives; }
  void say(std::uint8_t what) { host_says_ = what; }    // of itself, with its next beat; 7 bits
  void set_logic(bool lives) { logic_lives_ = lives; }  // else it stands still, and its links with it
  std::uint8_t state() const { return state_; }  // as it tells its neighbours: bit 0, the host is silent; above it what that says
  bool is_logic_silent() const { return is_logic_silent_; }  // for the host, which looks with each beat
  const NeighbourState& neighbour(std::size_t port) const { return neighbours_[port]; }

  const RdmaCounts& counts() const { return counts_; }

  // What the host reads in the node's registers. All counters are read in turn; begin_reading() begins anew, and they are of a later time when has_read().
  // A node that stands still answers no one.
  const RdmaRegisters& registers() const { return registers_; }
  void begin_reading() { registers_.begin(); }
  bool has_read() const { return !logic_lives_ || registers_.has_read(); }

  std::uint64_t job_cycle() const { return job_cycle_; }                // in which the last job was handed to the RTL
  std::uint64_t completion_cycle() const { return completion_cycle_; }  // in which the last completion stood in memory

 private:
  struct Read {
    std::uint64_t due;
    std::uint64_t address;
    std::uint32_t words, tag;
  };

  void set_up();
  void tick();
  std::uint8_t* at(std::uint64_t bus_address);
  void take_outputs(std::uint64_t cycle);
  void give_inputs(std::uint64_t cycle);
  void give_job();
  void count();
  void beat(std::uint64_t cycle);
  void look_at_neighbours(std::uint64_t cycle);
  void use_registers();

  std::uint32_t number_;
  std::array<const Wire*, kLinks> in_;
  std::array<Wire*, kLinks> out_;
  std::vector<std::uint8_t> own_memory_;
  std::span<std::uint8_t> memory_;
  std::vector<std::uint8_t> queue_;
  std::deque<RdmaJob> jobs_;
  std::deque<RdmaKey> keys_;
  std::deque<Read> reads_;
  std::uint64_t write_address_ = 0, job_cycle_ = 0, completion_cycle_ = 0;
  std::uint32_t taken_ = 0, written_ = 0;
  RdmaCounts counts_;
  RdmaRegisters registers_;
  std::uint32_t beat_cycles_ = 0, beats_seen_ = 0;
  std::uint64_t beats_cycle_ = 0, links_ = 0;  // when the host last saw the logic's beats change; lofamo's links
  std::uint8_t host_says_ = 0, state_ = 0;
  bool host_lives_ = true, logic_lives_ = true, is_logic_silent_ = false;
  std::array<NeighbourState, kLinks> neighbours_;
  std::unique_ptr<VerilatedRdma> rtl_;
};

}  // namespace nanet::torus
