// SPDX-License-Identifier: Apache-2.0
// bench_gpu_merge: event building, rings and answers on a GPU: the parts of four boards in, whole events' answers out.
//
//   --sizes 16,64,256,1024,4096   events of a buffer, which holds all parts of each
//   --ways persistent,launch_mapped,launch_copied,graph_mapped,graph_copied,cpu   cpu: the same work by event::Merger and the finder on one core
//   --lost 0             share of packets that never came, for the rate: their events are closed by the window and answered incomplete
//   --window-us 200, --open 8192, --finder math, --blocks 0
//   --repeat 20000       round trips a row at most, --seconds 1 for them and again for the rate
//   --core -1, --limit-s 140, --short: a smoke of it, --csv FILE
//
// Packets are packed ones of 16 events (of up to 64 in buffers of more than 64 events), as they lie in a buffer one after another. Latency is from the write of the
// completion until all answers are seen, one buffer at a time. Rate: as many buffers are handed over as are free. `wrong`: answers that are not the CPU's,
// twice or missing.
// Exit status: 0; 1 wrong answers; 2 no GPU or wrong options; 3 something took too long.
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>

#include "common.hpp"
#include "emulate/monte_carlo.hpp"
#include "nanet/event/merger.hpp"
#include "nanet/flow/clop.hpp"
#include "nanet/flow/completion_queue.hpp"
#include "nanet/flow/tx_ring.hpp"
#include "nanet/gpu/event_processor.hpp"
#include "nanet/wire/mtp.hpp"

using namespace nanet;
using namespace nanet::bench;

namespace {

constexpr std::uint32_t kBoards = 4;
constexpr std::uint32_t kPoolEvents = 4096;
// Until a key comes again, so many others have come that the table has forgotten it.
constexpr std::uint32_t kEventsAround = 1u << 18;

struct Plan {
  std::uint64_t repeat = 20000;
  std::uint64_t row_ns = 0;
  double lost = 0;
  gpu::EventProcessorConfig processor;
};

struct Row {
  std::string way;
  std::uint32_t events = 0;
  Summary summary;
  double rate = 0;  // events a second
  std::uint64_t closed_by_window = 0;
  std::uint64_t wrong = 0;
};

// Monte Carlo events, what each board has of them, and the answer to each.
struct EventPool {
  std::array<std::vector<std::vector<std::uint16_t>>, kBoards> parts;
  std::vector<std::uint16_t> answers;

  EventPool(const rich::FinderConfig& finder, const rich::Decision& decision) {
    emulate::MonteCarloConfig config;
    config.flat_radius = true;
    config.mean_hits = kEventHits;
    config.hits_max = 32;
    emulate::MonteCarlo monte_carlo(config);
    emulate::McEvent event;
    for (std::uint32_t e = 0; e < kPoolEvents; ++e) {
      monte_carlo.next(event);
      const event::Event hits{event.hits.data(), event.hit_count};
      rich::EventRings rings;
      rich::find_rings(finder, {&hits, 1}, {&rings, 1});
      answers.push_back(rich::primitive_id(rings, decision));
      for (std::uint32_t board = 0; board < kBoards; ++board) {
        std::vector<std::uint16_t>& part = parts[board].emplace_back();
        for (std::uint32_t k = 0; k < event.hit_count; ++k) {
          const std::uint16_t hit = event.hits[k];
          if (wire::hit_channel(hit) / wire::kChannelsPerBoard == board) part.push_back(hit);
        }
      }
    }
  }
};

// The contract's memory, filled for good: event n has the timestamp 4 n and the hits of event n of the pool.
class Rig {
 public:
  Rig(const EventPool& pool, std::uint32_t events_a_buffer, double lost)
      : events(events_a_buffer),
        packet_events_(events <= 64 ? std::min(events, 16u) : 64u),
        packets_(kBoards * ((events + packet_events_ - 1) / packet_events_)),
        clop(clop_config(events, packets_)),
        queue(2 * clop.buffer_count()),
        ring({.capacity = 4096, .slot_bytes = gpu::kPacketBytesMax, .locked = false}),
        completions_(clop.buffer_count()),
        pool_(pool) {
    std::uint32_t random = 1;
    for (std::uint32_t b = 0; b < clop.buffer_count(); ++b) fill(b, lost, random);
  }

  // Takes the next free buffer and writes its completion; false: there is none.
  bool push(std::uint64_t time_ns) {
    std::uint32_t buffer_index = 0;
    if (!clop.acquire(buffer_index)) return false;
    Completion completion = completions_[buffer_index];
    completion.first_packet_ns = completion.last_packet_ns = time_ns;
    completion.tag = clop.hand_over();
    return queue.push(completion);
  }

