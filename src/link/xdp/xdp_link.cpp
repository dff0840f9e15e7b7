// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>

#include "link/socket.hpp"
#include "link/xdp/interface.hpp"
#include "link/xdp/queue.hpp"
#include "link/xdp/steering.hpp"
#include "link/xdp/xdp_receiver.hpp"
#include "link/xdp/xdp_sender.hpp"
#include "nanet/base/build_info.hpp"
#include "nanet/flow/region.hpp"
#include "nanet/link/back_end.hpp"
#include "nanet/link/xdp.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr std::uint32_t kTagBytes = 8;  // two VLAN tags
constexpr std::uint32_t kSmallFrameBytes = 2048;
constexpr std::uint32_t kFrameBytes = 4096;
constexpr std::uint32_t kLentMax = 1u << 24;

// All that a link receives and sends is of one family.
bool is_ipv6(const XdpConfig& config) { return (config.listen ? *config.listen : config.destinations.front()).address.is_ipv6(); }

// IP and UDP.
std::uint32_t header_bytes(const XdpConfig& config) {
  return static_cast<std::uint32_t>(is_ipv6(config) ? kIpv6UdpHeaderBytes : kIpUdpHeaderBytes);
}

// In place, so that payloads of packets without tags and options begin at a multiple of 16.
std::uint32_t headroom(const XdpConfig& config) {
  if (config.payloads == Payloads::copied) return 0;
  return (32 - (kFrameHeadroomBytes + static_cast<std::uint32_t>(kEthernetHeaderBytes) + header_bytes(config)) % 16) % 16;
}

std::uint32_t payload_max(std::uint32_t frame_bytes, const XdpConfig& config) {
  const std::uint32_t before = kFrameHeadroomBytes + headroom(config) + static_cast<std::uint32_t>(kEthernetHeaderBytes) + kTagBytes;
  return frame_bytes - before - header_bytes(config);
}

class XdpLink : public Link {
 public:
  explicit XdpLink(const XdpConfig& config);

  std::size_t min_room_bytes() const override { return receiver_ ? receiver_->min_room_bytes() : 0; }
  RxBatch receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t now_ns) override;
  flow::PayloadMemory payload_memory() const override;
  void give_back(std::span<const PlacedPacket> packets) override;
  std::span<const IpAddress> peers() const override { return receiver_ ? receiver_->peers() : std::span<const IpAddress>{}; }
  void send(std::span<const TxPacket> packets, std::uint64_t now_ns) override;
  void wait(std::uint64_t timeout_ns) override;
  LinkStats stats() const override;
  Endpoint local() const override { return local_; }
  std::string path() const override;
  std::vector<std::string> notes() const override;

 private:
  void check() const;
  void check_in_place() const;
  QueueConfig queue_config(std::size_t index) const;
  void choose_port();
  void steer();
  void open_queues();

  XdpConfig config_;
  Interface interface_;
  Endpoint local_;
  std::uint16_t source_port_ = 0;
  std::vector<std::string> notes_;
  std::optional<Socket> port_holder_;  // keeps a port that the kernel chose
  std::optional<Socket> member_;  // of the group to listen on: the kernel tells the NIC and the network. It is bound to no port, so gets nothing
  // Destroyed from the last to the first: the program is gone before the sockets, and those before the frames.
  std::optional<flow::Region> frames_;  // of all queues
  std::vector<std::unique_ptr<Queue>> queues_;
  std::shared_ptr<Steering> steering_;  // of all queues of the endpoint
  std::unique_ptr<XdpReceiver> receiver_;
  std::unique_ptr<XdpSender> sender_;
  alignas(64) Tally sent_to_nowhere_;
};

