// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/sender_filter.hpp"

#include <gtest/gtest.h>

#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

TEST(SenderNetworks, AnAddressAndNetworks) {
  const auto networks = sender_networks({"10.0.0.7", "10.0.1.0/24", "0.0.0.0/0"});
  ASSERT_EQ(networks.size(), 3u);
  EXPECT_EQ(networks[0].address, 0x0A000007u);
  EXPECT_EQ(networks[0].prefix_bits, 32);
  EXPECT_TRUE(networks[1].holds(0x0A0001FFu));
  EXPECT_FALSE(networks[1].holds(0x0A000201u));
  EXPECT_TRUE(networks[2].holds(0xC0A80001u));
}

TEST(SenderNetworks, WhatIsNoneIsRefused) {
  for (const char* text : {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8x", "/8", "", "10.0.0.0/-1", "10.0.0.0/256"}) {
    EXPECT_THROW(sender_networks({text}), SetupError) << text;
  }
}

}  // namespace
}  // namespace nanet::engine