  // Takes the answers that are there and returns their number. `check`: looks at each.
  std::uint32_t take_answers(bool check, std::uint64_t buffers_pushed) {
    std::array<const TxDescriptor*, 64> descriptors{};
    const std::uint32_t count = ring.poll(descriptors);
    std::uint32_t answers = 0;
    for (const TxDescriptor* descriptor : std::span(descriptors).first(count)) {
      const std::span payload(reinterpret_cast<const std::byte*>(descriptor->address), descriptor->bytes);
      answers += static_cast<std::uint32_t>(payload[6]);
      wire::MtpView view;
      if (!check) continue;
      if (wire::MtpView::parse(payload, view) != wire::ParseError::none) {
        ++wrong;
        continue;
      }
      wire::for_each_primitive(view, [&](const wire::Primitive& answer) {
        const std::uint32_t number = answer.timestamp / 4;
        const bool of_newest = number / events == (buffers_pushed - 1) % clop.buffer_count();
        wrong += of_newest && answer.id == pool_.answers[number % kPoolEvents] ? 0 : 1;
      });
    }
    ring.complete(count);
    return answers;
  }

  const Completion& completion(std::uint32_t buffer_index) const { return completions_[buffer_index]; }

  const std::uint32_t events;

 private:
  std::uint32_t packet_events_;
  std::uint32_t packets_;

 public:
  flow::Clop clop;
  flow::CompletionQueue queue;
  flow::TxRing ring;
  std::uint64_t wrong = 0;

 private:
  static flow::ClopConfig clop_config(std::uint32_t events, std::uint32_t packets) {
    flow::ClopConfig config;
    config.buffer_count = std::max(kEventsAround / events, 2u);
    config.buffer_bytes = (packets * 1472 + 4095) / 4096 * 4096;
    config.index_capacity = packets;
    config.locked = false;
    return config;
  }

  void fill(std::uint32_t buffer_index, double lost, std::uint32_t& random) {
    Completion& completion = completions_[buffer_index];
    completion.kind = CompletionKind::buffer_filled;
    completion.buffer_index = static_cast<std::uint16_t>(buffer_index);
    std::uint32_t offset = 0;
    for (std::uint32_t first = 0; first < events; first += packet_events_) {
      for (std::uint32_t board = 0; board < kBoards; ++board) {
        random = random * 1664525u + 1013904223u;
        if (random < lost * 4294967296.0) continue;
        wire::MgpBuilder builder(clop.buffer(buffer_index).subspan(offset, 1472));
        builder.begin(wire::MgpLayout::packed);
        for (std::uint32_t e = first; e < std::min(first + packet_events_, events); ++e) {
          const std::uint32_t number = buffer_index * events + e;
          if (!builder.add_event({4 * number, 0, 0, static_cast<std::uint16_t>(number)}, pool_.parts[board][number % kPoolEvents])) {
            throw SetupError("an event does not fit its packet", "there are too many hits", "take smaller buffers");
          }
        }
        const auto packet = builder.finish({.source_sub_id = static_cast<std::uint8_t>(board)});
        clop.packet_index(buffer_index)[completion.packet_count++] = {
            .offset = offset, .bytes = static_cast<std::uint16_t>(packet.size()), .source = static_cast<std::uint16_t>(board)};
        offset += static_cast<std::uint32_t>(packet.size());
        completion.event_count += static_cast<std::uint32_t>(builder.event_count());
        completion.packet_events_max = std::max(completion.packet_events_max, static_cast<std::uint8_t>(builder.event_count()));
      }
    }
    completion.bytes = offset;
  }

  std::vector<Completion> completions_;
  const EventPool& pool_;
};

void look_for_fault(const gpu::EventProcessor& processor) {
  if (!processor.fault().empty()) end_program(processor.fault());
}

void measure_latency(const Plan& plan, const EventPool& pool, gpu::EventProcessorConfig config, Row& row) {
  Rig rig(pool, row.events, 0);
  const auto processor = gpu::EventProcessor::make(config, {.completions = rig.queue, .clops = {&rig.clop}, .answers = &rig.ring});
  std::vector<std::uint64_t> times_ns;
  std::uint64_t random = 12345;
  const std::uint64_t from_ns = now_ns();
  for (std::uint64_t number = 0; times_ns.size() < plan.repeat && now_ns() - from_ns < plan.row_ns; ++number) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    spin_for(2000 + (random >> 54));
    const std::uint64_t begin_ns = now_ns();
    rig.push(begin_ns);
    std::uint32_t answers = 0;
    for (Wait wait("the answers to a buffer"); answers < row.events;) {
      processor->poll(now_ns());
      answers += rig.take_answers(number % 8 == 0, number + 1);
      if (wait.turn()) look_for_fault(*processor);
    }
    const std::uint64_t took_ns = now_ns() - begin_ns;
    if (number >= 100) times_ns.push_back(took_ns);
    for (Wait wait("a buffer to be given back"); processor->busy();) {
      processor->poll(now_ns());
      if (wait.turn()) look_for_fault(*processor);
    }
  }
  processor->finish();
  look_for_fault(*processor);
  const gpu::Totals totals = processor->totals();
  row.wrong += rig.wrong + (totals.merger.events_complete == totals.merger.events_opened ? 0 : 1);
  row.summary = summarize(std::move(times_ns));
}

