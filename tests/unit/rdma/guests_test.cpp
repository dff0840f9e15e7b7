// SPDX-License-Identifier: Apache-2.0
// Guests of one target come, go and are killed: no other feels it, and nothing of them stays. NANET_GUESTS says how many there are at once.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "nanet/rdma/connection.hpp"
#include "nanet/setup_error.hpp"
#include "ring_owner.hpp"

namespace nanet::rdma {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;
using test::fill_pattern;
using test::first_difference;
using test::ring_payload_bytes;
using test::TARGET_TOKEN;
using test::TargetProcess;
using test::WriterProcess;

constexpr const char* SHARED_MEMORY = "posix";

class Guests : public testing::TestWithParam<std::tuple<const char*, RegionKind>> {
 protected:
  const char* transports = std::get<0>(GetParam());
  const RegionKind kind = std::get<1>(GetParam());
  std::mt19937 random{1};
};

std::string guests_name(const testing::TestParamInfo<Guests::ParamType>& way) {
  return test::way_name(std::get<0>(way.param)) + (std::get<1>(way.param) == RegionKind::host ? "_host" : "_shared");
}

// What has come from one writer, every byte as it has to be.
struct Taken {
  explicit Taken(test::Ring& taken_from) : ring(taken_from) {}
  void all() {
    while (const auto payload = ring.reader.take()) {
      EXPECT_EQ(payload->size(), ring_payload_bytes(count));
      EXPECT_EQ(first_difference(*payload, count), payload->size()) << count;
      ring.reader.give_back(*payload);
      ++count;
    }
  }

  test::Ring& ring;
  std::uint64_t count = 0;
};

// Over TCP UCX 1.22 may end the process that owns the ring (docs/design/rdma.md, Time limits and faults): there is no promise to test.
class KilledWriter : public Guests {
 protected:
  // New memory is not zero: UCX reads of its requests what it has not written (src/rdma/worker.cpp, clear_request).
  KilledWriter() { mallopt(M_PERTURB, 0x55); }
  ~KilledWriter() override { mallopt(M_PERTURB, 0); }
  // Takes what comes meanwhile. Returns done().
  template <typename Done>
  bool serve_until(const Done& done) {
    const auto end = steady_clock::now() + test::RingOwner::PATIENCE;
    while (!done() && steady_clock::now() < end) {
      taken.all();
      if (!owner.worker.progress()) std::this_thread::sleep_for(microseconds(20));
    }
    taken.all();
    return done();
  }
  // At any moment of the next three milliseconds, in which all are served.
  void kill_some_time(WriterProcess& writer) {
    std::atomic<bool> is_killed{false};
    std::thread killer([&, moment = microseconds(random() % 3000)] {
      std::this_thread::sleep_for(moment);
      writer.kill();
      is_killed = true;
    });
    serve_until([&] { return is_killed.load(); });
    killer.join();
  }

