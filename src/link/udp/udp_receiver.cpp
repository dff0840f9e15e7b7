// SPDX-License-Identifier: Apache-2.0
#include "link/udp/udp_receiver.hpp"

#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nanet/setup_error.hpp"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace nanet::link {
namespace {

std::string bind_advice(int error, const Endpoint& endpoint) {
  const std::string port = std::to_string(endpoint.port);
  switch (error) {
    case EADDRINUSE: return "choose another port, or end the program that holds it: ss -ulpn 'sport = :" + port + "'";
    case EADDRNOTAVAIL:
      return endpoint.address.is_ipv6() ? "listen on an address of this machine (ip -6 address), or on [::] for all of them"
                                        : "listen on an address of this machine (ip -4 address), or on 0.0.0.0 for all of them";
    case EACCES: return "choose a port above 1023";
    default: return "check the address";
  }
}

}  // namespace

UdpReceiver::UdpReceiver(const UdpConfig& config, std::vector<std::string>& notes)
    : socket_(family_of(config.listen->address)),
      is_ipv6_(config.listen->address.is_ipv6()),
      steering_(config),
      packet_bytes_max_((config.packet_bytes_max + 7u) & ~7u),
      slot_bytes_(packet_bytes_max_),
      spill_bytes_(std::size_t{kSlots} * kSuperBytes) {
  ipv6_peers_.reserve(4 * kQuotaMax);  // a call meets kQuotaMax messages at most, and those in the spill twice
  open(config, notes);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    msghdr& header = headers_[i].msg_hdr;
    header.msg_name = &peers_[i];
    header.msg_iov = pieces_[i].data();
    header.msg_iovlen = 2;
    header.msg_control = controls_[i].bytes.data();
  }
}

void UdpReceiver::open(const UdpConfig& config, std::vector<std::string>& notes) {
  size_buffer(socket_, Direction::receive, config.rx_socket_bytes, config.name, notes);
  if (!socket_.set(SOL_SOCKET, SO_RXQ_OVFL, 1)) {
    notes.push_back("link " + config.name +
                    ": drops in the socket cannot be told from drops in the network (no SO_RXQ_OVFL) use a newer kernel");
  }
  if (config.busy_poll_us != 0 && !socket_.set(SOL_SOCKET, SO_BUSY_POLL, static_cast<int>(config.busy_poll_us))) {
    notes.push_back("link " + config.name + ": no busy polling (" + std::strerror(errno) +
                    ") run: sysctl -w net.core.busy_read=" + std::to_string(config.busy_poll_us));
  }
  if (config.gro == Coalesce::on) {
    gro_ = socket_.set(SOL_UDP, UDP_GRO, 1);
    way_ = gro_ ? Way::coalesced : Way::single;
    if (!gro_) {
      notes.push_back("link " + config.name + ": packets are not coalesced (no UDP_GRO) use Linux 5.0 or newer");
    }
  }
  if (config.timestamps != Timestamps::off) times_ = std::make_unique<ReceiveTimes>(socket_, config, notes);
  bind_to_interface(socket_, config.interface, config.name);
  if (config.listen->address.is_multicast()) {
    socket_.set(SOL_SOCKET, SO_REUSEADDR, 1);  // each socket of this machine that joined gets every packet
    join_group(socket_, *config.listen, config.group_join, config.interface, config.name);
  }
  before_bind(socket_, config);
  const SocketAddress address(*config.listen);
  if (::bind(socket_.fd(), address.data(), address.bytes()) != 0) {
    throw SetupError("link " + config.name + " cannot listen on " + to_string(*config.listen), std::strerror(errno),
                     bind_advice(errno, *config.listen));
  }
  after_bind(socket_, config);
}

std::size_t UdpReceiver::min_room_bytes() const { return gro_ ? kSuperBytes : packet_bytes_max_; }

Endpoint UdpReceiver::local() const { return local_endpoint(socket_); }

