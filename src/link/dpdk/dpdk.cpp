// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/dpdk.hpp"
#include "nanet/base/build_info.hpp"

#include <rte_cycles.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "device.hpp"
#include "nanet/config/setting.hpp"
#include "nanet/link/back_end.hpp"
#include "nanet/setup_error.hpp"
#include "neighbours.hpp"
#include "receiver.hpp"
#include "sender.hpp"
#include "sizes.hpp"
#include "station.hpp"

namespace nanet::link {
namespace dpdk {
namespace {

constexpr std::uint32_t kPacketBytesLimit = 9014;
constexpr std::uint32_t kSplitBytesLimit = 1024;
constexpr std::uint32_t kLentLimit = 1u << 24;

std::uint32_t header_bytes(const DpdkConfig& config) {
  return static_cast<std::uint32_t>(kEthernetHeaderBytes) + ip_udp_header_bytes(config);
}

std::uint32_t gpu_split_bytes(const DpdkConfig& config) { return header_bytes(config) + PlacedPacket::head_bytes_max; }

void check_number(const DpdkConfig& config, const char* key, std::uint32_t value, std::uint32_t least, std::uint32_t most) {
  if (value < least || value > most) {
    throw SetupError("link " + config.name + " cannot have " + key + " = " + std::to_string(value),
                     "it can be " + std::to_string(least) + ".." + std::to_string(most), "choose a value there");
  }
}

void check_in_place(const DpdkConfig& config) {
  const auto refuse = [&](const std::string& why, const std::string& suggestion) {
    throw SetupError("link " + config.name + " cannot leave payloads in place", why, suggestion);
  };
  if (config.payload_memory == DpdkMemory::gpu) {
    if (config.payloads == Payloads::copied) {
      throw SetupError("link " + config.name + " cannot copy payloads", "they lie in the memory of a GPU", "set payloads: in_place");
    }
    if (config.split_bytes != gpu_split_bytes(config)) {
      refuse("of a payload in the memory of a GPU the host has to keep 24 bytes",
             "set split_bytes: " + std::to_string(gpu_split_bytes(config)));
    }
    if (config.gpu_memory.empty())
      refuse("no one made memory of a GPU for them", "choose a processor on a GPU, or payload_memory: host");
  }
  if (config.payloads == Payloads::copied) return;
  if (!config.listen) refuse("it only sends", "leave payloads out");
  if (config.payload_memory == DpdkMemory::dpdk)
    refuse("DPDK's own memory is not one piece that a consumer can be told of", "set payload_memory: host");
  if (config.payload_memory == DpdkMemory::host && config.split_bytes != 0) {
    refuse("a consumer on the host reads each in one piece, and split_bytes cuts it", "leave split_bytes out");
  }
  check_number(config, "lent_max", config.lent_max, 1, kLentLimit);
}

const DpdkConfig& checked(const DpdkConfig& config) {
  const std::string who = "link " + config.name;
  if (!config.listen && config.destinations.empty()) {
    throw SetupError(who + " has nothing to do", "neither listen nor destinations is set", "set at least one of them");
  }
  if (config.listen && config.listen->scheme != "dpdk") {
    throw SetupError(who + " cannot listen on " + to_string(*config.listen), "scheme '" + config.listen->scheme + "' is not dpdk",
                     "write dpdk:// or choose the link that serves '" + config.listen->scheme + "'");
  }
  if (config.listen && (config.listen->address.is_any() || config.listen->port == 0)) {
    throw SetupError(who + " cannot listen on " + to_string(*config.listen), "it needs an address of its own and a port, not 0",
                     "write an address that no machine has, as in dpdk://10.0.0.2:6200 or dpdk://[2001:db8::2]:6200");
  }
  if (config.listen) config::refuse_broken(refuse_group(who, *config.listen));
  for (const Endpoint& destination : config.destinations) {
    if (destination.port == 0 || destination.address.is_any()) {
      throw SetupError(who + " cannot send to " + to_string(destination), "a destination needs an address and a port, not 0",
                       "write both, as in udp://10.0.0.1:6200");
    }
  }
  check_number(config, "packet_bytes_max", config.packet_bytes_max, 1, kPacketBytesLimit);
  check_number(config, "descriptors", config.descriptors, 64, 32'768);
  if (config.split_bytes != 0) {
    check_number(config, "split_bytes", config.split_bytes, header_bytes(config), kSplitBytesLimit);
  }
  check_in_place(config);
  check_number(config, "queues", config.queues, 1, DpdkConfig::kQueuesMax);
  check_number(config, "queue", config.queue, 0, config.queues - 1);
  if (config.queues > 1 && !config.listen) {
    throw SetupError(who + " cannot have " + std::to_string(config.queues) + " queues", "it only sends", "leave queues out");
  }
  if (config.queues > 1 && config.payloads == Payloads::in_place) {
    throw SetupError(who + " cannot have " + std::to_string(config.queues) + " queues",
                     "payloads of all would stay in one piece of memory, which belongs to one link",
                     "set payloads: copied, or queues: 1");
  }
  check_number(config, "memory_mib", config.memory_mib, 16, 1u << 20);
  check_number(config, "arp_wait_ms", config.arp_wait_ms, 1, 3'600'000);
  check_number(config, "tx_wait_us", config.tx_wait_us, 0, 1'000'000);
  return config;
}

// What the links of a device's queues have in common.
struct Host {
  Host(const DpdkConfig& config, std::vector<std::string>& notes)
      : neighbours(config), device(config, neighbours.own_address(), notes) {}

  Neighbours neighbours;
  Device device;
};

// Made for queue 0, and found again for the others.
std::shared_ptr<Host> host_of(const DpdkConfig& config, std::vector<std::string>& notes) {
  static std::mutex lock;
  static std::map<std::string, std::weak_ptr<Host>> hosts;  // by device
  const std::lock_guard held(lock);
  std::weak_ptr<Host>& place = hosts[parse_device(config.device).name];
  if (config.queue == 0) {
    auto host = std::make_shared<Host>(config, notes);
    place = host;
    return host;
  }
  if (auto host = place.lock()) return host;
  throw SetupError("link " + config.name + " cannot have queue " + std::to_string(config.queue) + " of device " + config.device,
                   "queue 0, which sets it up, is not open", "open the queues in order, 0 first");
}

class DpdkLink final : public Link {
 public:
  explicit DpdkLink(const DpdkConfig& config)
      : config_(checked(config)),
        host_(host_of(config_, notes_)),
        neighbours_(host_->neighbours),
        device_(host_->device),
        station_(device_, neighbours_, config_.queue) {
    if (config_.queue == 0) find_neighbours();
    if (config_.listen) receiver_.emplace(device_, station_, *config_.listen, config_.queue, payload_memory());
    if (!config_.destinations.empty()) sender_.emplace(device_, neighbours_, receiver_ ? nullptr : &station_, config_);
  }

  std::size_t min_room_bytes() const override {
    if (!receiver_) return 0;
    return config_.payloads == Payloads::in_place ? sizeof(PlacedPacket) : (config_.packet_bytes_max + 7u) & ~std::size_t{7};
  }

  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override {
    return receiver_ ? receiver_->receive(room, packets, now_ns) : RxBatch{};
  }

  flow::PayloadMemory payload_memory() const override {
    if (config_.payloads == Payloads::copied) return {};
    return {.memory = device_.payload_memory()->memory(),
            .kind = config_.payload_memory == DpdkMemory::gpu ? MemoryKind::device : MemoryKind::host};
  }

  std::span<const IpAddress> peers() const override { return receiver_ ? receiver_->peers() : std::span<const IpAddress>{}; }

  void give_back(std::span<const PlacedPacket> packets) override { receiver_->give_back(packets); }

  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override {
    if (sender_) {
      sender_->send(packets, now_ns);
    } else {
      sent_to_nowhere_.add(packets.size());
      tell_dropped(packets);
    }
  }

  void wait(std::uint64_t timeout_ns) override {
    if (receiver_) {
      receiver_->wait(timeout_ns);
    } else {
      const timespec time{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
      ::nanosleep(&time, nullptr);
    }
  }

  LinkStats stats() const override {
    LinkStats stats;
    if (receiver_) receiver_->add_stats(stats);
    if (sender_) sender_->add_stats(stats);
    stats.tx_dropped += sent_to_nowhere_.value();
    if (config_.queue != 0) return stats;  // what the device counts, it counts for all of them
    const DeviceCounts counts = device_.counts();
    stats.rx_kernel_dropped = counts.rx_dropped;
    stats.rx_errors = counts.rx_errors;
    return stats;
  }

  Endpoint local() const override { return config_.listen ? *config_.listen : Endpoint{"dpdk", 0, 0}; }

  std::string path() const override {
    return "DPDK " + device_.driver() + ", polled, " + (config_.huge_pages ? "huge pages" : "ordinary memory") +
           (config_.queues > 1 ? ", queue " + std::to_string(config_.queue) + " of " + std::to_string(config_.queues) : "") +
           (device_.is_steered() ? ", steered by a flow rule" : "") +
           (config_.split_bytes != 0 ? ", split after " + std::to_string(config_.split_bytes) + " bytes" : "") +
           (config_.payload_memory == DpdkMemory::host  ? ", received into memory of the link's own"
            : config_.payload_memory == DpdkMemory::gpu ? ", received into memory of a GPU"
                                                        : "") +
           (config_.payloads == Payloads::in_place ? ", payloads in place" : "");
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = notes_;
    if (config_.queue != 0) return notes;
    if (device_.is_link_down())
      notes.push_back("link " + config_.name + ": nothing comes or goes (the device has no link) look at its other end");
    if (const std::uint64_t malformed = stats().rx_malformed; malformed != 0 && device_.is_packet_socket()) {
      notes.push_back(
          "link " + config_.name + ": " + std::to_string(malformed) +
          " frames cannot be read (longer than the ring's: a sender's segmentation offload may reach this interface) run at the "
          "other end: ethtool -K INTERFACE tx-udp-segmentation off");
    }
    if (const std::uint64_t lost = device_.counts().tx_errors; lost != 0) {
      notes.push_back(
          "link " + config_.name + ": " + std::to_string(lost) +
          " frames were not sent (the driver took them and then says so) look at the device's link, and lower the rate");
    }
    return notes;
  }

 private:
  void find_neighbours();
  bool wait_for(std::size_t hop);

  const DpdkConfig config_;
  std::vector<std::string> notes_;
  const std::shared_ptr<Host> host_;
  Neighbours& neighbours_;
  Device& device_;
  Station station_;
  std::optional<Receiver> receiver_;  // none: only sends
  std::optional<Sender> sender_;      // none: only receives
  Tally sent_to_nowhere_;
};

// Asks for the Ethernet address of every next hop to a destination. Other stations are answered meanwhile.
void DpdkLink::find_neighbours() {
  neighbours_.learn(neighbours_.own_address(), device_.mac());
  for (std::size_t hop = 0; hop < neighbours_.hop_count(); ++hop) {
    if (!wait_for(hop)) {
      throw SetupError(
          "link " + config_.name + " cannot send to " + neighbours_.destination_of(hop),
          to_string(neighbours_.hop_address(hop)) + " did not answer " + (neighbours_.own_address().is_ipv6() ? "NDP" : "ARP") +
              " within " + std::to_string(config_.arp_wait_ms) + " ms",
          "check that it is there and in the network of " + to_string(neighbours_.own_address()) + ", or set a longer arp_wait_ms");
    }
  }
}

bool DpdkLink::wait_for(std::size_t hop) {
  constexpr std::uint64_t kAskPeriodMs = 200;
  const std::uint64_t cycles_per_ms = std::max<std::uint64_t>(rte_get_timer_hz() / 1000, 1);
  const std::uint64_t begin = rte_get_timer_cycles();
  std::uint64_t next_asking_ms = 0;
  while (!neighbours_.is_known(hop)) {
    const std::uint64_t waited_ms = (rte_get_timer_cycles() - begin) / cycles_per_ms;
    if (waited_ms >= config_.arp_wait_ms) return false;
    if (waited_ms >= next_asking_ms) {
      station_.ask(hop);
      next_asking_ms = waited_ms + kAskPeriodMs;
    }
    station_.drain(config_.queues);
    ::usleep(200);
  }
  return true;
}

}  // namespace
}  // namespace dpdk

}  // namespace nanet::link

extern "C" [[gnu::visibility("default")]] const nanet::link::BackEnd* nanet_link_dpdk() {
  using namespace nanet::link;
  static const BackEnd kEntry{nanet::base::kBuildInfo.name, sizeof(DpdkConfig), [](const void* config) -> std::unique_ptr<Link> {
                                return std::make_unique<dpdk::DpdkLink>(*static_cast<const DpdkConfig*>(config));
                              }};
  return &kEntry;
}