XdpLink::XdpLink(const XdpConfig& config) : config_(config), local_{"xdp", 0, 0} {
  check();
  const IpAddress address = config.listen ? config.listen->address : IpAddress();
  interface_ = find_interface(config.interface, address, config.name);
  const std::string problem = "link " + config.name + " cannot use interface " + interface_.name;
  const bool is_group = address.is_multicast();
  if (is_group && config.queue == 0)
    join_group(member_.emplace(family_of(address)), *config.listen, config.group_join, interface_.name, config.name);
  if (!address.is_any() && !is_group &&
      std::find(interface_.addresses.begin(), interface_.addresses.end(), address) == interface_.addresses.end()) {
    throw SetupError(problem, "it does not have the address of " + to_string(*config.listen),
                     "choose the interface that has it (`ip addr`), or listen on " +
                         std::string(address.is_ipv6() ? "xdp://[::]:PORT" : "xdp://0.0.0.0:PORT"));
  }
  if (!interface_.is_up) throw SetupError(problem, "it is down", "ip link set " + interface_.name + " up");
  if (config.packet_bytes_max + header_bytes(config) > interface_.mtu) {
    throw SetupError(problem,
                     "its MTU of " + std::to_string(interface_.mtu) + " is too small for packets of " +
                         std::to_string(config.packet_bytes_max) + " bytes, and fragments are not taken",
                     "set packet_bytes_max to " + std::to_string(interface_.mtu - header_bytes(config)) + ", or: ip link set " +
                         interface_.name + " mtu " + std::to_string(config.packet_bytes_max + header_bytes(config)));
  }
  if (config_.queues.empty()) {
    for (std::uint32_t i = 0; i < (config.listen ? interface_.queue_count : 1); ++i) config_.queues.push_back(i);
  }
  choose_port();
  steer();
  if (config_.split_queues) config_.queues = {config_.queues[config_.queue]};
  open_queues();
  if (steering_ && config.listen) {
    for (const auto& queue : queues_) steering_->add_socket(queue->number(), queue->rx_fd());
    steering_->forget_missed();
    receiver_ = std::make_unique<XdpReceiver>(config_, local_, queues_);
  }
  if (!config.destinations.empty()) {
    sender_ = std::make_unique<XdpSender>(config_, interface_, is_group ? any_of(address) : local_.address, source_port_,
                                          *queues_.front());
  }
}

void XdpLink::check() const {
  const auto refuse = [this](const std::string& what, const std::string& why, const std::string& suggestion) {
    throw SetupError("link " + config_.name + " cannot have " + what, why, suggestion);
  };
  const auto check_endpoint = [&](const Endpoint& endpoint) {
    if (endpoint.scheme != "xdp" && endpoint.scheme != "udp") {
      refuse(to_string(endpoint), "scheme '" + endpoint.scheme + "' is not xdp", "write xdp:// or choose the link that serves it");
    }
  };
  if (!config_.listen && config_.destinations.empty()) {
    throw SetupError("link " + config_.name + " has nothing to do", "neither listen nor destinations is set",
                     "set at least one of them");
  }
  if (config_.listen) check_endpoint(*config_.listen);
  for (const Endpoint& destination : config_.destinations) {
    check_endpoint(destination);
    if (destination.address.is_ipv6() != is_ipv6(config_)) {
      refuse("the destination " + to_string(destination), "all that it receives and sends is of one family, IPv4 or IPv6",
             "use addresses of one family, or let a socket send (leave `via` out)");
    }
    if (is_ipv6(config_) && config_.checksum == XdpChecksum::absent) {
      refuse("checksum: absent", "packets over IPv6 have one always", "leave checksum out");
    }
    if (destination.address.is_any() || destination.port == 0) {
      refuse("the destination " + to_string(destination), "it has no address or no port", "write xdp://ADDRESS:PORT");
    }
  }
  const IpAddress address = config_.listen ? config_.listen->address : IpAddress();
  if (config_.interface.empty() && (address.is_any() || address.is_multicast())) {
    refuse("no interface", "no address to listen on tells it", "name one in `interface`");
  }
  if (!std::has_single_bit(config_.frame_count) || config_.frame_count < 64 || config_.frame_count > (1u << 20)) {
    refuse("frame_count = " + std::to_string(config_.frame_count), "it is no power of two from 64 to 1048576",
           "8192 is 16 MiB a queue");
  }
  check_in_place();
  if (config_.packet_bytes_max < 1 || config_.packet_bytes_max > 9014) {
    refuse("packet_bytes_max = " + std::to_string(config_.packet_bytes_max), "it is not 1 to 9014",
           "jumbo frames of MTU 9000 hold 8972");
  }
  if (config_.split_queues && (!config_.listen || config_.queue >= config_.queues.size())) {
    refuse("queue " + std::to_string(config_.queue) + " of its own", "it only sends, or names no such queue",
           "leave split_queues out");
  }
  std::vector<std::uint32_t> sorted = config_.queues;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    refuse("a queue twice", "queue " + std::to_string(*std::adjacent_find(sorted.begin(), sorted.end())) + " is named again",
           "name each once");
  }
}

void XdpLink::check_in_place() const {
  if (config_.payloads == Payloads::copied) return;
  const std::string problem = "link " + config_.name + " cannot leave payloads in place";
  const std::uint32_t most = payload_max(kFrameBytes, config_);
  if (!config_.listen) throw SetupError(problem, "it only sends", "leave payloads out");
  if (config_.packet_bytes_max > most) {
    throw SetupError(problem,
                     "packets of " + std::to_string(config_.packet_bytes_max) +
                         " bytes take several frames, and a consumer reads a payload in one piece",
                     "set packet_bytes_max to " + std::to_string(most) + " at most, or payloads: copied");
  }
  if (config_.lent_max < 1 || config_.lent_max > kLentMax) {
    throw SetupError(problem, "lent_max is " + std::to_string(config_.lent_max) + ", not 1 to " + std::to_string(kLentMax),
                     "lend as many packets as the buffers of the CLOP can name");
  }
}

