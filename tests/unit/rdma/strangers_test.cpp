// SPDX-License-Identifier: Apache-2.0
// Those who do not know the token, at the port of a target: random bytes, hellos with a bit changed, half-open, slow, too long. They read and
// write nothing, cost no descriptor that stays, and keep no one else out. NANET_STRANGERS says how many there are.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include "nanet/rdma/connection.hpp"
#include "nanet/rdma/target.hpp"
#include "nanet/setup_error.hpp"
#include "rdma/door.hpp"
#include "rdma/frame_socket.hpp"
#include "rdma/proof.hpp"
#include "target_process.hpp"

namespace nanet::rdma {
namespace {

using detail::FrameSocket;
using test::fill_pattern;
using test::TARGET_TOKEN;
using test::TargetProcess;

constexpr const char* SHARED_MEMORY = "posix";

std::size_t stranger_count() {
  const char* given = std::getenv("NANET_STRANGERS");
  return given ? std::stoul(given) : 2000;
}

ConnectionConfig to(const TargetProcess& target) {
  return {.address = test::target_address(), .port = target.port(), .region = "shared", .token = TARGET_TOKEN};
}

// A client of sockets alone.
class Stranger {
 public:
  explicit Stranger(const TargetProcess& target) {
    const int descriptor = detail::begin_connection(detail::resolve(test::target_address(), target.port(), 0));
    if (descriptor < 0) throw std::runtime_error("no connection");
    pollfd writable{descriptor, POLLOUT, 0};
    poll(&writable, 1, 5000);
    socket_ = FrameSocket(descriptor);
  }

