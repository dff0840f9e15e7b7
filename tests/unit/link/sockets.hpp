// SPDX-License-Identifier: Apache-2.0
// Plain sockets and small tools for the link tests: an independent other side, with the system calls written out.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "nanet/link/link.hpp"
#include "nanet/link/udp.hpp"

namespace nanet::link::test {

using Bytes = std::vector<std::byte>;

// Bytes that tell packet `id` from every other one.
inline Bytes payload(std::uint32_t id, std::size_t bytes) {
  Bytes data(bytes);
  std::uint32_t x = id * 2654435761u + 12345u;
  for (auto& b : data) {
    x = x * 1664525u + 1013904223u;
    b = static_cast<std::byte>(x >> 24);
  }
  return data;
}

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class PlainSocket {
 public:
  explicit PlainSocket(std::uint16_t bind_port = 0) : fd_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    const sockaddr_in address = loopback(bind_port);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~PlainSocket() { ::close(fd_); }
  PlainSocket(const PlainSocket&) = delete;
  PlainSocket& operator=(const PlainSocket&) = delete;

  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
    return ntohs(address.sin_port);
  }

  void send(std::uint16_t port, const Bytes& data) {
    const sockaddr_in to = loopback(port);
    ASSERT_EQ(::sendto(fd_, data.data(), data.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(data.size()));
  }

  // One message that the kernel may carry as a whole: packets of segment_bytes, the last may be shorter.
  void send_super(std::uint16_t port, const Bytes& data, std::uint16_t segment_bytes) {
    const int value = segment_bytes;
    ASSERT_EQ(::setsockopt(fd_, SOL_UDP, 103 /* UDP_SEGMENT */, &value, sizeof value), 0);
    send(port, data);
    const int off = 0;
    ASSERT_EQ(::setsockopt(fd_, SOL_UDP, 103, &off, sizeof off), 0);
  }

  // The next packet, with the port it came from; nothing when none comes within a second.
  std::optional<std::pair<Bytes, std::uint16_t>> receive(int timeout_ms = 1000) {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, timeout_ms) <= 0) {
      return std::nullopt;
    }
    Bytes data(65536);
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const ssize_t bytes = ::recvfrom(fd_, data.data(), data.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &length);
    if (bytes < 0) {
      return std::nullopt;
    }
    data.resize(static_cast<std::size_t>(bytes));
    return std::pair{data, ntohs(from.sin_port)};
  }

 private:
  int fd_;
};

// A packet as it was received, copied out.
struct Got {
  Bytes data;
  RxPacket packet;
};

// Receives until `count` packets are there or nothing comes for a second, passing the rest of one buffer as the room.
class Collector {
 public:
  explicit Collector(std::size_t buffer_bytes = std::size_t{1} << 20, std::size_t entries = 512)
      : buffer_(buffer_bytes / 8), entries_(entries) {}

  std::vector<Got> collect(Link& link, std::size_t count) {
    std::vector<Got> got;
    while (got.size() < count) {
      const std::size_t before = got.size();
      receive_once(link, got);
      if (got.size() == before) {
        link.wait(1'000'000'000);
        receive_once(link, got);
        if (got.size() == before) {
          break;
        }
      }
    }
    return got;
  }

  void receive_once(Link& link, std::vector<Got>& got) {
    std::span<std::byte> all = std::as_writable_bytes(std::span(buffer_));
    if (all.size() - used_ < link.min_room_bytes()) {
      used_ = 0;
    }
    const std::span<std::byte> room = all.subspan(used_);
    const RxBatch batch = link.receive(room, entries_, 0);
    ASSERT_LE(batch.bytes_used, room.size());
    std::size_t end = 0;
    for (const RxPacket& packet : std::span(entries_).first(batch.packet_count)) {
      ASSERT_LE(packet.offset + std::size_t{packet.bytes}, batch.bytes_used);
      ASSERT_GE(packet.offset, end);
      end = packet.offset + std::size_t{packet.bytes};
      Got one{Bytes(room.begin() + packet.offset, room.begin() + packet.offset + packet.bytes), packet};
      one.packet.offset += static_cast<std::uint32_t>(used_);  // from the start of the buffer
      got.push_back(std::move(one));
    }
    used_ += batch.bytes_used;
  }

 private:
  std::vector<std::uint64_t> buffer_;  // 8-byte aligned
  std::vector<RxPacket> entries_;
  std::size_t used_ = 0;
};

inline UdpConfig listening(Coalesce gro = Coalesce::on) {
  UdpConfig config;
  config.listen = Endpoint{"udp", INADDR_LOOPBACK, 0};
  config.gro = gro;
  return config;
}

inline UdpConfig sending_to(std::vector<std::uint16_t> ports) {
  UdpConfig config;
  for (const auto port : ports) {
    config.destinations.push_back(Endpoint{"udp", INADDR_LOOPBACK, port});
  }
  return config;
}

}  // namespace nanet::link::test
