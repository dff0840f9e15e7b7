// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "l0tp.hpp"
#include "nanet/config/read.hpp"
#include "trigger/node.hpp"
#include "values.hpp"

namespace nanet::bindings {
namespace {

using trigger::TriggerNode;

nb::dict trigger_snapshot(const TriggerNode& node) {
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
          "__init__",
          [](TriggerNode* self, const nb::dict& keys) {
            new (self) TriggerNode(config::read_unchecked<trigger::NodeConfig>(value_of(keys), {}, config::Others::ignored));
          },
          nb::arg("config"), "config: a nanet.config.l0tp.L0tpConfig as plain values. Raises SetupError.")
      .def("start", &TriggerNode::start, nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &TriggerNode::stop, nb::call_guard<nb::gil_scoped_release>(),
           "Takes what has arrived, decides on all that waits, sends it, joins.")
      .def_prop_ro("running", &TriggerNode::running)
      .def_prop_ro("notes", &TriggerNode::notes)
      .def_prop_ro("port", [](const TriggerNode& node) { return node.local().port; })
      .def("snapshot", &trigger_snapshot, "Counters, link statistics and latencies so far.");
}

}  // namespace nanet::bindings
