// SPDX-License-Identifier: Apache-2.0
// What a node with links of KM3NeT's floors has beside a NIC (gateware/registers/km3.rdl): floors, runs, the GPS, and what its ports count. The host's port,
// with CLOPs and the TX ring that slow control leaves by, is NicDriver's.
//
// Thread rules: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "link/gateware/device.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link::gateware {

// What packets of a port are made of: optical modules, hydrophones, instruments, slow control's answers.
inline constexpr std::size_t kKm3Classes = 4;

struct Km3Port {
  std::uint8_t tower = 0;
  std::uint8_t floor = 1;                            // whose frames are wanted
  bool sampled = false;                              // its optical modules send sampled hits
  std::array<std::uint8_t, kKm3Classes> clops{};     // that the packets of each class go to
  std::array<std::uint16_t, kKm3Classes> sources{};  // PacketRef::source
};

struct Km3Run {
  std::uint32_t run = 0;           // below 2^31
  std::uint32_t second = 0;        // of GPS, that slice 0 begins with
  std::uint32_t slice_frames = 1;  // of a slice, 1 to those of a second
};

struct Km3LinkState {
  bool aligned = false;  // its receiver
  bool sends = false;
  std::uint8_t slip = 0;         // bits
  std::uint8_t phase = 0;        // of the recovered clock, as measured last: half bits
  std::uint32_t trip_words = 0;  // the round trip, as measured last, after whole frames of it
  std::uint32_t trip_frames = 0;
  bool hears = false;  // the floor's receiver is aligned, as the last good head says, as the next two
  bool timed = false;  // the floor's time is right
  std::uint8_t floor = 0;
};

// A cycle of the links' time.
struct Km3Moment {
  std::uint32_t second = 0;
  std::uint16_t frame = 0, word = 0;

  bool operator==(const Km3Moment&) const = default;
};

struct Km3Express {
  std::uint8_t code = 0;
  Km3Moment at;
};

class Km3Node {
 public:
  // Throws SetupError where it is another node.
  explicit Km3Node(Device& device);

  std::uint32_t ports() const { return geometry_ & 0xFF; }
  std::uint32_t mbps() const { return geometry_ >> 16 & 0xFFFF; }
  std::uint32_t frames_per_s() const { return geometry_ >> 32 & 0xFFFF; }

  // Of a port that there is. Both throw SetupError: there is no such port or CLOP; a run that no port can have. The port's frames become packets from the
  // run's beginning on.
  void set_port(std::size_t port, const Km3Port& to);
  void begin_run(std::size_t port, const Km3Run& run);
  void disable(std::size_t port);

  void set_time(std::uint32_t second);          // that the next pulse of the GPS begins
  std::optional<std::uint32_t> second() const;  // nothing: none was set, or no pulse came since

  // Express codes, of a port that there is. False: the last one is still on its way.
  bool send_express(std::size_t port, std::uint8_t code);
  std::optional<Km3Moment> express_sent(std::size_t port) const;  // of the last one that left; nothing: one is on its way
  std::optional<Km3Express> take_express(std::size_t port);       // the oldest of those that came
  std::int64_t words(const Km3Moment& from, const Km3Moment& to) const;

  Km3LinkState state(std::size_t port) const;
  std::uint64_t count(std::size_t port, unsigned counter) const;  // nic_counts.hpp: km3
  std::uint64_t node_count(unsigned counter) const;               // km3_node

  // Groups km3 of every port, km3_node and host: as gateware/registers/counts.toml names them.
  std::vector<NicCounts> counts() const;

  // Group link_state of a port: values that hold now, and no counters.
  NicCounts state_counts(std::uint32_t port) const;

  // What its ports have dropped. What the host's has is NicReceiver's.
  void add_stats(LinkStats& stats) const;

 private:
  void need_port(std::size_t port) const;
  void write(std::size_t port, std::uint32_t offset, std::uint64_t value);
  std::uint32_t express(std::size_t port) const;  // where its registers begin

  Device& device_;
  std::uint64_t geometry_;
  std::uint64_t clops_;
};

}  // namespace nanet::link::gateware
