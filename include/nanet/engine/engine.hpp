// SPDX-License-Identifier: Apache-2.0
// Engine: a configured pipeline with its threads. Everything is allocated in the constructor; start() begins to move data.
//
// Packets go from a link to a lane (lane.hpp), and answers from there to the one link that all lanes share.
//
// Thread rules: start, stop and flush from one control thread; everything const from any thread at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "nanet/engine/config.hpp"
#include "nanet/engine/lane.hpp"
#include "nanet/engine/processor.hpp"
#include "nanet/engine/receiver.hpp"
#include "nanet/flow/latency_histogram.hpp"
#include "nanet/flow/thread.hpp"
#include "nanet/gpu/device_memory.hpp"
#include "nanet/link/fault_injector.hpp"
#include "nanet/link/recorder.hpp"

namespace nanet::engine {

// One link, or one queue of a link that has several, with the CLOP it fills.
struct Input {
  LinkConfig config;
  std::unique_ptr<gpu::DeviceMemory> gpu_memory;  // where the link's payloads lie; null: in host memory
  std::unique_ptr<link::Link> link;
  link::FaultInjector* faults = nullptr;  // inside `link`, if configured
  link::Recorder* recorder = nullptr;     // likewise
  std::unique_ptr<flow::Clop> clop;
  std::unique_ptr<Receiver> receiver;
};

class Engine {
 public:
  // Throws SetupError. Sockets are bound when it returns.
  explicit Engine(const EngineConfig& config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Throws SetupError when a thread cannot be pinned as asked; then nothing runs.
  void start();

  // Drains what has arrived, closes open events, answers them, and joins the threads. Bounded in time.
  void stop();

  // Hands partly filled buffers over at once.
  void flush() { flush_requests_.fetch_add(1, std::memory_order_relaxed); }

  bool running() const { return running_.load(std::memory_order_acquire); }
  double elapsed_s() const;

  // Nothing more will come: every link plays a file, and all have reached their ends.
  bool inputs_finished() const;

  // One line for each thing the machine could not provide, "problem (why) suggestion". Links add some while they run.
  std::vector<std::string> notes() const;

  const std::vector<Input>& inputs() const { return inputs_; }
  // Where the processor's packets leave; null when nothing is sent.
  const link::Link* send_link() const { return send_link_; }
  // With an entry of its own for each queue of a link.
  const EngineConfig& config() const { return config_; }
  std::uint64_t start_ns() const { return start_ns_; }
  // A snapshot; empty when nothing is sent.
  flow::LatencyHistogram residence_ns() const;

  // The GPUs' names; none when the engine's own threads do the processing.
  std::vector<std::string> device_names() const;

  // Why GPUs were given up, "problem (why) suggestion", one a line. Their buffers are given back unjudged (events_unjudged) until stop().
  std::vector<std::string> faults() const;

  // How long the engine's threads together were ready to run but something else had their cores. Known after stop().
  std::uint64_t core_wait_ns() const { return core_wait_ns_.load(std::memory_order_acquire); }

  // Sum over all sources, links and stages.
  std::uint64_t total(flow::Counter counter) const;

 private:
  bool works_alone() const { return !needs_.gpus.empty(); }
  void add_lanes();
  void add_input(std::size_t index);
  std::vector<link::Endpoint> destinations() const;
  void open_send_link();
  void add_transmitter(Lane& lane);
  void add_consumer(std::size_t index);
  void start_threads();
  void let_go();
  // The lanes that a thread serves: one of them, where each has a thread of its own, else all.
  struct Share {
    std::size_t first;
    std::size_t last;
  };
  Share all_lanes() const { return {0, lanes_.size()}; }
  void spawn(const std::string& name, std::optional<int> core, Share share, void (Engine::*loop)(Share));
  void run_to_completion_loop(Share share);
  void receive_loop(Share share);
  void process_loop(Share share);
  void process_and_send_loop(Share share);
  void send_loop(Share share);
  std::uint32_t receive_once(Share share, std::uint64_t now_ns);
  std::uint32_t receive_into(Lane& lane, std::uint64_t now_ns);
  std::uint32_t process_once(Share share, std::uint64_t now_ns);
  std::uint32_t send_once(Share share, std::uint64_t now_ns);
  bool in_flight(Share share) const;
  std::uint64_t sleep_ns() const { return config_.waiting.sleep_us * 1000; }
  void sleep_on_link(Share share);
  void publish_fault(Lane& lane);
  void receive_rest(Share share);
  void process_rest(Share share);
  void send_rest(Share share);
  void count_unseen();
  void count_unjudged();

  const EngineConfig config_;
  ProcessorNeeds needs_;
  std::vector<std::string> notes_;  // of the constructor
  std::vector<Input> inputs_;
  std::unique_ptr<link::Link> own_send_link_;  // unless an input's link sends
  link::Link* send_link_ = nullptr;
  std::uint32_t destination_count_ = 0;  // of send_link_
  std::deque<Lane> lanes_;               // after the memory that their consumers use

  std::vector<flow::Thread> threads_;
  std::atomic<bool> go_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> receive_done_{false};
  std::atomic<bool> process_done_{false};
  std::atomic<bool> running_{false};
  std::atomic<bool> faulted_{false};
  mutable std::mutex fault_mutex_;  // of Lane::fault_told, written once or twice in a run
  std::atomic<std::uint32_t> flush_requests_{0};
  std::uint64_t start_ns_ = 0;
  std::atomic<std::uint64_t> stop_ns_{0};
  std::atomic<std::uint64_t> core_wait_ns_{0};
};

}  // namespace nanet::engine
