// SPDX-License-Identifier: Apache-2.0
// Stands in for src/link/xdp in a build without it.
#include "nanet/link/xdp.hpp"

#include "nanet/setup_error.hpp"

namespace nanet::link {

std::unique_ptr<Link> open_xdp(const XdpConfig& config) {
  throw SetupError("link " + config.name + " cannot be opened", "nanet was built without AF_XDP",
                   "install libxdp-dev, libbpf-dev and clang, then run make links");
}

bool has_xdp() { return false; }

}  // namespace nanet::link