RxBatch UdpReceiver::receive(std::span<std::byte> room, std::span<RxPacket> packets) {
  if (room.empty() || packets.empty()) {
    return {};
  }
  RxRoom out(room, packets);
  ipv6_peers_.clear();
  if (spilled_begin_ != spilled_end_) {
    deliver_spilled(out);
  } else if (way_ == Way::coalesced && out.room_bytes >= kSuperBytes) {
    receive_coalesced(out);
  } else {
    receive_single(out);
  }
  if (out.packet_count != 0) {
    packets_.add(out.packet_count);
    bytes_.add(out.payload_bytes);
  }
  if (out.copied_bytes != 0) {
    copied_bytes_.add(out.copied_bytes);
  }
  return out.batch();
}

void UdpReceiver::receive_coalesced(RxRoom& out) {
  msghdr& header = headers_[0].msg_hdr;
  const std::uint32_t quota = quota_;
  std::uint32_t messages = 0;
  for (; messages < quota; ++messages) {
    if (messages != 0 && (out.room_left() < kSuperBytes || out.packets_left() < message_packets_)) {
      break;
    }
    std::byte* place = out.room + out.next_offset();
    pieces_[0][0] = {place, kSuperBytes};
    header.msg_iovlen = 1;
    header.msg_namelen = sizeof(SocketAddress);
    header.msg_controllen = sizeof(Control);
    const ssize_t bytes = ::recvmsg(socket_.fd(), &header, MSG_DONTWAIT);
    calls_.add(1);
    if (bytes < 0) {
      if (failed(errno)) {
        continue;
      }
      break;
    }
    batches_.add(1);
    const Message message = read_message(header, static_cast<std::uint32_t>(bytes));
    if (times_) [[unlikely]] {
      times_->read_clocks();
      times_->record(header, {place, message.segment_bytes});
    }
    singles_row_ = message.is_super() ? 0 : singles_row_ + 1;
    message_packets_ = message.is_super() ? (message.bytes + message.segment_bytes - 1) / message.segment_bytes : 1;
    const std::uint64_t fitting = std::uint64_t{out.packets_left()} * message.segment_bytes;
    if (message.is_super() && fitting < message.bytes) {
      put(out, message, static_cast<std::uint32_t>(fitting));
      spill_rest(message, place, static_cast<std::uint32_t>(fitting));
      ++messages;
      break;
    }
    put(out, message, message.bytes);
  }
  header.msg_iovlen = 2;
  note_quota(messages, quota);
  if (singles_row_ >= kSinglesToSwitch) {
    way_ = Way::single;
  }
}

void UdpReceiver::receive_single(RxRoom& out) {
  const std::uint32_t quota = quota_;
  std::uint32_t messages = 0;
  while (messages < quota) {
    const std::uint32_t room_left = out.room_left();
    if (messages != 0 && (room_left < slot_bytes_ || out.packets_left() == 0)) {
      break;
    }
    const std::uint32_t slot_bytes = std::min(slot_bytes_, room_left);
    const std::uint32_t slots = std::min({kSlots, quota - messages, out.packets_left(), std::max(1u, room_left / slot_bytes)});
    prepare_slots(out, slots, slot_bytes);
    const int received = ::recvmmsg(socket_.fd(), headers_.data(), slots, MSG_DONTWAIT, nullptr);
    calls_.add(1);
    if (received <= 0) {
      if (received < 0 && failed(errno)) {
        ++messages;
        continue;
      }
      break;
    }
    batches_.add(1);
    messages += static_cast<std::uint32_t>(received);
    const std::uint32_t in_place = place_slots(out, static_cast<std::uint32_t>(received), slot_bytes);
    if (in_place < static_cast<std::uint32_t>(received)) {
      deliver_spilled(out);
      break;
    }
    if (static_cast<std::uint32_t>(received) < slots) {
      break;
    }
  }
  note_quota(messages, quota);
  if (messages == 0 && gro_) {
    way_ = Way::coalesced;
  }
}

void UdpReceiver::prepare_slots(RxRoom& out, std::uint32_t slots, std::uint32_t slot_bytes) {
  std::byte* place = out.room + out.next_offset();
  for (std::uint32_t i = 0; i < slots; ++i) {
    pieces_[i][0] = {place + std::size_t{i} * slot_bytes, slot_bytes};
    pieces_[i][1] = {spill_slot(i) + slot_bytes, kSuperBytes - slot_bytes};
    headers_[i].msg_hdr.msg_namelen = sizeof(SocketAddress);
    headers_[i].msg_hdr.msg_controllen = sizeof(Control);
  }
}

