// SPDX-License-Identifier: Apache-2.0
// What a connection says of the path that its transfers take. Nothing here is assumed from a device's name where UCX can be asked.
#include <algorithm>
#include <bit>
#include <string_view>

#include "rdma/connection_state.hpp"

namespace nanet::rdma {
namespace {

constexpr std::size_t CLASS_COUNT = 65;  // of sizes: 0, 1, 2, 3..4, ..., by the width of the number

// UCX says "{flags} put from host memory length 4096 zero-copy tcp/eth0 9.5 MB/s 301.20 us": what stands between the length and its estimate.
std::string_view way_in(std::string_view said) {
  constexpr std::string_view LENGTH = " length ";
  if (const auto at = said.find(LENGTH); at != said.npos) {
    said.remove_prefix(at + LENGTH.size());
    said.remove_prefix(std::min(said.find(' ') + 1, said.size()));
  }
  if (const auto rate = said.rfind(" MB/s"); rate != said.npos)
    if (const auto number = said.rfind(' ', rate - 1); rate != 0 && number != said.npos) said = said.substr(0, number);
  return said;
}

using detail::is_rdma;

// Whether a word of the text is transport/device with such a transport.
template <typename Is>
bool names_transport(std::string_view text, const Is& is) {
  for (auto slash = text.find('/'); slash != text.npos; slash = text.find('/', slash + 1)) {
    auto begin = slash;
    while (begin != 0 && text[begin - 1] != ' ' && text[begin - 1] != '(') --begin;
    if (is(text.substr(begin, slash - begin))) return true;
  }
  return false;
}

bool names_rdma(const std::string& text) { return names_transport(text, is_rdma); }
bool names(const std::string& text, std::string_view transport) {
  return names_transport(text, [&](std::string_view one) { return one == transport; });
}

constexpr const char* COPIED_HERE = "copied by this CPU";

bool is_not_tcp(std::string_view transport) { return transport != "tcp"; }
bool reaches_device(std::string_view transport) { return is_rdma(transport) || transport == "cuda_ipc"; }

template <typename Is>
bool has_lane(const Path& path, const Is& is) {
  return std::ranges::any_of(path.lanes, [&](const Lane& lane) { return is(lane.transport); });
}

bool is_hardware(const std::string& text) { return names_rdma(text) || names(text, "cuda_ipc"); }

}  // namespace

bool Way::is_emulated() const { return text.find("emulation") != text.npos || names(text, "tcp"); }
bool Way::is_one_sided() const { return text == COPIED_HERE || (!is_emulated() && is_hardware(text)); }
bool Way::is_zero_copy() const { return text.starts_with("zero-copy ") && !is_emulated() && is_hardware(text); }

FirstOfClass& Connection::State::first_of(Way::Operation operation, const Local& local) {
  const std::size_t kind = 2 * static_cast<std::size_t>(operation) + (local.is_device ? 1 : 0);
  return firsts[kind * CLASS_COUNT + static_cast<std::size_t>(std::bit_width(local.bytes))];
}

std::vector<Way> Connection::State::ways() const {
  std::vector<Way> ways;
  for (std::size_t index = 0; index < firsts.size(); ++index) {
    const FirstOfClass& first = firsts[index];
    if (!first.is_known) continue;
    const std::size_t kind = index / CLASS_COUNT;
    ways.push_back({.operation = static_cast<Way::Operation>(kind / 2),
                    .is_from_device = kind % 2 != 0,
                    .bytes = first.bytes,
                    .text = first.is_mapped ? COPIED_HERE : std::string(way_in(first.said))});
  }
  return ways;
}

// A get of one chunk at set-up: what UCX says of it. A region that is mapped here is copied by this CPU, so there is nothing to ask.
void Connection::State::probe() {
  const bool has_device = is_device || from_device;
  if ((mapped && !from_device) || !permissions.read || (config.require == Require::anything && !has_device)) return;
  std::vector<std::byte> scratch;
  std::size_t chunk = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, config.chunk_bytes));
  Local local;
  if (from_device) {
    chunk = std::min(chunk, config.local->bytes());
    check_part({*config.local, 0, chunk}, local);
  } else {
    scratch.resize(chunk);
    local = {.data = scratch.data(), .bytes = chunk};
  }
  if (move(Way::Operation::get, 0, local) != Status::ok)
    throw SetupError("cannot read region '" + config.region + "'", error, "see whether the transports work on both sides");
  for (Way& way : ways())                                              // the only one
    if (way.text.find('/') != way.text.npos) probed = std::move(way);  // else this UCX names no transport
}

