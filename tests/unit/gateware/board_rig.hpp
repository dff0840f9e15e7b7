// SPDX-License-Identifier: Apache-2.0
// nic_eth, verilated, in a thread of its own, with a cable to a host that may lose frames in both directions. The core has a quarter of the wires' clock,
// as on the board.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "Vnic_eth.h"
#include "link/gateware/frame_port.hpp"
#include "model/wire.hpp"
#include "verilated.h"

namespace nanet::link::gateware::test {

using Bytes = std::vector<std::byte>;

inline constexpr MacAddress kHost{0x06, 0x11, 0x22, 0x33, 0x44, 0x55};

// A cable with a queue each way.
class Cable {
 public:
  explicit Cable(std::uint64_t seed) : random_(seed) {}

  // Of a hundred frames so many are lost, in each direction.
  void lose(unsigned percent) { percent_ = percent; }

  void to_board(std::span<const std::byte> frame) { add(to_board_, frame); }
  void to_host(std::span<const std::byte> frame) {
    add(to_host_, frame);
    came_.notify_one();
  }
  bool take_for_board(Bytes& frame) {
    const std::lock_guard lock(mutex_);
    return take(to_board_, frame);
  }
  bool take_for_host(Bytes& frame, std::uint64_t timeout_ns) {
    std::unique_lock lock(mutex_);
    if (timeout_ns != 0) came_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [this] { return !to_host_.empty(); });
    return take(to_host_, frame);
  }

 private:
  void add(std::deque<Bytes>& queue, std::span<const std::byte> frame) {
    const std::lock_guard lock(mutex_);
    if (random_() % 100 >= percent_) queue.emplace_back(frame.begin(), frame.end());
  }
  static bool take(std::deque<Bytes>& queue, Bytes& frame) {
    if (queue.empty()) return false;
    frame = std::move(queue.front());
    queue.pop_front();
    return true;
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::mt19937_64 random_;
  std::atomic<unsigned> percent_ = 0;
  std::deque<Bytes> to_board_, to_host_;
};

// The host's end of it.
class CablePort final : public FramePort {
 public:
  explicit CablePort(Cable& cable) : cable_(cable) {}

  MacAddress address() const override { return kHost; }
  void send(std::span<const std::byte> frame) override { cable_.to_board(frame); }
  std::span<const std::byte> receive(std::span<std::byte> room, std::uint64_t timeout_ns) override {
    if (!cable_.take_for_host(frame_, timeout_ns)) return {};
    const std::size_t bytes = std::min(room.size(), frame_.size());
    std::copy_n(frame_.begin(), bytes, room.begin());
    return room.first(bytes);
  }

 private:
  Cable& cable_;
  Bytes frame_;
};

class Board {
 public:
  explicit Board(Cable& cable, std::uint64_t seed = 1) : cable_(cable) {
    context_.randReset(2);
    context_.randSeed(static_cast<int>(seed) + 1);
    top_ = std::make_unique<Vnic_eth>(&context_);
    top_->wire_rx_er = top_->host_rx_er = 0;
    top_->rst = 1;
    for (int k = 0; k < 64; ++k) tick();
    top_->rst = 0;
    thread_ = std::thread([this] {
      while (!stops_) {
        for (int k = 0; k < 64; ++k) tick();
        exchange();
      }
    });
  }
  ~Board() {
    stops_ = true;
    thread_.join();
    top_->final();
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // A frame without its check sequence, on the wire.
  void push(Bytes frame) {
    const std::lock_guard lock(mutex_);
    pushed_.push_back(std::move(frame));
  }
  std::vector<Bytes> take_sent() {
    const std::lock_guard lock(mutex_);
    return std::exchange(sent_, {});
  }

 private:
  // A cycle of 8 ns of all wires.
  void tick() {
    Vnic_eth& top = *top_;
    const bool core = cycle_ % 4 == 0;
    top.wire_rx_clk = top.wire_tx_clk = top.host_rx_clk = top.host_tx_clk = 0;
    if (core) top.clk = 0;
    put(from_wire_, top.wire_rxd, top.wire_rx_dv);
    put(from_host_, top.host_rxd, top.host_rx_dv);
    top.eval();
    to_wire_.take(nanet::gateware::GmiiByte{top.wire_txd, top.wire_tx_en != 0}, cycle_);
    to_host_.take(nanet::gateware::GmiiByte{top.host_txd, top.host_tx_en != 0}, cycle_);
    top.wire_rx_clk = top.wire_tx_clk = top.host_rx_clk = top.host_tx_clk = 1;
    if (core) top.clk = 1;
    context_.time(cycle_++);
    top.eval();
  }
  void put(nanet::gateware::WireSource& source, CData& data, CData& valid) {
    const nanet::gateware::GmiiByte byte = source.next_byte(cycle_);
    data = byte.data;
    valid = byte.valid;
  }

  // Frames of both cables, as far as they are whole.
  void exchange() {
    for (Bytes frame; cable_.take_for_board(frame);) from_host_.push(nanet::gateware::with_fcs(frame));
    for (; !to_host_.frames().empty(); to_host_.frames().pop_front()) cable_.to_host(to_host_.frames().front().bytes);
    const std::lock_guard lock(mutex_);
    for (Bytes& frame : std::exchange(pushed_, {})) from_wire_.push(nanet::gateware::with_fcs(frame));
    for (; !to_wire_.frames().empty(); to_wire_.frames().pop_front()) sent_.push_back(std::move(to_wire_.frames().front().bytes));
  }

  Cable& cable_;
  VerilatedContext context_;
  std::unique_ptr<Vnic_eth> top_;
  nanet::gateware::WireSource from_wire_, from_host_;
  nanet::gateware::WireSink to_wire_, to_host_;
  std::uint64_t cycle_ = 0;
  std::mutex mutex_;  // over the next two
  std::vector<Bytes> pushed_, sent_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace nanet::link::gateware::test
