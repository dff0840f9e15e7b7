// SPDX-License-Identifier: Apache-2.0
// bench_gpu_driver_path: the comparison of "GPU I/O persistent kernel for latency bound systems": each buffer costs a launch and a synchronisation (the driver
// path), or one kernel stays on the GPU and sees buffers itself. The paper's dummy work of 200 us a buffer, and a real kernel.
//
//   --buffers 5000       back to back in each row; fewer where --seconds 5 are over before
//   --work-us 200        of the dummy work
//   --events 1024        of 20 hits, a buffer of the real work: MATH fits (driver path), or MATH fits, verdicts and MTP packets (persistent)
//   --in-flight 1,4      buffers at a time: 1 is one after the other, the worst case
//   --core N, --limit-s 300, --short: a smoke of it, --csv FILE
//
// The time of a buffer is from the host's first act for it until the host has seen that it is done.
// Exit status: 0; 1 wrong answers; 2 no GPU or wrong options; 3 something took too long.
#include <cstdio>

#include "classical.hpp"
#include "rig.hpp"

using namespace nanet;
using namespace nanet::bench;

namespace {

struct Plan {
  std::uint64_t buffers = 5000;
  std::uint64_t row_ns = 5'000'000'000;
  std::uint64_t work_ns = 200'000;
  std::uint32_t in_flight = 1;
  std::size_t clop_bytes = 128u << 20;
};

// begin(number) starts work; wait(number) returns when it is done; inspect(number) gives the number of wrong answers, outside of the time measured.
class Path {
 public:
  virtual ~Path() = default;
  virtual void begin(std::uint64_t number) = 0;
  virtual void wait(std::uint64_t number) = 0;
  virtual std::uint32_t inspect(std::uint64_t) { return 0; }
  virtual void finish() {}
};

class DummyDriver final : public Path {
 public:
  explicit DummyDriver(const Plan& plan) : work_ns_(plan.work_ns), streams_(plan.in_flight) {}
  void begin(std::uint64_t number) override {
    gpu::check(gpu::idle_for(work_ns_, nullptr, 0, streams_[number % streams_.size()].get()), "a launch");
  }
  void wait(std::uint64_t number) override {
    gpu::check(cudaStreamSynchronize(streams_[number % streams_.size()].get()), "cudaStreamSynchronize");
  }

 private:
  std::uint64_t work_ns_;
  std::vector<gpu::Stream> streams_;
};

class DummyPersistent final : public Path {
 public:
  explicit DummyPersistent(const Plan& plan) : residents_(plan.in_flight), commands_(residents_), answers_(residents_) {
    gpu::check(gpu::start_residents(commands_.device(), answers_.device(), residents_, plan.work_ns, kWaitNs / 2, stream_.get()),
               "a launch");
  }
  void begin(std::uint64_t number) override {
    std::atomic_ref(commands_.host()[number % residents_].number).store(number + 1, std::memory_order_release);
  }
  void wait(std::uint64_t number) override {
    std::uint64_t& answer = answers_.host()[number % residents_].number;
    for (Wait wait("a resident thread's answer"); std::atomic_ref(answer).load(std::memory_order_acquire) != number + 1;)
      wait.turn();
  }
  void finish() override {
    for (std::uint32_t k = 0; k < residents_; ++k) std::atomic_ref(commands_.host()[k].stop).store(1, std::memory_order_release);
    for (Wait wait("the resident threads to end"); cudaStreamQuery(stream_.get()) == cudaErrorNotReady;) wait.turn();
    gpu::check(cudaStreamQuery(stream_.get()), "the resident threads");
  }

 private:
  std::uint32_t residents_;
  gpu::Stream stream_;
  gpu::PinnedArray<gpu::ResidentCommand> commands_;
  gpu::PinnedArray<gpu::ResidentAnswer> answers_;
};

class RingsDriver final : public Path {
 public:
  RingsDriver(const Plan& plan, const PacketPool& pool, std::uint32_t events)
      : rig_(pool, events, plan.clop_bytes), classical_(rig_, ClassicalWay::launch, plan.in_flight) {}
  void begin(std::uint64_t number) override { classical_.begin(number); }
  void wait(std::uint64_t number) override { classical_.wait(number); }
  std::uint32_t inspect(std::uint64_t number) override { return number % 61 == 0 ? classical_.wrong_circles(number) : 0; }

 private:
  Rig rig_;
  Classical classical_;
};

class RingsPersistent final : public Path {
 public:
  RingsPersistent(const Plan& plan, const PacketPool& pool, std::uint32_t events) : rig_(pool, events, plan.clop_bytes) {
    gpu::EventProcessorConfig config;
    config.gpu.runtime = gpu::Runtime::persistent;
    config.gpu.buffers_in_flight = plan.in_flight;
    processor_ = gpu::EventProcessor::make(config, {.completions = rig_.queue, .clops = {&rig_.clop}, .answers = &rig_.ring});
  }
  void begin(std::uint64_t) override { rig_.push(); }
  void wait(std::uint64_t) override {
    for (Wait wait("the answers to a buffer"); !rig_.poll_answers();) {
      if (wait.turn()) look_for_fault();
    }
  }
  std::uint32_t inspect(std::uint64_t number) override {
    processor_->poll(now_ns());
    return rig_.check_answers(number, number % 61 == 0);
  }
  void finish() override {
    processor_->finish();
    look_for_fault();
  }

