// SPDX-License-Identifier: Apache-2.0
#include "nanet/flow/router.hpp"

#include <gtest/gtest.h>

#include <map>

#include "nanet/setup_error.hpp"

namespace nanet::flow {
namespace {

TEST(Router, FindsWhatIsThereAndNothingElse) {
  const Router router({{0x24, 0, 0, 1}, {0x24, 3, 1, 1}, {0, 0, 2, 0}, {255, 255, 3, 2}});
  std::map<int, std::uint16_t> expected = {{0x2400, 0}, {0x2403, 1}, {0, 2}, {0xffff, 3}};
  for (int ids = 0; ids < 65536; ++ids) {
    const Route* route = router.find(static_cast<std::uint8_t>(ids >> 8), static_cast<std::uint8_t>(ids));
    const auto found = expected.find(ids);
    ASSERT_EQ(route != nullptr, found != expected.end()) << ids;
    if (route == nullptr) continue;
    EXPECT_EQ(route->source, found->second);
    EXPECT_EQ(route->source_id * 256 + route->source_sub_id, ids);
  }
  EXPECT_EQ(router.find(0xff, 0xff)->clop, 2);
  EXPECT_EQ(router.routes().size(), 4u);
}

TEST(Router, CanBeEmptyOrHoldManySources) {
  EXPECT_EQ(Router({}).find(0, 0), nullptr);
  std::vector<Route> routes;
  for (unsigned k = 0; k < 32768; ++k) {
    routes.push_back({static_cast<std::uint8_t>(k >> 7), static_cast<std::uint8_t>(2 * k), static_cast<std::uint16_t>(k), 0});
  }
  const Router router(std::move(routes));
  EXPECT_EQ(router.find(200, 100)->source, 200 * 128 + 50);
  EXPECT_EQ(router.find(200, 101), nullptr);
}

TEST(Router, RefusesAmbiguousRoutes) {
  EXPECT_THROW(Router({{1, 2, 0, 0}, {1, 2, 1, 0}}), SetupError) << "the same IDs";
  EXPECT_THROW(Router({{1, 2, 0, 0}, {1, 3, 0, 0}}), SetupError) << "the same source index";
  EXPECT_THROW(Router({{1, 2, 0x8000, 0}}), SetupError) << "the bit is the run start's";
}

}  // namespace
}  // namespace nanet::flow
