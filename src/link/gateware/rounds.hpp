// SPDX-License-Identifier: Apache-2.0
// Lets frames onto the wires of a simulated NIC. On several wires they go in rounds, one a wire, which begin together: boards send in step, but how
// closely is not to be seen in what their sockets bring, as the simulation is slower than they are.
//
// A round waits for a wire that has no frame, kPatienceNs at most; after that it is not waited for until it has one again.
// Thread rules: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "model/model.hpp"

namespace nanet::link::gateware {

class Rounds {
 public:
  static constexpr std::uint64_t kPatienceNs = 300'000'000;

  explicit Rounds(std::size_t wires) : wires_(wires) {}

  void add(std::size_t wire, std::vector<std::byte> frame);  // with its check sequence
  std::size_t waiting(std::size_t wire) const { return wires_[wire].frames.size(); }
  bool empty() const;

  // Gives the model's wires the rounds that are ready. Whether there was one. now_ns: the host's time.
  bool give(nanet::gateware::Model& model, std::uint64_t now_ns);

 private:
  struct Wire {
    std::deque<std::vector<std::byte>> frames;
    bool is_silent = false;
  };
  bool ready(std::uint64_t now_ns);

  std::vector<Wire> wires_;
  std::uint64_t waits_since_ns_ = 0;
  bool waits_ = false;
  std::uint64_t next_cycle_ = 0;  // in which a round may begin
};

}  // namespace nanet::link::gateware
