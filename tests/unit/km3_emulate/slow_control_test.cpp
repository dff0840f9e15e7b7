// SPDX-License-Identifier: Apache-2.0
// A floor's answers: what each command does, what is refused and how, and that a request that comes again is done once.
#include "km3_emulate/slow_control.hpp"

#include <gtest/gtest.h>

#include "tower_parts.hpp"

namespace nanet::km3_emulate {
namespace {

struct Request {
  std::uint8_t command = 1;
  std::uint16_t parameter = 0;
  std::int32_t value = 0;
  std::uint32_t sequence = 1;
  std::uint8_t tower = 1;
  std::uint8_t floor = 3;
};

ControlPacket packet(const Request& request) {
  ControlPacket bytes{};
  const auto put = [&](std::size_t at, std::uint32_t value, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) bytes[at + k] = static_cast<std::byte>(value >> 8 * (count - 1 - k));
  };
  put(0, 0x4B4D3343, 4);
  put(4, request.tower, 1);
  put(5, request.floor, 1);
  put(6, request.command, 1);
  put(8, request.sequence, 4);
  put(12, request.parameter, 2);
  put(16, static_cast<std::uint32_t>(request.value), 4);
  return bytes;
}

class Floor {
 public:
  Floor() : maker_(TowerConfig{}, standard_tower()), control_(1, 3, 2, maker_) {}

  struct Answer {
    int status;
    std::int32_t value;
  };
  Answer ask(const Request& request, const std::string& from = "a") {
    const auto answer = control_.answer(packet(request), from, 1'500'000'001'000'000'160, state);
    EXPECT_TRUE(answer);
    if (!answer) return {-1, 0};
    EXPECT_EQ(km3::load_be32(answer->data()), 0x4B4D3341);
    EXPECT_EQ(km3::load_be32(&(*answer)[8]), static_cast<std::int32_t>(request.sequence));
    EXPECT_EQ(km3::load_be32(&(*answer)[20]), 1'500'000'001);
    EXPECT_EQ(km3::load_be32(&(*answer)[24]), 10);
    EXPECT_EQ(std::to_integer<int>((*answer)[6]), request.command);
    return {std::to_integer<int>((*answer)[7]), km3::load_be32(&(*answer)[16])};
  }
  bool silent(std::span<const std::byte> bytes) { return !control_.answer(bytes, "a", 0, state); }
  const ControlCounts& counts() const { return control_.counts(); }
  std::int32_t instrument(std::uint16_t number) const { return maker_.instrument(0, 2, number); }

  FloorState state;

 private:
  UnitMaker maker_;
  SlowControl control_;
};

void expect(const Floor::Answer& answer, ControlStatus status, std::int32_t value) {
  EXPECT_EQ(answer.status, static_cast<int>(status));
  EXPECT_EQ(answer.value, value);
}

TEST(TowerSlowControl, GetsAndSets) {
  Floor floor;
  expect(floor.ask({.command = 1, .parameter = 3, .sequence = 1}), ControlStatus::done, 15000);
  expect(floor.ask({.command = 2, .parameter = 3, .value = 14000, .sequence = 2}), ControlStatus::done, 14000);
  expect(floor.ask({.command = 1, .parameter = 3, .sequence = 3}), ControlStatus::done, 14000);
  expect(floor.ask({.command = 2, .parameter = 17, .value = 55, .sequence = 4}), ControlStatus::done, 55);
  expect(floor.ask({.command = 2, .parameter = 33, .value = 0, .sequence = 5}), ControlStatus::done, 0);
  EXPECT_EQ(floor.state.settings.voltage[3], 14000);
  EXPECT_EQ(floor.state.settings.threshold[1], 55);
  EXPECT_EQ(floor.state.settings.hydrophone_on[1], 0);
  floor.state.rates[5] = 55123;
  expect(floor.ask({.command = 1, .parameter = 85, .sequence = 6}), ControlStatus::done, 55123);
  expect(floor.ask({.command = 1, .parameter = 65, .sequence = 7}), ControlStatus::done, floor.instrument(65));
  expect(floor.ask({.command = 5, .sequence = 8}), ControlStatus::done, 0);
}

TEST(TowerSlowControl, RefusesByName) {
  Floor floor;
  expect(floor.ask({.command = 9, .sequence = 1}), ControlStatus::no_command, 0);
  expect(floor.ask({.command = 1, .parameter = 6, .sequence = 2}), ControlStatus::no_parameter, 0);
  expect(floor.ask({.command = 2, .parameter = 64, .value = 1, .sequence = 3}), ControlStatus::no_parameter, 0);
  expect(floor.ask({.command = 2, .parameter = 0, .value = 20001, .sequence = 4}), ControlStatus::out_of_bounds, 15000);
  expect(floor.ask({.command = 2, .parameter = 0, .value = -1, .sequence = 5}), ControlStatus::out_of_bounds, 15000);
  expect(floor.ask({.command = 1, .sequence = 6, .floor = 4}), ControlStatus::another_floor, 0);
  expect(floor.ask({.command = 1, .sequence = 7, .tower = 2}), ControlStatus::another_floor, 0);
  expect(floor.ask({.command = 4, .sequence = 8}), ControlStatus::not_now, 0);
  ControlPacket bad = packet({});
  bad[0] = std::byte{0};
  EXPECT_TRUE(floor.silent(bad));
  EXPECT_TRUE(floor.silent(std::span(bad).first(27)));
  EXPECT_EQ(floor.counts().bad, 2u);
  EXPECT_EQ(floor.counts().requests, 8u);
}

TEST(TowerSlowControl, RunsStartAndStop) {
  Floor floor;
  expect(floor.ask({.command = 3, .value = 7, .sequence = 1}), ControlStatus::done, 7);
  EXPECT_EQ(floor.state.run, 7u);
  expect(floor.ask({.command = 3, .value = 8, .sequence = 2}), ControlStatus::not_now, 7);
  expect(floor.ask({.command = 4, .sequence = 3}), ControlStatus::done, 7);
  EXPECT_FALSE(floor.state.run);
  floor.state.tower_run = 7;  // other floors are still in it
  expect(floor.ask({.command = 3, .value = 8, .sequence = 4}), ControlStatus::not_now, 7);
  expect(floor.ask({.command = 3, .value = 7, .sequence = 5}), ControlStatus::done, 7);
}

TEST(TowerSlowControl, ARequestThatComesAgainIsAnsweredAgainAndDoneOnce) {
  Floor floor;
  const Request start{.command = 3, .value = 7, .sequence = 1};
  const Request stop{.command = 4, .sequence = 2};
  floor.ask(start);
  expect(floor.ask(stop), ControlStatus::done, 7);
  expect(floor.ask(stop), ControlStatus::done, 7);   // done again it would be: not now
  expect(floor.ask(start), ControlStatus::done, 7);  // and does not begin again
  EXPECT_FALSE(floor.state.run);
  EXPECT_EQ(floor.counts().repeated, 2u);
  expect(floor.ask(stop, "b"), ControlStatus::not_now, 0);  // another's request
}

}  // namespace
}  // namespace nanet::km3_emulate
