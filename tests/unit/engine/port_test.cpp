// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/port.hpp"
#include "nanet/engine/protocol.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "nanet/engine/checks.hpp"
#include "nanet/engine/kinds.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/setup_error.hpp"
#include "pieces.hpp"

namespace nanet::engine {
namespace {

LinkConfig any_free_port() {
  LinkConfig config;
  config.name = "port";
  config.endpoint = "udp://127.0.0.1:0";
  config.protocol = &kRaw;
  config.memory_region = {.name = "port", .huge_pages = false, .buffer_count = 4};
  return config;
}

std::string why_not(MemoryKind memory) {
  try {
    const Port port(any_free_port(), memory);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(Port, memory_of_the_host_needs_no_gpu) {
  const Port port(any_free_port());
  EXPECT_EQ(port.pinned(), nullptr);
}

TEST(Port, device_memory_is_refused_because_the_kernel_writes_into_host_memory) {
  EXPECT_NE(why_not(MemoryKind::device).find("(the kernel copies packets into host memory"), std::string::npos);
}

// Units through a socket, with a buffer far smaller than what a link needs for a batch.
class PortOfUnits : public ::testing::Test {
 protected:
  PortOfUnits() {
    LinkConfig config = any_free_port();
    config.protocol = &test::kPieces;
    config.memory_region.buffer_bytes = 8192;
    config.assemble = AssembleConfig{.timeout_us = 2000};
    port.emplace(config);
    to = port->add_destination("udp://127.0.0.1:" + std::to_string(port->local().port));
  }
  void send(const test::Piece& piece) { ASSERT_TRUE(port->send(to, test::make_piece(piece))); }

  std::optional<Port> port;
  std::uint32_t to = 0;
};

TEST_F(PortOfUnits, GivesThemWhole) {
  for (std::uint32_t p = 5; p-- > 0;) send({.stream = 3, .unit = 9, .place = 1400 * p, .bytes = 1400, .unit_bytes = 7000});
  const Completion* completion = port->poll(2'000'000'000);
  ASSERT_NE(completion, nullptr);
  EXPECT_EQ(completion->status, status::unit);
  EXPECT_TRUE(port->packet_index(*completion).empty());
  const Unit unit = port->unit(*completion);
  EXPECT_TRUE(unit.is_complete());
  EXPECT_EQ(unit.head.unit, 9u);
  ASSERT_EQ(unit.bytes.size(), 7000u);
  for (std::uint32_t b = 0; b < 7000; ++b) ASSERT_EQ(unit.bytes[b], test::byte_of(3, 9, b));
  port->release();
  ASSERT_EQ(port->streams().size(), 1u);
  EXPECT_EQ(port->streams()[0].units_complete, 1u);
}

TEST_F(PortOfUnits, GivesWhatIsLeftOfOneWhenItsTimeIsOverAndNothingElseComes) {
  for (const std::uint32_t p : {0u, 1u, 3u}) send({.stream = 3, .unit = 9, .place = 1400 * p, .bytes = 1400, .unit_bytes = 5600});
  const Completion* completion = port->poll(2'000'000'000);
  ASSERT_NE(completion, nullptr);
  EXPECT_EQ(completion->status, status::unit | status::incomplete | status::timeout | status::gap);
  const Unit unit = port->unit(*completion);
  EXPECT_FALSE(unit.is_complete());
  ASSERT_EQ(unit.present.size(), 2u);
  EXPECT_EQ(unit.present[1].begin, 4200u);
  EXPECT_EQ(port->total(flow::Counter::packets_lost_network), 1u);
}

TEST(LinkOfUnits, HasKeysOfItsOwn) {
  LinkConfig config = any_free_port();
  config.assemble = AssembleConfig{};
  ASSERT_TRUE(broken_rule(config));
  EXPECT_EQ(broken_rule(config)->key, "assemble");
  config.protocol = &test::kPieces;
  EXPECT_FALSE(broken_rule(config));
  config.timeout_us = 5;
  ASSERT_TRUE(broken_rule(config));
  EXPECT_EQ(broken_rule(config)->key, "timeout_us");
}

TEST(LinkOfUnits, NeedsABufferMoreThanAStreamCanHaveOpen) {
  EngineConfig config;
  config.processor = std::make_shared<CountProcessor>();
  config.links = {any_free_port()};
  config.links[0].protocol = &test::kPieces;  // 4 buffers, and 4 units open
  try {
    check(config);
    FAIL() << "it was accepted";
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("(its memory region has 4 buffers"), std::string::npos);
  }
  config.links[0].assemble = AssembleConfig{.units_open = 3};
  EXPECT_NO_THROW(check(config));
}

#ifndef NANET_CUDA
TEST(Port, pinned_memory_needs_a_build_with_cuda) {
  EXPECT_NE(why_not(MemoryKind::host_pinned).find("CLOP 'port' cannot be made visible to a GPU (nanet was built without CUDA)"),
            std::string::npos);
}
#endif

}  // namespace
}  // namespace nanet::engine
