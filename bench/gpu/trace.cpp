// SPDX-License-Identifier: Apache-2.0
// bench_gpu_trace: what the host asks of CUDA and of the allocator while the whole loop runs, for each runtime: with `persistent`, nothing.
//
//   --runtimes persistent,launch,graph   the last two are the control: the trace has to see their calls
//   --rate 1             Mevent/s of 20 hits on average, 16 events a packet
//   --seconds 2          that are traced, after half a second in which everything has begun
//   --cores A,B,C of emulator, receiving and processing thread; --port 6400 and the next one; --blocks 0; --csv FILE
//
// Traced: every function of CUDA's runtime and driver (CUPTI's callbacks) and every operator new, of all threads of this process: engine, emulator and the
// program itself, which sleeps meanwhile. Beside it what was allocated before, at set-up: the control of that count.
// Exit status: 0; 1 `persistent` called something, or the control nothing; 2 no GPU, no CUPTI or wrong options; 3 something took too long.
#include <chrono>
#include <cstdio>
#include <thread>

#include "../../tests/unit/allocation_count.hpp"
#include "call_trace.hpp"
#include "loop_rig.hpp"

using namespace nanet;
using namespace nanet::bench;

namespace {

constexpr double kBeginS = 0.5;

struct Traced {
  std::map<std::string, std::uint64_t> calls;
  std::uint64_t allocations = 0;
  std::uint64_t allocations_at_set_up = 0;
  std::uint64_t buffers = 0;
  std::uint64_t answered = 0;
};

void sleep_s(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

Traced measure(CallTrace& trace, const Plan& plan, const Setting& setting) {
  Plan longer = plan;
  longer.seconds = plan.seconds + 2 * kBeginS;  // it goes on while the trace ends
  Traced traced;
  const std::uint64_t allocations_at_first = test::allocation_count;
  emulate::Emulator emulator(emulator_config(longer, setting));
  engine::Engine engine(engine_config(longer, setting));
  engine.start();
  emulator.start();
  traced.allocations_at_set_up = test::allocation_count - allocations_at_first;
  sleep_s(kBeginS);
  const flow::Clop& clop = *engine.inputs().front().clop;
  const std::uint64_t buffers_before = clop.indexes().produced;
  const std::uint64_t allocations_before = test::allocation_count;
  trace.begin();
  sleep_s(plan.seconds);
  trace.end();
  traced.allocations = test::allocation_count - allocations_before;
  traced.buffers = clop.indexes().produced - buffers_before;
  traced.calls = trace.calls();
  if (!emulator.running()) end_program("the emulator ended while it was traced (it has a set time) see the load of the cores");
  while (emulator.running()) sleep_s(0.01);
  emulator.stop();
  engine.stop();
  for (const std::string& fault : engine.faults()) end_program(fault);
  traced.answered = emulator.snapshot().answers.answered;
  return traced;
}

void print(const std::string& runtime, const Traced& traced, Csv& csv) {
  const auto integer = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  const auto row = [&](const std::string& name, std::uint64_t count, const char* indent = "") {
    const double each = static_cast<double>(count) / static_cast<double>(std::max<std::uint64_t>(traced.buffers, 1));
    std::printf("%-12s %-42s %12llu %12.3f\n", runtime.c_str(), (indent + name).c_str(), integer(count), each);
    csv.line(runtime + "," + name + "," + std::to_string(count) + "," + std::to_string(traced.buffers));
  };
  row("operator new at set-up", traced.allocations_at_set_up);
  row("operator new", traced.allocations);
  std::uint64_t all = 0;
  for (const auto& [name, count] : traced.calls) all += count;
  row("all of CUDA", all);
  for (const auto& [name, count] : traced.calls) row(name, count, "  ");
}

int run(const Options& options) {
  Csv csv(options.text("--csv"));
  Plan plan;
  plan.seconds = options.number("--seconds", options.is_short() ? 0.3 : 2);
  plan.port = static_cast<std::uint32_t>(options.count("--port", 6400));
  plan.gpu.blocks = static_cast<std::uint32_t>(options.count("--blocks", 0));
  limit_run_time(120);
  describe_machine("bench_gpu_trace", csv);
  plan.cores = cores_of(options);
  CallTrace trace;
  csv.line("runtime,function,calls,buffers");
  std::printf("%-12s %-42s %12s %12s\n", "runtime", "function", "calls", "a buffer");
  bool as_promised = true;
  for (const std::string& runtime : options.list("--runtimes", "persistent,launch,graph")) {
    const Setting setting{runtime, 1e6 * options.number("--rate", 1), 8, 4};
    const Traced traced = measure(trace, plan, setting);
    print(runtime, traced, csv);
    if (traced.buffers == 0 || traced.answered == 0) end_program("nothing was judged (no buffer came) see the load of the cores");
    const bool quiet = traced.calls.empty() && traced.allocations == 0;
    as_promised = as_promised && traced.allocations_at_set_up > 0 && (runtime == "persistent" ? quiet : !traced.calls.empty());
  }
  return as_promised ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(Options(argc, argv, {"--runtimes", "--rate", "--seconds", "--cores", "--port", "--blocks", "--csv"}));
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
