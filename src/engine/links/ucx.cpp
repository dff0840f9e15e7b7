// SPDX-License-Identifier: Apache-2.0
#include "nanet/link/ucx.hpp"

#include <charconv>

#include "engine/links/link_kinds.hpp"

namespace nanet::engine {
namespace {

std::unique_ptr<link::Link> open_ucx(const LinkConfig& config, LinkParts parts) {
  return link::open_ucx(complete(section_of<link::UcxConfig>(config), config, std::move(parts)));
}

// With the token as hexadecimal digits, which no configuration says: whoever starts an engine has read it from a file.
std::any read_ucx(const config::Value& said) {
  config::Value::Map keys;
  std::string token = "0";
  if (const auto* const map = said.as<config::Value::Map>()) {
    for (const auto& [key, value] : *map) {
      if (const auto* const text = key == "token" ? value.as<std::string>() : nullptr) {
        token = *text;
      } else {
        keys.emplace_back(key, value);
      }
    }
  }
  auto config = config::read<link::UcxConfig>(config::Value(std::move(keys)), "ucx");
  std::from_chars(token.data(), token.data() + token.size(), config.token, 16);
  return config;
}

std::optional<config::Problem> ucx_rules(const LinkConfig& config) {
  if (auto broken = refuse_useless(config, {{"interface", !config.interface.empty(), "UCX chooses it"}})) return broken;
  if (auto broken = refuse_socket_keys(config)) return broken;
  if (auto broken = refuse_groups(config)) return broken;
  return refuse_useless(config, {{"senders", !config.senders.empty(), "a ring does not say from which address it is filled",
                                  "remove senders; ucx.token_file says who may send"},
                                 {"busy_poll_us", config.busy_poll_us != 0, "there is no socket or NIC to poll"}});
}

}  // namespace

LinkKind ucx_kind() {
  LinkSection section = section_for<link::UcxConfig>("What only a ucx:// link needs; null: the defaults");
  section.read = read_ucx;
  return {.name = "ucx",
          .open = open_ucx,
          .sends = false,
          .names_senders = false,
          .endpoint_help = "ucx://ADDRESS:PORT, rings that remote writers fill through UCX",
          .section = section,
          .back_end = link::ucx_back_end(),
          .broken_rule = ucx_rules};
}

}  // namespace nanet::engine
