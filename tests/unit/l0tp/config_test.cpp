// SPDX-License-Identifier: Apache-2.0
#include "l0tp/config.hpp"

#include <gtest/gtest.h>

#include <string>

#include "l0tp/trigger_processor.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::l0tp {
namespace {

template <class Change>
std::string problem_of(Change change) {
  Config config;
  change(config);
  try {
    TriggerProcessor processor(config);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(L0tpConfig, TheDefaultIsGood) {
  EXPECT_EQ(problem_of([](Config&) {}), "");
  const Config config;
  EXPECT_EQ(config.inputs.size(), kInputsMax);
  EXPECT_EQ(config.reference_index(), 0u);
  EXPECT_EQ(config.inputs[0].time_cut_ticks(), 61u);
  EXPECT_EQ(config.read_lag_ticks(), 16'416u);
  EXPECT_EQ(config.cell_ticks(), 64u);
  EXPECT_EQ(config.memory_ticks(), 1u << 20);
}

TEST(L0tpConfig, WhatCannotWorkIsRefused) {
  const auto refused = [](const char* part, auto change) {
    EXPECT_NE(problem_of(change).find(part), std::string::npos) << part << " not in: " << problem_of(change);
  };
  refused("inputs (its length must be at least 1)", [](Config& c) { c.inputs.clear(); });
  refused("inputs (its length must be at most 7)", [](Config& c) { c.inputs.push_back({"eighth", 0x77}); });
  refused("reference is 'RIHC' (no input has that name) did you mean 'RICH'?", [](Config& c) { c.reference = "RIHC"; });
  refused("two inputs have source_id 28", [](Config& c) { c.inputs[3].source_id = wire::kSourceRich; });
  refused("two inputs have name RICH", [](Config& c) { c.inputs[3].name = "RICH"; });
  refused("inputs[3].time_cut_ns (25.1 must be at most 25)", [](Config& c) { c.inputs[3].time_cut_ns = 25.1; });
  refused("time_cut_ns 6.3 of MUV3 is more than a cell of 6.23776 ns", [](Config& c) { c.inputs[3].time_cut_ns = 6.3; });
  refused("fine_time_bits (4 must be at most 3)", [](Config& c) { c.fine_time_bits = 4; });
  refused("read_lag_us 51.2 is more than half of the memory's 102.2 us", [](Config& c) { c.read_lag_us = 51.2; });
  refused("masks (its length must be at most 16)", [](Config& c) { c.masks.resize(17); });
  refused("masks[0].downscaling (0 must be at least 1)", [](Config& c) { c.masks = {{.name = "m", .downscaling = 0}}; });
  refused("two masks are named 'm'", [](Config& c) { c.masks = {{.name = "m"}, {.name = "m"}}; });
  const auto refused_bits = [&](const char* part, const char* input, const char* pattern) {
    refused(part, [&](Config& c) { c.masks = {{.name = "m", .bits = {{input, pattern}}}}; });
  };
  refused_bits("mask 'm' asks for 'LAVA' (no input has that name) did you mean 'LAV'?", "LAVA", "xxxx_xxxx_xxxx_xxxx");
  refused_bits("pattern '01x' of LAV has 3 bits", "LAV", "01x");
  refused_bits("has 17 bits", "LAV", "0000_0000_0000_0000_0");
  refused_bits("pattern '01x2_0000_0000_0000' of LAV has other characters", "LAV", "01x2_0000_0000_0000");
}

TEST(L0tpConfig, AProblemNamesItsKey) {
  Config config;
  config.masks = {{.name = "m", .bits = {{"LAVA", ""}}}};
  EXPECT_EQ(config.check()->key, "masks.0.bits.LAVA");
  config.inputs[1].name = "RICH";
  EXPECT_EQ(config.check()->key, "inputs.1.name");
}

TEST(L0tpConfig, APatternIsReadBit15First) {
  const MaskConfig mask{.name = "m", .bits = {{"RICH", "01xx_xx11_xxxx_xxX0"}, {"MUV3", "0000000000000000"}}};
  EXPECT_EQ(mask.pattern_of("RICH").value, 0x4300);
  EXPECT_EQ(mask.pattern_of("RICH").care, 0xC301);
  EXPECT_EQ(mask.pattern_of("MUV3").value, 0);
  EXPECT_EQ(mask.pattern_of("MUV3").care, 0xFFFF);
  EXPECT_EQ(mask.pattern_of("LAV").care, 0);
}

}  // namespace
}  // namespace nanet::l0tp
