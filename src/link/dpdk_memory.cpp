// SPDX-License-Identifier: Apache-2.0
#include "link/dpdk/sizes.hpp"
#include "nanet/link/dpdk.hpp"

namespace nanet::link {

std::size_t dpdk_gpu_bytes(const DpdkConfig& config) {
  return std::size_t{dpdk::receive_buffers(config, config.descriptors)} * dpdk::stride_bytes(dpdk::buffer_bytes(config));
}

}  // namespace nanet::link
