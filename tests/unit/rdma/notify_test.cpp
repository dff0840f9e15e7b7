// SPDX-License-Identifier: Apache-2.0
// A ring filled from another thread: every payload whole, in order, once; a full ring takes no more; a writer goes on behind the one before.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "nanet/rdma/notify_ring.hpp"
#include "nanet/setup_error.hpp"
#include "ring_owner.hpp"
#include "target_process.hpp"

namespace nanet::rdma {
namespace {

using test::first_difference;
using test::ring_payload_bytes;

constexpr const char* SHARED_MEMORY = "posix";
constexpr NotifyRingConfig RING = test::RING;
constexpr auto PATIENCE = test::RingOwner::PATIENCE;
using Owner = test::RingOwner;

// Serves an owner in a thread of its own, while another connects and writes.
template <typename Work>
void while_served(Owner& owner, const Work& work) {
  std::atomic<bool> is_over{false};
  std::thread server([&] {
    while (!is_over) owner.worker.wait(1);
  });
  work();
  is_over = true;
  server.join();
}

class Notify : public testing::TestWithParam<std::tuple<const char*, RegionKind>> {
 protected:
  const char* transports = std::get<0>(GetParam());
  Owner owner{transports, std::get<1>(GetParam())};
};

TEST_P(Notify, payloads_of_all_sizes_come_whole_in_order_and_once) {
  constexpr std::uint64_t COUNT = 3000;
  std::atomic<std::uint64_t> sent{0};
  std::thread writer([&] {
    Worker worker(test::worker_config(transports));
    NotifyWriter ring{Connection(worker, owner.config())};
    EXPECT_EQ(ring.slot_count(), RING.slot_count);
    std::vector<std::vector<std::byte>> memory(2 * RING.slot_count, std::vector<std::byte>(RING.payload_bytes_max));
    std::vector<std::span<const std::byte>> payloads(memory.size());
    for (std::uint64_t number = 0; number < COUNT;) {
      // Batches of 1 to 14, so also more than the ring holds.
      const std::size_t count = std::min<std::uint64_t>(1 + number % payloads.size(), COUNT - number);
      for (std::size_t index = 0; index < count; ++index) {
        const auto data = std::span(memory[index]).first(ring_payload_bytes(number + index));
        test::fill_pattern(data, number + index);
        payloads[index] = data;
      }
      const auto taken = ring.send(std::span(payloads).first(count));
      ASSERT_EQ(name(taken.status), name(Status::ok)) << ring.connection().error();
      number += taken.count;
    }
    sent = ring.sent_count();
    EXPECT_EQ(ring.close(), Status::ok);
  });
  std::vector<std::span<std::byte>> held;
  for (std::uint64_t number = 0; number < COUNT; ++number) {
    const auto payload = owner.next();
    ASSERT_TRUE(payload) << number;
    EXPECT_EQ(payload->size(), ring_payload_bytes(number));
    EXPECT_EQ(first_difference(*payload, number), payload->size()) << number;
    held.push_back(*payload);
    if (held.size() < 3) continue;  // given back in reverse order
    for (; !held.empty(); held.pop_back()) owner.ring.reader.give_back(held.back());
  }
  const auto end = std::chrono::steady_clock::now() + PATIENCE;  // the writer's close is served
  while ((sent == 0 || owner.target.connection_count() != 0) && std::chrono::steady_clock::now() < end) owner.worker.wait(1);
  writer.join();
  EXPECT_EQ(sent, COUNT);
  EXPECT_EQ(owner.ring.reader.taken_count(), COUNT);
  EXPECT_FALSE(owner.ring.reader.take());
  EXPECT_EQ(owner.ring.reader.malformed_count(), 0u);
}

TEST_P(Notify, a_full_ring_takes_no_more_until_something_is_given_back) {
  while_served(owner, [&] {
    Worker worker(test::worker_config(transports));
    NotifyWriter ring{Connection(worker, owner.config())};
    const std::vector<std::byte> memory(RING.payload_bytes_max + 1);
    const std::vector<std::span<const std::byte>> payloads(RING.slot_count + 1, std::span(memory).first(10));
    const std::span<const std::byte> too_long(memory);
    EXPECT_EQ(ring.send(std::span(&too_long, 1)).status, Status::out_of_bounds);
    auto sent = ring.send(payloads);
    EXPECT_EQ(sent.status, Status::ok);
    EXPECT_EQ(sent.count, RING.slot_count);
    sent = ring.send(payloads);
    EXPECT_EQ(sent.status, Status::ok);
    EXPECT_EQ(sent.count, 0u);
    EXPECT_EQ(ring.flush(), Status::ok);
    EXPECT_EQ(ring.sent_count(), RING.slot_count);
    EXPECT_EQ(ring.close(), Status::ok);
  });
  for (std::uint32_t number = 0; number < RING.slot_count; ++number) ASSERT_TRUE(owner.next());
  EXPECT_FALSE(owner.ring.reader.take());
}

TEST_P(Notify, a_second_writer_is_refused_until_the_first_has_gone_and_then_goes_on_behind_it) {
  const std::vector<std::byte> memory(10, std::byte{0x33});
  const std::vector<std::span<const std::byte>> payloads(4, std::span(memory));
  while_served(owner, [&] {
    Worker worker(test::worker_config(transports));
    NotifyWriter ring{Connection(worker, owner.config())};
    EXPECT_EQ(ring.send(payloads).count, 4u);
    Worker other(test::worker_config(transports));
    try {
      const Connection second(other, owner.config());
      ADD_FAILURE() << "two writers";
    } catch (const SetupError& error) {
      EXPECT_NE(std::string(error.what()).find("is taken (it has as many connections as it takes)"), std::string::npos)
          << error.what();
    }
    EXPECT_EQ(ring.close(), Status::ok);
  });
  EXPECT_TRUE(owner.next());  // three are left in the ring when the next writer comes
  const auto end = std::chrono::steady_clock::now() + PATIENCE;
  while (owner.target.connection_count() != 0 && std::chrono::steady_clock::now() < end) owner.worker.wait(1);
  while_served(owner, [&] {
    Worker worker(test::worker_config(transports));
    NotifyWriter ring{Connection(worker, owner.config())};
    EXPECT_EQ(ring.send(payloads).count, 3u);  // of 7 slots, 4 hold what was not given back
    EXPECT_EQ(ring.close(), Status::ok);
  });
  for (int number = 1; number < 7; ++number) ASSERT_TRUE(owner.next()) << number;
  EXPECT_FALSE(owner.ring.reader.take());
}

INSTANTIATE_TEST_SUITE_P(Ways, Notify,
                         testing::Combine(testing::ValuesIn(test::ways({SHARED_MEMORY, "tcp"})),
                                          testing::Values(RegionKind::host_shared, RegionKind::host)),
                         [](const auto& way) {
                           return test::way_name(std::get<0>(way.param)) +
                                  (std::get<1>(way.param) == RegionKind::host ? "_host" : "_shared");
                         });
TEST(NotifyRing, a_notice_of_more_bytes_than_a_slot_has_is_counted_and_passed_over) {
  alignas(64) static std::byte memory[8192];
  const NotifyRingConfig config{.slot_count = 4, .payload_bytes_max = 100};
  ASSERT_LE(notify_ring_bytes(config), sizeof memory);
  NotifyReader reader(memory, config);
  EXPECT_FALSE(reader.take());
  auto* const notices = reinterpret_cast<std::uint64_t*>(memory + 128);
  notices[0] = 1u << 16 | 101;
  notices[1] = 2u << 16 | 100;
  notices[2] = 2u << 16 | 100;  // of another slot
  const auto payload = reader.take();
  ASSERT_TRUE(payload);
  EXPECT_EQ(payload->size(), 100u);
  EXPECT_EQ(payload->data(), memory + 192 + 128);
  EXPECT_EQ(reader.malformed_count(), 1u);
  EXPECT_EQ(memory[64], std::byte{1});  // consumed: the one passed over
  EXPECT_FALSE(reader.take());
  reader.give_back(*payload);
  EXPECT_EQ(memory[64], std::byte{2});
}

TEST(NotifyRing, set_up_refuses_what_is_no_ring) {
  EXPECT_THROW(notify_ring_bytes({.slot_count = 0}), SetupError);
  EXPECT_THROW(notify_ring_bytes({.payload_bytes_max = 65536}), SetupError);
  alignas(64) std::byte small[256];
  EXPECT_THROW(NotifyReader(small, {}), SetupError);
  test::TargetProcess target("tcp");
  Worker worker(test::worker_config("tcp"));
  const auto connect = [&](const char* region) {
    return Connection(worker, {.address = "127.0.0.1", .port = target.port(), .region = region, .token = test::TARGET_TOKEN});
  };
  EXPECT_THROW(NotifyWriter(connect("host")), SetupError);
  EXPECT_THROW(NotifyWriter(connect("host-read")), SetupError);
}

}  // namespace
}  // namespace nanet::rdma
