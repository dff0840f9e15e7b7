// SPDX-License-Identifier: Apache-2.0
// What the kernel says about a network interface, read once at set-up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "link/udp_frame.hpp"

namespace nanet::link {

struct Interface {
  std::string name;
  int index = 0;
  std::uint32_t mtu = 0;
  MacAddress mac{};
  bool is_up = false;
  std::uint32_t queue_count = 1;  // receive queues in use
  std::vector<IpAddress> addresses;
};

// The interface `name`, or, when that is empty, the one that has the address. Throws SetupError.
Interface find_interface(const std::string& name, const IpAddress& address, const std::string& link_name);

// Receive queues that an interface has now; 0: not known.
std::uint32_t queue_count_of(const std::string& name);

}  // namespace nanet::link