void measure_rate(const Plan& plan, const EventPool& pool, gpu::EventProcessorConfig config, Row& row) {
  Rig rig(pool, row.events, plan.lost);
  const auto processor = gpu::EventProcessor::make(config, {.completions = rig.queue, .clops = {&rig.clop}, .answers = &rig.ring});
  std::uint64_t answered = 0;
  const std::uint64_t from_ns = now_ns();
  std::uint64_t time_ns = from_ns;
  const std::uint32_t queued_max = std::min(rig.clop.buffer_count() / 2, 64u);
  while (time_ns - from_ns < plan.row_ns) {
    time_ns = now_ns();
    if (rig.clop.in_use() < queued_max) rig.push(time_ns);
    processor->poll(time_ns);
    answered += rig.take_answers(false, 0);
  }
  const double seconds = 1e-9 * static_cast<double>(time_ns - from_ns);
  row.rate = static_cast<double>(answered) / seconds;
  for (Wait wait("the last buffers"); processor->busy();) {
    processor->poll(now_ns());
    answered += rig.take_answers(false, 0);
    if (wait.turn()) look_for_fault(*processor);
  }
  processor->finish();
  look_for_fault(*processor);
  while (const std::uint32_t count = rig.take_answers(false, 0)) answered += count;
  const gpu::Totals totals = processor->totals();
  row.closed_by_window = totals.merger.events_missing_parts + totals.merger.events_overflow;
  row.wrong += (totals.events == answered ? 0 : 1) + (totals.merger.events_opened == totals.events ? 0 : 1);
}

// The same by one core: merger, finder, verdicts; without packets of answers.
void measure_cpu(const Plan& plan, const EventPool& pool, Row& row) {
  Rig rig(pool, row.events, plan.lost);
  event::Merger merger(plan.processor.merge->merger);
  std::array<std::uint16_t, wire::kMgpScratchHits> scratch;
  std::vector<event::Event> hits;
  std::vector<rich::EventRings> rings;
  std::vector<std::uint64_t> times_ns;
  std::uint64_t answered = 0;
  const std::uint64_t from_ns = now_ns();
  std::uint64_t begin_ns = from_ns;
  for (std::uint32_t b = 0; begin_ns - from_ns < plan.row_ns; b = (b + 1) % rig.clop.buffer_count()) {
    const Completion& completion = rig.completion(b);
    if (b == 0) merger.flush();  // the keys begin again
    for (const PacketRef& ref : rig.clop.packet_index(b).first(completion.packet_count)) {
      const auto packet = wire::MgpView::from_checked(rig.clop.buffer(b).subspan(ref.offset, ref.bytes));
      wire::for_each_event(packet, scratch.data(), [&](const wire::MgpEvent& event, const std::uint16_t* channels) {
        merger.add_padded_part(ref.source, event::event_key(event.timestamp, event.fine_time), channels, event.hit_count, begin_ns);
      });
    }
    merger.expire(begin_ns);
    hits.clear();
    for (const event::MergedEvent* event : merger.ready()) hits.push_back({event->hits, event->hit_count});
    rings.resize(std::max(rings.size(), hits.size()));
    rich::find_rings(plan.processor.finder, hits, std::span(rings).first(hits.size()));
    for (std::size_t e = 0; e < hits.size(); ++e) {
      const event::MergedEvent& event = *merger.ready()[e];
      const std::uint32_t number = event::key_timestamp(event.key) / 4;
      const bool whole = event.closed_by == event::CloseReason::complete;
      row.wrong += whole && rich::primitive_id(rings[e], plan.processor.decision) != pool.answers[number % kPoolEvents] ? 1 : 0;
    }
    merger.clear_ready();
    answered += hits.size();
    const std::uint64_t end_ns = now_ns();
    if (times_ns.size() < plan.repeat) times_ns.push_back(end_ns - begin_ns);
    begin_ns = end_ns;
  }
  row.rate = 1e9 * static_cast<double>(answered) / static_cast<double>(begin_ns - from_ns);
  row.closed_by_window = merger.stats().events_missing_parts + merger.stats().events_overflow;
  row.summary = summarize(std::move(times_ns));
}

