// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/ucx.hpp"

extern "C" {
[[gnu::weak]] const nanet::link::BackEnd* nanet_link_ucx();
}

namespace nanet::link {

BackEndPlace ucx_back_end() {
  return {"ucx", &nanet_link_ucx, sizeof(UcxConfig), "UCX, 1.18 or newer", "none, PyPI has libucx-cu13"};
}

bool has_ucx() { return has_back_end(ucx_back_end()); }

std::unique_ptr<Link> open_ucx(const UcxConfig& config) { return open_back_end(ucx_back_end(), config.name, &config); }

}  // namespace nanet::link