 private:
  void look_for_fault() const {
    if (!processor_->fault().empty()) end_program(processor_->fault());
  }
  Rig rig_;
  std::unique_ptr<gpu::EventProcessor> processor_;
};

struct Row {
  Summary summary;
  double buffers_per_s = 0;
  std::uint64_t wrong = 0;
};

Row measure(const Plan& plan, Path& path) {
  constexpr std::uint64_t kWarmUp = 100;
  std::vector<std::uint64_t> begun_ns(plan.in_flight);
  std::vector<std::uint64_t> times_ns;
  times_ns.reserve(plan.buffers);
  Row row;
  std::uint64_t begun = 0;
  std::uint64_t done = 0;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  bool more = true;
  while (more || done < begun) {
    if (more && begun - done < plan.in_flight) {
      begun_ns[begun % plan.in_flight] = now_ns();
      path.begin(begun++);
      more = begun < kWarmUp + plan.buffers && (first_ns == 0 || now_ns() - first_ns < plan.row_ns);
      continue;
    }
    path.wait(done);
    last_ns = now_ns();
    if (done >= kWarmUp) times_ns.push_back(last_ns - begun_ns[done % plan.in_flight]);
    if (done + 1 == kWarmUp) first_ns = last_ns;
    row.wrong += path.inspect(done++);
  }
  path.finish();
  row.buffers_per_s = 1e9 * static_cast<double>(times_ns.size()) / static_cast<double>(last_ns - first_ns);
  row.summary = summarize(std::move(times_ns));
  return row;
}

std::unique_ptr<Path> make_path(const std::string& work, const std::string& way, const Plan& plan, const PacketPool& pool,
                                std::uint32_t events) {
  if (work == "dummy" && way == "driver") return std::make_unique<DummyDriver>(plan);
  if (work == "dummy") return std::make_unique<DummyPersistent>(plan);
  if (way == "driver") return std::make_unique<RingsDriver>(plan, pool, events);
  return std::make_unique<RingsPersistent>(plan, pool, events);
}

void print_head(Csv& csv) {
  csv.line(std::string("work,path,in_flight,events,work_us,") + kSummaryColumns + ",buffers_per_s,wrong");
  std::printf("%-6s %-11s %9s %7s %9s %9s %9s %9s %9s %9s %9s %11s %6s\n", "work", "path", "in flight", "count", "mean", "jitter",
              "p50", "p99", "p99.9", "p99.99", "max", "buffers/s", "wrong");
}

void print_row(const std::string& work, const std::string& way, const Plan& plan, std::uint32_t events, const Row& row, Csv& csv) {
  const Summary& s = row.summary;
  const auto wrong = static_cast<unsigned long long>(row.wrong);
  std::printf("%-6s %-11s %9u %7zu %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %11.0f %6llu\n", work.c_str(), way.c_str(),
              plan.in_flight, s.count, s.mean, s.std, s.p50, s.p99, s.p999, s.p9999, s.max, row.buffers_per_s, wrong);
  std::fflush(stdout);
  const bool dummy = work == "dummy";
  char head[128];
  char tail[64];
  std::snprintf(head, sizeof head, "%s,%s,%u,%u,%.1f,", work.c_str(), way.c_str(), plan.in_flight, dummy ? 0u : events,
                dummy ? 1e-3 * static_cast<double>(plan.work_ns) : 0.0);
  std::snprintf(tail, sizeof tail, ",%.1f,%llu", row.buffers_per_s, wrong);
  csv.line(head + summary_values(s) + tail);
}

int run(const Options& options) {
  Csv csv(options.text("--csv"));
  Plan plan;
  plan.buffers = std::max<std::uint64_t>(1, options.count("--buffers", options.is_short() ? 100 : plan.buffers));
  plan.row_ns = static_cast<std::uint64_t>(1e9 * options.number("--seconds", 5));
  plan.work_ns = static_cast<std::uint64_t>(1e3 * options.number("--work-us", 200));
  const std::uint32_t events = options.counts("--events", "1024").at(0);
  const auto in_flights = options.counts("--in-flight", "1,4");
  limit_run_time(static_cast<unsigned>(options.count("--limit-s", 300)));
  describe_machine("bench_gpu_driver_path", csv);
  const int core = pin(static_cast<int>(options.number("--core", -1)));
  std::printf("us a buffer; dummy work of %.0f us, or rings of %u events; thread on core %d\n",
              1e-3 * static_cast<double>(plan.work_ns), events, core);
  print_head(csv);
  const PacketPool pool = make_pool({}, {});
  std::uint64_t wrong = 0;
  for (const std::string work : {"dummy", "rings"}) {
    for (const std::uint32_t in_flight : in_flights) {
      for (const std::string way : {"driver", "persistent"}) {
        plan.in_flight = std::min(in_flight, gpu::kBuffersInFlightMax);
        const std::unique_ptr<Path> path = make_path(work, way, plan, pool, events);
        const Row row = measure(plan, *path);
        print_row(work, way, plan, events, row, csv);
        wrong += row.wrong;
      }
    }
  }
  return wrong != 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(
        Options(argc, argv, {"--buffers", "--seconds", "--work-us", "--events", "--in-flight", "--core", "--limit-s", "--csv"}));
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
