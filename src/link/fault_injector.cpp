// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/fault_injector.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>

#include "nanet/config/read.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

enum class Fault : std::uint8_t { none, loss, duplicate, reorder, corrupt, truncate, delay };
constexpr std::size_t kFaultCount = 7;

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// xoshiro256** of Blackman and Vigna (public domain), seeded by splitmix64: the same numbers with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (auto& word : state_) {
      seed += 0x9E3779B97F4A7C15u;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      word = z ^ (z >> 31);
    }
  }

  std::uint64_t next() {
    const auto rotate = [](std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }                                 // [0, 1)
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32); }  // 0..n-1

 private:
  std::array<std::uint64_t, 4> state_{};
};

// What can be changed while packets flow.
struct Plan {
  std::array<double, kFaultCount> limits{};  // of the uniform number, in the order of Fault; [none] is not used
  std::uint64_t delay_ns = 0;
  std::uint64_t hold_max_ns = 0;
};

// From a control thread to the receiving one, without a lock and without waiting: each has a copy of its own, and they exchange it for the
// third, which says whether it is newer than what the receiving thread has.
class PlanExchange {
 public:
  explicit PlanExchange(const Plan& first) { plans_[current_] = first; }

  // The control thread.
  void publish(const Plan& plan) {
    plans_[spare_] = plan;
    spare_ = shared_.exchange(spare_ | kNew, std::memory_order_acq_rel) & kIndex;
  }

  // The receiving thread.
  void take_newest() {
    if ((shared_.load(std::memory_order_relaxed) & kNew) != 0) [[unlikely]]
      current_ = shared_.exchange(current_, std::memory_order_acq_rel) & kIndex;
  }
  const Plan& current() const { return plans_[current_]; }

 private:
  static constexpr std::uint32_t kIndex = 3, kNew = 4;
  std::array<Plan, 3> plans_{};
  std::uint32_t current_ = 0;            // of the receiving thread
  alignas(64) std::uint32_t spare_ = 1;  // of the control thread
  alignas(64) std::atomic<std::uint32_t> shared_{2};
};

Plan plan_of(const FaultConfig& c) {
  config::require(c);
  Plan plan{.delay_ns = c.delay_us * 1000, .hold_max_ns = c.hold_max_ns};
  double sum = 0;
  std::size_t fault = 0;
  for (const double probability : {c.loss, c.duplicate, c.reorder, c.corrupt, c.truncate, c.delay}) {
    sum += probability;
    plan.limits[++fault] = sum;
  }
  return plan;
}

std::uint32_t round_up(std::uint32_t bytes) { return (bytes + 7u) & ~7u; }

}  // namespace

struct FaultInjector::State {
  static constexpr std::uint32_t kReleasesSure = 16;  // there is always room for so many held packets in one receive()

  // A packet in storage.
  struct Held {
    RxPacket packet;
    std::uint64_t due_ns;      // comes out at this time in any case
    std::uint64_t due_packet;  // or when so many packets were let through; kNever: by time only
    std::uint32_t slot;
    IpAddress peer;
  };

  // What one receive() fills.
  struct Out {
    std::span<std::byte> room;
    std::span<RxPacket> packets;
    std::size_t used = 0;
    std::size_t packet_count = 0;
    std::size_t packets_reserved = 0;  // entries for packets of the wrapped link that are still to come
  };

  explicit State(const FaultConfig& config);

  void process(const RxPacket& packet, Out& out, std::uint64_t now_ns);
  void release_due(Out& out, std::uint64_t now_ns);
  Fault draw();
  bool hold(const RxPacket& packet, const Out& out, std::uint64_t due_ns, std::uint64_t due_packet);
  void let_through(RxPacket packet, Out& out);
  void corrupt(std::byte* data, std::uint32_t bytes);
  std::uint32_t add_peer(const IpAddress& peer);
  IpAddress peer_of(const RxPacket& packet) const {
    return arrived_peers.empty() ? IpAddress(packet.peer_address) : arrived_peers[packet.peer_address];
  }
  void count(Fault fault) { books[static_cast<std::size_t>(fault)].fetch_add(1, std::memory_order_relaxed); }

  PlanExchange plan;
  Random random;
  std::uint32_t slot_bytes;
  std::vector<std::byte> storage;
  std::vector<std::uint32_t> free_slots;
  std::vector<Held> held;  // oldest first
  std::vector<RxPacket> arrived;
  std::span<const IpAddress> arrived_peers;  // peers() of the wrapped link
  std::vector<IpAddress> peers;              // and of this one
  bool has_peers = false;                    // the wrapped link has had some
  std::uint64_t next_due_ns = kNever;        // the earliest of all held
  std::uint64_t next_due_packet = kNever;    // likewise
  std::uint64_t delivered = 0;               // packets of the wrapped link let through; copies from storage do not count
  std::uint16_t owed_flags = 0;              // after_drop of a packet that was taken away: the next one has to say it
  std::uint64_t last_now_ns = 0;
  std::array<std::atomic<std::uint64_t>, kFaultCount> books{};
  std::atomic<std::uint64_t> held_count{0};
};