Path Connection::State::path() const {
  Path path{.is_mapped = mapped && !from_device, .is_device = is_device || from_device, .probe = probed};
  if (!endpoint) return path;
  std::vector<ucp_transport_entry_t> entries(64);
  ucp_ep_attr_t attributes{};
  attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
  attributes.transports.entries = entries.data();
  attributes.transports.num_entries = static_cast<unsigned>(entries.size());
  attributes.transports.entry_size = sizeof entries[0];
  if (ucp_ep_query(endpoint, &attributes) != UCS_OK) return path;
  for (unsigned index = 0; index < attributes.transports.num_entries; ++index)
    if (*entries[index].device_name)  // the one without a device is the socket that connections are made and watched with
      path.lanes.push_back({entries[index].transport_name, entries[index].device_name});
  path.sided = sided_by(path, worker->context()->has_one_sided_get());
  return path;
}

Path::Sided sided_by(const Path& path, bool has_one_sided_get) {
  using enum Path::Sided;
  if (path.probe) return path.probe->is_one_sided() ? one_sided : path.probe->is_emulated() ? emulated : not_known;
  if (path.is_mapped || (has_one_sided_get && !path.is_device && has_lane(path, is_rdma))) return one_sided;
  if (path.lanes.empty()) return not_known;
  // Shared memory and cma do not reach a GPU's memory: what goes over them is copied by both CPUs.
  const bool is_direct = path.is_device ? has_lane(path, reaches_device) : has_lane(path, is_not_tcp);
  return is_direct ? not_known : emulated;
}

std::string Path::gpudirect() const {
  if (is_device && !probe) return lanes.empty() || has_lane(*this, reaches_device) ? "not known" : "none";
  if (!is_device || !probe->is_zero_copy()) return "none";
  return names_rdma(probe->text) ? "GPUDirect RDMA" : "peer to peer (cuda_ipc)";
}

std::string Path::text() const {
  std::string text;
  for (const Lane& lane : lanes) text += lane.transport + "/" + lane.device + " ";
  constexpr const char* SIDED[] = {"(one-sided)", "(emulated by the target's CPU)", "(one-sided or emulated: not known)"};
  text += SIDED[static_cast<std::size_t>(sided)];
  if (probe) text += ", a get of " + std::to_string(probe->bytes) + " bytes: " + probe->text;
  if (is_device) text += ", memory of a GPU, GPUDirect: " + gpudirect();
  return text;
}

const char* not_given(const Path& path, Require require) {
  const bool has_probe = path.probe.has_value();
  switch (require) {
    case Require::anything: return "";
    case Require::one_sided: return path.sided == Path::Sided::one_sided ? "" : "one-sided";
    case Require::rdma:
      if (has_probe) return path.probe->is_one_sided() && names_rdma(path.probe->text) ? "" : "RDMA";
      return !path.is_mapped && path.sided == Path::Sided::one_sided ? "" : "RDMA";
    case Require::zero_copy: return has_probe && path.probe->is_zero_copy() ? "" : "without a copy";
    case Require::gpudirect: return has_probe && path.gpudirect() != "none" ? "" : "GPUDirect";
  }
  return "known";
}

}  // namespace nanet::rdma