// The port packets come to and go out from. The kernel gives one that is free, and gives it to no one else while this link lives.
void XdpLink::choose_port() {
  if (config_.queue > 0) {
    local_ = {"xdp", config_.listen->address, config_.listen->port};
    source_port_ = local_.port;
    return;
  }
  const bool chosen = config_.listen && config_.listen->port != 0;
  const Endpoint wanted{"udp", config_.listen ? config_.listen->address : any_of(config_.destinations.front().address),
                        chosen ? config_.listen->port : std::uint16_t{0}};
  Socket socket(family_of(wanted.address));
  const SocketAddress address(wanted);
  if (::bind(socket.fd(), address.data(), address.bytes()) != 0) {
    if (!chosen || errno != EADDRINUSE) {
      throw SetupError("link " + config_.name + " has no port", std::strerror(errno), "name one that is allowed and free");
    }
    notes_.push_back("link " + config_.name + ": a socket of the kernel has port " + std::to_string(wanted.port) +
                     " too (another program listens there) packets of " + interface_.name + " no longer reach it");
    source_port_ = wanted.port;
  } else {
    source_port_ = local_endpoint(socket).port;
  }
  if (config_.listen) local_ = {"xdp", config_.listen->address, source_port_};
  if (!chosen) {
    socket.set(SOL_SOCKET, SO_RCVBUF, 1);  // no one reads what comes in
    port_holder_.emplace(std::move(socket));
  }
}

void XdpLink::steer() {
  // Some drivers have the rings for zero copy only under a program, also to send: one is attached that takes nothing.
  if (!config_.listen && config_.zero_copy != XdpZeroCopy::required) return;
  const Steering::Config steering{
      .link_name = config_.name,
      .address = local_.address,
      .port = local_.port,
      .queue_limit = std::max(interface_.queue_count, *std::max_element(config_.queues.begin(), config_.queues.end()) + 1),
      .attach = config_.attach,
      .multi_buffer = config_.packet_bytes_max > payload_max(kFrameBytes, config_),
  };
  steering_ = config_.queue > 0 ? Steering::join(steering, interface_) : Steering::share(steering, interface_, notes_);
}

void XdpLink::open_queues() {
  const bool only_copies = !steering_ || steering_->mode() == Steering::Mode::generic;
  if (only_copies && config_.zero_copy == XdpZeroCopy::required) {
    throw SetupError("link " + config_.name + " cannot have zero copy on " + interface_.name,
                     "the XDP program runs behind its driver", "use zero_copy: automatic, which copies where it must");
  }
  std::vector<QueueConfig> configs;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < config_.queues.size(); ++i) {
    configs.push_back(queue_config(i));
    if (only_copies) configs.back().zero_copy = XdpZeroCopy::off;
    bytes += bytes_of_frames(configs.back());
  }
  frames_.emplace(flow::RegionConfig{.name = "frames of link " + config_.name, .bytes = bytes, .huge_pages = config_.huge_pages});
  notes_.insert(notes_.end(), frames_->notes().begin(), frames_->notes().end());
  std::span<std::byte> rest = frames_->span();
  for (const QueueConfig& config : configs) {
    queues_.push_back(std::make_unique<Queue>(config, rest.first(bytes_of_frames(config)), notes_));
    rest = rest.subspan(bytes_of_frames(config));
  }
  if (config_.zero_copy == XdpZeroCopy::automatic && !queues_.front()->is_zero_copy()) {
    notes_.push_back("link " + config_.name + ": the kernel copies each packet of " + interface_.name + " into a frame (" +
                     (!steering_    ? "it only sends"
                      : only_copies ? "the XDP program runs behind the driver"
                                    : "the driver has no zero copy") +
                     ") use a NIC whose driver has it if the rate is not enough");
  }
}

