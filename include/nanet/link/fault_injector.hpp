// SPDX-License-Identifier: Apache-2.0
// Wraps any link and harms what it receives, by seeded probability: for tests of everything that comes after a link.
//
// Acts on receive() only; send() passes through (wrap the peer's link to harm the other direction). A packet meets at most one fault.
// Which packet meets which fault depends on the seed and on the sequence of packets alone, not on how they were batched; when a held
// packet comes out depends on now_ns too.
// Packets that are held back are copied to its own storage, allocated once, and come out after later packets: their offsets in the
// room do not increase. They come out hold_max_ns after they went in at the latest, even if nothing new arrives.
//
// Thread rules: those of Link. stats() and faults(): any thread (each value is exact; together they are exact when receive() does not run).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nanet/config/setting.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link {

struct FaultConfig {
  static constexpr config::Component component{
      "Faults", "Faults injected into a link on purpose, each with a probability per packet. Seeded, so a run can be repeated."};

  double loss = 0;       // the packet disappears
  double duplicate = 0;  // it comes now and again, after the next 0..8 packets
  double reorder = 0;    // it comes after the next 1..8 packets
  double corrupt = 0;    // 1..8 different bits of it are flipped
  double truncate = 0;   // it comes with 0..bytes-1 of its bytes. Not flagged: a short packet looks like any other
  double delay = 0;      // it comes delay_us later
  std::uint64_t delay_us = 100;
  std::uint64_t seed = 1;

  template <class Visit>
  void visit(Visit&& v) {
    v("loss", loss, {.help = "Probability that a packet is lost", .least = 0, .most = 1});
    v("duplicate", duplicate, {.help = "Probability that a packet arrives twice", .least = 0, .most = 1});
    v("reorder", reorder, {.help = "Probability that a packet arrives after one of the next eight", .least = 0, .most = 1});
    v("corrupt", corrupt, {.help = "Probability that bits of a packet are flipped", .least = 0, .most = 1});
    v("truncate", truncate, {.help = "Probability that a packet loses its end", .least = 0, .most = 1});
    v("delay", delay, {.help = "Probability that a packet is held back for delay_us", .least = 0, .most = 1});
    v("delay_us", delay_us,
      {.help = "How long a delayed packet is held back",
       .unit = "us",
       .least = 0,
       .most = 10'000'000,
       .too_big = "packets arrive after their event's window and are counted as late"});
    v("seed", seed, {.help = "Seed of the random numbers", .least = 0, .below = 0x1p63});
  }

  // The probabilities add up to at most 1.
  std::optional<config::Problem> check() const;

  // For programs.
  std::uint64_t hold_max_ns = 1'000'000;  // a reordered or duplicated packet comes out after this time even if no other packet came
  std::uint32_t held_max = 1024;          // packets in storage. Full: a packet passes unharmed and counts as passed
  std::uint32_t packet_bytes_max = 1472;  // longer packets are never held back or duplicated: they pass and count as passed
};

// Every packet from the wrapped link is in exactly one of the first seven:
//   received = passed + lost + duplicated + reordered + corrupted + truncated + delayed
//   delivered = received - lost + duplicated - held
struct FaultStats {
  std::uint64_t passed = 0;
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t truncated = 0;
  std::uint64_t delayed = 0;
  std::uint64_t held = 0;  // in storage now

  std::uint64_t received() const { return passed + lost + duplicated + reordered + corrupted + truncated + delayed; }
};

class FaultInjector : public Link {
 public:
  // Throws SetupError when a probability is out of range, or payloads of the wrapped link stay in place.
  FaultInjector(std::unique_ptr<Link> inner, const FaultConfig& config);
  ~FaultInjector() override;

  std::size_t min_room_bytes() const override;
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;
  std::span<const IpAddress> peers() const override;
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;
  void wait(std::uint64_t timeout_ns) override;  // no longer than until the next held packet is due
  LinkStats stats() const override;              // of the wrapped link
  std::optional<NicTimes> nic_times() const override;
  std::vector<NicCounts> nic_counts() const override;
  bool finished() const override;
  bool keeps_packets() const override { return inner_->keeps_packets(); }
  Endpoint local() const override;
  std::string path() const override;
  std::vector<std::string> notes() const override;

  // From the next receive() on, these probabilities, delay_us and hold_max_ns apply; seed, held_max and packet_bytes_max stay as they were,
  // as does what is held back. Any one thread, any time: nothing waits, and of several calls between two receive() the last counts.
  // Throws SetupError as the constructor does, and then changes nothing.
  void reconfigure(const FaultConfig& config);

  FaultStats faults() const;
  Link& inner() { return *inner_; }

 private:
  struct State;  // storage, random numbers, books
  std::unique_ptr<Link> inner_;
  std::unique_ptr<State> state_;
};

}  // namespace nanet::link
