// SPDX-License-Identifier: Apache-2.0
// A target in a process of its own: this program again, started with --target. It ends with its parent, when told to, or after five minutes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nanet/rdma/worker.hpp"

namespace nanet::test {

inline constexpr std::size_t TARGET_REGION_BYTES = 8u << 20;
inline constexpr std::uint64_t TARGET_TOKEN = 0x1122334455667788;

// These go over megabytes, byte by byte: ThreadSanitizer would look at each.
#define NANET_UNWATCHED __attribute__((no_sanitize("thread")))

// The byte of a pattern at a place: no two seeds and no two neighbouring places alike for long.
NANET_UNWATCHED inline std::byte pattern_byte(std::uint64_t at, std::uint64_t seed) {
  std::uint64_t mixed = (at + 1) * 0x9e3779b97f4a7c15 ^ (seed + 1) * 0xc2b2ae3d27d4eb4f;
  return static_cast<std::byte>((mixed ^ mixed >> 29) >> 32);
}
NANET_UNWATCHED void fill_pattern(std::span<std::byte> data, std::uint64_t seed);
NANET_UNWATCHED std::size_t first_difference(std::span<const std::byte> data, std::uint64_t seed);  // data.size() if there is none

// Where targets listen: NANET_RDMA_ADDRESS of the environment, else loopback.
std::string target_address();
// The paths to be tested: these, or the one that NANET_RDMA_TRANSPORTS of the environment names.
std::vector<const char*> ways(std::vector<const char*> usual);
std::string way_name(const std::string& transports);  // as part of a test's name
// Of a worker for these transports at target_address(); TCP is trusted.
rdma::WorkerConfig worker_config(const std::string& transports, std::uint32_t keepalive_ms = 1000);

// Regions it exposes, all region_bytes long with TARGET_TOKEN: "shared" and "host" (read, write), "shared-read", "host-read" (read
// only), "host-write" (write only).
class TargetProcess {
 public:
  explicit TargetProcess(const std::string& transports, std::size_t region_bytes = TARGET_REGION_BYTES);
  ~TargetProcess();  // kills it if it is still there
  TargetProcess(const TargetProcess&) = delete;
  TargetProcess& operator=(const TargetProcess&) = delete;

  std::uint16_t port() const { return port_; }
  std::size_t descriptor_count() const;      // that it has open
  void allow_descriptors(std::size_t more);  // than it has now
  // One line there, one line back: "fill REGION OFFSET BYTES SEED" -> "done"; "check REGION OFFSET BYTES SEED" -> "same", or "differs AT";
  // "revoke REGION"; "connections" -> how many; "refused" -> how many; "quit" -> "bye".
  std::string ask(const std::string& line);
  void stop();    // SIGSTOP, and waits until it has stopped
  void resume();  // SIGCONT
  void kill();    // SIGKILL
  int join();     // after "quit": its exit status

 private:
  std::string read_line();
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  std::uint16_t port_ = 0;
};

int run_target(const std::string& transports, std::size_t region_bytes);  // what --target does

}  // namespace nanet::test