// Describes the packets that lie in their slots, closing the holes between them. From the first message on that ran over its slot, all go
// to the spill, so that order is kept. Returns how many stayed.
std::uint32_t UdpReceiver::place_slots(RxRoom& out, std::uint32_t received, std::uint32_t slot_bytes) {
  const std::byte* first_slot = out.room + out.next_offset();
  std::uint32_t in_place = 0;
  std::uint32_t longest = 0;
  bool spilling = false;
  if (times_) [[unlikely]]
    times_->read_clocks();
  for (std::uint32_t i = 0; i < received; ++i) {
    const Message message = read_message(headers_[i].msg_hdr, headers_[i].msg_len);
    const std::byte* slot = first_slot + std::size_t{i} * slot_bytes;
    if (times_) [[unlikely]]
      times_->record(headers_[i].msg_hdr, {slot, std::min(message.segment_bytes, slot_bytes)});
    spilling = spilling || message.is_super() || message.bytes > slot_bytes;
    if (spilling) {
      const std::uint32_t head = std::min(message.bytes, slot_bytes);
      std::memcpy(spill_slot(i), slot, head);
      out.copied_bytes += head;
      spill(message, spill_slot(i));
    } else {
      std::byte* place = out.room + out.next_offset();
      if (place != slot) {
        std::memmove(place, slot, message.bytes);
        out.copied_bytes += message.bytes;
      }
      put(out, message, message.bytes);
      ++in_place;
    }
    if (!message.is_super()) {
      longest = std::max(longest, message.bytes);
    } else {
      way_ = Way::coalesced;
      singles_row_ = 0;
    }
  }
  slot_bytes_ = longest != 0 ? (longest + 7u) & ~7u : slot_bytes_;
  return in_place;
}

// Describes the first `bytes` of a message that lies at the next offset of the room.
void UdpReceiver::put(RxRoom& out, const Message& message, std::uint32_t bytes) {
  std::uint32_t offset = out.next_offset();
  std::uint16_t flags = message.flags;
  std::uint32_t left = bytes;
  do {
    const std::uint32_t size = std::min(left, message.segment_bytes);
    flags |= steering_.flag_of({out.room + offset, size});
    out.packets[out.packet_count++] = RxPacket{
        offset, static_cast<std::uint16_t>(size), message.peer_port, message.peer_address, flags, 0};
    offset += size;
    left -= size;
    flags = 0;
  } while (left != 0);
  out.used = offset;
  out.payload_bytes += bytes;
}

void UdpReceiver::spill(const Message& message, const std::byte* data) {
  if (is_ipv6_) spilled_peers_[spilled_end_] = ipv6_peers_[message.peer_address];
  Message& entry = spilled_[spilled_end_++];
  entry = message;
  entry.data = data;
}

// More packets than entries for them: those after the first `described` bytes wait in the spill.
void UdpReceiver::spill_rest(const Message& message, const std::byte* place, std::uint32_t described) {
  Message rest = message;
  rest.bytes -= described;
  rest.segment_bytes = std::min(rest.segment_bytes, rest.bytes);
  rest.flags = 0;
  std::memcpy(spill_slot(0), place + described, rest.bytes);
  spill(rest, spill_slot(0));
}

void UdpReceiver::deliver_spilled(RxRoom& out) {
  for (; spilled_begin_ != spilled_end_; ++spilled_begin_) {
    Message& message = spilled_[spilled_begin_];
    if (is_ipv6_) message.peer_address = add_peer(spilled_peers_[spilled_begin_]);
    if (!deliver(out, message)) break;
  }
  if (spilled_begin_ == spilled_end_) {
    spilled_begin_ = spilled_end_ = 0;
  }
}

