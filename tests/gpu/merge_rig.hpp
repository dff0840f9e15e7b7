// SPDX-License-Identifier: Apache-2.0
// Readout boards that each send a part of every event, and what the CPU's event building (event::Merger) makes of the same packets.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "contract_rig.hpp"
#include "nanet/event/merger.hpp"
#include "nanet/rich/spectra.hpp"

namespace nanet::gpu::rig {

// A packet of one board.
struct PartPacket {
  Payload payload;
  std::uint16_t source = 0;  // as in PacketRef
  bool bad_body = false;     // its head is good, and no view accepts it: the GPU must refuse it
};

// Four boards. Events have growing timestamps and hits of the Monte Carlo; a board's part has the hits of its channels, which may be none. Or all hits of an
// event are in one part, so that their order does not depend on which part comes first.
class Boards {
 public:
  static constexpr std::uint32_t kCount = 4;
  enum class Hits { of_channels, in_one_part };

  explicit Boards(std::uint64_t seed, Hits hits = Hits::of_channels);

  // The packets of all boards with the next `event_count` events.
  std::vector<PartPacket> next(Format format, std::uint32_t event_count);
  // The timestamps start again, and the next packet of each board says so.
  void restart();

 private:
  emulate::MonteCarlo monte_carlo_;
  const Hits hits_;
  std::uint32_t timestamp_ = 0;
  std::uint32_t number_ = 0;
  bool restarted_ = false;
};

struct MergeTotals {
  event::MergerStats stats;
  std::uint64_t events = 0;
  std::uint64_t discarded = 0;
};

// What the GPU must answer, in any order, and count.
class MergeReference {
 public:
  explicit MergeReference(const EventProcessorConfig& config) : config_(config), merger_(config.merge->merger) {}

  // A buffer, all of whose packets are of link `clop`. expire_ns: all links have been looked at up to there.
  void add(std::span<const PartPacket> packets, std::uint32_t clop, std::uint64_t now_ns, std::uint64_t expire_ns);
  void tick(std::uint64_t caught_up_ns);
  void drain(std::uint64_t now_ns);

  const Primitives& answers() const { return answers_; }
  MergeTotals totals() const { return {merger_.stats(), answers_.size(), discarded_}; }
  std::uint32_t open_count() const { return merger_.open_count(); }
  std::uint64_t packets_bad_body() const { return packets_bad_; }
  std::uint64_t parts_bad_body() const { return parts_bad_; }

 private:
  void take_ready();

  const EventProcessorConfig config_;
  event::Merger merger_;
  std::uint32_t sources_ = 0;  // bit s: s has sent data in this run
  std::uint64_t discarded_ = 0;
  std::uint64_t packets_bad_ = 0;
  std::uint64_t parts_bad_ = 0;
  Primitives answers_;
};

// A network between boards and link: loses, repeats, delays and mixes packets.
class BadNetwork {
 public:
  struct Shares {
    double lost = 0.0, repeated = 0.0, delayed = 0.0;
  };
  BadNetwork(const Shares& shares, std::uint32_t delay_packets, std::uint64_t seed)
      : shares_(shares), delay_(delay_packets), random_(seed) {}

  void send(std::vector<PartPacket> packets);
  // Up to `count` packets, in the order in which they arrive.
  std::vector<PartPacket> arrive(std::size_t count);
  bool is_empty() const { return on_the_way_.empty() && delayed_.empty(); }

 private:
  bool chance(double share) { return std::uniform_real_distribution<double>(0.0, 1.0)(random_) < share; }

  const Shares shares_;
  const std::uint32_t delay_;
  std::mt19937_64 random_;
  std::deque<PartPacket> on_the_way_;
  std::deque<std::pair<std::uint64_t, PartPacket>> delayed_;  // with the number of arrivals before which it may not come
  std::uint64_t arrived_ = 0;
};

}  // namespace nanet::gpu::rig
