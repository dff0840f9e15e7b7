// SPDX-License-Identifier: Apache-2.0
// A user's program: one packet of one event, by the UDP link to itself, read again. Ends with 0 if it is the same.
#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "nanet/base/build_info.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/link/udp.hpp"
#include "nanet/wire/mgp.hpp"

int main() {
  namespace flow = nanet::flow;
  namespace link = nanet::link;
  namespace wire = nanet::wire;

  std::array<std::byte, wire::kMgpPaddedBytes> packet{};
  const std::array<std::uint16_t, 3> hits{1, 100, 300};
  wire::MgpBuilder builder(packet);
  builder.begin(wire::MgpLayout::padded);
  if (!builder.add_event({}, hits)) return 1;
  const std::span<const std::byte> sent = builder.finish({});

  link::UdpConfig config;
  config.listen = link::parse_endpoint("udp://127.0.0.1:0");
  link::UdpLink receiver(config);
  config.listen.reset();
  config.destinations = {receiver.local()};
  link::UdpLink sender(config);
  const link::TxPacket tx{sent.data(), static_cast<std::uint32_t>(sent.size()), 0};
  sender.send({&tx, 1}, flow::clock_now_ns());

  std::vector<std::byte> room(receiver.min_room_bytes());
  std::array<link::RxPacket, 8> packets{};
  link::RxBatch batch;
  for (int tries = 0; tries < 100 && batch.packet_count == 0; ++tries) {
    receiver.wait(100'000'000);
    batch = receiver.receive(room, packets, flow::clock_now_ns());
  }
  wire::MgpView view;
  if (batch.packet_count != 1) return 2;
  if (wire::MgpView::parse(std::span(room).subspan(packets[0].offset, packets[0].bytes), view) != wire::ParseError::none) return 3;
  if (view.hits(0).size() != hits.size() || view.hits(0)[2] != 300) return 4;
  std::printf("%s: %zu hits came back over %s\n", nanet::base::kBuildInfo.name, view.hits(0).size(), receiver.path().c_str());
  return 0;
}