  test::RingOwner owner{transports, kind};
  Taken taken{owner.ring};
};

TEST_P(KilledWriter, leaves_nothing_half_written) {
  for (int kill = 0; kill < 12; ++kill) {
    const std::uint64_t before = owner.ring.reader.taken_count();
    taken.count = 0;
    WriterProcess writer(transports, owner.target.port(), "ring");
    ASSERT_TRUE(serve_until([this] { return taken.count > 100; })) << kill;
    kill_some_time(writer);
    EXPECT_TRUE(serve_until([this] { return owner.target.connection_count() == 0; })) << kill;
    EXPECT_EQ(owner.ring.reader.taken_count(), before + taken.count);
  }
}

TEST_P(KilledWriter, stops_no_other) {
  const int kills = kind == RegionKind::host ? 40 : 10;
  Region block(owner.worker, {.name = "block", .bytes = 1 << 20, .kind = kind, .locked = false});
  owner.target.expose(block, {.name = "block", .permissions = {.read = true, .write = true}, .token = TARGET_TOKEN});
  std::atomic<std::uint64_t> sent{0};
  std::jthread live([&](const std::stop_token& stop) {
    Worker worker(test::worker_config(transports));
    NotifyWriter ring{Connection(worker, owner.config())};
    std::vector<std::byte> memory(test::RING_PAYLOAD_BYTES_MAX);
    Status status = Status::ok;
    for (std::uint64_t number = 0; status == Status::ok && !stop.stop_requested();) {
      const std::span<std::byte> data = std::span(memory).first(ring_payload_bytes(number));
      fill_pattern(data, number);
      const std::span<const std::byte> payload = data;
      const auto done = ring.send(std::span(&payload, 1));
      status = done.status;
      number += done.count;
      std::this_thread::sleep_for(microseconds(50));
    }
    EXPECT_EQ(name(status), name(Status::ok)) << ring.connection().error();
    sent = ring.sent_count();
    EXPECT_EQ(ring.close(), Status::ok);
  });
  const auto goes_on = [&] {
    const std::uint64_t before = taken.count;
    return serve_until([&] { return taken.count >= before + 50; });
  };
  ASSERT_TRUE(goes_on());
  for (int kill = 0; kill < kills; ++kill) {
    block.data()[block.bytes() - 1] = std::byte{0};
    WriterProcess doomed(transports, owner.target.port(), "block");
    ASSERT_TRUE(serve_until([&] { return block.data()[block.bytes() - 1] == std::byte{1}; })) << kill;
    kill_some_time(doomed);
    ASSERT_TRUE(goes_on()) << "the other writer stands still after kill " << kill;
    ASSERT_TRUE(serve_until([this] { return owner.target.connection_count() == 1; })) << kill;
  }
  ASSERT_TRUE(goes_on());
  live.request_stop();
  EXPECT_TRUE(serve_until([this] { return owner.target.connection_count() == 0; }));
  live.join();
  EXPECT_EQ(taken.count, sent);
  EXPECT_EQ(owner.ring.reader.malformed_count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Ways, KilledWriter,
                         testing::Combine(testing::ValuesIn(test::ways({SHARED_MEMORY})),
                                          testing::Values(RegionKind::host_shared, RegionKind::host)),
                         guests_name);

// The other way round: what a target answers goes through memory of the connection's side.
TEST(KilledTarget, stops_no_connection_to_another) {
  constexpr int KILLS = 20;
  const auto to = [](const TargetProcess& target) {
    return ConnectionConfig{.address = test::target_address(), .port = target.port(), .region = "host", .token = TARGET_TOKEN};
  };
  TargetProcess other(SHARED_MEMORY);
  Worker worker(test::worker_config(SHARED_MEMORY, 100));
  Connection good(worker, to(other));
  std::mt19937 random(2);
  std::vector<std::byte> data(5000), back(data.size()), into(1 << 20);
  for (std::uint64_t kill = 0; kill < KILLS; ++kill) {
    TargetProcess target(SHARED_MEMORY);
    Connection doomed(worker, to(target));
    std::thread killer([&target, moment = microseconds(random() % 3000)] {
      std::this_thread::sleep_for(moment);
      target.kill();
    });
    Status status = Status::ok;
    while (status == Status::ok) status = doomed.get(0, into);
    killer.join();
    EXPECT_EQ(name(status), name(Status::peer_lost));
    fill_pattern(data, kill);
    ASSERT_EQ(name(good.put(0, data)), name(Status::ok)) << "after kill " << kill << ": " << good.error();
    ASSERT_EQ(name(good.get(0, back)), name(Status::ok)) << "after kill " << kill << ": " << good.error();
    ASSERT_EQ(first_difference(back, kill), back.size()) << kill;
  }
}

TEST_P(Guests, come_up_to_the_maximum_and_each_is_served) {
  const char* given = std::getenv("NANET_GUESTS");
  const auto count = static_cast<std::uint32_t>(given ? std::stoul(given) : 32);
  Worker worker(test::worker_config(transports));
  Region region(worker, {.bytes = count * std::size_t{8}, .kind = kind, .locked = false});
  Target target(worker, {.address = test::target_address(), .connection_count_max = count});
  target.expose(region, {.name = "words", .permissions = {.read = true, .write = true}, .token = TARGET_TOKEN});
  const ConnectionConfig config{
      .address = test::target_address(), .port = target.port(), .region = "words", .token = TARGET_TOKEN, .timeout_ms = 60'000};
  std::vector<Connection> guests;
  for (std::uint32_t index = 0; index < count; ++index) guests.emplace_back(worker, config);
  EXPECT_EQ(target.connection_count(), count);
  try {
    const Connection one_more(worker, config);
    ADD_FAILURE() << "more than the target takes";
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find(" is full ("), std::string::npos) << error.what();
  }
  for (std::uint64_t index = 0; index < count; ++index) {
    EXPECT_EQ(guests[index].put_words(8 * index, std::span(&index, 1)), Status::ok) << index;
    EXPECT_EQ(guests[index].flush(), Status::ok) << index;
  }
  for (std::uint64_t index = 0; index < count; ++index) {  // what another has written
    const std::uint64_t place = (index + 1) % count;
    std::uint64_t word = ~place;
    EXPECT_EQ(guests[index].get_words(8 * place, std::span(&word, 1)), Status::ok) << index;
    EXPECT_EQ(word, place);
  }
  guests.clear();
  for (int turn = 0; turn < 3000 && target.connection_count() != 0; ++turn) worker.wait(10);
  EXPECT_EQ(target.connection_count(), 0u);
  EXPECT_EQ(Connection(worker, config).close(), Status::ok);
}

// What this process holds.
struct Held {
  std::size_t descriptors, mappings, shared_kb, heap_bytes;
};

Held held() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  std::ifstream maps("/proc/self/maps"), status("/proc/self/status");
  Held held{};
  held.descriptors = static_cast<std::size_t>(std::distance(begin(descriptors), end(descriptors)));
  held.mappings = static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
  for (std::string word; status >> word;)
    if (word == "RssShmem:") status >> held.shared_kb;
  held.heap_bytes = mallinfo2().uordblks;  // 0 under a sanitizer
  return held;
}

TEST_P(Guests, leave_nothing_behind) {
  constexpr int COUNT = 200;
  test::RingOwner owner(transports, kind);
  Taken taken(owner.ring);
  owner.expose(owner.ring, "for many", 0);
  ConnectionConfig for_many = owner.config();
  for_many.region = "for many";
  const bool may_be_killed = transports == std::string(SHARED_MEMORY);
  const auto all_go = [&] {
    for (int turn = 0; turn < 3000 && owner.target.connection_count() != 0; ++turn) owner.worker.wait(10);
    EXPECT_EQ(owner.target.connection_count(), 0u);
    for (int turn = 0; turn < 10; ++turn) owner.worker.progress();
    taken.all();
  };
  const auto come_and_go = [&](int number) {
    if (number % 8 == 0 && may_be_killed) {
      taken.count = 0;
      WriterProcess writer(transports, owner.target.port(), "ring");
      const auto end = steady_clock::now() + test::RingOwner::PATIENCE;
      for (; taken.count == 0 && steady_clock::now() < end; taken.all()) {
        if (!owner.worker.progress()) std::this_thread::sleep_for(microseconds(20));
      }
      EXPECT_GT(taken.count, 0u) << number;
      writer.kill();
      all_go();
    } else {
      Connection guest(owner.worker, for_many);
      EXPECT_EQ(guest.close(), Status::ok) << number;
    }
  };
  for (int number = 0; number < 20; ++number) come_and_go(number);  // what UCX keeps, it has now
  all_go();
  const Held before = held();
  for (int number = 0; number < COUNT; ++number) come_and_go(number);
  all_go();
  const Held after = held();
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_LT(after.mappings, before.mappings + 20);
  EXPECT_LT(after.shared_kb, before.shared_kb + 4096);
  EXPECT_LT(after.heap_bytes, before.heap_bytes + COUNT * 1000);
}

INSTANTIATE_TEST_SUITE_P(Ways, Guests,
                         testing::Combine(testing::ValuesIn(test::ways({SHARED_MEMORY, "tcp"})),
                                          testing::Values(RegionKind::host_shared, RegionKind::host)),
                         guests_name);

TEST(NoDescriptors, the_guest_that_there_are_none_for_is_refused_and_the_others_go_on) {
  TargetProcess target(SHARED_MEMORY);  // takes 3
  Worker worker(test::worker_config(SHARED_MEMORY));
  const ConnectionConfig config{.address = test::target_address(), .port = target.port(), .region = "host", .token = TARGET_TOKEN};
  Connection first(worker, config);
  const std::vector<std::byte> data(5000, std::byte{3});
  for (const std::size_t more : {3UL, 4UL}) {
    target.allow_descriptors(more);  // fewer than a guest takes
    EXPECT_THROW(Connection(worker, config), SetupError) << more;
    EXPECT_EQ(first.put(0, data), Status::ok) << more;
    EXPECT_EQ(first.flush(), Status::ok) << more;
  }
  target.allow_descriptors(100);
  EXPECT_EQ(Connection(worker, config).close(), Status::ok);
}

}  // namespace
}  // namespace nanet::rdma
