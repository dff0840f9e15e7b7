// SPDX-License-Identifier: Apache-2.0
// The driver of a node's registers in the torus: it reads all counters, one after the other and again, and serves the interrupt of LO|FA|MO as docs/design/lofamo.md
// says. One access is on the bus at a time.
//
// Thread rules: as of its node.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "link/torus/torus_counters.hpp"

namespace nanet::torus {

// What a host knows of neighbours by the interrupt: how often it came, and which links, the last one the node's own state, had changed then.
struct Changes {
  std::uint64_t interrupts = 0;
  std::array<std::uint64_t, link::kTorusLinks + 1> seen{};
  std::uint64_t neighbours = 0;  // as last read: of each link ten bits, docs/gateware-registers.md
};

class RdmaRegisters {
 public:
  struct Access {
    bool is_write = false;
    std::uint32_t address = 0;
    std::uint64_t data = 0;
  };

  // The bus has ended the access before.
  void done(std::uint64_t data);
  // None: one is still on the bus.
  std::optional<Access> next(bool irq);

  // From here on all counters are read anew; has_read() when they were.
  void begin() {
    turn_ = 0;
    reading_ = link::kTorusCounters;  // what is on the bus now is too old
    has_read_ = false;
  }
  bool has_read() const { return has_read_; }
  const std::array<std::uint64_t, link::kTorusCounters>& counters() const { return counters_; }
  const Changes& changes() const { return changes_; }

 private:
  enum class Step : std::uint8_t { enable, arm, counter, state, changes, clear, neighbours };

  Access access() const;
  std::size_t index() const;
  void take_changes(std::uint64_t bits);

  Step step_ = Step::enable;
  bool is_busy_ = false, has_read_ = true;
  std::size_t turn_ = 0, reading_ = 0;
  std::uint32_t seen_ = 0;  // changes, when it looked last
  std::uint64_t bits_ = 0;
  std::array<std::uint64_t, link::kTorusCounters> counters_{};
  Changes changes_;
};

}  // namespace nanet::torus
