// SPDX-License-Identifier: Apache-2.0
// One device of DPDK, set up with one receive queue or several, one or two transmit queues, and a pool of buffers for each direction.
//
// Thread rules: set-up and removal in one thread. receive(): one thread a queue. transmit(): one thread a queue. Everything const: any thread.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "interface.hpp"
#include "link/udp_frame.hpp"
#include "nanet/link/dpdk.hpp"
#include "payload_memory.hpp"

struct rte_flow;

namespace nanet::link::dpdk {

// A transmit queue that more than one thread may want. No one waits for it without a bound: the sending thread takes it as it takes a full
// queue, the receiving thread tries again in its next call.
class TxQueue {
 public:
  bool try_take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { taken_.store(false, std::memory_order_release); }

  std::uint16_t id = 0;

 private:
  std::atomic<bool> taken_{false};
};

struct DeviceCounts {
  std::uint64_t rx_dropped = 0;
  std::uint64_t rx_errors = 0;
  std::uint64_t tx_errors = 0;  // taken from us, and then not sent
};

class Device {
 public:
  // Starts DPDK if need be, adds the device to it and starts that. Throws SetupError.
  // own: the link's address.
  Device(const DpdkConfig& config, const IpAddress& own, std::vector<std::string>& notes);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::uint32_t receive(std::uint16_t queue, std::span<rte_mbuf*> frames) {
    return rte_eth_rx_burst(port_, queue, frames.data(), static_cast<std::uint16_t>(frames.size()));
  }
  // Returns how many were taken; the rest still belongs to the caller.
  std::uint32_t transmit(const TxQueue& queue, std::span<rte_mbuf*> frames) {
    return rte_eth_tx_burst(port_, queue.id, frames.data(), static_cast<std::uint16_t>(frames.size()));
  }
  rte_mempool* tx_pool() const { return tx_pool_; }
  // Memory of the link's own that packets are received into; null: it is DPDK's.
  const PayloadMemory* payload_memory() const { return payload_memory_.get(); }

  TxQueue& data_queue() { return data_queue_; }
  // For answers of the receiving thread: a queue of its own if the device has two, else the one above.
  TxQueue& answer_queue() { return answer_queue_.id != 0 ? answer_queue_ : data_queue_; }

  const MacAddress& mac() const { return mac_; }
  std::uint32_t payload_bytes_max() const { return payload_bytes_max_; }  // of one packet to send
  bool has_ethernet() const { return !raw_ip_; }                          // frames begin with an Ethernet header
  bool is_steered() const { return flow_ != nullptr; }
  const std::string& driver() const { return driver_; }
  bool is_packet_socket() const { return socket_drops_.has_value(); }
  bool is_link_down() const;
  DeviceCounts counts() const;

 private:
  void check_interface(const DpdkConfig& config, std::vector<std::string>& notes);
  void probe(const DpdkConfig& config);
  void configure(const DpdkConfig& config, std::vector<std::string>& notes);
  void spread(const DpdkConfig& config, const rte_eth_dev_info& info, rte_eth_conf& conf) const;
  void check_receiving(const DpdkConfig& config, const rte_eth_dev_info& info) const;
  void make_pools(const DpdkConfig& config, std::uint32_t rx_descriptors, std::uint32_t tx_descriptors,
                  std::vector<std::string>& notes);
  int set_up_receive_queue(std::uint16_t queue, const DpdkConfig& config, const rte_eth_dev_info& info, std::uint16_t descriptors,
                           std::uint64_t offloads);
  void steer(const Endpoint& listen, std::uint32_t queue_count);
  void hear_solicitations(const IpAddress& group, const DpdkConfig& config, std::vector<std::string>& notes);
  void close();

  DeviceText text_;
  bool claimed_ = false;
  bool probed_ = false;
  bool raw_ip_ = false;
  std::uint16_t port_ = 0;
  rte_device* device_ = nullptr;
  std::string driver_;
  std::optional<Interface> interface_;
  std::string interface_name_;
  std::unique_ptr<PayloadMemory> payload_memory_;
  rte_mempool* rx_pool_ = nullptr;       // of frames, or of their first bytes
  rte_mempool* payload_pool_ = nullptr;  // of the rest, where the device splits
  rte_mempool* tx_pool_ = nullptr;
  rte_flow* flow_ = nullptr;
  MacAddress mac_{};
  std::uint32_t payload_bytes_max_ = 0;
  TxQueue data_queue_;
  TxQueue answer_queue_;
  mutable std::optional<PacketSocketDrops> socket_drops_;
  EthernetGroup group_member_;
};

}  // namespace nanet::link::dpdk
