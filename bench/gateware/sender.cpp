// SPDX-License-Identifier: Apache-2.0
#include "sender.hpp"

#include <algorithm>

#include "link/udp_frame.hpp"

namespace nanet::bench {
namespace {

constexpr std::uint32_t kDestination = 2;
constexpr std::uint64_t kStreamOfSent = std::uint64_t{1} << 40;  // data of its own, beside that of what is received

}  // namespace

Sender::Sender(Rig& rig, link::gateware::NicDriver& driver, std::size_t payload_bytes)
    : rig_(rig), driver_(driver), payload_(payload_bytes), steady_(rig.model.line()) {
  driver.set_destination({.index = kDestination, .mac = 0x02'00'00'00'00'02, .address = kPeer, .port = kPeerPort, .from_port = kPort});
}

void Sender::look(bool goes_on) {
  goes_on_ = goes_on;
  auto& frames = rig_.model.wire_out().frames();
  for (; !frames.empty(); frames.pop_front()) take(frames.front());
  while (const Completion* completion = driver_.poll_sent()) {
    if (completion->kind != CompletionKind::packet_sent || completion->tag != completed_)
      wrong("its completion is another's, or an error");
    ++completed_;
  }
  while (goes_on) {
    fill_payload(kStreamOfSent + rung_, payload_);
    if (!driver_.send(payload_, kDestination, rung_)) return;
    ++rung_;
  }
}

void Sender::take(const gateware::ReceivedFrame& frame) {
  fill_payload(kStreamOfSent + left_, payload_);
  link::UdpView view;
  const bool is_udp = link::read_udp_frame(frame.bytes, view) == link::FrameError::none;
  if (!is_udp || view.flow.to_address != kPeer || view.flow.from_address != kAddress || view.flow.to_port != kPeerPort ||
      view.flow.from_port != kPort) {
    wrong("it is no datagram from here to its destination");
  } else if (!std::ranges::equal(view.payload, payload_)) {
    wrong("its payload is not what was asked for");
  }
  ++left_;
  // Its start is not seen, but its end: frames of one size.
  const std::size_t bytes = frame_bytes(payload_.size());
  if (goes_on_) steady_.add(gateware::bytes_per_cycle(rig_.model.line()) * frame.cycle + frame.end_lane, bytes);
}

void Sender::wrong(const char* what) {
  if (wrong_++ == 0) first_wrong_ = "packet " + std::to_string(left_) + " of those sent: " + what;
}

}  // namespace nanet::bench