FaultInjector::State::State(const FaultConfig& config)
    : plan(plan_of(config)), random(config.seed), slot_bytes(round_up(config.packet_bytes_max)) {
  constexpr std::size_t kBatchMax = 4096;
  storage.resize(std::size_t{slot_bytes} * config.held_max);
  held.reserve(config.held_max);
  free_slots.reserve(config.held_max);
  for (std::uint32_t slot = config.held_max; slot-- > 0;) {
    free_slots.push_back(slot);
  }
  arrived.resize(kBatchMax);
  peers.reserve(2 * kBatchMax);
}

namespace {

std::unique_ptr<Link> copied_for_faults(std::unique_ptr<Link> inner) {
  if (!inner->payload_memory().in_place()) return inner;
  throw SetupError("faults cannot be put into what comes from " + inner->path(),
                   "its payloads stay where the NIC wrote them, and are not harmed there", "set payloads: copied, or remove faults");
}

}  // namespace

std::optional<config::Problem> FaultConfig::check() const {
  const double sum = loss + duplicate + reorder + corrupt + truncate + delay;
  if (sum <= 1.0 + 1e-9) return std::nullopt;  // six times a sixth is allowed
  std::ostringstream problem;
  problem << "the probabilities add up to " << sum;
  return config::Problem{"loss", problem.str(), "a packet gets at most one fault", "lower them to a total of at most 1"};
}

FaultInjector::FaultInjector(std::unique_ptr<Link> inner, const FaultConfig& config)
    : inner_(copied_for_faults(std::move(inner))), state_(std::make_unique<State>(config)) {}

FaultInjector::~FaultInjector() = default;

void FaultInjector::reconfigure(const FaultConfig& config) { state_->plan.publish(plan_of(config)); }

std::size_t FaultInjector::min_room_bytes() const {
  return round_up(static_cast<std::uint32_t>(inner_->min_room_bytes())) + std::size_t{State::kReleasesSure} * state_->slot_bytes;
}

RxBatch FaultInjector::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) {
  State& state = *state_;
  if (room.empty() || packets.empty()) {
    return {};
  }
  state.last_now_ns = now_ns;
  state.plan.take_newest();
  const std::size_t reserve = std::size_t{State::kReleasesSure} * state.slot_bytes;
  const std::size_t inner_room = room.size() > reserve ? room.size() - reserve : room.size();
  // Half of the entries stay free for packets out of storage, so that they come out under any load.
  const std::size_t inner_packets = std::min(state.arrived.size(), (packets.size() + 1) / 2);
  State::Out out{room, packets};
  RxBatch batch{};
  const bool only_storage = packets.size() == 1 && state.next_due_ns <= now_ns;
  if (!only_storage) {
    batch = inner_->receive(room.first(inner_room), std::span(state.arrived).first(inner_packets), now_ns);
  }
  state.peers.clear();
  state.arrived_peers = batch.packet_count > 0 ? inner_->peers() : std::span<const IpAddress>{};
  state.has_peers = state.has_peers || !state.arrived_peers.empty();
  out.used = batch.bytes_used;
  out.packets_reserved = batch.packet_count;
  state.release_due(out, now_ns);
  for (std::uint32_t i = 0; i < batch.packet_count; ++i) {
    --out.packets_reserved;
    state.process(state.arrived[i], out, now_ns);
    state.release_due(out, now_ns);
  }
  state.held_count.store(state.held.size(), std::memory_order_relaxed);
  return {static_cast<std::uint32_t>(out.packet_count), static_cast<std::uint32_t>(std::min<std::size_t>(out.used, room.size()))};
}

void FaultInjector::State::process(const RxPacket& packet, Out& out, std::uint64_t now_ns) {
  // All numbers that a fault needs are drawn before it is known whether it can be done: a full storage changes nothing later.
  const Fault fault = draw();
  std::byte* data = out.room.data() + packet.offset;
  switch (fault) {
    case Fault::loss: owed_flags |= packet.flags & RxPacket::after_drop; return count(fault);
    case Fault::duplicate: {
      const std::uint32_t behind = random.below(9);
      const bool done = hold(packet, out, now_ns + plan.current().hold_max_ns, delivered + 1 + behind);
      let_through(packet, out);
      return count(done ? fault : Fault::none);
    }
    case Fault::reorder:
    case Fault::delay: {
      const std::uint64_t due_packet = fault == Fault::reorder ? delivered + 1 + random.below(8) : kNever;
      if (!hold(packet, out, now_ns + (fault == Fault::reorder ? plan.current().hold_max_ns : plan.current().delay_ns), due_packet)) {
        break;
      }
      owed_flags |= packet.flags & RxPacket::after_drop;
      return count(fault);
    }
    case Fault::corrupt:
      if (packet.bytes == 0) {
        break;
      }
      corrupt(data, packet.bytes);
      let_through(packet, out);
      return count(fault);
    case Fault::truncate: {
      if (packet.bytes == 0) {
        break;
      }
      RxPacket shorter = packet;
      shorter.bytes = static_cast<std::uint16_t>(random.below(packet.bytes));
      let_through(shorter, out);
      return count(fault);
    }
    case Fault::none: break;
  }
  let_through(packet, out);
  count(Fault::none);
}

