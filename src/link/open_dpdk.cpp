// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/dpdk.hpp"

extern "C" {
[[gnu::weak]] const nanet::link::BackEnd* nanet_link_dpdk();
}

namespace nanet::link {

BackEndPlace dpdk_back_end() { return {"dpdk", &nanet_link_dpdk, sizeof(DpdkConfig), "libdpdk-dev", "dpdk"}; }

bool has_dpdk() { return has_back_end(dpdk_back_end()); }

std::unique_ptr<Link> open_dpdk(const DpdkConfig& config) { return open_back_end(dpdk_back_end(), config.name, &config); }

}  // namespace nanet::link
