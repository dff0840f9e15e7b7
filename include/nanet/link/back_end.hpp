// SPDX-License-Identifier: Apache-2.0
// Links that need a system library (AF_XDP, DPDK, UCX) or a simulator (the gateware). Each is a back-end with one C entry point, nanet_link_NAME.
//
// A program that is linked to the CMake target nanet_link_NAME contains the back-end. Any other loads libnanet_link_NAME.so when it
// opens the first such link: from the folder of the program or library that holds nanet, else from where the system keeps libraries. So
// nanet starts where those libraries are not installed. What was loaded stays until the process ends.
//
// Thread rules: any thread; set-up, it locks and makes system calls.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "nanet/link/link.hpp"

namespace nanet::link {

// What an entry point returns. Version and size say whether the module belongs to this nanet.
struct BackEnd {
  const char* version;  // "nanet 1.2.3"
  std::size_t config_bytes;
  std::unique_ptr<Link> (*open)(const void* config);  // of the back-end's own type; throws SetupError
};

// Whether this build has it: linked in, or its module is found. Loads nothing that lies beside nanet. name: "xdp", "dpdk", "ucx", "gateware".
bool has_back_end(std::string_view name);

// Loads it if need be. Empty: links of this kind can be opened; else "why; suggestion".
std::string back_end_problem(std::string_view name);

}  // namespace nanet::link
