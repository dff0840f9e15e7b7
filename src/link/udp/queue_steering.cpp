// SPDX-License-Identifier: Apache-2.0
#include "link/udp/queue_steering.hpp"

#include <linux/filter.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "nanet/setup_error.hpp"

#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif

namespace nanet::link {
namespace {

// Returns the XOR of some bytes modulo the number of queues. Where a packet ends before them, the kernel ends the program with queue 0.
class Program {
 public:
  Program() {
    add(BPF_LD | BPF_IMM, 0);
    add(BPF_ST, kFolded);
  }

  // at: in the payload, or in the network header from SKF_NET_OFF on.
  void fold(std::uint32_t at, std::uint32_t bytes) {
    for (std::uint32_t i = 0; i < bytes; ++i) {
      add(BPF_LD | BPF_B | BPF_ABS, at + i);
      add(BPF_LDX | BPF_MEM, kFolded);
      add(BPF_ALU | BPF_XOR | BPF_X, 0);
      add(BPF_ST, kFolded);
    }
  }

  void end(std::uint32_t queues) {
    add(BPF_LD | BPF_MEM, kFolded);
    add(BPF_ALU | BPF_MOD | BPF_K, queues);
    add(BPF_RET | BPF_A, 0);
  }

  sock_fprog whole() { return {static_cast<unsigned short>(code_.size()), code_.data()}; }

 private:
  static constexpr std::uint32_t kFolded = 0;  // a word of the program's memory

  void add(unsigned code, std::uint32_t k) { code_.push_back({static_cast<std::uint16_t>(code), 0, 0, k}); }

  std::vector<sock_filter> code_;
};

Program program_for(const UdpConfig& config) {
  constexpr auto kNetworkHeader = static_cast<std::uint32_t>(SKF_NET_OFF);
  Program program;
  if (config.steer_by == SteerBy::key) {
    program.fold(config.key_at, config.key_bytes);
  } else if (config.listen->address.is_ipv6()) {
    program.fold(kNetworkHeader + 8, 16);
  } else {
    program.fold(kNetworkHeader + 12, 4);
  }
  program.end(config.queues);
  return program;
}

void share(const Socket& socket, const UdpConfig& config) {
  if (socket.set(SOL_SOCKET, SO_REUSEPORT, 1)) return;
  throw SetupError("link " + config.name + " cannot have " + std::to_string(config.queues) + " queues",
                   std::string("no SO_REUSEPORT: ") + std::strerror(errno), "set queues: 1");
}

}  // namespace

// Queue 0 does not share yet: a port that another program has, even another engine with queues, is refused to it.
void before_bind(const Socket& socket, const UdpConfig& config) {
  if (config.queues > 1 && config.queue > 0) share(socket, config);
}

void after_bind(const Socket& socket, const UdpConfig& config) {
  if (config.queues == 1) return;
  if (config.queue == 0) share(socket, config);
  if (config.queue + 1 < config.queues || config.steer_by == SteerBy::flow) return;
  Program program = program_for(config);
  const sock_fprog whole = program.whole();
  if (::setsockopt(socket.fd(), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &whole, sizeof whole) != 0) {
    throw SetupError("link " + config.name + " cannot steer packets to its " + std::to_string(config.queues) + " queues",
                     std::string("the kernel refuses the program: ") + std::strerror(errno), "set steer_by: flow");
  }
}

}  // namespace nanet::link
