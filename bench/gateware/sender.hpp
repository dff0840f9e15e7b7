// SPDX-License-Identifier: Apache-2.0
// The TX side of the benchmark: keeps the ring full, and compares each frame that leaves whole with what was asked for.
//
// Thread rules: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rig.hpp"
#include "wire_use.hpp"

namespace nanet::bench {

class Sender {
 public:
  Sender(Rig& rig, link::gateware::NicDriver& driver, std::size_t payload_bytes);

  void look(bool goes_on);  // fills the ring, if it goes on, and takes what has left

  std::uint64_t rung() const { return rung_; }
  std::uint64_t left() const { return left_; }  // frames
  std::uint64_t wrong() const { return wrong_; }
  const std::string& first_wrong() const { return first_wrong_; }

  // Of the line, of the frames that left while the ring was kept full: from the first look to the last one that filled it.
  double line_rate_fraction() const { return steady_.fraction(); }

 private:
  void take(const gateware::ReceivedFrame& frame);
  void wrong(const char* what);

  Rig& rig_;
  link::gateware::NicDriver& driver_;
  std::vector<std::byte> payload_;
  std::uint64_t rung_ = 0, completed_ = 0, left_ = 0, wrong_ = 0;
  std::string first_wrong_;
  bool goes_on_ = true;
  WireUse steady_;
};

}  // namespace nanet::bench
