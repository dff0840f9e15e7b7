// SPDX-License-Identifier: Apache-2.0
#include "rdma/frame_socket.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace nanet::rdma::detail {
namespace {

constexpr std::size_t kHeadBytes = 4;
constexpr int kBacklog = 4096;  // the kernel's limit of these holds: a good client is not turned away while strangers come
// A machine that is gone says nothing: probed after 5 s, given up 5 s later.
constexpr int kKeepIdleS = 5, kKeepEachS = 1, kKeepCount = 5;

int new_socket(int family) { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

void set(int descriptor, int level, int option, int value) { ::setsockopt(descriptor, level, option, &value, sizeof value); }

// A socket whose process is gone refuses connections.
void remove_left_over(const SocketAddress& at, const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return;
  const int probe = new_socket(AF_UNIX);
  if (probe < 0) return;
  if (::connect(probe, at.get(), at.bytes) != 0 && errno == ECONNREFUSED) ::unlink(path.c_str());
  ::close(probe);
}

}  // namespace

FrameSocket::FrameSocket(int connected) : descriptor_(connected) {
  set(connected, IPPROTO_TCP, TCP_NODELAY, 1);  // of a Unix socket these fail, and are not needed
  set(connected, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(connected, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleS);
  set(connected, IPPROTO_TCP, TCP_KEEPINTVL, kKeepEachS);
  set(connected, IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
}

void FrameSocket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

bool FrameSocket::send(std::span<const std::byte> message) {
  std::vector<std::byte> frame(kHeadBytes + message.size());
  const auto bytes = static_cast<std::uint32_t>(message.size());
  std::memcpy(frame.data(), &bytes, sizeof bytes);
  std::copy(message.begin(), message.end(), frame.begin() + kHeadBytes);  // of an empty message too, which may be no memory at all
  return ::send(descriptor_, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(frame.size());
}

FrameSocket::Got FrameSocket::receive(std::size_t bytes_max, std::vector<std::byte>& frame) {
  for (;;) {
    std::uint32_t bytes = 0;
    if (waiting_.size() >= kHeadBytes) {
      std::memcpy(&bytes, waiting_.data(), sizeof bytes);
      if (bytes > bytes_max) return Got::too_long;
      if (waiting_.size() >= kHeadBytes + bytes) {
        const auto begin = waiting_.begin() + kHeadBytes, end = begin + bytes;
        frame.assign(begin, end);
        waiting_.erase(waiting_.begin(), end);
        return Got::frame;
      }
    }
    std::array<std::byte, 4096> piece;
    const std::size_t room = kHeadBytes + bytes_max - waiting_.size();
    const ssize_t got = ::recv(descriptor_, piece.data(), std::min(room, piece.size()), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Got::nothing;
    if (got <= 0) return Got::gone;
    waiting_.insert(waiting_.end(), piece.begin(), piece.begin() + got);
  }
}

int listen_at(const std::string& address, std::uint16_t& port) {
  SocketAddress at = resolve(address, port, AI_PASSIVE | AI_NUMERICHOST);
  const auto refuse = [&](int error) {
    throw SetupError("cannot listen on " + place_text(address, port), std::strerror(error),
                     is_path(address) ? "choose a path in a folder that you may write to, where nothing lies"
                                      : "choose an address of this machine and a free port");
  };
  const int descriptor = new_socket(at.family());
  if (descriptor < 0) refuse(errno);
  if (is_path(address)) {
    remove_left_over(at, address);
    ::fchmod(descriptor, S_IRUSR | S_IWUSR);  // the path gets these rights
  } else {
    set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);  // else a target that is started again would wait a minute for its port
    if (at.family() == AF_INET6) set(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  }
  if (::bind(descriptor, at.get(), at.bytes) != 0 || ::listen(descriptor, kBacklog) != 0 ||
      ::getsockname(descriptor, at.get(), &(at.bytes = sizeof at.storage)) != 0) {
    const int error = errno;
    ::close(descriptor);
    refuse(error);
  }
  port = port_of(at);
  return descriptor;
}

int begin_connection(const SocketAddress& to) {
  const int descriptor = new_socket(to.family());
  if (descriptor < 0 || ::connect(descriptor, to.get(), to.bytes) == 0 || errno == EINPROGRESS) return descriptor;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return -1;
}

int connection_error(int descriptor) {
  pollfd writable{descriptor, POLLOUT, 0};
  if (::poll(&writable, 1, 0) != 1) return EINPROGRESS;
  int error = 0;
  socklen_t bytes = sizeof error;
  ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error;
}

}  // namespace nanet::rdma::detail