  void send_raw(std::span<const std::byte> bytes) { (void)!::send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  bool send(std::span<const std::byte> message) { return socket_.send(message); }

  // Empty: the target closed, or nothing came in time.
  std::vector<std::byte> receive(int timeout_ms = 5000) {
    std::vector<std::byte> frame;
    for (;;) {
      const auto got = socket_.receive(4096, frame);
      if (got != FrameSocket::Got::nothing) return got == FrameSocket::Got::frame ? frame : std::vector<std::byte>{};
      pollfd readable{socket_.descriptor(), POLLIN, 0};
      if (poll(&readable, 1, timeout_ms) != 1) return {};
    }
  }
  // Whether the target closes it, or has.
  bool is_closed_within(int timeout_ms) {
    std::byte byte;
    for (;;) {
      pollfd readable{socket_.descriptor(), POLLIN, 0};
      if (poll(&readable, 1, timeout_ms) != 1) return false;
      if (::recv(socket_.descriptor(), &byte, 1, MSG_DONTWAIT) <= 0) return true;
    }
  }

  // A hello that is right for this connection.
  HelloMessage hello(std::string_view region, std::uint64_t token) {
    const auto greeting = parse_greeting(receive());
    if (!greeting) throw std::runtime_error("no greeting");
    HelloMessage hello{.name_bytes = static_cast<std::uint16_t>(region.size()), .challenge = detail::new_challenge()};
    std::ranges::copy(region, hello.name);
    hello.proof = detail::prove(detail::Role::connects, token,
                                {.of_target = greeting->challenge, .of_connection = hello.challenge, .region = region});
    return hello;
  }

 private:
  FrameSocket socket_;
};

TEST(Strangers, are_kept_out_and_keep_no_one_out) {
  TargetProcess target(SHARED_MEMORY);
  ASSERT_EQ(target.ask("fill shared 0 1048576 1"), "done");
  Worker worker(test::worker_config(SHARED_MEMORY));
  EXPECT_EQ(Connection(worker, to(target)).close(), Status::ok);  // what UCX keeps, it has now
  for (int turn = 0; turn < 100 && target.ask("connections") != "0"; ++turn) worker.wait(10);
  for (int turn = 0; turn < 20; ++turn) target.ask("connections");  // a guest's worker of UCX ends some turns after it
  const std::size_t descriptors = target.descriptor_count();

  std::mt19937_64 random(18);
  std::deque<Stranger> silent;
  std::vector<double> set_up_ms;
  for (std::size_t number = 0; number < stranger_count(); ++number) {
    Stranger stranger(target);
    std::vector<std::byte> rubbish(random() % 300);
    for (std::byte& byte : rubbish) byte = static_cast<std::byte>(random());
    switch (number % 5) {
      case 0: stranger.send_raw(rubbish); break;
      case 1: stranger.send(rubbish); break;
      case 2: {                       // a hello with one bit changed
        if (number % 50 != 2) break;  // else it connects and leaves
        std::vector<std::byte> hello = to_bytes(stranger.hello("shared", TARGET_TOKEN));
        const std::size_t bit = random() % (8 * (72 + 6));  // of the name, what is in use
        hello[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        stranger.send(hello);
        const auto welcome = parse_welcome(stranger.receive());
        if (welcome) {
          EXPECT_NE(welcome->refusal, Refusal::none) << "bit " << bit;
        }
        EXPECT_TRUE(stranger.is_closed_within(5000));
        break;
      }
      case 3: silent.push_back(std::move(stranger)); break;  // half-open
      case 4:
        stranger.send_raw(std::span(rubbish).first(std::min<std::size_t>(rubbish.size(), 1)));
        silent.push_back(std::move(stranger));  // slow
        break;
    }
    if (silent.size() > 300) silent.pop_front();
    if (number % 20 != 19) continue;
    const auto begin = std::chrono::steady_clock::now();
    Connection good(worker, to(target));
    set_up_ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    std::vector<std::byte> back(4096);
    ASSERT_EQ(good.get(0, back), Status::ok);
    ASSERT_EQ(test::first_difference(back, 1), back.size());
    ASSERT_EQ(good.close(), Status::ok);
  }
  std::ranges::sort(set_up_ms);
  const double p99_ms = set_up_ms[set_up_ms.size() * 99 / 100];
  std::printf("set-up meanwhile: median %.2f ms, p99 %.2f ms, of %zu\n", set_up_ms[set_up_ms.size() / 2], p99_ms, set_up_ms.size());
  RecordProperty("set_up_p99_us", static_cast<int>(1000 * p99_ms));
  EXPECT_EQ(target.ask("check shared 0 1048576 1"), "same");
  silent.clear();
  for (int turn = 0; turn < 500 && target.descriptor_count() != descriptors; ++turn) worker.wait(10);
  EXPECT_EQ(target.descriptor_count(), descriptors);
  EXPECT_EQ(target.ask("connections"), "0");
}

TEST(Strangers, are_sent_away_after_five_seconds) {
  TargetProcess target(SHARED_MEMORY);
  Stranger silent(target), slow(target), proved(target);
  ASSERT_TRUE(proved.send(to_bytes(proved.hello("shared", TARGET_TOKEN))));
  ASSERT_FALSE(proved.receive().empty());
  const auto begin = std::chrono::steady_clock::now();
  slow.send_raw(std::vector<std::byte>(1));
  EXPECT_TRUE(silent.is_closed_within(20'000));
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_TRUE(slow.is_closed_within(20'000));
  EXPECT_TRUE(proved.is_closed_within(20'000));  // nor does a proof alone hold a place
}

TEST(Strangers, who_waited_longest_makes_room) {
  TargetProcess target(SHARED_MEMORY);
  std::deque<Stranger> strangers;
  for (std::size_t number = 0; number < detail::STRANGERS_MAX + 1; ++number) strangers.emplace_back(target);
  EXPECT_TRUE(strangers.front().is_closed_within(4000));
  EXPECT_FALSE(strangers.back().is_closed_within(10));
}

TEST(Strangers, a_wrong_token_is_answered_like_an_unknown_name) {
  TargetProcess target(SHARED_MEMORY);
  std::vector<std::vector<std::byte>> answers;
  for (const auto& [region, token] :
       {std::pair{"shared", TARGET_TOKEN + 1}, {"no such", TARGET_TOKEN}, {"shared", std::uint64_t{0}}}) {
    Stranger stranger(target);
    ASSERT_TRUE(stranger.send(to_bytes(stranger.hello(region, token))));
    answers.push_back(stranger.receive());
    EXPECT_TRUE(stranger.is_closed_within(5000));
  }
  EXPECT_EQ(answers[0], to_bytes(WelcomeMessage{.refusal = Refusal::not_exposed}));
  EXPECT_EQ(answers[1], answers[0]);
  EXPECT_EQ(answers[2], answers[0]);
}

TEST(Strangers, what_was_said_once_proves_nothing_later) {
  TargetProcess target(SHARED_MEMORY);
  Stranger first(target), second(target);
  const std::vector<std::byte> hello = to_bytes(first.hello("shared", TARGET_TOKEN));
  second.hello("shared", TARGET_TOKEN);
  ASSERT_TRUE(second.send(hello));
  EXPECT_EQ(parse_welcome(second.receive())->refusal, Refusal::not_exposed);
}

TEST(Strangers, a_length_that_is_not_due_ends_the_channel) {
  TargetProcess target(SHARED_MEMORY);
  for (const std::uint32_t length : {137u, 1u << 20, ~0u}) {
    Stranger stranger(target);
    stranger.send_raw(std::as_bytes(std::span(&length, 1)));
    EXPECT_TRUE(stranger.is_closed_within(3000)) << length;
  }
}

TEST(Strangers, a_target_that_does_not_know_the_token_is_not_trusted) {
  std::uint16_t port = 0;
  const int listener = detail::listen_at("127.0.0.1", port);
  std::thread impostor([listener] {
    pollfd readable{listener, POLLIN, 0};
    poll(&readable, 1, 10'000);
    FrameSocket socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK));
    socket.send(to_bytes(GreetingMessage{}));
    std::vector<std::byte> frame;
    while (socket.receive(4096, frame) == FrameSocket::Got::nothing) usleep(1000);
    socket.send(to_bytes(WelcomeMessage{}));
    while (socket.receive(65536, frame) == FrameSocket::Got::nothing) usleep(1000);
    EXPECT_TRUE(frame.size() != 0 && !parse_open(frame).size());  // what it has is still the hello: no address followed
  });
  Worker worker;
  std::string text;
  try {
    Connection connection(worker, {.address = "127.0.0.1", .port = port, .region = "r", .token = 5, .timeout_ms = 8000});
  } catch (const SetupError& error) {
    text = error.what();
  }
  impostor.join();
  ::close(listener);
  EXPECT_NE(text.find("is not trusted (it does not know the token)"), std::string::npos) << text;
}

TEST(UnixSocket, carries_the_set_up_and_is_this_accounts_alone) {
  const std::string path = testing::TempDir() + "nanet-door-" + std::to_string(getpid());
  {
    std::uint16_t port = 0;
    ::close(detail::listen_at(path, port));  // left over from one that died
    Worker worker({.address = path});
    Region region(worker, {.bytes = 4096});
    Target target(worker, {.address = path});
    struct stat found {};
    ASSERT_EQ(stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600u);
    target.expose(region, {.name = "r", .permissions = {.read = true, .write = true}, .token = 3});
    Connection connection(worker, {.address = path, .region = "r", .token = 3});
    const std::vector<std::byte> data(100, std::byte{7});
    EXPECT_EQ(connection.put(0, data), Status::ok);
    EXPECT_EQ(region.data()[99], std::byte{7});
    EXPECT_EQ(connection.close(), Status::ok);
    Worker other({.address = path});
    EXPECT_THROW(Target(other, {.address = path}), SetupError);  // that one lives
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace nanet::rdma
