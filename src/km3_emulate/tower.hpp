// SPDX-License-Identifier: Apache-2.0
// Tower: the floors of one tower in one thread. Start it, look at it, stop it; one object is one program run.
//
// Time is cut into slices that count from the start of the program; the first begins at `gps_second`. A run has numbers of its own. It begins
// by itself, or with the next second after a floor was told so by slow control; where slices do not fit into seconds, with the next slice.
// Packets of a slice leave evenly over it, each when the last of its data would have been taken. What a slice needs is made while the one
// before leaves; what comes too late for that is counted as made late.
//
// Thread rules: start and stop from one control thread; everything const from any thread at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "km3_emulate/packets.hpp"
#include "km3_emulate/sender.hpp"
#include "km3_emulate/slow_control.hpp"
#include "km3_emulate/units.hpp"
#include "link/reply_sockets.hpp"
#include "nanet/flow/latency_histogram.hpp"
#include "nanet/flow/thread.hpp"
#include "nanet/link/udp.hpp"

namespace nanet::km3_emulate {

class Tower {
 public:
  // Opens sockets and makes the pool. Throws SetupError.
  Tower(const TowerConfig& config, km3::Detector detector);
  ~Tower();

  void start();
  void stop();  // ends sending and joins
  bool running() const { return running_.load(std::memory_order_acquire); }

  const TowerCounters& counters() const { return counters_; }
  const flow::LatencyHistogram& lateness() const { return lateness_; }
  link::LinkStats link_stats() const { return link_->stats(); }
  std::map<std::string, std::uint64_t> refusals() const { return link_->refusals(); }
  std::uint64_t elapsed_ns() const;  // of sending
  std::vector<std::string> notes() const { return link_->notes(); }
  std::vector<std::uint16_t> control_ports() const;

 private:
  struct Stream {
    std::uint32_t floor;  // from 0
    Kind kind;
    std::uint32_t sequence = 0;
    std::uint32_t next = 0;    // packet of the unit
    std::uint64_t due_ns = 0;  // since the start of the program; of the burst that `next` begins
  };
  struct Ready {  // what all streams send in a slice
    std::uint64_t slice = ~std::uint64_t{0};
    std::uint32_t made = 0;  // streams
    std::vector<CutUnit> units;
    std::vector<std::array<std::uint32_t, kPms>> hits;
  };

  void run();
  bool turn(std::uint64_t now_ns);  // false: all is sent
  void begin_slice(std::uint64_t now_ns);
  void go_to_second();
  bool send_due(std::uint64_t now_ns);
  void send_burst(std::size_t stream, std::uint64_t now_ns);
  void set_due(Stream& stream, std::size_t index);
  void end_slice();
  bool make_one(std::uint64_t slice);
  void make(Ready& ready, std::uint64_t slice, std::size_t stream);
  Ready& ready_for(std::uint64_t slice);
  void serve(std::uint64_t now_ns);
  std::uint64_t gps_ns(std::uint64_t slice, std::uint32_t floor, bool& untimed) const;
  std::uint64_t slice_at(std::uint64_t now_ns) const;
  std::uint64_t begin_ns(std::uint64_t slice) const;  // on the machine's clock
  std::uint64_t next_due_ns() const;

  TowerConfig config_;
  UnitMaker maker_;
  std::unique_ptr<link::UdpLink> link_;
  std::unique_ptr<link::ReplySockets> control_;
  TowerCounters counters_;
  flow::LatencyHistogram lateness_;
  std::vector<Stream> streams_;
  std::unique_ptr<Sender> sender_;
  std::vector<SlowControl> slow_control_;
  std::vector<FloorState> floors_;
  std::vector<Ready> ready_;  // two, or the pool
  std::vector<std::byte> unit_;
  std::vector<bool> active_;  // by stream: takes part in this slice

  // Of the thread.
  std::optional<std::uint32_t> run_number_;
  std::uint64_t first_slice_ = 0;  // of the run
  std::uint64_t left_out_ = 0;     // slices, before runs
  std::uint64_t slice_ = 0;        // that leaves, or is the next to leave
  std::uint64_t slices_left_ = 0;  // of duration_s
  bool in_slice_ = false;
  std::uint64_t epoch_ns_ = 0;  // start of slice 0
  std::uint64_t served_ns_ = 0;

  flow::Thread thread_;
  std::atomic<bool> running_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> start_ns_{0};
  std::atomic<std::uint64_t> end_ns_{0};
};

}  // namespace nanet::km3_emulate
