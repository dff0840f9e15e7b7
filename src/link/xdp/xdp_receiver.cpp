// SPDX-License-Identifier: Apache-2.0
#include "link/xdp/xdp_receiver.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

namespace nanet::link {
namespace {

constexpr std::uint32_t kAhead = 2;  // frames are fetched into the cache before their turn ...
constexpr std::size_t kLinesAhead = 8;  // ... by their first lines; what follows the processor guesses. Worth a quarter of a packet's time
constexpr std::size_t kLine = 64;
constexpr unsigned kSourceShift = 48;  // PlacedPacket::handle: number of the queue, then an address in its frames

// The data of the frame that a descriptor of the ring names.
std::span<const std::byte> frame_at(const Queue& queue, std::uint32_t index) {
  const xdp_desc& descriptor = *xsk_ring_cons__rx_desc(&queue.rx, index);
  return {queue.frames() + descriptor.addr, descriptor.len};
}

}  // namespace

XdpReceiver::XdpReceiver(const XdpConfig& config, const Endpoint& listen, const std::vector<std::unique_ptr<Queue>>& queues)
    : address_(listen.address),
      is_ipv6_(listen.address.is_ipv6()),
      ipv4_(listen.address.ipv4()),
      port_(listen.port),
      polls_(config.busy_poll_us != 0),
      in_place_(config.payloads == Payloads::in_place),
      min_room_bytes_(in_place_ ? sizeof(PlacedPacket) : (std::size_t{config.packet_bytes_max} + 7) & ~std::size_t{7}) {
  for (const auto& queue : queues) {
    if (queue->rx_fd() < 0) continue;
    sources_.push_back({.queue = queue.get(), .after_drop = std::vector<std::uint8_t>(queue->rx.size)});
    waiting_.push_back({queue->rx_fd(), POLLIN, 0});
  }
  if (is_ipv6_) ipv6_peers_.reserve(kBatch * sources_.size());
}

RxBatch XdpReceiver::receive(std::span<std::byte> room, std::span<RxPacket> packets) {
  Out out(room, packets);
  ipv6_peers_.clear();
  const auto source_count = static_cast<std::uint32_t>(sources_.size());
  for (std::uint32_t i = 0; i < source_count && !out.is_full && out.packet_count < out.packets_max; ++i) {
    take(sources_[next_], out);
    next_ = next_ + 1 == source_count ? 0 : next_ + 1;
  }
  calls_.add(1);
  if (out.packet_count != 0) {
    batches_.add(1);
    packets_.add(out.packet_count);
    bytes_.add(out.payload_bytes);
    copied_bytes_.add(out.copied_bytes);
  }
  if (out.truncated + out.malformed + out.foreign != 0) {
    truncated_.add(out.truncated);
    malformed_.add(out.malformed);
    foreign_.add(out.foreign);
  }
  return out.batch();
}

void XdpReceiver::take(Source& source, Out& out) {
  Queue& queue = *source.queue;
  std::uint32_t index = 0;
  const std::uint32_t available = xsk_ring_cons__peek(&queue.rx, kBatch, &index);
  for (std::uint32_t i = 0; i < std::min(available, kAhead); ++i) {
    __builtin_prefetch(queue.frames() + xsk_ring_cons__rx_desc(&queue.rx, index + i)->addr);
  }
  std::array<std::uint64_t, kBatch> free;  // frames that nothing is left in
  std::uint32_t free_count = 0;
  std::uint32_t done = 0;
  while (done < available && out.packet_count < out.packets_max) {
    if (done + kAhead < available) {
      const std::byte* later = queue.frames() + xsk_ring_cons__rx_desc(&queue.rx, index + done + kAhead)->addr;
      for (std::size_t line = 0; line < kLinesAhead; ++line) __builtin_prefetch(later + line * kLine);
    }
    const Frames frames = frames_of(queue, index + done, available - done);
    const std::uint32_t delivered = out.packet_count;
    if (frames.count == 0 || !deliver(source, frames, out)) break;
    done += frames.count;
    if (in_place_ && out.packet_count != delivered) continue;  // lent
    for (std::uint32_t i = 0; i < frames.count; ++i) free[free_count++] = xsk_ring_cons__rx_desc(&queue.rx, frames.first + i)->addr;
  }
  if (done < available) xsk_ring_cons__cancel(&queue.rx, available - done);
  if (done != 0) xsk_ring_cons__release(&queue.rx, done);
  if (free_count != 0) refill(source, std::span(free).first(free_count));
  if ((available == 0 && polls_) || xsk_ring_prod__needs_wakeup(&queue.fill)) wake(queue);
}

// The packet that begins at this descriptor; none when its end is not there yet.
XdpReceiver::Frames XdpReceiver::frames_of(const Queue& queue, std::uint32_t index, std::uint32_t available) const {
  Frames frames{.first = index};
  while (frames.count < available) {
    const xdp_desc& descriptor = *xsk_ring_cons__rx_desc(&queue.rx, index + frames.count);
    ++frames.count;
    frames.bytes += descriptor.len;
    if ((descriptor.options & kPacketGoesOn) == 0) return frames;
  }
  return {};
}

// False: there is no room; the packet stays where it is.
bool XdpReceiver::deliver(Source& source, const Frames& frames, Out& out) {
  const Queue& queue = *source.queue;
  if (source.drop_marks != 0) {
    std::uint8_t& mark = source.after_drop[frames.first & queue.rx.mask];
    source.follows_drop |= mark != 0;
    source.drop_marks -= mark;
    mark = 0;
  }
  XdpPayload payload;
  if (!find(queue, frames, payload, out)) return true;
  std::uint16_t flags = source.follows_drop ? RxPacket::after_drop : std::uint16_t{0};
  const std::uint32_t offset = out.next_offset();
  if (!(in_place_ ? lend(source, frames, payload, out) : put(queue, frames, payload, flags, out))) {
    out.is_full = true;
    return false;
  }
  source.follows_drop = false;
  if (is_ipv6_ && (ipv6_peers_.empty() || ipv6_peers_.back() != from_)) ipv6_peers_.push_back(from_);
  out.packets[out.packet_count++] = {
      .offset = offset,
      .bytes = static_cast<std::uint16_t>(payload.bytes),
      .peer_port = payload.flow.from_port,
      .peer_address = is_ipv6_ ? static_cast<std::uint32_t>(ipv6_peers_.size() - 1) : payload.flow.from_address,
      .flags = flags,
      .reserved = 0};
  out.payload_bytes += payload.bytes;
  return true;
}

// False: it is not for this link, and counted.
bool XdpReceiver::find(const Queue& queue, const Frames& frames, XdpPayload& payload, Out& out) {
  const std::span<const std::byte> first = frame_at(queue, frames.first);
  const XdpVerdict verdict = is_ipv6_ ? find_ipv6_payload(first, frames.bytes, address_, port_, payload, from_)
                                      : find_payload(first, frames.bytes, ipv4_, port_, payload);
  if (verdict == XdpVerdict::ours) return true;
  ++(verdict == XdpVerdict::malformed ? out.malformed : out.foreign);
  return false;
}

// Copies the payload into the room. False: there is none; but a packet alone is cut to what there is.
bool XdpReceiver::put(const Queue& queue, const Frames& frames, XdpPayload& payload, std::uint16_t& flags, Out& out) const {
  const std::uint32_t offset = out.next_offset();
  const std::uint32_t bytes = std::min(payload.bytes, out.room_left());
  if (bytes < payload.bytes) {
    if (out.packet_count != 0) return false;
    flags |= RxPacket::truncated;
    ++out.truncated;
    payload.bytes = bytes;
  }
  const auto frame = [&](std::uint32_t index) { return frame_at(queue, frames.first + index); };
  copy_payload(frame, frames.count, payload.offset, out.room + offset, bytes);
  out.used = offset + bytes;
  out.copied_bytes += bytes;
  return true;
}

// Writes where the payload is. False: there is no room for that.
bool XdpReceiver::lend(const Source& source, const Frames& frames, const XdpPayload& payload, Out& out) const {
  if (out.room_left() < sizeof(PlacedPacket)) return false;
  const Queue& queue = *source.queue;
  const std::uint64_t address = xsk_ring_cons__rx_desc(&queue.rx, frames.first)->addr;
  PlacedPacket placed{};
  placed.address = std::bit_cast<std::uint64_t>(queue.frames() + address + payload.offset);
  placed.handle = static_cast<std::uint64_t>(&source - sources_.data()) << kSourceShift | address;
  placed.bytes = static_cast<std::uint16_t>(payload.bytes);
  std::memcpy(out.room + out.next_offset(), &placed, sizeof placed);
  out.used = out.next_offset() + static_cast<std::uint32_t>(sizeof placed);
  return true;
}

void XdpReceiver::give_back(std::span<const PlacedPacket> packets) {
  std::array<std::uint64_t, kBatch> frames;
  while (!packets.empty()) {
    const std::uint64_t source = packets.front().handle >> kSourceShift;
    const std::size_t most = std::min<std::size_t>(packets.size(), kBatch);
    std::size_t count = 0;
    for (; count < most && packets[count].handle >> kSourceShift == source; ++count) {
      frames[count] = packets[count].handle & ((std::uint64_t{1} << kSourceShift) - 1);
    }
    refill(sources_[source], std::span(frames).first(count));
    packets = packets.subspan(count);
  }
}

// Frames, by any address in them, go back to the kernel. There is always a place: the fill ring has two for every frame.
void XdpReceiver::refill(Source& source, std::span<const std::uint64_t> frames) {
  Queue& queue = *source.queue;
  const std::uint64_t frame_mask = ~(std::uint64_t{queue.config().frame_bytes} - 1);
  const auto count = static_cast<std::uint32_t>(frames.size());
  std::uint32_t place = 0;
  xsk_ring_prod__reserve(&queue.fill, count, &place);
  for (std::uint32_t i = 0; i < count; ++i) *xsk_ring_prod__fill_addr(&queue.fill, place + i) = frames[i] & frame_mask;
  note_drops(source);
  xsk_ring_prod__submit(&queue.fill, count);
}

// In copied mode the kernel drops a packet only when it finds no frame, and then none comes into the ring before we give some back: a drop
// known now lies before the packet that will take the ring's next place. So the kernel is asked only when the frames are used up.
void XdpReceiver::note_drops(Source& source) {
  Queue& queue = *source.queue;
  const std::uint32_t frames_left = *queue.fill.producer - __atomic_load_n(queue.fill.consumer, __ATOMIC_ACQUIRE);
  if (frames_left >= (queue.config().several_frames ? kDescriptorsMax : 1u)) return;
  const std::uint64_t drops = queue.drops().packets;
  if (drops == source.drops) return;
  source.drops = drops;
  std::uint8_t& mark = source.after_drop[__atomic_load_n(queue.rx.producer, __ATOMIC_ACQUIRE) & queue.rx.mask];
  source.drop_marks += mark == 0 ? 1 : 0;
  mark = 1;
}

void XdpReceiver::wake(const Queue& queue) {
  if (::recvfrom(queue.rx_fd(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr) < 0 && errno != EAGAIN && errno != EINTR &&
      errno != EBUSY) {
    errors_.add(1);  // the interface is down, or gone
  }
}

void XdpReceiver::wait(std::uint64_t timeout_ns) {
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000u), static_cast<long>(timeout_ns % 1'000'000'000u)};
  const int ready = ::ppoll(waiting_.data(), static_cast<nfds_t>(waiting_.size()), &timeout, nullptr);
  if (ready <= 0) return;
  const bool is_broken = std::any_of(waiting_.begin(), waiting_.end(), [](const pollfd& p) { return (p.revents & POLLERR) != 0; });
  const bool is_ready = std::any_of(waiting_.begin(), waiting_.end(), [](const pollfd& p) { return (p.revents & POLLIN) != 0; });
  if (is_broken && !is_ready) wait_for(-1, 0, timeout_ns);  // the interface is gone: sleep all the same
}

void XdpReceiver::add_stats(LinkStats& stats) const {
  stats.rx_packets = packets_.value();
  stats.rx_bytes = bytes_.value();
  stats.rx_calls = calls_.value();
  stats.rx_batches = batches_.value();
  stats.rx_copied_bytes = copied_bytes_.value();
  stats.rx_truncated = truncated_.value();
  stats.rx_errors = errors_.value();
  stats.rx_foreign = foreign_.value();
  stats.rx_malformed = malformed_.value();
  for (const Source& source : sources_) stats.rx_kernel_dropped += source.queue->drops().packets;
}

}  // namespace nanet::link
