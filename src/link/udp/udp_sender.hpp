// SPDX-License-Identifier: Apache-2.0
// The sending half of the UDP link: packets of one size and destination become one message of the kernel, messages of one destination one
// system call (docs/design/links.md).
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "link/socket.hpp"

namespace nanet::link {

class UdpSender {
 public:
  // listen_socket: the one to send from with SourcePort::listen, else not used.
  UdpSender(const UdpConfig& config, const Socket* listen_socket, std::vector<std::string>& notes);

  void send(std::span<const TxPacket> packets);
  void add_stats(LinkStats& stats) const;
  void add_notes(std::vector<std::string>& notes) const;
  std::map<std::string, std::uint64_t> refusals() const;

 private:
  static constexpr std::uint32_t kMessages = 64;          // of one system call
  static constexpr std::uint32_t kPieces = 1024;          // of one message, the kernel's limit; shared by the messages of a call
  static constexpr std::uint32_t kSegments = 64;          // packets of one message, the limit of Linux before 6.9
  static constexpr std::uint32_t kMessageBytes = 65'507;  // IPv4's largest UDP payload; IPv6's is larger

  struct Destination {
    std::optional<Socket> own;
    int fd = -1;
    SocketAddress address;
    bool named = false;                               // the socket is not connected: each message carries the address
    std::atomic<std::uint32_t> segment_bytes_max{0};  // longest packet that may share a message; 0: none may
    std::atomic<bool> refused_segments{false};
    Tally refused;
    std::string text;
  };

  // Packets of one message.
  struct Group {
    std::uint32_t packet_count;
    std::uint32_t bytes;
    std::uint32_t segment_bytes;
  };

  void open(Destination& destination, const Endpoint& endpoint, const UdpConfig& config, const Socket* listen_socket,
            std::vector<std::string>& notes);
  std::size_t fill(std::span<const TxPacket> packets);
  Group group(std::span<const TxPacket> packets, const Destination& destination) const;
  void write_message(std::span<const TxPacket> packets, const Group& group, Destination& destination);
  std::size_t flush(std::span<const TxPacket> packets, Destination& destination);
  enum class Verdict : std::uint8_t { again, drop_message, drop_all, regroup };
  Verdict judge(Destination& destination, const Group& group, int error);
  void sent(const Group& group);
  void dropped(std::span<const TxPacket> packets);

  std::string name_;
  std::uint64_t tx_wait_ns_;
  std::uint64_t wait_left_ns_ = 0;  // of this call of send()
  std::uint32_t attempts_ = 0;      // of the message that failed last
  std::vector<Destination> destinations_;

  std::uint32_t message_count_ = 0;
  std::uint32_t piece_count_ = 0;
  std::array<mmsghdr, kMessages> headers_{};
  std::array<Group, kMessages> groups_{};
  std::array<iovec, kPieces> pieces_{};
  struct alignas(16) Control {
    std::array<std::byte, 32> bytes;
  };
  std::array<Control, kMessages> controls_{};

  Tally packets_, bytes_, calls_, dropped_;
};

}  // namespace nanet::link
