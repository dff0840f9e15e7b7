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
  EXPECT_EQ(Config{}.inputs.size(), kInputsMax);
  EXPECT_EQ(Config{}.cell_ticks(), 64u);
  EXPECT_EQ(Config{}.memory_ticks(), 1u << 20);
}

TEST(L0tpConfig, WhatCannotWorkIsRefused) {
  const auto refused = [](const char* part, auto change) {
    EXPECT_NE(problem_of(change).find(part), std::string::npos) << part << " not in: " << problem_of(change);
  };
  refused("0 inputs", [](Config& c) { c.inputs.clear(); });
  refused("8 inputs", [](Config& c) { c.inputs.push_back({0x77}); });
  refused("no input 7", [](Config& c) { c.reference_index = 7; });
  refused("source ID 28 twice", [](Config& c) { c.inputs[3].source_id = wire::kSourceRich; });
  refused("time cut of 512", [](Config& c) { c.inputs[3].time_cut_ticks = 512; });
  refused("4 fine time bits", [](Config& c) { c.fine_time_bits = 4; });
  refused("read lag of 262145", [](Config& c) {
    c.fine_time_bits = 3;
    c.read_lag_ticks = 262'145;
  });
  refused("17 masks", [](Config& c) { c.masks.resize(17); });
  refused("downscaling 0", [](Config& c) { c.masks = {{.name = "m", .downscaling = 0}}; });
  refused("does not care", [](Config& c) { c.masks = {{.name = "m", .value = {2}, .care = {1}}}; });
  refused("input 1", [](Config& c) {
    c.inputs.resize(1);
    c.masks = {{.name = "m", .care = {0, 1}}};
  });
}

}  // namespace
}  // namespace nanet::l0tp
