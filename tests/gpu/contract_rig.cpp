// SPDX-License-Identifier: Apache-2.0
#include "contract_rig.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "nanet/rich/decision.hpp"
#include "nanet/wire/m2egp.hpp"
#include "nanet/wire/mgp.hpp"

namespace nanet::gpu::rig {
namespace {

constexpr std::uint64_t kLongestWaitNs = 10'000'000'000;

emulate::MonteCarloConfig monte_carlo_config(std::uint64_t seed) {
  emulate::MonteCarloConfig config;
  config.seed = seed;
  config.flat_radius = true;
  config.mean_hits = 12;
  config.noise_hits = 1.2;
  config.hits_max = 32;
  config.ring_count_shares = {0.1, 0.7, 0.2};
  return config;
}

}  // namespace

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

PacketSource::PacketSource(std::uint64_t seed) : monte_carlo_(monte_carlo_config(seed)) {}

Payload PacketSource::next(Format format, std::uint32_t event_count, std::uint32_t packet_bytes) {
  Payload room(1472);
  wire::MgpBuilder builder(room);
  wire::M2egpBuilder merged(room);
  merged.begin();
  if (format != Format::merged) builder.begin(format == Format::padded ? wire::MgpLayout::padded : wire::MgpLayout::packed);
  for (std::uint32_t e = 0; e < event_count; ++e) {
    const emulate::McEvent event = monte_carlo_.next();
    std::vector<std::uint16_t> hits(event.hits.begin(), event.hits.begin() + event.hit_count);
    if (number_ % 7 == 3) hits.push_back(0x07FF);  // no PM there
    if (hits.size() > wire::kMgpHitsMax) hits.resize(wire::kMgpHitsMax);
    timestamp_ += 1 + number_ * 2654435761u % 90;  // the timestamp's high part changes every few events
    const wire::MgpEvent header{timestamp_, static_cast<std::uint8_t>(number_ * 37), 0, static_cast<std::uint16_t>(number_)};
    ++number_;
    const bool added = format == Format::merged ? merged.add_event(header, hits) : builder.add_event(header, hits);
    if (!added) break;
  }
  const std::span<std::byte> packet = format == Format::merged ? merged.finish({}, packet_bytes)
                                                               : builder.finish({.source_sub_id = 2}, packet_bytes);
  return {packet.begin(), packet.end()};
}

Primitives answers_to(const Payload& packet, const EventProcessorConfig& config) {
  Primitives answers;
  const auto judge = [&](const wire::MgpEvent& event, const std::uint16_t* hits) {
    const event::Event one{hits, event.hit_count};
    rich::EventRings rings;
    rich::find_rings(config.finder, {&one, 1}, {&rings, 1});
    answers.push_back({event.timestamp, event.fine_time, rich::primitive_id(rings, config.decision)});
  };
  if (wire::is_m2egp(packet)) {
    wire::for_each_event(wire::M2egpView::from_checked(packet), judge);
  } else {
    std::array<std::uint16_t, wire::kMgpScratchHits> scratch;
    wire::for_each_event(wire::MgpView::from_checked(packet), scratch.data(), judge);
  }
  return answers;
}

Rig::Rig(const RigConfig& config)
    : queue_(std::bit_ceil(config.clop_count * config.buffer_count + 1)),
      ring_({.capacity = config.tx_capacity, .slot_bytes = 1472, .locked = false}) {
  for (std::uint32_t c = 0; c < config.clop_count; ++c) {
    clops_.push_back(std::make_unique<flow::Clop>(flow::ClopConfig{.id = static_cast<std::uint8_t>(c),
                                                                   .buffer_count = config.buffer_count,
                                                                   .buffer_bytes = config.buffer_bytes,
                                                                   .huge_pages = false,
                                                                   .locked = false}));
    const Placing placing = c < config.placing.size() ? config.placing[c] : Placing::ordinary;
    rooms_.push_back(
        placing == Placing::ordinary ? nullptr : std::make_unique<PayloadRoom>(placing, config.buffer_count, config.buffer_bytes));
  }
}

void Rig::start(const EventProcessorConfig& config) {
  ContractMemory memory{.completions = queue_, .clops = {}, .answers = &ring_};
  for (const auto& clop : clops_) memory.clops.push_back(clop.get());
  for (const auto& room : rooms_) memory.payloads.push_back(room ? room->memory() : flow::PayloadMemory{});
  processor_ = EventProcessor::make(config, std::move(memory));
}

bool Rig::fill(flow::Clop& clop, std::uint32_t buffer_index, std::span<const Payload> packets, std::uint32_t hole,
               const Handover& handover, Completion& completion) {
  const std::span<std::byte> buffer = clop.buffer(buffer_index);
  const std::span<PacketRef> index = clop.packet_index(buffer_index);
  PayloadRoom* const room = rooms_[handover.clop].get();
  std::vector<PlacedPacket> records;
  if (room != nullptr) {
    records = room->write(buffer_index, packets, hole);
    completion.status |= status::in_place;
  }
  bool strided = hole == 0 && room == nullptr;
  std::uint32_t offset = room == nullptr ? hole : 0;
  for (std::size_t p = 0; p < packets.size(); ++p) {
    // A packet in place has a record; a hole between two of them is one of a packet that was refused.
    const std::span<const std::byte> bytes = room == nullptr ? std::span<const std::byte>(packets[p])
                                                             : std::as_bytes(std::span(records).subspan(p, 1));
    if (room != nullptr && hole != 0 && p % 5 == hole % 5) offset += static_cast<std::uint32_t>(bytes.size());
    std::memcpy(buffer.data() + offset, bytes.data(), bytes.size());
    const std::uint16_t source = handover.sources.empty() ? std::uint16_t{0} : handover.sources[p];
    index[p] = {.offset = offset, .bytes = static_cast<std::uint16_t>(packets[p].size()), .source = source};
    if ((source & PacketRef::run_start) != 0) completion.status |= status::run_start;
    strided = strided && packets[p].size() == packets[0].size();
    const auto events = static_cast<std::uint8_t>(packets[p][3]);
    completion.event_count += events;
    completion.packet_events_max = std::max(completion.packet_events_max, events);
    offset += static_cast<std::uint32_t>(bytes.size()) + (room == nullptr ? hole : 0);
  }
  completion.bytes = offset;
  return strided;
}

bool Rig::feed(std::span<const Payload> packets, std::uint32_t hole, const Handover& handover) {
  flow::Clop& clop = *clops_[handover.clop];
  std::uint32_t buffer_index = 0;
  if (!clop.acquire(buffer_index)) return false;
  Completion completion{};
  const bool strided = fill(clop, buffer_index, packets, hole, handover, completion);
  completion.first_packet_ns = now_ns();
  completion.last_packet_ns = handover.last_packet_ns;
  completion.clop = clop.id();
  completion.kind = CompletionKind::buffer_filled;
  completion.packet_count = static_cast<std::uint16_t>(packets.size());
  completion.buffer_index = static_cast<std::uint16_t>(buffer_index);
  completion.stride_bytes = strided ? static_cast<std::uint16_t>(packets[0].size()) : std::uint16_t{0};
  completion.tag = clop.hand_over();
  queue_.push(completion);
  ++fed_;
  return true;
}

void Rig::feed_waiting(std::span<const Payload> packets, std::uint32_t hole, const Handover& handover) {
  const std::uint64_t begin_ns = now_ns();
  while (!feed(packets, hole, handover) && now_ns() - begin_ns < kLongestWaitNs) {
    processor_->poll(now_ns());
    take_answers();
  }
}

std::uint32_t Rig::take_answers() {
  std::array<const TxDescriptor*, 32> descriptors{};
  const std::uint32_t count = ring_.poll(descriptors);
  for (const TxDescriptor* descriptor : std::span(descriptors).first(count)) {
    const auto* const data = reinterpret_cast<const std::byte*>(descriptor->address);
    wire::MtpView view;
    if (descriptor->bytes == 0) {
      ++empty_answers_;
    } else if (wire::MtpView::parse({data, descriptor->bytes}, view) != wire::ParseError::none) {
      ++bad_answers_;
    } else {
      wire::for_each_primitive(view, [&](const wire::Primitive& primitive) { answers_.push_back(primitive); });
    }
    tags_.push_back(descriptor->tag);
  }
  ring_.complete(count);
  return count;
}

bool Rig::settle() {
  const std::uint64_t begin_ns = now_ns();
  while (processor_->busy()) {
    processor_->poll(now_ns());
    take_answers();
    if (now_ns() - begin_ns > kLongestWaitNs) return false;
  }
  processor_->poll(now_ns());
  while (take_answers() > 0) {
  }
  return true;
}

}  // namespace nanet::gpu::rig
