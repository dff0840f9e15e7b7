// SPDX-License-Identifier: Apache-2.0
// The XDP program (steer.bpf.c) on an interface: loaded, attached, given its sockets; gone when this object or its process is gone.
//
// It is attached by a BPF link, which the kernel takes away with its last file descriptor: a killed process leaves nothing behind.
// Thread rules: set up by one thread at a time; missed() from any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "link/xdp/interface.hpp"
#include "nanet/link/xdp.hpp"

struct bpf_object;

namespace nanet::link {

class Steering {
 public:
  enum class Mode : std::uint8_t { driver, generic };

  struct Config {
    std::string link_name;
    IpAddress address;  // 0.0.0.0 or ::: any of that family
    std::uint16_t port = 0;
    std::uint32_t queue_limit = 1;  // queues are below this
    XdpAttach attach = XdpAttach::automatic;
    bool multi_buffer = false;  // packets may lie in several buffers of the driver
  };

  // Throws SetupError, also when the interface has an XDP program.
  Steering(const Config& config, const Interface& interface, std::vector<std::string>& notes);

  // The same, for several links of this process; and the one that there is on the interface for an address and a port. Throws SetupError: there is none.
  static std::shared_ptr<Steering> share(const Config& config, const Interface& interface, std::vector<std::string>& notes);
  static std::shared_ptr<Steering> join(const Config& config, const Interface& interface);

  ~Steering();
  Steering(const Steering&) = delete;
  Steering& operator=(const Steering&) = delete;

  // From now on packets of this queue go to the socket. Throws SetupError.
  void add_socket(std::uint32_t queue, int socket_fd);

  Mode mode() const { return mode_; }

  // Packets that would have been taken, but came on a queue without a socket and went to the kernel; since forget_missed().
  std::uint64_t missed() const { return count() - missed_before_; }
  void forget_missed() { missed_before_ = count(); }

 private:
  enum class Program : std::uint8_t { plain, frags };

  void refuse_if_taken(const Interface& interface) const;
  bool try_attach(Program program, Mode mode, const Interface& interface);
  int load(Program program);
  void close();
  std::uint64_t count() const;
  [[noreturn]] void fail(const Interface& interface) const;

  Config config_;
  Mode mode_ = Mode::driver;
  bpf_object* object_ = nullptr;
  int link_fd_ = -1;
  int sockets_fd_ = -1;
  const std::uint64_t* missed_ = nullptr;  // the map, in this process's memory
  std::uint64_t missed_before_ = 0;
  int error_ = 0;           // of the last attempt
  std::string error_text_;  // what libbpf said about it
  bool load_failed_ = false;
};

}  // namespace nanet::link
