// SPDX-License-Identifier: Apache-2.0
// What the tests of a whole engine share: sockets without any of nanet's code, and a small configuration.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "na62/protocols.hpp"
#include "na62/rich_processor.hpp"
#include "nanet/engine/engine.hpp"

namespace nanet::engine::test {

// A socket on the loopback interface with a port of the kernel's choice, without any of nanet's code.
class PlainSocket {
 public:
  PlainSocket() : fd_(socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const int bytes = 4 << 20;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  ~PlainSocket() { close(fd_); }
  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    return ntohs(address.sin_port);
  }
  void send(std::uint16_t port, std::span<const std::byte> payload) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(sendto(fd_, payload.data(), payload.size(), 0, reinterpret_cast<sockaddr*>(&address), sizeof address),
              static_cast<ssize_t>(payload.size()));
  }
  // Bytes of the next packet, 0 when none comes in time.
  std::size_t receive(std::span<std::byte> room, int timeout_ms) {
    pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, timeout_ms) <= 0) return 0;
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const ssize_t bytes = recvfrom(fd_, room.data(), room.size(), 0, reinterpret_cast<sockaddr*>(&from), &length);
    from_port_ = ntohs(from.sin_port);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  }

  // Of the packet that receive() gave last.
  std::uint16_t from_port() const { return from_port_; }

 private:
  int fd_;
  std::uint16_t from_port_ = 0;
};

inline std::uint16_t free_port() { return PlainSocket().port(); }

// An engine with a ring processor, for tests to change. made() is what the engine takes, once.
struct NodeConfig : EngineConfig {
  na62::RichConfig rich{.answers = na62::AnswerConfig{}};

  EngineConfig made(na62::GpuFactory make_gpu = na62::make_event_processor) const {
    EngineConfig config = *this;
    config.processor = std::make_shared<na62::RichProcessor>(rich, std::move(make_gpu));
    return config;
  }
};

inline const na62::RichProcessor& rich_of(const Engine& engine) {
  return dynamic_cast<const na62::RichProcessor&>(*engine.config().processor);
}

inline NodeConfig config_for(std::uint16_t port, std::uint16_t answer_port, Topology topology) {
  NodeConfig config;
  config.topology = topology;
  config.waiting = {.spin = 100, .sleep_us = 200};
  LinkConfig& link = config.links.emplace_back();
  link.name = "boards";
  link.protocol = &na62::kMgp;
  link.endpoint = "udp://127.0.0.1:" + std::to_string(port);
  link.memory_region.huge_pages = false;
  link.memory_region.buffer_count = 16;
  link.socket_buffer_bytes = 4 << 20;
  link.sources.resize(1);
  config.send = SendConfig{.endpoints = {"udp://127.0.0.1:" + std::to_string(answer_port)}};
  return config;
}

}  // namespace nanet::engine::test
