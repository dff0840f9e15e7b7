// SPDX-License-Identifier: Apache-2.0
// The NIC on a board without PCIe, whose host is at the end of a second Ethernet cable (docs/design/gateware-board.md): NOT RUN ON HARDWARE. A thread of
// this object serves the NIC's memory requests; register accesses travel as records of the same frames. Its tests have the simulated nic_eth at the
// other end of the cable.
//
// Contract
//   * Opening begins a session, which is a reset of the NIC: what an earlier process left in flight is thrown away.
//   * Frames are acknowledged and sent again: what a cable loses is late, not lost. A write to a register, and what the NIC writes, keep their order.
//   * The NIC reaches registered memory, each piece as map() allows, and nothing else: other requests are stray, counted, and reads of them fail.
//   * A board that says nothing for `silence_ns` is taken for dead until it is heard again: a register then reads as it last did.
// Thread rules: read, write and poll: any thread. wait: one. The rest is set-up.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "link/gateware/device.hpp"
#include "link/gateware/frame_port.hpp"
#include "link/gateware/host_frames.hpp"

namespace nanet::link::gateware {

struct EthernetTiming {
  std::uint64_t retry_ns = 2'000'000;        // without an acknowledgement: everything in flight is sent again
  std::uint64_t silence_ns = 1'000'000'000;  // without an answer
};

class EthernetDevice final : public Device {
 public:
  // What came of the board's frames and of its requests.
  struct Counts {
    std::uint64_t taken = 0, again = 0, foreign = 0,
                  malformed = 0;  // frames: with records in their turn; out of turn; of another session or sender
    std::uint64_t retries = 0, strays = 0;
    std::uint64_t writes_dropped = 0;  // of registers, the board being silent
  };

  // Throws SetupError when no board answers. port: `name` in messages.
  EthernetDevice(std::unique_ptr<FramePort> port, const std::string& name, const EthernetTiming& timing = {});
  ~EthernetDevice() override;
  EthernetDevice(const EthernetDevice&) = delete;
  EthernetDevice& operator=(const EthernetDevice&) = delete;

  std::uint64_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint64_t value) override;
  std::vector<std::uint64_t> map(std::span<std::byte> memory, std::size_t page_bytes,
                                 Access access) override;  // no GPU's: throws SetupError
  void unmap(std::span<const std::uint64_t> pages) override;
  void poll() override;  // about a microsecond
  bool wait(std::uint64_t timeout_ns) override;

  Counts counts() const;

 private:
  struct Piece {
    std::uint64_t address;  // on the bus, of the first byte
    std::span<std::byte> memory;
    Access access;
  };
  using Lock = std::unique_lock<std::mutex>;

  void open_session(const std::string& name);

  // --- of the thread ---
  void serve();
  void take(std::span<const std::byte> frame, std::uint64_t now_ns);
  void take_acknowledgement(std::uint16_t acknowledged, std::uint64_t now_ns);
  void take_records(std::span<const std::byte> records);
  std::size_t take_record(const host_frames::Record& record, std::span<const std::byte> data);
  void write_memory(const host_frames::Record& record, std::span<const std::byte> data);
  void answer_read(const host_frames::Record& record);
  const Piece* piece_of(const host_frames::Record& record, bool is_write) const;
  void send_again(std::uint64_t now_ns);

  // --- sending, of all threads ---
  void add_record(const host_frames::Record& record, std::span<const std::byte> data, std::size_t unit = 8);
  void send_records();
  void fill(std::vector<std::byte>& frame, std::uint8_t flags, std::uint16_t number, std::span<const std::byte> records);
  void transmit(std::vector<std::byte>& frame);
  std::size_t in_flight() const { return static_cast<std::uint16_t>(number_ - oldest_); }

  static constexpr std::size_t kFramesInFlight = 8;  // a power of two
  const EthernetTiming timing_;
  const std::unique_ptr<FramePort> port_;

  mutable std::mutex mutex_;  // over all that follows
  std::condition_variable heard_;
  std::uint32_t session_ = 0;
  bool is_open_ = false, is_silent_ = false, owes_acknowledgement_ = false;
  std::uint16_t expected_ = 0;             // number of the board's next frame with records
  std::uint16_t number_ = 0, oldest_ = 0;  // of our next, and of the oldest that the board has not acknowledged
  std::array<std::vector<std::byte>, kFramesInFlight> frames_;  // in flight, by number
  std::vector<std::byte> answer_;                               // a frame without records
  std::vector<std::byte> waiting_;                              // records that no frame has taken yet
  std::vector<std::size_t> waiting_ends_;                       // where each of them ends
  std::uint64_t progress_ns_ = 0;                               // when something in flight was acknowledged or sent last
  std::uint64_t quiet_since_ns_ = 0;                            // when the board was heard, or had something to answer to again
  std::vector<Piece> pieces_;
  std::uint64_t next_address_ = std::uint64_t{1} << 32;
  std::array<std::uint64_t, 512> registers_{};  // as each was read last
  std::optional<std::size_t> asked_;            // which of them the board was asked for and has not told
  std::uint64_t interrupts_ = 0;
  Counts counts_;

  std::atomic<bool> stops_ = false;
  std::thread server_;
};

}  // namespace nanet::link::gateware
