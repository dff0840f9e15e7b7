// SPDX-License-Identifier: Apache-2.0
// DPDK's environment abstraction layer (EAL), started once a process by the first link and never stopped: it cannot be started again.
//
// Thread rules: any thread; everything here is set-up and locks. Drivers are not safe against each other's set-up, so that is done
// while holding control().
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace nanet::link::dpdk {

struct EalArguments {
  bool huge_pages = false;
  std::uint32_t memory_mib = 0;
  std::string pci_device;  // with its arguments; empty: no PCI device is needed
  std::vector<std::string> more;
};

class Eal {
 public:
  static Eal& instance();

  // Starts DPDK, or checks that it was started with arguments that serve these too. Throws SetupError. The calling thread keeps its cores.
  void start(const EalArguments& arguments, const std::string& link_name);

  // To be held while a device is added, set up, asked for its counters or removed.
  std::mutex& control() { return control_; }

  // Memory beside DPDK's for pools, in all never more than memory_mib, as DPDK's would be. False: that would be too much.
  bool take_memory(std::size_t bytes);
  void give_memory_back(std::size_t bytes) { taken_bytes_ -= bytes; }

  // Devices in use by links of this process. False: that one is.
  bool claim(const std::string& device) { return claimed_.insert(device).second; }
  void release(const std::string& device) { claimed_.erase(device); }

 private:
  Eal() = default;
  void check_same(const EalArguments& arguments, const std::string& link_name) const;

  std::mutex control_;
  std::set<std::string> claimed_;
  bool started_ = false;
  std::string failure_;  // why the one try to start failed
  EalArguments arguments_;
  std::size_t taken_bytes_ = 0;
};

// What DPDK and its drivers said since forget_messages(): the first line of it, which is the cause; `otherwise` if they said nothing.
std::string first_message(const std::string& otherwise);
void forget_messages();

// Gives the calling thread a number in DPDK, so that it gets a cache in front of every pool. Once a thread; costs one comparison afterwards.
void register_this_thread();

}  // namespace nanet::link::dpdk
