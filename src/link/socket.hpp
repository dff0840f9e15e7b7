// SPDX-License-Identifier: Apache-2.0
// What the receiving and the sending half of the UDP link share: an owned socket, its set-up, and counters read by any thread.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "link/tally.hpp"
#include "nanet/link/udp.hpp"

namespace nanet::link {

class Socket {
 public:
  Socket();  // IPv4, UDP, non-blocking. Throws SetupError
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;

  int fd() const { return fd_; }
  bool set(int level, int option, int value) const;
  int get(int level, int option) const;  // -1: the kernel does not know it

 private:
  int fd_;
};

enum class Direction : std::uint8_t { receive, send };

// Asks for a kernel buffer of wanted_bytes, by force where that is permitted; a smaller one gets a note.
void size_buffer(const Socket& socket, Direction direction, std::uint32_t wanted_bytes, const std::string& link_name,
                 std::vector<std::string>& notes);

// Only packets of this interface come in, and all go out through it; empty: any. Throws SetupError.
void bind_to_interface(const Socket& socket, const std::string& interface, const std::string& link_name);

// Joins the group for this socket, on the interface or else where the route to it leads; the kernel leaves it when the socket is closed. From then
// on the socket gets packets of groups that it joined itself, and of the senders joined. Throws SetupError.
void join_group(const Socket& socket, const Endpoint& group, const GroupJoin& join, const std::string& interface,
                const std::string& link_name);

// For packets that this socket sends to groups.
void set_group_sending(const Socket& socket, const GroupSending& sending);

sockaddr_in to_sockaddr(const Endpoint& endpoint);
Endpoint from_sockaddr(const sockaddr_in& address);

// Empties the socket's error queue; returns how many notices said that a peer is not there.
std::uint64_t drain_refusals(int fd);

// Sleeps until one of the poll events is there, at most timeout_ns; true: it is.
bool wait_for(int fd, short events, std::uint64_t timeout_ns);

}  // namespace nanet::link
