// SPDX-License-Identifier: Apache-2.0
// Wraps any link and harms what it receives, by seeded probability: for tests of everything that comes after a link.
//
// Acts on receive() only; send() passes through (wrap the peer's link to harm the other direction). A packet meets at most one fault.
// Which packet meets which fault depends on the seed and on the sequence of packets alone, not on how they were batched; when a held
// packet comes out depends on now_ns too.
// Packets that are held back are copied to storage of its own, allocated once, and come out behind later packets: their offsets in the
// room do not increase. They come out at the latest hold_max_ns after they went in, although nothing new arrives.
//
// Thread rules: those of Link. stats() and faults(): any thread (each value is exact; together they are exact when receive() does not run).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nanet/link/link.hpp"

namespace nanet::link {

// Probabilities for each packet, 0..1, their sum at most 1.
struct FaultConfig {
  double loss = 0;       // the packet disappears
  double duplicate = 0;  // it comes now and again, behind the next 0..8 packets
  double reorder = 0;    // it comes behind the next 1..8 packets
  double corrupt = 0;    // 1..8 different bits of it are flipped
  double truncate = 0;   // it comes with 0..bytes-1 of its bytes. Not flagged: a short packet looks like any other
  double delay = 0;      // it comes delay_ns later

  std::uint64_t delay_ns = 100'000;
  std::uint64_t hold_max_ns = 1'000'000;  // a reordered or duplicated packet comes out after this time even if no other packet came
  std::uint64_t seed = 1;
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
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;
  void wait(std::uint64_t timeout_ns) override;  // no longer than until the next held packet is due
  LinkStats stats() const override;              // of the wrapped link
  std::optional<NicTimes> nic_times() const override;
  bool finished() const override;
  bool keeps_packets() const override { return inner_->keeps_packets(); }
  Endpoint local() const override;
  std::string path() const override;
  std::vector<std::string> notes() const override;

  // From the next receive() on these probabilities, delay_ns and hold_max_ns hold; seed, held_max and packet_bytes_max stay as they were, and so
  // does what is held back. Any one thread, at any time: nothing waits, and of several calls between two receive() the last counts.
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
