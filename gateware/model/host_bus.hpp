// SPDX-License-Identifier: Apache-2.0
// The host's memory behind the NIC's bus, as a model: requests take time, come in pieces and are answered out of order; a table says what the
// NIC may touch, and what it touches beside that is counted, never done.
//
// Ordering is that of PCIe: writes land in the order in which they were asked for, and a read sees every write that was asked for before it. Reads are
// answered in any order, words of one in order.
// Random numbers come from the seed alone. Thread rules: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace nanet::gateware {

// How the modelled host behaves, in cycles of the NIC. Nothing here is a property of the NIC.
struct HostTiming {
  std::uint32_t write_cycles = 0;      // from a write request's last word to memory
  std::uint32_t read_cycles_min = 60;  // from a read request to the first word of its answer
  std::uint32_t read_cycles_max = 60;  // random between the two: so answers overtake each other
  std::uint32_t busy_per_1024 = 0;  // cycles of 1024 in which the bus takes no write, and as many in which it takes no read or gives no answer
  std::uint64_t seed = 1;
};

struct WriteRequest {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint64_t first_cycle = 0;  // its first word was taken
  std::uint64_t last_cycle = 0;
};

struct ReadRequest {
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint32_t tag;
  bool gpu;
};

using BusWord = std::array<std::uint32_t, 4>;

// A word of a write, as of dma_write.
struct WriteWord {
  bool first;
  bool last;
  bool gpu;
  std::uint64_t address;
  std::uint32_t bytes;
  BusWord data;
  std::uint16_t keep;
};

// A word of an answer, as of dma_read.
struct AnswerWord {
  bool valid;
  bool last;
  bool error;
  std::uint32_t tag;
  BusWord data;
};

// A request that broke a rule: memory that was not registered or not for this, a request across 4 KiB, bytes that are not as announced.
struct Stray {
  std::uint64_t address;
  std::uint32_t bytes;
  bool is_write;
  const char* why;
};

class HostBus {
 public:
  static constexpr std::size_t kReadBytesMax = 512, kWriteBytesMax = 256;  // of a request
  static constexpr std::size_t kStraysKept = 64;

  explicit HostBus(const HostTiming& timing);

  // Registers `memory` at a bus address, which is a multiple of 4096. It must not overlap any other. Throws std::invalid_argument.
  void map(std::uint64_t bus_address, std::span<std::byte> memory, bool readable, bool writable, bool gpu = false);
  void unmap(std::uint64_t bus_address);

  // --- one cycle, in this order ---
  bool write_ready();  // decides for this cycle
  bool read_ready();
  AnswerWord answer(std::uint64_t cycle);  // what stands on the answer port in this cycle
  void take_write(const WriteWord& word, std::uint64_t cycle);
  void take_read(const ReadRequest& request, std::uint64_t cycle);
  void land(std::uint64_t cycle);  // writes whose time has come
  void take_interrupt(bool level);

  // Each time that the level rises a message goes to the host, after the writes that were asked for before, as over PCIe. Takes one that has come.
  bool take_message();

  // A reset of the NIC: what it has asked for is not answered any more, and a write that it had begun does not happen.
  void forget();

  // Every read is answered with an error while it is set: poisoned completions.
  void fail_reads(bool on) { fail_reads_ = on; }

  // Keeps each write request for writes(), in the order of the bus.
  void keep_writes(bool on) { keep_writes_ = on; }
  std::vector<WriteRequest>& writes() { return writes_; }

  // May change the data of each good write request before it lands, or, returning false, keep it from landing: to see what notices. Empty: none.
  using Tamper = std::function<bool(std::uint64_t address, std::span<std::byte> data)>;
  void tamper(Tamper tamper) { tamper_ = std::move(tamper); }

  std::uint64_t stray_count() const { return stray_count_; }
  const std::vector<Stray>& strays() const { return strays_; }  // the first kStraysKept
  std::uint64_t write_count() const { return write_count_; }    // requests
  std::uint64_t read_count() const { return read_count_; }
  bool idle() const { return landing_.empty() && reads_.empty(); }

 private:
  struct Range {
    std::uint64_t from, to;  // bus addresses
    std::byte* memory;
    bool readable, writable, gpu;
  };
  struct Landing {
    std::uint64_t cycle;
    std::byte* to;
    std::uint32_t bytes;
    std::array<std::byte, kWriteBytesMax> data;
  };
  struct Read {
    ReadRequest request;
    std::uint64_t cycle;          // of its first word
    std::uint64_t writes_before;  // that have to land first
    std::uint32_t given;          // bytes
    std::byte* from;              // null: it is answered with an error
    std::array<std::byte, kReadBytesMax> data;
  };

  const Range* find(std::uint64_t address, std::uint32_t bytes);
  std::byte* check(std::uint64_t address, std::uint32_t bytes, bool is_write, bool gpu);
  void stray(std::uint64_t address, std::uint32_t bytes, bool is_write, const char* why);
  void end_write();
  bool busy();

  HostTiming timing_;
  std::mt19937_64 random_;
  std::vector<Range> ranges_;  // by address
  std::size_t found_ = 0;      // where the last access was
  std::deque<Landing> landing_;
  std::vector<Read> reads_;
  WriteRequest open_;
  bool open_gpu_ = false, in_write_ = false, open_bad_ = false;
  std::uint32_t open_bytes_ = 0;
  std::array<std::byte, kWriteBytesMax> open_data_{};
  std::uint64_t asked_writes_ = 0, landed_writes_ = 0;
  std::vector<WriteRequest> writes_;
  std::vector<Stray> strays_;
  std::uint64_t stray_count_ = 0, write_count_ = 0, read_count_ = 0;
  bool fail_reads_ = false, keep_writes_ = false;
  Tamper tamper_;
  bool interrupt_ = false;
  std::deque<std::uint64_t> messages_;  // how many writes each is behind
};

}  // namespace nanet::gateware
