// SPDX-License-Identifier: Apache-2.0
// Slow control (docs/formats-km3.md) between programs of the host, which ask, and those that play floors, over the links of a simulated node: a UDP port for
// each floor on the host's side, and one that each floor's program listens on. What goes between is Km3Link's.
//
// A link has no addresses: an answer goes to who asked the same with the same sequence, the oldest first. Every datagram has one fate, or is held.
// Thread rules: one thread; it allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/reply_sockets.hpp"
#include "link/socket.hpp"
#include "nanet/link/gateware.hpp"
#include "nanet/link/link.hpp"

namespace nanet::link::gateware {

inline constexpr std::size_t kKm3ControlBytes = 28;

class Km3Control {
 public:
  using Message = std::array<std::byte, kKm3ControlBytes>;
  struct Request {
    std::uint32_t port;
    Message message;
    std::optional<std::uint8_t> express;  // it asks for this code to be sent, and goes no further
  };

  // Throws SetupError.
  explicit Km3Control(const GatewareFloors& floors);

  // The next request that is to go down; what is no request has ended.
  std::optional<Request> next_request();

  // What came down to a floor: whole requests go on to its program, and are taken out of `bytes`. Whether there were any.
  bool heard(std::size_t port, std::vector<std::uint8_t>& bytes);

  // Answers of the floors' programs, as far as any came.
  void take_answers();
  bool has_answers() const;                                                    // that wait for a frame
  std::vector<std::uint16_t> words(std::size_t port, std::size_t words_most);  // of those that go with the next one, whole ones
  void came_up(std::size_t port, std::span<const std::byte> payload);          // to who asked

  // What became of the express code that was asked for last: it was not sent, or came back after so many words, at this time.
  bool awaits_express(std::size_t port) const { return floors_[port].express && !floors_[port].express->answer; }
  void express_refused(std::size_t port);
  void express_came(std::size_t port, std::uint8_t code, std::int64_t words, std::uint32_t second, std::uint32_t tick);

  NicCounts counts(std::uint32_t port) const;

 private:
  static constexpr std::size_t kAskedMost = 256, kWaitingMost = 256;  // of a floor
  struct Asked {
    ReplySockets::Request by;
    Message message;
  };
  struct Express {
    Asked asked;
    std::optional<Message> answer;
  };
  struct Floor {
    Socket socket;
    std::deque<Asked> asked;
    std::optional<Express> express;  // the last one
    std::deque<Message> waiting;     // answers
    std::uint64_t requests = 0, bad_request = 0, down = 0, heard = 0, torn = 0, unreachable = 0, answers = 0, bad_answer = 0,
                  no_room = 0, up = 0, came = 0, returned = 0, no_asker = 0, express_requests = 0, express_answered = 0;
  };

  std::optional<Request> express(const ReplySockets::Request& by, const Message& message);
  void answer_express(Floor& floor, std::uint8_t status, std::int64_t words, std::uint32_t second, std::uint32_t tick);

  void give_back(Floor& floor, const Message& answer);

  ReplySockets host_;
  std::vector<Floor> floors_;
};

}  // namespace nanet::link::gateware
