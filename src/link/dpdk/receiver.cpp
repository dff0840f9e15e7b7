// SPDX-License-Identifier: Apache-2.0
#include "receiver.hpp"

#include <rte_cycles.h>
#include <rte_pause.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "eal.hpp"

namespace nanet::link::dpdk {
namespace {

constexpr std::size_t kFrameBytesMax = 65'536 + 64;  // the longest IP packet, and the headers before it
constexpr std::uint64_t kSpinNs = 50'000;
constexpr unsigned kSleepUs = 50;

bool has_bad_checksum(const rte_mbuf& buffer) {
  return (buffer.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD ||
         (buffer.ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_BAD;
}

}  // namespace

Receiver::Receiver(Device& device, Station& station, const Endpoint& listen, std::uint32_t queue, const flow::PayloadMemory& payloads)
    : device_(device),
      station_(station),
      address_(without_scope(listen.address)),
      is_ipv6_(address_.is_ipv6()),
      ipv4_(address_.ipv4()),
      port_(listen.port),
      queue_(static_cast<std::uint16_t>(queue)),
      first_header_(device.has_ethernet() ? FirstHeader::ethernet : FirstHeader::ip),
      payloads_(payloads),
      joined_(kFrameBytesMax) {
  ipv6_peers_.reserve(kBurst);
}

Receiver::~Receiver() { rte_pktmbuf_free_bulk(&burst_[begin_], end_ - begin_); }

RxBatch Receiver::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) {
  register_this_thread();
  station_.tend(now_ns);
  ipv6_peers_.clear();
  if (room.empty() || packets.empty()) return {};
  if (is_empty()) poll();
  if (is_empty()) return {};
  RxRoom out(room, packets);
  const std::uint32_t first = begin_;
  while (!is_empty() && out.packet_count < out.packets_max) {
    if (begin_ + 1 < end_) __builtin_prefetch(rte_pktmbuf_mtod(burst_[begin_ + 1], const std::byte*));
    if (!(is_ipv6_ ? take(out, burst_[begin_], address_) : take(out, burst_[begin_], ipv4_))) break;
    ++begin_;
  }
  rte_pktmbuf_free_bulk(&burst_[first], begin_ - first);  // null: lent
  packets_.add(out.packet_count);
  bytes_.add(out.payload_bytes);
  copied_bytes_.add(out.copied_bytes);
  return out.batch();
}

void Receiver::poll() {
  begin_ = 0;
  end_ = device_.receive(queue_, burst_);
  calls_.add(1);
  if (end_ != 0) batches_.add(1);
}

// False: it does not fit into what is left of the room.
template <typename Address>
bool Receiver::take(RxRoom& out, rte_mbuf*& frame, const Address& own) {
  PartOf<Address> part;
  const FrameError error = find(*frame, part);
  if (error == FrameError::none && part.flow.to_port == port_ && part.flow.to_address == own && !has_bad_checksum(*frame)) {
    return payloads_.in_place() ? lend(out, frame, part) : put(out, *frame, part);
  }
  refuse(*frame, error);
  return true;
}

template <typename Address>
FrameError Receiver::find(const rte_mbuf& frame, PartOf<Address>& part) const {
  return on_device() ? find_udp_in(head_of(frame), frame.pkt_len, first_header_, part) : find_udp(frame, first_header_, part);
}

template <typename Address>
bool Receiver::put(RxRoom& out, const rte_mbuf& frame, const PartOf<Address>& part) {
  const std::uint32_t offset = out.next_offset();
  const std::uint32_t left = out.room_left();
  const auto bytes = static_cast<std::uint32_t>(part.bytes);
  if (bytes > left && out.packet_count != 0) return false;
  const std::uint32_t kept = std::min(bytes, left);
  std::uint16_t flags = 0;
  if (kept < bytes) {
    flags = RxPacket::truncated;
    truncated_.add(1);
  }
  copy_part(out.room + offset, frame, part.offset, kept);
  out.packets[out.packet_count++] = RxPacket{
      offset, static_cast<std::uint16_t>(kept), part.flow.from_port, peer_of(part.flow.from_address), flags, 0};
  out.used = offset + kept;
  out.payload_bytes += kept;
  out.copied_bytes += kept;
  return true;
}

// Says where the payload is, and keeps the frame. One that is not where it should be, or not as it should be, is cut to nothing.
template <typename Address>
bool Receiver::lend(RxRoom& out, rte_mbuf*& frame, const PartOf<Address>& part) {
  if (out.room_left() < sizeof(PlacedPacket)) return false;
  PlacedPacket placed{};
  placed.handle = std::bit_cast<std::uint64_t>(frame);
  std::uint16_t flags = 0;
  if (!place_payload(*frame, part, payloads_, placed)) {
    flags = RxPacket::truncated;
    truncated_.add(1);
  }
  const std::uint32_t offset = out.next_offset();
  std::memcpy(out.room + offset, &placed, sizeof placed);
  out.packets[out.packet_count++] = RxPacket{offset, placed.bytes, part.flow.from_port, peer_of(part.flow.from_address), flags, 0};
  out.used = offset + static_cast<std::uint32_t>(sizeof placed);
  out.payload_bytes += placed.bytes;
  frame = nullptr;
  return true;
}

// One entry for each change of sender.
std::uint32_t Receiver::peer_of(const IpAddress& address) {
  if (ipv6_peers_.empty() || ipv6_peers_.back() != address) ipv6_peers_.push_back(address);
  return static_cast<std::uint32_t>(ipv6_peers_.size() - 1);
}

void Receiver::give_back(std::span<const PlacedPacket> packets) {
  std::array<rte_mbuf*, kBurst> frames;
  while (!packets.empty()) {
    const std::size_t count = std::min<std::size_t>(packets.size(), kBurst);
    for (std::size_t i = 0; i < count; ++i) frames[i] = std::bit_cast<rte_mbuf*>(packets[i].handle);
    rte_pktmbuf_free_bulk(frames.data(), static_cast<unsigned>(count));
    packets = packets.subspan(count);
  }
}

// Rare: ARP, NDP, echo requests, frames for others, damaged ones.
void Receiver::refuse(const rte_mbuf& buffers, FrameError error) {
  std::span<const std::byte> frame = head_of(buffers);
  const bool is_cut = on_device() && buffers.next != nullptr;  // the rest cannot be read
  if (buffers.next != nullptr && !is_cut) {
    frame = std::span(joined_).first(std::min<std::size_t>(buffers.pkt_len, joined_.size()));
    copy_part(joined_.data(), buffers, 0, frame.size());
  }
  if (error == FrameError::not_udp && !is_cut && station_.handle(frame)) return;
  const bool is_ours = is_ipv6_ ? is_for_port(frame, first_header_, address_, port_)
                                : is_for_port(frame, first_header_, ipv4_, port_);
  (is_ours ? malformed_ : foreign_).add(1);
}

void Receiver::wait(std::uint64_t timeout_ns) {
  register_this_thread();
  const auto cycles_of = [](std::uint64_t ns) {
    return static_cast<std::uint64_t>(static_cast<double>(ns) * 1e-9 * static_cast<double>(rte_get_timer_hz()));
  };
  const std::uint64_t begin = rte_get_timer_cycles();
  const std::uint64_t spin = cycles_of(kSpinNs);
  const std::uint64_t timeout = cycles_of(timeout_ns);
  while (is_empty()) {
    poll();
    const std::uint64_t waited = rte_get_timer_cycles() - begin;
    if (!is_empty() || waited >= timeout) return;
    if (waited < spin) {
      rte_pause();
    } else {
      ::usleep(kSleepUs);
    }
  }
}

void Receiver::add_stats(LinkStats& stats) const {
  stats.rx_packets = packets_.value();
  stats.rx_bytes = bytes_.value();
  stats.rx_calls = calls_.value();
  stats.rx_batches = batches_.value();
  stats.rx_copied_bytes = copied_bytes_.value();
  stats.rx_truncated = truncated_.value();
  stats.rx_foreign = foreign_.value();
  stats.rx_malformed = malformed_.value();
}

}  // namespace nanet::link::dpdk
