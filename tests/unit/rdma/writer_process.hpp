// SPDX-License-Identifier: Apache-2.0
// A writer in a process of its own: this program again, started with --writer. Until it is killed it writes payload after payload to a region that
// is called "ring", or ones to the whole of any other, again and again.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace nanet::test {

inline constexpr std::uint32_t RING_PAYLOAD_BYTES_MAX = 3000;

// Payload k of a writer has this size, and the pattern of seed k.
inline std::size_t ring_payload_bytes(std::uint64_t number) { return number * 7919 % (RING_PAYLOAD_BYTES_MAX + 1); }

class WriterProcess {
 public:
  WriterProcess(const std::string& transports, std::uint16_t port, const std::string& region);
  ~WriterProcess() { kill(); }
  WriterProcess(const WriterProcess&) = delete;
  WriterProcess& operator=(const WriterProcess&) = delete;
  void kill();

 private:
  pid_t pid_ = -1;
};

int run_writer(const std::string& transports, const std::string& port, const std::string& region);  // what --writer does

}  // namespace nanet::test
