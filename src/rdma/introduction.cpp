// SPDX-License-Identifier: Apache-2.0
#include "rdma/introduction.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "rdma/proof.hpp"

namespace nanet::rdma::detail {
namespace {

constexpr std::uint64_t kPauseNs = 1'000'000, kPauseNsMax = 50'000'000;  // between two tries

// One try. The target may send a stranger away to make room for others: then it begins again.
class Try {
 public:
  Try(WorkerState& worker, std::span<const std::byte> own_address, const ConnectionConfig& config, const SocketAddress& to,
      std::uint64_t deadline)
      : worker_(worker),
        own_address_(own_address),
        config_(config),
        to_(to),
        deadline_(deadline),
        where_(place_text(config.address, config.port)) {}

  // None: the target closed the channel before it had proved anything.
  std::optional<Introduced> run() {
    if (!connect() || !greet()) return std::nullopt;
    if (!socket_.send(to_bytes(OpenMessage{}, own_address_)) || !await(ANSWER_BYTES_MAX)) return std::nullopt;
    const auto answer = parse_answer(frame_);
    if (!answer)
      throw SetupError("region '" + config_.region + "' at " + where_ + " cannot be used", "its answer is none", "use one nanet");
    check_refusal(answer->message.refusal);
    return Introduced{std::move(socket_), std::move(frame_)};
  }

 private:
  [[noreturn]] void fail(const char* why) const {
    throw SetupError("cannot connect to " + where_, why, "see whether the target runs and listens there");
  }

  bool connect() {
    const int descriptor = begin_connection(to_);
    if (descriptor < 0) {
      if (errno == EAGAIN) return false;  // a Unix socket at which many wait
      fail(std::strerror(errno));
    }
    socket_ = FrameSocket(descriptor);
    int error = EINPROGRESS;
    worker_.run_until([&] { return (error = connection_error(descriptor)) != EINPROGRESS; }, deadline_);
    if (error == EINPROGRESS) fail(("no connection within " + std::to_string(config_.timeout_ms) + " ms").c_str());
    if (error == ECONNRESET || error == EPIPE) return false;
    if (error != 0) fail(std::strerror(error));
    return true;
  }

  // The next frame; false: the target closed the channel.
  bool await(std::size_t bytes_max) {
    using Got = FrameSocket::Got;
    Got got = Got::nothing;
    worker_.run_until([&] { return (got = socket_.receive(bytes_max, frame_)) != Got::nothing; }, deadline_);
    if (got == Got::too_long) not_one_of_ours();
    if (got == Got::nothing)
      throw SetupError("no answer from " + where_, "nothing within " + std::to_string(config_.timeout_ms) + " ms",
                       "see whether it is a nanet target, and whether its thread serves its worker");
    return got == Got::frame;
  }

  [[noreturn]] void not_one_of_ours() const {
    throw SetupError("cannot connect to " + where_, "what listens there is no target of nanet", "look at the address and the port");
  }

  bool greet() {
    if (!await(sizeof(GreetingMessage))) return false;
    const auto greeting = parse_greeting(frame_);
    if (!greeting) not_one_of_ours();
    if (greeting->version != MESSAGE_VERSION) check_refusal(Refusal::other_version);
    HelloMessage hello{.name_bytes = static_cast<std::uint16_t>(config_.region.size()), .challenge = new_challenge()};
    std::ranges::copy(config_.region, hello.name);
    const Conversation said{.of_target = greeting->challenge, .of_connection = hello.challenge, .region = config_.region};
    hello.proof = prove(Role::connects, config_.token, said);
    if (!socket_.send(to_bytes(hello)) || !await(sizeof(WelcomeMessage))) return false;
    const auto welcome = parse_welcome(frame_);
    if (!welcome) not_one_of_ours();
    check_refusal(welcome->refusal);
    if (!is_same(welcome->proof, prove(Role::listens, config_.token, said)))
      throw SetupError("the target at " + where_ + " is not trusted", "it does not know the token",
                       "see who listens there instead of the target");
    return true;
  }

  void check_refusal(Refusal refusal) const {
    const std::string region = "region '" + config_.region + "' at " + where_;
    switch (refusal) {
      case Refusal::none: return;
      case Refusal::taken:
        throw SetupError(region + " is taken", "it has as many connections as it takes",
                         "close one of them, or connect to another region");
      case Refusal::full:
        throw SetupError("the target at " + where_ + " is full", "it has as many connections as it takes", "close one of them");
      case Refusal::unreachable:
        throw SetupError(region + " cannot be reached", "UCX finds no transport between the two processes",
                         "give both the same transports, and run both as the same account");
      case Refusal::other_version:
        throw SetupError("cannot connect to " + where_, "it speaks another version of the set-up channel", "use the same nanet");
      default:
        throw SetupError(region + " is refused", "no such name, or another token",
                         "give the name and token of the target's exposure");
    }
  }

  WorkerState& worker_;
  const std::span<const std::byte> own_address_;
  const ConnectionConfig& config_;
  const SocketAddress& to_;
  const std::uint64_t deadline_;
  const std::string where_;
  FrameSocket socket_;
  std::vector<std::byte> frame_;
};

}  // namespace

Introduced introduce(WorkerState& worker, std::span<const std::byte> own_address, const ConnectionConfig& config,
                     std::uint64_t deadline) {
  const SocketAddress to = resolve(config.address, config.port, 0);
  const std::string where = place_text(config.address, config.port);
  if (is_one_machine(to) != worker.context()->reach().is_one_machine)
    throw SetupError("cannot connect to " + where, "the worker has the transports of another address", "give both the same");
  for (std::uint64_t pause_ns = kPauseNs;; pause_ns = std::min(2 * pause_ns, kPauseNsMax)) {
    if (auto introduced = Try(worker, own_address, config, to, deadline).run()) return std::move(*introduced);
    const std::uint64_t now = flow::clock_now_ns();
    if (now + pause_ns >= deadline)
      throw SetupError("cannot connect to " + where, "the other end closes the connection", "see whether the target is overrun");
    worker.run_until([] { return false; }, now + pause_ns);
  }
}

}  // namespace nanet::rdma::detail
