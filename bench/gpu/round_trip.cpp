// SPDX-License-Identifier: Apache-2.0
// bench_gpu_round_trip: host-GPU-host round trips as the host sees them, for buffers of 16 to 16384 events of 20 hits in the host's memory.
//
//   --sizes 16,1024      events a buffer, multiples of 16
//   --ways A,B           of the ways below; all without it
//   --finder math        of the ways through the event processor; the classical ways always fit MATH
//   --blocks 0           of the event processor (gpu::GpuConfig::blocks)
//   --repeat 20000       round trips, after --warm-up 2000; fewer where --seconds 5 are over before
//   --pause-us 2         of rest between two round trips, and up to one more by chance: data do not come in step with the GPU's polling
//   --clop-mib 128       of all buffers together
//   --core N             of this thread; --limit-s 540: the whole program ends after that
//   --short              a smoke of it; --csv FILE
//
// Ways: persistent, launch_mapped, launch_copied, graph_mapped, graph_copied are the event processor (contract in, MTP packets out). in_place_host and
// in_place_device are persistent with payloads in place: in the host's memory, each in a frame of its own as a NIC leaves them, or in the GPU's, where it also
// checks them (checksum and lengths). launch_sync,
// copy_launch_copy_sync, graph_sync (copies too), graph_mapped_sync are the classical ways, written plainly: launch, then synchronise. flag is one thread on the
// GPU that answers a word with a word: the floor.
// A round trip begins before the completion is written (or the first call into CUDA) and ends when the host has all descriptors of the buffer (or the
// synchronisation came back). Every answer is counted; a sample of them is compared with the CPU's.
// Exit status: 0; 1 wrong answers; 2 no GPU or wrong options; 3 something took too long.
#include <cstdio>
#include <optional>

#include "classical.hpp"
#include "rig.hpp"

using namespace nanet;
using namespace nanet::bench;

