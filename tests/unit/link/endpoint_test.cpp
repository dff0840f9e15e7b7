// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/endpoint.hpp"

#include <gtest/gtest.h>

#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

std::string problem_of(std::string_view text) {
  try {
    parse_endpoint(text);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(Endpoint, ReadsAddressAndPort) {
  EXPECT_EQ(parse_endpoint("udp://127.0.0.1:6200"), (Endpoint{"udp", 0x7F000001, 6200}));
  EXPECT_EQ(parse_endpoint("udp://0.0.0.0:0"), (Endpoint{"udp", 0, 0}));
  EXPECT_EQ(parse_endpoint("xdp://10.1.2.255:65535"), (Endpoint{"xdp", 0x0A0102FF, 65535}));
}

TEST(Endpoint, LooksUpNames) { EXPECT_EQ(parse_endpoint("udp://localhost:7"), (Endpoint{"udp", 0x7F000001, 7})); }

TEST(Endpoint, ComesBackFromText) {
  const Endpoint endpoint{"udp", 0xC0A80164, 6201};
  EXPECT_EQ(to_string(endpoint), "udp://192.168.1.100:6201");
  EXPECT_EQ(parse_endpoint(to_string(endpoint)), endpoint);
}

TEST(Endpoint, SaysWhatIsWrong) {
  EXPECT_NE(problem_of("127.0.0.1:6200").find("the scheme is missing"), std::string::npos);
  EXPECT_NE(problem_of("://127.0.0.1:6200").find("the scheme is missing"), std::string::npos);
  EXPECT_NE(problem_of("udp://127.0.0.1").find("the port is missing"), std::string::npos);
  EXPECT_NE(problem_of("udp://:6200").find("the host is missing"), std::string::npos);
  EXPECT_NE(problem_of("udp://127.0.0.1:").find("no port number"), std::string::npos);
  EXPECT_NE(problem_of("udp://127.0.0.1:65536").find("'65536' is no port number"), std::string::npos);
  EXPECT_NE(problem_of("udp://127.0.0.1:-1").find("'-1' is no port number"), std::string::npos);
  EXPECT_NE(problem_of("udp://127.0.0.1:62x").find("'62x' is no port number"), std::string::npos);
  EXPECT_NE(problem_of("udp://[::1]:6200").find("no IPv4 address"), std::string::npos);
  EXPECT_NE(problem_of("udp://no-such-host.invalid:1").find("cannot find host 'no-such-host.invalid'"), std::string::npos);
}

TEST(Endpoint, RefusesToListenForAGroupThatItDoesNotJoin) {
  for (const char* text : {"udp://224.0.0.1:6200", "xdp://239.255.255.255:6200"}) {
    EXPECT_THROW(refuse_multicast("boards", parse_endpoint(text)), SetupError) << text;
  }
  for (const char* text : {"udp://223.255.255.255:6200", "udp://240.0.0.1:6200", "udp://0.0.0.0:6200"}) {
    EXPECT_NO_THROW(refuse_multicast("boards", parse_endpoint(text))) << text;
  }
}

}  // namespace
}  // namespace nanet::link
