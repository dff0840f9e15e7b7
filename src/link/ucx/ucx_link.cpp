// SPDX-License-Identifier: Apache-2.0
#include "nanet/base/build_info.hpp"
#include "nanet/link/ucx.hpp"

#include <algorithm>
#include <ctime>
#include <deque>

#include "link/rx_room.hpp"
#include "link/tally.hpp"
#include "nanet/link/back_end.hpp"
#include "nanet/rdma/notify_ring.hpp"
#include "nanet/rdma/target.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr std::uint32_t kPacketBytesLimit = 65'507;  // as of a UDP payload: what comes after knows no longer one
constexpr std::uint32_t kRingsMax = 1024;
constexpr std::uint64_t kSleepNs = 50'000;
constexpr std::uint32_t kTurnsUnserved = 64;  // receive calls that found packets, between two looks at connections

const UcxConfig& checked(const UcxConfig& config) {
  const auto refuse = [&](const std::string& problem, const std::string& why, const std::string& suggestion) {
    throw SetupError("link " + config.name + " " + problem, why, suggestion);
  };
  if (!config.listen) refuse("does not know where to listen", "it only receives", "give it an endpoint ucx://ADDRESS:PORT");
  refuse_ipv6(config.name, *config.listen);
  if (!config.destinations.empty()) refuse("cannot send", "over UCX it only receives", "send by another link, or by a UDP socket");
  if (config.ring_count == 0 || config.ring_count > kRingsMax)
    refuse("cannot have ring_count = " + std::to_string(config.ring_count), "1..1024 senders have a ring each",
           "set it to their number");
  if (config.packet_bytes_max == 0 || config.packet_bytes_max > kPacketBytesLimit)
    refuse("cannot have packet_bytes_max = " + std::to_string(config.packet_bytes_max), "a payload has 1..65507 bytes",
           "set it to the longest that is sent");
  return config;
}

// One sender's ring.
struct Ring {
  Ring(const rdma::Worker& worker, const UcxConfig& config, const std::string& ring_name, const rdma::NotifyRingConfig& shape)
      : name(ring_name),
        region(worker, {.name = config.name + " " + ring_name,
                        .bytes = rdma::notify_ring_bytes(shape),
                        .kind = config.memory == UcxMemory::shared ? rdma::RegionKind::host_shared : rdma::RegionKind::host}),
        reader(region.span(), shape) {}

  std::string name;
  rdma::Region region;
  rdma::NotifyReader reader;
  std::optional<std::span<std::byte>> waiting;  // taken, and did not fit into the room
};

class UcxLink final : public Link {
 public:
  explicit UcxLink(const UcxConfig& config);

  std::size_t min_room_bytes() const override { return (config_.packet_bytes_max + 7u) & ~7u; }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;
  void wait(std::uint64_t timeout_ns) override;
  LinkStats stats() const override;
  bool keeps_packets() const override { return true; }
  Endpoint local() const override { return {"ucx", config_.listen->address, target_.port()}; }
  std::string path() const override;
  std::vector<std::string> notes() const override { return {"link " + config_.name + ": " + worker_.reach()}; }

 private:
  bool take_from(std::uint32_t ring_index, RxRoom& out);

  const UcxConfig config_;
  rdma::Worker worker_;
  std::deque<Ring> rings_;
  rdma::Target target_;  // before the memory goes, its connections
  std::uint32_t next_ring_ = 0;
  std::uint32_t turns_unserved_ = 0;
  Tally rx_packets_;
  Tally rx_bytes_;
  Tally rx_calls_;
  Tally rx_batches_;
  Tally rx_malformed_;
  Tally tx_dropped_;  // another thread's
};

