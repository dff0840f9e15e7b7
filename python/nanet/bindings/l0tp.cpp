// SPDX-License-Identifier: Apache-2.0
#include "l0tp.hpp"

#include <array>

#include "arrays.hpp"
#include "bindings.hpp"
#include "nanet/config/read.hpp"
#include "values.hpp"

namespace nanet::bindings {

nb::dict l0tp_counters(const l0tp::Stats& stats, std::span<const l0tp::InputStats> inputs, std::span<const l0tp::MaskStats> masks) {
  nb::dict dict;
  for (const auto& entry : l0tp::kStatsNames) dict[nb::str(entry.name.data())] = stats.*entry.value;
  nb::list input_list;
  for (const l0tp::InputStats& of_input : inputs) {
    nb::dict input;
    for (const auto& entry : l0tp::kInputStatsNames) input[nb::str(entry.name.data())] = of_input.*entry.value;
    input_list.append(input);
  }
  dict["inputs"] = input_list;
  nb::list mask_list;
  for (const l0tp::MaskStats& of_mask : masks) {
    nb::dict mask;
    mask["matched"] = of_mask.matched;
    mask["fired"] = of_mask.fired;
    mask_list.append(mask);
  }
  dict["masks"] = mask_list;
  return dict;
}

namespace {

// Calls call(room) until it returns less than there is room; all decisions as one array.
template <class F>
Array gather(F&& call) {
  std::vector<l0tp::Decision> all;
  std::array<l0tp::Decision, 256> room;
  for (std::size_t count = room.size(); count == room.size();) {
    count = call(std::span(room));
    all.insert(all.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(count));
  }
  using l0tp::Decision;
  return to_records(all, {{"timestamp", "<u4", offsetof(Decision, timestamp)},
                          {"fine_time", "u1", offsetof(Decision, fine_time)},
                          {"kind", "u1", offsetof(Decision, kind)},
                          {"matched_inputs", "u1", offsetof(Decision, matched_inputs)},
                          {"trigger_word", "<u2", offsetof(Decision, trigger_word)},
                          {"trigger_number", "<u8", offsetof(Decision, trigger_number)},
                          {"arrived_ns", "<u8", offsetof(Decision, arrived_ns)}});
}

nb::dict counters(const l0tp::TriggerProcessor& processor) {
  std::vector<l0tp::InputStats> inputs;
  for (std::uint32_t i = 0; i < processor.input_count(); ++i) inputs.push_back(processor.input_stats(i));
  nb::dict dict = l0tp_counters(processor.stats(), inputs, processor.mask_stats());
  dict["pending"] = processor.pending_count();
  dict["pending_calibrations"] = processor.pending_calibrations();
  return dict;
}

}  // namespace

void bind_l0tp(nb::module_& module) {
  using l0tp::TriggerProcessor;
  nb::class_<TriggerProcessor>(module, "L0TriggerProcessor", "Aligns the primitives of up to seven detectors and decides.")
      .def(
          "__init__",
          [](TriggerProcessor* self, const nb::dict& keys) {
            new (self) TriggerProcessor(config::read_unchecked<l0tp::Config>(value_of(keys), {}, config::Others::ignored));
          },
          nb::arg("config"), "config: a nanet.config.l0tp.L0tpConfig as plain values. Raises SetupError.")
      .def(
          "take",
          [](TriggerProcessor& self, const nb::bytes& datagram, std::uint64_t now_ns) {
            self.take({static_cast<const std::byte*>(datagram.data()), datagram.size()}, now_ns);
          },
          nb::arg("datagram"), nb::arg("now_ns"), "One UDP payload; whatever is in it is counted.")
      .def(
          "decide",
          [](TriggerProcessor& self, std::uint64_t now_ns) {
            return gather([&](std::span<l0tp::Decision> room) { return self.decide(now_ns, room); });
          },
          nb::arg("now_ns"),
          "All that can be decided now, as a structured array: timestamp, fine_time, kind (0 physics, 1 calibration), "
          "matched_inputs, trigger_word, trigger_number, arrived_ns.")
      .def(
          "flush", [](TriggerProcessor& self) { return gather([&](std::span<l0tp::Decision> room) { return self.flush(room); }); },
          "End of run: decides on all that waits and forgets the times.")
      .def("counters", &counters, "Totals, with `inputs` and `masks` as lists of their own.");
}

}  // namespace nanet::bindings