Fault FaultInjector::State::draw() {
  const double u = random.uniform();
  for (std::size_t i = 1; i < kFaultCount; ++i) {
    if (u < plan.current().limits[i]) {
      return static_cast<Fault>(i);
    }
  }
  return Fault::none;
}

bool FaultInjector::State::hold(const RxPacket& packet, const Out& out, std::uint64_t due_ns, std::uint64_t due_packet) {
  if (free_slots.empty() || packet.bytes > slot_bytes) {
    return false;
  }
  const std::uint32_t slot = free_slots.back();
  free_slots.pop_back();
  std::memcpy(storage.data() + std::size_t{slot} * slot_bytes, out.room.data() + packet.offset, packet.bytes);
  Held entry{packet, due_ns, due_packet, slot, peer_of(packet)};
  entry.packet.flags &= static_cast<std::uint16_t>(~RxPacket::after_drop);
  held.push_back(entry);
  next_due_ns = std::min(next_due_ns, due_ns);
  next_due_packet = std::min(next_due_packet, due_packet);
  return true;
}

void FaultInjector::State::let_through(RxPacket packet, Out& out) {
  packet.flags |= owed_flags;
  owed_flags = 0;
  if (has_peers) packet.peer_address = add_peer(peer_of(packet));
  out.packets[out.packet_count++] = packet;
  ++delivered;
}

// Appends the held packets that are due, while there is room and a free entry; the others stay for the next call.
void FaultInjector::State::release_due(Out& out, std::uint64_t now_ns) {
  if (next_due_ns > now_ns && next_due_packet > delivered) {
    return;
  }
  std::size_t kept = 0;
  next_due_ns = next_due_packet = kNever;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const Held& entry = held[i];
    const std::size_t offset = (out.used + 7u) & ~std::size_t{7};
    const bool due = entry.due_ns <= now_ns || entry.due_packet <= delivered;
    const bool fits = out.packet_count + out.packets_reserved < out.packets.size() && offset + entry.packet.bytes <= out.room.size();
    if (!due || !fits) {
      next_due_ns = std::min(next_due_ns, entry.due_ns);
      next_due_packet = std::min(next_due_packet, entry.due_packet);
      held[kept++] = entry;
      continue;
    }
    std::memcpy(out.room.data() + offset, storage.data() + std::size_t{entry.slot} * slot_bytes, entry.packet.bytes);
    RxPacket packet = entry.packet;
    packet.offset = static_cast<std::uint32_t>(offset);
    if (has_peers) packet.peer_address = add_peer(entry.peer);
    out.packets[out.packet_count++] = packet;
    out.used = (offset + entry.packet.bytes + 7u) & ~std::size_t{7};
    free_slots.push_back(entry.slot);
  }
  held.resize(kept);
}

std::uint32_t FaultInjector::State::add_peer(const IpAddress& peer) {
  if (peers.empty() || peers.back() != peer) peers.push_back(peer);
  return static_cast<std::uint32_t>(peers.size() - 1);
}

void FaultInjector::State::corrupt(std::byte* data, std::uint32_t bytes) {
  std::array<std::uint32_t, 8> flipped{};
  const std::uint32_t count_wanted = 1 + random.below(8);
  for (std::uint32_t n = 0; n < count_wanted;) {
    const std::uint32_t bit = random.below(bytes * 8);
    if (std::find(flipped.begin(), flipped.begin() + n, bit) == flipped.begin() + n) {
      flipped[n++] = bit;
      data[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }
}

std::span<const IpAddress> FaultInjector::peers() const { return state_->peers; }

void FaultInjector::send(std::span<const TxPacket> packets, std::uint64_t now_ns) { inner_->send(packets, now_ns); }

void FaultInjector::wait(std::uint64_t timeout_ns) {
  const State& state = *state_;
  const std::uint64_t until_due_ns = state.next_due_ns > state.last_now_ns ? state.next_due_ns - state.last_now_ns : 0;
  if (until_due_ns != 0) {
    inner_->wait(std::min(timeout_ns, until_due_ns));
  }
}

LinkStats FaultInjector::stats() const { return inner_->stats(); }

std::optional<NicTimes> FaultInjector::nic_times() const { return inner_->nic_times(); }
std::vector<NicCounts> FaultInjector::nic_counts() const { return inner_->nic_counts(); }

bool FaultInjector::finished() const { return inner_->finished() && faults().held == 0; }

Endpoint FaultInjector::local() const { return inner_->local(); }

std::string FaultInjector::path() const { return inner_->path() + ", with faults put in"; }

std::vector<std::string> FaultInjector::notes() const { return inner_->notes(); }

FaultStats FaultInjector::faults() const {
  const auto value = [this](Fault fault) { return state_->books[static_cast<std::size_t>(fault)].load(std::memory_order_relaxed); };
  return {
      value(Fault::none),    value(Fault::loss),     value(Fault::duplicate), value(Fault::reorder),
      value(Fault::corrupt), value(Fault::truncate), value(Fault::delay),     state_->held_count.load(std::memory_order_relaxed)};
}

}  // namespace nanet::link
