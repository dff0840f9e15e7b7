// SPDX-License-Identifier: Apache-2.0
#include "nanet/base/build_info.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace nanet::base {
namespace {

TEST(BuildInfo, SaysVersionCommitAndCompiler) {
  EXPECT_EQ(kBuildInfo.name, std::string("nanet ") + kBuildInfo.version);
  EXPECT_TRUE(std::regex_match(kBuildInfo.version, std::regex("[0-9]+[.][0-9]+[.][0-9]+(-[0-9]+-g[0-9a-f]+)?")))
      << kBuildInfo.version;
  EXPECT_TRUE(std::regex_match(kBuildInfo.commit, std::regex("[0-9a-f]{12}|unknown"))) << kBuildInfo.commit;
  EXPECT_TRUE(std::regex_search(kBuildInfo.compiler, std::regex("^(g|clang)[+][+] [0-9]+[.]"))) << kBuildInfo.compiler;
  EXPECT_STRNE(kBuildInfo.build_type, "");
}

}  // namespace
}  // namespace nanet::base
