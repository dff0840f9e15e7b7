// SPDX-License-Identifier: Apache-2.0
// The driver of the NIC in gateware/: CLOPs, one TX ring, all in memory that it registers with the device. It does what docs/design/gateware-nic.md asks
// of a driver, and knows nothing of what provides the device.
//
// Thread rules: one thread receives (poll to wait, set_interrupt, flush), the same or another one sends (send to under_way); counts: any thread,
// and stage statistics one at a time. All that only if the device may be used by several threads. The rest is set-up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "link/gateware/device.hpp"
#include "nanet/contract.hpp"

namespace nanet::link::gateware {

// Buffers that packets are received into, as many as fit under one setting.
struct ClopConfig {
  std::uint32_t buffer_bytes = 64 << 10;  // of each buffer, a multiple of 65536
  std::uint32_t buffer_count = 8;         // power of two, 2 or more
  std::uint32_t packets_per_buffer = 64;  // at most; then it is handed over
  std::uint32_t timeout_ns = 2000;        // of the NIC's clock; 0: none
  bool footer = false;                    // four cycle stamps after each payload

  // Memory of a GPU for the buffers: buffer_count * buffer_bytes, from a multiple of 65536 on. The driver does not touch it; it must outlive the driver.
  // Empty: the driver's own, of the host. Packet index and completions are always that.
  std::span<std::byte> gpu_memory{};
};

struct NicConfig {
  std::uint64_t mac = 0x02'00'00'00'00'01;  // as usually written
  std::uint32_t address = 0;                // IPv4, host order

  std::vector<ClopConfig> clops{ClopConfig{}};  // 1 to 4
  std::uint32_t tx_entries = 32;                // power of two, 8 or more
};

struct Match {
  std::uint32_t index;  // of the table: the lowest that fits wins
  std::uint16_t port;
  std::uint32_t from_address;  // IPv4, host order
  std::uint32_t from_mask;     // a zero bit: may be anything
  std::uint16_t source;        // PacketRef::source
  bool counts_events;          // byte 3 of a payload is its number of events
  std::uint32_t clop = 0;      // that the packets go to
};

struct Destination {
  std::uint32_t index;
  std::uint64_t mac;
  std::uint32_t address;
  std::uint16_t port;
  std::uint16_t from_port;
};

// When the interrupt comes: the first completion waits moderation_ns at most, `completions` of them do not wait. 0: none waits.
struct InterruptConfig {
  std::uint32_t moderation_ns = 0;
  std::uint32_t completions = 0;
};

// What a stage of the packets' path took, in cycles.
struct StageStats {
  static constexpr unsigned bin_count = 64;

  std::uint64_t count = 0;
  std::uint64_t min = 0;  // 0 without samples
  std::uint64_t max = 0;
  std::uint64_t sum = 0;
  std::array<std::uint64_t, bin_count> bins{};

  static std::uint64_t bin_floor(unsigned bin);  // the least that is in it; it ends before the next bin's, the last has no end

  void add(const StageStats& later);  // of another period
};

// As registers/nic.rdl describes them. Of each stored packet: parsed, begun writing, ended writing; of each buffer: its completion written, from
// the end of its newest and of its oldest packet.
struct Stage {
  const char* name;
  const char* sample;  // what has one
};
inline constexpr unsigned kStageCount = 5;
inline constexpr std::array<Stage, kStageCount> kStages{{{"parsed", "packet"},
                                                         {"write_begun", "packet"},
                                                         {"written", "packet"},
                                                         {"completed_newest", "buffer"},
                                                         {"completed_oldest", "buffer"}}};

class NicDriver {
 public:
  // Finds the NIC, ends what an earlier program may have left enabled in it, registers memory, enables CLOPs and ring. Throws SetupError when it is
  // another NIC or has not enough of something.
  NicDriver(Device& device, const NicConfig& config);
  ~NicDriver();  // disables all, waits until nothing is in flight, takes the memory back
  NicDriver(const NicDriver&) = delete;
  NicDriver& operator=(const NicDriver&) = delete;

