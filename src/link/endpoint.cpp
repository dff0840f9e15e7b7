// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/endpoint.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr std::string_view kTorusScheme = "torus";
constexpr std::uint32_t kTorusNodes = 64;  // of the largest torus that is simulated
constexpr const char* kExample = "write it as udp://127.0.0.1:6200";
constexpr const char* kExample6 = "write an IPv6 address in brackets: udp://[2001:db8::1]:6200";

std::uint16_t parse_port(std::string_view text, const std::string& whole) {
  unsigned port = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  if (text.empty() || rest != end || error != std::errc{} || port > 65535) {
    throw SetupError("cannot read endpoint '" + whole + "'", "'" + std::string(text) + "' is no port number 0..65535", kExample);
  }
  return static_cast<std::uint16_t>(port);
}

IpAddress look_up(const std::string& host, bool is_ipv6, const std::string& whole) {
  addrinfo hints{};
  hints.ai_family = is_ipv6 ? AF_INET6 : AF_INET;
  hints.ai_flags = is_ipv6 ? AI_NUMERICHOST : 0;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0 || found == nullptr) {
    const std::string why = error != 0 ? gai_strerror(error) : "no address";
    if (is_ipv6) throw SetupError("cannot read endpoint '" + whole + "'", "'" + host + "' is no IPv6 address: " + why, kExample6);
    throw SetupError("cannot find host '" + host + "' of endpoint '" + whole + "'", why,
                     "use an IPv4 address, or see what `getent ahostsv4 " + host + "` says");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  if (!is_ipv6) return ntohl(reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr.s_addr);
  const auto* address = reinterpret_cast<const sockaddr_in6*>(found->ai_addr);
  IpAddress::Bytes bytes;
  std::memcpy(bytes.data(), &address->sin6_addr, bytes.size());
  return IpAddress::ipv6(bytes, address->sin6_scope_id);
}

// The host without its brackets, and whether it had them.
std::pair<std::string, bool> host_of(std::string_view text, const std::string& whole) {
  if (text.empty()) {
    throw SetupError("cannot read endpoint '" + whole + "'", "the host is missing", "0.0.0.0 is any address of this machine");
  }
  if (text.front() == '[' && text.back() == ']') return {std::string(text.substr(1, text.size() - 2)), true};
  if (text.find_first_of(":[]") != std::string_view::npos) {
    throw SetupError("cannot read endpoint '" + whole + "'", "'" + std::string(text) + "' is no IPv4 address or host name",
                     kExample6);
  }
  if (text.find_first_of("/ \t") != std::string_view::npos) {
    throw SetupError("cannot read endpoint '" + whole + "'", "'" + std::string(text) + "' is no IPv4 address or host name", kExample);
  }
  return {std::string(text), false};
}

// A node of a torus has a number, and neither address nor port.
Endpoint parse_node(std::string_view text, const std::string& whole) {
  std::uint32_t node = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, node);
  if (text.empty() || rest != end || error != std::errc{} || node >= kTorusNodes) {
    throw SetupError("cannot read endpoint '" + whole + "'",
                     "'" + std::string(text) + "' is no node 0.." + std::to_string(kTorusNodes - 1), "write it as torus://3");
  }
  return {std::string(kTorusScheme), IpAddress(node), 0};
}

}  // namespace

Endpoint parse_endpoint(std::string_view text) {
  const std::string whole(text);
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos || scheme_end == 0) {
    throw SetupError("cannot read endpoint '" + whole + "'", "the scheme is missing", kExample);
  }
  const std::string_view place = text.substr(scheme_end + 3);
  if (text.substr(0, scheme_end) == kTorusScheme) return parse_node(place, whole);
  const auto colon = place.rfind(':');
  if (colon == std::string_view::npos || place.back() == ']') {
    throw SetupError("cannot read endpoint '" + whole + "'", "the port is missing", kExample);
  }
  const auto [host, is_ipv6] = host_of(place.substr(0, colon), whole);
  const std::uint16_t port = parse_port(place.substr(colon + 1), whole);
  return Endpoint{std::string(text.substr(0, scheme_end)), look_up(host, is_ipv6, whole), port};
}

std::optional<config::Problem> refuse_group(const std::string& link, const Endpoint& listen) {
  if (!listen.address.is_multicast()) return std::nullopt;
  return config::Problem{"endpoint", link + " cannot listen on " + to_string(listen),
                         "it is a multicast group, and " + listen.scheme + " joins none",
                         "use udp:// or xdp://, or let the senders send to an address of this machine"};
}

void refuse_ipv6(const std::string& link, const Endpoint& endpoint) {
  if (!endpoint.address.is_ipv6()) return;
  throw SetupError("link " + link + " cannot use " + to_string(endpoint), "it knows IPv4 only", "use udp://, or an IPv4 address");
}

std::string to_string(const IpAddress& address) {
  if (!address.is_ipv6()) {
    const std::uint32_t a = address.ipv4();
    return std::to_string(a >> 24) + '.' + std::to_string((a >> 16) & 255) + '.' + std::to_string((a >> 8) & 255) + '.' +
           std::to_string(a & 255);
  }
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET6, address.bytes().data(), text, sizeof text);
  if (address.scope() == 0) return text;
  char name[IF_NAMESIZE] = {};
  const bool is_known = ::if_indextoname(address.scope(), name) != nullptr;
  return std::string(text) + '%' + (is_known ? std::string(name) : std::to_string(address.scope()));
}

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.scheme == kTorusScheme) return endpoint.scheme + "://" + std::to_string(endpoint.address.ipv4());
  const std::string host = to_string(endpoint.address);
  return endpoint.scheme + "://" + (endpoint.address.is_ipv6() ? '[' + host + ']' : host) + ':' + std::to_string(endpoint.port);
}

}  // namespace nanet::link