UcxLink::UcxLink(const UcxConfig& config)
    : config_(checked(config)),
      worker_({.transports = config.transports, .address = to_string(config.listen->address), .trust_network = config.trust_network}),
      target_(worker_,
              {.address = to_string(config.listen->address), .port = config.listen->port, .connection_count_max = config.ring_count}) {
  const rdma::NotifyRingConfig shape{.slot_count = config.slot_count, .payload_bytes_max = config.packet_bytes_max};
  for (std::uint32_t index = 0; index < config.ring_count; ++index) {
    const Ring& ring = rings_.emplace_back(worker_, config, "ring-" + std::to_string(index), shape);
    target_.expose(
        ring.region,
        {.name = ring.name, .permissions = {.read = true, .write = true}, .token = config.token, .connection_count_max = 1});
  }
}

// Connections, and what a transport cannot do alone, need this thread: at every call that finds nothing, and now and then else.
RxBatch UcxLink::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t /*now_ns*/) {
  rx_calls_.add(1);
  RxRoom out(room, packets);
  std::uint32_t rings_empty = 0;
  while (rings_empty < rings_.size() && out.packets_left() > 0) {  // one packet of each in turn
    const std::uint32_t index = next_ring_;
    const bool took = take_from(index, out);
    if (!took && rings_[index].waiting) break;  // the room is full
    rings_empty = took ? 0 : rings_empty + 1;
    next_ring_ = index + 1 == rings_.size() ? 0 : index + 1;
  }
  if (out.packet_count == 0 || ++turns_unserved_ >= kTurnsUnserved) {
    worker_.progress();
    turns_unserved_ = 0;
  }
  if (out.packet_count > 0) {
    rx_batches_.add(1);
    rx_packets_.add(out.packet_count);
    rx_bytes_.add(out.payload_bytes);
  }
  return out.batch();
}

// One payload, from its ring into the room. False: there is none, or it waits for a larger room.
bool UcxLink::take_from(std::uint32_t ring_index, RxRoom& out) {
  Ring& ring = rings_[ring_index];
  if (!ring.waiting) {
    const std::uint64_t malformed = ring.reader.malformed_count();
    ring.waiting = ring.reader.take();
    rx_malformed_.add(ring.reader.malformed_count() - malformed);
    if (!ring.waiting) return false;
  }
  const std::span<const std::byte> payload = *ring.waiting;
  if (!out.add(payload, static_cast<std::uint16_t>(ring_index + 1))) return false;
  ring.reader.give_back(payload);
  ring.waiting.reset();
  return true;
}

void UcxLink::send(std::span<const TxPacket> packets, std::uint64_t /*now_ns*/) {
  tx_dropped_.add(packets.size());
  tell_dropped(packets);
}

void UcxLink::wait(std::uint64_t timeout_ns) {
  if (worker_.progress()) return;
  const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(std::min(timeout_ns, kSleepNs))};
  ::nanosleep(&pause, nullptr);
}

LinkStats UcxLink::stats() const {
  return {.rx_packets = rx_packets_.value(),
          .rx_bytes = rx_bytes_.value(),
          .rx_calls = rx_calls_.value(),
          .rx_batches = rx_batches_.value(),
          .rx_copied_bytes = rx_bytes_.value(),
          .rx_malformed = rx_malformed_.value(),
          .tx_dropped = tx_dropped_.value()};
}

std::string UcxLink::path() const {
  return "UCX " + rdma::ucx_version() + ", " + std::to_string(rings_.size()) + (rings_.size() == 1 ? " ring in " : " rings in ") +
         (config_.memory == UcxMemory::shared ? "shared memory" : "host memory");
}

}  // namespace

}  // namespace nanet::link

extern "C" [[gnu::visibility("default")]] const nanet::link::BackEnd* nanet_link_ucx() {
  using namespace nanet::link;
  static const BackEnd kEntry{nanet::base::kBuildInfo.name, sizeof(UcxConfig), [](const void* config) -> std::unique_ptr<Link> {
                                return std::make_unique<UcxLink>(*static_cast<const UcxConfig*>(config));
                              }};
  return &kEntry;
}
