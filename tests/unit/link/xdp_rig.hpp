// SPDX-License-Identifier: Apache-2.0
// What the tests of the link over AF_XDP share. What a machine does not allow is said, test by test.
#pragma once

#include <iostream>
#include <string>
#include <vector>

#include "nanet/link/xdp.hpp"
#include "nanet/setup_error.hpp"
#include "xdp_hosts.hpp"

namespace nanet::link::test {

constexpr std::uint16_t kPort = 6200;

inline bool cannot_run() {
  static const std::string why = has_xdp() ? why_no_hosts() : "built without AF_XDP";
  if (!why.empty()) std::cerr << "NOT RUN: a test of AF_XDP (" << why << ")\n";
  return !why.empty();
}

inline XdpConfig listening_here(std::uint16_t port = kPort) {
  XdpConfig config;
  config.listen = Endpoint{"xdp", kHere, port};
  config.huge_pages = false;
  config.frame_count = 1024;
  return config;
}

inline std::string error_of(const XdpConfig& config) {
  try {
    open_xdp(config);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

inline void expect_says(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

inline bool says(const std::vector<std::string>& notes, const std::string& part) {
  for (const std::string& note : notes) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}

inline std::string attached() { return output_of("ip -d link show nanet0 | grep -o 'prog/xdp.*\\|xdpgeneric'"); }

inline void expect_in_order(const std::vector<Got>& got, std::uint32_t first, std::size_t count, std::size_t bytes) {
  ASSERT_EQ(got.size(), count);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].data, payload(first + static_cast<std::uint32_t>(i), bytes)) << i;
    EXPECT_EQ(got[i].packet.peer_address, kThere);
    EXPECT_EQ(got[i].packet.peer_port, 5000);
    EXPECT_EQ(got[i].packet.flags, 0);
  }
}

}  // namespace nanet::link::test
