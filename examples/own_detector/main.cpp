// SPDX-License-Identifier: Apache-2.0
// A detector that nanet has never heard of: a camera whose packets have a format of their own, and a trigger that answers bright events.
// Packets come over UDP to an engine, events go to the trigger, answers go back over UDP. Sequence numbers, losses and latencies are the engine's work.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nanet/engine/engine.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/engine/protocol_of.hpp"
#include "nanet/engine/tx_slots.hpp"
#include "nanet/event/event_sink.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/link/udp.hpp"

namespace {

using namespace nanet;

// --- the format: a header, then events of 16 bytes -------------------------------------------------------------------

struct Header {
  std::uint32_t magic;  // kMagic
  std::uint8_t camera;
  std::uint8_t event_count;
  std::uint16_t first_event;  // running number, modulo 65536
  std::uint32_t sequence;
};
struct CameraEvent {
  std::uint32_t timestamp;
  std::uint8_t fine_time;
  std::uint8_t pixel_count;
  std::uint16_t pixels[5];
};
static_assert(sizeof(Header) == 12 && sizeof(CameraEvent) == 16);
constexpr std::uint32_t kMagic = 0x314D4143;  // "CAM1"

struct CameraProtocol {
  static constexpr bool has_sequence = true;
  static constexpr bool has_events = true;
  static constexpr std::size_t kScratchHits = 0;  // pixels lie in the packet as a trigger wants them
  static constexpr bool kHitsPadded = false;

  struct Packet {
    Header header;
    const std::byte* events;
  };

  static engine::Inspection inspect(std::span<const std::byte> payload, engine::PacketFacts& facts) {
    using flow::Counter;
    if (payload.size() < sizeof(Header)) return {false, Counter::packets_bad_length};
    const Packet packet = open(payload);
    if (packet.header.magic != kMagic) return {false, Counter::packets_bad_format};
    if (payload.size() != sizeof(Header) + packet.header.event_count * sizeof(CameraEvent))
      return {false, Counter::packets_bad_length};
    for (std::size_t e = 0; e < packet.header.event_count; ++e) {
      if (event_of(packet, e).count > std::size(CameraEvent{}.pixels)) return {false, Counter::packets_bad_format};
    }
    facts.source_id = packet.header.camera;
    facts.sequence = packet.header.sequence;
    facts.event_count = packet.header.event_count;
    facts.first_event_number = packet.header.first_event;
    return {true, Counter::packets_accepted};
  }
  // Of a packet whose rest lies in the memory of a GPU: this protocol has none there.
  static engine::Inspection inspect_head(std::span<const std::byte>, std::size_t, engine::PacketFacts&) {
    return {false, flow::Counter::packets_bad_format};
  }

  static Packet open(std::span<const std::byte> payload) {
    Packet packet{};
    std::memcpy(&packet.header, payload.data(), sizeof(Header));
    packet.events = payload.data() + sizeof(Header);
    return packet;
  }
  static std::size_t event_count(const Packet& packet) { return packet.header.event_count; }
  template <class Room, class Visit>
  static void for_each_event(const Packet& packet, Room, Visit visit) {
    for (std::size_t e = 0; e < packet.header.event_count; ++e) visit(event_of(packet, e));
  }

 private:
  static event::Event event_of(const Packet& packet, std::size_t index) {
    const std::byte* const at = packet.events + index * sizeof(CameraEvent);
    CameraEvent event;
    std::memcpy(&event, at, sizeof event);
    return {.hits = reinterpret_cast<const std::uint16_t*>(at + offsetof(CameraEvent, pixels)),
            .count = event.pixel_count,
            .timestamp = event.timestamp,
            .fine_time = event.fine_time};
  }
};
constexpr engine::Protocol kCamera = engine::protocol_of<CameraProtocol>("camera");

// --- the trigger: an event with three pixels or more is bright, and is answered with its timestamp ---------------------

constexpr std::uint32_t kBrightPixels = 3;
constexpr std::size_t kAnswersMax = 256;  // in a packet

class BrightTrigger final : public event::EventSink {
 public:
  explicit BrightTrigger(const engine::LaneParts& parts)
      : slots_(*parts.tx_ring, *parts.sent_completions, parts.counters, parts.inline_transmitter), counters_(parts.counters) {}

  void take(std::span<const event::Event> events, std::uint64_t arrival_ns) override {
    const std::span<std::byte> slot = slots_.acquire();
    std::size_t answers = 0;
    for (const event::Event& event : events) {
      if (event.count < kBrightPixels) continue;
      std::memcpy(slot.data() + answers++ * sizeof event.timestamp, &event.timestamp, sizeof event.timestamp);
    }
    if (answers > 0) slots_.post(answers * sizeof(std::uint32_t), arrival_ns);
    counters_.add(flow::Counter::events_answered, events.size());  // dark ones by silence
  }
  void flush() override { slots_.ring_doorbell(); }

 private:
  engine::TxSlots slots_;
  flow::Counters& counters_;
};

class BrightProcessor final : public engine::Processor {
 public:
  engine::ProcessorNeeds needs() const override {
    engine::ProcessorNeeds needs;
    needs.tx_slot_bytes = kAnswersMax * sizeof(std::uint32_t);
    return needs;
  }
  std::unique_ptr<engine::Consumer> make_consumer(engine::LaneParts parts) override {
    auto trigger = std::make_unique<BrightTrigger>(parts);
    return std::make_unique<engine::EventBuilder>(parts.completions, std::move(parts.origins), parts.source_count, std::nullopt,
                                                  std::move(trigger), parts.counters);
  }
};
static_assert(event::kBatchEventsMax <= kAnswersMax);

// --- a camera, and who gets the answers ---------------------------------------------------------------------------------

constexpr std::uint32_t kPackets = 1000;
constexpr std::uint32_t kPacketEvents = 8;

void send_packets(link::UdpLink& camera) {
  std::array<std::byte, sizeof(Header) + kPacketEvents * sizeof(CameraEvent)> packet{};
  for (std::uint32_t p = 0; p < kPackets; ++p) {
    const Header header{kMagic, 7, kPacketEvents, static_cast<std::uint16_t>(p * kPacketEvents), p};
    std::memcpy(packet.data(), &header, sizeof header);
    for (std::uint32_t e = 0; e < kPacketEvents; ++e) {
      const CameraEvent event{p * kPacketEvents + e, 0, static_cast<std::uint8_t>(e % 6), {1, 2, 3, 4, 5}};
      std::memcpy(packet.data() + sizeof header + e * sizeof event, &event, sizeof event);
    }
    const link::TxPacket one{packet.data(), static_cast<std::uint32_t>(packet.size()), 0};
    camera.send({&one, 1}, flow::clock_now_ns());
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
  config.processor = std::make_shared<BrightProcessor>();
  config.send = engine::SendConfig{.endpoints = {url(answers.local())}};
  engine::Engine engine(config);
  engine.start();

  link::UdpLink camera(
      link::UdpConfig{.name = "camera", .destinations = {link::parse_endpoint(url(engine.inputs()[0].link->local()))}});
  send_packets(camera);
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
