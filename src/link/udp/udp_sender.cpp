// SPDX-License-Identifier: Apache-2.0
#include "link/udp/udp_sender.hpp"

#include <linux/filter.h>
#include <netinet/udp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nanet/flow/clock.hpp"
#include "nanet/setup_error.hpp"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace nanet::link {
namespace {

constexpr FamilyOption kTellRefusals{IP_RECVERR, IPV6_RECVERR};

// What a peer might send back to a socket that no one reads must not fill kernel memory.
void refuse_input(const Socket& socket) {
  sock_filter drop_all{};
  drop_all.code = BPF_RET | BPF_K;
  const sock_fprog program{1, &drop_all};
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

}  // namespace

UdpSender::UdpSender(const UdpConfig& config, const Socket* listen_socket, std::vector<std::string>& notes)
    : name_(config.name), tx_wait_ns_(std::uint64_t{config.tx_wait_us} * 1000u), destinations_(config.destinations.size()) {
  if (config.source_port == SourcePort::listen) {
    size_buffer(*listen_socket, Direction::send, config.tx_socket_bytes, config.name, notes);
    set(*listen_socket, config.listen->address, kTellRefusals, 1);
    set_group_sending(*listen_socket, config.listen->address, config.group_sending);
  }
  for (std::size_t i = 0; i < destinations_.size(); ++i) {
    open(destinations_[i], config.destinations[i], config, listen_socket, notes);
  }
}

void UdpSender::open(Destination& destination, const Endpoint& endpoint, const UdpConfig& config, const Socket* listen_socket,
                     std::vector<std::string>& notes) {
  const std::uint32_t header_bytes = endpoint.address.is_ipv6() ? 48 : 28;  // with UDP's
  destination.text = to_string(endpoint);
  destination.address = SocketAddress(endpoint);
  std::uint32_t segment_bytes_max = kMessageBytes;
  if (config.source_port == SourcePort::listen) {
    destination.fd = listen_socket->fd();
    destination.named = true;
  } else {
    const Socket& socket = destination.own.emplace(family_of(endpoint.address));
    destination.fd = socket.fd();
    std::vector<std::string> size_notes;
    size_buffer(socket, Direction::send, config.tx_socket_bytes, config.name, size_notes);
    if (notes.empty() || size_notes.empty() || notes.back() != size_notes.back()) {  // once is enough for all destinations
      notes.insert(notes.end(), size_notes.begin(), size_notes.end());
    }
    bind_to_interface(socket, config.interface, config.name);
    set(socket, endpoint.address, kTellRefusals, 1);
    set_group_sending(socket, endpoint.address, config.group_sending);
    refuse_input(socket);
    if (::connect(socket.fd(), destination.address.data(), destination.address.bytes()) != 0) {
      throw SetupError("link " + config.name + " cannot send to " + destination.text, std::strerror(errno),
                       "see what `ip route get` says of that address");
    }
    const int mtu = get(socket, endpoint.address, {IP_MTU, IPV6_MTU});
    if (mtu > static_cast<int>(header_bytes)) {
      segment_bytes_max = static_cast<std::uint32_t>(mtu) - header_bytes;
    }
  }
  if (config.gso == Coalesce::off) {
    segment_bytes_max = 0;
  } else if (Socket().get(SOL_UDP, UDP_SEGMENT) < 0) {
    segment_bytes_max = 0;
    destination.refused_segments = true;
  }
  destination.segment_bytes_max = segment_bytes_max;
}

void UdpSender::send(std::span<const TxPacket> packets) {
  wait_left_ns_ = tx_wait_ns_;
  attempts_ = 0;
  while (!packets.empty()) {
    if (packets[0].destination >= destinations_.size()) {
      dropped(packets.first(1));
      packets = packets.subspan(1);
      continue;
    }
    fill(packets);
    packets = packets.subspan(flush(packets, destinations_[packets[0].destination]));
  }
}

// Writes messages for the first packets, all of one destination. Returns the number of packets in them.
std::size_t UdpSender::fill(std::span<const TxPacket> packets) {
  Destination& destination = destinations_[packets[0].destination];
  message_count_ = 0;
  piece_count_ = 0;
  std::size_t done = 0;
  while (done < packets.size() && message_count_ < kMessages && piece_count_ + kSegments <= kPieces &&
         packets[done].destination == packets[0].destination) {
    const Group next = group(packets.subspan(done), destination);
    write_message(packets.subspan(done, next.packet_count), next, destination);
    done += next.packet_count;
  }
  return done;
}

// The longest row of packets that the kernel can cut again: all of one size, only the last may be shorter, but not empty.
UdpSender::Group UdpSender::group(std::span<const TxPacket> packets, const Destination& destination) const {
  Group result{1, packets[0].bytes, packets[0].bytes};
  const std::uint32_t size = packets[0].bytes;
  if (size == 0 || size > destination.segment_bytes_max.load(std::memory_order_relaxed)) {
    return result;
  }
  const std::size_t limit = std::min<std::size_t>({packets.size(), kSegments, kMessageBytes / size + 1});
  for (std::size_t i = 1; i < limit; ++i) {
    const TxPacket& packet = packets[i];
    if (packet.destination != packets[0].destination || packet.bytes == 0 || packet.bytes > size ||
        result.bytes + packet.bytes > kMessageBytes) {
      break;
    }
    ++result.packet_count;
    result.bytes += packet.bytes;
    if (packet.bytes < size) {
      break;
    }
  }
  return result;
}

void UdpSender::write_message(std::span<const TxPacket> packets, const Group& group, Destination& destination) {
  const std::uint32_t m = message_count_++;
  groups_[m] = group;
  msghdr& header = headers_[m].msg_hdr;
  header = {};
  header.msg_iov = &pieces_[piece_count_];
  const std::byte* end = nullptr;
  for (const TxPacket& packet : packets) {
    if (packet.data == end && end != nullptr) {
      pieces_[piece_count_ - 1].iov_len += packet.bytes;  // packets side by side in memory are one piece
    } else {
      pieces_[piece_count_++] = {const_cast<std::byte*>(packet.data), packet.bytes};
    }
    end = packet.data + packet.bytes;
  }
  header.msg_iovlen = static_cast<std::size_t>(&pieces_[piece_count_] - header.msg_iov);
  if (destination.named) {
    header.msg_name = &destination.address;
    header.msg_namelen = destination.address.bytes();
  }
  if (group.packet_count > 1) {
    header.msg_control = controls_[m].bytes.data();
    header.msg_controllen = CMSG_SPACE(sizeof(std::uint16_t));
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto segment_bytes = static_cast<std::uint16_t>(group.segment_bytes);
    std::memcpy(CMSG_DATA(control), &segment_bytes, sizeof segment_bytes);
  }
}

// Sends the messages, which are of the first packets. Returns the number of those that are settled: sent or dropped; the rest has to be grouped
// again.
std::size_t UdpSender::flush(std::span<const TxPacket> packets, Destination& destination) {
  std::size_t settled = 0;
  for (std::uint32_t m = 0; m < message_count_;) {
    const int result = ::sendmmsg(destination.fd, &headers_[m], message_count_ - m, MSG_DONTWAIT | MSG_NOSIGNAL);
    const int error = errno;
    calls_.add(1);
    if (result > 0) {
      attempts_ = 0;
      for (const std::uint32_t end = m + static_cast<std::uint32_t>(result); m < end; ++m) {
        sent(groups_[m]);
        settled += groups_[m].packet_count;
      }
      continue;
    }
    switch (judge(destination, groups_[m], error)) {
      case Verdict::again: break;
      case Verdict::drop_message:
        attempts_ = 0;
        dropped(packets.subspan(settled, groups_[m].packet_count));
        settled += groups_[m++].packet_count;
        break;
      case Verdict::drop_all:
        for (; m < message_count_; ++m) {
          dropped(packets.subspan(settled, groups_[m].packet_count));
          settled += groups_[m].packet_count;
        }
        break;
      case Verdict::regroup: return settled;
    }
  }
  return settled;
}

UdpSender::Verdict UdpSender::judge(Destination& destination, const Group& group, int error) {
  constexpr std::uint32_t kAttempts = 4;
  if (error == EAGAIN || error == EWOULDBLOCK) {
    destination.refused.add(drain_refusals(destination.fd));  // a waiting notice would end the poll at once
    if (wait_left_ns_ == 0) {
      return Verdict::drop_all;  // its socket is full: the later ones would fare no better
    }
    const std::uint64_t start_ns = flow::clock_now_ns();
    wait_for(destination.fd, POLLOUT, wait_left_ns_);
    wait_left_ns_ -= std::min(wait_left_ns_, std::max<std::uint64_t>(1000, flow::clock_now_ns() - start_ns));
    return Verdict::again;
  }
  if (error == EINTR) {
    return Verdict::again;
  }
  // Notices of earlier packets come back as the error of this call, which sent nothing: count them and send again.
  if (error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == EPROTO) {
    destination.refused.add(drain_refusals(destination.fd));
    return ++attempts_ < kAttempts ? Verdict::again : Verdict::drop_message;
  }
  if (group.packet_count > 1 && (error == EIO || error == EINVAL || error == EMSGSIZE)) {
    destination.segment_bytes_max.store(error == EIO ? 0 : group.segment_bytes - 1, std::memory_order_relaxed);
    destination.refused_segments.store(true, std::memory_order_relaxed);
    return Verdict::regroup;
  }
  return Verdict::drop_message;
}

void UdpSender::sent(const Group& group) {
  packets_.add(group.packet_count);
  bytes_.add(group.bytes);
}

void UdpSender::dropped(std::span<const TxPacket> packets) {
  dropped_.add(packets.size());
  tell_dropped(packets);
}

void UdpSender::add_stats(LinkStats& stats) const {
  stats.tx_packets = packets_.value();
  stats.tx_bytes = bytes_.value();
  stats.tx_calls = calls_.value();
  for (const Destination& destination : destinations_) stats.tx_refused += destination.refused.value();
  stats.tx_dropped = dropped_.value();
}

std::map<std::string, std::uint64_t> UdpSender::refusals() const {
  std::map<std::string, std::uint64_t> found;
  for (const Destination& destination : destinations_) {
    if (const std::uint64_t count = destination.refused.value()) found[destination.text] += count;
  }
  return found;
}

void UdpSender::add_notes(std::vector<std::string>& notes) const {
  for (const Destination& destination : destinations_) {
    if (destination.refused_segments.load(std::memory_order_relaxed)) {
      const std::uint32_t limit = destination.segment_bytes_max.load(std::memory_order_relaxed);
      notes.push_back("link " + name_ + ": packets to " + destination.text +
                      (limit == 0 ? "" : " above " + std::to_string(limit) + " bytes") +
                      " are sent one by one (the kernel or device refused UDP_SEGMENT) see `ethtool -k` for tx-udp-segmentation "
                      "and tx-checksumming, and the MTU");
    }
  }
}

}  // namespace nanet::link