  void set_match(const Match& match);
  void set_destination(const Destination& destination);
  void flush(std::uint32_t clop = 0);

  // The next buffer that was handed over, of any CLOP, or null. It and what it names stay until as many release() of its CLOP as poll() that
  // found one of it.
  const Completion* poll();
  std::span<const PacketRef> packets(const Completion& completion) const;
  std::span<const std::byte> payload(const Completion& completion, const PacketRef& packet) const;  // in a GPU's memory if its CLOP is
  std::array<std::uint64_t, 4> stamps(const Completion& completion, const PacketRef& packet) const;  // [cycles]; with footers
  void release(std::uint32_t buffers = 1, std::uint32_t clop = 0);                                   // the oldest ones of it

  // Instead of polling: sleeps until there is a completion that poll() has not given, timeout_ns of the NIC's time at most. Whether it was woken: then poll() gives one.
  bool wait(std::uint64_t timeout_ns);
  void set_interrupt(const InterruptConfig& config);  // without, the first completion wakes

  // Copies a payload and rings. False: the ring is full, or the payload is empty or longer than payload_bytes_max().
  bool send(std::span<const std::byte> payload, std::uint32_t destination, std::uint64_t tag);
  const Completion* poll_sent();  // the next completion of a sent packet, or of one that could not be (kind error)
  std::uint32_t under_way() const { return rung_ - gone_; }

  // Of all packets and buffers since the last call: each is in exactly one. The first call: since reset. Without a sample, if the NIC is built without.
  std::array<StageStats, kStageCount> take_stage_stats();

  std::uint32_t payload_bytes_max() const { return payload_bytes_max_; }
  double cycle_ns() const { return cycle_ns_; }                                                 // of its clock
  std::uint64_t rx_count(unsigned counter) const { return device_.read(0x800 + 8 * counter); }  // nic_counts.hpp names them
  std::uint64_t tx_count(unsigned counter) const { return device_.read(0x900 + 8 * counter); }

 private:
  // Registered memory: its number as a region of the NIC, and what is in it.
  struct Region {
    std::uint32_t number = 0;
    std::uint64_t address = 0;  // of its first byte, for the NIC
    std::span<std::byte> memory;
    std::vector<std::uint64_t> pages;
  };
  struct Clop {
    ClopConfig config;
    Region buffers, index;
    std::uint32_t released = 0;  // buffers
  };

  void check_geometry();
  void check(const ClopConfig& config) const;
  void need_entry(std::uint32_t index, unsigned at, const char* table) const;  // at: of its number in `geometry`
  void end_earlier();
  void stop();
  void take_down();
  void add(Region& region, std::size_t bytes, unsigned page_shift, Access access);
  void add_memory(Region& region, std::span<std::byte> memory, unsigned page_shift, Access access);
  void remove(const Region& region);
  void set_up_completions();
  void set_up_clop(std::uint32_t number);
  void set_up_ring();
  std::size_t place(const Completion& completion, const PacketRef& packet) const;  // in the CLOP's buffers
  std::uint64_t stage_word(unsigned stage, unsigned word, std::uint64_t is_bin);

  using Memory = std::unique_ptr<std::byte, void (*)(void*)>;

  Device& device_;
  NicConfig config_;
  std::vector<Memory> memory_;               // of the regions, but that of a GPU
  std::uint64_t geometry_ = 0;               // the NIC's register
  std::uint32_t regions_ = 0, entries_ = 0;  // in use
  std::uint32_t payload_bytes_max_ = 0, slot_bytes_ = 0;
  double cycle_ns_ = 0;
  bool counts_stages_ = false;
  std::vector<Clop> clops_;
  Region completions_, ring_, payloads_, sent_;
  std::uint32_t taken_ = 0;            // completions
  std::uint32_t rung_ = 0, gone_ = 0;  // descriptors
};

}  // namespace nanet::link::gateware
