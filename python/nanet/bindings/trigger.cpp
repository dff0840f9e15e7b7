// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "l0tp.hpp"
#include "trigger/node.hpp"

namespace nanet::bindings {
namespace {

using trigger::TriggerNode;

trigger::NodeConfig node_config(const nb::dict& dict) {
  trigger::NodeConfig config;
  config.processor = l0tp_config(get<nb::dict>(dict, "processor"));
  config.listen = get<std::string>(dict, "listen");
  if (has(dict, "decisions")) config.decisions = get<std::string>(dict, "decisions");
  config.source_sub_id = get<std::uint8_t>(dict, "source_sub_id");
  config.socket_bytes = get<std::uint32_t>(dict, "socket_bytes");
  if (has(dict, "cpu_core")) config.cpu_core = get<int>(dict, "cpu_core");
  config.spins = get<std::int64_t>(dict, "spins");
  config.sleep_ns = get<std::uint64_t>(dict, "sleep_ns");
  config.gather_ns = get<std::uint64_t>(dict, "gather_ns");
  config.patience_ns = get<std::uint64_t>(dict, "patience_ns");
  return config;
}

nb::dict snapshot(const TriggerNode& node) {
  const trigger::NodeSnapshot now = node.snapshot();
  nb::dict dict;
  dict["elapsed_s"] = now.elapsed_s;
  dict["core_wait_s"] = now.core_wait_s;
  dict["counters"] = l0tp_counters(now.stats, now.inputs, now.masks);
  dict["pending"] = now.pending;
  dict["triggers_sent"] = now.triggers_sent;
  dict["decision_packets"] = now.decision_packets;
  dict["link"] = stats_dict(now.link);
  dict["latency_ns"] = nb::cast(now.latency);
  return dict;
}

}  // namespace

void bind_trigger(nb::module_& module) {
  nb::class_<TriggerNode>(module, "TriggerNode", "The L0 trigger processor between its sockets, in one thread.")
      .def(
          "__init__", [](TriggerNode* self, const nb::dict& config) { new (self) TriggerNode(node_config(config)); },
          nb::arg("config"), "config: what nanet.config.l0tp.L0tpConfig.native_node() gives. Raises SetupError.")
      .def("start", &TriggerNode::start, nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &TriggerNode::stop, nb::call_guard<nb::gil_scoped_release>(),
           "Takes what has arrived, decides on all that waits, sends it, joins.")
      .def_prop_ro("running", &TriggerNode::running)
      .def_prop_ro("notes", &TriggerNode::notes)
      .def_prop_ro("port", [](const TriggerNode& node) { return node.local().port; })
      .def("snapshot", &snapshot, "Counters, link statistics and latencies so far.");
}

}  // namespace nanet::bindings
