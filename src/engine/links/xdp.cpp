// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/xdp.hpp"

#include "engine/links/link_kinds.hpp"

namespace nanet::engine {
namespace {

constexpr std::uint32_t kInPlaceBytesMax = 3784;  // of a payload in one frame

std::unique_ptr<link::Link> open_xdp(const LinkConfig& config, LinkParts parts) {
  link::XdpConfig xdp = complete(section_of<link::XdpConfig>(config), config, std::move(parts));
  xdp.interface = config.interface;
  xdp.busy_poll_us = config.busy_poll_us;
  xdp.lent_max = lent_max(config);
  xdp.queue = config.queue;
  return link::open_xdp(xdp);
}

std::uint32_t xdp_queues(const LinkConfig& config) {
  const auto xdp = section_of<link::XdpConfig>(config);
  return xdp.split_queues ? static_cast<std::uint32_t>(xdp.queues.size()) : 1;
}

bool xdp_in_place(const LinkConfig& config) { return section_of<link::XdpConfig>(config).payloads == link::Payloads::in_place; }

std::optional<config::Problem> xdp_rules(const LinkConfig& config) {
  if (xdp_in_place(config)) {
    const std::string suggestion = "set at most " + std::to_string(kInPlaceBytesMax) + ", or payloads: copied";
    if (auto broken = refuse_longer(config, kInPlaceBytesMax, "a payload in place lies in one frame", suggestion)) return broken;
  }
  if (auto broken = refuse_socket_keys(config)) return broken;
  if (auto broken = check_group(config)) return broken;
  return refuse_long_packets(config);
}

}  // namespace

LinkKind xdp_kind() {
  return {.name = "xdp",
          .open = open_xdp,
          .endpoint_help = "xdp://ADDRESS:PORT, AF_XDP",
          .section = section_for<link::XdpConfig>("What only an xdp:// link needs; null: the defaults"),
          .back_end = link::xdp_back_end(),
          .broken_rule = xdp_rules,
          .in_place = xdp_in_place,
          .queue_count = xdp_queues};
}

}  // namespace nanet::engine
