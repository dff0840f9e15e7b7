// SPDX-License-Identifier: Apache-2.0
#include "link/gateware/km3_control.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

using Message = Km3Control::Message;

constexpr std::array<std::byte, 4> kRequest{std::byte{'K'}, std::byte{'M'}, std::byte{'3'}, std::byte{'C'}};
constexpr std::array<std::byte, 4> kAnswer{std::byte{'K'}, std::byte{'M'}, std::byte{'3'}, std::byte{'A'}};
constexpr std::size_t kCommandAt = 6, kStatusAt = 7, kSequenceAt = 8, kParameterAt = 12, kReservedAt = 14, kValueAt = 16,
                      kTimeAt = 20;
constexpr std::byte kExpress{6};  // command
constexpr std::uint8_t kDone = 0, kOutOfBounds = 3, kNotNow = 4;

void put(Message& to, std::size_t at, std::uint32_t value) {
  for (std::size_t k = 0; k < 4; ++k) to[at + k] = static_cast<std::byte>(value >> (24 - 8 * k));
}

std::optional<Message> message_of(std::span<const std::byte> bytes, const std::array<std::byte, 4>& magic) {
  Message message{};
  if (bytes.size() != message.size() || !std::equal(magic.begin(), magic.end(), bytes.begin())) return std::nullopt;
  std::copy(bytes.begin(), bytes.end(), message.begin());
  return message;
}

// What has to be 0 in one tells a request from two that have lost words between them.
std::optional<Message> request_of(std::span<const std::byte> bytes) {
  const auto message = message_of(bytes, kRequest);
  const auto is_zero = [](std::byte one) { return one == std::byte{}; };
  if (!message || !is_zero((*message)[kStatusAt]) || !is_zero((*message)[kReservedAt]) || !is_zero((*message)[kReservedAt + 1]) ||
      !std::all_of(message->begin() + kTimeAt, message->end(), is_zero)) {
    return std::nullopt;
  }
  return message;
}

// What an answer repeats of its request. Its tower and floor are those of the floor that it comes from.
bool answers(const Message& answer, const Message& request) {
  return answer[kCommandAt] == request[kCommandAt] &&
         std::equal(answer.begin() + kSequenceAt, answer.begin() + kReservedAt, request.begin() + kSequenceAt);
}
static_assert(kParameterAt == kSequenceAt + 4 && kReservedAt == kParameterAt + 2);

Endpoint udp(const std::string& text) {
  Endpoint endpoint = parse_endpoint(text);
  endpoint.scheme = "udp";
  return endpoint;
}

}  // namespace

Km3Control::Km3Control(const GatewareFloors& floors) : host_(udp(floors.control), floors.floors) {
  Endpoint to = udp(floors.floor_control);
  for (std::uint32_t port = 0; port < floors.floors; ++port, ++to.port) {
    Floor& floor = floors_.emplace_back(Floor{.socket = Socket(family_of(to.address)), .asked = {}, .express = {}, .waiting = {}});
    const SocketAddress address(to);
    if (::connect(floor.socket.fd(), address.data(), address.bytes()) != 0) {
      throw SetupError("no floor can be asked at " + to_string(to), std::strerror(errno), "give another floor_control");
    }
  }
}

std::optional<Km3Control::Request> Km3Control::next_request() {
  std::array<std::byte, kKm3ControlBytes + 1> room;
  while (const auto request = host_.receive(room)) {
    Floor& floor = floors_[request->socket];
    ++floor.requests;
    const auto message = request_of(std::span(room).first(request->bytes));
    if (!message) {
      ++floor.bad_request;
      continue;
    }
    if ((*message)[kCommandAt] == kExpress) {
      if (const auto sends = express(*request, *message)) return sends;
      continue;
    }
    ++floor.down;
    floor.asked.push_back({*request, *message});
    if (floor.asked.size() > kAskedMost) floor.asked.pop_front();
    return Request{request->socket, *message, std::nullopt};
  }
  return std::nullopt;
}

// One that comes again is answered again, and done once.
std::optional<Km3Control::Request> Km3Control::express(const ReplySockets::Request& by, const Message& message) {
  Floor& floor = floors_[by.socket];
  ++floor.express_requests;
  const bool is_again = floor.express && floor.express->asked.message == message;
  if (!is_again) floor.express = Express{.asked = {by, message}, .answer = {}};
  floor.express->asked.by = by;
  if (is_again) {
    if (floor.express->answer) floor.express_answered += host_.reply(by, *floor.express->answer) ? 1 : 0;
    return std::nullopt;
  }
  if (message[kParameterAt] != std::byte{}) {
    answer_express(floor, kOutOfBounds, 0, 0, 0);
    return std::nullopt;
  }
  return Request{by.socket, message, std::to_integer<std::uint8_t>(message[kParameterAt + 1])};
}

