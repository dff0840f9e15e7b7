// SPDX-License-Identifier: Apache-2.0
// bench_gpu_loop: the whole loop on one machine: emulated board -> UDP -> engine with rings on a GPU -> UDP -> checked answers, at set rates.
//
//   --rates 1,2,5,10     Mevent/s of 20 hits on average, 16 events a packet
//   --packets 1,2,4,8,16,32,64   of a buffer: it is handed over when so many have had the time to come (8 packets are 128 events)
//   --in-flight 1,4      buffers that the GPU has at a time: 1 serialised, more overlapped
//   --runtimes persistent,launch,graph   also cpu: the engine without a GPU
//   --path mapped        or copied (launch and graph)
//   --finder math, --blocks 0, --topology pipelined or run_to_completion
//   --burst 1            packets that the board sends as one message
//   --seconds 2          a row, --cores A,B,C of emulator, receiving and processing thread; --port 6400 and the next one
//   --limit-s 580, --short: a smoke of it, --csv FILE
//
// Latency is from the moment a packet is given to the kernel to the moment the answer to each of its events is received: the time in which a buffer fills is in
// it. `packets` in the table is what buffers held on average. `lost` were sent and never answered, `wrong` answered wrongly (or twice, or unasked).
// Exit status: 0; 1 wrong answers; 2 no GPU or wrong options; 3 something took too long. Lost events are a result, not a failure.
#include <chrono>
#include <cstdio>
#include <thread>

#include "loop_rig.hpp"

using namespace nanet;
using namespace nanet::bench;

namespace {

struct Row {
  emulate::EmulatorSnapshot books;
  double packets_mean = 0;  // of a buffer
  std::string fault;

