// SPDX-License-Identifier: Apache-2.0
// A detector that nanet has never heard of: a camera whose packets have a format of their own, and a trigger that answers bright events.
// This program makes an engine of them itself: packets come over UDP, events go to the trigger, answers go back over UDP. Sequence numbers, losses and
// latencies are the engine's work. plugin.cpp makes a plug-in of the same camera and trigger, for `nanet run`.
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bright.hpp"
#include "camera.hpp"
#include "nanet/engine/engine.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/link/udp.hpp"

namespace {

using namespace camera;

// --- a camera, and who gets the answers ---------------------------------------------------------------------------------

constexpr std::uint32_t kPackets = 1000;

void send_packets(link::UdpLink& to) {
  std::array<std::byte, kPacketBytes> packet{};
  for (std::uint32_t p = 0; p < kPackets; ++p) {
    write_packet(packet, 7, p);
    const link::TxPacket one{packet.data(), static_cast<std::uint32_t>(packet.size()), 0};
    to.send({&one, 1}, flow::clock_now_ns());
  }
}

std::uint32_t receive_answers(link::UdpLink& answers, std::uint32_t expected) {
  std::vector<std::byte> room(answers.min_room_bytes());
  std::array<link::RxPacket, 64> packets{};
  std::uint32_t count = 0;
  for (int silent = 0; silent < 20 && count < expected;) {
    answers.wait(100'000'000);
    const link::RxBatch batch = answers.receive(room, packets, flow::clock_now_ns());
    silent = batch.packet_count == 0 ? silent + 1 : 0;
    for (std::uint32_t k = 0; k < batch.packet_count; ++k)
      count += packets[k].bytes / static_cast<std::uint32_t>(sizeof(std::uint32_t));
  }
  return count;
}

std::string url(const link::Endpoint& endpoint) { return "udp://127.0.0.1:" + std::to_string(endpoint.port); }

int run() {
  link::UdpLink answers(link::UdpConfig{.name = "answers", .listen = link::parse_endpoint("udp://127.0.0.1:0")});

  engine::EngineConfig config;
  config.waiting = {.spin = 100, .sleep_us = 100};
  engine::LinkConfig& link = config.links.emplace_back();
  link.name = "camera";
  link.endpoint = "udp://127.0.0.1:0";
  link.protocol = &kCamera;
  link.memory_region.huge_pages = false;
  link.sources = {{.name = "camera", .source_id = 7}};
  config.processor = std::make_shared<BrightProcessor>(BrightConfig{});
  config.send = engine::SendConfig{.endpoints = {url(answers.local())}};
  engine::Engine engine(config);
  engine.start();

  link::UdpLink board(link::UdpConfig{.name = "board", .destinations = {link::parse_endpoint(url(engine.inputs()[0].link->local()))}});
  send_packets(board);
  constexpr std::uint32_t kBright = kPackets * 3;  // of eight events those with 3, 4 and 5 pixels
  const std::uint32_t answered = receive_answers(answers, kBright);
  engine.stop();

  const auto events = engine.total(flow::Counter::events_received);
  std::printf("%llu events of %u packets, %u bright ones answered, %llu packets lost\n", static_cast<unsigned long long>(events),
              kPackets, answered, static_cast<unsigned long long>(engine.total(flow::Counter::packets_lost_kernel)));
  return events == kPackets * kPacketEvents && answered == kBright ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "own_detector: %s\n", error.what());
    return 2;
  }
}