void Km3Control::answer_express(Floor& floor, std::uint8_t status, std::int64_t words, std::uint32_t second, std::uint32_t tick) {
  Message answer = floor.express->asked.message;
  std::copy(kAnswer.begin(), kAnswer.end(), answer.begin());
  answer[kStatusAt] = std::byte{status};
  put(answer, kValueAt, static_cast<std::uint32_t>(words));
  put(answer, kTimeAt, second);
  put(answer, kTimeAt + 4, tick);
  floor.express->answer = answer;
  floor.express_answered += host_.reply(floor.express->asked.by, answer) ? 1 : 0;
}

void Km3Control::express_refused(std::size_t port) { answer_express(floors_[port], kNotNow, 0, 0, 0); }

void Km3Control::express_came(std::size_t port, std::uint8_t code, std::int64_t words, std::uint32_t second, std::uint32_t tick) {
  Floor& floor = floors_[port];
  if (!awaits_express(port) || floor.express->asked.message[kParameterAt + 1] != std::byte{code}) return;
  answer_express(floor, kDone, words, second, tick);
}

bool Km3Control::heard(std::size_t port, std::vector<std::uint8_t>& bytes) {
  Floor& floor = floors_[port];
  const std::span<const std::byte> all = std::as_bytes(std::span(bytes));
  std::size_t at = 0;
  bool is_torn = false;
  const std::uint64_t before = floor.heard;
  while (all.size() - at >= kKm3ControlBytes) {
    const auto message = request_of(all.subspan(at, kKm3ControlBytes));
    if (!message) {  // one before it lost words: the next one begins with a word
      floor.torn += is_torn ? 0 : 1;
      is_torn = true;
      at += 2;
      continue;
    }
    is_torn = false;
    ++floor.heard;
    const ssize_t sent = ::send(floor.socket.fd(), message->data(), message->size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(message->size())) ++floor.unreachable;
    at += kKm3ControlBytes;
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  return floor.heard != before;
}

void Km3Control::take_answers() {
  std::array<std::byte, kKm3ControlBytes + 1> room;
  for (Floor& floor : floors_) {
    for (;;) {
      const ssize_t bytes = ::recv(floor.socket.fd(), room.data(), room.size(), 0);
      if (bytes < 0 && errno == ECONNREFUSED) {  // a request before met no program: its asker's time-out says so, too
        ++floor.unreachable;
        continue;
      }
      if (bytes < 0) break;
      ++floor.answers;
      const auto message = message_of(std::span(room).first(static_cast<std::size_t>(bytes)), kAnswer);
      if (!message) {
        ++floor.bad_answer;
      } else if (floor.waiting.size() == kWaitingMost) {
        ++floor.no_room;
      } else {
        floor.waiting.push_back(*message);
      }
    }
  }
}

bool Km3Control::has_answers() const {
  return std::any_of(floors_.begin(), floors_.end(), [](const Floor& floor) { return !floor.waiting.empty(); });
}

std::vector<std::uint16_t> Km3Control::words(std::size_t port, std::size_t words_most) {
  Floor& floor = floors_[port];
  std::vector<std::uint16_t> words;
  while (!floor.waiting.empty() && words.size() + kKm3ControlBytes / 2 <= words_most) {
    const Message& message = floor.waiting.front();
    for (std::size_t k = 0; k < message.size(); k += 2) {
      const unsigned low = std::to_integer<unsigned>(message[k]), high = std::to_integer<unsigned>(message[k + 1]);
      words.push_back(static_cast<std::uint16_t>(low | high << 8U));
    }
    floor.waiting.pop_front();
    ++floor.up;
  }
  return words;
}

void Km3Control::came_up(std::size_t port, std::span<const std::byte> payload) {
  Floor& floor = floors_[port];
  for (std::size_t at = 0; at < payload.size(); at += kKm3ControlBytes) {
    const auto bytes = payload.subspan(at, std::min(kKm3ControlBytes, payload.size() - at));
    ++floor.came;
    const auto message = message_of(bytes, kAnswer);
    if (message) {
      give_back(floor, *message);
    } else {
      ++floor.no_asker;
    }
  }
}

void Km3Control::give_back(Floor& floor, const Message& answer) {
  const auto asked = std::find_if(floor.asked.begin(), floor.asked.end(),
                                  [&](const Asked& one) { return answers(answer, one.message); });
  if (asked == floor.asked.end() || !host_.reply(asked->by, answer)) {
    ++floor.no_asker;
  } else {
    ++floor.returned;
  }
  if (asked != floor.asked.end()) floor.asked.erase(asked);
}

NicCounts Km3Control::counts(std::uint32_t port) const {
  const Floor& floor = floors_[port];
  return {"slow_control",
          port,
          {{"requests", floor.requests},
           {"bad_request", floor.bad_request},
           {"down", floor.down},
           {"heard", floor.heard},
           {"torn", floor.torn},
           {"unreachable", floor.unreachable},
           {"answers", floor.answers},
           {"bad_answer", floor.bad_answer},
           {"no_room", floor.no_room},
           {"up", floor.up},
           {"came", floor.came},
           {"returned", floor.returned},
           {"no_asker", floor.no_asker},
           {"held", floor.waiting.size()},
           {"express", floor.express_requests},
           {"express_answered", floor.express_answered}}};
}

}  // namespace nanet::link::gateware
