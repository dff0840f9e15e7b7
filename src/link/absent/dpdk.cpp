// SPDX-License-Identifier: Apache-2.0
// Stands in for src/link/dpdk in a build without it.
#include "nanet/link/dpdk.hpp"

#include "nanet/setup_error.hpp"

namespace nanet::link {

std::unique_ptr<Link> open_dpdk(const DpdkConfig& config) {
  throw SetupError("link " + config.name + " cannot be opened", "nanet was built without DPDK",
                   "install libdpdk-dev, then run make links");
}

bool has_dpdk() { return false; }

}  // namespace nanet::link
