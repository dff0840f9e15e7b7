// SPDX-License-Identifier: Apache-2.0
// nanet._core: the engine, the emulator and the ring fit for Python. Thin: no logic here.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "bindings.hpp"
#include "nanet/base/build_info.hpp"
#include "nanet/engine/kinds.hpp"
#include "nanet/flow/counters.hpp"
#ifdef NANET_CUDA
#include "nanet/gpu/build.hpp"
#endif
#include "nanet/link/back_end.hpp"
#include "rich/math_fit.hpp"

namespace nanet::bindings {
namespace {

// None without GPU code.
nb::object gpu_code() {
#ifdef NANET_CUDA
  const gpu::Build build = gpu::build();
  nb::dict code;
  code["cuda_version"] = build.cuda_version;
  code["architectures"] = build.architectures;
  return code;
#else
  return nb::none();
#endif
}

nb::dict build_info() {
  nb::dict back_ends;
  back_ends["udp"] = true;
  const engine::Kinds kinds = engine::built_in_kinds();
  for (const auto& kind : kinds.links()) {
    if (kind->back_end) back_ends[kind->name.c_str()] = link::has_back_end(*kind->back_end);
  }
  back_ends["rdma"] = NANET_HAS_RDMA != 0;
  back_ends["cuda"] = !gpu_code().is_none();
  nb::dict info;
  info["version"] = base::kBuildInfo.version;
  info["commit"] = base::kBuildInfo.commit;
  info["compiler"] = base::kBuildInfo.compiler;
  info["build_type"] = base::kBuildInfo.build_type;
  info["simd"] = rich::fit_rings_target();
  info["back_ends"] = back_ends;
  info["gpu_code"] = gpu_code();
  return info;
}

std::string back_end_problem(const std::string& name) {
  const engine::Kinds kinds = engine::built_in_kinds();
  const auto kind = kinds.link(name);
  return kind->back_end ? link::back_end_problem(*kind->back_end) : "";
}

nb::list counter_table() {
  nb::list table;
  for (const flow::CounterInfo& info : flow::kCounterTable) table.append(nb::make_tuple(info.name, info.unit, info.help));
  return table;
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "nanet's native part: engine, emulator, ring fit. Use it through the package nanet.";
  nb::exception<SetupError>(module, "SetupError", PyExc_ValueError);
  module.def("build_info", &build_info,
             "Version, commit, compiler, build type, instruction set of the ring fit, and the back-ends that are there.");
  module.def(
      "back_end_problem", &back_end_problem, nb::arg("name"),
      "Loads the back-end of a kind of link, such as `xdp`. Empty: links of that kind can be opened; else \"why; suggestion\".");
  module.def("counter_table", &counter_table, "(name, unit, help) of every counter, in order.");
  bind_histogram(module);
  bind_rings(module);
  bind_components(module);
  bind_format(module);
  bind_finders(module);
  bind_engine(module);
  bind_l0tp(module);
  bind_trigger(module);
  bind_emulator(module);
  bind_km3_emulate(module);
  bind_port(module);
  bind_replay(module);
  bind_physics(module);
  bind_stencil(module);
  bind_stencil_gpu(module);
  bind_km3(module);
}

}  // namespace nanet::bindings
