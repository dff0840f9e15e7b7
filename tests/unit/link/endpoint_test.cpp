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

TEST(Endpoint, IsANodeOfATorus) {
  EXPECT_EQ(parse_endpoint("torus://0"), (Endpoint{"torus", 0, 0}));
  EXPECT_EQ(parse_endpoint("torus://63"), (Endpoint{"torus", 63, 0}));
  EXPECT_EQ(to_string(parse_endpoint("torus://63")), "torus://63");
  EXPECT_EQ(problem_of("torus://64"), "cannot read endpoint 'torus://64' ('64' is no node 0..63) write it as torus://3");
  for (const char* wrong : {"torus://", "torus://-1", "torus://3:6200", "torus://10.0.0.1"})
    EXPECT_NE(problem_of(wrong), "") << wrong;
}

TEST(Endpoint, IsOfIpv6InBrackets) {
  const Endpoint endpoint = parse_endpoint("udp://[2001:DB8:0:0::1]:6200");
  EXPECT_TRUE(endpoint.address.is_ipv6());
  EXPECT_EQ(endpoint.address.bytes(), (IpAddress::Bytes{0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(to_string(endpoint), "udp://[2001:db8::1]:6200");
  EXPECT_EQ(parse_endpoint(to_string(endpoint)), endpoint);
  EXPECT_EQ(to_string(parse_endpoint("udp://[fe80::1%lo]:7")), "udp://[fe80::1%lo]:7");
  EXPECT_NE(parse_endpoint("udp://[fe80::1%lo]:7"), parse_endpoint("udp://[fe80::1]:7"));
  EXPECT_TRUE(parse_endpoint("udp://[::]:7").address.is_any());
  EXPECT_NE(parse_endpoint("udp://[::]:7"), parse_endpoint("udp://0.0.0.0:7"));
}

TEST(IpAddress, KnowsNetworksAndGroups) {
  const auto address = [](const std::string& text) { return parse_endpoint("udp://" + text + ":0").address; };
  EXPECT_TRUE(address("10.0.1.7").shares_prefix(0x0A000100, 24));
  EXPECT_FALSE(address("10.0.1.7").shares_prefix(0x0A000000, 24));
  EXPECT_TRUE(address("10.0.1.7").shares_prefix(0xFFFFFFFF, 0));
  EXPECT_TRUE(address("[2001:db8:8000::1]").shares_prefix(address("[2001:db8:ffff::]"), 33));
  EXPECT_FALSE(address("[2001:db8:8000::1]").shares_prefix(address("[2001:db8:7fff::]"), 33));
  EXPECT_TRUE(address("[2001:db8::1]").shares_prefix(address("[2001:db8::1]"), 128));
  EXPECT_FALSE(address("[2001:db8::1]").shares_prefix(address("[2001:db8::]"), 128));
  EXPECT_FALSE(address("10.0.0.1").shares_prefix(address("[::]"), 0)) << "another family";
  for (const char* text : {"224.0.0.1", "239.255.255.255", "[ff02::1]"}) EXPECT_TRUE(address(text).is_multicast()) << text;
  for (const char* text : {"223.255.255.255", "240.0.0.0", "[fe80::1]"}) EXPECT_FALSE(address(text).is_multicast()) << text;
  for (const char* text : {"232.0.0.1", "[ff3e::1]", "[ff35::1]"}) EXPECT_TRUE(address(text).is_source_specific()) << text;
  for (const char* text : {"239.0.0.1", "[ff02::1]", "[ff3e:30::1]"}) EXPECT_FALSE(address(text).is_source_specific()) << text;
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
  EXPECT_NE(problem_of("udp://::1:6200").find("write an IPv6 address in brackets"), std::string::npos);
  EXPECT_NE(problem_of("udp://[127.0.0.1]:6200").find("'127.0.0.1' is no IPv6 address"), std::string::npos);
  EXPECT_NE(problem_of("udp://[2001:db8::g]:6200").find("is no IPv6 address"), std::string::npos);
  EXPECT_NE(problem_of("udp://[]:6200").find("is no IPv6 address"), std::string::npos);
  EXPECT_NE(problem_of("udp://[::1]").find("the port is missing"), std::string::npos);
  EXPECT_NE(problem_of("udp://[::1:6200").find("in brackets"), std::string::npos);
  EXPECT_NE(problem_of("udp://no-such-host.invalid:1").find("cannot find host 'no-such-host.invalid'"), std::string::npos);
}

TEST(Endpoint, RefusesToListenForAGroupThatItDoesNotJoin) {
  for (const char* text : {"udp://224.0.0.1:6200", "xdp://239.255.255.255:6200"}) {
    EXPECT_TRUE(refuse_group("link boards", parse_endpoint(text))) << text;
  }
  for (const char* text : {"udp://223.255.255.255:6200", "udp://240.0.0.1:6200", "udp://0.0.0.0:6200"}) {
    EXPECT_FALSE(refuse_group("link boards", parse_endpoint(text))) << text;
  }
}

}  // namespace
}  // namespace nanet::link
