// SPDX-License-Identifier: Apache-2.0
// The driver with NICs of other sizes: it goes by what the register `geometry` says. Nothing is behind these registers.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "link/gateware/nic_driver.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link::gateware {
namespace {

constexpr std::uint32_t kGeometry = 0x008, kCompletions = 0x080, kStageTake = 0x0A0, kStageGeometry = 0x0B8, kBuffers = 0x208,
                        kRing = 0x408;

struct Sizes {
  std::uint64_t clops = 1, match_entries = 2, destinations = 3, regions = 8, entries = 512, offset_bits = 24, stages = 5;
};

class Registers final : public Device {
 public:
  explicit Registers(const Sizes& sizes) {
    values[0x000] = 0x54454E414E | std::uint64_t{3} << 48;
    values[kGeometry] = sizes.clops | sizes.match_entries << 8 | sizes.destinations << 16 | sizes.regions << 24 |
                        sizes.entries << 32 | sizes.offset_bits << 48 | std::uint64_t{1472 / 64} << 56;
    values[kStageGeometry] = sizes.stages | 64 << 8;
  }
  std::uint64_t read(std::uint32_t offset) override { return values[offset]; }
  void write(std::uint32_t offset, std::uint64_t value) override { values[offset] = value; }
  void poll() override {}
  bool wait(std::uint64_t) override { return false; }
  void unmap(std::span<const std::uint64_t>) override {}
  std::vector<std::uint64_t> map(std::span<std::byte> memory, std::size_t page_bytes, Access) override {
    return std::vector<std::uint64_t>(memory.size() / page_bytes, 0x1000'0000);
  }

  std::map<std::uint32_t, std::uint64_t> values;
};

TEST(Geometry, AddressesHaveTheOffsetBitsOfTheNic) {
  for (const std::uint64_t bits : {24u, 30u, 40u}) {
    Registers registers({.offset_bits = bits});
    const NicDriver driver(registers, {});
    EXPECT_EQ(registers.values[kCompletions], 0u);  // region 0
    EXPECT_EQ(registers.values[kBuffers], std::uint64_t{1} << bits);
    EXPECT_EQ(registers.values[kRing], std::uint64_t{3} << bits);
  }
}

TEST(Geometry, MoreThanThereIsIsRefused) {
  Registers registers({});
  NicDriver driver(registers, {});
  driver.set_match({.index = 1, .port = 1, .from_address = 0, .from_mask = 0, .source = 0, .counts_events = false});
  EXPECT_THROW(driver.set_match({.index = 2, .port = 1, .from_address = 0, .from_mask = 0, .source = 0, .counts_events = false}),
               SetupError);
  driver.set_destination({.index = 2, .mac = 2, .address = 1, .port = 1, .from_port = 1});
  EXPECT_THROW(driver.set_destination({.index = 3, .mac = 2, .address = 1, .port = 1, .from_port = 1}), SetupError);

  NicConfig large;
  large.clops[0].buffer_count = 32;
  large.clops[0].buffer_bytes = 1 << 20;
  Registers narrow({.offset_bits = 24});
  EXPECT_THROW(NicDriver(narrow, large), SetupError);  // 32 MiB in a region of 16
  Registers wide({.entries = 1024, .offset_bits = 25});
  EXPECT_NO_THROW(NicDriver(wide, large));
}

TEST(Geometry, ANicWithoutStageStatisticsHasNoSamples) {
  Registers registers({.stages = 0});
  NicDriver driver(registers, {});
  for (const StageStats& stats : driver.take_stage_stats()) EXPECT_EQ(stats.count, 0u);
  EXPECT_EQ(registers.values.count(kStageTake), 0u);
  Registers others({.stages = 4});
  EXPECT_THROW(NicDriver(others, {}), SetupError);
}

}  // namespace
}  // namespace nanet::link::gateware
