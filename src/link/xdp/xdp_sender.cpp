// SPDX-License-Identifier: Apache-2.0
#include "link/xdp/xdp_sender.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nanet::link {

XdpSender::XdpSender(const XdpConfig& config, const Interface& interface, const IpAddress& source_address,
                     std::uint16_t source_port, Queue& queue)
    : queue_(queue),
      neighbours_(config.destinations, interface, config.name),
      wait_ns_(std::uint64_t{config.tx_wait_us} * 1000 / kWaits),
      payload_bytes_max_(config.packet_bytes_max) {
  for (std::uint32_t i = 0; i < config.destinations.size(); ++i) {
    const Endpoint& to = config.destinations[i];
    const IpAddress& from = source_address.is_any() ? neighbours_.source_address(i) : source_address;
    templates_.emplace_back(IpUdpFlow{from, to.address, source_port, to.port}, interface.mac,
                            config.checksum == XdpChecksum::present ? UdpChecksum::present : UdpChecksum::absent,
                            to.address.is_multicast() ? config.group_sending.ttl : kTtl);
  }
  const QueueConfig& shape = queue.config();
  for (std::uint32_t i = shape.tx_frames; i > 0; --i) {
    free_.push_back(std::uint64_t{shape.rx_frames + i - 1} * shape.frame_bytes);
  }
}

void XdpSender::send(std::span<const TxPacket> packets) {
  Call call;
  reclaim();
  for (const TxPacket& packet : packets) {
    if (put(packet, call)) continue;
    ++call.dropped;
    tell_dropped({&packet, 1});
  }
  flush(call);
  // One that went into the ring in an earlier call is in tx_packets already: one of this call stands for it.
  const std::uint64_t refused = std::min(refused_, call.packets);
  refused_ -= refused;
  tell_dropped(packets, refused);
  call.packets -= refused;
  call.dropped += refused;
  packets_.add(call.packets);
  bytes_.add(call.bytes);
  if (call.dropped != 0) dropped_.add(call.dropped);
}

// False: it cannot be sent.
bool XdpSender::put(const TxPacket& packet, Call& call) {
  MacAddress to;
  if (packet.destination >= templates_.size() || packet.bytes > payload_bytes_max_ ||
      !neighbours_.address_of(packet.destination, to)) {
    return false;
  }
  const std::uint32_t frame_bytes = queue_.config().frame_bytes;
  const UdpTemplate& headers = templates_[packet.destination];
  const auto header_bytes = static_cast<std::uint32_t>(headers.header_bytes());
  std::uint32_t bytes_left = packet.bytes;
  const std::uint32_t count = (header_bytes + bytes_left + frame_bytes - 1) / frame_bytes;
  if (free_.size() < count && !make_room(count, call)) return false;
  const std::byte* from = packet.data;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t address = free_.back();
    free_.pop_back();
    std::byte* frame = queue_.frames() + address;
    const std::uint32_t head = i == 0 ? header_bytes : 0;
    if (i == 0) headers.write(frame, to, {packet.data, packet.bytes});
    const std::uint32_t part = std::min(bytes_left, frame_bytes - head);
    if (part != 0) std::memcpy(frame + head, from, part);
    from += part;
    bytes_left -= part;
    write_descriptor(address, head + part, i + 1 < count ? kPacketGoesOn : 0);
  }
  ++call.packets;
  call.bytes += packet.bytes;
  return true;
}

void XdpSender::write_descriptor(std::uint64_t address, std::uint32_t bytes, std::uint32_t options) {
  std::uint32_t index = 0;
  xsk_ring_prod__reserve(&queue_.tx, 1, &index);  // the ring has a place for every frame
  *xsk_ring_prod__tx_desc(&queue_.tx, index) = {address, bytes, options};
  ++unsubmitted_;
}

// Gets at least so many free frames. False: they are not to be had.
bool XdpSender::make_room(std::uint32_t frames, Call& call) {
  flush(call);
  while (free_.size() < frames && call.waits_left != 0) {
    --call.waits_left;
    wait_for(-1, 0, wait_ns_);  // frames come back when the device has sent them
    reclaim();
  }
  return free_.size() >= frames;
}

// Shows the kernel what is in the ring, makes it send, and gets back the frames that it is done with. Waits kWaits times a call at most: the same
// thread may have to receive.
void XdpSender::flush(Call& call) {
  if (unsubmitted_ != 0) {
    xsk_ring_prod__submit(&queue_.tx, unsubmitted_);
    unsubmitted_ = 0;
  }
  if (queue_.is_zero_copy()) {
    if (!is_taken() && xsk_ring_prod__needs_wakeup(&queue_.tx)) kick();
  } else {
    // The kernel sends in the call, up to 32 packets of it.
    for (std::uint32_t i = 0; !is_taken() && i < queue_.tx.size; ++i) {
      const Kick result = kick();
      if (result == Kick::moved) continue;
      if (result == Kick::hopeless || call.waits_left == 0) break;
      --call.waits_left;
      wait_for(-1, 0, wait_ns_);
    }
  }
  reclaim();
}

bool XdpSender::is_taken() const { return __atomic_load_n(queue_.tx.consumer, __ATOMIC_ACQUIRE) == *queue_.tx.producer; }

XdpSender::Kick XdpSender::kick() {
  const std::uint32_t before = __atomic_load_n(queue_.tx.consumer, __ATOMIC_ACQUIRE);
  const ssize_t result = ::sendto(queue_.tx_fd(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL, nullptr, 0);
  const int error = result < 0 ? errno : 0;
  calls_.add(1);
  if (error == EBUSY) {  // the device took a packet and dropped it
    ++refused_;
    return Kick::moved;
  }
  if (error == ENETDOWN || error == ENXIO) return Kick::hopeless;  // until the interface comes back
  return error == EINTR || __atomic_load_n(queue_.tx.consumer, __ATOMIC_ACQUIRE) != before ? Kick::moved : Kick::stuck;
}

void XdpSender::reclaim() {
  std::uint32_t index = 0;
  const std::uint32_t count = xsk_ring_cons__peek(&queue_.completion, queue_.config().tx_frames, &index);
  for (std::uint32_t i = 0; i < count; ++i) free_.push_back(*xsk_ring_cons__comp_addr(&queue_.completion, index + i));
  if (count != 0) xsk_ring_cons__release(&queue_.completion, count);
}

void XdpSender::add_stats(LinkStats& stats) const {
  stats.tx_packets = packets_.value();
  stats.tx_bytes = bytes_.value();
  stats.tx_calls = calls_.value();
  stats.tx_dropped = dropped_.value();
}

}  // namespace nanet::link
