// SPDX-License-Identifier: Apache-2.0
// DecisionSender: collects triggers into L0 decision packets and gives them to a link as one batch.
//
// Thread rules: one thread calls add and send; latency() (a copy of it) may be read by any. Nothing is allocated after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "l0tp/decision.hpp"
#include "nanet/flow/latency_histogram.hpp"
#include "nanet/link/link.hpp"
#include "wire/l0_decision.hpp"

namespace nanet::trigger {

enum class Destination : std::uint8_t { none, link };  // none: triggers are timed, not sent

class DecisionSender {
 public:
  static constexpr std::uint32_t kPacketsMax = 16;

  // Sends to destination 0 of the link, which must outlive it.
  DecisionSender(link::Link& link, Destination destination, std::uint8_t source_sub_id);

  // A trigger. False: there is no room left, call send() and add it again. Numbers must follow one another.
  bool add(const l0tp::Decision& trigger);

  // Gives all that is collected to the link. `clock` is read after the call.
  template <class Clock>
  void send(Clock&& clock) {
    if (group_count_ == 0) return;
    give_to_link(clock());
    record(clock());
  }

  std::uint64_t triggers_sent() const { return triggers_sent_; }
  std::uint64_t packets_sent() const { return packets_sent_; }
  const flow::LatencyHistogram& latency() const { return latency_; }

 private:
  static constexpr std::size_t kGroupsMax = 1024;

  // Triggers whose primitives came at the same time: one latency.
  struct Group {
    std::uint64_t arrived_ns;
    std::uint64_t count;
  };

  void close_packet();
  void give_to_link(std::uint64_t now_ns);
  void record(std::uint64_t now_ns);

  link::Link& link_;
  const Destination destination_;
  const std::uint8_t source_sub_id_;
  std::vector<std::array<std::byte, wire::kL0DecisionBytesMax>> room_;
  std::vector<wire::L0DecisionWriter> writers_;
  std::array<link::TxPacket, kPacketsMax> packets_{};
  std::uint32_t packet_count_ = 0;  // complete; the next one is open when it has entries
  std::array<Group, kGroupsMax> groups_{};
  std::size_t group_count_ = 0;
  std::uint64_t triggers_sent_ = 0;
  std::uint64_t packets_sent_ = 0;
  flow::LatencyHistogram latency_;
};

}  // namespace nanet::trigger
