// SPDX-License-Identifier: Apache-2.0
#include "rdma/door.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nanet::rdma::detail {
namespace {

constexpr int kLetInAtOnce = 16;  // between two looks at those who wait for an answer

}  // namespace

Door::Door(WorkerState& worker, Host& host, const std::string& address, std::uint16_t port)
    : worker_(worker), host_(host), path_(is_path(address) ? address : ""), port_(port), listener_(listen_at(address, port_)) {
  const Challenge random = new_challenge();
  std::memcpy(&token_of_no_one_, random.data(), sizeof token_of_no_one_);
  worker_.watch(listener_, this);
}

Door::~Door() {
  while (!strangers_.empty()) take_out(strangers_.begin());
  worker_.unwatch(listener_);
  ::close(listener_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

void Door::ready(int descriptor) {
  if (descriptor == listener_) {
    let_in();
    return;
  }
  const auto stranger = std::ranges::find(strangers_, descriptor, [](const Stranger& one) { return one.socket.descriptor(); });
  if (stranger != strangers_.end()) hear(stranger);
}

void Door::tick(std::uint64_t now_ns) {
  while (!strangers_.empty() && strangers_.front().deadline_ns <= now_ns) send_away(strangers_.begin());
}

void Door::let_in() {
  for (int turn = 0; turn < kLetInAtOnce; ++turn) {
    const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) {
      // No descriptor is left: a waiting stranger gives up its own.
      if ((errno == EMFILE || errno == ENFILE) && !strangers_.empty()) send_away(strangers_.begin());
      return;
    }
    while (strangers_.size() >= STRANGERS_MAX) send_away(strangers_.begin());
    Stranger& stranger = strangers_.emplace_back();
    stranger.socket = FrameSocket(descriptor);
    stranger.deadline_ns = flow::clock_now_ns() + STRANGER_NS;
    stranger.challenge = new_challenge();
    worker_.watch(descriptor, this);
    if (!stranger.socket.send(to_bytes(GreetingMessage{.challenge = stranger.challenge}))) send_away(strangers_.end() - 1);
  }
}

void Door::hear(Place stranger) {
  const bool is_proved = !stranger->region.empty();
  const std::size_t bytes_max = is_proved ? OPEN_BYTES_MAX : sizeof(HelloMessage);
  switch (stranger->socket.receive(bytes_max, frame_)) {
    case FrameSocket::Got::nothing: return;
    case FrameSocket::Got::gone:
    case FrameSocket::Got::too_long: send_away(stranger); return;
    case FrameSocket::Got::frame: break;
  }
  if (!is_proved) {
    if (!greet(*stranger, frame_)) send_away(stranger);
    return;
  }
  const std::span<const std::byte> worker_address = parse_open(frame_);
  if (worker_address.empty()) {
    send_away(stranger);
    return;
  }
  Stranger known = take_out(stranger);
  host_.enter(std::move(known.socket), known.region, worker_address);
}

// Whether it stays.
bool Door::greet(Stranger& stranger, std::span<const std::byte> frame) {
  const auto hello = parse_hello(frame);
  if (!hello) return false;
  if (hello->version != MESSAGE_VERSION) return refuse(stranger, Refusal::other_version);
  const Conversation said{.of_target = stranger.challenge, .of_connection = hello->challenge, .region = hello->region()};
  // The proof is checked even for a name that is not exposed: the answer takes as long.
  const auto token = host_.token_of(hello->region());
  const std::uint64_t needed = token.value_or(token_of_no_one_);
  const bool is_right = is_same(hello->proof, prove(Role::connects, needed, said));
  if (!is_right || !token) return refuse(stranger, Refusal::not_exposed);
  stranger.region = hello->region();
  return stranger.socket.send(to_bytes(WelcomeMessage{.proof = prove(Role::listens, *token, said)}));
}

bool Door::refuse(Stranger& stranger, Refusal why) {
  stranger.socket.send(to_bytes(WelcomeMessage{.refusal = why}));
  return false;
}

Door::Stranger Door::take_out(Place stranger) {
  worker_.unwatch(stranger->socket.descriptor());
  Stranger taken = std::move(*stranger);
  strangers_.erase(stranger);
  return taken;
}

void Door::send_away(Place stranger) {
  ++refused_count_;
  take_out(stranger);
}

}  // namespace nanet::rdma::detail
