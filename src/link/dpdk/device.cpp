// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_flow.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>

#include "eal.hpp"
#include "nanet/setup_error.hpp"
#include "ndp.hpp"
#include "pool.hpp"
#include "sizes.hpp"
#include "split.hpp"

namespace nanet::link::dpdk {
namespace {

constexpr std::uint32_t kPoolCache = 256;     // buffers that a thread keeps for itself
constexpr std::uint32_t kAfXdpFrames = 2048;  // that net_af_xdp gives the kernel, whatever is asked
constexpr std::uint32_t kRingHeadBytes = 96;  // in front of a frame in the ring of a packet socket, at most

std::string error_text(int error) { return first_message(rte_strerror(std::abs(error))); }

static_assert(kHeadroomBytes == RTE_PKTMBUF_HEADROOM);

// The packet socket's ring: as many frames as descriptors, each long enough. Setting one of these requires setting them all.
void complete_packet_ring(DeviceText& device, const DpdkConfig& config) {
  if (device.argument("framesz") || device.argument("blocksz") || device.argument("framecnt")) return;
  const std::uint32_t frame = std::max(std::bit_ceil(frame_bytes(config) + kRingHeadBytes), 2048u);
  const std::uint32_t block = std::max(frame, 65'536u);
  const std::uint32_t frames_of_block = block / frame;
  const std::uint32_t blocks = (config.descriptors + frames_of_block - 1) / frames_of_block;
  device.add_argument("blocksz", std::to_string(block));
  device.add_argument("framesz", std::to_string(frame));
  device.add_argument("framecnt", std::to_string(std::max(blocks, 1u) * frames_of_block));
}

std::uint32_t buffer_bytes_of(const DeviceText& device, const DpdkConfig& config) {
  const std::uint32_t bytes = buffer_bytes(config);
  if (!device.is("net_af_packet")) return bytes;  // its driver wants a whole frame of the ring to fit
  const int ring_frame = std::atoi(device.argument("framesz").value_or("2048").c_str());
  return std::max(bytes, static_cast<std::uint32_t>(std::clamp(ring_frame, 2048, 65'000 - RTE_PKTMBUF_HEADROOM)) + kHeadroomBytes);
}

std::string probe_advice(const DeviceText& device) {
  if (device.is_pci()) {
    return "look at dpdk-devbind.py --status: the device must be bound to vfio-pci, or have a driver that shares it (mlx5)";
  }
  return "check device: net_af_packet0,iface=eth1 for example; its driver must be installed (Debian: librte-net-..., in "
         "libdpdk-dev)";
}

}  // namespace

Device::Device(const DpdkConfig& config, const IpAddress& own, std::vector<std::string>& notes)
    : text_(parse_device(config.device)) {
  if (text_.name.empty()) {
    throw SetupError("link " + config.name + " has no device", "device is empty",
                     "set device: a PCI address, or a virtual one such as net_af_packet0,iface=eth1");
  }
  if (text_.is("net_af_packet")) {
    complete_packet_ring(text_, config);
    if (config.queues > 1) text_.add_argument("qpairs", std::to_string(config.queues));
  }
  if (text_.is("net_af_xdp") && config.queues > 1) text_.add_argument("queue_count", std::to_string(config.queues));
  Eal& eal = Eal::instance();
  eal.start({.huge_pages = config.huge_pages,
             .memory_mib = config.memory_mib,
             .pci_device = text_.is_pci() ? text_.text() : "",
             .more = config.eal_arguments},
            config.name);
  const std::lock_guard lock(eal.control());
  try {
    check_interface(config, notes);
    probe(config);
    configure(config, notes);
    if (config.listen) steer(*config.listen, config.queues);
    if (ip_udp_header_bytes(config) == kIpv6UdpHeaderBytes) hear_solicitations(solicited_node(own), config, notes);
  } catch (...) {
    close();
    throw;
  }
}

Device::~Device() {
  const std::lock_guard lock(Eal::instance().control());
  close();
}

void Device::check_interface(const DpdkConfig& config, std::vector<std::string>& notes) {
  const std::string who = "link " + config.name;
  if (text_.is("net_pcap")) raw_ip_ = holds_raw_ip(text_.argument("rx_pcap").value_or(""));
  const std::optional<std::string> name = text_.argument("iface");
  if (!name || text_.is("net_tap")) return;  // that driver creates the interface
  interface_name_ = *name;
  interface_ = find_interface(*name);
  if (!interface_) throw SetupError(who + " cannot use interface " + *name, "there is no such interface", "choose one of: ip link");
  if (!interface_->up) {
    throw SetupError(who + " cannot use interface " + *name, "it is switched off", "run: ip link set dev " + *name + " up");
  }
  if (!interface_->carrier)
    notes.push_back(who + ": nothing is received yet (interface " + *name + " has no carrier) look at its other end");
  if (interface_->mtu_bytes < ip_bytes(config)) {
    throw SetupError(
        who + " cannot receive packets of " + std::to_string(config.packet_bytes_max) + " bytes",
        "interface " + *name + " has an MTU of " + std::to_string(interface_->mtu_bytes),
        "run: ip link set dev " + *name + " mtu " + std::to_string(ip_bytes(config)) + ", or set a smaller packet_bytes_max");
  }
  if (text_.is("net_af_packet") && !has_capability(CAP_NET_RAW)) {
    throw SetupError(who + " cannot use interface " + *name, "no privilege: CAP_NET_RAW is missing",
                     "run as root, or give the program cap_net_raw");
  }
  if (text_.is("net_af_xdp") && (!has_capability(CAP_NET_RAW) || !has_capability(CAP_NET_ADMIN))) {
    throw SetupError(who + " cannot use interface " + *name, "no privilege: CAP_NET_ADMIN or CAP_NET_RAW is missing", "run as root");
  }
}

void Device::probe(const DpdkConfig& config) {
  const std::string who = "link " + config.name;
  if (!Eal::instance().claim(text_.name)) {
    throw SetupError(who + " cannot use device " + text_.name, "another link of this process has it",
                     "give each link a device of its own; virtual ones are numbered: net_af_packet0, net_af_packet1");
  }
  claimed_ = true;
  if (interface_ && text_.is("net_af_packet")) socket_drops_.emplace();
  forget_messages();
  // A PCI device that DPDK was started with is there already.
  if (rte_eth_dev_get_port_by_name(text_.name.c_str(), &port_) != 0) {
    if (const int error = rte_dev_probe(text_.text().c_str()); error < 0) {
      throw SetupError(who + " cannot use device " + text_.text(), error_text(error), probe_advice(text_));
    }
  }
  if (rte_eth_dev_get_port_by_name(text_.name.c_str(), &port_) != 0) {
    throw SetupError(who + " cannot use device " + text_.text(), "DPDK has no network port of that name", probe_advice(text_));
  }
  probed_ = true;
  if (socket_drops_) socket_drops_->take_new(interface_->index);
}

void Device::configure(const DpdkConfig& config, std::vector<std::string>& notes) {
  const std::string who = "link " + config.name;
  const auto must = [&](int error, const char* step) {
    if (error < 0) {
      throw SetupError(who + " cannot " + step + " device " + text_.text(), error_text(error),
                       "check its arguments, and descriptors");
    }
  };
  rte_eth_dev_info info{};
  must(rte_eth_dev_info_get(port_, &info), "ask");
  device_ = info.device;
  driver_ = info.driver_name;
  if (info.max_mtu < ip_bytes(config)) {
    throw SetupError(who + " cannot receive packets of " + std::to_string(config.packet_bytes_max) + " bytes",
                     "driver " + driver_ + " takes an MTU of " + std::to_string(info.max_mtu) + " at most",
                     "set a smaller packet_bytes_max");
  }
  check_receiving(config, info);
  const bool two_tx_queues = text_.is_pci() && info.max_tx_queues >= 2;
  rte_eth_conf conf{};
  if (text_.is_pci()) conf.rxmode.mtu = std::max(ip_bytes(config), kIpBytesMin);  // an interface's MTU is the kernel's business
  conf.rxmode.offloads = info.rx_offload_capa &
                         (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_SCATTER);
  // A tag taken off leaves the split where it belongs.
  if (config.split_bytes != 0) {
    conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP);
  }
  spread(config, info, conf);
  must(rte_eth_dev_configure(port_, static_cast<std::uint16_t>(config.queues), two_tx_queues ? 2 : 1, &conf), "configure");
  auto rx_descriptors = static_cast<std::uint16_t>(std::max<std::uint32_t>(config.descriptors, info.default_rxportconf.ring_size));
  auto tx_descriptors = static_cast<std::uint16_t>(std::max<std::uint32_t>(config.descriptors, info.default_txportconf.ring_size));
  must(rte_eth_dev_adjust_nb_rx_tx_desc(port_, &rx_descriptors, &tx_descriptors), "configure");
  make_pools(config, rx_descriptors, tx_descriptors, notes);
  forget_messages();
  const auto socket = static_cast<unsigned>(rte_eth_dev_socket_id(port_));
  for (std::uint16_t queue = 0; queue < config.queues; ++queue) {
    must(set_up_receive_queue(queue, config, info, rx_descriptors, conf.rxmode.offloads), "set up a receive queue of");
  }
  must(rte_eth_tx_queue_setup(port_, 0, tx_descriptors, socket, nullptr), "set up a transmit queue of");
  if (two_tx_queues) {
    must(rte_eth_tx_queue_setup(port_, 1, tx_descriptors, socket, nullptr), "set up a transmit queue of");
    answer_queue_.id = 1;
  }
  must(rte_eth_dev_start(port_), "start");
  rte_ether_addr mac{};
  must(rte_eth_macaddr_get(port_, &mac), "ask");
  std::copy(std::begin(mac.addr_bytes), std::end(mac.addr_bytes), mac_.begin());
  std::uint32_t mtu = frame_bytes(config) - static_cast<std::uint32_t>(kEthernetHeaderBytes) - kVlanTagsBytes;
  if (interface_) mtu = std::min(mtu, interface_->mtu_bytes);
  payload_bytes_max_ = mtu - ip_udp_header_bytes(config);
  if (text_.is("net_af_xdp") && config.descriptors > kAfXdpFrames) {
    notes.push_back(who + ": no more than " + std::to_string(kAfXdpFrames) + " packets wait while no one reads, not " +
                    std::to_string(config.descriptors) +
                    " (net_af_xdp gives the kernel no more frames) use xdp:// to bridge longer pauses");
  }
  if (text_.is_pci() && !config.huge_pages) {
    notes.push_back(who + ": pools in ordinary memory (huge_pages is off) set huge_pages: true for a NIC");
  }
}

// Several queues: the device chooses by a hash of addresses and ports. A virtual one may have a way of its own (packet sockets: the kernel's).
void Device::spread(const DpdkConfig& config, const rte_eth_dev_info& info, rte_eth_conf& conf) const {
  if (config.queues == 1) return;
  const std::string problem = "link " + config.name + " cannot have " + std::to_string(config.queues) + " queues";
  if (info.max_rx_queues < config.queues) {
    throw SetupError(problem, "device " + text_.text() + " has " + std::to_string(info.max_rx_queues),
                     "set queues to that at most, or give the device more (its arguments)");
  }
  constexpr std::uint64_t kWanted = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_UDP;
  const std::uint64_t hashed = info.flow_type_rss_offloads & kWanted;
  if (hashed == 0 && text_.is_pci()) {
    throw SetupError(problem, "driver " + driver_ + " does not spread UDP over queues (RSS)", "set queues: 1");
  }
  if (hashed == 0) return;
  conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
  conf.rx_adv_conf.rss_conf.rss_hf = hashed;
}

void Device::check_receiving(const DpdkConfig& config, const rte_eth_dev_info& info) const {
  if (config.split_bytes != 0) {
    if (const std::string why = why_no_split(info); !why.empty()) {
      throw SetupError("link " + config.name + " cannot split headers from data", why,
                       "leave split_bytes out, or use a NIC whose driver does it (ConnectX: mlx5)");
    }
  }
  if (config.payload_memory == DpdkMemory::host && text_.is("net_af_xdp")) {
    throw SetupError("link " + config.name + " cannot receive into memory of its own",
                     "net_af_xdp gives the kernel the pool itself, data and bookkeeping in one", "set payload_memory: dpdk");
  }
  if (config.payloads == Payloads::in_place && text_.is("net_ring")) {
    throw SetupError("link " + config.name + " cannot leave payloads in place",
                     "net_ring hands on the sender's own buffers, which are elsewhere", "set payloads: copied");
  }
}

void Device::make_pools(const DpdkConfig& config, std::uint32_t rx_descriptors, std::uint32_t tx_descriptors,
                        std::vector<std::string>& notes) {
  static std::uint32_t count = 0;  // names must be new; control() is held
  const std::string number = std::to_string(count++);
  const std::uint32_t bytes = buffer_bytes_of(text_, config);
  const auto must = [&](rte_mempool* pool, std::uint32_t buffers) {
    if (pool == nullptr) {
      throw SetupError("link " + config.name + " gets no memory for " + std::to_string(buffers) + " buffers of " +
                           std::to_string(bytes) + " bytes",
                       rte_strerror(rte_errno),
                       "set a larger memory_mib than " + std::to_string(config.memory_mib) + ", or fewer descriptors");
    }
    return pool;
  };
  const bool on_huge_pages = !config.huge_pages && !text_.is_pci();
  const auto make = [&](const char* name, std::uint32_t buffers) {
    return must(on_huge_pages ? make_pool_on_huge_pages(name + number, buffers, bytes, kPoolCache)
                              : rte_pktmbuf_pool_create((name + number).c_str(), buffers, kPoolCache, 0,
                                                        static_cast<std::uint16_t>(bytes), SOCKET_ID_ANY),
                buffers);
  };
  // net_af_xdp also copies what it sends into buffers of the pool that it receives with.
  const std::uint32_t rx_buffers = text_.is("net_af_xdp")
                                       ? receive_buffers(config, std::min(rx_descriptors, kAfXdpFrames)) + tx_descriptors
                                       : receive_buffers(config, rx_descriptors);
  rte_mempool* outside = nullptr;
  if (config.payload_memory != DpdkMemory::dpdk) {
    payload_memory_ = config.payload_memory == DpdkMemory::host
                          ? std::make_unique<PayloadMemory>(config.name, rx_buffers, stride_bytes(bytes))
                          : std::make_unique<PayloadMemory>(config.name, config.gpu_memory, rx_buffers, stride_bytes(bytes));
    if (text_.is_pci()) payload_memory_->map_for(*device_);
    outside = must(payload_memory_->make_pool("nanet_own_" + number, kPoolCache), rx_buffers);
    const std::vector<std::string> of_memory = payload_memory_->notes();
    notes.insert(notes.end(), of_memory.begin(), of_memory.end());
  }
  if (config.split_bytes != 0) {
    payload_pool_ = outside != nullptr ? outside : make("nanet_data_", rx_buffers);
    rx_pool_ = make("nanet_rx_", rx_buffers);
  } else {
    rx_pool_ = outside != nullptr ? outside : make("nanet_rx_", rx_buffers);
  }
  tx_pool_ = make("nanet_tx_", 2 * tx_descriptors + 2048);
}

int Device::set_up_receive_queue(std::uint16_t queue, const DpdkConfig& config, const rte_eth_dev_info& info,
                                 std::uint16_t descriptors, std::uint64_t offloads) {
  const auto socket = static_cast<unsigned>(rte_eth_dev_socket_id(port_));
  if (config.split_bytes == 0) return rte_eth_rx_queue_setup(port_, queue, descriptors, socket, nullptr, rx_pool_);
  std::array<rte_eth_rxseg, 2> segments = split_segments(config.split_bytes, rx_pool_, payload_pool_);
  rte_eth_rxconf conf = info.default_rxconf;
  conf.offloads = offloads;
  conf.rx_seg = segments.data();
  conf.rx_nseg = static_cast<std::uint16_t>(segments.size());
  return rte_eth_rx_queue_setup(port_, queue, descriptors, socket, &conf, nullptr);
}

// Asks the NIC to put packets for the endpoint into our queues. Most virtual devices have no rules: then all frames come and we look.
void Device::steer(const Endpoint& listen, std::uint32_t queue_count) {
  const bool is_ipv6 = listen.address.is_ipv6();
  const rte_flow_attr attributes{.ingress = 1};
  rte_flow_item_ipv4 ip{}, ip_mask{};
  ip.hdr.dst_addr = htonl(listen.address.ipv4());
  ip_mask.hdr.dst_addr = ~rte_be32_t{0};
  rte_flow_item_ipv6 ipv6{}, ipv6_mask{};
  std::memcpy(&ipv6.hdr.dst_addr, listen.address.bytes().data(), 16);
  std::memset(&ipv6_mask.hdr.dst_addr, 0xFF, 16);
  rte_flow_item_udp udp{}, udp_mask{};
  udp.hdr.dst_port = htons(listen.port);
  udp_mask.hdr.dst_port = 0xFFFF;
  const rte_flow_item pattern[] = {{.type = RTE_FLOW_ITEM_TYPE_ETH},
                                   is_ipv6 ? rte_flow_item{.type = RTE_FLOW_ITEM_TYPE_IPV6, .spec = &ipv6, .mask = &ipv6_mask}
                                           : rte_flow_item{.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &ip, .mask = &ip_mask},
                                   {.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &udp_mask},
                                   {.type = RTE_FLOW_ITEM_TYPE_END}};
  const rte_flow_action_queue queue{.index = 0};
  std::vector<std::uint16_t> queues(queue_count);
  std::iota(queues.begin(), queues.end(), std::uint16_t{0});
  const std::uint64_t hashed = is_ipv6 ? RTE_ETH_RSS_NONFRAG_IPV6_UDP : RTE_ETH_RSS_NONFRAG_IPV4_UDP;
  const rte_flow_action_rss spread{.types = hashed, .queue_num = queue_count, .queue = queues.data()};
  const rte_flow_action to_queues = queue_count == 1 ? rte_flow_action{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue}
                                                     : rte_flow_action{.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &spread};
  const rte_flow_action actions[] = {to_queues, {.type = RTE_FLOW_ACTION_TYPE_END}};
  rte_flow_error error{};
  if (rte_flow_validate(port_, &attributes, pattern, actions, &error) == 0) {
    flow_ = rte_flow_create(port_, &attributes, pattern, actions, &error);
  }
}

// Who looks for the link over IPv6 sends to a group. The kernel lets an interface of its own hear it, or the driver the device; else the device hears
// all groups, or all frames.
void Device::hear_solicitations(const IpAddress& group, const DpdkConfig& config, std::vector<std::string>& notes) {
  const MacAddress mac = multicast_mac(group);
  if (interface_) {
    if (group_member_.join(interface_->index, mac)) return;
  } else {
    rte_ether_addr address{};
    std::copy(mac.begin(), mac.end(), std::begin(address.addr_bytes));
    if (rte_eth_dev_set_mc_addr_list(port_, &address, 1) == 0 || rte_eth_allmulticast_enable(port_) == 0) return;
    if (!text_.is_pci() || rte_eth_promiscuous_enable(port_) == 0) return;  // a virtual device filters nothing
  }
  notes.push_back(
      "link " + config.name + ": peers may not find it (device " + text_.name +
      " cannot hear a multicast group, and IPv6 asks for neighbours there) enter its Ethernet address at them: ip -6 neigh");
}

void Device::close() {
  if (probed_) {
    rte_flow_error error{};
    if (flow_ != nullptr) rte_flow_destroy(port_, flow_, &error);
    rte_eth_dev_stop(port_);
    rte_eth_dev_close(port_);
    if (device_ != nullptr) rte_dev_remove(device_);
  }
  for (rte_mempool* pool : {rx_pool_, payload_pool_, tx_pool_}) rte_mempool_free(pool);
  payload_memory_.reset();
  if (claimed_) Eal::instance().release(text_.name);
}

bool Device::is_link_down() const {
  if (interface_) {
    const std::optional<Interface> now = find_interface(interface_name_);
    return !now || !now->up || !now->carrier;
  }
  if (!text_.is_pci()) return false;
  const std::lock_guard lock(Eal::instance().control());
  rte_eth_link state{};
  return rte_eth_link_get_nowait(port_, &state) == 0 && state.link_status == RTE_ETH_LINK_DOWN;
}

DeviceCounts Device::counts() const {
  const std::lock_guard lock(Eal::instance().control());
  DeviceCounts counts;
  rte_eth_stats stats{};
  if (rte_eth_stats_get(port_, &stats) == 0) {
    counts = {.rx_dropped = stats.imissed + stats.rx_nombuf, .rx_errors = stats.ierrors, .tx_errors = stats.oerrors};
  }
  if (socket_drops_) counts.rx_dropped += socket_drops_->total();
  return counts;
}

}  // namespace nanet::link::dpdk