QueueConfig XdpLink::queue_config(std::size_t index) const {
  const bool sends = index == 0 && !config_.destinations.empty();
  const std::uint32_t tx_frames = !sends ? 0 : config_.listen ? config_.frame_count / 2 : config_.frame_count;
  // All that is lent may have come on one queue, and the kernel must have as many frames as ever.
  const std::uint32_t lent_frames = config_.payloads == Payloads::in_place ? (config_.lent_max + 63) / 64 * 64 : 0;
  const bool is_small = config_.packet_bytes_max <= payload_max(kSmallFrameBytes, config_);
  return {
      .link_name = config_.name,
      .interface = interface_.name,
      .queue = config_.queues[index],
      .rx_frames = !config_.listen ? 0 : config_.frame_count - tx_frames + lent_frames,
      .tx_frames = tx_frames,
      .frame_bytes = is_small ? kSmallFrameBytes : kFrameBytes,
      .headroom_bytes = headroom(config_),
      .several_frames = config_.packet_bytes_max > payload_max(kFrameBytes, config_),
      .zero_copy = config_.zero_copy,
      .busy_poll_us = config_.busy_poll_us,
  };
}

flow::PayloadMemory XdpLink::payload_memory() const {
  return config_.payloads == Payloads::in_place ? flow::PayloadMemory{.memory = frames_->span()} : flow::PayloadMemory{};
}

void XdpLink::give_back(std::span<const PlacedPacket> packets) { receiver_->give_back(packets); }

RxBatch XdpLink::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t /*now_ns*/) {
  return receiver_ ? receiver_->receive(room, packets) : RxBatch{};
}

void XdpLink::send(std::span<const TxPacket> packets, std::uint64_t /*now_ns*/) {
  if (sender_) {
    sender_->send(packets);
  } else {
    sent_to_nowhere_.add(packets.size());
    tell_dropped(packets);
  }
}

void XdpLink::wait(std::uint64_t timeout_ns) {
  if (receiver_) {
    receiver_->wait(timeout_ns);
  } else {
    wait_for(-1, 0, timeout_ns);
  }
}

LinkStats XdpLink::stats() const {
  LinkStats stats;
  if (receiver_) {
    receiver_->add_stats(stats);
    if (config_.queue == 0) stats.rx_kernel_dropped += steering_->missed();
  }
  if (sender_) sender_->add_stats(stats);
  stats.tx_dropped += sent_to_nowhere_.value();
  return stats;
}

std::string XdpLink::path() const {
  std::string text = "AF_XDP, ";
  text += !receiver_ ? "sends only" : steering_->mode() == Steering::Mode::driver ? "driver mode" : "generic mode";
  text += queues_.front()->is_zero_copy() ? ", zero copy" : ", copied";
  text += queues_.size() == 1 ? ", queue " : ", queues ";
  for (std::size_t i = 0; i < queues_.size();) {
    std::size_t last = i;
    while (last + 1 < queues_.size() && queues_[last + 1]->number() == queues_[last]->number() + 1) ++last;
    if (i != 0) text += '+';
    text += std::to_string(queues_[i]->number());
    if (last != i) text.append("-").append(std::to_string(queues_[last]->number()));
    i = last + 1;
  }
  if (config_.payloads == Payloads::in_place) text += ", payloads in place";
  return text;
}

std::vector<std::string> XdpLink::notes() const {
  std::vector<std::string> notes = notes_;
  const std::uint64_t missed = receiver_ && config_.queue == 0 ? steering_->missed() : 0;
  if (missed != 0) {
    notes.push_back(
        "link " + config_.name + ": " + std::to_string(missed) + " packets came on queues of " + interface_.name +
        " that it does not read and went to the kernel (the list of queues leaves some out, or their count changed) name all "
        "queues and start again, or: ethtool -L " +
        interface_.name + " combined " + std::to_string(queues_.size()));
  }
  const std::uint32_t queue_count = receiver_ ? queue_count_of(interface_.name) : 0;
  if (queue_count != 0 && queue_count != interface_.queue_count) {
    notes.push_back("link " + config_.name + ": interface " + interface_.name + " has " + std::to_string(queue_count) +
                    " queues now, not " + std::to_string(interface_.queue_count) +
                    " (somebody changed it) start again, or set it back: ethtool -L " + interface_.name);
  }
  if (sender_) {
    for (const std::string& destination : sender_->unknown()) {
      notes.push_back("link " + config_.name + ": packets to " + destination + " are dropped (no one answers ARP for it on " +
                      interface_.name + ") they go out as soon as somebody does");
    }
  }
  return notes;
}

}  // namespace

}  // namespace nanet::link

extern "C" [[gnu::visibility("default")]] const nanet::link::BackEnd* nanet_link_xdp() {
  using namespace nanet::link;
  static const BackEnd kEntry{nanet::base::kBuildInfo.name, sizeof(XdpConfig), [](const void* config) -> std::unique_ptr<Link> {
                                return std::make_unique<XdpLink>(*static_cast<const XdpConfig*>(config));
                              }};
  return &kEntry;
}
