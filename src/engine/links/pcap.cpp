// SPDX-License-Identifier: Apache-2.0
#include "engine/links/link_kinds.hpp"
#include "link/pcap/pcap_link.hpp"

namespace nanet::engine {
namespace {

constexpr std::string_view kScheme = "pcap://";

std::unique_ptr<link::Link> open_pcap(const LinkConfig& config, LinkParts) {
  auto pcap = section_of<link::PcapLinkConfig>(config);
  pcap.name = config.name;
  pcap.path = config.endpoint.substr(kScheme.size());
  pcap.packet_bytes_max = config.packet_bytes_max;
  return std::make_unique<link::PcapLink>(pcap);
}

std::optional<config::Problem> pcap_rules(const LinkConfig& config) {
  if (auto broken = refuse_useless(config, {{"interface", !config.interface.empty(), "it plays a file"}})) return broken;
  return refuse_socket_keys(config);
}

}  // namespace

LinkKind pcap_kind() {
  return {.name = "pcap",
          .open = open_pcap,
          .sends = false,
          .is_live = false,
          .endpoint_help = "pcap://FILE, a recording to play",
          .section = section_for<link::PcapLinkConfig>("How a pcap:// link plays its file; null: at its own pace"),
          .broken_rule = pcap_rules};
}

}  // namespace nanet::engine
