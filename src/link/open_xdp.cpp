// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/xdp.hpp"

extern "C" {
[[gnu::weak]] const nanet::link::BackEnd* nanet_link_xdp();
}

namespace nanet::link {

BackEndPlace xdp_back_end() {
  return {"xdp", &nanet_link_xdp, sizeof(XdpConfig), "libxdp-dev, libbpf-dev and clang", "libxdp1 and libbpf1"};
}

bool has_xdp() { return has_back_end(xdp_back_end()); }

std::unique_ptr<Link> open_xdp(const XdpConfig& config) { return open_back_end(xdp_back_end(), config.name, &config); }

}  // namespace nanet::link
