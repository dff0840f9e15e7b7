// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/endpoint.hpp"

#include <arpa/inet.h>
#include <netdb.h>

#include <charconv>
#include <memory>

#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr const char* kExample = "write it as udp://127.0.0.1:6200";

std::uint16_t parse_port(std::string_view text, const std::string& whole) {
  unsigned port = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  if (text.empty() || rest != end || error != std::errc{} || port > 65535) {
    throw SetupError("cannot read endpoint '" + whole + "'", "'" + std::string(text) + "' is no port number 0..65535", kExample);
  }
  return static_cast<std::uint16_t>(port);
}

std::uint32_t look_up(const std::string& host, const std::string& whole) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0 || found == nullptr) {
    throw SetupError("cannot find host '" + host + "' of endpoint '" + whole + "'", error != 0 ? gai_strerror(error) : "no address",
                     "use an IPv4 address, or see what `getent ahostsv4 " + host + "` says");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  return ntohl(reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr.s_addr);
}

}  // namespace

Endpoint parse_endpoint(std::string_view text) {
  const std::string whole(text);
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos || scheme_end == 0) {
    throw SetupError("cannot read endpoint '" + whole + "'", "the scheme is missing", kExample);
  }
  const std::string_view place = text.substr(scheme_end + 3);
  const auto colon = place.rfind(':');
  if (colon == std::string_view::npos) {
    throw SetupError("cannot read endpoint '" + whole + "'", "the port is missing", kExample);
  }
  const std::string host(place.substr(0, colon));
  if (host.empty()) {
    throw SetupError("cannot read endpoint '" + whole + "'", "the host is missing", "0.0.0.0 is any address of this machine");
  }
  if (host.find_first_of(":/[] \t") != std::string::npos) {
    throw SetupError("cannot read endpoint '" + whole + "'", "'" + host + "' is no IPv4 address or host name", kExample);
  }
  const std::uint16_t port = parse_port(place.substr(colon + 1), whole);
  return Endpoint{std::string(text.substr(0, scheme_end)), look_up(host, whole), port};
}

void refuse_multicast(const std::string& link, const Endpoint& listen) {
  if (!is_multicast(listen.address)) return;
  throw SetupError("link " + link + " cannot listen on " + to_string(listen),
                   "it is a multicast group, and " + listen.scheme + " joins none",
                   "use udp:// or xdp://, or let the senders send to an address of this machine");
}

std::string to_string(const Endpoint& endpoint) {
  const std::uint32_t a = endpoint.address;
  return endpoint.scheme + "://" + std::to_string(a >> 24) + '.' + std::to_string((a >> 16) & 255) + '.' +
         std::to_string((a >> 8) & 255) + '.' + std::to_string(a & 255) + ':' + std::to_string(endpoint.port);
}

}  // namespace nanet::link