  std::uint64_t wrong() const {
    const emulate::AnswerCounts& a = books.answers;
    return a.wrong + a.duplicate + a.stale + a.unknown + a.bad_primitives + a.packets_bad_format + a.packets_bad_length +
           a.packets_bad_source;
  }
  double rate() const {
    return 1e9 * static_cast<double>(books.events_sent) / static_cast<double>(std::max<std::uint64_t>(books.elapsed_ns, 1));
  }
};

Row measure(const Plan& plan, const Setting& setting) {
  emulate::Emulator emulator(emulator_config(plan, setting));
  engine::Engine engine(engine_config(plan, setting));
  engine.start();
  emulator.start();
  const auto give_up_ns = now_ns() + static_cast<std::uint64_t>(1e9 * plan.seconds) + kWaitNs;
  while (emulator.running()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (now_ns() > give_up_ns) end_program("waited for the emulator to end (it has no time limit left) see the load of the cores");
  }
  emulator.stop();
  const flow::Clop& clop = *engine.inputs().front().clop;
  engine.stop();
  Row row{emulator.snapshot()};
  const std::uint64_t buffers = clop.indexes().produced;
  if (buffers > 0)
    row.packets_mean = static_cast<double>(engine.total(flow::Counter::packets_accepted)) / static_cast<double>(buffers);
  for (const std::string& fault : engine.faults()) row.fault = fault;
  return row;
}

void print_head(Csv& csv) {
  csv.line(
      "runtime,path,topology,finder,in_flight,burst_packets,rate_events_per_s,packets,packets_mean,sent_events_per_s,sent,answered,"
      "lost,wrong,p50_us,p99_us,p999_us,"
      "p9999_us,max_us,clean_p999_us,late_p99_us,longest_stall_us");
  std::printf("%-10s %6s %9s %7s %7s %9s %9s %9s %9s %9s %9s %10s %8s %6s %9s %9s\n", "runtime", "Mev/s", "in flight", "wanted",
              "packets", "p50", "p99", "p99.9", "p99.99", "max", "clean99.9", "sent", "lost", "wrong", "late p99", "stall");
}

void print_row(const Plan& plan, const Setting& setting, const Row& row, Csv& csv) {
  const auto us = [](const flow::LatencyHistogram& histogram, double percentile) {
    return 1e-3 * static_cast<double>(percentile < 100 ? histogram.value_at_percentile(percentile) : histogram.max());
  };
  const emulate::EmulatorSnapshot& b = row.books;
  const auto integer = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  const double late_us = us(b.send_lateness, 99);
  const double stall_us = 1e-3 * static_cast<double>(b.stalls.longest_ns);
  const double clean_us = us(b.latency_clean, 99.9);
  std::printf("%-10s %6.2f %9u %7u %7.2f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %10llu %8llu %6llu %9.1f %9.1f\n",
              setting.runtime.c_str(), 1e-6 * setting.rate_events_per_s, setting.in_flight, setting.packets, row.packets_mean,
              us(b.latency, 50), us(b.latency, 99), us(b.latency, 99.9), us(b.latency, 99.99), us(b.latency, 100), clean_us,
              integer(b.events_sent), integer(b.events_unanswered()), integer(row.wrong()), late_us, stall_us);
  std::fflush(stdout);
  char text[512];
  std::snprintf(text, sizeof text, "%s,%s,%s,%s,%u,%u,%.0f,%u,%.3f,%.0f,%llu,%llu,%llu,%llu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f",
                setting.runtime.c_str(), plan.gpu.path == gpu::BufferPath::copied ? "copied" : "mapped",
                plan.topology == engine::Topology::pipelined ? "pipelined" : "run_to_completion",
                rich::finder_name(plan.finder.kind), setting.in_flight, plan.burst_packets, setting.rate_events_per_s,
                setting.packets, row.packets_mean, row.rate(), integer(b.events_sent), integer(b.answers.answered),
                integer(b.events_unanswered()), integer(row.wrong()), us(b.latency, 50), us(b.latency, 99), us(b.latency, 99.9),
                us(b.latency, 99.99), us(b.latency, 100), clean_us, late_us, stall_us);
  csv.line(text);
}

int run(const Options& options) {
  Csv csv(options.text("--csv"));
  Plan plan;
  plan.seconds = options.number("--seconds", options.is_short() ? 0.2 : 2);
  plan.port = static_cast<std::uint32_t>(options.count("--port", 6400));
  plan.burst_packets = static_cast<std::uint32_t>(options.count("--burst", 1));
  plan.finder.kind = finder_of(options.text("--finder", "math"));
  plan.gpu.blocks = static_cast<std::uint32_t>(options.count("--blocks", 0));
  if (options.text("--path", "mapped") == "copied") plan.gpu.path = gpu::BufferPath::copied;
  if (options.text("--topology", "pipelined") == "run_to_completion") plan.topology = engine::Topology::run_to_completion;
  std::vector<double> rates;
  for (const std::string& rate : options.list("--rates", options.is_short() ? "0.1" : "1,2,5,10"))
    rates.push_back(1e6 * std::strtod(rate.c_str(), nullptr));
  const auto packets = options.counts("--packets", options.is_short() ? "8" : "1,2,4,8,16,32,64");
  const auto in_flights = options.counts("--in-flight", "1,4");
  const auto runtimes = options.list("--runtimes", "persistent,launch,graph");
  limit_run_time(static_cast<unsigned>(options.count("--limit-s", 580)));
  if (runtimes != std::vector<std::string>{"cpu"}) {
    describe_machine("bench_gpu_loop", csv);
  } else {
    csv.line("# program: bench_gpu_loop");
  }
  plan.cores = cores_of(options);
  if (!plan.cores.empty())
    std::printf("emulator on core %d, receiving on %d, processing on %d\n", plan.cores[0], plan.cores[1], plan.cores[2]);
  std::printf("latency in us from send to answer, finder %s\n", rich::finder_name(plan.finder.kind));
  print_head(csv);
  bool wrong = false;
  for (const std::string& runtime : runtimes) {
    for (const std::uint32_t in_flight : in_flights) {
      if (runtime == "cpu" && in_flight != in_flights.front()) continue;  // it has one at a time, always
      for (const double rate : rates) {
        for (const std::uint32_t count : packets) {
          const Setting setting{runtime, rate, count, std::min(in_flight, gpu::kBuffersInFlightMax)};
          const Row row = measure(plan, setting);
          print_row(plan, setting, row, csv);
          if (!row.fault.empty()) end_program(row.fault);
          wrong = wrong || row.wrong() != 0;
        }
      }
    }
  }
  return wrong ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(Options(argc, argv,
                       {"--rates", "--packets", "--in-flight", "--runtimes", "--path", "--finder", "--blocks", "--topology",
                        "--burst", "--seconds", "--cores", "--port", "--limit-s", "--csv"}));
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