namespace {

struct Plan {
  std::uint64_t repeat = 20000;
  std::uint64_t warm_up = 2000;
  std::uint64_t row_ns = 5'000'000'000;
  std::uint64_t pause_ns = 2000;
  std::size_t clop_bytes = 128u << 20;
  gpu::EventProcessorConfig processor;
};

struct Row {
  std::string way;
  std::uint32_t events = 0;
  Summary summary;
  std::uint64_t wrong = 0;
};

// Whether the values of this round trip's answers are looked at, outside of the time that is measured.
bool is_sample(std::uint64_t number) { return number < 64 || number % 61 == 0; }

// one(number) makes a round trip and returns its nanoseconds.
template <class One>
Summary repeat(const Plan& plan, One&& one) {
  std::uint64_t number = 0;
  std::uint32_t random = 1;
  std::vector<std::uint64_t> times_ns;
  times_ns.reserve(plan.repeat);
  const auto turn = [&] {
    const std::uint64_t time_ns = one(number++);
    random = random * 1664525u + 1013904223u;
    spin_for(plan.pause_ns + (random >> 22));
    return time_ns;
  };
  const std::uint64_t begin_ns = now_ns();
  while (number < plan.warm_up && now_ns() - begin_ns < plan.row_ns) turn();
  const std::uint64_t measured_from_ns = now_ns();
  while (times_ns.size() < plan.repeat && now_ns() - measured_from_ns < plan.row_ns) times_ns.push_back(turn());
  return summarize(std::move(times_ns));
}

void look_for_fault(const gpu::EventProcessor& processor) {
  if (!processor.fault().empty()) end_program(processor.fault());
}

Row measure_processor(const std::string& way, const Plan& plan, const PacketPool& pool, std::uint32_t events, gpu::Runtime runtime,
                      gpu::BufferPath path, Placing placing = Placing::in_buffers) {
  Rig rig(pool, events, plan.clop_bytes, placing);
  gpu::EventProcessorConfig config = plan.processor;
  config.gpu.runtime = runtime;
  config.gpu.path = path;
  config.gpu.buffers_in_flight = 1;
  const auto processor = gpu::EventProcessor::make(
      config, {.completions = rig.queue, .clops = {&rig.clop}, .answers = &rig.ring, .payloads = {rig.payloads.memory()}});
  const bool host_acts = runtime != gpu::Runtime::persistent;
  Row row{way, events};
  std::uint64_t count = 0;
  row.summary = repeat(plan, [&](std::uint64_t number) {
    const std::uint64_t begin_ns = rig.push();
    for (Wait wait("the answers to a buffer");;) {
      if (host_acts) processor->poll(now_ns());
      if (rig.poll_answers()) break;
      if (wait.turn()) look_for_fault(*processor);
    }
    const std::uint64_t took_ns = now_ns() - begin_ns;
    row.wrong += rig.check_answers(number, is_sample(number));
    for (Wait wait("a buffer to be given back"); processor->busy() || rig.clop.in_use() != 0;) {
      if (wait.turn()) look_for_fault(*processor);
    }
    processor->poll(now_ns());
    ++count;
    return took_ns;
  });
  processor->finish();
  look_for_fault(*processor);
  if (processor->totals().events != count * events) row.wrong += 1;
  return row;
}

Row measure_classical(const std::string& way, const Plan& plan, const PacketPool& pool, std::uint32_t events, ClassicalWay kind) {
  Rig rig(pool, events, plan.clop_bytes);
  Classical classical(rig, kind);
  Row row{way, events};
  row.summary = repeat(plan, [&](std::uint64_t number) {
    const std::uint64_t begin_ns = now_ns();
    classical.begin(number);
    classical.wait(number);
    const std::uint64_t took_ns = now_ns() - begin_ns;
    if (is_sample(number)) row.wrong += classical.wrong_circles(number);
    return took_ns;
  });
  return row;
}

Row measure_flag(const Plan& plan) {
  gpu::Stream stream;
  gpu::PinnedArray<gpu::ResidentCommand> command(1);
  gpu::PinnedArray<gpu::ResidentAnswer> answer(1);
  gpu::check(gpu::start_residents(command.device(), answer.device(), 1, 0, kWaitNs / 2, stream.get()), "a launch");
  Row row{"flag", 0};
  row.summary = repeat(plan, [&](std::uint64_t number) {
    const std::uint64_t begin_ns = now_ns();
    std::atomic_ref(command.host()->number).store(number + 1, std::memory_order_release);
    for (Wait wait("the flag's answer"); std::atomic_ref(answer.host()->number).load(std::memory_order_acquire) != number + 1;)
      wait.turn();
    return now_ns() - begin_ns;
  });
  std::atomic_ref(command.host()->stop).store(1, std::memory_order_release);
  for (Wait wait("the flag's kernel to end"); cudaStreamQuery(stream.get()) == cudaErrorNotReady;) wait.turn();
  gpu::check(cudaStreamQuery(stream.get()), "the flag's kernel");
  return row;
}

// nullopt: the way does not use buffers of this size, or is not known.
std::optional<Row> measure(const std::string& way, const Plan& plan, const PacketPool& pool, std::uint32_t events) {
  using gpu::BufferPath;
  using gpu::Runtime;
  if (way == "persistent") return measure_processor(way, plan, pool, events, Runtime::persistent, BufferPath::mapped);
  if (way == "in_place_host" || way == "in_place_device") {
    return measure_processor(way, plan, pool, events, Runtime::persistent, BufferPath::mapped,
                             way == "in_place_host" ? Placing::host : Placing::device);
  }
  if (way == "launch_mapped") return measure_processor(way, plan, pool, events, Runtime::launch, BufferPath::mapped);
  if (way == "launch_copied") return measure_processor(way, plan, pool, events, Runtime::launch, BufferPath::copied);
  if (way == "graph_mapped") return measure_processor(way, plan, pool, events, Runtime::graph, BufferPath::mapped);
  if (way == "graph_copied") return measure_processor(way, plan, pool, events, Runtime::graph, BufferPath::copied);
  if (way == "launch_sync") return measure_classical(way, plan, pool, events, ClassicalWay::launch);
  if (way == "copy_launch_copy_sync") return measure_classical(way, plan, pool, events, ClassicalWay::copy);
  if (way == "graph_sync") return measure_classical(way, plan, pool, events, ClassicalWay::graph);
  if (way == "graph_mapped_sync") return measure_classical(way, plan, pool, events, ClassicalWay::graph_mapped);
  return std::nullopt;
}

void print_row(const Row& row, Csv& csv) {
  const Summary& s = row.summary;
  std::printf("%7u %-22s %7zu %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %6llu\n", row.events, row.way.c_str(), s.count, s.min,
              s.p50, s.p90, s.p99, s.p999, s.p9999, s.max, static_cast<unsigned long long>(row.wrong));
  std::fflush(stdout);
  csv.line(row.way + "," + std::to_string(row.events) + "," + summary_values(s) + "," + std::to_string(row.wrong));
}

// Of the rows of one size that pass: the one with the smallest figure; null if none does.
template <class Passes>
const Row* best_row(const std::vector<Row>& rows, std::uint32_t events, double Summary::*figure, Passes&& passes) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (row.events == events && passes(row) && (best == nullptr || row.summary.*figure < best->summary.*figure)) best = &row;
  }
  return best;
}

bool launches(const Row& row) { return row.way != "persistent" && !row.way.starts_with("in_place_"); }

