// SPDX-License-Identifier: Apache-2.0
#include "nanet/engine/port.hpp"

#include <algorithm>
#include <bit>

#include "engine/set_up.hpp"
#include "nanet/engine/protocol.hpp"
#include "nanet/flow/clock.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::engine {
namespace {

// A port's caller may be slow, so it sleeps early; but not between the packets of a unit.
constexpr std::uint64_t kSpinNs = 50'000;

// A port's caller may hold as many buffers as there are, and still wants the next one.
constexpr std::uint32_t kNoBacklog = UINT32_MAX;

// A GPU's program would have to know about the records in the buffers.
std::unique_ptr<link::Link> checked(std::unique_ptr<link::Link> link, MemoryKind kind) {
  const flow::PayloadMemory payloads = link->payload_memory();
  if (payloads.in_place() && (kind != MemoryKind::host || payloads.kind == MemoryKind::device)) {
    throw SetupError("a port cannot show payloads in place to a GPU", "they do not lie in its buffers", "set payloads: copied");
  }
  return link;
}

std::unique_ptr<gpu::PinnedMemory> pin(MemoryKind kind, const flow::Clop& clop) {
  if (kind == MemoryKind::host) return nullptr;
  if (kind == MemoryKind::device) {
    throw SetupError("a port cannot receive into device memory",
                     "the kernel copies packets into host memory, and there is no link that writes into a GPU (GPUDirect)",
                     "use host_pinned, which a GPU reads in place");
  }
#ifdef NANET_CUDA
  return gpu::PinnedMemory::make(clop.region(), "CLOP '" + clop.config().name + "'");
#else
  throw SetupError("CLOP '" + clop.config().name + "' cannot be made visible to a GPU", "nanet was built without CUDA",
                   "run make cuda, or use memory host");
#endif
}

}  // namespace

Port::Port(const LinkConfig& config, MemoryKind memory)
    : config_(config),
      link_(checked(open_link(config), memory)),
      clop_(clop_config(config, 0, *link_)),
      pinned_(pin(memory, clop_)),
      queue_(std::bit_ceil(config.memory_region.buffer_count + 1)),
      receiver_(config.protocol->make_receiver(
          receiver_config(config, kNoBacklog),
          {.link = *link_, .clop = clop_, .queue = queue_, .router = make_router(config, 0), .source_count = source_count(config)})),
      held_(config.memory_region.buffer_count) {
  notes_ = link_->notes();
  notes_.insert(notes_.end(), clop_.notes().begin(), clop_.notes().end());
}

const Completion* Port::poll(std::uint64_t timeout_ns) {
  const std::uint64_t start_ns = flow::clock_now_ns();
  std::uint64_t packet_ns = start_ns;  // when the last one came
  for (std::uint64_t now_ns = start_ns;; now_ns = flow::clock_now_ns()) {
    if (receiver_->poll(now_ns) > 0) packet_ns = now_ns;
    if (const Completion* completion = queue_.peek()) {
      Completion& held = held_[(held_first_ + held_count_) % held_.size()];
      held = *completion;
      ++held_count_;
      queue_.pop();
      return &held;
    }
    const std::uint64_t waited_ns = now_ns - start_ns;
    if (waited_ns >= timeout_ns) return nullptr;
    if (now_ns - packet_ns < kSpinNs) continue;
    // A partly filled buffer has to be handed over in time even if nothing new comes.
    link_->wait(std::min(timeout_ns - waited_ns, longest_wait_ns(timeout_ns)));
  }
}

std::uint64_t Port::longest_wait_ns(std::uint64_t timeout_ns) const {
  if (config_.protocol->has_units) {
    const AssembleConfig assemble = config_.assemble.value_or(AssembleConfig{});
    return 1000 * (assemble.resend ? assemble.resend->after_us : assemble.timeout_us);
  }
  return config_.timeout_us > 0 ? 1000 * config_.timeout_us : timeout_ns;
}

void Port::release() {
  if (held_count_ == 0) return;
  held_first_ = (held_first_ + 1) % held_.size();
  --held_count_;
  clop_.release();
}

std::uint32_t Port::add_destination(const std::string& url) {
  const auto known = std::find(destination_urls_.begin(), destination_urls_.end(), url);
  if (known != destination_urls_.end()) return static_cast<std::uint32_t>(known - destination_urls_.begin());
  destinations_.push_back(std::make_unique<link::UdpLink>(link::UdpConfig{.name = url, .destinations = {link::parse_endpoint(url)}}));
  destination_urls_.push_back(url);
  return static_cast<std::uint32_t>(destinations_.size() - 1);
}

bool Port::send(std::uint32_t destination, std::span<const std::byte> payload) {
  link::UdpLink& link = *destinations_.at(destination);
  const std::uint64_t dropped = link.stats().tx_dropped;
  const link::TxPacket packet{.data = payload.data(), .bytes = static_cast<std::uint32_t>(payload.size()), .destination = 0};
  link.send(std::span(&packet, 1), flow::clock_now_ns());
  return link.stats().tx_dropped == dropped;
}

Unit Port::unit(const Completion& completion) const {
  const auto index = clop_.packet_index(completion.buffer_index);
  const auto& head = *reinterpret_cast<const UnitHead*>(index.data());
  const auto* ranges = reinterpret_cast<const UnitRange*>(&head + 1);
  return {.head = head, .present = {ranges, head.range_count}, .bytes = bytes(completion)};
}

std::uint64_t Port::total(flow::Counter counter) const {
  std::uint64_t sum = receiver_->link_counters().value(counter);
  for (std::size_t s = 0; s < source_count(config_); ++s) sum += receiver_->source_counters(s).value(counter);
  return sum;
}

}  // namespace nanet::engine
