// SPDX-License-Identifier: Apache-2.0
// The side whose memory is written and read: listens for connections, and exposes regions under names. A connection's socket stays open as long as
// it lives: its end is how the target learns that the other side is gone.
//
// The target's thread must call Worker::progress or Worker::wait now and then: connections are made and closed there, and so are operations
// that a transport cannot do alone (docs/design/rdma.md says which).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nanet/rdma/region.hpp"
#include "nanet/rdma/worker.hpp"

namespace nanet::rdma {

struct TargetConfig {
  // IPv4 or IPv6 address to listen on, or the path of a Unix socket, which is this account's alone. As the worker's: both on one machine, or both
  // on the network. What comes to it is nanet's own set-up channel: nothing reaches UCX before the token was proved (docs/design/rdma.md).
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  // That have proved a token; more are refused. Over shared memory each takes 7 descriptors and 2.5 MB: see ulimit -n.
  std::uint32_t connection_count_max = 256;
};

struct Permissions {
  bool read = false;
  bool write = false;
};

struct ExposureConfig {
  std::string name;                        // 1 to 64 bytes, one region each
  Permissions permissions;                 // at least one; atomics need both
  std::uint64_t token = 0;                 // what a connection must prove to know; it is never sent
  std::uint32_t connection_count_max = 0;  // at once; 0: as many as the target takes. One whose peer died counts until that is noticed
};

class Target {
 public:
  Target(const Worker& worker, const TargetConfig& config = {});  // throws SetupError; one a worker
  ~Target();                                                      // closes its connections
  Target(Target&&) noexcept;
  Target& operator=(Target&&) noexcept;

  void expose(const Region& region, const ExposureConfig& config);  // throws SetupError; keeps the region's memory alive
  // Later connections are refused, and the registration ends. True if there was such a name.
  bool revoke(const std::string& name);

  std::uint16_t port() const;
  std::size_t connection_count() const;
  std::uint64_t refused_count() const;  // connections and atomics refused: name, token, rights, malformed, late, too many

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nanet::rdma