Row measure(const std::string& way, const Plan& plan, const EventPool& pool, std::uint32_t events) {
  using gpu::BufferPath;
  using gpu::Runtime;
  Row row{.way = way, .events = events, .summary = {}};
  if (way == "cpu") {
    measure_cpu(plan, pool, row);
    return row;
  }
  gpu::EventProcessorConfig config = plan.processor;
  config.gpu.path = way.ends_with("_copied") ? BufferPath::copied : BufferPath::mapped;
  if (way == "persistent") {
    config.gpu.runtime = Runtime::persistent;
  } else if (way == "launch_mapped" || way == "launch_copied") {
    config.gpu.runtime = Runtime::launch;
  } else if (way == "graph_mapped" || way == "graph_copied") {
    config.gpu.runtime = Runtime::graph;
  } else {
    throw SetupError("there is no way '" + way + "'", "see the head of bench/gpu/merge.cpp", "name one of those");
  }
  measure_latency(plan, pool, config, row);
  measure_rate(plan, pool, config, row);
  return row;
}

int run(const Options& options) {
  Csv csv(options.text("--csv"));
  Plan plan;
  const bool is_short = options.is_short();
  plan.repeat = options.count("--repeat", is_short ? 200 : plan.repeat);
  plan.row_ns = static_cast<std::uint64_t>(1e9 * options.number("--seconds", is_short ? 0.1 : 1));
  plan.lost = options.number("--lost", 0);
  plan.processor.finder.kind = finder_of(options.text("--finder", "math"));
  plan.processor.gpu.blocks = static_cast<std::uint32_t>(options.count("--blocks", 0));
  plan.processor.merge = gpu::EventMerge{.merger = {.source_count = kBoards,
                                                    .window_ns = 1000 * options.count("--window-us", 200),
                                                    .open_events_max = static_cast<std::uint32_t>(options.count("--open", 8192)),
                                                    .hits_max = rich::kMaxHits},
                                         .incomplete = gpu::IncompletePolicy::process,
                                         .first_source = {0}};
  const auto sizes = options.counts("--sizes", is_short ? "16,1024" : "16,64,256,1024,4096");
  const auto ways = options.list("--ways", "persistent,launch_mapped,launch_copied,graph_mapped,graph_copied,cpu");
  limit_run_time(static_cast<unsigned>(options.count("--limit-s", 140)));
  describe_machine("bench_gpu_merge", csv);
  const int core = pin(static_cast<int>(options.number("--core", -1)));
  std::printf("four boards, finder %s, %g of the packets lost, thread on core %d; latency in us, rate in Mevent/s\n",
              rich::finder_name(plan.processor.finder.kind), plan.lost, core);
  csv.line(std::string("# finder: ") + rich::finder_name(plan.processor.finder.kind));
  csv.line("# lost: " + options.text("--lost", "0"));
  csv.line(std::string("way,events,") + kSummaryColumns + ",rate_events_per_s,incomplete,wrong");
  std::printf("%7s %-15s %8s %8s %8s %8s %9s %10s %6s\n", "events", "way", "p50", "p99", "p99.9", "max", "rate", "incomplete",
              "wrong");
  const EventPool pool(plan.processor.finder, plan.processor.decision);
  std::uint64_t wrong = 0;
  for (const std::uint32_t events : sizes) {
    for (const std::string& way : ways) {
      const Row row = measure(way, plan, pool, events);
      const Summary& s = row.summary;
      std::printf("%7u %-15s %8.2f %8.2f %8.2f %8.2f %9.2f %10llu %6llu\n", events, way.c_str(), s.p50, s.p99, s.p999, s.max,
                  1e-6 * row.rate, static_cast<unsigned long long>(row.closed_by_window), static_cast<unsigned long long>(row.wrong));
      std::fflush(stdout);
      csv.line(way + "," + std::to_string(events) + "," + summary_values(s) + "," + std::to_string(row.rate) + "," +
               std::to_string(row.closed_by_window) + "," + std::to_string(row.wrong));
      wrong += row.wrong;
    }
  }
  return wrong != 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(Options(argc, argv,
                       {"--sizes", "--ways", "--finder", "--blocks", "--repeat", "--seconds", "--lost", "--window-us", "--open",
                        "--core", "--limit-s", "--csv"}));
  } catch (const SetupError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