// Payloads in place / in the buffers, both persistent.
void print_in_place(const std::vector<Row>& rows, const std::vector<std::uint32_t>& sizes) {
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.way.starts_with("in_place_"); })) return;
  std::printf("\n%7s %-22s %15s %15s\n", "events", "", "p50 / buffers'", "p99.9 / buffers'");
  for (const std::uint32_t events : sizes) {
    const Row* const buffers = best_row(rows, events, &Summary::p50, [](const Row& row) { return row.way == "persistent"; });
    for (const Row& row : rows) {
      if (buffers == nullptr || row.events != events || !row.way.starts_with("in_place_")) continue;
      std::printf("%7u %-22s %15.3f %15.3f\n", events, row.way.c_str(), row.summary.p50 / buffers->summary.p50,
                  row.summary.p999 / buffers->summary.p999);
    }
  }
}

// persistent / best of all ways that launch, at each size; and / best of those that do the same work, the event processor's.
void print_ratios(const std::vector<Row>& rows, const std::vector<std::uint32_t>& sizes) {
  std::printf("\n%7s %6s %20s %-22s %12s %-22s\n", "events", "", "persistent / best", "which was", "/ same work", "which was");
  for (const std::uint32_t events : sizes) {
    for (const auto& [name, figure] : {std::pair{"p50", &Summary::p50}, std::pair{"p99.9", &Summary::p999}}) {
      const Row* const persistent = best_row(rows, events, figure, [](const Row& row) { return row.way == "persistent"; });
      const Row* const best = best_row(rows, events, figure, &launches);
      const Row* const same = best_row(rows, events, figure,
                                       [](const Row& row) { return launches(row) && !row.way.ends_with("_sync"); });
      if (persistent == nullptr || best == nullptr) continue;
      std::printf("%7u %6s %20.3f %-22s", events, name, persistent->summary.*figure / best->summary.*figure, best->way.c_str());
      if (same != nullptr) std::printf(" %12.3f %-22s", persistent->summary.*figure / same->summary.*figure, same->way.c_str());
      std::printf("\n");
    }
  }
}

int run(const Options& options) {
  Csv csv(options.text("--csv"));
  Plan plan;
  const bool is_short = options.is_short();
  plan.repeat = options.count("--repeat", is_short ? 100 : plan.repeat);
  plan.warm_up = options.count("--warm-up", is_short ? 20 : plan.warm_up);
  plan.row_ns = static_cast<std::uint64_t>(1e9 * options.number("--seconds", is_short ? 0.2 : 5));
  plan.pause_ns = static_cast<std::uint64_t>(1e3 * options.number("--pause-us", 2));
  plan.clop_bytes = options.count("--clop-mib", 128) << 20;
  plan.processor.finder.kind = finder_of(options.text("--finder", "math"));
  plan.processor.gpu.blocks = static_cast<std::uint32_t>(options.count("--blocks", 0));
  const auto sizes = options.counts("--sizes", is_short ? "16,1024" : "16,64,256,1024,4096,16384");
  const auto ways = options.list(
      "--ways",
      "flag,persistent,in_place_host,in_place_device,launch_mapped,launch_copied,graph_mapped,graph_copied,launch_sync,"
      "copy_launch_copy_sync,graph_sync,graph_mapped_sync");
  limit_run_time(static_cast<unsigned>(options.count("--limit-s", 540)));
  describe_machine("bench_gpu_round_trip", csv);
  const int core = pin(static_cast<int>(options.number("--core", -1)));
  std::printf("round trips in us, %u hits an event, finder %s, thread on core %d\n", kEventHits,
              rich::finder_name(plan.processor.finder.kind), core);
  csv.line(std::string("# finder: ") + rich::finder_name(plan.processor.finder.kind));
  csv.line(std::string("way,events,") + kSummaryColumns + ",wrong");
  std::printf("%7s %-22s %7s %9s %9s %9s %9s %9s %9s %9s %6s\n", "events", "way", "count", "min", "p50", "p90", "p99", "p99.9",
              "p99.99", "max", "wrong");
  const PacketPool pool = make_pool(plan.processor.finder, plan.processor.decision);
  std::vector<Row> rows;
  const auto take = [&](const Row& row) {
    print_row(row, csv);
    rows.push_back(row);
  };
  if (std::find(ways.begin(), ways.end(), "flag") != ways.end()) take(measure_flag(plan));
  for (const std::uint32_t events : sizes) {
    for (const std::string& way : ways) {
      if (way == "flag") continue;
      const std::optional<Row> row = measure(way, plan, pool, events);
      if (!row) throw SetupError("there is no way '" + way + "'", "see the head of bench/gpu/round_trip.cpp", "name one of those");
      take(*row);
    }
  }
  print_ratios(rows, sizes);
  print_in_place(rows, sizes);
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong != 0; }) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(Options(argc, argv,
                       {"--sizes", "--ways", "--finder", "--blocks", "--repeat", "--warm-up", "--seconds", "--pause-us",
                        "--clop-mib", "--core", "--limit-s", "--csv"}));
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