// Copies packets of a spilled message into the room while they fit; true when all are gone. A packet longer than the whole room is cut.
bool UdpReceiver::deliver(RxRoom& out, Message& message) {
  std::uint32_t offset = out.next_offset();
  do {
    const std::uint32_t size = std::min(message.segment_bytes, message.bytes);
    const std::uint32_t left = offset < out.room_bytes ? out.room_bytes - offset : 0;
    if (out.packets_left() == 0 || (size > left && out.packet_count != 0)) {
      return false;
    }
    const std::uint32_t kept = std::min(size, left);
    if (kept < size) {
      message.flags |= RxPacket::truncated;
      truncated_.add(1);
    }
    if (kept != 0) {
      std::memcpy(out.room + offset, message.data, kept);
    }
    message.flags |= steering_.flag_of({out.room + offset, kept});
    out.packets[out.packet_count++] = RxPacket{
        offset, static_cast<std::uint16_t>(kept), message.peer_port, message.peer_address, message.flags, 0};
    offset += kept;
    out.used = offset;
    out.payload_bytes += kept;
    out.copied_bytes += kept;
    message.data += size;
    message.bytes -= size;
    message.flags = 0;
  } while (message.bytes != 0);
  return true;
}

// A call that finds all it asked for asks for twice as much next time; one that runs dry asks for what it found. So a lone packet is
// handed over without a second, failing system call, and a burst is taken in few calls.
void UdpReceiver::note_quota(std::uint32_t messages, std::uint32_t wanted) {
  if (messages == 0) {
    quota_ = 1;
    singles_row_ = 0;
  } else if (messages >= wanted) {
    quota_ = std::min(2 * wanted, kQuotaMax);
  } else {
    quota_ = messages;
  }
}

// True: worth another try, the error was only a notice about something sent earlier.
bool UdpReceiver::failed(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR) {
    return false;
  }
  if (error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH) {
    refused_.add(drain_refusals(socket_.fd()));
    return true;
  }
  errors_.add(1);
  return false;
}

std::uint32_t UdpReceiver::add_peer(const IpAddress& peer) {
  if (ipv6_peers_.empty() || ipv6_peers_.back() != peer) ipv6_peers_.push_back(peer);
  return static_cast<std::uint32_t>(ipv6_peers_.size() - 1);
}

UdpReceiver::Message UdpReceiver::read_message(const msghdr& header, std::uint32_t bytes) {
  const auto& peer = *static_cast<const SocketAddress*>(header.msg_name);
  Message message{nullptr, bytes, bytes, is_ipv6_ ? add_peer(peer.ipv6()) : peer.ipv4(), peer.port(), 0};
  for (const cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr;
       c = CMSG_NXTHDR(const_cast<msghdr*>(&header), const_cast<cmsghdr*>(c))) {
    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
      int segment_bytes = 0;
      std::memcpy(&segment_bytes, CMSG_DATA(c), sizeof segment_bytes);
      if (segment_bytes > 0) {
        message.segment_bytes = std::min(bytes, static_cast<std::uint32_t>(segment_bytes));
      }
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
      std::uint32_t dropped = 0;  // since the socket was opened, modulo 2^32
      std::memcpy(&dropped, CMSG_DATA(c), sizeof dropped);
      const std::uint32_t more = dropped - static_cast<std::uint32_t>(kernel_dropped_.value());
      if (more != 0) {
        kernel_dropped_.add(more);
        message.flags |= RxPacket::after_drop;
      }
    }
  }
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    message.flags |= RxPacket::truncated;
    truncated_.add(1);
  }
  return message;
}

void UdpReceiver::wait(std::uint64_t timeout_ns) {
  if (spilled_begin_ != spilled_end_) {
    return;
  }
  wait_for(socket_.fd(), POLLIN, timeout_ns);
}

void UdpReceiver::add_stats(LinkStats& stats) const {
  stats.rx_packets = packets_.value();
  stats.rx_bytes = bytes_.value();
  stats.rx_calls = calls_.value();
  stats.rx_batches = batches_.value();
  stats.rx_copied_bytes = copied_bytes_.value();
  stats.rx_truncated = truncated_.value();
  stats.rx_errors = errors_.value();
  stats.tx_refused += refused_.value();
  stats.rx_kernel_dropped = kernel_dropped_.value();
  std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket_.fd(), SOL_SOCKET, SO_MEMINFO, info.data(), &length) == 0 &&
      length > SK_MEMINFO_DROPS * sizeof(std::uint32_t)) {
    stats.rx_dropped_unseen = info[SK_MEMINFO_DROPS] - static_cast<std::uint32_t>(stats.rx_kernel_dropped);
    stats.rx_kernel_dropped += stats.rx_dropped_unseen;
  }
}

}  // namespace nanet::link
